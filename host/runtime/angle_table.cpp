// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cinttypes>
#include <utility>

#include "runtime/device_impl.hpp"
#include "runtime/no_throw.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

Status create_view(Device::Impl& device, const AngleTableLayout& plan, VkImage image,
                   VkImageView& view) {
    const VkImageViewCreateInfo info = angle_view_info(plan, image);
    const VkResult result = device.vk.vkCreateImageView(device.ref.device, &info, nullptr, &view);
    return created(result, view, "vkCreateImageView");
}

// Fills staging memory with as many lines as fit and copies them to the image or buffer, until the
// table is complete.
Status upload(Device::Impl& device, const RopeParams& rotation, const AngleTableLayout& plan,
              VkImage image, VkBuffer buffer) {
    const AngleLines all = angle_lines(plan);
    if (Status s = prepare_staging(device, plan.bytes); !s) return s;
    const auto at_once = std::uint32_t(
        std::min<std::size_t>(device.staging.bytes / all.bytes, all.count));
    AngleUpload part{.staging = device.staging.buffer, .image = image, .buffer = buffer};
    for (; part.first_line < all.count; part.first_line += at_once) {
        part.lines = std::min(at_once, all.count - part.first_line);
        if (Status s = fill_angles(rotation, plan, part.first_line, part.lines,
                                   device.staging.mapped, device.staging.bytes);
            !s)
            return s;
        if (Status s = flush_staging(device, part.lines * all.bytes); !s) return s;
        const auto copied = device.submit([&](VkCommandBuffer commands) {
            return record_angle_upload(commands, device.ref, plan, part);
        });
        if (!copied) return copied.status;
    }
    return {};
}

// Checked before anything is allocated: the table grows with the largest position and may exceed
// the device's memory.
Status check_memory(const Device::Impl& device, const AngleTableLayout& plan) {
    const std::uint64_t memory = device.candidate.info.memory_bytes;
    const std::uint64_t largest = device.candidate.largest_allocation
                                      ? device.candidate.largest_allocation
                                      : memory;
    if (plan.bytes <= memory && plan.bytes <= largest) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "max_position is %u: its angle table has %zu bytes, but the device allocates at "
                 "most %" PRIu64,
                 plan.rows, plan.bytes, std::min(memory, largest));
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

Status AngleTable::reach(Device& device, const RopeParams& rotation, std::uint64_t max_position) {
    return reach(device.impl(), rotation, max_position);
}

Status AngleTable::reach(Device::Impl& device, const RopeParams& rotation,
                         std::uint64_t max_position) {
    if (max_position <= plan_.rows) return {};
    const std::uint64_t most = plan_.source == VKROPE_ANGLES_FACTORED_TEXTURE
                                   ? max_factored_positions
                                   : max_positions;
    const std::uint64_t doubled = std::min(2 * std::uint64_t{plan_.rows}, most);
    auto grown = make(device, rotation, plan_.source, std::max(max_position, doubled));
    if (!grown) grown = make(device, rotation, plan_.source, max_position);
    if (grown) *this = std::move(grown.value);
    return grown.status;
}

Result<AngleTable> AngleTable::make(Device& device, const RopeParams& rotation, AngleSource source,
                                    std::uint64_t max_position) {
    return make(device.impl(), rotation, source, max_position);
}

Result<AngleTable> AngleTable::make(Device::Impl& device, const RopeParams& rotation,
                                    AngleSource source, std::uint64_t max_position) {
    return no_throw([&]() -> Result<AngleTable> {
        Result<AngleTable> made;
        const auto plan = plan_angles(rotation, source, max_position,
                                      device.candidate.info.limits.maxImageDimension2D);
        if (!plan) return {plan.status, {}};
        made->plan_ = plan.value;
        made->device_ = &device;
        if (made.status = check_memory(device, plan.value); !made) return made;
        if (plan->source == VKROPE_ANGLES_DIRECT_BUFFER || plan->source == VKROPE_ANGLES_COMPUTED) {
            auto buffer = Buffer::make(device, plan->bytes);
            made.status = buffer ? upload(device, rotation, plan.value, VK_NULL_HANDLE,
                                          buffer->handle())
                                 : buffer.status;
            made->buffer_ = std::move(buffer.value);
            return made;
        }
        if (made.status = make_image(device, angle_image_info(plan.value), made->image_,
                                     made->allocation_);
            !made)
            return made;
        if (made.status = upload(device, rotation, plan.value, made->image_, VK_NULL_HANDLE); !made)
            return made;
        made.status = create_view(device, plan.value, made->image_, made->view_);
        return made;
    });
}

}  // namespace vkrope
