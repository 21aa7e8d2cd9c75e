// SPDX-License-Identifier: MIT
// Implements command buffers. Copies are executed at submission; dispatches are checked and kept.
#include <algorithm>
#include <cstring>

#include "entry_points.hpp"

namespace vkrope::test {

namespace {

Object* command_buffer(VkCommandBuffer commands, const char* entry) {
    return fake().find(VK_OBJECT_TYPE_COMMAND_BUFFER, commands, entry);
}

VKAPI_ATTR VkResult VKAPI_CALL allocate(VkDevice device, const VkCommandBufferAllocateInfo* info,
                                        VkCommandBuffer* buffers) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkAllocateCommandBuffers");
    for (std::uint32_t i = 0; i < info->commandBufferCount; ++i)
        buffers[i] = VK_NULL_HANDLE;  // the specification requires null here
    if (result != VK_SUCCESS) return result;
    check_device(device, "vkAllocateCommandBuffers");
    fake().find(VK_OBJECT_TYPE_COMMAND_POOL, info->commandPool, "vkAllocateCommandBuffers");
    for (std::uint32_t i = 0; i < info->commandBufferCount; ++i) {
        const std::uint64_t handle = fake().create(VK_OBJECT_TYPE_COMMAND_BUFFER,
                                                   number_of(info->commandPool), nullptr);
        buffers[i] = reinterpret_cast<VkCommandBuffer>(std::uintptr_t(handle));
    }
    return VK_SUCCESS;
}

void forget(Object& buffer) {
    buffer.state = CommandState::initial;
    buffer.commands.clear();
    buffer.uses.clear();
}

VKAPI_ATTR VkResult VKAPI_CALL reset_pool(VkDevice device, VkCommandPool pool,
                                          VkCommandPoolResetFlags) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkResetCommandPool"); result != VK_SUCCESS)
        return result;
    check_device(device, "vkResetCommandPool");
    fake().find(VK_OBJECT_TYPE_COMMAND_POOL, pool, "vkResetCommandPool");
    // Every fake device has one command buffer.
    Object* buffer = fake().find(VK_OBJECT_TYPE_COMMAND_BUFFER,
                                 fake().only(VK_OBJECT_TYPE_COMMAND_BUFFER), "vkResetCommandPool");
    if (buffer && buffer->pending)
        fake().fault("vkResetCommandPool: the queue is using a command buffer of it");
    if (buffer) forget(*buffer);
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo*) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkBeginCommandBuffer"); result != VK_SUCCESS)
        return result;
    Object* buffer = command_buffer(commands, "vkBeginCommandBuffer");
    if (buffer && buffer->state != CommandState::initial)
        fake().fault("vkBeginCommandBuffer: it was not reset");
    if (buffer) buffer->state = CommandState::recording;
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL end(VkCommandBuffer commands) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkEndCommandBuffer"); result != VK_SUCCESS)
        return result;
    Object* buffer = command_buffer(commands, "vkEndCommandBuffer");
    if (buffer && buffer->state != CommandState::recording)
        fake().fault("vkEndCommandBuffer: it is not recording");
    if (buffer) buffer->state = CommandState::executable;
    return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL bind_pipeline(VkCommandBuffer commands, VkPipelineBindPoint,
                                         VkPipeline pipeline) {
    const Entered entered("vkCmdBindPipeline");
    fake().find(VK_OBJECT_TYPE_PIPELINE, pipeline, "vkCmdBindPipeline");
    fake().record(commands, {.entry = "vkCmdBindPipeline", .pipeline = pipeline},
                  {number_of(pipeline)});
}

VKAPI_ATTR void VKAPI_CALL bind_sets(VkCommandBuffer commands, VkPipelineBindPoint,
                                     VkPipelineLayout layout, std::uint32_t first,
                                     std::uint32_t count, const VkDescriptorSet* sets,
                                     std::uint32_t, const std::uint32_t*) {
    const Entered entered("vkCmdBindDescriptorSets");
    const Object* set = fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET, sets[0],
                                    "vkCmdBindDescriptorSets");
    if (first != 0 || count != 1) fake().fault("vkCmdBindDescriptorSets: not set 0 alone");
    Command command{.entry = "vkCmdBindDescriptorSets", .layout = layout, .set = sets[0]};
    if (set) command.descriptors = set->descriptors;
    fake().record(commands, command, {number_of(sets[0])});
}

