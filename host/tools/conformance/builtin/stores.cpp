// SPDX-License-Identifier: MIT
// Outputs of every quantised type, byte for byte, and Hadamard transforms: on both mappings, at any
// byte, and to slots.
#include <limits>

#include "conformance/builtin/every_way.hpp"
#include "meaning.hpp"
#include "verify/definition.hpp"
#include "verify/oracle/code_edges.hpp"

namespace vkrope::conformance {
namespace {

/// Zeros, ties, tiny and huge numbers, an infinity and a NaN in 32 channels each, then every code
/// at its edges.
Bytes extreme_rows(Element out) {
    std::vector<float> rows;
    for (const float fill :
         {0.f, -0.f, 0.5f, 2.5f, 1e-42f, -3e-39f, 3.4e38f, -1e30f,
          std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
        for (std::uint32_t c = 0; c < 32; ++c) {
            rows.push_back(c % 4 == 1 ? fill : (static_cast<float>(c) - 16) * 0.5f);
        }
    }
    const oracle::Store store = verify::store_of(out);
    const std::vector<float> edges = oracle::code_edges(
        store, 1.25f * oracle::largest_for_ties(store), false);
    rows.insert(rows.end(), edges.begin(), edges.end());
    return bytes_of(rows);
}

}  // namespace

void add_stores(Checks& checks) {
    for (const auto& [name, element] : tools::stored_elements) {
        if (!is_quantised(element)) {
            continue;
        }
        const bool scaled = block_channels(element) == 1;
        checks.add(name, [=, out = element](Test& test) {
            // The 20 rows of V, which nothing turns, have room for all.
            Trial trial = three_alike(VKROPE_F32, out, 64, 2);
            fill_rows(trial, extreme_rows(out));
            Ops &k = trial.info.tensor[K].ops, &v = trial.info.tensor[V].ops;
            k.store_scale = scaled ? VKROPE_STORE_SCALE_MADE : VKROPE_STORE_SCALE_NONE;
            run_every_way(test, trial);
            if (scaled) {
                k.store_scale = v.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
                run_every_way(test, trial);
            }
        });
        // Types differ in their codes alone: one with a scale a row and one of blocks is enough.
        checks.add(
            fmt::format("{}_in_every_way", name),
            [=, out = element](Test& test) {
                Trial trial = three_alike(VKROPE_F16, out, usual_head_dim, usual_head_dim);
                trial.info.tensor[Q].ops = {
                    .hadamard = 128,
                    .store_scale = scaled ? VKROPE_STORE_SCALE_GIVEN : VKROPE_STORE_SCALE_NONE};
                trial.info.tensor[K].ops = {
                    .hadamard = 32,
                    .store_scale = scaled ? VKROPE_STORE_SCALE_MADE : VKROPE_STORE_SCALE_NONE};
                trial.info.tensor[V].ops = {.store_scale = scaled ? VKROPE_STORE_SCALE_GIVEN_HEAD
                                                                  : VKROPE_STORE_SCALE_NONE};
                trial.info.tensor[K].ops.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f};
                run_every_way(test, trial);
            },
            element == VKROPE_INT8 || element == VKROPE_Q5_1 ? Level::quick : Level::full);
    }
    checks.add("hadamard", [](Test& test) {
        for (const auto& [head_dim, block] : {std::pair{96u, 32u}, {10u, 2u}, {512u, 512u}}) {
            Trial trial = three_alike(VKROPE_BF16, VKROPE_F32, head_dim, 4, 2);
            for (TensorInfo& info : trial.info.tensor) {
                info.ops.hadamard = block;
            }
            run_every_way(test, trial);
        }
    });
}

}  // namespace vkrope::conformance
