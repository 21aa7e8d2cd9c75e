// SPDX-License-Identifier: MIT
// Checks the axis of each pair of ERNIE 4.5 VL, where rows and columns alternate. Source:
// Ernie4_5_VLMoeTextRotaryEmbedding in transformers.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "vkrope/vkrope.hpp"

using namespace vkrope;

TEST_CASE("ERNIE 4.5 VL: rows and columns alternate, then the pairs of time") {
    const Result<RopeParams> read = from_hf_config(
        R"({"model_type": "ernie4_5_vl_moe", "text_config": {
            "model_type": "ernie4_5_vl_moe_text", "hidden_size": 2560, "num_attention_heads": 20,
            "rope_parameters": {"rope_type": "default", "rope_theta": 500000,
            "mrope_section": [22, 22, 20]}}})");
    REQUIRE_MESSAGE(read, read.status.what);
    const RopeParams& rotation = read.value;
    REQUIRE(rotation.inv_freq.size() == 3 * 64);
    for (std::uint32_t pair = 0; pair < 64; ++pair) {
        CAPTURE(pair);
        const double of_pair = double(std::pow(500000.0L, -2.0L * pair / 128));
        for (std::uint32_t axis = 0; axis < 3; ++axis) {
            const double expected = axis == (pair < 44 ? 1 + pair % 2 : 0) ? of_pair : 0;
            CHECK(std::abs(rotation.inv_freq[axis * 64 + pair] - expected) <= 1e-12 * expected);
        }
    }
    CHECK(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 4096, 0));
}
