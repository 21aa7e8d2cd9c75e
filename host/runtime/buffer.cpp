// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "base/no_throw.hpp"
#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

Result<Owned<vkrope_buffer>> make_buffer(DeviceState& device, VkDeviceSize bytes) {
    if (bytes == 0)
        return {error(VKROPE_ERROR_INVALID_ARGUMENT, "bytes is 0: it must be at least 1"), {}};
    constexpr VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    Owned<vkrope_buffer> made(new vkrope_buffer(device));
    made->bytes = (bytes + 3) / 4 * 4;
    const Status status = make_buffer(device, made->bytes, usage, made->handle, made->allocation);
    return {status, status ? std::move(made) : nullptr};
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

}  // namespace vkrope

using namespace vkrope;

vkrope_buffer::~vkrope_buffer() {
    free_buffer(*device, handle, allocation);
}

Status vkrope_buffer::upload(const void* source, std::size_t count, VkDeviceSize offset) {
    if (Status s = check_inside(count, offset, bytes); !s) return s;
    if (count == 0) return {};
    if (Status s = prepare_staging(*device, count); !s) return s;
    const Staging& staging = device->staging;
    for (std::size_t done = 0; done < count;) {
        const std::size_t part = std::min<std::size_t>(count - done, staging.bytes);
        std::memcpy(staging.mapped, static_cast<const std::byte*>(source) + done, part);
        if (Status s = flush_staging(*device, part); !s) return s;
        const VkBufferCopy region = {0, offset + done, part};
        const auto copied = device->submit([&](VkCommandBuffer commands) {
            device->vk.vkCmdCopyBuffer(commands, staging.buffer, handle, 1, &region);
            return Status{};
        });
        if (!copied) return copied.status;
        done += part;
    }
    return {};
}

Status vkrope_buffer::download(void* target, std::size_t count, VkDeviceSize offset) {
    if (Status s = check_inside(count, offset, bytes); !s) return s;
    if (count == 0) return {};
    if (Status s = prepare_staging(*device, count); !s) return s;
    const Staging& staging = device->staging;
    for (std::size_t done = 0; done < count;) {
        const std::size_t part = std::min<std::size_t>(count - done, staging.bytes);
        const VkBufferCopy region = {offset + done, 0, part};
        const auto copied = device->submit([&](VkCommandBuffer commands) {
            device->vk.vkCmdCopyBuffer(commands, handle, staging.buffer, 1, &region);
            VkMemoryBarrier to_host = {};
            to_host.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
            to_host.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
            to_host.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
            device->vk.vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                            VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, nullptr,
                                            0, nullptr);
            return Status{};
        });
        if (!copied) return copied.status;
        if (Status s = invalidate_staging(*device, part); !s) return s;
        std::memcpy(static_cast<std::byte*>(target) + done, staging.mapped, part);
        done += part;
    }
    return {};
}

vkrope_result vkrope_buffer_create(vkrope_device* device, uint64_t bytes, vkrope_buffer** buffer,
                                   vkrope_error* failure) {
    return make_all(
        buffer, "buffer", failure,
        [&]() -> Result<Owned<vkrope_buffer>> {
            if (Status s = not_null(device, "device"); !s) return {s, {}};
            return make_buffer(*device, bytes);
        });
}

VkDescriptorBufferInfo vkrope_buffer_whole(const vkrope_buffer* buffer) {
    return buffer ? buffer->whole() : VkDescriptorBufferInfo{};
}

vkrope_result vkrope_buffer_upload(vkrope_buffer* buffer, const void* source, size_t bytes,
                                   uint64_t offset, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(buffer, "buffer"); !s) return s;
            if (Status s = not_null(source, "source"); !s && bytes != 0) return s;
            return buffer->upload(source, bytes, offset);
        });
}

vkrope_result vkrope_buffer_download(vkrope_buffer* buffer, void* target, size_t bytes,
                                     uint64_t offset, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(buffer, "buffer"); !s) return s;
            if (Status s = not_null(target, "target"); !s && bytes != 0) return s;
            return buffer->download(target, bytes, offset);
        });
}

void vkrope_buffer_destroy(vkrope_buffer* buffer) {
    delete buffer;
}
