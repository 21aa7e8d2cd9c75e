// SPDX-License-Identifier: MIT
// Tier "kernel": rotate query and key tensors inside a command buffer of yours, on a device of
// yours.
//
// Nothing here submits, waits, allocates device memory or compiles after create(). Objects are
// immutable once created and may be shared between threads; a command buffer and its
// DescriptorArena belong to one thread at a time. No global state.
#pragma once

#include <memory>

#include "vkrope/types.hpp"

namespace vkrope {

/// Device functionality that the application enabled at vkCreateDevice: nothing is inferred from
/// mere support.
enum DeviceFeature : std::uint32_t {
    push_descriptor = 1,  ///< VK_KHR_push_descriptor: record() then needs no DescriptorArena
    debug_utils = 2,  ///< VK_EXT_debug_utils of the instance: objects get names, each call a label
    /// VK_KHR_shader_float_controls, or Vulkan 1.2: pipelines declare the arithmetic that the error
    /// bounds assume.
    float_controls = 4,
    /// The feature shaderFloat16, of VK_KHR_shader_float16_int8 or Vulkan 1.2: with float_controls,
    /// the device itself converts f16.
    shader_float16 = 8,
};

/// What to merge into VkInstanceCreateInfo and VkDeviceCreateInfo.
struct Requirements {
    std::uint32_t api_version = 0;  ///< the lowest VkApplicationInfo::apiVersion and device version
    /// Device extensions that this device offers and that the kernel makes use of.
    const char* optional_extensions[4] = {};
    std::uint32_t optional_extension_count = 0;
    std::uint32_t enabled = 0;  ///< DeviceRef::enabled, once all optional extensions are enabled
    /// The feature shaderFloat16 of VK_KHR_shader_float16_int8, one of these extensions, can be
    /// enabled: then DeviceRef::enabled may have DeviceFeature::shader_float16 too.
    bool offers_shader_float16 = false;
    /// What DeviceRef::enabled may have without any of these extensions where
    /// VkApplicationInfo::apiVersion is at least 1.2: float controls are part of a device of
    /// Vulkan 1.2, and shaderFloat16, once enabled, is a field of VkPhysicalDeviceVulkan12Features.
    std::uint32_t enabled_in_core = 0;
};

/// Asks a physical device what the kernel needs of it. Code::not_supported says what it lacks.
/// Thread-safe.
Result<Requirements> requirements(VkInstance instance, VkPhysicalDevice physical,
                                  PFN_vkGetInstanceProcAddr get_instance_proc_addr);

/// A borrowed device. Its handles must outlive every kernel and arena that is made with them.
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

/// Destroys what create(), create_positions() and create_arena() made, for owners.
struct Destroyer {
    template <class Object>
    void operator()(Object* object) const noexcept {
        destroy(object);
    }
};
/// The owner of a Kernel, a DescriptorArena or a PositionKernel: move-only, and destroys it at its
/// end.
template <class Object>
using Owned = std::unique_ptr<Object, Destroyer>;

/// Hands what was made to an owner: `auto kernel = own(create(device, info));` is a
/// Result<Owned<Kernel>>.
template <class Object>
Result<Owned<Object>> own(Result<Object*>&& made) noexcept {
    return {made.status, Owned<Object>(made.value)};
}

/// Compiles every pipeline that record() may choose, at most nine. The caller destroys it; own()
/// makes sure. Thread-safe, as far as the caller's pipeline cache and allocation callbacks are.
Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info);

/// No command buffer that uses the kernel may be pending, no other thread may use it. Null is
/// ignored.
void destroy(Kernel* kernel) noexcept;

/// The most calls that one arena serves.
inline constexpr std::uint32_t max_calls = 65536;

/// Descriptor sets for `calls` calls of record(), for devices without push descriptors: one per
/// thread and frame. A call of several dispatches counts as so many, see dispatches(). It serves
/// every kernel of the same DeviceRef::device, PositionKernels too; on a device that binds fewer
/// than 11 storage buffers to a stage (maxPerStageDescriptorStorageBuffers), those of an equal
/// KernelInfo: it may serve others, and record() refuses those that it does not. Thread-safe.
///
/// kernel  says which device; need not outlive the arena
/// calls   1 to max_calls
Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls);