VKAPI_ATTR void VKAPI_CALL push_set(VkCommandBuffer commands, VkPipelineBindPoint,
                                    VkPipelineLayout layout, std::uint32_t, std::uint32_t count,
                                    const VkWriteDescriptorSet* writes) {
    const Entered entered("vkCmdPushDescriptorSetKHR");
    Command command{.entry = "vkCmdPushDescriptorSetKHR", .layout = layout};
    for (std::uint32_t i = 0; i < count; ++i)
        command.descriptors[writes[i].dstBinding] = descriptor_of(writes[i]);
    fake().record(commands, command);
}

VKAPI_ATTR void VKAPI_CALL push_constants(VkCommandBuffer commands, VkPipelineLayout layout,
                                          VkShaderStageFlags, std::uint32_t offset,
                                          std::uint32_t size, const void* values) {
    const Entered entered("vkCmdPushConstants");
    const auto* bytes = static_cast<const std::byte*>(values);
    const Object* object = fake().find(VK_OBJECT_TYPE_PIPELINE_LAYOUT, layout,
                                       "vkCmdPushConstants");
    if (object && offset + size > object->push_bytes)
        fake().fault("vkCmdPushConstants: outside the range of the layout");
    fake().record(
        commands,
        {.entry = "vkCmdPushConstants", .layout = layout, .pushed = {bytes, bytes + size}});
}

// Returns the last command with that name, on which a dispatch depends.
const Command* last(const std::vector<Command>& commands, const char* entry,
                    const char* or_entry = "") {
    for (auto command = commands.rbegin(); command != commands.rend(); ++command)
        if (command->entry == entry || command->entry == or_entry) return &*command;
    return nullptr;
}

void check_descriptor(const Descriptor& descriptor, std::set<std::uint64_t>& uses) {
    const FakeConfig& config = fake().config;
    if (descriptor.type == VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE) {
        fake().find(VK_OBJECT_TYPE_IMAGE_VIEW, descriptor.image.imageView, "vkCmdDispatch");
        uses.insert(number_of(descriptor.image.imageView));
        return;
    }
    const Object* buffer = fake().find(VK_OBJECT_TYPE_BUFFER, descriptor.buffer.buffer,
                                       "vkCmdDispatch");
    if (!buffer) return;
    uses.insert(number_of(descriptor.buffer.buffer));
    const std::string binding = "vkCmdDispatch: binding " + std::to_string(descriptor.binding);
    const auto& [handle, offset, range] = descriptor.buffer;
    const bool uniform = descriptor.type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
    const VkBufferUsageFlags usage = uniform ? VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT
                                             : VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
    const VkDeviceSize alignment = uniform ? config.uniform_alignment : config.offset_alignment;
    const std::uint32_t most = uniform ? config.uniform_range : config.storage_range;
    if (offset % alignment != 0) fake().fault(binding + ": its offset is not aligned");
    if (range == 0 || range > most) fake().fault(binding + ": its range is 0 or above the limit");
    if (offset + range > buffer->bytes) fake().fault(binding + ": it ends behind its buffer");
    if (!(buffer->usage & usage)) fake().fault(binding + ": the buffer was not made for it");
}

bool same(const std::vector<VkDescriptorSetLayoutBinding>& a,
          const std::vector<VkDescriptorSetLayoutBinding>& b) {
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(),
        [](const auto& x, const auto& y) {
            return x.binding == y.binding && x.descriptorType == y.descriptorType &&
                   x.descriptorCount == y.descriptorCount && x.stageFlags == y.stageFlags;
        });
}

