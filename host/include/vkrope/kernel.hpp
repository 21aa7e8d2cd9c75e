// SPDX-License-Identifier: MIT
// Tier "kernel": rotate query and key tensors inside a command buffer of yours, on a device of yours.
//
// Nothing here submits, waits, allocates device memory or compiles after create(). Objects are immutable once created and may be
// shared between threads; a command buffer and its DescriptorArena belong to one thread at a time. No global state.
#pragma once

#include "vkrope/types.hpp"

namespace vkrope {

/// Device functionality that the application enabled at vkCreateDevice: nothing is inferred from mere support.
enum Enabled : std::uint32_t {
    push_descriptor = 1,  ///< VK_KHR_push_descriptor: record() then needs no DescriptorArena
};

/// What to merge into VkInstanceCreateInfo and VkDeviceCreateInfo.
struct Requirements {
    std::uint32_t api_version = 0;            ///< the lowest VkApplicationInfo::apiVersion and device version
    const char* optional_extensions[4] = {};  ///< device extensions that this device offers and that the kernel makes use of
    std::uint32_t optional_extension_count = 0;
    std::uint32_t enabled = 0;  ///< DeviceRef::enabled, once all optional extensions are enabled
};

/// Asks a physical device what the kernel needs of it. Code::not_supported says what it lacks.
Result<Requirements> requirements(VkInstance instance, VkPhysicalDevice physical, PFN_vkGetInstanceProcAddr get_instance_proc_addr);

/// A borrowed device. Its handles must outlive every kernel and arena that is made with them.
struct DeviceRef {
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
    std::uint32_t enabled = 0;                         ///< bits of Enabled
    VkPipelineCache pipeline_cache = VK_NULL_HANDLE;   ///< optional; used during create() only
    const VkAllocationCallbacks* allocator = nullptr;  ///< optional; must outlive what is made with it
};

/// How Q or K is stored. A head_dim of 0 means that the kernel never sees this tensor.
struct Width {
    Element in = Element::f32, out = Element::f32;
    std::uint32_t head_dim = 0;       ///< channels: 2 to 65534
    std::uint32_t rotary_offset = 0;  ///< first rotated channel; rotary_offset + rotary_dim <= head_dim
};

/// How the work is laid out over invocations. It never changes a bit of the result.
enum class Mapping : std::uint32_t {
    by_device = 0,  ///< cpu on VK_PHYSICAL_DEVICE_TYPE_CPU, gpu elsewhere
    gpu,            ///< many small invocations, neighbours on neighbouring channels
    cpu,            ///< few large ones: all heads of a token each
};

/// What is fixed when a kernel is created; everything else is per call.
struct KernelInfo {
    Pairing pairing = Pairing::half_split;
    std::uint32_t rotary_dim = 0;  ///< channels: even, 2 to head_dim
    Width q = {}, k = {};
    AngleSource angles = AngleSource::direct_texture;
    PositionSource positions = PositionSource::implicit;
    Mapping mapping = Mapping::by_device;
};

struct Kernel;
struct DescriptorArena;

/// Compiles every pipeline that record() may choose, at most six.
Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info);

/// No command buffer that uses the kernel may be pending. Null is ignored.
void destroy(Kernel* kernel) noexcept;

/// Descriptor sets for `calls` calls of record(), for devices without push descriptors: one per thread and frame.
Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls);

/// Takes all sets back. No command buffer recorded with the arena may be pending, nor be submitted afterwards.
void reset(DescriptorArena* arena) noexcept;

/// As reset(), for good. Null is ignored. The kernel must still exist.
void destroy(DescriptorArena* arena) noexcept;

/// Where the rows of a tensor are. Strides are in elements; 0 means packed as [batch, tokens, heads, head_dim].
struct Tensor {
    VkDescriptorBufferInfo where = {};  ///< buffer, offset and range in bytes of the tensor's own bytes; never VK_WHOLE_SIZE
    std::uint32_t heads = 0;            ///< 0: this tensor is absent from the call
    std::int64_t token_stride = 0, head_stride = 0, batch_stride = 0;
};

/// Positions of the tokens, by the kernel's PositionSource.
struct Positions {
    std::int32_t first = 0;           ///< implicit: position of token 0; first + tokens - 1 must be an int32
    VkDescriptorBufferInfo ids = {};  ///< ids: int32 [batch, tokens]; offset and range are multiples of 4
    std::int64_t batch_stride = 0;    ///< ids: elements from one sequence's ids to the next's; 0: all share one row
};

/// The angle table: what `plan` says, filled by fill_angles.
struct Angles {
    const AnglePlan* plan = nullptr;     ///< read during the call only
    VkImageView view = VK_NULL_HANDLE;   ///< textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL when the commands execute
    VkDescriptorBufferInfo buffer = {};  ///< buffers: offset is a multiple of 4
};

/// One rotation of Q, K or both. Input and output of a tensor are the same bytes (in place) or disjoint.
struct Call {
    std::uint32_t batch = 1, tokens = 0;  ///< 0 tokens is legal and records nothing
    Tensor q_in = {}, q_out = {}, k_in = {}, k_out = {};
    Positions positions = {};
    Angles angles = {};
    Direction direction = Direction::forward;
    /// Optional uint32: plus one for each token whose position the table does not cover. Its rows stay unrotated.
    VkDescriptorBufferInfo out_of_range = {};
};

/// Records one dispatch into `commands`, which must be recording, outside a render pass, on a compute queue family.
///
/// First and last stage: VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT. It reads q_in, k_in, ids and the table with
/// VK_ACCESS_SHADER_READ_BIT (buffers need VK_BUFFER_USAGE_STORAGE_BUFFER_BIT) and writes q_out, k_out and out_of_range with
/// VK_ACCESS_SHADER_WRITE_BIT; in place, a tensor is both read and written. No barrier is recorded: ordering against other
/// commands is the caller's. A call owns the 4-byte words that its tensors touch.
///
/// Disturbs: the compute pipeline, descriptor set 0 and the push constants of the compute bind point.
///
/// commands  externally synchronised
/// arena     null with push descriptors; otherwise of this kernel, externally synchronised, with a set left
///
/// On error nothing has been recorded.
Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call, DescriptorArena* arena = nullptr) noexcept;

}  // namespace vkrope
