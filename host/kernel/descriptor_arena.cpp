// SPDX-License-Identifier: MIT
#include <memory>
#include <new>

#include "kernel/kernel_object.hpp"
#include "status.hpp"

namespace vkrope {

struct DescriptorArena {
    const Kernel* kernel = nullptr;
    VkDescriptorPool pool = VK_NULL_HANDLE;
    std::unique_ptr<VkDescriptorSet[]> sets;
    std::uint32_t capacity = 0, used = 0;
};

namespace {

Status create_pool(const Kernel& kernel, std::uint32_t calls, VkDescriptorPool& pool) {
    VkDescriptorPoolSize sizes[max_bindings] = {};
    const Module& module = *kernel.module;
    for (std::uint32_t i = 0; i < module.binding_count; ++i) sizes[i] = {module.bindings[i].type, calls};
    VkDescriptorPoolCreateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
    info.maxSets = calls;
    info.poolSizeCount = module.binding_count;
    info.pPoolSizes = sizes;
    const VkResult result = kernel.vk.vkCreateDescriptorPool(kernel.device.device, &info, kernel.device.allocator, &pool);
    return created(result, pool, "vkCreateDescriptorPool");
}

// All sets at once: record() then only takes the next one.
Status allocate_sets(DescriptorArena& arena, const std::unique_ptr<VkDescriptorSetLayout[]>& layouts) {
    const Kernel& kernel = *arena.kernel;
    for (std::uint32_t i = 0; i < arena.capacity; ++i) layouts[i] = kernel.set_layout;
    VkDescriptorSetAllocateInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
    info.descriptorPool = arena.pool;
    info.descriptorSetCount = arena.capacity;
    info.pSetLayouts = layouts.get();
    const VkResult result = kernel.vk.vkAllocateDescriptorSets(kernel.device.device, &info, arena.sets.get());
    return result == VK_SUCCESS ? Status{} : vulkan_error(result, "vkAllocateDescriptorSets");
}

}  // namespace

Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls) {
    if (!kernel) return {error(Code::invalid_argument, "kernel is null"), nullptr};
    if (calls == 0 || calls > most_calls)
        return {error(Code::invalid_argument, "calls is %u: it must be 1 to %u", calls, most_calls), nullptr};
    if (kernel->device.enabled & push_descriptor) {
        return {error(Code::invalid_argument, "kernel: it was created with push descriptors enabled and needs no arena"), nullptr};
    }
    auto* arena = new (std::nothrow) DescriptorArena;
    if (!arena) return {error(Code::out_of_host_memory, "no memory for a DescriptorArena"), nullptr};
    arena->kernel = kernel;
    arena->capacity = calls;
    arena->sets.reset(new (std::nothrow) VkDescriptorSet[calls]);
    const std::unique_ptr<VkDescriptorSetLayout[]> layouts(new (std::nothrow) VkDescriptorSetLayout[calls]);
    Status status;
    if (!arena->sets || !layouts) {
        status = error(Code::out_of_host_memory, "no memory for %u descriptor sets", calls);
    } else if (status = create_pool(*kernel, calls, arena->pool); status) {
        status = allocate_sets(*arena, layouts);
    }
    if (!status) {
        destroy(arena);
        arena = nullptr;
    }
    return {status, arena};
}

void reset(DescriptorArena* arena) noexcept {
    if (arena) arena->used = 0;
}

void destroy(DescriptorArena* arena) noexcept {
    if (!arena) return;
    const Kernel& kernel = *arena->kernel;
    kernel.vk.vkDestroyDescriptorPool(kernel.device.device, arena->pool, kernel.device.allocator);
    delete arena;
}

VkDescriptorSet take_set(DescriptorArena& arena) noexcept {
    return arena.sets[arena.used++];
}

std::uint32_t free_sets(const DescriptorArena& arena) noexcept {
    return arena.capacity - arena.used;
}

std::uint32_t capacity(const DescriptorArena& arena) noexcept {
    return arena.capacity;
}

bool belongs_to(const DescriptorArena& arena, const Kernel& kernel) noexcept {
    return arena.kernel == &kernel;
}

}  // namespace vkrope