// Checks that everything that a pipeline reads is in its layout and bound, and that the layout of
// the set is defined identically.
void check_bindings(const Object& pipeline, const Object& layout, const Command& bound,
                    std::set<std::uint64_t>& uses) {
    const Object* set = bound.set
                            ? fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET, bound.set, "vkCmdDispatch")
                            : nullptr;
    const Object* of_set = set ? fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, set->layout,
                                             "vkCmdDispatch")
                               : nullptr;
    if (of_set && !same(of_set->bindings, layout.bindings))
        fake().fault("vkCmdDispatch: a set of another layout than the pipeline's");
    for (const std::uint32_t binding : pipeline.reads) {
        const auto declared = std::find_if(
            layout.bindings.begin(), layout.bindings.end(),
            [&](const VkDescriptorSetLayoutBinding& has) { return has.binding == binding; });
        const auto found = bound.descriptors.find(binding);
        const std::string name = "vkCmdDispatch: binding " + std::to_string(binding);
        if (declared == layout.bindings.end())
            fake().fault(name + " is not in the layout");
        else if (found == bound.descriptors.end() || found->second.type != declared->descriptorType)
            fake().fault(name + " is not bound");
        else
            check_descriptor(found->second, uses);
    }
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                    std::uint32_t z) {
    const Entered entered("vkCmdDispatch");
    Command command{.entry = "vkCmdDispatch", .groups = {x, y, z}};
    std::set<std::uint64_t> uses;
    for (std::size_t i = 0; i < 3; ++i)
        if (command.groups[i] > fake().config.workgroup_count[i])
            fake().fault("vkCmdDispatch: more workgroups than offered");
    const std::vector<Command>& before = fake().commands(commands);
    const Command* pipeline = last(before, "vkCmdBindPipeline");
    const Command* bound = last(before, "vkCmdPushDescriptorSetKHR", "vkCmdBindDescriptorSets");
    const Command* pushed = last(before, "vkCmdPushConstants");
    if (!pipeline || !bound || !pushed) {
        fake().fault("vkCmdDispatch: no pipeline, no descriptors or no push constants");
    } else if (const Object* object = fake().find(VK_OBJECT_TYPE_PIPELINE, pipeline->pipeline,
                                                  "vkCmdDispatch")) {
        const Object* layout = fake().find(VK_OBJECT_TYPE_PIPELINE_LAYOUT, object->layout,
                                           "vkCmdDispatch");
        const Object* set = layout ? fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT,
                                                 layout->layout, "vkCmdDispatch")
                                   : nullptr;
        if (layout && pushed->pushed.size() != layout->push_bytes)
            fake().fault("vkCmdDispatch: push constants are left unset");
        if (set) check_bindings(*object, *set, *bound, uses);
        command.pipeline = pipeline->pipeline;
        command.descriptors = bound->descriptors;
        command.pushed = pushed->pushed;
    }
    fake().record(commands, command, uses);
}

VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from,
                                   VkPipelineStageFlags to, VkDependencyFlags,
                                   std::uint32_t memory_count, const VkMemoryBarrier* memory,
                                   std::uint32_t buffer_count, const VkBufferMemoryBarrier* buffers,
                                   std::uint32_t, const VkImageMemoryBarrier*) {
    const Entered entered("vkCmdPipelineBarrier");
    Command command{.entry = "vkCmdPipelineBarrier", .stages = {from, to}};
    command.memory_barriers.assign(memory, memory + memory_count);
    command.buffer_barriers.assign(buffers, buffers + buffer_count);
    fake().record(commands, command);
}

// Returns `bytes` bytes of a buffer or image from byte `offset` on; null if there are fewer.
template <class Handle>
std::byte* part_of(VkObjectType type, Handle handle, VkDeviceSize offset, VkDeviceSize bytes,
                   const char* entry) {
    const Object* object = fake().find(type, handle, entry);
    std::byte* content = object ? fake().content_of(*object) : nullptr;
    if (object && !content) fake().fault(std::string(entry) + ": without memory");
    if (!content || offset + bytes <= object->bytes) return content ? content + offset : nullptr;
    fake().fault(std::string(entry) + ": the region ends behind its buffer or image");
    return nullptr;
}

VKAPI_ATTR void VKAPI_CALL copy_buffer(VkCommandBuffer commands, VkBuffer from, VkBuffer to,
                                       std::uint32_t, const VkBufferCopy* regions) {
    const Entered entered("vkCmdCopyBuffer");
    const auto copy = [from, to, region = *regions] {
        const std::byte* source = part_of(VK_OBJECT_TYPE_BUFFER, from, region.srcOffset,
                                          region.size, "vkCmdCopyBuffer");
        std::byte* target = part_of(VK_OBJECT_TYPE_BUFFER, to, region.dstOffset, region.size,
                                    "vkCmdCopyBuffer");
        if (source && target) std::memcpy(target, source, region.size);
    };
    fake().record(commands, {.entry = "vkCmdCopyBuffer", .execute = copy},
                  {number_of(from), number_of(to)});
}

