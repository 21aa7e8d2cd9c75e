/* SPDX-License-Identifier: MIT */
/* The short way: tensors in host memory, everything else the library's. */
#include <stdio.h>
#include <string.h>

#include "c_app.h"

static int rotate(vkrope_host_rotation* work) {
    const float q[head_dim] = {1, 2, 3, 4}, k[head_dim] = {-0.5f, 0.25f, 8, -1},
                v[2 * head_dim] = {7, -6, 5, -4, 3, -2, 1, 0};
    float rotated_q[head_dim] = {0}, rotated_k[head_dim] = {0}, same_v[2 * head_dim] = {0};
    double nanoseconds = 0;
    vkrope_error error;
    const size_t q_bytes = vkrope_host_rotation_bytes(work, VKROPE_Q),
                 k_bytes = vkrope_host_rotation_bytes(work, VKROPE_K);
    const size_t v_bytes = vkrope_host_rotation_bytes(work, VKROPE_V);
    if (q_bytes != sizeof q || k_bytes != sizeof k || v_bytes != sizeof v) {
        fprintf(stderr, "q has %zu bytes, k %zu, v %zu\n", q_bytes, k_bytes, v_bytes);
        return 0;
    }
    if (vkrope_host_rotation_upload(work, q, k, NULL, &error) != VKROPE_ERROR_INVALID_ARGUMENT) {
        fprintf(stderr, "vkrope_host_rotation_upload takes no V where there is one\n");
        return 0;
    }
    return succeeded("vkrope_host_rotation_upload",
                     vkrope_host_rotation_upload(work, q, k, v, &error), &error) &&
           succeeded("vkrope_host_rotation_run",
                     vkrope_host_rotation_run(work, NULL, &nanoseconds, &error), &error) &&
           succeeded("vkrope_host_rotation_download",
                     vkrope_host_rotation_download(work, rotated_q, rotated_k, same_v, &error),
                     &error) &&
           is_rotated("host memory, q", q, rotated_q) &&
           is_rotated("host memory, k", k, rotated_k) && memcmp(v, same_v, sizeof v) == 0;
}

/* As a decoder does: made for position 0, run at another one. */
static int rotate_elsewhere(vkrope_host_rotation* work) {
    const float q[head_dim] = {1, 2, 3, 4}, k[head_dim] = {-0.5f, 0.25f, 8, -1};
    float rotated_q[head_dim] = {0}, rotated_k[head_dim] = {0};
    vkrope_error error;
    vkrope_host_run run = {.first_position = position};
    if (vkrope_host_rotation_run(work, &run, NULL, &error) != VKROPE_ERROR_INVALID_ARGUMENT) {
        fprintf(stderr, "vkrope_host_rotation_run takes a first_position without moves\n");
        return 0;
    }
    run.moves = VK_TRUE;
    return succeeded("vkrope_host_rotation_upload",
                     vkrope_host_rotation_upload(work, q, k, NULL, &error), &error) &&
           succeeded("vkrope_host_rotation_run", vkrope_host_rotation_run(work, &run, NULL, &error),
                     &error) &&
           succeeded("vkrope_host_rotation_download",
                     vkrope_host_rotation_download(work, rotated_q, rotated_k, NULL, &error),
                     &error) &&
           is_rotated("moved, q", q, rotated_q) && is_rotated("moved, k", k, rotated_k);
}

int use_host_memory(vkrope_device* device) {
    vkrope_rope_params rotation;
    vkrope_host_rotation* work = NULL;
    vkrope_error error;
    vkrope_host_shape shape = {
        .tokens = 1,
        .heads = {1, 1, 2},
        .first_position = position,
    };
    const int good =
        make_rotation(&rotation) &&
        succeeded("vkrope_host_rotation_create",
                  vkrope_host_rotation_create(device, &rotation, &shape, &work, &error), &error) &&
        rotate(work);
    vkrope_host_rotation_destroy(work);
    work = NULL;
    shape.first_position = 0;
    shape.heads[VKROPE_V] = 0;
    const int moved =
        good &&
        succeeded("vkrope_host_rotation_create",
                  vkrope_host_rotation_create(device, &rotation, &shape, &work, &error), &error) &&
        rotate_elsewhere(work);
    vkrope_host_rotation_destroy(work);
    return moved;
}
