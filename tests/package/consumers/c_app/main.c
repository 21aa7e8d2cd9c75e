/* SPDX-License-Identifier: MIT */
/* Every tier from C: c_app [--validation]. VKROPE_DEVICE names the device; without it, it is the
 * best one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_app.h"

int succeeded(const char* what, vkrope_result result, const vkrope_error* error) {
    if (result == VKROPE_SUCCESS) return 1;
    fprintf(stderr, "%s: %s: %s\n", what, vkrope_status_string(result), error->what);
    return 0;
}

int make_rotation(vkrope_rope_params* rotation) {
    static double inv_freq[pairs];
    vkrope_error error;
    *rotation = (vkrope_rope_params){
        .pairing = VKROPE_HALF_SPLIT,
        .head_dim = head_dim,
        .rotary_dim = head_dim,
        .inv_freq = inv_freq,
        .inv_freq_count = pairs,
    };
    return succeeded("vkrope_default_inv_freq",
                     vkrope_default_inv_freq(base, head_dim, inv_freq, &error), &error);
}

int make_kernel(const vkrope_device_ref* device, const vkrope_kernel_info* info,
                uint32_t dispatches, vkrope_kernel** kernel, vkrope_arena** arena) {
    vkrope_error error;
    if (!succeeded("vkrope_kernel_create", vkrope_kernel_create(device, info, kernel, &error),
                   &error))
        return 0;
    if (device->enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return 1;
    return succeeded("vkrope_arena_create", vkrope_arena_create(*kernel, dispatches, arena, &error),
                     &error);
}

int make_buffer(vkrope_device* device, const void* content, size_t bytes, vkrope_buffer** buffer) {
    vkrope_error error;
    return succeeded("vkrope_buffer_create", vkrope_buffer_create(device, bytes, buffer, &error),
                     &error) &&
           succeeded("vkrope_buffer_upload",
                     vkrope_buffer_upload(*buffer, content, bytes, 0, &error), &error);
}

int is_rotated(const char* what, const float* row, const float* rotated) {
    for (int j = 0; j < pairs; ++j) {
        const double x0 = row[j], x1 = row[j + pairs];
        const double angle = position * pow(base, -2.0 * j / head_dim);
        const double c = cos(angle), s = sin(angle);
        const double expected[2] = {x0 * c - x1 * s, x0 * s + x1 * c};
        const double bound = 6 * 0x1p-24 * (fabs(x0) + fabs(x1));
        for (int i = 0; i < 2; ++i) {
            const double got = rotated[j + i * pairs];
            if (fabs(got - expected[i]) <= bound) continue;
            fprintf(stderr, "%s: channel %d is %.9g, expected %.9g within %.3g\n", what,
                    j + i * pairs, got, expected[i], bound);
            return 0;
        }
    }
    printf("%s: %.4f %.4f %.4f %.4f\n", what, rotated[0], rotated[1], rotated[2], rotated[3]);
    return 1;
}

static void count_errors(void* user_data, VkBool32 is_error, const char* id, const char* text) {
    fprintf(stderr, "%s: %s: %s\n", is_error ? "error" : "warning", id, text);
    if (is_error) ++*(int*)user_data;
}

static int list_devices(const vkrope_device_options* options) {
    vkrope_error error;
    vkrope_device_list* list = NULL;
    int good = succeeded("vkrope_device_list_create",
                         vkrope_device_list_create(options, &list, &error), &error);
    uint32_t count = 0;
    const vkrope_device_info* devices = vkrope_device_list_get(list, &count);
    for (uint32_t i = 0; i < count; ++i)
        printf("%u: %s, %s, %s%s\n", i, devices[i].name, devices[i].driver, devices[i].uuid,
               devices[i].suitable ? "" : " (not suitable)");
    vkrope_device_list_destroy(list);
    return good;
}

/* The tiers that need a device, on one that is opened for them. */
static int use_device(vkrope_device_options options) {
    vkrope_error error;
    vkrope_device* device = NULL;
    int validation_errors = 0;
    options.on_message = count_errors;
    options.user_data = &validation_errors;
    int good = succeeded("vkrope_device_open", vkrope_device_open(&options, &device, &error),
                         &error);
    if (good)
        printf("%s, %s\n", vkrope_device_get_info(device)->name,
               options.no_push_descriptors ? "descriptor sets" : "push descriptors if it has them");
    good = good && use_host_memory(device) && use_submit(device);
    vkrope_device_destroy(device);
    return good && validation_errors == 0;
}

int main(int argc, char** argv) {
    /* Before 1.0, another minor version may be another interface. */
    if (vkrope_version() >> 12 != VKROPE_VERSION >> 12) {
        fprintf(stderr, "compiled for another version of the library\n");
        return 1;
    }
    vkrope_device_options options = {.select = getenv("VKROPE_DEVICE")};
    options.validation = argc > 1 && strcmp(argv[1], "--validation") == 0;
    if (!use_frequencies() || !list_devices(&options) || !use_device(options)) return 1;
    options.no_push_descriptors = VK_TRUE;
    return use_device(options) ? 0 : 1;
}
