/* SPDX-License-Identifier: MIT */
/* The engine's way: a kernel, a table and commands of our own on a device that is already there.
   The rotation goes forward out of place with a table in a buffer, and back in place. */
#include <stdio.h>
#include <stdlib.h>

#include "c_app.h"

#define FUNCTIONS(X)            \
    X(vkAllocateCommandBuffers) \
    X(vkBeginCommandBuffer)     \
    X(vkCmdPipelineBarrier)     \
    X(vkCreateCommandPool)      \
    X(vkCreateFence)            \
    X(vkDestroyCommandPool)     \
    X(vkDestroyFence)           \
    X(vkEndCommandBuffer)       \
    X(vkQueueSubmit)            \
    X(vkWaitForFences)

/* All that this part makes. */
struct work {
    vkrope_device_ref ref;
    uint32_t family;
    VkQueue queue;
#define DECLARE(name) PFN_##name name;
    FUNCTIONS(DECLARE)
#undef DECLARE
    VkCommandPool pool;
    VkFence fence;
    VkCommandBuffer commands;
    vkrope_kernel* kernel;
    vkrope_arena* arena;
    vkrope_angle_table_layout plan;
    vkrope_buffer *table, *in, *out;
};

static int vulkan(const char* what, VkResult result) {
    if (result == VK_SUCCESS) return 1;
    fprintf(stderr, "%s returned %d\n", what, (int)result);
    return 0;
}

static int load_functions(struct work* w) {
    const PFN_vkGetDeviceProcAddr get = (PFN_vkGetDeviceProcAddr)w->ref.get_instance_proc_addr(
        w->ref.instance, "vkGetDeviceProcAddr");
    if (!get) return 0;
#define LOAD(name)                                   \
    w->name = (PFN_##name)get(w->ref.device, #name); \
    if (!w->name) return 0;
    FUNCTIONS(LOAD)
#undef LOAD
    return 1;
}

static int make_commands(struct work* w) {
    const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .queueFamilyIndex = w->family};
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    if (!vulkan("vkCreateCommandPool",
                w->vkCreateCommandPool(w->ref.device, &pool, NULL, &w->pool)))
        return 0;
    if (!vulkan("vkCreateFence", w->vkCreateFence(w->ref.device, &fence, NULL, &w->fence)))
        return 0;
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = w->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    return vulkan("vkAllocateCommandBuffers",
                  w->vkAllocateCommandBuffers(w->ref.device, &commands, &w->commands));
}

static int make_own_kernel(struct work* w) {
    const vkrope_kernel_info info = {
        .pairing = VKROPE_HALF_SPLIT,
        .rotary_dim = head_dim,
        .tensor[VKROPE_Q].head_dim = head_dim,
        .angles = VKROPE_ANGLES_DIRECT_BUFFER,
    };
    return make_kernel(&w->ref, &info, 2, &w->kernel, &w->arena);
}

static int make_table(struct work* w, vkrope_device* device, const vkrope_rope_params* rotation) {
    vkrope_error error;
    if (!succeeded("vkrope_plan_angles",
                   vkrope_plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, position + 1, 0,
                                      &w->plan, &error),
                   &error)) {
        return 0;
    }
    const size_t bytes = (size_t)w->plan.bytes;
    void* memory = malloc(bytes);
    const int good = memory &&
                     succeeded("vkrope_fill_angles",
                               vkrope_fill_angles(rotation, &w->plan, memory, bytes, &error),
                               &error) &&
                     make_buffer(device, memory, bytes, &w->table);
    free(memory);
    return good;
}

static void barrier(const struct work* w, VkPipelineStageFlags from_stage, VkAccessFlags from,
                    VkPipelineStageFlags to_stage, VkAccessFlags to) {
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = from, .dstAccessMask = to};
    w->vkCmdPipelineBarrier(w->commands, from_stage, to_stage, 0, 1, &memory, 0, NULL, 0, NULL);
}