/// Takes all sets back. No command buffer recorded with the arena may be pending, nor be submitted
/// afterwards. The arena is externally synchronised.
void reset(DescriptorArena* arena) noexcept;

/// As reset(), for good. Null is ignored. The device must still exist.
void destroy(DescriptorArena* arena) noexcept;

/// A head stride for inputs: every head reads one and the same row.
inline constexpr std::int64_t broadcast = INT64_MIN;

/// Where the rows of a tensor are. Strides are in elements; 0 means packed as [batch, tokens,
/// heads, head_dim].
struct Tensor {
    /// Buffer, offset and range in bytes of the tensor's own bytes; never VK_WHOLE_SIZE.
    VkDescriptorBufferInfo where = {};
    std::uint32_t heads = 0;  ///< 0: this tensor is absent from the call
    std::int64_t token_stride = 0, head_stride = 0, batch_stride = 0;
    /// A second head axis, as in QKV of [tokens, groups, q_per_group + 2, head_dim]: `heads` counts
    /// them all, in groups of so many, group_stride apart. 0: one group.
    std::uint32_t heads_per_group = 0;
    std::int64_t group_stride = 0;  ///< 0: packed, heads_per_group * head_stride
    /// Bytes of the whole buffer; 0: unknown. Needed only where 16-bit rows end in the middle of a
    /// word that `range` does not cover: the shader accesses whole words, and must know that the
    /// buffer has this one.
    VkDeviceSize buffer_size = 0;
};

/// Destination rows of k_out, and of v_out, one a token, in a cache of pages each, as many as
/// where.range holds (of the smaller cache, where a call has both):
///
///     [slots, heads, head_dim]                  page_size 1
///     [pages, page_size, heads, head_dim]       packed, the default
///     [pages, heads, page_size, head_dim]       row_stride head_dim,
///                                               head_stride page_size * head_dim,
///                                               page_stride heads * page_size * head_dim
///
/// Rows that no token names keep their bits. Where two tokens name one row, its content is
/// undefined.
struct PagedCache {
    /// int32 or int64 [batch, tokens]: page * page_size + row; -1 skips the token, any other value
    /// outside the cache does too, and counts in Call::out_of_range. Offset and range are multiples
    /// of 4.
    VkDescriptorBufferInfo slot_mapping = {};
    bool int64 = false;  ///< slots of 64 bits
    /// Rows of a page; 1 to 2^31. With 1, another page_stride than the packed one is an error, for
    /// page_size may have been forgotten; single rows that lie apart have a row_stride and a
    /// page_stride of one length.
    std::uint32_t page_size = 1;
    /// Elements, of both caches: where their rows differ in length and neither is packed, V takes a
    /// call of its own. 0: packed. token_stride and batch_stride of k_out and v_out are 0 then.
    std::int64_t page_stride = 0, row_stride = 0;
    std::int64_t batch_stride = 0;  ///< slots from one sequence's to the next's; 0: packed
};

/// Positions of the tokens, by the kernel's PositionSource. One that the angle source does not
/// cover, or an int64 outside int32, leaves the rows of its token unrotated and counts in
/// Call::out_of_range; so does one axis of several.
struct Positions {
    std::int32_t first = 0;  ///< implicit: position of token 0; the last one must be an int32
    /// Ids: int32 or int64 [axes, batch, tokens]; offset and range are multiples of 4.
    VkDescriptorBufferInfo ids = {};
    bool int64 = false;  ///< ids of 64 bits
    /// Ids from one sequence to the next; 0: all share one row. Implicit: positions from one
    /// sequence's token 0 to the next's.
    std::int64_t batch_stride = 0;
    std::int64_t axis_stride = 0;   ///< ids from axis to axis; 0: all share one row
    std::int64_t token_stride = 1;  ///< ids from token to token; at least 1
};

/// Where cos and sin are.
struct Angles {
    const AnglePlan* plan = nullptr;    ///< read during the call only; filled by fill_angles unless
                                        ///< it is the caller's own
    VkImageView view = VK_NULL_HANDLE;  ///< textures: in VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
                                        ///< when the commands execute
    /// direct_buffer: (cos, sin) pairs; cos_sin_cache: cos. Offset is a multiple of 4. computed: a
    /// uniform buffer, whose offset is a multiple of minUniformBufferOffsetAlignment.
    VkDescriptorBufferInfo buffer = {};
    VkDescriptorBufferInfo sin = {};  ///< cos_sin_cache
};

