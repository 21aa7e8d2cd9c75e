// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "runtime/device_impl.hpp"
#include "runtime/no_throw.hpp"
#include "status.hpp"

namespace vkrope {

Buffer::~Buffer() {
    if (device_) free_buffer(*device_, handle_, allocation_);
}

Buffer::Buffer(Buffer&& other) noexcept {
    *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    std::swap(allocation_, other.allocation_);
    std::swap(bytes_, other.bytes_);
    return *this;
}

Result<Buffer> Buffer::make(Device& device, VkDeviceSize bytes) {
    return make(device.impl(), bytes);
}

Result<Buffer> Buffer::make(Device::Impl& device, VkDeviceSize bytes) {
    Result<Buffer> made;
    if (bytes == 0)
        return {error(VKROPE_ERROR_INVALID_ARGUMENT, "bytes is 0: it must be at least 1"), {}};
    constexpr VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    bytes = (bytes + 3) / 4 * 4;
    made.status = make_buffer(device, bytes, usage, made->handle_, made->allocation_);
    if (made) {
        made->device_ = &device;
        made->bytes_ = bytes;
    }
    return made;
}

namespace {

Status check_inside(std::size_t bytes, VkDeviceSize offset, VkDeviceSize size) {
    if (offset <= size && bytes <= size - offset) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "offset is %" PRIu64
                 ": %zu bytes from there reach past the end of the buffer, which has %" PRIu64,
                 offset, bytes, size);
}

}  // namespace

Status Buffer::upload(const void* source, std::size_t bytes, VkDeviceSize offset) {
    return no_throw([&]() -> Status {
        if (Status s = check_inside(bytes, offset, bytes_); !s) return s;
        if (bytes == 0) return {};
        if (Status s = prepare_staging(*device_, bytes); !s) return s;
        const Staging& staging = device_->staging;
        for (std::size_t done = 0; done < bytes;) {
            const std::size_t part = std::min<std::size_t>(bytes - done, staging.bytes);
            std::memcpy(staging.mapped, static_cast<const std::byte*>(source) + done, part);
            if (Status s = flush_staging(*device_, part); !s) return s;
            const VkBufferCopy region = {0, offset + done, part};
            const auto copied = device_->submit([&](VkCommandBuffer commands) {
                device_->vk.vkCmdCopyBuffer(commands, staging.buffer, handle_, 1, &region);
                return Status{};
            });
            if (!copied) return copied.status;
            done += part;
        }
        return {};
    });
}

Status Buffer::download(void* target, std::size_t bytes, VkDeviceSize offset) {
    return no_throw([&]() -> Status {
        if (Status s = check_inside(bytes, offset, bytes_); !s) return s;
        if (bytes == 0) return {};
        if (Status s = prepare_staging(*device_, bytes); !s) return s;
        const Staging& staging = device_->staging;
        for (std::size_t done = 0; done < bytes;) {
            const std::size_t part = std::min<std::size_t>(bytes - done, staging.bytes);
            const VkBufferCopy region = {offset + done, 0, part};
            const auto copied = device_->submit([&](VkCommandBuffer commands) {
                device_->vk.vkCmdCopyBuffer(commands, handle_, staging.buffer, 1, &region);
                VkMemoryBarrier to_host = {};
                to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
                to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
                to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
                device_->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                                 VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0,
                                                 nullptr, 0, nullptr);
                return Status{};
            });
            if (!copied) return copied.status;
            if (Status s = invalidate_staging(*device_, part); !s) return s;
            std::memcpy(static_cast<std::byte*>(target) + done, staging.mapped, part);
            done += part;
        }
        return {};
    });
}

}  // namespace vkrope
