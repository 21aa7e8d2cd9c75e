/* SPDX-License-Identifier: MIT */
/* An engine in C: its own instance, device, memory and command buffer, and vkrope::c_static for the
   rotation of one query row. Table, input and output lie one after the other in one buffer that the
   host sees. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vkrope/vkrope.h>
#include <vulkan/vulkan.h>

enum { head_dim = 64, pairs = head_dim / 2, position = 19, slot_bytes = 8192 };
static const double base = 10000.0;

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static uint32_t family;
static uint32_t enabled; /* of what vkrope_get_requirements asks for */
static VkQueue queue;
static VkBuffer buffer;
static VkDeviceMemory memory;
static unsigned char* mapped;

static void vulkan(const char* what, VkResult result) {
    if (result == VK_SUCCESS) return;
    fprintf(stderr, "c_static: %s returned %d\n", what, (int)result);
    exit(1);
}

static void check(const char* what, vkrope_result result, const vkrope_error* error) {
    if (result == VKROPE_SUCCESS) return;
    fprintf(stderr, "c_static: %s: %s: %s\n", what, vkrope_status_string(result), error->what);
    exit(1);
}

static void make_instance(void) {
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = &application};
    vulkan("vkCreateInstance", vkCreateInstance(&info, NULL, &instance));
    uint32_t one = 1;
    const VkResult found = vkEnumeratePhysicalDevices(instance, &one, &physical);
    if (found != VK_INCOMPLETE)
        vulkan("vkEnumeratePhysicalDevices", one == 1 ? found : VK_ERROR_INITIALIZATION_FAILED);
}

static void make_device(void) {
    vkrope_error error;
    vkrope_requirements needs = {.struct_size = sizeof needs};
    check("vkrope_get_requirements",
          vkrope_get_requirements(instance, physical, vkGetInstanceProcAddr, &needs, &error),
          &error);
    enabled = needs.enabled;
    VkQueueFamilyProperties families[8];
    uint32_t count = 8;
    vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
    while (family < count && !(families[family].queueFlags & VK_QUEUE_COMPUTE_BIT)) ++family;
    if (family == count)
        vulkan("vkGetPhysicalDeviceQueueFamilyProperties", VK_ERROR_FEATURE_NOT_PRESENT);
    const float priority = 1;
    const VkDeviceQueueCreateInfo queues = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queues,
        .enabledExtensionCount = needs.optional_extension_count,
        .ppEnabledExtensionNames = needs.optional_extensions,
    };
    vulkan("vkCreateDevice", vkCreateDevice(physical, &info, NULL, &device));
    vkGetDeviceQueue(device, family, 0, &queue);
}

static void make_buffer(void) {
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = 3 * slot_bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
    };
    vulkan("vkCreateBuffer", vkCreateBuffer(device, &info, NULL, &buffer));
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    VkPhysicalDeviceMemoryProperties offered;
    vkGetPhysicalDeviceMemoryProperties(physical, &offered);
    const VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                         VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    /* Vulkan promises that there is one. */
    while (!(needs.memoryTypeBits >> type & 1) ||
           (offered.memoryTypes[type].propertyFlags & wanted) != wanted)
        ++type;
    const VkMemoryAllocateInfo allocation = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = needs.size,
        .memoryTypeIndex = type,
    };
    vulkan("vkAllocateMemory", vkAllocateMemory(device, &allocation, NULL, &memory));
    vulkan("vkBindBufferMemory", vkBindBufferMemory(device, buffer, memory, 0));
    void* address = NULL;
    vulkan("vkMapMemory", vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &address));
    mapped = address;
}

static VkDescriptorBufferInfo slot(int index, VkDeviceSize bytes) {
    const VkDescriptorBufferInfo info = {buffer, (VkDeviceSize)index * slot_bytes, bytes};
    return info;
}

/* Fills slot 0 with the angles of positions 0 to `position`. */
static vkrope_angle_plan make_table(void) {
    vkrope_error error;
    double inv_freq[pairs];
    check("vkrope_default_inv_freq", vkrope_default_inv_freq(base, head_dim, inv_freq, &error),
          &error);
    const vkrope_rotation_info info = {
        .struct_size = sizeof info,
        .head_dim = head_dim,
        .rotary_dim = head_dim,
        .inv_freq = inv_freq,
        .inv_freq_count = pairs,
    };
    vkrope_rotation* rotation = NULL;
    vkrope_angle_plan plan = {.struct_size = sizeof plan};
    check("vkrope_rotation_create", vkrope_rotation_create(&info, &rotation, &error), &error);
    check("vkrope_plan_angles",
          vkrope_plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, position + 1, 0, &plan, &error),
          &error);
    check("vkrope_fill_angles", vkrope_fill_angles(rotation, &plan, mapped, slot_bytes, &error),
          &error);
    vkrope_rotation_destroy(rotation);
    return plan;
}

