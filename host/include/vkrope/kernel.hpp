// SPDX-License-Identifier: MIT
// Tier "kernel": rotates query and key tensors in the application's command buffer, on its device.
//
// Nothing here submits, waits, allocates device memory or compiles after create(). Objects are
// immutable once created and may be shared between threads; a command buffer and its
// DescriptorArena belong to one thread at a time. No global state.
#pragma once

#include <memory>

#include "vkrope/types.hpp"

namespace vkrope {

/// Functionality that the application enabled at vkCreateDevice. Support by the device alone is not
/// enough.
enum DeviceFeature : std::uint32_t {
    push_descriptor = 1,  ///< VK_KHR_push_descriptor: record() needs no DescriptorArena
    debug_utils = 2,  ///< VK_EXT_debug_utils of the instance: objects get names, calls get labels
    /// VK_KHR_shader_float_controls, or Vulkan 1.2: pipelines declare the arithmetic that the error
    /// bounds assume.
    float_controls = 4,
    /// The feature shaderFloat16 of VK_KHR_shader_float16_int8 or Vulkan 1.2: with float controls,
    /// the device converts f16.
    shader_float16 = 8,
};

/// What to merge into VkInstanceCreateInfo and VkDeviceCreateInfo.
struct Requirements {
    std::uint32_t api_version = 0;  ///< minimum VkApplicationInfo::apiVersion and device version
    /// Device extensions that this device offers and the kernel can use.
    const char* optional_extensions[4] = {};
    std::uint32_t optional_extension_count = 0;
    std::uint32_t enabled = 0;  ///< DeviceRef::enabled if all optional extensions are enabled
    /// The feature shaderFloat16 of VK_KHR_shader_float16_int8, one of these extensions, can be
    /// enabled; DeviceRef::enabled may then include DeviceFeature::shader_float16.
    bool offers_shader_float16 = false;
    /// Bits that DeviceRef::enabled may include without these extensions if
    /// VkApplicationInfo::apiVersion is at least 1.2: float controls are part of Vulkan 1.2
    /// devices, and shaderFloat16, once enabled, is a field of VkPhysicalDeviceVulkan12Features.
    std::uint32_t enabled_in_core = 0;
};

/// Queries what the kernel needs from a physical device. Code::not_supported names what it lacks.
/// Thread-safe.
Result<Requirements> requirements(VkInstance instance, VkPhysicalDevice physical,
                                  PFN_vkGetInstanceProcAddr get_instance_proc_addr);

/// A borrowed device. Its handles must outlive every kernel and arena created with them.
struct DeviceRef {
    VkInstance instance = VK_NULL_HANDLE;
    VkPhysicalDevice physical = VK_NULL_HANDLE;
    VkDevice device = VK_NULL_HANDLE;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
    std::uint32_t enabled = 0;                        ///< bits of DeviceFeature
    VkPipelineCache pipeline_cache = VK_NULL_HANDLE;  ///< optional; used during create() only
    const VkAllocationCallbacks* allocator =
        nullptr;  ///< optional; must outlive what is made with it
};

struct Kernel;
struct DescriptorArena;
struct PositionKernel;

/// Deleter for the objects of create(), create_positions() and create_arena().
struct Destroyer {
    template <class Object>
    void operator()(Object* object) const noexcept {
        destroy(object);
    }
};
/// Move-only owner of a Kernel, a DescriptorArena or a PositionKernel.
template <class Object>
using Owned = std::unique_ptr<Object, Destroyer>;

/// Passes a created object to an owner: `auto kernel = own(create(device, info));` is a
/// Result<Owned<Kernel>>.
template <class Object>
Result<Owned<Object>> own(Result<Object*>&& made) noexcept {
    return {made.status, Owned<Object>(made.value)};
}

/// Compiles every pipeline that record() may choose, at most nine. The caller must destroy the
/// kernel; own() does it. Thread-safe if the caller's pipeline cache and allocation callbacks are.
Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info);

/// Destroys a kernel. No command buffer that uses it may be pending, and no other thread may use
/// it. Null is ignored.
void destroy(Kernel* kernel) noexcept;

