// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cinttypes>
#include <utility>

#include "runtime/device_impl.hpp"
#include "runtime/no_throw.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

Status create_view(Device::Impl& device, const AnglePlan& plan, VkImage image, VkImageView& view) {
    VkImageViewCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO;
    info.image = image;
    info.viewType = VK_IMAGE_VIEW_TYPE_2D;
    info.format = plan.format;
    info.subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    const VkResult result = device.vk.vkCreateImageView(device.ref.device, &info, nullptr, &view);
    return created(result, view, "vkCreateImageView");
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

// Where a part of the table goes.
using CopyLines = std::function<void(VkCommandBuffer, std::uint32_t first_line, std::uint32_t lines)>;

// Fills staging memory with as many lines as it holds and copies them, until the table is complete.
Status upload_lines(Device::Impl& device, const Rotation& rotation, const AnglePlan& plan, const CopyLines& copy) {
    const AngleLines all = angle_lines(plan);
    if (Status s = prepare_staging(device, plan.bytes); !s) return s;
    const auto at_once = std::uint32_t(std::min<std::size_t>(device.staging.bytes / all.bytes, all.count));
    for (std::uint32_t first = 0; first < all.count; first += at_once) {
        const std::uint32_t lines = std::min(at_once, all.count - first);
        if (Status s = fill_angles(rotation, plan, first, lines, device.staging.mapped, device.staging.bytes); !s) return s;
        if (Status s = flush_staging(device, lines * all.bytes); !s) return s;
        const auto copied = device.submit([&](VkCommandBuffer commands) {
            copy(commands, first, lines);
            return Status{};
        });
        if (!copied) return copied.status;
    }
    return {};
}

Status upload_buffer(Device::Impl& device, const Rotation& rotation, const AnglePlan& plan, VkBuffer buffer) {
    const std::size_t line_bytes = angle_lines(plan).bytes;
    return upload_lines(device, rotation, plan, [&](VkCommandBuffer commands, std::uint32_t first, std::uint32_t lines) {
        const VkBufferCopy region = {0, first * line_bytes, lines * line_bytes};
        device.vk.vkCmdCopyBuffer(commands, device.staging.buffer, buffer, 1, &region);
    });
}

// The image ends up readable by shaders.
Status upload_image(Device::Impl& device, const Rotation& rotation, const AnglePlan& plan, VkImage image) {
    return upload_lines(device, rotation, plan, [&](VkCommandBuffer commands, std::uint32_t first, std::uint32_t lines) {
        if (first == 0) {
            transition(device, commands, image,
                       {VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_PIPELINE_STAGE_TRANSFER_BIT,
                        VK_PIPELINE_STAGE_TRANSFER_BIT, 0, VK_ACCESS_TRANSFER_WRITE_BIT});
        }
        VkBufferImageCopy region = {};
        region.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1};
        region.imageOffset.y = std::int32_t(first);
        region.imageExtent = {plan.extent.width, lines, 1};
        device.vk.vkCmdCopyBufferToImage(commands, device.staging.buffer, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
        if (first + lines == plan.extent.height) {
            transition(
                device, commands, image,
                {VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, VK_PIPELINE_STAGE_TRANSFER_BIT,
                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, VK_ACCESS_SHADER_READ_BIT});
        }
    });
}

// Said before anything is allocated: a table grows with the largest position, and a device's memory has an end.
Status check_memory(const Device::Impl& device, const AnglePlan& plan) {
    const std::uint64_t memory = device.candidate.info.memory_bytes;
    const std::uint64_t largest = device.candidate.largest_allocation ? device.candidate.largest_allocation : memory;
    if (plan.bytes <= memory && plan.bytes <= largest) return {};
    return error(Code::limit_exceeded,
                 "max_position is %u: its angle table has %zu bytes, the device allocates %" PRIu64 " at most", plan.rows,
                 plan.bytes, std::min(memory, largest));
}

}  // namespace

AngleTable::~AngleTable() {
    if (!device_) return;
    if (device_->pending) {
        device_->abandon({.image = image_, .view = view_, .allocation = allocation_});
    } else {
        if (view_) device_->vk.vkDestroyImageView(device_->ref.device, view_, nullptr);
        free_image(*device_, image_, allocation_);
    }
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

Status AngleTable::reach(Device& device, const Rotation& rotation, std::uint64_t max_position) {
    if (max_position <= plan_.rows) return {};
    auto grown = make(device, rotation, plan_.source, std::max(max_position, 2 * std::uint64_t{plan_.rows}));
    if (!grown) grown = make(device, rotation, plan_.source, max_position);
    if (grown) *this = std::move(grown.value);
    return grown.status;
}

Result<AngleTable> AngleTable::make(Device& device, const Rotation& rotation, AngleSource source, std::uint64_t max_position) {
    return no_throw([&]() -> Result<AngleTable> {
        Result<AngleTable> made;
        const auto plan = plan_angles(rotation, source, max_position, device.info().limits.maxImageDimension2D);
        if (!plan) return {plan.status, {}};
        made->plan_ = plan.value;
        made->device_ = &device.impl();
        if (made.status = check_memory(device.impl(), plan.value); !made) return made;
        if (plan->source == AngleSource::direct_buffer || plan->source == AngleSource::computed) {
            auto buffer = Buffer::make(device, plan->bytes);
            made.status = buffer ? upload_buffer(device.impl(), rotation, plan.value, buffer->handle()) : buffer.status;
            made->buffer_ = std::move(buffer.value);
            return made;
        }
        if (made.status = create_image(device.impl(), plan.value, made->image_, made->allocation_); !made) return made;
        if (made.status = upload_image(device.impl(), rotation, plan.value, made->image_); !made) return made;
        made.status = create_view(device.impl(), plan.value, made->image_, made->view_);
        return made;
    });
}

}  // namespace vkrope