/// One rotation of Q, K or both, which may take V along. Input and output of a tensor are the same
/// bytes (in place) or disjoint.
struct Call {
    std::uint32_t batch = 1, tokens = 0;  ///< 0 tokens is legal and records nothing
    Tensor q_in = {}, q_out = {}, k_in = {}, k_out = {};
    /// Moved to where it is stored, and to another element type if the kernel says so; in place
    /// nothing is left to do. With K's heads, head_dim and strides, in elements, it takes K's
    /// dispatch; otherwise it has one of its own.
    Tensor v_in = {}, v_out = {};
    Positions positions = {};
    Angles angles = {};
    Direction direction = Direction::forward;
    Gain gain = Gain::apply;
    PagedCache paged_cache = {};
    /// Optional uint32: plus one for each token whose position the table does not cover, which
    /// leaves its rows unrotated, or whose slot the cache does not have, which leaves its K and its
    /// V nowhere. Never cleared here.
    VkDescriptorBufferInfo out_of_range = {};
};

/// Dispatches that record() makes of a call, and sets of an arena that it takes: one, or as many as
/// there are parts; 0 where there is nothing to do, for want of tokens or with a V alone that stays
/// in place. Tokens beyond the workgroups of a dispatch go into further ones. Q, K and V go apart
/// where the device binds too few storage buffers for all, and where a tensor exceeds what it binds
/// at once; V also where it lies otherwise than K. A cache may span several such ranges; heads in
/// groups may meet a batch or slots. Fails as record() would, for all but the arena. Thread-safe.
Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept;

/// How what record() records is ordered against other commands.
struct Boundary {
    VkPipelineStageFlags stage = 0;     ///< first and last stage
    VkAccessFlags input_access = 0;     ///< of q_in, k_in, v_in, ids and an angle table in a buffer
    VkAccessFlags texture_access = 0;   ///< of an angle table in a texture
    VkAccessFlags output_access = 0;    ///< of q_out, k_out, v_out and out_of_range
    VkAccessFlags in_place_access = 0;  ///< of a tensor that is both
};
/// The same for every kernel. Thread-safe.
Boundary boundary() noexcept;

/// Records one rotation into `commands`, which must be recording, outside a render pass, on a
/// compute queue family.
///
/// boundary() says which stage accesses what, and how; buffers need
/// VK_BUFFER_USAGE_STORAGE_BUFFER_BIT. Ordering against earlier and later commands is the caller's:
/// record() puts a barrier only between dispatches of its own whose bound ranges overlap and of
/// which one writes. A call owns the 4-byte words that its tensors touch; a word that it shares
/// with a neighbour is read and written atomically, and counts whole for the caller's barriers.
///
/// Per dispatch it makes 4 Vulkan calls with push descriptors (push, bind pipeline, push constants,
/// dispatch), 5 with an arena (update and bind a set instead of push), 2 more around all with
/// debug_utils, and allocates nothing.
///
/// Disturbs: the compute pipeline, descriptor set 0 and the push constants of the compute bind
/// point.
///
/// Any number of threads may record with one kernel at a time.
///
/// commands  externally synchronised
/// arena     null with push descriptors; otherwise one that serves this kernel, externally
/// synchronised, with as many sets left as
///           dispatches() says
///
/// On error nothing has been recorded.
Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call,
              DescriptorArena* arena = nullptr) noexcept;

// ---- The upload of an angle table ----

/// What to create the image of a texture's plan with, as vkCreateImage takes it: to be copied into
/// once, then sampled by compute shaders of one queue family. Thread-safe.
VkImageCreateInfo angle_image_info(const AnglePlan& plan) noexcept;

/// What to create the view for Angles::view with. Thread-safe.
VkImageViewCreateInfo angle_view_info(const AnglePlan& plan, VkImage image) noexcept;

