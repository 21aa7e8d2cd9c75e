/* SPDX-License-Identifier: MIT */
/* A decode step of three sequences: from packed rows of Q, K and V, Q goes to a tensor of its own,
   and K and V go to the rows of their caches that slots name, in one dispatch where the device
   binds 8 storage buffers to a stage. */
#include <stdio.h>
#include <string.h>

#include "c_app.h"

enum { sequences = 3, cache_rows = 4, packed_row = 3 * head_dim };

struct work {
    vkrope_kernel* kernel;
    vkrope_arena* arena;
    vkrope_angle_table* table;
    vkrope_buffer *packed, *slot_mapping, *q, *k_cache, *v_cache;
    uint32_t max_dispatches; /* that the call may take on this device */
};

static int make_values_kernel(struct work* w, vkrope_device* device) {
    const vkrope_device_ref ref = *vkrope_device_get_ref(device);
    const PFN_vkGetPhysicalDeviceProperties get =
        (PFN_vkGetPhysicalDeviceProperties)ref.get_instance_proc_addr(
            ref.instance, "vkGetPhysicalDeviceProperties");
    if (!get) return 0;
    VkPhysicalDeviceProperties properties;
    get(ref.physical, &properties);
    /* Q, K and V have two each, and there are slots and a counter. */
    w->max_dispatches = properties.limits.maxPerStageDescriptorStorageBuffers < 8 ? 3 : 1;
    const vkrope_tensor_info row = {.head_dim = head_dim, .heads = 1};
    const vkrope_kernel_info info = {
        .pairing = VKROPE_HALF_SPLIT,
        .rotary_dim = head_dim,
        .tensor = {row, row, row},
        .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
        .scatter_kv = VK_TRUE,
    };
    return make_kernel(&ref, &info, w->max_dispatches, &w->kernel, &w->arena);
}

/* One head of each packed row, from channel `first` on. */
static vkrope_tensor part_of(const struct work* w, uint32_t first) {
    vkrope_tensor part = {.where = vkrope_buffer_whole(w->packed), .heads = 1};
    part.where.offset += first * sizeof(float);
    part.where.range -= first * sizeof(float);
    part.batch_stride = packed_row;
    part.token_stride = packed_row;
    return part;
}

static vkrope_result record(void* user_data, VkCommandBuffer commands, vkrope_error* error) {
    const struct work* w = user_data;
    const vkrope_tensor q = part_of(w, 0), k = part_of(w, head_dim), v = part_of(w, 2 * head_dim);
    const vkrope_tensor q_out = {.where = vkrope_buffer_whole(w->q), .heads = 1};
    const vkrope_tensor k_cache = {.where = vkrope_buffer_whole(w->k_cache), .heads = 1};
    const vkrope_tensor v_cache = {.where = vkrope_buffer_whole(w->v_cache), .heads = 1};
    const vkrope_call call = {
        .batch = sequences,
        .tokens = 1,
        .in = {q, k, v},
        .out = {q_out, k_cache, v_cache},
        .positions = {.first = position, .batch_stride = VKROPE_BROADCAST},
        .angles = *vkrope_angle_table_get(w->table),
        .paged_cache = {.slot_mapping = vkrope_buffer_whole(w->slot_mapping)},
    };
    uint64_t dispatches = 0;
    vkrope_result result = vkrope_get_dispatches(w->kernel, &call, &dispatches, error);
    if (result != VKROPE_SUCCESS) return result;
    if (dispatches > w->max_dispatches) {
        snprintf(error->what, sizeof error->what, "Q, K and V take %u dispatches, of %u",
                 (unsigned)dispatches, (unsigned)w->max_dispatches);
        return VKROPE_ERROR_INTERNAL;
    }
    return vkrope_record(commands, w->kernel, &call, w->arena, error);
}

