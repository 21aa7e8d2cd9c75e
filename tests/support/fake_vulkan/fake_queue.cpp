// SPDX-License-Identifier: MIT
// Implements the queue, what it signals, and the times that it writes.
#include "entry_points.hpp"

namespace vkrope::test {

namespace {

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* infos,
                                      VkFence fence) {
    const Unobserved unobserved;
    if (const VkResult result = fake().enter_fallible("vkQueueSubmit"); result != VK_SUCCESS)
        return result;
    if (queue != the_queue) fake().fault("vkQueueSubmit: unknown queue");
    const Object* object = fake().find(VK_OBJECT_TYPE_FENCE, fence, "vkQueueSubmit");
    if (object && (object->signaled || object->pending))
        fake().fault("vkQueueSubmit: the fence is signaled, or in use");
    for (std::uint32_t i = 0; i < count; ++i)
        fake().submit(infos[i].pCommandBuffers[0], number_of(fence));
    return VK_SUCCESS;
}

Object fence_of(const VkFenceCreateInfo& info) {
    return {.signaled = (info.flags & VK_FENCE_CREATE_SIGNALED_BIT) != 0};
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
                                               const VkFence* fences, VkBool32,
                                               std::uint64_t timeout_ns) {
    const Unobserved unobserved;
    fake().timeout_ns = timeout_ns;
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

}  // namespace

EntryPoints queue_entry_points() {
    return {VKROPE_CHILD(vkCreateFence, vkDestroyFence, FENCE, fence_of),
            VKROPE_PLAIN_CHILD(vkCreateQueryPool, vkDestroyQueryPool, QUERY_POOL),
            {"vkGetQueryPoolResults", entry_point(get_query_pool_results)},
            {"vkQueueSubmit", entry_point(submit)},
            {"vkResetFences", entry_point(reset_fences)},
            {"vkWaitForFences", entry_point(wait_for_fences)}};
}

}  // namespace vkrope::test
