// SPDX-License-Identifier: MIT
// Defines the functions of my.hpp, so that the guide's blocks can be linked. Nothing here is run.
#include "my.hpp"

#include <vkrope/vkrope.hpp>

namespace my {

VkResult create_device(const std::vector<const char*>&) {
    return VK_SUCCESS;
}
void log(std::string_view) {}
void* map_staging(std::size_t) {
    return nullptr;
}
VkImage create_image(const VkImageCreateInfo&) {
    return VK_NULL_HANDLE;
}
VkImageView create_view(const VkImageViewCreateInfo&) {
    return VK_NULL_HANDLE;
}

vkrope::RopeParams rope;
vkrope::AngleTableLayout plan;
vkrope::KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
std::vector<float> q_norm, k_norm, q_norm_2, k_norm_2;
vkrope::DeviceRef ref;
Owned<vkrope::Kernel> kernel, scattering_kernel, qkv_kernel;
Owned<vkrope::PositionKernel> position_kernel;
std::vector<Owned<vkrope::DescriptorArena>> arenas;
std::uint32_t vkrope_device_feature;

}  // namespace my

int main() {}
