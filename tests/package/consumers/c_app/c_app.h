/* SPDX-License-Identifier: MIT */
/* What the parts of the program share: a rotation of four channels, how a kernel and a buffer are
   made, and how results are judged. */
#ifndef C_APP_H
#define C_APP_H

#include <vkrope/vkrope.h>

enum { head_dim = 4, pairs = head_dim / 2, position = 7 };
static const double base = 10000.0;

/* The rotation of the whole head row, half_split. */
int make_rotation(vkrope_rope_params* rotation);

/* A kernel, and where the device has no push descriptors an arena for `dispatches` dispatches; else
 * *arena stays as it is. */
int make_kernel(const vkrope_device_ref* device, const vkrope_kernel_info* info,
                uint32_t dispatches, vkrope_kernel** kernel, vkrope_arena** arena);

/* A buffer that holds `content`. */
int make_buffer(vkrope_device* device, const void* content, size_t bytes, vkrope_buffer** buffer);

/* Whether `rotated` is `row` at `position`, within 6 u (|x0| + |x1|): the bound of a factored
 * texture. */
int is_rotated(const char* what, const float* row, const float* rotated);

/* 1 for success; otherwise says what failed, and in which words. */
int succeeded(const char* what, vkrope_result result, const vkrope_error* error);

int use_frequencies(void);
int use_host_memory(vkrope_device* device);
int use_submit(vkrope_device* device);

#endif
