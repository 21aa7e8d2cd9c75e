// SPDX-License-Identifier: MIT
// Declares, in `my::`, the parts of an engine that the guide (host/guide) uses undeclared.
// tests/package/consumers.sh puts each C++ block of the guide into a separate function, after the
// #include lines that the block prints and then this file. Therefore this file includes no header
// of vkrope.
#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

struct vkrope_angle_table_layout;
struct vkrope_arena;
struct vkrope_call;
struct vkrope_device_ref;
struct vkrope_kernel;
struct vkrope_kernel_info;
struct vkrope_position_kernel;

namespace vkrope {
using AngleTableLayout = vkrope_angle_table_layout;
using Call = vkrope_call;
using DescriptorArena = vkrope_arena;
using DeviceRef = vkrope_device_ref;
using Kernel = vkrope_kernel;
using KernelInfo = vkrope_kernel_info;
using PositionKernel = vkrope_position_kernel;
struct Destroyer;
struct InfoEqual;
struct InfoHash;
struct RopeParams;
}  // namespace vkrope

namespace my {

/// The same as vkrope::Owned.
template <class Object>
using Owned = std::unique_ptr<Object, vkrope::Destroyer>;

/// A node of ggml.md; ggml's struct is ggml_tensor.
struct Node {
    std::int32_t op_params[16];
    std::int64_t ne[4];
};

/// A layer of gemma3.md.
struct Layer {
    VkDescriptorBufferInfo q, k, v, k_cache, v_cache, parameters;
    bool full;  ///< sees all tokens
};

/// A step in flight of record_once.md.
struct Step {
    VkCommandBuffer commands;
    VkDescriptorBufferInfo query_lens, seq_lens, block_table;
};

constexpr std::uint32_t layers = 32, max_position = 4096;
constexpr std::int32_t first_position = 0;
inline std::uint32_t tokens = 16, q_heads = 32, k_heads = 8, sequences = 4, pages = 16,
                     cache_pages = 64;

inline VkInstance instance;
inline VkPhysicalDevice physical;
inline VkPhysicalDeviceProperties properties;
inline VkDevice device;
inline VkPipelineCache pipeline_cache;
inline VkCommandBuffer commands, secondary;
inline VkQueue queue;
inline VkSemaphore timeline;
inline Step steps[2];
inline std::string_view config_json;
inline std::vector<const char*> extensions;
inline VkBuffer q, k, v, qkv, cache, v_cache, slot_mapping, source_mapping, ids, deltas, seconds,
    cu_seqlens, offsets, cos_cache, sin_cache, parameters, angle_buffer, q_norm_weight,
    k_norm_weight, token_count, out_of_range;
inline VkDeviceSize q_bytes, k_bytes, qkv_bytes, cache_bytes;
inline bool has_debug_utils, no_rope;
inline float eps;
inline Node rope_node;
inline VkBuffer staging;
inline VkImage table_image;
inline VkImageView table;
inline std::vector<VkImageView> tables;
inline std::vector<Layer> model;
inline std::vector<float> q_on_host, k_on_host;
inline std::size_t frame;

inline std::function<VkResult(const std::vector<const char*>& extensions)> create_device;
inline std::function<void(std::string_view line)> log;
inline std::function<void*(std::size_t bytes)> map_staging;
inline std::function<VkImage(const VkImageCreateInfo& info)> create_image;
inline std::function<VkImageView(const VkImageViewCreateInfo& info)> create_view;
inline std::function<VkImageView(const vkrope::RopeParams&, const vkrope::AngleTableLayout&)>
    make_table;
inline std::function<void(VkAccessFlags from, VkAccessFlags to)> barrier;
inline std::function<void(const Layer&)> record_projections;
inline std::function<void(const Layer&, const Step&)> record_attention;
inline std::function<void(VkCommandBuffer)> begin;
inline std::function<void(Step&)> write_numbers;
inline std::function<bool()> has_work;

extern vkrope::RopeParams rope, longer_rope;
extern vkrope::AngleTableLayout plan;
extern std::vector<vkrope::AngleTableLayout> plans;
extern vkrope::KernelInfo info;
extern vkrope::Call shift;
extern std::vector<vkrope::Call> calls;
extern std::vector<float> q_norm, k_norm, q_norm_2, k_norm_2;
extern vkrope::DeviceRef ref;
extern Owned<vkrope::Kernel> kernel;
extern std::unordered_map<vkrope::KernelInfo, Owned<vkrope::Kernel>, vkrope::InfoHash,
                          vkrope::InfoEqual>
    kernels;
inline std::vector<const vkrope::Kernel*> kernel_of;  // of each layer
inline std::uint32_t layer;
extern Owned<vkrope::PositionKernel> position_kernel;
extern std::vector<Owned<vkrope::DescriptorArena>> arenas;  // one for each frame in flight
extern Owned<vkrope::DescriptorArena> recorded_arena;
extern std::uint32_t vkrope_device_feature;

}  // namespace my
