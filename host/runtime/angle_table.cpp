// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/device_impl.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

constexpr std::uint32_t texel_bytes = 16;  // RGBA32F

Status create_view(Device::Impl& device, const AnglePlan& plan, VkImage image, VkImageView& view) {
    VkImageViewCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    info.image = image;
    info.viewType = VK_IMAGE_VIEW_TYPE_2D;
    info.format = plan.format;
    info.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    const VkResult result = device.vk.vkCreateImageView(device.ref.device, &info, nullptr, &view);
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkCreateImageView");
}

Status create_image(Device::Impl& device, const AnglePlan& plan, VkImage& image, void*& allocation) {
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
    return make_image(device, info, image, allocation);
}

struct Transition {
    VkImageLayout from, to;
    VkPipelineStageFlags from_stage, to_stage;
    VkAccessFlags from_access, to_access;
};

void transition(const Device::Impl& device, VkCommandBuffer commands, VkImage image, const Transition& change) {
    VkImageMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER;
    barrier.srcAccessMask = change.from_access;
    barrier.dstAccessMask = change.to_access;
    barrier.oldLayout = change.from;
    barrier.newLayout = change.to;
    barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED;
    barrier.image = image;
    barrier.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    device.vk.vkCmdPipelineBarrier(commands, change.from_stage, change.to_stage, 0, 0, nullptr, 0, nullptr, 1, &barrier);
}

// Copies the table into the image, as many lines at a time as staging memory holds; the image ends up readable by shaders.
Status upload_image(Device::Impl& device, const AnglePlan& plan, VkImage image, const std::byte* texels) {
    const std::size_t line_bytes = std::size_t{plan.extent.width} * texel_bytes;
    if (Status s = prepare_staging(device, plan.bytes); !s) return s;
    const std::uint32_t lines_at_once = std::uint32_t(std::min<std::size_t>(device.staging.bytes / line_bytes, plan.extent.height));
    for (std::uint32_t line = 0; line < plan.extent.height; line += lines_at_once) {
        const std::uint32_t lines = std::min(lines_at_once, plan.extent.height - line);
        std::memcpy(device.staging.mapped, texels + line * line_bytes, lines * line_bytes);
        if (Status s = flush_staging(device, lines * line_bytes); !s) return s;
        VkBufferImageCopy region = {};
        region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
        region.imageOffset.y = std::int32_t(line);
        region.imageExtent = {plan.extent.width, lines, 1};
        const auto copied = device.submit([&](VkCommandBuffer commands) {
            if (line == 0) {
                transition(device, commands, image,
                           {VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_PIPELINE_STAGE_TRANSFER_BIT,
                            VK_PIPELINE_STAGE_TRANSFER_BIT, 0, VK_ACCESS_TRANSFER_WRITE_BIT});
            }
            device.vk.vkCmdCopyBufferToImage(commands, device.staging.buffer, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1,
                                             &region);
            if (line + lines == plan.extent.height) {
                transition(
                    device, commands, image,
                    {VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, VK_PIPELINE_STAGE_TRANSFER_BIT,
                     VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT});
            }
            return Status{};
        });
        if (!copied) return copied.status;
    }
    return {};
}

}  // namespace

AngleTable::~AngleTable() {
    if (!device_ || device_->pending) return;
    device_->vk.vkDestroyImageView(device_->ref.device, view_, nullptr);
    free_image(*device_, image_, allocation_);
}

AngleTable::AngleTable(AngleTable&& other) noexcept {
    *this = std::move(other);
}

AngleTable& AngleTable::operator=(AngleTable&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(plan_, other.plan_);
    std::swap(image_, other.image_);
    std::swap(allocation_, other.allocation_);
    std::swap(view_, other.view_);
    std::swap(buffer_, other.buffer_);
    return *this;
}

Result<AngleTable> AngleTable::make(Device& device, const Rotation& rotation, AngleSource source, std::uint64_t max_position) {
    Result<AngleTable> made;
    const auto plan = plan_angles(rotation, source, max_position, device.info().limits.maxImageDimension2D);
    if (!plan) return {plan.status, {}};
    made->plan_ = plan.value;
    made->device_ = &device.impl();
    const std::unique_ptr<std::byte[]> content(new (std::nothrow) std::byte[plan->bytes]);
    if (!content) return {error(Code::out_of_host_memory, "no memory for an angle table of %zu bytes", plan->bytes), {}};
    if (made.status = fill_angles(rotation, plan.value, content.get(), plan->bytes); !made) return made;
    if (source == AngleSource::direct_buffer) {
        auto buffer = Buffer::make(device, plan->bytes);
        made.status = buffer ? buffer->upload(content.get(), plan->bytes) : buffer.status;
        made->buffer_ = std::move(buffer.value);
        return made;
    }
    if (made.status = create_image(device.impl(), plan.value, made->image_, made->allocation_); !made) return made;
    if (made.status = upload_image(device.impl(), plan.value, made->image_, content.get()); !made) return made;
    made.status = create_view(device.impl(), plan.value, made->image_, made->view_);
    return made;
}

}  // namespace vkrope
