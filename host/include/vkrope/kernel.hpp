// SPDX-License-Identifier: MIT
// Tier "kernel": rotate query and key tensors inside a command buffer of yours, on a device of yours.
//
// Nothing here submits, waits, allocates device memory or compiles after create(). Objects are immutable once created and may be
// shared between threads; a command buffer and its DescriptorArena belong to one thread at a time. No global state.
#pragma once

#include <optional>

#include "vkrope/types.hpp"

namespace vkrope {

/// Device functionality that the application enabled at vkCreateDevice: nothing is inferred from mere support.
enum Enabled : std::uint32_t {
    push_descriptor = 1,  ///< VK_KHR_push_descriptor: record() then needs no DescriptorArena
    debug_utils = 2,      ///< VK_EXT_debug_utils of the instance: objects get names, each call a label
    float_controls = 4,   ///< VK_KHR_shader_float_controls: pipelines declare the arithmetic that the error bounds assume
    /// VkPhysicalDeviceShaderFloat16Int8Features::shaderFloat16: with float_controls, the device itself converts f16.
    shader_float16 = 8,
};

/// What to merge into VkInstanceCreateInfo and VkDeviceCreateInfo.
struct Requirements {
    std::uint32_t api_version = 0;            ///< the lowest VkApplicationInfo::apiVersion and device version
    const char* optional_extensions[4] = {};  ///< device extensions that this device offers and that the kernel makes use of
    std::uint32_t optional_extension_count = 0;
    std::uint32_t enabled = 0;  ///< DeviceRef::enabled, once all optional extensions are enabled
    /// The feature shaderFloat16 of VK_KHR_shader_float16_int8, one of these extensions, can be enabled: then
    /// DeviceRef::enabled may have Enabled::shader_float16 too.
    bool offers_shader_float16 = false;
};

/// Asks a physical device what the kernel needs of it. Code::not_supported says what it lacks. Thread-safe.
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

/// Channels of a head row that are rotated among themselves.
struct Window {
    std::uint32_t offset = 0;      ///< first channel, counted from Width::rotary_offset
    std::uint32_t rotary_dim = 0;  ///< channels: even
};
inline constexpr std::uint32_t max_windows = 4;

/// How the work is laid out over invocations. It never changes a bit of the result.
enum class Mapping : std::uint32_t {
    by_device = 0,  ///< cpu on VK_PHYSICAL_DEVICE_TYPE_CPU, gpu elsewhere
    gpu,            ///< many small invocations, neighbours on neighbouring channels
    cpu,            ///< few large ones: all heads of a token each
};

/// How f16 is converted to f32 and back. It never changes a bit of the result, but for the sign and payload of a NaN.
enum class Conversion : std::uint32_t {
    by_device = 0,  ///< integer on VK_PHYSICAL_DEVICE_TYPE_CPU and where native is not to be had
    /// by the device, as SPIR-V defines it under RoundingModeRTE 16; needs Enabled::float_controls and shader_float16, and a device
    /// that reports shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16. Subnormal halves are left to integers
    /// where it does not report shaderDenormPreserveFloat16.
    native,
    integer,  ///< by integer operations
};

/// What is fixed when a kernel is created; everything else is per call.
struct KernelInfo {
    Pairing pairing = Pairing::half_split;
    std::uint32_t rotary_dim = 0;  ///< channels: even, 2 to head_dim; of all windows together
    Width q = {}, k = {};
    AngleSource angles = AngleSource::factored_texture;  ///< AnglePlan::source; by_default is factored_texture
    PositionSource positions = PositionSource::implicit;
    Mapping mapping = Mapping::by_device;
    std::optional<Pairing> pairing_out = {};  ///< how rotated pairs are written; another than `pairing` is for calls out of place
    bool scatter_k = false;                   ///< k_out's rows go where Call::k_rows says
    /// Several windows in a row, ascending and apart, whose rotary_dims add up to rotary_dim: 2-D vision RoPE. The pairs of the
    /// angle table are numbered window after window. All zero: one window.
    Window windows[max_windows] = {};
    Sections sections = {};        ///< with PositionSource::axis_ids
    Element table = Element::f32;  ///< caller_buffer: what cos and sin are stored as
    Conversion conversion = Conversion::by_device;
};

struct Kernel;
struct DescriptorArena;

/// Compiles every pipeline that record() may choose, at most six. Thread-safe, as far as the caller's pipeline cache and
/// allocation callbacks are.
Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info);

/// No command buffer that uses the kernel may be pending, no other thread may use it. Null is ignored.
void destroy(Kernel* kernel) noexcept;

/// The most calls that one arena serves.
inline constexpr std::uint32_t most_calls = 65536;

/// Descriptor sets for `calls` calls of record(), for devices without push descriptors: one per thread and frame. A call of several
/// dispatches counts as so many, see dispatches(). Thread-safe.
///
/// calls  1 to most_calls
Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls);

