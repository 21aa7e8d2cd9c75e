// SPDX-License-Identifier: MIT
// Defines the variables of my.hpp whose types are vkrope's.
#include "my.hpp"

#include <vkrope/vkrope.hpp>

namespace my {

vkrope::RopeParams rope, longer_rope;
vkrope::AngleTableLayout plan;
std::vector<vkrope::AngleTableLayout> plans;
vkrope::KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
vkrope::Call shift;
std::vector<vkrope::Call> calls;
std::vector<float> q_norm, k_norm, q_norm_2, k_norm_2;
vkrope::DeviceRef ref;
Owned<vkrope::Kernel> kernel;
std::unordered_map<vkrope::KernelInfo, Owned<vkrope::Kernel>, vkrope::InfoHash, vkrope::InfoEqual>
    kernels;
Owned<vkrope::PositionKernel> position_kernel;
std::vector<Owned<vkrope::DescriptorArena>> arenas;
Owned<vkrope::DescriptorArena> recorded_arena;
std::uint32_t vkrope_device_feature;

}  // namespace my
