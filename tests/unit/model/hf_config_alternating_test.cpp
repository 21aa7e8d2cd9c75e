// SPDX-License-Identifier: MIT
// Axes that alternate between the pairs. Sources: Ernie4_5_VLMoeTextRotaryEmbedding in
// transformers, build_2d_rope in HunyuanImage 3's hunyuan.py.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"
#include "meaning.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

std::string ernie(const std::string& fields = "") {
    return R"({"model_type": "ernie4_5_vl_moe", "text_config": {
              "model_type": "ernie4_5_vl_moe_text", "hidden_size": 2560,
              "num_attention_heads": 20, "rope_parameters": {"rope_type": "default",
              "rope_theta": 500000, "mrope_section": [22, 22, 20]})" +
           fields + "}}";
}

std::string original(const std::string& fields) {
    return R"({"model_type": "ernie4_5_moe_vl", "head_dim": 128, "rope_theta": 500000)" + fields +
           "}";
}

/// The axis that turns each pair, which must turn by the frequency of the pair itself.
std::vector<std::uint32_t> axes_of(const RopeParams& rotation, long double base) {
    const std::size_t pairs = rotation.rotary_dim / 2;
    REQUIRE(rotation.sections.order == VKROPE_SECTIONS_SUM);
    REQUIRE(rotation.sections.axes == 3);
    REQUIRE(rotation.inv_freq.size() == 3 * pairs);
    std::vector<std::uint32_t> axes;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        for (std::uint32_t axis = 0; axis < 3; ++axis) {
            const double frequency = rotation.inv_freq[axis * pairs + pair];
            if (frequency == 0) continue;
            axes.push_back(axis);
            CHECK(close(frequency,
                        double(std::pow(base, -2.0L * (long double)(pair) / (2 * pairs)))));
        }
    }
    CHECK(axes.size() == pairs);
    CHECK(plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 4096, 0));
    return axes;
}

}  // namespace

TEST_CASE("ERNIE 4.5 VL: rows and columns alternate, then the pairs of time") {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t pair = 0; pair < 64; ++pair) {
        expected.push_back(pair < 44 ? 1 + pair % 2 : 0);
    }
    const RopeParams rotation = imported(ernie());
    CHECK(rotation.pairing == interleaved);
    CHECK(rotation.head_dim == 128);
    CHECK(axes_of(rotation, 500000) == expected);
    CHECK(rotation.ops.norms_known);
    CHECK(warns(rotation, "time row column"));
    const RopeParams of_file = imported(original(R"(, "freq_allocation": 20, "rope_3d": true)"));
    CHECK(of_file.inv_freq == rotation.inv_freq);
    CHECK(!warns(of_file, "rope_3d"));
    CHECK(imported(original(R"(, "compression_ratio": 1.0)")).inv_freq == rotation.inv_freq);
    CHECK(warns(imported(original("")), "mrope_section 22 22 20"));
    const RopeParams plain = imported(original(R"(, "rope_3d": false)"));
    CHECK(plain.sections.axes == 0);
    check_plain(plain, 500000);
}

TEST_CASE("ERNIE 4.5 VL: what its code does not do is refused by name") {
    for (const Bad& bad : {
             Bad{original(R"(, "rope_scaling": {"type": "linear", "factor": 2})"),
                 "rope_scaling.rope_type linear"},
             Bad{original(R"(, "compression_ratio": 2)"), "compression_ratio 2"},
         }) {
        check_refused(bad, VKROPE_ERROR_NOT_SUPPORTED);
    }
    for (const Bad& bad : {
             Bad{original(
                     R"(, "rope_scaling": {"type": "default", "mrope_section": [24, 20, 20]})"),
                 "mrope_section 24 20"},
             Bad{original(R"(, "rope_scaling": {"type": "default", "mrope_section": [32, 32]})"),
                 "mrope_section 2"},
             Bad{original(R"(, "freq_allocation": 19)"), "freq_allocation 19 64"},
             Bad{original(R"(, "freq_allocation": 65)"), "freq_allocation 65 64"},
         }) {
        check_refused(bad, VKROPE_ERROR_INVALID_DATA);
    }
}

TEST_CASE("HunyuanImage 3: rows and columns alternate over all pairs") {
    const auto image = [](const std::string& fields) {
        return R"({"model_type": "hunyuan_image_3_moe", "hidden_size": 4096,
                  "num_attention_heads": 32, "attention_head_dim": 128, "rope_theta": 10000,
                  "use_rotary_pos_emb": true, "use_qk_norm": true, "rms_norm_eps": 1e-5,
                  "vae": {"_class_name": "AutoencoderKLConv3D", "scaling_factor": 0.56},
                  "vit": {"hidden_size": 1152, "num_hidden_layers": 27}, )" +
               fields + "}";
    };
    const RopeParams rotation = imported(
        image(R"("rope_scaling": {"type": "custom", "alpha": 1})"));
    CHECK(rotation.pairing == half);
    CHECK(rotation.head_dim == 128);
    check_plain(rotation, 10000);
    CHECK(rotation.sections.order == VKROPE_SECTIONS_SEQUENTIAL);
    REQUIRE(rotation.sections.axes == 2);
    for (std::uint32_t pair = 0; pair < 64; ++pair) {
        CHECK(axis_of(rotation.sections, pair) == pair % 2);
    }
    CHECK(rotation.ops.tensor[Q].norm.kind == VKROPE_NORM_RMS);
    CHECK(rotation.ops.tensor[Q].norm.place == VKROPE_NORM_PLACE_AFTER);
    CHECK(warns(rotation, "row column text"));
    CHECK(!warns(rotation, "vae"));
    CHECK(!warns(rotation, "use_rotary_pos_emb"));
    check_refused({image(R"("rope_scaling": {"type": "of_mine"})"), "rope_scaling.type of_mine"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({image(R"("use_rope": false)"), "use_rope false"}, VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({R"({"model_type": "hunyuan_image_3_moe", "use_rotary_pos_emb": false})",
                   "use_rotary_pos_emb false"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    check_refused({R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4,
                       "rope_scaling": {"type": "custom"}})",
                   "rope_scaling.type custom"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}