// Copies whole lines of texels of 16 bytes.
VKAPI_ATTR void VKAPI_CALL copy_to_image(VkCommandBuffer commands, VkBuffer from, VkImage to,
                                         VkImageLayout, std::uint32_t,
                                         const VkBufferImageCopy* regions) {
    const Entered entered("vkCmdCopyBufferToImage");
    if (regions->imageOffset.x != 0 || regions->bufferRowLength != 0)
        fake().fault("vkCmdCopyBufferToImage: the fake copies whole lines");
    const auto copy = [from, to, region = *regions] {
        const VkDeviceSize line = VkDeviceSize{16} * region.imageExtent.width,
                           bytes = line * region.imageExtent.height;
        const std::byte* source = part_of(VK_OBJECT_TYPE_BUFFER, from, region.bufferOffset, bytes,
                                          "vkCmdCopyBufferToImage");
        std::byte* target = part_of(VK_OBJECT_TYPE_IMAGE, to,
                                    line * std::uint32_t(region.imageOffset.y), bytes,
                                    "vkCmdCopyBufferToImage");
        if (source && target) std::memcpy(target, source, bytes);
    };
    fake().record(commands, {.entry = "vkCmdCopyBufferToImage", .execute = copy},
                  {number_of(from), number_of(to)});
}

VKAPI_ATTR void VKAPI_CALL reset_queries(VkCommandBuffer commands, VkQueryPool pool, std::uint32_t,
                                         std::uint32_t) {
    const Entered entered("vkCmdResetQueryPool");
    fake().record(commands, {.entry = "vkCmdResetQueryPool"}, {number_of(pool)});
}

VKAPI_ATTR void VKAPI_CALL write_timestamp(VkCommandBuffer commands, VkPipelineStageFlagBits,
                                           VkQueryPool pool, std::uint32_t) {
    const Entered entered("vkCmdWriteTimestamp");
    fake().record(commands, {.entry = "vkCmdWriteTimestamp"}, {number_of(pool)});
}

VKAPI_ATTR void VKAPI_CALL begin_label(VkCommandBuffer commands,
                                       const VkDebugUtilsLabelEXT* label) {
    const Entered entered("vkCmdBeginDebugUtilsLabelEXT");
    fake().record(commands, {.entry = "vkCmdBeginDebugUtilsLabelEXT", .label = label->pLabelName});
}

VKAPI_ATTR void VKAPI_CALL end_label(VkCommandBuffer commands) {
    const Entered entered("vkCmdEndDebugUtilsLabelEXT");
    fake().record(commands, {.entry = "vkCmdEndDebugUtilsLabelEXT"});
}

}  // namespace

EntryPoints command_entry_points() {
    return {VKROPE_PLAIN_CHILD(vkCreateCommandPool, vkDestroyCommandPool, COMMAND_POOL),
            {"vkAllocateCommandBuffers", entry_point(allocate)},
            {"vkBeginCommandBuffer", entry_point(begin)},
            {"vkCmdBeginDebugUtilsLabelEXT", entry_point(begin_label)},
            {"vkCmdBindDescriptorSets", entry_point(bind_sets)},
            {"vkCmdBindPipeline", entry_point(bind_pipeline)},
            {"vkCmdCopyBuffer", entry_point(copy_buffer)},
            {"vkCmdCopyBufferToImage", entry_point(copy_to_image)},
            {"vkCmdDispatch", entry_point(dispatch)},
            {"vkCmdEndDebugUtilsLabelEXT", entry_point(end_label)},
            {"vkCmdPipelineBarrier", entry_point(barrier)},
            {"vkCmdPushConstants", entry_point(push_constants)},
            {"vkCmdPushDescriptorSetKHR", entry_point(push_set)},
            {"vkCmdResetQueryPool", entry_point(reset_queries)},
            {"vkCmdWriteTimestamp", entry_point(write_timestamp)},
            {"vkEndCommandBuffer", entry_point(end)},
            {"vkResetCommandPool", entry_point(reset_pool)}};
}

}  // namespace vkrope::test