/// Takes all sets back. No command buffer recorded with the arena may be pending, nor be submitted afterwards. The arena is
/// externally synchronised.
void reset(DescriptorArena* arena) noexcept;

/// As reset(), for good. Null is ignored. The kernel must still exist.
void destroy(DescriptorArena* arena) noexcept;

/// A head stride for inputs: every head reads one and the same row.
inline constexpr std::int64_t broadcast = INT64_MIN;

/// Where the rows of a tensor are. Strides are in elements; 0 means packed as [batch, tokens, heads, head_dim].
struct Tensor {
    VkDescriptorBufferInfo where = {};  ///< buffer, offset and range in bytes of the tensor's own bytes; never VK_WHOLE_SIZE
    std::uint32_t heads = 0;            ///< 0: this tensor is absent from the call
    std::int64_t token_stride = 0, head_stride = 0, batch_stride = 0;
    /// A second head axis, as in QKV of [tokens, groups, q_per_group + 2, head_dim]: `heads` counts them all, in groups of so many,
    /// group_stride apart. 0: one group.
    std::uint32_t heads_per_group = 0;
    std::int64_t group_stride = 0;  ///< 0: packed, heads_per_group * head_stride
    /// Bytes of the whole buffer; 0: unknown. Needed only where 16-bit rows end in the middle of a word that `range` does not
    /// cover: the shader accesses whole words, and must know that the buffer has this one.
    VkDeviceSize buffer_size = 0;
};

/// Destination rows of k_out, one a token, in a cache of pages, as many as k_out.where.range holds:
///
///     [slots, heads, head_dim]                  page_size 1
///     [pages, page_size, heads, head_dim]       packed, the default
///     [pages, heads, page_size, head_dim]       row_stride head_dim, k_out.head_stride page_size * head_dim, page_stride heads
///     times that
///
/// Rows that no token names keep their bits. Where two tokens name one row, its content is undefined.
struct Rows {
    /// int32 or int64 [batch, tokens]: page * page_size + row; -1 skips the token, any other value outside the cache does too, and
    /// counts in Call::out_of_range. Offset and range are multiples of 4.
    VkDescriptorBufferInfo slots = {};
    bool int64 = false;                            ///< slots of 64 bits
    std::uint32_t page_size = 1;                   ///< rows of a page; 1 to 2^31
    std::int64_t page_stride = 0, row_stride = 0;  ///< elements; 0: packed. k_out.token_stride and batch_stride are 0 then.
    std::int64_t batch_stride = 0;                 ///< slots from one sequence's to the next's; 0: packed
};

/// Positions of the tokens, by the kernel's PositionSource. One that the angle source does not cover, or an int64 outside int32,
/// leaves the rows of its token unrotated and counts in Call::out_of_range; so does one axis of several.
struct Positions {
    std::int32_t first = 0;           ///< implicit: position of token 0; the last one must be an int32
    VkDescriptorBufferInfo ids = {};  ///< ids: int32 or int64 [axes, batch, tokens]; offset and range are multiples of 4
    bool int64 = false;               ///< ids of 64 bits
    /// Ids from one sequence to the next; 0: all share one row. Implicit: positions from one sequence's token 0 to the next's.
    std::int64_t batch_stride = 0;
    std::int64_t axis_stride = 0;   ///< ids from axis to axis; 0: all share one row
    std::int64_t token_stride = 1;  ///< ids from token to token; at least 1
};

/// Where cos and sin are.
struct Angles {
    const AnglePlan* plan = nullptr;    ///< read during the call only; filled by fill_angles unless it is the caller's own
    VkImageView view = VK_NULL_HANDLE;  ///< textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL when the commands execute
    /// direct_buffer: (cos, sin) pairs; caller_buffer: cos. Offset is a multiple of 4. computed: a uniform buffer, whose offset is a
    /// multiple of minUniformBufferOffsetAlignment.
    VkDescriptorBufferInfo buffer = {};
    VkDescriptorBufferInfo sin = {};  ///< caller_buffer
};

/// One rotation of Q, K or both. Input and output of a tensor are the same bytes (in place) or disjoint.
struct Call {
    std::uint32_t batch = 1, tokens = 0;  ///< 0 tokens is legal and records nothing
    Tensor q_in = {}, q_out = {}, k_in = {}, k_out = {};
    Positions positions = {};
    Angles angles = {};
    Direction direction = Direction::forward;
    Gain gain = Gain::apply;
    Rows k_rows = {};
    /// Optional uint32: plus one for each token whose position the table does not cover, which leaves its rows unrotated, or whose
    /// slot the cache does not have, which leaves its K nowhere. Never cleared here.
    VkDescriptorBufferInfo out_of_range = {};
};

