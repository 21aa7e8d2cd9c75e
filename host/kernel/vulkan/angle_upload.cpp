// SPDX-License-Identifier: MIT
// Copies an angle table from staging memory to its image or buffer.
#include <cinttypes>

#include "base/angle_layout.hpp"
#include "base/status.hpp"
#include "kernel/vulkan/functions.hpp"

namespace vkrope {

namespace {

constexpr VkImageSubresourceRange all_of_it = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

// Checks the layout of a texture.
Status check_texture(const AngleTableLayout* plan) noexcept {
    if (Status s = check_layout(plan); !s) return s;
    if (is_texture(plan->source)) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT, "layout.source is %u: it must be a texture",
                 unsigned(plan->source));
}

// Checks that `where` holds the bytes that are copied from or to it.
Status check_range(const char* name, const VkDescriptorBufferInfo& where, VkDeviceSize multiple,
                   std::uint64_t bytes) noexcept {
    if (!where.buffer) return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.buffer is null", name);
    if (where.offset % multiple != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.offset is %" PRIu64 ": it must be a multiple of %" PRIu64, name,
                     where.offset, multiple);
    if (where.range >= bytes && where.range != VK_WHOLE_SIZE) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.range is %" PRIu64 " bytes: it must be at least %" PRIu64
                 ", and not VK_WHOLE_SIZE",
                 name, where.range, bytes);
}

std::uint64_t lines_of(const AngleTableLayout& plan, const AngleUpload& upload) noexcept {
    return upload.lines != 0 ? upload.lines : angle_lines(plan).count - upload.first_line;
}

Status check(const AngleTableLayout& plan, const AngleUpload& upload) noexcept {
    const bool texture = is_texture(plan.source);
    if (plan.source == VKROPE_ANGLES_COS_SIN_CACHE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "layout.source is %u: this source has no upload", unsigned(plan.source));
    const AngleLines all = angle_lines(plan);
    if (upload.first_line >= all.count || upload.lines > all.count - upload.first_line)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "upload.lines is %u and upload.first_line is %u: the table has only %u lines",
                     upload.lines, upload.first_line, all.count);
    if (Status s = check_range("upload.staging", upload.staging, texture ? 16 : 4,
                               lines_of(plan, upload) * all.bytes);
        !s)
        return s;
    if (texture && !upload.image)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "upload.image is null: the layout needs an image");
    if (texture && (upload.buffer.buffer || upload.buffer.offset != 0 || upload.buffer.range != 0))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "upload.buffer is given: the layout is copied to an image");
    if (texture) return {};
    if (upload.image)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "upload.image is given: the layout is copied to a buffer");
    return check_range("upload.buffer", upload.buffer, 4, plan.bytes);
}

struct CopyFunctions {
    PFN_vkCmdPipelineBarrier vkCmdPipelineBarrier = nullptr;
    PFN_vkCmdCopyBufferToImage vkCmdCopyBufferToImage = nullptr;
    PFN_vkCmdCopyBuffer vkCmdCopyBuffer = nullptr;
};

Result<CopyFunctions> load(const DeviceRef& device) noexcept {
    const Result<InstanceFunctions> instance = InstanceFunctions::load(
        device.instance, device.get_instance_proc_addr);
    if (!instance) return {instance.status, {}};
    Result<CopyFunctions> loaded;
#define VKROPE_LOAD(name)                                     \
    loaded->name = reinterpret_cast<PFN_##name>(              \
        instance->vkGetDeviceProcAddr(device.device, #name)); \
    if (!loaded->name)                                        \
        loaded.status = error(VKROPE_ERROR_INVALID_ARGUMENT,  \
                              "device.get_instance_proc_addr: it returned null for %s", #name);
    VKROPE_LOAD(vkCmdPipelineBarrier)
    VKROPE_LOAD(vkCmdCopyBufferToImage)
    VKROPE_LOAD(vkCmdCopyBuffer)
#undef VKROPE_LOAD
    return loaded;
}

VkImageMemoryBarrier transition(VkImage image, VkImageLayout from, VkAccessFlags from_access,
                                VkImageLayout to, VkAccessFlags to_access) noexcept {
    VkImageMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
    barrier.srcAccessMask = from_access;
    barrier.dstAccessMask = to_access;
    barrier.oldLayout = from;
    barrier.newLayout = to;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image;
    barrier.subresourceRange = all_of_it;
    return barrier;
}

void copy_texture(VkCommandBuffer commands, const CopyFunctions& vk, const AngleTableLayout& plan,
                  const AngleUpload& upload, std::uint32_t lines) noexcept {
    constexpr VkImageLayout copying = VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL;
    if (upload.first_line == 0) {
        const auto barrier = transition(upload.image, VK_IMAGE_LAYOUT_UNDEFINED, 0, copying,
                                        VK_ACCESS_TRANSFER_WRITE_BIT);
        vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, nullptr, 0, nullptr, 1,
                                &barrier);
    }
    VkBufferImageCopy region = {};
    region.bufferOffset = upload.staging.offset;
    region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
    region.imageOffset.y = std::int32_t(upload.first_line);
    region.imageExtent = {plan.extent.width, lines, 1};
    vk.vkCmdCopyBufferToImage(commands, upload.staging.buffer, upload.image, copying, 1, &region);
    if (upload.first_line + lines == plan.extent.height) {
        constexpr Boundary at = call_boundary;
        const auto barrier = transition(upload.image, copying, VK_ACCESS_TRANSFER_WRITE_BIT,
                                        VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL,
                                        at.texture_access);
        vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, at.stage, 0, 0, nullptr,
                                0, nullptr, 1, &barrier);
    }
}