/// Largest `calls` of an arena.
inline constexpr std::uint32_t max_calls = 65536;

/// Creates descriptor sets for `calls` calls of record() on a device without push descriptors;
/// create one arena per thread and frame. A call takes one set per dispatch, see dispatches(). The
/// arena works with every kernel and PositionKernel of the same DeviceRef::device. If the device
/// binds fewer than 18 storage buffers per stage (maxPerStageDescriptorStorageBuffers), kernels
/// with made scales, below 15 those with any Finish, and below 11 all kernels, are certain to
/// work only with an arena of an equal KernelInfo; record() rejects an arena that does not fit.
/// Thread-safe.
///
/// kernel  determines the device; need not outlive the arena
/// calls   1 to max_calls
Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls);

/// Makes all sets available again. Command buffers recorded with the arena must not be pending and
/// must not be submitted afterwards. The arena is externally synchronised.
void reset(DescriptorArena* arena) noexcept;

/// Destroys the arena, with the rules of reset(). Null is ignored. The device must still exist.
void destroy(DescriptorArena* arena) noexcept;

/// A stride whose steps all read the same row: Tensor::head_stride of an input,
/// Positions::batch_stride and axis_stride. A stride of 0 is never that: it means packed.
inline constexpr std::int64_t broadcast = INT64_MIN;

/// Location of a tensor's rows. Strides are in elements, whatever their size; of ggml's blocks they
/// are multiples of 32. 0: packed as [batch, tokens, heads, head_dim].
struct Tensor {
    /// Buffer, offset and range of the tensor in bytes; VK_WHOLE_SIZE is not allowed.
    VkDescriptorBufferInfo where = {};
    std::uint32_t heads = 0;  ///< 0: the tensor is absent from the call
    std::int64_t token_stride = 0, head_stride = 0, batch_stride = 0;
    /// Second head axis, as in QKV of [tokens, groups, q_per_group + 2, head_dim]: `heads` is the
    /// total, in groups of heads_per_group heads that are group_stride elements apart. 0: one
    /// group.
    std::uint32_t heads_per_group = 0;
    std::int64_t group_stride =
        0;  ///< from one group to the next; 0: packed, heads_per_group * head_stride
    /// Size of the whole buffer in bytes; 0: unknown. Needed only if 16-bit rows end in the middle
    /// of a word that `range` does not cover: the shader accesses whole words, so the buffer must
    /// contain this one.
    VkDeviceSize buffer_size = 0;
};

/// Paged cache: destination rows of out[K] and out[V], one per token. The number of pages follows
/// from where.range (of the smaller cache if a call has both):
///
///     [slots, heads, head_dim]                  page_size 1
///     [pages, page_size, heads, head_dim]       packed, the default
///     [pages, heads, page_size, head_dim]       row_stride head_dim,
///                                               head_stride page_size * head_dim,
///                                               page_stride heads * page_size * head_dim
///     [pages, heads, page_size, 2 * head_dim]   K and V side by side: out[K] and out[V] in
///                                               one buffer, out[V].where head_dim elements
///                                               further; the strides of the line above times 2
///
/// Rows without a token keep their bits. If two tokens have the same slot, its content is
/// undefined.
struct PagedCache {
    /// int32 or int64 [batch, tokens]: page * page_size + row. -1 skips the token. Any other value
    /// outside the cache skips it and increments Call::out_of_range. Offset and range must be
    /// multiples of 4.
    VkDescriptorBufferInfo slot_mapping = {};
    bool int64 = false;  ///< slot_mapping is int64
    /// Rows per page, 1 to 2^31. With 1, a page_stride (if 0: row_stride) other than packed is an
    /// error, because page_size may have been forgotten. For single rows with gaps, set row_stride
    /// and page_stride to the same value.
    std::uint32_t page_size = 1;
    /// Elements, for both caches; 0: packed. If rows of K and V differ in length and neither cache
    /// is packed, V needs its own call. token_stride and batch_stride of out[K] and out[V] must be
    /// 0.
    std::int64_t page_stride = 0, row_stride = 0;
    std::int64_t batch_stride = 0;  ///< slots from one sequence to the next; 0: packed
};