/// From where, and to where, a table is copied.
struct AngleUpload {
    VkBuffer staging =
        VK_NULL_HANDLE;  ///< has VK_BUFFER_USAGE_TRANSFER_SRC_BIT, and what fill_angles wrote
    VkDeviceSize staging_offset = 0;  ///< bytes; a multiple of 16 for textures, of 4 for buffers
    VkImage image = VK_NULL_HANDLE;   ///< textures: of angle_image_info()
    VkBuffer buffer =
        VK_NULL_HANDLE;  ///< buffers: has AnglePlan::usage and VK_BUFFER_USAGE_TRANSFER_DST_BIT
    VkDeviceSize buffer_offset = 0;  ///< bytes; a multiple of 4
    /// Part of the table, see AngleLines: staging holds so many lines from this one on. The first
    /// part comes first and the last one last. 0 lines: all from first_line on.
    std::uint32_t first_line = 0, lines = 0;
};

/// Records the copy of a table that fill_angles wrote: the transitions of the image, the copy, and
/// the barrier after which what record() records later on the same queue may read it. Once a model,
/// not per call: it looks up what it calls. The image is in
/// VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL then. On error nothing has been recorded.
///
/// commands  recording, outside a render pass, on a compute queue family; externally synchronised
/// plan      not of a cos_sin_cache, whose content the caller has
Status record_angle_upload(VkCommandBuffer commands, const DeviceRef& device, const AnglePlan& plan,
                           const AngleUpload& upload) noexcept;

// ---- Positions that are not int32 ids yet ----

/// Compiles the pipeline of record_positions(). Thread-safe like create().
Result<PositionKernel*> create_positions(const DeviceRef& device);

/// Like destroy(Kernel*).
void destroy(PositionKernel* kernel) noexcept;

/// Like create_arena(const Kernel*, calls); record_positions() takes one set a call.
Result<DescriptorArena*> create_arena(const PositionKernel* kernel, std::uint32_t calls);

/// What becomes int32 ids, once per step for all layers. Three forms:
///
/// - One row a sequence, `cu_seqlens` absent: `out` is [batch, tokens], and token t of sequence b
/// is at offsets[b] + first + t, or
///   at ids[b, t], which are 64 bits.
/// - Ragged, `cu_seqlens` is [sequences + 1]: `out` is [tokens], and token t of packed sequence i,
/// with
///   cu_seqlens[i] <= t < cu_seqlens[i + 1], is at offsets[i] + first + t - cu_seqlens[i]. A token
///   of no sequence is at 0.
/// - A shard, cp_size > 1: every sequence is cut into 2 cp_size chunks of one length, of which this
/// rank holds chunk cp_rank and
///   chunk 2 cp_size - 1 - cp_rank, one after the other (zig-zag). `tokens` counts those of this
///   rank; cu_seqlens those of the whole, padded to multiples of 2 cp_size. As fused_rope of
///   TransformerEngine does.
///
/// A position outside int32 becomes -2^31, which no table covers but computed angles do, and counts
/// in out_of_range.
struct PositionCall {
    std::uint32_t batch = 1, tokens = 0;  ///< of `out`; 0 tokens records nothing
    std::int32_t first = 0;
    /// Optional: int64 [batch, tokens], instead of offsets and first.
    VkDescriptorBufferInfo ids = {};
    VkDescriptorBufferInfo offsets = {};  ///< optional: int32 or int64, one a sequence
    /// Optional: int32 or int64, ascending from 0. Whatever the values, nothing outside the buffers
    /// is touched.
    VkDescriptorBufferInfo cu_seqlens = {};
    std::uint32_t sequences = 0;  ///< of cu_seqlens
    bool offsets_int64 = false, cu_seqlens_int64 = false;
    std::uint32_t cp_size = 1,
                  cp_rank =
                      0;  ///< shards, and which one; tokens (or each sequence) is a multiple of 2
    VkDescriptorBufferInfo out = {};           ///< int32 [batch, tokens]
    VkDescriptorBufferInfo out_of_range = {};  ///< optional uint32, as Call::out_of_range
};

/// Records one dispatch that writes `out`. boundary() holds: `out` and `out_of_range` are written,
/// the rest is read. Disturbs what record() does, allocates nothing. On error nothing has been
/// recorded.
///
/// commands, arena  as for record(): one set a call
Status record_positions(VkCommandBuffer commands, const PositionKernel* kernel,
                        const PositionCall& call, DescriptorArena* arena = nullptr) noexcept;

}  // namespace vkrope