static int download(vkrope_buffer* buffer, void* target, size_t bytes) {
    vkrope_error error;
    return succeeded("vkrope_buffer_download",
                     vkrope_buffer_download(buffer, target, bytes, 0, &error), &error);
}

static int make_table(struct work* w, vkrope_device* device, const vkrope_rope_params* rotation) {
    vkrope_error error;
    const vkrope_angle_source source = VKROPE_ANGLES_FACTORED_TEXTURE;
    return succeeded("vkrope_angle_table_create",
                     vkrope_angle_table_create(device, rotation, source, 1, &w->table, &error),
                     &error) &&
           succeeded("vkrope_angle_table_reach",
                     vkrope_angle_table_reach(w->table, rotation, position + 1, &error), &error);
}

static int is_same(const char* what, const float* row, const float* expected) {
    if (memcmp(row, expected, head_dim * sizeof(float)) == 0) return 1;
    fprintf(stderr, "%s:", what);
    for (int i = 0; i < head_dim; ++i) fprintf(stderr, " %g, expected %g;", row[i], expected[i]);
    fprintf(stderr, "\n");
    return 0;
}

static int rotate(struct work* w, vkrope_device* device, const vkrope_rope_params* rotation) {
    static const int32_t slots[sequences] = {2, -1,
                                             0}; /* -1: padding, whose K and V are stored nowhere */
    static const float before[head_dim] = {-1, -2, -3, -4};
    float packed[sequences][3][head_dim], cache[cache_rows][head_dim],
        q[sequences][head_dim] = {{0}};
    float k_rows[cache_rows][head_dim], v_rows[cache_rows][head_dim];
    for (int i = 0; i < sequences * packed_row; ++i)
        (&packed[0][0][0])[i] = (float)(i * i % 17 - 8) + 0.25f;
    for (int i = 0; i < cache_rows; ++i) memcpy(cache[i], before, sizeof before);
    int good = make_values_kernel(w, device) && make_table(w, device, rotation);
    good = good && make_buffer(device, packed, sizeof packed, &w->packed);
    good = good && make_buffer(device, slots, sizeof slots, &w->slot_mapping);
    good = good && make_buffer(device, q, sizeof q, &w->q);
    good = good && make_buffer(device, cache, sizeof cache, &w->k_cache);
    good = good && make_buffer(device, cache, sizeof cache, &w->v_cache);
    vkrope_error error;
    good = good && succeeded("vkrope_device_submit",
                             vkrope_device_submit(device, record, w, NULL, &error), &error);
    good = good && download(w->q, q, sizeof q) && download(w->k_cache, k_rows, sizeof k_rows);
    good = good && download(w->v_cache, v_rows, sizeof v_rows);
    for (int i = 0; good && i < sequences; ++i) {
        good = is_rotated("with V, Q", packed[i][0], q[i], 1, FACTORED_BOUND);
        if (slots[i] < 0) continue;
        good = good && is_rotated("with V, K", packed[i][1], k_rows[slots[i]], 1, FACTORED_BOUND) &&
               is_same("V", v_rows[slots[i]], packed[i][2]);
    }
    for (int row = 1; good && row < cache_rows; row += 2) { /* which no slot names */
        good = is_same("K without a slot", k_rows[row], before) &&
               is_same("V without a slot", v_rows[row], before);
    }
    return good;
}

int use_values(vkrope_device* device) {
    struct work w = {0};
    vkrope_rope_params rotation;
    const int good = make_rotation(&rotation) && rotate(&w, device, &rotation);
    vkrope_buffer_destroy(w.v_cache);
    vkrope_buffer_destroy(w.k_cache);
    vkrope_buffer_destroy(w.q);
    vkrope_buffer_destroy(w.slot_mapping);
    vkrope_buffer_destroy(w.packed);
    vkrope_angle_table_destroy(w.table);
    vkrope_arena_destroy(w.arena);
    vkrope_kernel_destroy(w.kernel);
    return good;
}
