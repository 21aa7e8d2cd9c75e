// SPDX-License-Identifier: MIT
#include <cinttypes>
#include <memory>
#include <new>

#include "base/status.hpp"
#include "kernel/kernel_object.hpp"
#include "kernel/vulkan/program.hpp"

// The arena has its own set layout, because sets must not be updated after their layout is
// destroyed, and the arena may outlive every kernel.
struct vkrope_arena {
    vkrope::DeviceRef device;
    vkrope::DeviceFunctions vk;
    vkrope::BindingList binds;
    VkDescriptorSetLayout layout = VK_NULL_HANDLE;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    std::unique_ptr<VkDescriptorSet[]> sets;
    std::uint32_t capacity = 0, used = 0;
};

namespace vkrope {

namespace {

Status create_pool(DescriptorArena& arena) {
    VkDescriptorPoolSize sizes[BindingList::most] = {};
    std::uint32_t count = 0;
    for (const Binding& binding : arena.binds) sizes[count++] = {binding.type, arena.capacity};
    VkDescriptorPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = arena.capacity;
    info.poolSizeCount = count;
    info.pPoolSizes = sizes;
    const VkResult result = arena.vk.vkCreateDescriptorPool(arena.device.device, &info,
                                                            arena.device.allocator, &arena.pool);
    return created(result, arena.pool, "vkCreateDescriptorPool");
}

// Allocates all sets at once, so that record() only takes the next set.
Status allocate_sets(DescriptorArena& arena,
                     const std::unique_ptr<VkDescriptorSetLayout[]>& layouts) {
    for (std::uint32_t i = 0; i < arena.capacity; ++i) layouts[i] = arena.layout;
    VkDescriptorSetAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = arena.pool;
    info.descriptorSetCount = arena.capacity;
    info.pSetLayouts = layouts.get();
    const VkResult result = arena.vk.vkAllocateDescriptorSets(arena.device.device, &info,
                                                              arena.sets.get());
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkAllocateDescriptorSets");
}

}  // namespace

Result<DescriptorArena*> create_arena_of(const Program* program, std::uint32_t calls) {
    if (!program) return {error(VKROPE_ERROR_INVALID_ARGUMENT, "kernel is null"), nullptr};
    if (calls == 0 || calls > max_calls)
        return {error(VKROPE_ERROR_INVALID_ARGUMENT, "calls is %u: it must be 1 to %u", calls,
                      max_calls),
                nullptr};
    if (program->device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) {
        return {error(VKROPE_ERROR_INVALID_ARGUMENT,
                      "kernel: it was created with push descriptors enabled and needs no arena"),
                nullptr};
    }
    auto* arena = new (std::nothrow) DescriptorArena;
    if (!arena)
        return {error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "not enough memory for a vkrope_arena"),
                nullptr};
    arena->device = program->device;
    arena->vk = program->vk;
    arena->binds = program->layout_binds;
    arena->capacity = calls;
    arena->sets.reset(new (std::nothrow) VkDescriptorSet[calls]);
    const std::unique_ptr<VkDescriptorSetLayout[]> layouts(new (std::nothrow)
                                                               VkDescriptorSetLayout[calls]);
    Status status;
    if (!arena->sets || !layouts) {
        status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "not enough memory for %u descriptor sets",
                       calls);
    } else if (status = create_set_layout(*program, arena->layout); status) {
        status = create_pool(*arena);
        if (status) status = allocate_sets(*arena, layouts);
    }
    if (!status) {
        vkrope_arena_destroy(arena);
        arena = nullptr;
    }
    return {status, arena};
}

namespace {

// Descriptor writes, one for each binding of the program.
struct Writes {
    VkWriteDescriptorSet writes[BindingList::most];
    VkDescriptorImageInfo image;
};

void fill_writes(const BindingList& binds, const Descriptors& descriptors, VkDescriptorSet set,
                 Writes& out) noexcept {
    out.image = {VK_NULL_HANDLE, descriptors.view, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    VkWriteDescriptorSet* next = out.writes;
    for (const Binding& binding : binds) {
        VkWriteDescriptorSet& write = *next++;
        write = {};
        write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
        write.dstSet = set;
        write.dstBinding = binding.number;
        write.descriptorCount = 1;
        write.descriptorType = binding.type;
        if (binding.type == VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE)
            write.pImageInfo = &out.image;
        else
            write.pBufferInfo = &descriptors.buffers[binding.number];
    }
}

}  // namespace

Status check_arena(const Program& program, const DescriptorArena* arena,
                   std::uint64_t sets) noexcept {
    if (program.device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return {};
    if (!arena)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "arena is null: without push descriptors the kernel needs one");
    if (arena->device.device != program.device.device)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "arena: it was made for a kernel of another device");
    if (!(arena->binds == program.layout_binds)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "arena: it was made for a kernel of another kind; one arena serves all kinds "
                     "only if the device binds %u storage buffers; this device binds %u "
                     "(maxPerStageDescriptorStorageBuffers)",
                     every_binding().storage_buffers(), program.max_storage_buffers);
    }
    const std::uint32_t left = arena->capacity - arena->used;
    if (left >= sets) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "arena: the call needs %" PRIu64
                 " of its %u sets, but only %u are left; reset it or make a larger one",
                 sets, arena->capacity, left);
}

void bind(VkCommandBuffer commands, const Program& program, const Descriptors& descriptors,
          DescriptorArena* arena) noexcept {
    const DeviceFunctions& vk = program.vk;
    const std::uint32_t count = program.binds.count();
    const bool push = program.device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR;
    const VkDescriptorSet set = push ? VK_NULL_HANDLE : arena->sets[arena->used++];
    Writes writes;
    fill_writes(program.binds, descriptors, set, writes);
    if (push) {
        vk.vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout, 0,
                                     count, writes.writes);
    } else {
        vk.vkUpdateDescriptorSets(program.device.device, count, writes.writes, 0, nullptr);
        vk.vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, program.layout, 0, 1,
                                   &set, 0, nullptr);
    }
}

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_arena_create(const vkrope_kernel* kernel, uint32_t calls, vkrope_arena** made,
                                  vkrope_error* failure) {
    return make(
        made, "arena", failure,
        [&] { return hand_out(create_arena_of(kernel, calls), made, "arena"); });
}

vkrope_result vkrope_position_arena_create(const vkrope_position_kernel* kernel, uint32_t calls,
                                           vkrope_arena** made, vkrope_error* failure) {
    return make(
        made, "arena", failure,
        [&] { return hand_out(create_arena_of(kernel, calls), made, "arena"); });
}

void vkrope_arena_reset(vkrope_arena* arena) {
    if (arena) arena->used = 0;
}

void vkrope_arena_destroy(vkrope_arena* arena) {
    if (!arena) return;
    arena->vk.vkDestroyDescriptorPool(arena->device.device, arena->pool, arena->device.allocator);
    arena->vk.vkDestroyDescriptorSetLayout(arena->device.device, arena->layout,
                                           arena->device.allocator);
    delete arena;
}