void copy_buffer(VkCommandBuffer commands, const CopyFunctions& vk, const AngleTableLayout& plan,
                 const AngleUpload& upload, std::uint32_t lines) noexcept {
    const VkDeviceSize line = angle_lines(plan).bytes;
    const VkBufferCopy region = {upload.staging.offset,
                                 upload.buffer.offset + upload.first_line * line, lines * line};
    vk.vkCmdCopyBuffer(commands, upload.staging.buffer, upload.buffer.buffer, 1, &region);
    constexpr Boundary at = call_boundary;
    VkBufferMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = at.input_access;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.buffer = upload.buffer.buffer;
    barrier.offset = region.dstOffset;
    barrier.size = region.size;
    vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, at.stage, 0, 0, nullptr, 1,
                            &barrier, 0, nullptr);
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_get_angle_image_info(const vkrope_angle_table_layout* given,
                                          VkImageCreateInfo* made, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = check_texture(given); !s) return s;
            const AngleTableLayout& plan = *given;
            VkImageCreateInfo info = {};
            info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
            info.imageType = VK_IMAGE_TYPE_2D;
            info.format = plan.format;
            info.extent = {plan.extent.width, plan.extent.height, 1};
            info.mipLevels = 1;
            info.arrayLayers = 1;
            info.samples = VK_SAMPLE_COUNT_1_BIT;
            info.tiling = VK_IMAGE_TILING_OPTIMAL;
            info.usage = plan.usage | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
            info.initialLayout = VK_IMAGE_LAYOUT_UNDEFINED;
            return hand_out(Result<VkImageCreateInfo>{{}, info}, made, "info");
        });
}

vkrope_result vkrope_get_angle_view_info(const vkrope_angle_table_layout* given, VkImage image,
                                         VkImageViewCreateInfo* made, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = check_texture(given); !s) return s;
            const AngleTableLayout& plan = *given;
            VkImageViewCreateInfo info = {};
            info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
            info.image = image;
            info.viewType = VK_IMAGE_VIEW_TYPE_2D;
            info.format = plan.format;
            info.subresourceRange = all_of_it;
            return hand_out(Result<VkImageViewCreateInfo>{{}, info}, made, "info");
        });
}

vkrope_result vkrope_record_angle_upload(VkCommandBuffer commands,
                                         const vkrope_device_ref* borrowed,
                                         const vkrope_angle_table_layout* planned,
                                         const vkrope_angle_upload* given, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(borrowed, "device"); !s) return s;
            if (Status s = check_layout(planned); !s) return s;
            if (Status s = not_null(given, "upload"); !s) return s;
            const DeviceRef& device = *borrowed;
            const AngleTableLayout& plan = *planned;
            const AngleUpload& upload = *given;
            if (!commands) return error(VKROPE_ERROR_INVALID_ARGUMENT, "commands is null");
            if (!device.device)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "device.device is null");
            if (!device.get_instance_proc_addr)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "device.get_instance_proc_addr is null");
            if (Status s = check(plan, upload); !s) return s;
            const Result<CopyFunctions> vk = load(device);
            if (!vk) return vk.status;
            const auto lines = std::uint32_t(lines_of(plan, upload));
            if (is_texture(plan.source))
                copy_texture(commands, vk.value, plan, upload, lines);
            else
                copy_buffer(commands, vk.value, plan, upload, lines);
            return {};
        });
}