/* Two rotations and the barriers around them: in -> out, and `in` backwards in its place. */
static int record(const struct work* w) {
    vkrope_error error;
    vkrope_boundary boundary = {0};
    if (!succeeded("vkrope_get_boundary", vkrope_get_boundary(&boundary, &error), &error)) return 0;
    const vkrope_tensor in = {.where = vkrope_buffer_whole(w->in), .heads = 1};
    const vkrope_tensor out = {.where = vkrope_buffer_whole(w->out), .heads = 1};
    vkrope_call call = {
        .tokens = 1,
        .in[VKROPE_Q] = in,
        .out[VKROPE_Q] = out,
        .positions = {.first = position},
        .angles = {.layout = &w->plan, .buffer = vkrope_buffer_whole(w->table)},
    };
    barrier(w, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT, boundary.stage,
            boundary.input_access | boundary.in_place_access);
    if (!succeeded("vkrope_record", vkrope_record(w->commands, w->kernel, &call, w->arena, &error),
                   &error))
        return 0;
    barrier(w, boundary.stage, boundary.input_access, boundary.stage, boundary.in_place_access);
    call.out[VKROPE_Q] = in;
    call.direction = VKROPE_INVERSE;
    if (!succeeded("vkrope_record", vkrope_record(w->commands, w->kernel, &call, w->arena, &error),
                   &error))
        return 0;
    barrier(w, boundary.stage, boundary.output_access, VK_PIPELINE_STAGE_TRANSFER_BIT,
            VK_ACCESS_TRANSFER_READ_BIT);
    return 1;
}

static int submit(const struct work* w) {
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &w->commands};
    const uint64_t ten_seconds = 10000000000u;
    return vulkan("vkBeginCommandBuffer", w->vkBeginCommandBuffer(w->commands, &begin)) &&
           record(w) && vulkan("vkEndCommandBuffer", w->vkEndCommandBuffer(w->commands)) &&
           vulkan("vkQueueSubmit", w->vkQueueSubmit(w->queue, 1, &info, w->fence)) &&
           vulkan("vkWaitForFences",
                  w->vkWaitForFences(w->ref.device, 1, &w->fence, VK_TRUE, ten_seconds));
}

static int rotate(struct work* w, vkrope_device* device) {
    const float row[head_dim] = {1, 2, 3, 4};
    float forward[head_dim] = {0}, backward[head_dim] = {0};
    vkrope_error error;
    return succeeded("vkrope_buffer_create",
                     vkrope_buffer_create(device, sizeof row, &w->out, &error), &error) &&
           make_buffer(device, row, sizeof row, &w->in) && submit(w) &&
           succeeded("vkrope_buffer_download",
                     vkrope_buffer_download(w->out, forward, sizeof forward, 0, &error), &error) &&
           succeeded("vkrope_buffer_download",
                     vkrope_buffer_download(w->in, backward, sizeof backward, 0, &error), &error) &&
           is_rotated("own commands, forward", row, forward, 1, DIRECT_BOUND) &&
           is_rotated("own commands, in place, inverse", row, backward, -1, DIRECT_BOUND);
}

static void destroy(struct work* w) {
    vkrope_buffer_destroy(w->out);
    vkrope_buffer_destroy(w->in);
    vkrope_buffer_destroy(w->table);
    vkrope_arena_destroy(w->arena);
    vkrope_kernel_destroy(w->kernel);
    if (w->vkDestroyFence) w->vkDestroyFence(w->ref.device, w->fence, NULL);
    if (w->vkDestroyCommandPool) w->vkDestroyCommandPool(w->ref.device, w->pool, NULL);
}

int use_own_commands(vkrope_device* device) {
    struct work w = {0};
    vkrope_rope_params rotation;
    w.ref = *vkrope_device_get_ref(device);
    w.queue = vkrope_device_get_queue(device, &w.family);
    const int good = load_functions(&w) && make_commands(&w) && make_own_kernel(&w) &&
                     make_rotation(&rotation) && make_table(&w, device, &rotation) &&
                     rotate(&w, device);
    destroy(&w);
    return good;
}
