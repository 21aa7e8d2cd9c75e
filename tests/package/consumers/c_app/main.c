/* SPDX-License-Identifier: MIT */
/* Uses every tier from C, on a device that vkrope opens: a model file, the table of its angles,
   tensors in host memory, and kernels in a command buffer: a layer without RoPE with second
   destinations, a latent row, a plain row, keys that move in a cache, scales of groups, a ragged
   step with a paged cache. VKROPE_DEVICE names the device; without this variable the program takes
   the best one. Argument: a file, which receives the bytes of the step. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vkrope/vkrope.h>

enum { head_dim = 4, pairs = head_dim / 2, position = 7 };
static const double base = 10000.0;

/* Ends the program unless the call succeeded. */
static void check(vkrope_result result, const char* what, const vkrope_error* error) {
    if (result == VKROPE_SUCCESS) return;
    fprintf(stderr, "%s: %s: %s\n", what, vkrope_status_string(result), error->what);
    exit(1);
}

/* Ends the program with an error message unless the condition is true. */
static void require(int condition, const char* sentence) {
    if (condition) return;
    fprintf(stderr, "%s\n", sentence);
    exit(1);
}

/* Ends the program unless `got` is within `bound` of `exact`. */
static void is_near(const char* what, double got, double exact, double bound) {
    if (fabs(got - exact) <= bound) return;
    fprintf(stderr, "%s: %.9g, expected %.9g within %.3g\n", what, got, exact, bound);
    exit(1);
}

static double angle_of(int at, int pair) {
    return at * pow(base, -2.0 * pair / head_dim);
}

/* Checks `rotated` against `row` at `position`, within 6 u (|x0| + |x1|) for a factored texture. */
static void is_rotated(const char* what, const float* row, const float* rotated) {
    for (int j = 0; j < pairs; ++j) {
        const double x0 = row[j], x1 = row[j + pairs];
        const double c = cos(angle_of(position, j)), s = sin(angle_of(position, j));
        const double bound = 6 * 0x1p-24 * (fabs(x0) + fabs(x1));
        is_near(what, rotated[j], x0 * c - x1 * s, bound);
        is_near(what, rotated[j + pairs], x0 * s + x1 * c, bound);
    }
}

/* Fills a model's angle table in the program's memory, which needs no device. */
static void use_table(const vkrope_rope_params* rotation) {
    float table[position + 1][pairs][2];
    vkrope_error error;
    vkrope_angle_table_layout plan = {0};
    check(vkrope_plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, position + 1, 0, &plan, &error),
          "vkrope_plan_angles", &error);
    require(plan.bytes == sizeof table, "the plan has other bytes than the table");
    check(vkrope_fill_angles(rotation, &plan, table, sizeof table, &error), "vkrope_fill_angles",
          &error);
    /* The bound is one rounding to float, and the errors of double arithmetic. */
    const double bound = 0x1p-25 * (1 + 0x1p-20);
    for (int p = 0; p <= position; ++p) {
        for (int j = 0; j < pairs; ++j) {
            is_near("table, cos", table[p][j][0], cos(angle_of(p, j)), bound);
            is_near("table, sin", table[p][j][1], sin(angle_of(p, j)), bound);
        }
    }
}