/// Dispatches that record() makes of a call: one, or as many as there are parts: where a tensor exceeds what the device binds or
/// dispatches at once (then Q and K go apart), a cache of K spans several such ranges, or heads in groups meet a batch or slots. The sets of an arena that it takes. Fails as record() would, for all but the arena.
/// Thread-safe.
Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept;

/// How what record() records is ordered against other commands.
struct Boundary {
    VkPipelineStageFlags stage = 0;     ///< first and last stage
    VkAccessFlags input_access = 0;     ///< of q_in, k_in, ids and the angle table
    VkAccessFlags output_access = 0;    ///< of q_out, k_out and out_of_range
    VkAccessFlags in_place_access = 0;  ///< of a tensor that is both
};
/// The same for every kernel. Thread-safe.
Boundary boundary() noexcept;

/// Records one rotation into `commands`, which must be recording, outside a render pass, on a compute queue family.
///
/// boundary() says which stage accesses what, and how; buffers need VK_BUFFER_USAGE_STORAGE_BUFFER_BIT. Ordering against earlier
/// and later commands is the caller's: record() puts a barrier only between dispatches of its own whose bound ranges overlap
/// and of which one writes. A call owns the 4-byte words that its tensors touch; a word that it shares with a neighbour is
/// read and written atomically, and counts whole for the caller's barriers.
///
/// Per dispatch it makes 4 Vulkan calls with push descriptors (push, bind pipeline, push constants, dispatch), 5 with an arena
/// (update and bind a set instead of push), 2 more around all with debug_utils, and allocates nothing.
///
/// Disturbs: the compute pipeline, descriptor set 0 and the push constants of the compute bind point.
///
/// Any number of threads may record with one kernel at a time.
///
/// commands  externally synchronised
/// arena     null with push descriptors; otherwise of this kernel, externally synchronised, with as many sets left as dispatches()
/// says
///
/// On error nothing has been recorded.
Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call, DescriptorArena* arena = nullptr) noexcept;

// ---- Positions that are not int32 ids yet ----

struct PositionKernel;

/// Compiles the pipeline of record_positions(). Thread-safe like create().
Result<PositionKernel*> create_positions(const DeviceRef& device);

/// Like destroy(Kernel*).
void destroy(PositionKernel* kernel) noexcept;

/// Like create_arena(const Kernel*, calls), for record_positions().
Result<DescriptorArena*> create_arena(const PositionKernel* kernel, std::uint32_t calls);

/// What becomes int32 ids, once per step for all layers. Three forms:
///
/// - One row a sequence, `cu_seqlens` absent: `out` is [batch, tokens], and token t of sequence b is at offsets[b] + first + t, or
///   at ids[b, t], which are 64 bits.
/// - Ragged, `cu_seqlens` is [sequences + 1]: `out` is [tokens], and token t of packed sequence i, with
///   cu_seqlens[i] <= t < cu_seqlens[i + 1], is at offsets[i] + first + t - cu_seqlens[i]. A token of no sequence is at 0.
/// - A shard, cp_size > 1: every sequence is cut into 2 cp_size chunks of one length, of which this rank holds chunk cp_rank and
///   chunk 2 cp_size - 1 - cp_rank, one after the other (zig-zag). `tokens` counts those of this rank; cu_seqlens those of the
///   whole, padded to multiples of 2 cp_size. As fused_rope of TransformerEngine does.
///
/// A position outside int32 becomes -2^31, which no table covers but computed angles do, and counts in out_of_range.
struct PositionCall {
    std::uint32_t batch = 1, tokens = 0;  ///< of `out`; 0 tokens records nothing
    std::int32_t first = 0;
    VkDescriptorBufferInfo ids = {};      ///< optional: int64 [batch, tokens], instead of offsets and first
    VkDescriptorBufferInfo offsets = {};  ///< optional: int32 or int64, one a sequence
    /// Optional: int32 or int64, ascending from 0. Whatever the values, nothing outside the buffers is touched.
    VkDescriptorBufferInfo cu_seqlens = {};
    std::uint32_t sequences = 0;  ///< of cu_seqlens
    bool offsets_int64 = false, cu_seqlens_int64 = false;
    std::uint32_t cp_size = 1, cp_rank = 0;    ///< shards, and which one; tokens (or each sequence) is a multiple of 2
    VkDescriptorBufferInfo out = {};           ///< int32 [batch, tokens]
    VkDescriptorBufferInfo out_of_range = {};  ///< optional uint32, as Call::out_of_range
};

/// Records one dispatch that writes `out`. boundary() holds: `out` and `out_of_range` are written, the rest is read. Disturbs what
/// record() does, allocates nothing. On error nothing has been recorded.
///
/// commands, arena  as for record(): one set a call
Status record_positions(VkCommandBuffer commands, const PositionKernel* kernel, const PositionCall& call,
                        DescriptorArena* arena = nullptr) noexcept;

}  // namespace vkrope
