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

using DeviceFeature = vkrope_device_features;

using Requirements = vkrope_requirements;

/// Queries what the kernel needs from a physical device. VKROPE_ERROR_NOT_SUPPORTED names what it
/// lacks. Thread-safe.
Result<Requirements> requirements(VkInstance instance, VkPhysicalDevice physical,
                                  PFN_vkGetInstanceProcAddr get_instance_proc_addr);

using DeviceRef = vkrope_device_ref;

using Kernel = vkrope_kernel;
using DescriptorArena = vkrope_arena;
using PositionKernel = vkrope_position_kernel;

void destroy(Kernel* kernel) noexcept;
void destroy(DescriptorArena* arena) noexcept;
void destroy(PositionKernel* kernel) noexcept;

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
inline constexpr std::int64_t broadcast = VKROPE_BROADCAST;

using Tensor = vkrope_tensor;

using PagedCache = vkrope_paged_cache;

using Positions = vkrope_positions;

using Angles = vkrope_angles;

using Call = vkrope_call;

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

using Boundary = vkrope_boundary;
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

using AngleUpload = vkrope_angle_upload;

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

using PositionCall = vkrope_position_call;

/// Records one dispatch that writes `out`. boundary() applies: `out` and `out_of_range` are
/// written, the rest is read. Disturbs what record() disturbs and allocates nothing. On error
/// nothing has been recorded.
///
/// commands, arena  as for record(); takes one set per call
Status record_positions(VkCommandBuffer commands, const PositionKernel* kernel,
                        const PositionCall& call, DescriptorArena* arena = nullptr) noexcept;

}  // namespace vkrope