/* Rotates tensors in host memory. The rotation is made for position 0 and runs at another one. */
static void use_host_memory(vkrope_device* device, const vkrope_rope_params* rotation) {
    const float q[head_dim] = {1, 2, 3, 4}, k[head_dim] = {-0.5f, 0.25f, 8, -1},
                v[2 * head_dim] = {7, -6, 5, -4, 3, -2, 1, 0};
    float rotated_q[head_dim] = {0}, rotated_k[head_dim] = {0}, same_v[2 * head_dim] = {0};
    double nanoseconds = 0;
    vkrope_error error;
    vkrope_host_rotation* work = NULL;
    const vkrope_host_shape shape = {.tokens = 1, .heads = {1, 1, 2}};
    const vkrope_host_run run = {.moves = VK_TRUE, .first_position = position};
    check(vkrope_host_rotation_create(device, rotation, &shape, &work, &error),
          "vkrope_host_rotation_create", &error);
    require(vkrope_host_rotation_bytes(work, VKROPE_V) == sizeof v, "v has another size");
    require(vkrope_host_rotation_upload(work, q, k, NULL, &error) == VKROPE_ERROR_INVALID_ARGUMENT,
            "vkrope_host_rotation_upload takes no V where there is one");
    check(vkrope_host_rotation_upload(work, q, k, v, &error), "vkrope_host_rotation_upload",
          &error);
    check(vkrope_host_rotation_run(work, &run, &nanoseconds, &error), "vkrope_host_rotation_run",
          &error);
    check(vkrope_host_rotation_download(work, rotated_q, rotated_k, same_v, &error),
          "vkrope_host_rotation_download", &error);
    is_rotated("host memory, q", q, rotated_q);
    is_rotated("host memory, k", k, rotated_k);
    require(memcmp(v, same_v, sizeof v) == 0, "v has changed");
    vkrope_host_rotation_destroy(work);
}

/* Kernels of a device, each for all calls whose infos are equal. */
static struct {
    vkrope_kernel_info info;
    vkrope_kernel* kernel;
} kernels[16];
static size_t kernel_count;

static vkrope_kernel* kernel_of(vkrope_device* device, const vkrope_kernel_info* info) {
    vkrope_error error;
    for (size_t i = 0; i < kernel_count; ++i) {
        if (!vkrope_kernel_info_equal(&kernels[i].info, info)) continue;
        require(vkrope_kernel_info_hash(&kernels[i].info) == vkrope_kernel_info_hash(info),
                "equal infos have other hashes");
        return kernels[i].kernel;
    }
    require(kernel_count < sizeof kernels / sizeof *kernels,
            "there are more kernels than expected");
    kernels[kernel_count].info = *info;
    check(vkrope_kernel_create(vkrope_device_get_ref(device), info, &kernels[kernel_count].kernel,
                               &error),
          "vkrope_kernel_create", &error);
    return kernels[kernel_count++].kernel;
}

struct work {
    const vkrope_kernel* kernel;
    vkrope_arena* arena;
    const vkrope_call* call;
};

static vkrope_result record(void* user_data, VkCommandBuffer commands, vkrope_error* error) {
    const struct work* w = user_data;
    return vkrope_record(commands, w->kernel, w->call, w->arena, error);
}

struct positions_work {
    vkrope_position_kernel* kernel;
    vkrope_arena* arena;
    const vkrope_position_call* call;
};

static vkrope_result record_positions(void* user_data, VkCommandBuffer commands,
                                      vkrope_error* error) {
    const struct positions_work* w = user_data;
    return vkrope_record_positions(commands, w->kernel, w->call, w->arena, error);
}

/* A callback that fails. The library submits nothing and returns the words of the callback. */
static vkrope_result refuse(void* user_data, VkCommandBuffer commands, vkrope_error* error) {
    (void)user_data;
    (void)commands;
    strcpy(error->what, "not today");
    return VKROPE_ERROR_LIMIT_EXCEEDED;
}