/// Positions of the tokens, see PositionSource. If the angle source does not cover a position on
/// any axis, or an int64 id does not fit in int32, the rows of the token stay unrotated and
/// Call::out_of_range is incremented.
struct Positions {
    std::int32_t first = 0;  ///< implicit: position of token 0; the last position must fit in int32
    /// Ids: int32 or int64 [axes, batch, tokens]; offset and range must be multiples of 4.
    VkDescriptorBufferInfo ids = {};
    bool int64 = false;  ///< ids are int64
    /// Ids from one sequence to the next; 0: packed, tokens * token_stride; `broadcast`: all share
    /// one row. Implicit: positions from token 0 of one sequence to token 0 of the next;
    /// `broadcast`: every sequence starts at `first`; 0 is an error if batch is above 1.
    std::int64_t batch_stride = 0;
    /// Ids from one axis to the next; 0: packed, after the rows of all sequences; `broadcast`: all
    /// axes share one row.
    std::int64_t axis_stride = 0;
    std::int64_t token_stride = 0;  ///< ids from one token to the next; 0: packed, 1
};

/// Angle table of a call.
struct Angles {
    const AnglePlan* plan =
        nullptr;  ///< read during the call only; content from fill_angles, except a cos_sin_cache
    VkImageView view = VK_NULL_HANDLE;  ///< textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
                                        ///< when the commands execute
    /// direct_buffer: (cos, sin) pairs; cos_sin_cache: cos. Offset must be a multiple of 4.
    /// computed: a uniform buffer; offset must be a multiple of minUniformBufferOffsetAlignment.
    VkDescriptorBufferInfo buffer = {};
    VkDescriptorBufferInfo sin = {};  ///< cos_sin_cache: sin; offset must be a multiple of 4
};

/// One rotation of Q, K or both, optionally with a copy of V. Input and output of a tensor must be
/// the same bytes (in place) or disjoint. A field that is given and that the kernel does not use is
/// an error that names it: ids of a kernel of implicit positions, parameters of a kernel without
/// weights, rows of a tensor without heads.
struct Call {
    std::uint32_t batch = 1;   ///< sequences
    std::uint32_t tokens = 0;  ///< tokens per sequence; 0 is valid and records nothing
    /// By Q, K, V. V is copied, and converted if the kernel says so; in place, nothing is copied. A
    /// V with the heads, head_dim and strides (in elements) of K shares K's dispatch; any other V
    /// has its own.
    Tensor in[tensor_count] = {{}, {}, {}}, out[tensor_count] = {{}, {}, {}};
    Positions positions = {};
    Angles angles = {};
    Direction direction = Direction::forward;
    Gain gain = Gain::apply;
    PagedCache paged_cache = {};
    /// Optional uint32 counter: incremented for each token whose position the table does not cover
    /// (its rows stay unrotated) or whose slot is outside the cache (its K and V are not stored).
    /// Never cleared here. An error if neither can be: computed angles of implicit positions,
    /// without scatter_k.
    VkDescriptorBufferInfo out_of_range = {};
    /// Weights, biases and scales of the kernel's TensorInfo::ops, as plan_parameters
    /// (frequencies.hpp) places them. Offset must be a multiple of 16; range at
    /// least ParameterPlan::bytes, or twice that with KernelInfo::two_parameter_sets, whose second
    /// set follows the first.
    VkDescriptorBufferInfo parameters = {};
    /// With KernelInfo::two_parameter_sets: tokens of each sequence that take the first set, 1 to
    /// tokens - 1; otherwise it must be 0.
    std::uint32_t first_set_tokens = 0;
    float q_scale =
        1;  ///< with Finish::scale_call: multiplies Q; finite, not 0; otherwise must be 1
    /// With Finish::scale_tokens of the tensor: f32 [batch, tokens], packed. Offset and range must
    /// be multiples of 4.
    VkDescriptorBufferInfo scale_tokens[tensor_count] = {};
    /// With made scales of the tensor: receives f32 [batch, tokens, heads], packed, or with
    /// slots one scale for each row of the cache, see ScaleLayout. The offset must be a multiple of
    /// 4; the range may not overlap another buffer of the call.
    VkDescriptorBufferInfo scales_out[tensor_count] = {};
};

