/* SPDX-License-Identifier: MIT */
/* Uses every tier from C, on a device that vkrope opens: a model file, the table of its angles,
   tensors in host memory, and a kernel in a command buffer. VKROPE_DEVICE names the device; without
   this variable the program takes the best one. */
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

struct work {
    vkrope_kernel* kernel;
    vkrope_arena* arena;
    vkrope_angle_table* table;
    vkrope_buffer* row;
};

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

/* A callback that fails. The library submits nothing and returns the words of the callback. */
static vkrope_result refuse(void* user_data, VkCommandBuffer commands, vkrope_error* error) {
    (void)user_data;
    (void)commands;
    strcpy(error->what, "not today");
    return VKROPE_ERROR_LIMIT_EXCEEDED;
}

/* Records a call with a kernel that the program makes; the library submits and waits. */
static void use_submit(vkrope_device* device, const vkrope_rope_params* rotation) {
    const float row[head_dim] = {4, -3, 2, 1};
    float rotated[head_dim] = {0};
    struct work w = {0};
    vkrope_error error;
    const vkrope_kernel_info info = {.pairing = VKROPE_HALF_SPLIT,
                                     .rotary_dim = head_dim,
                                     .tensor[VKROPE_K].head_dim = head_dim,
                                     .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    const vkrope_device_ref* ref = vkrope_device_get_ref(device);
    check(vkrope_kernel_create(ref, &info, &w.kernel, &error), "vkrope_kernel_create", &error);
    if (!(ref->enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        check(vkrope_arena_create(w.kernel, 1, &w.arena, &error), "vkrope_arena_create", &error);
    check(vkrope_angle_table_create(device, rotation, info.angles, position + 1, &w.table, &error),
          "vkrope_angle_table_create", &error);
    check(vkrope_buffer_create(device, sizeof row, &w.row, &error), "vkrope_buffer_create", &error);
    check(vkrope_buffer_upload(w.row, row, sizeof row, 0, &error), "vkrope_buffer_upload", &error);
    require(
        vkrope_device_submit(device, refuse, NULL, NULL, &error) == VKROPE_ERROR_LIMIT_EXCEEDED &&
            error.code == VKROPE_ERROR_LIMIT_EXCEEDED && strcmp(error.what, "not today") == 0,
        "a refused submission came back otherwise");
    check(vkrope_device_submit(device, record, &w, NULL, &error), "vkrope_device_submit", &error);
    check(vkrope_buffer_download(w.row, rotated, sizeof row, 0, &error), "vkrope_buffer_download",
          &error);
    is_rotated("submit, in place", row, rotated);
    vkrope_buffer_destroy(w.row);
    vkrope_angle_table_destroy(w.table);
    vkrope_arena_destroy(w.arena);
    vkrope_kernel_destroy(w.kernel);
}

static void count_errors(void* user_data, VkBool32 is_error, const char* id, const char* text) {
    fprintf(stderr, "%s: %s: %s\n", is_error ? "error" : "warning", id, text);
    if (is_error) ++*(int*)user_data;
}

int main(void) {
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
        use_submit(device, rotation);
        vkrope_device_destroy(device);
    }
    vkrope_model_destroy(model);
    return errors != 0;
}
