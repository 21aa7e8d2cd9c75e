// SPDX-License-Identifier: MIT
// Tier "kernel": rotates query and key tensors in the application's command buffer, on its device.
//
// Nothing here submits, waits, allocates device memory or compiles after create(). Objects are
// immutable once created and may be shared between threads; a command buffer and its
// DescriptorArena belong to one thread at a time. No global state. vkrope.h documents each function
// under the name in the comment above it.
#pragma once

#include <memory>

#include "vkrope/types.hpp"

namespace vkrope {

using DeviceFeature = vkrope_device_features;
using Requirements = vkrope_requirements;

/// vkrope_get_requirements.
Result<Requirements> requirements(VkInstance instance, VkPhysicalDevice physical,
                                  PFN_vkGetInstanceProcAddr get_instance_proc_addr);

using DeviceRef = vkrope_device_ref;
using Kernel = vkrope_kernel;
using DescriptorArena = vkrope_arena;
using PositionKernel = vkrope_position_kernel;

/// vkrope_kernel_destroy, vkrope_arena_destroy and vkrope_position_kernel_destroy.
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

/// vkrope_kernel_create; own() destroys the kernel.
Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info);

/// Largest `calls` of an arena.
inline constexpr std::uint32_t max_calls = 65536;

/// vkrope_arena_create.
Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls);

/// vkrope_arena_reset.
void reset(DescriptorArena* arena) noexcept;

/// A stride whose steps all read the same row: Tensor::head_stride of an input,
/// Positions::batch_stride and axis_stride. A stride of 0 is never that: it means packed.
inline constexpr std::int64_t broadcast = VKROPE_BROADCAST;

using Tensor = vkrope_tensor;
using PagedCache = vkrope_paged_cache;
using Positions = vkrope_positions;
using Angles = vkrope_angles;
using Call = vkrope_call;

/// vkrope_get_dispatches.
Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept;

using Boundary = vkrope_boundary;
/// vkrope_get_boundary.
Boundary boundary() noexcept;

/// vkrope_record.
Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call,
              DescriptorArena* arena = nullptr) noexcept;

// ---- Upload of an angle table ----

/// vkrope_get_angle_image_info.
VkImageCreateInfo angle_image_info(const AnglePlan& plan) noexcept;

/// vkrope_get_angle_view_info.
VkImageViewCreateInfo angle_view_info(const AnglePlan& plan, VkImage image) noexcept;

using AngleUpload = vkrope_angle_upload;

/// vkrope_record_angle_upload.
Status record_angle_upload(VkCommandBuffer commands, const DeviceRef& device, const AnglePlan& plan,
                           const AngleUpload& upload) noexcept;

// ---- Conversion of positions to int32 ids ----

/// vkrope_position_kernel_create.
Result<PositionKernel*> create_positions(const DeviceRef& device);

/// vkrope_position_arena_create.
Result<DescriptorArena*> create_arena(const PositionKernel* kernel, std::uint32_t calls);

using PositionCall = vkrope_position_call;

/// vkrope_record_positions.
Status record_positions(VkCommandBuffer commands, const PositionKernel* kernel,
                        const PositionCall& call, DescriptorArena* arena = nullptr) noexcept;

}  // namespace vkrope
