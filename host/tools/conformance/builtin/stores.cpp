// SPDX-License-Identifier: MIT
// Checks outputs of every quantised type, byte for byte, and Hadamard transforms: on both mappings,
// at any byte offset, and to slots.
#include <limits>

#include "base/meaning.hpp"
#include "conformance/builtin/every_way.hpp"
#include "verify/definition.hpp"
#include "verify/oracle/code_edges.hpp"

namespace vkrope::conformance {
namespace {

// Returns zeros, ties, tiny and huge numbers, an infinity and a NaN, in 32 channels each, and then
// the values at the edges of every code.
Bytes extreme_rows(Element out) {
    std::vector<float> rows;
    for (const float fill :
         {0.f, -0.f, 0.5f, 2.5f, 1e-42f, -3e-39f, 3.4e38f, -1e30f,
          std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
        for (std::uint32_t c = 0; c < 32; ++c)
            rows.push_back(c % 4 == 1 ? fill : (float(c) - 16) * 0.5f);
    const oracle::Store store = verify::store_of(out);
    const std::vector<float> edges = oracle::code_edges(
        store, 1.25f * oracle::largest_for_ties(store), false);
    rows.insert(rows.end(), edges.begin(), edges.end());
    return bytes_of(rows);
}

}  // namespace

void add_stores(Checks& checks) {
    struct Stored {
        Element out;
        StoreScale scale = VKROPE_STORE_SCALE_NONE;
    };
    // Each kernel tests three types or scales, because a kernel takes seconds to compile.
    const struct {
        const char* name;
        Stored of[3];
    } kernels[] = {
        {"q4_0_q4_1_q8_0", {{VKROPE_Q4_0}, {VKROPE_Q4_1}, {VKROPE_Q8_0}}},
        {"q5_0_e4m3fn_e5m2", {{VKROPE_Q5_0}, {VKROPE_E4M3FN}, {VKROPE_E5M2}}},
        {"q5_1_int8_made",
         {{VKROPE_Q5_1}, {VKROPE_E4M3FN, VKROPE_STORE_SCALE_MADE}, {VKROPE_INT8}}},
        {"powers_of_two_and_given",
         {{VKROPE_E5M2, VKROPE_STORE_SCALE_MADE_POWER_OF_TWO},
          {VKROPE_E4M3FN, VKROPE_STORE_SCALE_GIVEN},
          {VKROPE_INT8, VKROPE_STORE_SCALE_MADE_POWER_OF_TWO}}},
    };
    for (const auto& kernel : kernels) {
        checks.add(
            kernel.name,
            [=](Test& test) {
                // 62 channels of Q and K, and all channels of V, are not rotated.
                Trial trial = three_alike(VKROPE_F32, VKROPE_F32, 64, 2);
                for (const TensorIndex which : every_tensor) {
                    trial.info.tensor[which].out = kernel.of[which].out;
                    trial.info.tensor[which].ops.store_scale = kernel.of[which].scale;
                }
                std::array<Bytes, 3> rows;
                for (const TensorIndex which : every_tensor) {
                    fill_rows(trial, extreme_rows(kernel.of[which].out));
                    rows[which] = trial.rows[which];
                }
                trial.rows = rows;
                run_every_way(test, trial);
            });
    }
    checks.add(
        "in_every_way",
        [](Test& test) {
            Trial trial = three_alike(VKROPE_BF16, VKROPE_INT8, usual_head_dim, usual_head_dim);
            trial.info.tensor[Q].ops = {.hadamard = 32,
                                        .store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD};
            trial.info.tensor[K].ops = {.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f},
                                        .store_scale = VKROPE_STORE_SCALE_MADE};
            trial.info.tensor[V].out = VKROPE_Q5_1;
            run_every_way(test, trial);
        });
    checks.add("hadamard", [](Test& test) {
        struct Blocks {
            std::uint32_t head_dim, of[3];
        };
        for (const auto& [head_dim, of] : {Blocks{512, {512, 32, 4}}, {10, {2, 2, 2}}}) {
            Trial trial = three_alike(VKROPE_BF16, VKROPE_F32, head_dim, 4, 2);
            for (const TensorIndex which : every_tensor) {
                trial.info.tensor[which].ops.hadamard = of[which];
            }
            run_every_way(test, trial);
        }
    });
}

}  // namespace vkrope::conformance
