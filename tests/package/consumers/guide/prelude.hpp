// SPDX-License-Identifier: MIT
// What the guide, host/guide, takes for granted: `my::` is what an engine has anyway.
// tests/package/consumers.sh puts each C++ block of the guide into a function of its own, beside
// this file.
#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <string_view>
#include <vector>

#include "vkrope/kernel.hpp"
#include "vkrope/model.hpp"
#include "vkrope/positions.hpp"
#include "vkrope/rotation_from.hpp"
#include "vkrope/runtime.hpp"

namespace my {

constexpr std::uint32_t frames_in_flight = 2, layers = 32, tokens = 16, q_heads = 32, k_heads = 8,
                        sequences = 4, max_position = 4096;
constexpr std::int32_t first_position = 0;

extern VkInstance instance;
extern VkPhysicalDevice physical;
extern VkPhysicalDeviceProperties properties;
extern VkDevice device;
extern VkPipelineCache pipeline_cache;
extern VkCommandBuffer commands;
extern std::string_view config_json;
extern std::vector<const char*> extensions;
extern VkBuffer q, k, qkv, attention, cache, v_cache, slot_mapping, ids, cu_seqlens, cos_cache,
    sin_cache;
extern VkDeviceSize q_bytes, k_bytes, qkv_bytes, cache_bytes;
extern bool has_debug_utils;
extern VkBuffer staging;
extern VkImage table_image;
extern VkImageView table;
extern std::vector<float> q_on_host, k_on_host;
extern int frame;

VkResult create_device(const std::vector<const char*>& extensions);
void* map_staging(std::size_t bytes);
VkImage create_image(const VkImageCreateInfo& info);
VkImageView create_view(const VkImageViewCreateInfo& info);

extern vkrope::Rotation rope;
extern vkrope::AnglePlan plan;
extern vkrope::KernelInfo info;
extern std::vector<float> q_norm, k_norm;
extern vkrope::DeviceRef ref;
extern vkrope::Owned<vkrope::Kernel> kernel, scattering_kernel, qkv_kernel;
extern vkrope::Owned<vkrope::PositionKernel> position_kernel;
extern vkrope::Owned<vkrope::DescriptorArena> arenas[frames_in_flight];
extern std::uint32_t vkrope_device_feature;

}  // namespace my
