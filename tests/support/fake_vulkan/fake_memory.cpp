// SPDX-License-Identifier: MIT
// Implements memory, buffers and images as host memory that keeps what is copied into it. Memory
// that is not coherent is kept twice, as the host and as the device see it.
#include <algorithm>

#include "entry_points.hpp"

namespace vkrope::test {

namespace {

constexpr VkDeviceSize alignment = 64;
constexpr std::uint32_t host_visible = 1;  // a memory type

Object memory_of(const VkMemoryAllocateInfo& info) {
    Object made{.usage = info.memoryTypeIndex};
    made.content.resize(info.allocationSize);
    if (made.usage == host_visible && !fake().config.coherent)
        made.host_content.resize(info.allocationSize, std::byte{0xcd});
    return made;
}

VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice, VkDeviceMemory memory, VkDeviceSize offset,
                                          VkDeviceSize, VkMemoryMapFlags, void** data) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkMapMemory"); result != VK_SUCCESS)
        return result;
    Object* object = fake().find(VK_OBJECT_TYPE_DEVICE_MEMORY, memory, "vkMapMemory");
    if (!object) return VK_ERROR_MEMORY_MAP_FAILED;
    if (object->mapped) fake().fault("vkMapMemory: the memory is mapped already");
    if (object->usage != host_visible)
        fake().fault("vkMapMemory: the host does not see the memory");
    object->mapped = true;
    *data = (object->host_content.empty() ? object->content : object->host_content).data() + offset;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL unmap_memory(VkDevice, VkDeviceMemory memory) {
    const Entered entered("vkUnmapMemory");
    Object* object = fake().find(VK_OBJECT_TYPE_DEVICE_MEMORY, memory, "vkUnmapMemory");
    if (object && !object->mapped) fake().fault("vkUnmapMemory: the memory is not mapped");
    if (object) object->mapped = false;
}

// Copies these ranges from what one side sees of the memory to what the other side sees.
VkResult copy_ranges(const char* entry, std::uint32_t count, const VkMappedMemoryRange* ranges,
                     std::vector<std::byte> Object::*from, std::vector<std::byte> Object::*to) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible(entry); result != VK_SUCCESS) return result;
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto& [type, next, memory, offset, size] = ranges[i];
        Object* object = fake().find(VK_OBJECT_TYPE_DEVICE_MEMORY, memory, entry);
        if (!object) continue;
        if (!object->mapped) fake().fault(std::string(entry) + ": the memory is not mapped");
        const VkDeviceSize all = object->content.size(), start = std::min(offset, all),
                           bytes = std::min(size, all - start);
        if (start != offset || (bytes != size && size != VK_WHOLE_SIZE))
            fake().fault(std::string(entry) + ": the range ends behind the memory");
        if (object->host_content.empty()) continue;
        std::copy_n((object->*from).begin() + std::ptrdiff_t(start), bytes,
                    (object->*to).begin() + std::ptrdiff_t(start));
    }
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice, std::uint32_t count,
                                     const VkMappedMemoryRange* ranges) {
    return copy_ranges("vkFlushMappedMemoryRanges", count, ranges, &Object::host_content,
                       &Object::content);
}

VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice, std::uint32_t count,
                                          const VkMappedMemoryRange* ranges) {
    return copy_ranges("vkInvalidateMappedMemoryRanges", count, ranges, &Object::content,
                       &Object::host_content);
}

Object buffer_of(const VkBufferCreateInfo& info) {
    return {.bytes = info.size, .usage = info.usage};
}

Object image_of(const VkImageCreateInfo& info) {
    return {.bytes = VkDeviceSize{info.extent.width} * info.extent.height * 16,
            .usage = info.usage};
}

Object image_view_of(const VkImageViewCreateInfo& info) {
    const Object* image = fake().find(VK_OBJECT_TYPE_IMAGE, info.image, "vkCreateImageView");
    if (!image) return {};
    if (image->memory == 0) fake().fault("vkCreateImageView: the image has no memory");
    return {.memory = image->memory, .memory_offset = image->memory_offset};
}

// Buffers may be in either type of memory, images only in device-local memory.
VkMemoryRequirements requirements_of(const char* entry, VkObjectType type, std::uint64_t handle) {
    const Entered entered(entry);
    const Object* object = fake().find(type, handle, entry);
    const VkDeviceSize bytes = object ? (object->bytes + alignment - 1) / alignment * alignment : 0;
    return {bytes, alignment, type == VK_OBJECT_TYPE_BUFFER ? 3u : 1u};
}