/// Number of dispatches that record() makes for a call, and of sets that it takes from an arena. 0
/// if there is nothing to do: no tokens, or only a V in place and no out_of_range. More than one if
///
/// - the tokens exceed the workgroups of a dispatch,
/// - the device binds too few storage buffers for Q, K and V together,
/// - a tensor or cache exceeds the range that the device binds at once,
/// - V's layout differs from K's,
/// - heads in groups are combined with a batch or slots.
///
/// Returns every error of record() except arena errors. Thread-safe.
Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept;

/// Stages and accesses for barriers around the commands of record().
struct Boundary {
    VkPipelineStageFlags stage = 0;     ///< first and last stage
    VkAccessFlags input_access = 0;     ///< Call::in, ids and an angle table in a buffer
    VkAccessFlags texture_access = 0;   ///< an angle table in a texture
    VkAccessFlags output_access = 0;    ///< Call::out, scales_out and out_of_range
    VkAccessFlags in_place_access = 0;  ///< a tensor in place
};
/// Returns the stages and accesses for barriers around record(): the same for every call.
/// Thread-safe.
Boundary boundary() noexcept;

/// Records one rotation into `commands`. It does not submit, wait, allocate or compile.
///
/// boundary() gives the stages and accesses. Buffers need VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, an
/// angle table AnglePlan::usage. The caller orders the rotation against earlier and later commands:
/// record() inserts barriers only between its own dispatches whose bound ranges overlap and of
/// which one writes. A call owns the whole 4-byte words of its tensors. A word shared with
/// neighbouring data is read and written atomically, and barriers of the caller must cover all of
/// it.
///
/// Per dispatch it makes 4 Vulkan calls with push descriptors (push, bind pipeline, push constants,
/// dispatch) or 5 with an arena (update and bind a set instead of push), plus 2 in total with
/// debug_utils, and allocates nothing.
///
/// Disturbs the compute pipeline, descriptor set 0 and the push constants of the compute bind
/// point.
///
/// Any number of threads may record with one kernel at a time.
///
/// commands  recording, outside a render pass, on a compute queue family; externally synchronised
/// arena     null with push descriptors; otherwise an arena for this kernel, externally
///           synchronised, with at least dispatches() sets left
///
/// On error nothing has been recorded.
Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call,
              DescriptorArena* arena = nullptr) noexcept;

// ---- Upload of an angle table ----

/// Returns the VkImageCreateInfo for the texture of a plan, which is copied into once, then sampled
/// by compute shaders of one queue family. Thread-safe.
VkImageCreateInfo angle_image_info(const AnglePlan& plan) noexcept;

/// Returns the VkImageViewCreateInfo for Angles::view. Thread-safe.
VkImageViewCreateInfo angle_view_info(const AnglePlan& plan, VkImage image) noexcept;

/// Source and destination of a table upload.
struct AngleUpload {
    VkBuffer staging = VK_NULL_HANDLE;  ///< usage VK_BUFFER_USAGE_TRANSFER_SRC_BIT; holds the
                                        ///< output of fill_angles
    VkDeviceSize staging_offset = 0;    ///< bytes; a multiple of 16 for textures, of 4 for buffers
    VkImage image = VK_NULL_HANDLE;     ///< textures: created with angle_image_info()
    VkBuffer buffer =
        VK_NULL_HANDLE;  ///< buffers: usage AnglePlan::usage and VK_BUFFER_USAGE_TRANSFER_DST_BIT
    VkDeviceSize buffer_offset = 0;  ///< bytes; a multiple of 4
    /// Part of the table, see AngleLines: staging holds `lines` lines from `first_line` on. The
    /// first part must be uploaded first and the last part last. 0 lines: all from first_line on.
    std::uint32_t first_line = 0, lines = 0;
};

