/* SPDX-License-Identifier: MIT */
/* No device: a rotation made of numbers and one read from a model file, and the table of its angles
 * in memory of our own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "c_app.h"

static int check_table(const vkrope_rope_params* rotation) {
    float table[position + 1][pairs][2];
    vkrope_error error;
    vkrope_angle_table_layout plan = {0};
    if (!succeeded("vkrope_plan_angles",
                   vkrope_plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, position + 1, 0, &plan,
                                      &error),
                   &error)) {
        return 0;
    }
    if (plan.bytes != sizeof table) {
        fprintf(stderr, "the plan has %llu bytes, expected %zu\n", (unsigned long long)plan.bytes,
                sizeof table);
        return 0;
    }
    if (!succeeded("vkrope_fill_angles",
                   vkrope_fill_angles(rotation, &plan, table, sizeof table, &error), &error))
        return 0;
    for (int p = 0; p <= position; ++p) {
        for (int j = 0; j < pairs; ++j) {
            const double angle = p * pow(base, -2.0 * j / head_dim);
            /* One rounding to float, and what double arithmetic adds to it. */
            const double bound = 0x1p-25 * (1 + 0x1p-20);
            if (fabs(table[p][j][0] - cos(angle)) > bound ||
                fabs(table[p][j][1] - sin(angle)) > bound) {
                fprintf(stderr, "position %d, pair %d: (%.9g, %.9g)\n", p, j, table[p][j][0],
                        table[p][j][1]);
                return 0;
            }
        }
    }
    return 1;
}

static int check_model(void) {
    static const char json[] =
        "{\"model_type\": \"llama\", \"hidden_size\": 8, \"num_attention_heads\": 2, "
        "\"rope_theta\": 10000.0,"
        " \"max_position_embeddings\": 2048}";
    vkrope_error error;
    vkrope_model* model = NULL;
    const vkrope_rope_params* rotation = NULL;
    int good = succeeded("vkrope_model_from_hf_config",
                         vkrope_model_from_hf_config(json, strlen(json), NULL, &model, &error),
                         &error);
    if (good) rotation = vkrope_model_get_params(model);
    if (good && (rotation->head_dim != head_dim || rotation->inv_freq_count != pairs ||
                 rotation->inv_freq[0] != 1.0)) {
        fprintf(stderr, "the model's rotation has head_dim %u and %zu frequencies\n",
                rotation->head_dim, rotation->inv_freq_count);
        good = 0;
    }
    good = good && check_table(rotation);
    vkrope_model_destroy(model);
    return good;
}

int use_frequencies(void) {
    vkrope_rope_params rotation;
    return make_rotation(&rotation) && check_table(&rotation) && check_model();
}
