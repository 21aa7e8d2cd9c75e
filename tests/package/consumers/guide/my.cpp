// SPDX-License-Identifier: MIT
// my.hpp, so that the guide's blocks can be linked. Nothing here is run.
#include "my.hpp"

#include <vkrope/vkrope.hpp>

namespace my {

VkInstance instance;
VkPhysicalDevice physical;
VkPhysicalDeviceProperties properties;
VkDevice device;
VkPipelineCache pipeline_cache;
VkCommandBuffer commands;
std::string_view config_json;
std::vector<const char*> extensions;
VkBuffer q, k, v, qkv, cache, v_cache, slot_mapping, ids, seconds, cu_seqlens, cos_cache, sin_cache;
VkDeviceSize q_bytes, k_bytes, qkv_bytes, cache_bytes;
bool has_debug_utils;
VkBuffer staging;
VkImage table_image;
VkImageView table;
std::vector<float> q_on_host, k_on_host;
std::size_t frame;

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
