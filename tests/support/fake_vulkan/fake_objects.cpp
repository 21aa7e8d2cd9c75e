// SPDX-License-Identifier: MIT
// Device objects without a file of their own: pools, fences, queries, names.
#include "entry_points.hpp"

namespace vkrope::test {

namespace {

VKAPI_ATTR void VKAPI_CALL destroy_device(VkDevice device, const VkAllocationCallbacks* allocator) {
    const Entered entered("vkDestroyDevice");
    fake().destroy(VK_OBJECT_TYPE_DEVICE, number_of(device), allocator, "vkDestroyDevice");
}

VKAPI_ATTR void VKAPI_CALL get_device_queue(VkDevice device, std::uint32_t, std::uint32_t,
                                            VkQueue* queue) {
    const Entered entered("vkGetDeviceQueue");
    check_device(device, "vkGetDeviceQueue");
    *queue = the_queue;
}

VKAPI_ATTR VkResult VKAPI_CALL create_command_pool(VkDevice device, const VkCommandPoolCreateInfo*,
                                                   const VkAllocationCallbacks* allocator,
                                                   VkCommandPool* pool) {
    return create_child("vkCreateCommandPool", VK_OBJECT_TYPE_COMMAND_POOL, device, allocator, pool,
                        [] { return Object{}; });
}

VKAPI_ATTR void VKAPI_CALL destroy_command_pool(VkDevice device, VkCommandPool pool,
                                                const VkAllocationCallbacks* allocator) {
    destroy_child("vkDestroyCommandPool", VK_OBJECT_TYPE_COMMAND_POOL, device, pool, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL create_fence(VkDevice device, const VkFenceCreateInfo* info,
                                            const VkAllocationCallbacks* allocator,
                                            VkFence* fence) {
    return create_child("vkCreateFence", VK_OBJECT_TYPE_FENCE, device, allocator, fence, [&] {
        Object object;
        object.signaled = (info->flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0;
        return object;
    });
}

VKAPI_ATTR void VKAPI_CALL destroy_fence(VkDevice device, VkFence fence,
                                         const VkAllocationCallbacks* allocator) {
    destroy_child("vkDestroyFence", VK_OBJECT_TYPE_FENCE, device, fence, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL reset_fences(VkDevice device, std::uint32_t count,
                                            const VkFence* fences) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkResetFences"); result != VK_SUCCESS)
        return result;
    check_device(device, "vkResetFences");
    for (std::uint32_t i = 0; i < count; ++i) {
        Object* fence = fake().find(VK_OBJECT_TYPE_FENCE, fences[i], "vkResetFences");
        if (fence && fence->pending)
            fake().fault("vkResetFences: the queue has yet to signal the fence");
        if (fence) fence->signaled = false;
    }
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL wait_for_fences(VkDevice device, std::uint32_t count,
                                               const VkFence* fences, VkBool32, std::uint64_t) {
    const Unobserved unobserved;
    const VkResult result = fake().enter_fallible("vkWaitForFences");
    // The work of a lost device counts as finished. After any other failure the work continues.
    if (result == VK_ERROR_DEVICE_LOST) fake().finish();
    if (result != VK_SUCCESS) return result;
    check_device(device, "vkWaitForFences");
    for (std::uint32_t i = 0; i < count; ++i) {
        const Object* fence = fake().find(VK_OBJECT_TYPE_FENCE, fences[i], "vkWaitForFences");
        if (fence && !fence->pending && !fence->signaled) {
            fake().fault("vkWaitForFences: nothing will ever signal the fence");
            return VK_TIMEOUT;
        }
    }
    if (fake().config.never_finishes) return VK_TIMEOUT;
    fake().finish();
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL create_query_pool(VkDevice device, const VkQueryPoolCreateInfo*,
                                                 const VkAllocationCallbacks* allocator,
                                                 VkQueryPool* pool) {
    return create_child("vkCreateQueryPool", VK_OBJECT_TYPE_QUERY_POOL, device, allocator, pool,
                        [] { return Object{}; });
}

VKAPI_ATTR void VKAPI_CALL destroy_query_pool(VkDevice device, VkQueryPool pool,
                                              const VkAllocationCallbacks* allocator) {
    destroy_child("vkDestroyQueryPool", VK_OBJECT_TYPE_QUERY_POOL, device, pool, allocator);
}

VKAPI_ATTR VkResult VKAPI_CALL get_query_pool_results(VkDevice device, VkQueryPool pool,
                                                      std::uint32_t, std::uint32_t count,
                                                      std::size_t, void* data, VkDeviceSize,
                                                      VkQueryResultFlags) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkGetQueryPoolResults");
        result != VK_SUCCESS)
        return result;
    check_device(device, "vkGetQueryPoolResults");
    fake().find(VK_OBJECT_TYPE_QUERY_POOL, pool, "vkGetQueryPoolResults");
    for (std::uint32_t i = 0; i < count; ++i) static_cast<std::uint64_t*>(data)[i] = 1000 * (i + 1);
    return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice device,
                                        const VkDebugUtilsObjectNameInfoEXT* info) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkSetDebugUtilsObjectNameEXT");
        result != VK_SUCCESS)
        return result;
    check_device(device, "vkSetDebugUtilsObjectNameEXT");
    Object* object = fake().find(info->objectType, info->objectHandle,
                                 "vkSetDebugUtilsObjectNameEXT");
    if (object) object->name = info->pObjectName ? info->pObjectName : "";
    return VK_SUCCESS;
}

}  // namespace

EntryPoints object_entry_points() {
    return {{"vkCreateCommandPool", entry_point(create_command_pool)},
            {"vkCreateFence", entry_point(create_fence)},
            {"vkCreateQueryPool", entry_point(create_query_pool)},
            {"vkDestroyCommandPool", entry_point(destroy_command_pool)},
            {"vkDestroyDevice", entry_point(destroy_device)},
            {"vkDestroyFence", entry_point(destroy_fence)},
            {"vkDestroyQueryPool", entry_point(destroy_query_pool)},
            {"vkGetDeviceQueue", entry_point(get_device_queue)},
            {"vkGetQueryPoolResults", entry_point(get_query_pool_results)},
            {"vkResetFences", entry_point(reset_fences)},
            {"vkSetDebugUtilsObjectNameEXT", entry_point(set_name)},
            {"vkWaitForFences", entry_point(wait_for_fences)}};
}

}  // namespace vkrope::test