static void record(VkCommandBuffer commands, const vkrope_kernel* kernel,
                   const vkrope_angle_plan* plan, vkrope_arena* arena) {
    vkrope_error error;
    vkrope_boundary boundary = {.struct_size = sizeof boundary};
    check("vkrope_get_boundary", vkrope_get_boundary(&boundary, &error), &error);
    const vkrope_tensor in = {
        .struct_size = sizeof in, .where = slot(1, head_dim * sizeof(float)), .heads = 1};
    const vkrope_tensor out = {
        .struct_size = sizeof out, .where = slot(2, head_dim * sizeof(float)), .heads = 1};
    const vkrope_positions positions = {.struct_size = sizeof positions, .first = position};
    const vkrope_angles angles = {
        .struct_size = sizeof angles, .plan = plan, .buffer = slot(0, plan->bytes)};
    const vkrope_call call = {
        .struct_size = sizeof call,
        .tokens = 1,
        .q_in = &in,
        .q_out = &out,
        .positions = &positions,
        .angles = &angles,
    };
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    vulkan("vkBeginCommandBuffer", vkBeginCommandBuffer(commands, &begin));
    check("vkrope_record", vkrope_record(commands, kernel, &call, arena, &error), &error);
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = boundary.output_access,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    vkCmdPipelineBarrier(commands, boundary.stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         NULL, 0, NULL);
    vulkan("vkEndCommandBuffer", vkEndCommandBuffer(commands));
}

static void rotate(const vkrope_kernel* kernel, const vkrope_angle_plan* plan,
                   vkrope_arena* arena) {
    const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                               .queueFamilyIndex = family};
    const VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkCommandPool pool = VK_NULL_HANDLE;
    VkFence fence = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    vulkan("vkCreateCommandPool", vkCreateCommandPool(device, &pool_info, NULL, &pool));
    vulkan("vkCreateFence", vkCreateFence(device, &fence_info, NULL, &fence));
    const VkCommandBufferAllocateInfo allocation = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    vulkan("vkAllocateCommandBuffers", vkAllocateCommandBuffers(device, &allocation, &commands));
    record(commands, kernel, plan, arena);
    const VkSubmitInfo submission = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                     .commandBufferCount = 1,
                                     .pCommandBuffers = &commands};
    const uint64_t ten_seconds = 10000000000u;
    vulkan("vkQueueSubmit", vkQueueSubmit(queue, 1, &submission, fence));
    vulkan("vkWaitForFences", vkWaitForFences(device, 1, &fence, VK_TRUE, ten_seconds));
    vkDestroyFence(device, fence, NULL);
    vkDestroyCommandPool(device, pool, NULL);
}

/* Values further from the definition than the contract's 2.5 units of 2^-24 (|x0| + |x1|). */
static int wrong_values(void) {
    const float* row = (const float*)(const void*)(mapped + slot_bytes);
    const float* rotated = (const float*)(const void*)(mapped + 2 * slot_bytes);
    int wrong = 0;
    for (int j = 0; j < pairs; ++j) {
        const double x0 = row[j], x1 = row[j + pairs],
                     angle = position * pow(base, -2.0 * j / head_dim);
        const double bound = 2.5 * 0x1p-24 * (fabs(x0) + fabs(x1));
        wrong += !(fabs(rotated[j] - (x0 * cos(angle) - x1 * sin(angle))) <= bound);
        wrong += !(fabs(rotated[j + pairs] - (x0 * sin(angle) + x1 * cos(angle))) <= bound);
    }
    return wrong;
}

int main(void) {
    make_instance();
    make_device();
    make_buffer();
    float* row = (float*)(void*)(mapped + slot_bytes);
    for (int i = 0; i < head_dim; ++i) row[i] = (float)(i * 37 % 23) / 4 - 2;
    const vkrope_angle_plan plan = make_table();

    vkrope_error error;
    const vkrope_device_ref ref = {
        .struct_size = sizeof ref,
        .instance = instance,
        .physical = physical,
        .device = device,
        .get_instance_proc_addr = vkGetInstanceProcAddr,
        .enabled = enabled,
    };
    const vkrope_head_format q = {.struct_size = sizeof q, .head_dim = head_dim};
    const vkrope_kernel_info info = {.struct_size = sizeof info,
                                     .rotary_dim = head_dim,
                                     .angles = VKROPE_ANGLES_DIRECT_BUFFER,
                                     .q = &q};
    vkrope_kernel* kernel = NULL;
    vkrope_arena* arena = NULL;
    check("vkrope_kernel_create", vkrope_kernel_create(&ref, &info, &kernel, &error), &error);
    if (!(enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
        check("vkrope_arena_create", vkrope_arena_create(kernel, 1, &arena, &error), &error);
    }
    rotate(kernel, &plan, arena);
    const int wrong = wrong_values();

    vkrope_arena_destroy(arena);
    vkrope_kernel_destroy(kernel);
    vkDestroyBuffer(device, buffer, NULL);
    vkFreeMemory(device, memory, NULL);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    printf("c_static: %d of %d values wrong\n", wrong, head_dim);
    return wrong != 0;
}