/// Records the upload of a table that fill_angles wrote: image transitions, the copy, and a barrier
/// after which later commands of record() on the same queue may read it. Leaves the image in
/// VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL. Use it once per model, not per call: it looks up
/// Vulkan functions. On error nothing has been recorded.
///
/// commands  recording, outside a render pass, on a compute queue family; externally synchronised
/// plan      not a cos_sin_cache: its content belongs to the caller
Status record_angle_upload(VkCommandBuffer commands, const DeviceRef& device, const AnglePlan& plan,
                           const AngleUpload& upload) noexcept;

// ---- Conversion of positions to int32 ids ----

/// Compiles the pipeline of record_positions(). Thread-safe like create().
Result<PositionKernel*> create_positions(const DeviceRef& device);

/// Like destroy(Kernel*).
void destroy(PositionKernel* kernel) noexcept;

/// Like create_arena(const Kernel*, calls); record_positions() takes one set per call.
Result<DescriptorArena*> create_arena(const PositionKernel* kernel, std::uint32_t calls);

/// Computes int32 ids, once per step for all layers. Three forms:
///
/// - One row per sequence, no `cu_seqlens`: `out` is [batch, tokens]. The position of token t of
///   sequence b is offsets[b] + first + t, or ids[b, t] (int64), or ids[b, t] 2^fraction_bits (f32:
///   seconds, patch centres, interpolated grids).
/// - Ragged, `cu_seqlens` is [sequences + 1]: `out` is [tokens]. The position of token t of packed
///   sequence i, cu_seqlens[i] <= t < cu_seqlens[i + 1], is offsets[i] + first + t - cu_seqlens[i].
///   A token of no sequence has position 0.
/// - A shard, cp_size > 1: each sequence is cut into 2 cp_size chunks of equal length. This rank
///   holds chunk cp_rank, followed by chunk 2 cp_size - 1 - cp_rank (zig-zag), as fused_rope of
///   TransformerEngine. `tokens` counts the tokens of this rank; cu_seqlens counts those of all
///   ranks, padded to multiples of 2 cp_size.
///
/// An f32 id times 2^fraction_bits must be a whole number; the rotation then has frequencies times
/// 2^-fraction_bits: scale_positions (frequencies.hpp).
///
/// A position that does not fit in int32, or is not a whole number, becomes -2^31 and increments
/// out_of_range. No table covers -2^31, but computed angles do.
struct PositionCall {
    std::uint32_t batch = 1;   ///< sequences
    std::uint32_t tokens = 0;  ///< tokens per sequence; 0 records nothing
    std::int32_t first = 0;    ///< added to every position
    /// Optional: int64 or f32 [batch, tokens], instead of offsets and first.
    VkDescriptorBufferInfo ids = {};
    VkDescriptorBufferInfo offsets = {};  ///< optional: int32 or int64, one per sequence
    /// Optional: int32 or int64, ascending from 0. No value causes accesses outside the buffers.
    VkDescriptorBufferInfo cu_seqlens = {};
    std::uint32_t sequences = 0;  ///< sequences in cu_seqlens
    bool offsets_int64 = false, cu_seqlens_int64 = false;
    std::uint32_t cp_size =
        1;  ///< number of shards; above 1, tokens (or each sequence) is a multiple of 2
    std::uint32_t cp_rank = 0;        ///< index of this shard
    bool ids_f32 = false;             ///< ids are f32
    std::uint32_t fraction_bits = 0;  ///< of f32 ids, 0 to 63
    VkDescriptorBufferInfo out = {};  ///< int32 [batch, tokens]
    VkDescriptorBufferInfo out_of_range =
        {};  ///< optional uint32 counter: incremented for each position that does not fit in int32
};

/// Records one dispatch that writes `out`. boundary() applies: `out` and `out_of_range` are
/// written, the rest is read. Disturbs what record() disturbs and allocates nothing. On error
/// nothing has been recorded.
///
/// commands, arena  as for record(); takes one set per call
Status record_positions(VkCommandBuffer commands, const PositionKernel* kernel,
                        const PositionCall& call, DescriptorArena* arena = nullptr) noexcept;

}  // namespace vkrope