VKAPI_ATTR void VKAPI_CALL buffer_requirements(VkDevice, VkBuffer buffer,
                                               VkMemoryRequirements* needs) {
    *needs = requirements_of("vkGetBufferMemoryRequirements", VK_OBJECT_TYPE_BUFFER,
                             number_of(buffer));
}

VKAPI_ATTR void VKAPI_CALL image_requirements(VkDevice, VkImage image,
                                              VkMemoryRequirements* needs) {
    *needs = requirements_of("vkGetImageMemoryRequirements", VK_OBJECT_TYPE_IMAGE,
                             number_of(image));
}

VKAPI_ATTR void VKAPI_CALL buffer_requirements2(VkDevice,
                                                const VkBufferMemoryRequirementsInfo2* info,
                                                VkMemoryRequirements2* needs) {
    needs->memoryRequirements = requirements_of("vkGetBufferMemoryRequirements2",
                                                VK_OBJECT_TYPE_BUFFER, number_of(info->buffer));
}

VKAPI_ATTR void VKAPI_CALL image_requirements2(VkDevice, const VkImageMemoryRequirementsInfo2* info,
                                               VkMemoryRequirements2* needs) {
    needs->memoryRequirements = requirements_of("vkGetImageMemoryRequirements2",
                                                VK_OBJECT_TYPE_IMAGE, number_of(info->image));
}

VkResult bind(const char* entry, VkObjectType type, std::uint64_t handle, VkDeviceMemory memory,
              VkDeviceSize offset) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible(entry); result != VK_SUCCESS) return result;
    Object* object = fake().find(type, handle, entry);
    const Object* backing = fake().find(VK_OBJECT_TYPE_DEVICE_MEMORY, memory, entry);
    if (!object || !backing) return VK_SUCCESS;
    if (object->memory != 0) fake().fault(std::string(entry) + ": it has memory already");
    if (offset % alignment != 0 || offset + object->bytes > backing->content.size())
        fake().fault(std::string(entry) + ": it does not fit into the memory");
    object->memory = number_of(memory);
    object->memory_offset = offset;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL bind_buffer(VkDevice, VkBuffer buffer, VkDeviceMemory memory,
                                           VkDeviceSize offset) {
    return bind("vkBindBufferMemory", VK_OBJECT_TYPE_BUFFER, number_of(buffer), memory, offset);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_image(VkDevice, VkImage image, VkDeviceMemory memory,
                                          VkDeviceSize offset) {
    return bind("vkBindImageMemory", VK_OBJECT_TYPE_IMAGE, number_of(image), memory, offset);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_buffer2(VkDevice, std::uint32_t count,
                                            const VkBindBufferMemoryInfo* infos) {
    if (count != 1) fake().fault("vkBindBufferMemory2: the fake binds one at a time");
    return bind("vkBindBufferMemory2", VK_OBJECT_TYPE_BUFFER, number_of(infos->buffer),
                infos->memory, infos->memoryOffset);
}

VKAPI_ATTR VkResult VKAPI_CALL bind_image2(VkDevice, std::uint32_t count,
                                           const VkBindImageMemoryInfo* infos) {
    if (count != 1) fake().fault("vkBindImageMemory2: the fake binds one at a time");
    return bind("vkBindImageMemory2", VK_OBJECT_TYPE_IMAGE, number_of(infos->image), infos->memory,
                infos->memoryOffset);
}

}  // namespace

EntryPoints memory_entry_points() {
    return {VKROPE_CHILD(vkAllocateMemory, vkFreeMemory, DEVICE_MEMORY, memory_of),
            VKROPE_CHILD(vkCreateBuffer, vkDestroyBuffer, BUFFER, buffer_of),
            VKROPE_CHILD(vkCreateImage, vkDestroyImage, IMAGE, image_of),
            VKROPE_CHILD(vkCreateImageView, vkDestroyImageView, IMAGE_VIEW, image_view_of),
            {"vkBindBufferMemory", entry_point(bind_buffer)},
            {"vkBindBufferMemory2", entry_point(bind_buffer2)},
            {"vkBindImageMemory", entry_point(bind_image)},
            {"vkBindImageMemory2", entry_point(bind_image2)},
            {"vkFlushMappedMemoryRanges", entry_point(flush)},
            {"vkGetBufferMemoryRequirements", entry_point(buffer_requirements)},
            {"vkGetBufferMemoryRequirements2", entry_point(buffer_requirements2)},
            {"vkGetImageMemoryRequirements", entry_point(image_requirements)},
            {"vkGetImageMemoryRequirements2", entry_point(image_requirements2)},
            {"vkInvalidateMappedMemoryRanges", entry_point(invalidate)},
            {"vkMapMemory", entry_point(map_memory)},
            {"vkUnmapMemory", entry_point(unmap_memory)}};
}

}  // namespace vkrope::test