/* Records a call with a kernel of its own info; the library submits and waits. */
static void submit(vkrope_device* device, const vkrope_kernel_info* info, const vkrope_call* call) {
    struct work w = {.kernel = kernel_of(device, info), .call = call};
    vkrope_error error;
    uint64_t dispatches = 0;
    const vkrope_device_ref* ref = vkrope_device_get_ref(device);
    check(vkrope_get_dispatches(w.kernel, call, &dispatches, &error), "vkrope_get_dispatches",
          &error);
    if (!(ref->enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        check(vkrope_arena_create(w.kernel, (uint32_t)dispatches, &w.arena, &error),
              "vkrope_arena_create", &error);
    require(
        vkrope_device_submit(device, refuse, NULL, NULL, &error) == VKROPE_ERROR_LIMIT_EXCEEDED &&
            error.code == VKROPE_ERROR_LIMIT_EXCEEDED && strcmp(error.what, "not today") == 0,
        "a refused submission came back otherwise");
    check(vkrope_device_submit(device, record, &w, NULL, &error), "vkrope_device_submit", &error);
    vkrope_arena_destroy(w.arena);
}

/* Where parts of the buffer begin, in bytes: second destinations at multiples of 256. */
enum {
    rows_at = 0,
    k_second_at = 256,
    v_second_at = 512,
    k_cache_at = 768,
    v_cache_at = 1024,
    small_at = 1536, /* slots or weights */
    buffer_bytes = 1792
};
static union {
    unsigned char bytes[buffer_bytes];
    float numbers[buffer_bytes / sizeof(float)];
} host;

/* Uploads `host`, submits the call and downloads. Buffers that the call names get the handle. */
static void submit_host(vkrope_device* device, const vkrope_kernel_info* info, vkrope_call* call) {
    vkrope_error error;
    vkrope_buffer* buffer = NULL;
    check(vkrope_buffer_create(device, sizeof host, &buffer, &error), "vkrope_buffer_create",
          &error);
    const VkBuffer handle = vkrope_buffer_whole(buffer).buffer;
    VkDescriptorBufferInfo* const small[] = {&call->paged_cache.slot_mapping,
                                             &call->paged_cache.source_mapping,
                                             &call->paged_cache.v_slot_mapping,
                                             &call->positions.ids,
                                             &call->parameters,
                                             &call->scales_out[VKROPE_K],
                                             &call->scales_in[VKROPE_K]};
    for (size_t i = 0; i < sizeof small / sizeof *small; ++i)
        if (small[i]->range) small[i]->buffer = handle;
    for (int i = 0; i < VKROPE_TENSORS; ++i) {
        if (call->in[i].heads) call->in[i].where.buffer = call->out[i].where.buffer = handle;
        if (call->second[i].range) call->second[i].buffer = handle;
    }
    check(vkrope_buffer_upload(buffer, &host, sizeof host, 0, &error), "vkrope_buffer_upload",
          &error);
    submit(device, info, call);
    check(vkrope_buffer_download(buffer, &host, sizeof host, 0, &error), "vkrope_buffer_download",
          &error);
    vkrope_buffer_destroy(buffer);
}

/* A layer without RoPE stores K in a cache of q8_0 and V in one of f32, and both packed. Token 0
   has slot 2, token 1 none. */
static void use_layer_without_rope(vkrope_device* device) {
    enum { channels = 32, tokens = 2, slots = 4, slot = 2, row = channels * sizeof(float) };
    const vkrope_rope_params layer = {.head_dim = channels, .no_rope = VK_TRUE};
    const vkrope_element f32 = VKROPE_F32;
    const int32_t slot_mapping[tokens] = {slot, -1};
    float rows[tokens][channels];
    vkrope_error error;
    vkrope_kernel_info info;
    check(vkrope_get_kernel_info(&layer, NULL, NULL, &f32, &f32, &info, &error),
          "vkrope_get_kernel_info", &error);
    info.scatter_kv = VK_TRUE;
    info.tensor[VKROPE_K].out = VKROPE_Q8_0;
    info.tensor[VKROPE_K].second_of = VKROPE_SECOND_RESULT;
    info.tensor[VKROPE_V].second_of = VKROPE_SECOND_INPUT;
    info.tensor[VKROPE_K].heads = info.tensor[VKROPE_V].heads = 1;
    vkrope_call call = {
        .tokens = tokens,
        .in[VKROPE_K] = {.where = {.offset = rows_at, .range = sizeof rows}, .heads = 1},
        .out[VKROPE_K] = {.where = {.offset = k_cache_at, .range = slots * 34}, .heads = 1},
        .out[VKROPE_V] = {.where = {.offset = v_cache_at, .range = slots * row}, .heads = 1},
        .paged_cache.slot_mapping = {.offset = small_at, .range = sizeof slot_mapping},
        .second[VKROPE_K] = {.offset = k_second_at, .range = sizeof rows},
        .second[VKROPE_V] = {.offset = v_second_at, .range = sizeof rows},
    };
    call.in[VKROPE_V] = call.in[VKROPE_K];
    memset(&host, 0, sizeof host);
    for (int i = 0; i < tokens * channels; ++i) /* the largest is 127: q8_0 is exact */
        rows[i / channels][i % channels] = (float)(i % channels ? 37 * i % 253 - 126 : 127) / 64;
    memcpy(host.bytes + rows_at, rows, sizeof rows);
    memcpy(host.bytes + small_at, slot_mapping, sizeof slot_mapping);
    submit_host(device, &info, &call);
    require(memcmp(host.bytes + k_second_at, rows, sizeof rows) == 0, "the packed K differs");
    require(memcmp(host.bytes + v_second_at, rows, sizeof rows) == 0, "the packed V differs");
    unsigned char codes[slots][34] = {0};
    float v[slots][channels] = {0};
    codes[slot][1] = 0x24; /* 1/64 in f16 */
    for (int c = 0; c < channels; ++c) codes[slot][2 + c] = (unsigned char)(int)(rows[0][c] * 64);
    memcpy(v[slot], rows[0], sizeof v[slot]);
    require(memcmp(host.bytes + k_cache_at, codes, sizeof codes) == 0, "the cache of K differs");
    require(memcmp(host.bytes + v_cache_at, v, sizeof v) == 0, "the cache of V differs");
}

/* A latent row in one dispatch, then a plain row in place: 8 channels with a norm, 4 rotated. */
static void use_rotations(vkrope_device* device, const vkrope_rope_params* rotation) {
    enum { normed = 8, channels = normed + head_dim };
    const vkrope_element f32 = VKROPE_F32;
    const float w[normed] = {1, 2, 0.5f, -1, 3, 1.5f, 0.25f, 1},
                row[channels] = {3, -1, 2, 0.5f, -4, 1, 2.5f, -2, 4, -3, 2, 1};
    vkrope_error error;
    vkrope_angle_table* table = NULL;
    check(vkrope_angle_table_create(device, rotation, VKROPE_ANGLES_FACTORED_TEXTURE, position + 1,
                                    &table, &error),
          "vkrope_angle_table_create", &error);
    vkrope_rope_params latent = *rotation;
    latent.k_rotary_offset = normed;
    vkrope_kernel_info info;
    check(vkrope_get_kernel_info(&latent, vkrope_angle_table_get(table)->layout, NULL, &f32, NULL,
                                 &info, &error),
          "vkrope_get_kernel_info", &error);
    info.tensor[VKROPE_K].ops.norm = (vkrope_norm){.kind = VKROPE_NORM_RMS,
                                                   .eps = 1e-6f,
                                                   .weight = VKROPE_PARAMETER_CHANNEL,
                                                   .channels = normed};
    vkrope_parameter_layout plan = {0};
    vkrope_parameter_sources sources = {0};
    sources.tensor[VKROPE_K].weight = (vkrope_parameter_source){w, VKROPE_F32, normed};
    memset(&host, 0, sizeof host);
    check(vkrope_plan_parameters(&info, &plan, &error), "vkrope_plan_parameters", &error);
    check(vkrope_fill_parameters(&plan, &sources, host.bytes + small_at, buffer_bytes - small_at,
                                 &error),
          "vkrope_fill_parameters", &error);
    vkrope_call call = {
        .tokens = 1,
        .in[VKROPE_K] = {.where = {.offset = rows_at, .range = sizeof row}, .heads = 1},
        .positions = {.first = position},
        .angles = *vkrope_angle_table_get(table),
        .parameters = {.offset = small_at, .range = plan.bytes},
    };
    call.out[VKROPE_K] = call.in[VKROPE_K];
    memcpy(host.bytes + rows_at, row, sizeof row);
    submit_host(device, &info, &call);
    double sum = 0;
    for (int c = 0; c < normed; ++c) sum += (double)row[c] * row[c];
    for (int c = 0; c < normed; ++c) {
        const double exact = row[c] * w[c] / sqrt(sum / normed + 1e-6f);
        is_near("norm of a part", host.numbers[c], exact, 8.5 * 0x1p-24 * fabs(exact));
    }
    is_rotated("rotation of a part", row + normed, host.numbers + normed);

    info.tensor[VKROPE_K] = (vkrope_tensor_info){.head_dim = head_dim};
    call.in[VKROPE_K].where.range = call.out[VKROPE_K].where.range = head_dim * sizeof(float);
    call.parameters = (VkDescriptorBufferInfo){0};
    memcpy(host.bytes + rows_at, row, sizeof row);
    submit_host(device, &info, &call);
    is_rotated("submit, in place", row, host.numbers);
    vkrope_angle_table_destroy(table);
}

/* A cache of q8_0 for K, with Hadamard transforms, and of iq4_nl for V: token 0 moves to another
   slot and turns, token 1 stays as it is, token 2 turns in place. Quarter turns exchange the blocks
   of a key; V is copied, to K's slots or, in the cache that the first call has left, to others. */
static void use_moved_keys(vkrope_device* device) {
    enum {
        channels = 64,
        slots = 4,
        k_row = 2 * 34,
        v_row = 2 * 18,
        k_at = k_cache_at,
        v_at = k_at + slots * k_row
    };
    const int32_t to[] = {3, 1, 2}, v_to[] = {0, 3, 2}, from[] = {0, 1, 2}, deltas[] = {1, 0, -1};
    double quarters[channels / 2];
    for (int j = 0; j < channels / 2; ++j) quarters[j] = 1.5707963267948966; /* pi / 2 */
    const vkrope_rope_params rotation = {.pairing = VKROPE_HALF_SPLIT,
                                         .head_dim = channels,
                                         .rotary_dim = channels,
                                         .inv_freq = quarters,
                                         .inv_freq_count = channels / 2};
    const vkrope_element q8_0 = VKROPE_Q8_0, iq4_nl = VKROPE_IQ4_NL;
    vkrope_error error;
    vkrope_angle_table* table = NULL;
    vkrope_kernel_info info;
    check(vkrope_angle_table_create(device, &rotation, VKROPE_ANGLES_FACTORED_TEXTURE, 8, &table,
                                    &error),
          "vkrope_angle_table_create", &error);
    check(vkrope_get_kernel_info(&rotation, vkrope_angle_table_get(table)->layout, NULL, &q8_0,
                                 &iq4_nl, &info, &error),
          "vkrope_get_kernel_info", &error);
    info.positions = VKROPE_POSITIONS_IDS;
    info.gather_kv = info.scatter_kv = VK_TRUE;
    info.tensor[VKROPE_K].ops.hadamard = info.tensor[VKROPE_K].ops.hadamard_of_input = 32;
    vkrope_call call = {
        .tokens = 3,
        .in[VKROPE_K] = {.where = {.offset = k_at, .range = slots * k_row}, .heads = 1},
        .in[VKROPE_V] = {.where = {.offset = v_at, .range = slots * v_row}, .heads = 1},
        .positions.ids = {.offset = small_at, .range = sizeof deltas},
        .angles = *vkrope_angle_table_get(table),
        .gain = VKROPE_GAIN_OMIT,
        .paged_cache = {.slot_mapping = {.offset = small_at + 16, .range = sizeof to},
                        .source_mapping = {.offset = small_at + 32, .range = sizeof from}},
    };
    for (int i = VKROPE_K; i <= VKROPE_V; ++i) call.out[i] = call.in[i];
    /* A row of any bytes keeps them unless it turns; a row that turns has a code of 127 in each
       block, so that the turned block has the same scale. */
    for (int i = 0; i < buffer_bytes; ++i) host.bytes[i] = (unsigned char)(151 * i + i / 7);
    unsigned char* const k = host.bytes + k_at;
    for (int block = 0; block < 2 * slots; ++block) {
        if (block / 2 == 1) continue;
        k[34 * block] = (unsigned char)(29 * block);
        k[34 * block + 1] = 0x2d; /* f16, about 0.07 */
        for (int c = 0; c < 32; ++c)
            k[34 * block + 2 + c] = (unsigned char)(c == 3 ? 127 : (59 * c + block) % 255 - 127);
    }
    memcpy(host.bytes + small_at, deltas, sizeof deltas);
    memcpy(host.bytes + small_at + 16, to, sizeof to);
    memcpy(host.bytes + small_at + 32, from, sizeof from);
    memcpy(host.bytes + small_at + 48, v_to, sizeof v_to);
    unsigned char expected[buffer_bytes], old[k_row];
    memcpy(expected, host.bytes, sizeof expected);
    const size_t before = kernel_count;
    for (int own = 0; own < 2; ++own) {
        for (int t = 0; t < 3; ++t) {
            unsigned char* const row = expected + k_at + k_row * to[t];
            memcpy(old, expected + k_at + k_row * from[t], sizeof old);
            memcpy(row, old, sizeof old);
            for (int block = 0; deltas[t] != 0 && block < 2; ++block) { /* (x0, x1) to (-x1, x0) */
                memcpy(row + 34 * block, old + 34 * !block, 34);
                for (int c = 2; block == (deltas[t] < 0) && c < 34; ++c)
                    row[34 * block + c] = (unsigned char)-row[34 * block + c];
            }
            memmove(expected + v_at + v_row * (own ? v_to : to)[t],
                    expected + v_at + v_row * from[t], v_row);
        }
        submit_host(device, &info, &call);
        require(memcmp(host.bytes, expected, sizeof expected) == 0, "moved keys differ");
        call.paged_cache.v_slot_mapping = (VkDescriptorBufferInfo){.offset = small_at + 48,
                                                                   .range = sizeof v_to};
        info.scatter_kv = 2; /* as true as VK_TRUE */
    }
    require(kernel_count == before + 1, "two calls with equal infos have two kernels");
    vkrope_angle_table_destroy(table);
}

/* Stores a row of int4 with a UE8M0 scale for each 32 channels, and reads it. */
static void use_scales_of_groups(vkrope_device* device) {
    enum { channels = 64, codes = channels / 2 };
    vkrope_kernel_info info = {
        .tensor[VKROPE_K] = {.out = VKROPE_INT4, .head_dim = channels, .heads = 1}};
    vkrope_ops* const ops = &info.tensor[VKROPE_K].ops;
    ops->store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
    ops->store_scale_group = 32;
    ops->scale_type = VKROPE_SCALE_TYPE_UE8M0;
    vkrope_call call = {
        .tokens = 1,
        .in[VKROPE_K] = {.where = {.offset = rows_at, .range = 4 * channels}, .heads = 1},
        .out[VKROPE_K] = {.where = {.offset = k_cache_at, .range = codes}, .heads = 1},
        .scales_out[VKROPE_K] = {.offset = small_at, .range = 4},
    };
    float row[channels];
    unsigned char cache[codes] = {0};
    for (int c = 0; c < channels; ++c) { /* codes times 1/4 and 1/8 */
        const int code = 11 * c % 15 - 7;
        row[c] = (float)code / (c < 32 ? 4 : 8);
        cache[c / 2] |= (unsigned char)((code & 15) << 4 * (c % 2));
    }
    memset(&host, 0, sizeof host);
    memcpy(host.bytes + rows_at, row, sizeof row);
    submit_host(device, &info, &call);
    require(host.bytes[small_at] == 127 - 2 && host.bytes[small_at + 1] == 127 - 3,
            "a scale of a group differs");
    require(memcmp(host.bytes + k_cache_at, cache, sizeof cache) == 0, "a code of a group differs");

    info.tensor[VKROPE_K].in = VKROPE_INT4;
    info.tensor[VKROPE_K].out = VKROPE_F32;
    ops->store_scale = VKROPE_STORE_SCALE_NONE;
    ops->scales_in = VK_TRUE;
    call.scales_in[VKROPE_K] = call.scales_out[VKROPE_K];
    call.scales_out[VKROPE_K] = (VkDescriptorBufferInfo){0};
    const vkrope_tensor rows = call.in[VKROPE_K];
    call.in[VKROPE_K] = call.out[VKROPE_K];
    call.out[VKROPE_K] = rows;
    memset(host.bytes + rows_at, 0xff, sizeof row);
    submit_host(device, &info, &call);
    require(memcmp(host.bytes + rows_at, row, sizeof row) == 0, "a row of groups differs");
}

/* A ragged step of two sequences, 5 tokens in a recording for 8: ids, slots and the number of
   tokens from block tables, then Q in place, K to a paged cache of q8_0 and V to one of f16. The
   engine in Rust does the same. Offsets are in bytes. */
static void use_paged_step(vkrope_device* device, const char* path) {
    enum {
        channels = 64,
        tokens = 8,
        q_heads = 4,
        kv_heads = 2,
        page_size = 8,
        slots = 5 * page_size,
        q_at = 0, /* bytes, as all that follow */
        k_at = q_at + 4 * tokens * q_heads * channels,
        v_at = k_at + 4 * tokens * kv_heads * channels,
        q8_0_at = v_at + 4 * tokens * kv_heads * channels,
        f16_at = 22016,
        cu_seqlens_at = 32256,
        first_ids_at = 32512,
        ids_at = 33024,
        slots_at = 33280,
        count_at = 33536,
        out_of_range_at = 33792,
        angles_at = 34048,
        step_bytes = 35072
    };
    static union {
        unsigned char bytes[step_bytes];
        float numbers[q8_0_at / sizeof(float)];
    } step;
    const int32_t cu_seqlens[] = {0, 3, 3, 5}, first_ids[] = {7, 0, 3};
    const int32_t step_slots[] = {31, 8, 9, 3, 4}, ids[] = {7, 8, 9, 3, 4}, count = 5;
    for (int i = 0; i < step_bytes; ++i) step.bytes[i] = (unsigned char)(151 * i);
    for (int i = 0; i < q8_0_at / 4; ++i) step.numbers[i] = (float)(37 * i % 253 - 126) / 64;
    memcpy(step.bytes + cu_seqlens_at, cu_seqlens, sizeof cu_seqlens);
    memcpy(step.bytes + first_ids_at, first_ids, sizeof first_ids);
    memcpy(step.bytes + slots_at, step_slots, sizeof step_slots);
    memcpy(step.bytes + count_at, &count, sizeof count);
    memset(step.bytes + out_of_range_at, 0, 4);

    double inv_freq[channels / 2];
    const vkrope_rope_params rotation = {.pairing = VKROPE_HALF_SPLIT,
                                         .head_dim = channels,
                                         .rotary_dim = channels,
                                         .inv_freq = inv_freq,
                                         .inv_freq_count = channels / 2};
    const vkrope_element f32 = VKROPE_F32;
    vkrope_error error;
    vkrope_angle_table_layout plan;
    vkrope_kernel_info info;
    check(vkrope_default_inv_freq(base, channels, inv_freq, &error), "vkrope_default_inv_freq",
          &error);
    check(vkrope_plan_angles(&rotation, VKROPE_ANGLES_COMPUTED, 2048, 0, &plan, &error),
          "vkrope_plan_angles", &error);
    check(vkrope_fill_angles(&rotation, &plan, step.bytes + angles_at, step_bytes - angles_at,
                             &error),
          "vkrope_fill_angles", &error);
    check(vkrope_get_kernel_info(&rotation, &plan, &f32, &f32, &f32, &info, &error),
          "vkrope_get_kernel_info", &error);
    info.positions = VKROPE_POSITIONS_IDS;
    info.scatter_kv = info.token_count = VK_TRUE;
    info.tensor[VKROPE_K].out = VKROPE_Q8_0;
    info.tensor[VKROPE_V].out = VKROPE_F16;

    vkrope_buffer* buffer = NULL;
    check(vkrope_buffer_create(device, step_bytes, &buffer, &error), "vkrope_buffer_create",
          &error);
    check(vkrope_buffer_upload(buffer, &step, step_bytes, 0, &error), "vkrope_buffer_upload",
          &error);
    const VkBuffer handle = vkrope_buffer_whole(buffer).buffer;
    const vkrope_position_call positions = {
        .tokens = 5,
        .offsets = {handle, first_ids_at, sizeof first_ids},
        .cu_seqlens = {handle, cu_seqlens_at, sizeof cu_seqlens},
        .sequences = 3,
        .out = {handle, ids_at, sizeof ids},
        .out_of_range = {handle, out_of_range_at, 4},
    };
    struct positions_work w = {.call = &positions};
    const vkrope_device_ref* ref = vkrope_device_get_ref(device);
    check(vkrope_position_kernel_create(ref, &w.kernel, &error), "vkrope_position_kernel_create",
          &error);
    if (!(ref->enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        check(vkrope_position_arena_create(w.kernel, 1, &w.arena, &error),
              "vkrope_position_arena_create", &error);
    check(vkrope_device_submit(device, record_positions, &w, NULL, &error), "vkrope_device_submit",
          &error);
    vkrope_arena_destroy(w.arena);
    vkrope_position_kernel_destroy(w.kernel);

    vkrope_call call = {
        .tokens = tokens,
        .in = {{{handle, q_at, k_at - q_at}, .heads = q_heads},
               {{handle, k_at, v_at - k_at}, .heads = kv_heads},
               {{handle, v_at, q8_0_at - v_at}, .heads = kv_heads}},
        .out = {{{handle, q_at, k_at - q_at}, .heads = q_heads},
                {{handle, q8_0_at, slots * kv_heads * channels / 32 * 34}, .heads = kv_heads},
                {{handle, f16_at, slots * kv_heads * channels * 2}, .heads = kv_heads}},
        .positions.ids = {handle, ids_at, 4 * tokens},
        .angles = {.layout = &plan, .buffer = {handle, angles_at, plan.bytes}},
        .paged_cache = {.slot_mapping = {handle, slots_at, 4 * tokens}, .page_size = page_size},
        .token_count = {handle, count_at, 4},
        .out_of_range = {handle, out_of_range_at, 4},
    };
    submit(device, &info, &call);
    check(vkrope_buffer_download(buffer, &step, step_bytes, 0, &error), "vkrope_buffer_download",
          &error);
    vkrope_buffer_destroy(buffer);
    require(memcmp(step.bytes + ids_at, ids, sizeof ids) == 0, "an id differs");
    require(step.bytes[out_of_range_at] == 0, "a token of the step is out of range");
    FILE* file = path ? fopen(path, "wb") : NULL;
    require(!path || (file && fwrite(&step, step_bytes, 1, file) == 1 && fclose(file) == 0),
            "the file of the step cannot be written");
}

static void count_errors(void* user_data, VkBool32 is_error, const char* id, const char* text) {
    fprintf(stderr, "%s: %s: %s\n", is_error ? "error" : "warning", id, text);
    if (is_error) ++*(int*)user_data;
}

int main(int argc, char** argv) {
    static const char json[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_attention_heads\": 2, "
        "\"rope_theta\": 10000.0, \"max_position_embeddings\": 2048}";
    /* Before 1.0, another minor version may have another interface. */
    require(vkrope_version() >> 12 == VKROPE_VERSION >> 12, "compiled for another version");
    vkrope_error error;
    vkrope_model* model = NULL;
    check(vkrope_model_from_hf_config(json, strlen(json), NULL, &model, &error),
          "vkrope_model_from_hf_config", &error);
    const vkrope_rope_params* rotation = vkrope_model_get_params(model);
    use_table(rotation);
    int errors = 0;
    vkrope_device_options options = {
        .select = getenv("VKROPE_DEVICE"), .on_message = count_errors, .user_data = &errors};
    for (int sets = 0; sets < 2; ++sets) {
        vkrope_device* device = NULL;
        options.no_push_descriptors = sets ? VK_TRUE : VK_FALSE;
        check(vkrope_device_open(&options, &device, &error), "vkrope_device_open", &error);
        printf("%s, %s\n", vkrope_device_get_info(device)->name,
               sets ? "descriptor sets" : "push descriptors if it has them");
        use_host_memory(device, rotation);
        use_layer_without_rope(device);
        use_rotations(device, rotation);
        use_moved_keys(device);
        use_scales_of_groups(device);
        use_paged_step(device, argc > 1 ? argv[1] : NULL);
        while (kernel_count > 0) vkrope_kernel_destroy(kernels[--kernel_count].kernel);
        vkrope_device_destroy(device);
    }
    vkrope_model_destroy(model);
    return errors != 0;
}
