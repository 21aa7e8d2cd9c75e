/* SPDX-License-Identifier: MIT */
/* The way between: kernel, tensors and calls of our own; table, command buffer and waiting the
   library's. The table is a texture. */
#include <stdio.h>
#include <string.h>

#include "c_app.h"

struct work {
    vkrope_kernel* kernel;
    vkrope_arena* arena;
    vkrope_angle_table* table;
    vkrope_buffer* row;
};

static int make(struct work* w, vkrope_device* device, const vkrope_rope_params* rotation,
                const float* row, size_t bytes) {
    vkrope_error error;
    const vkrope_kernel_info info = {.pairing = VKROPE_HALF_SPLIT,
                                     .rotary_dim = head_dim,
                                     .tensor[VKROPE_K].head_dim = head_dim,
                                     .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    return make_kernel(vkrope_device_get_ref(device), &info, 1, &w->kernel, &w->arena) &&
           succeeded("vkrope_angle_table_create",
                     vkrope_angle_table_create(device, rotation, info.angles, position + 1,
                                               &w->table, &error),
                     &error) &&
           make_buffer(device, row, bytes, &w->row);
}

static vkrope_result record(void* user_data, VkCommandBuffer commands, vkrope_error* error) {
    const struct work* w = user_data;
    const vkrope_tensor row = {.where = vkrope_buffer_whole(w->row), .heads = 1};
    const vkrope_call call = {
        .tokens = 1,
        .in[VKROPE_K] = row,
        .out[VKROPE_K] = row,
        .positions = {.first = position},
        .angles = *vkrope_angle_table_get(w->table),
    };
    return vkrope_record(commands, w->kernel, &call, w->arena, error);
}

/* A callback that fails: nothing is submitted, and its words come back. */
static vkrope_result refuse(void* user_data, VkCommandBuffer commands, vkrope_error* error) {
    (void)user_data;
    (void)commands;
    strcpy(error->what, "not today");
    return VKROPE_ERROR_LIMIT_EXCEEDED;
}

static int rotate(struct work* w, vkrope_device* device, const float* row, size_t bytes) {
    float rotated[head_dim] = {0};
    double nanoseconds = 0;
    vkrope_error error;
    if (vkrope_device_submit(device, refuse, NULL, NULL, &error) != VKROPE_ERROR_LIMIT_EXCEEDED ||
        error.code != VKROPE_ERROR_LIMIT_EXCEEDED || strcmp(error.what, "not today") != 0) {
        fprintf(stderr, "a refused submission came back as: %s\n", error.what);
        return 0;
    }
    return succeeded("vkrope_device_submit",
                     vkrope_device_submit(device, record, w, &nanoseconds, &error), &error) &&
           succeeded("vkrope_buffer_download",
                     vkrope_buffer_download(w->row, rotated, bytes, 0, &error), &error) &&
           is_rotated("submit, in place", row, rotated);
}

int use_submit(vkrope_device* device) {
    const float row[head_dim] = {4, -3, 2, 1};
    struct work w = {0};
    vkrope_rope_params rotation;
    const int good = make_rotation(&rotation) && make(&w, device, &rotation, row, sizeof row) &&
                     rotate(&w, device, row, sizeof row);
    vkrope_buffer_destroy(w.row);
    vkrope_angle_table_destroy(w.table);
    vkrope_arena_destroy(w.arena);
    vkrope_kernel_destroy(w.kernel);
    return good;
}
