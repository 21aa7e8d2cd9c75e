// SPDX-License-Identifier: MIT
// Diffusion transformers of diffusers, against the formulas of their classes in long double.
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

/// A window of `width` channels with frequencies theta^(-2j / width) for each axis.
void check_axes(const RopeParams& rotation, const std::vector<std::uint32_t>& widths,
                long double theta) {
    REQUIRE(rotation.sections.axes == widths.size());
    std::size_t pair = 0;
    for (std::uint32_t axis = 0; axis < widths.size(); ++axis) {
        for (std::uint32_t j = 0; j < widths[axis] / 2; ++j, ++pair) {
            CAPTURE(pair);
            REQUIRE(pair < rotation.inv_freq.size());
            CHECK(axis_of(rotation.sections, std::uint32_t(pair)) == axis);
            CHECK(
                close(rotation.inv_freq[pair], double(std::pow(theta, -2.0L * j / widths[axis]))));
        }
    }
    CHECK(rotation.inv_freq.size() == pair);
    CHECK(rotation.rotary_dim == 2 * pair);
    CHECK(rotation.head_dim == 2 * pair);
    CHECK(rotation.rope_type == "default");
    CHECK(rotation.attention_factor == 1);
    CHECK(plan_angles(rotation, VKROPE_ANGLES_COMPUTED, 4096, 0));
}

}  // namespace

TEST_CASE("diffusers: a window of frequencies for each axis of ids") {
    struct Known {
        const char* file;
        std::vector<std::uint32_t> widths;
        long double theta;
        Pairing pairing;
        const char* positions;
    };
    const Known known[] = {
        {"diffusers-flux", {16, 56, 56}, 10000, interleaved, "id 0 row column"},
        {"diffusers-flux2", {32, 32, 32, 32}, 2000, interleaved, "image row column text token"},
        {"diffusers-hunyuan-video", {16, 56, 56}, 256, interleaved, "frame row column"},
        {"diffusers-qwen-image", {16, 56, 56}, 10000, interleaved, "row - ceil(rows / 2)"},
        {"diffusers-z-image", {32, 48, 48}, 256, interleaved, "text token row column"},
        {"diffusers-wan", {44, 42, 42}, 10000, interleaved, "frame row column"},
        {"diffusers-lumina2", {32, 32, 32}, 10000, interleaved, "text token row column"},
        {"diffusers-hidream", {64, 32, 32}, 10000, interleaved, "id 0 row column"},
        {"diffusers-kandinsky5", {16, 24, 24}, 10000, interleaved, "frame row column"},
        {"diffusers-cogview4", {64, 64}, 10000, half, "rope_axes_dim[0]"},
        {"diffusers-glm-image", {64, 64}, 10000, half, "row column"},
    };
    for (const Known& one : known) {
        CAPTURE(std::string(one.file));
        const RopeParams rotation = imported(model_file(one.file));
        check_axes(rotation, one.widths, one.theta);
        CHECK(rotation.pairing == one.pairing);
        CHECK(warns(rotation, one.positions));
        CHECK(!warns(rotation, "assuming"));
    }
    CHECK(warns(imported(model_file("diffusers-cogview4")), "text"));
    CHECK(warns(imported(model_file("diffusers-kandinsky5")), "scale_factor"));
}

TEST_CASE("diffusers: Cosmos scales the base of each axis by NTK") {
    const std::string json = model_file("diffusers-cosmos");
    const RopeParams rotation = imported(json);
    CHECK(rotation.pairing == half);
    CHECK(rotation.head_dim == 128);
    CHECK(sections_of(rotation) == std::vector<std::uint32_t>{22, 21, 21});
    CHECK(warns(rotation, "24 / F"));
    REQUIRE(rotation.inv_freq.size() == 64);
    for (int j = 0; j < 22; ++j) {
        const long double base = 10000 * std::pow(2.0L, 44 / 42.0L);
        CHECK(close(rotation.inv_freq[std::size_t(j)], double(std::pow(base, -2.0L * j / 44))));
    }
    for (int j = 0; j < 42; ++j) {
        CHECK(close(rotation.inv_freq[std::size_t(22 + j)],
                    double(std::pow(1e4L, -2.0L * (j % 21) / 42))));
    }
    const std::string without = R"({"_class_name": "CosmosTransformer3DModel"})";
    CHECK(imported(without).inv_freq == rotation.inv_freq);
    CHECK(warns(imported(without), "rope_scale 2 1 1"));
    const std::string head = R"({"_class_name": "CosmosTransformer3DModel", "rope_scale": )";
    check_refused({head + "[1, 2]}", "rope_scale 3"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({head + "[1, 0, 1]}", "rope_scale[1] 0"}, VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("diffusers: what a file leaves out is the default of its class, and said") {
    const RopeParams flux = imported(R"({"_class_name": "FluxTransformer2DModel"})");
    check_axes(flux, {16, 56, 56}, 10000);
    CHECK(warns(flux, "axes_dims_rope"));
    const RopeParams flux2 = imported(R"({"_class_name": "Flux2Transformer2DModel"})");
    check_axes(flux2, {32, 32, 32, 32}, 2000);
    CHECK(warns(flux2, "rope_theta 2000"));
    const RopeParams wan = imported(R"({"_class_name": "WanTransformer3DModel"})");
    check_axes(wan, {44, 42, 42}, 10000);
    CHECK(warns(wan, "attention_head_dim 128"));
    CHECK(warns(imported(R"({"_class_name": "FluxTransformer2DModel", "rope_theta": 5})"),
                "rope_theta"));
    CHECK(imported(model_file("diffusers-flux"), {.pairing = half}).pairing == half);
}

TEST_CASE("diffusers: classes that differ from Flux or Wan by name alone, and Hunyuan's images") {
    for (const char* name : {"LongCatImageTransformer2DModel", "OvisImageTransformer2DModel"}) {
        check_axes(imported(std::string(R"({"_class_name": ")") + name + "\"}"), {16, 56, 56},
                   10000);
    }
    for (const char* name : {"AnyFlowTransformer3DModel", "ChronoEditTransformer3DModel",
                             "SkyReelsV2Transformer3DModel", "WanAnimateTransformer3DModel"}) {
        const RopeParams rotation = imported(std::string(R"({"_class_name": ")") + name +
                                             R"(", "attention_head_dim": 128})");
        check_axes(rotation, {44, 42, 42}, 10000);
        CHECK(rotation.pairing == interleaved);
    }
    for (const char* name :
         {"FluxControlNetModel", "QwenImageControlNetModel", "NucleusMoEImageTransformer2DModel"}) {
        check_axes(imported(std::string(R"({"_class_name": ")") + name + "\"}"), {16, 56, 56},
                   10000);
    }
    for (const char* name :
         {"HunyuanVideoFramepackTransformer3DModel", "MotifVideoTransformer3DModel"}) {
        const RopeParams rotation = imported(std::string(R"({"_class_name": ")") + name + "\"}");
        check_axes(rotation, {16, 56, 56}, 256);
        CHECK(warns(rotation, "text not turned"));
    }
    check_axes(imported(R"({"_class_name": "Krea2Transformer2DModel"})"), {32, 48, 48}, 1000);
    check_axes(imported(R"({"_class_name": "SanaVideoTransformer3DModel"})"), {40, 36, 36}, 10000);
    const RopeParams reference = imported(
        R"({"_class_name": "WanAnimate2Transformer3DModel", "dim": 5120, "num_heads": 40})");
    check_axes(reference, {44, 42, 42}, 10000);
    CHECK(warns(reference, "refer_offset_t refer_stride"));
    CHECK(imported(R"({"_class_name": "CosmosControlNetModel"})").inv_freq ==
          imported(R"({"_class_name": "CosmosTransformer3DModel"})").inv_freq);
    const RopeParams image = imported(
        R"({"_class_name": "HunyuanImageTransformer2DModel", "rope_axes_dim": [64, 64],
            "rope_theta": 256.0})");
    check_axes(image, {64, 64}, 256);
    CHECK(warns(image, "row column"));
}

TEST_CASE("diffusers: CogVideoX turns where its file says so") {
    for (const std::string name : {"CogVideoXTransformer3DModel", "ConsisIDTransformer3DModel"}) {
        const std::string head = R"({"_class_name": ")" + name + R"(", "attention_head_dim": 64)";
        const RopeParams rotation = imported(head +
                                             R"(, "use_rotary_positional_embeddings": true})");
        check_axes(rotation, {16, 24, 24}, 10000);
        CHECK(rotation.pairing == interleaved);
        CHECK(warns(rotation, "text not turned patch_size_t"));
        CHECK(!warns(rotation, "use_rotary_positional_embeddings"));
        check_refused({head + "}", "use_rotary_positional_embeddings missing " + name},
                      VKROPE_ERROR_NOT_SUPPORTED);
        check_refused({head + R"(, "use_rotary_positional_embeddings": false})",
                       "use_rotary_positional_embeddings false"},
                      VKROPE_ERROR_NOT_SUPPORTED);
    }
    check_refused({R"({"_class_name": "CogVideoXTransformer3DModel", "attention_head_dim": 40,
                       "use_rotary_positional_embeddings": true})",
                   "attention_head_dim 40 16"},
                  VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("diffusers: where the positions of text tokens begin") {
    const auto of = [](const char* name) {
        return imported(R"({"_class_name": ")" + std::string(name) +
                        R"(", "axes_dims_rope": [64, 32, 32]})");
    };
    CHECK(warns(of("FluxTransformer2DModel"), "text token 0 axes"));
    CHECK(warns(of("HiDreamImageTransformer2DModel"), "text token 0 axes"));
    CHECK(warns(of("OvisImageTransformer2DModel"), "text token i 0 i i"));
    CHECK(warns(of("LongCatImageTransformer2DModel"), "row + 512"));
    for (const char* name : {"QwenImageTransformer2DModel", "QwenImageControlNetModel"}) {
        CHECK(warns(of(name), "text token first largest rows / 2 columns / 2 images"));
    }
    const RopeParams layers = imported(
        R"({"_class_name": "QwenImageTransformer2DModel", "use_layer3d_rope": true})");
    CHECK(warns(layers, "use_layer3d_rope true -1"));
    CHECK(!warns(of("QwenImageTransformer2DModel"), "use_layer3d_rope"));
    CHECK(warns(imported(model_file("diffusers-lumina2")), "text tokens 0 image"));
    CHECK(warns(imported(model_file("diffusers-z-image")), "text tokens 1 image 32"));
}

TEST_CASE("diffusers: what is not a rotation by whole positions is named") {
    for (const char* words :
         {"ErnieImageTransformer2DModel plan_cos_sin_cache channel_angles",
          "MochiTransformer3DModel", "FluxPipeline", "SD3ControlNetModel rotary",
          "SanaTransformer2DModel rotary", "ZImageControlNetModel transformer config.json"}) {
        const std::string name = words;
        check_refused({R"({"_class_name": ")" + name.substr(0, name.find(' ')) + "\"}", name},
                      VKROPE_ERROR_NOT_SUPPORTED);
    }
    const auto flux = [](const std::string& fields) {
        return R"({"_class_name": "FluxTransformer2DModel", )" + fields + "}";
    };
    for (const Bad& bad : {
             Bad{flux(R"("axes_dims_rope": 16)"), "axes_dims_rope 16"},
             Bad{flux(R"("axes_dims_rope": [16])"), "axes_dims_rope 2 8"},
             Bad{flux(R"("axes_dims_rope": [16, 55, 57])"), "axes_dims_rope[1] 55"},
             Bad{flux(R"("axes_dims_rope": [16, 0, 56])"), "axes_dims_rope[1] 0"},
             Bad{flux(R"("axes_dims_rope": [16, 56, 56], "attention_head_dim": 64)"),
                 "axes_dims_rope 128 64"},
             Bad{R"({"_class_name": 7})", "_class_name 7"},
             Bad{R"({"_class_name": "HiDreamImageTransformer2DModel"})", "axes_dims_rope"},
             Bad{R"({"_class_name": "CogView4Transformer2DModel", "attention_head_dim": 42})",
                 "attention_head_dim 42 4"},
             Bad{R"({"_class_name": "ZImageTransformer2DModel", "rope_theta": -1})",
                 "rope_theta -1"},
         }) {
        check_refused(bad, VKROPE_ERROR_INVALID_DATA);
    }
    const std::string good = flux(R"("axes_dims_rope": [16, 56, 56])");
    for (const ModelQuery& query :
         {ModelQuery{.by_layer = true, .layer = 3}, ModelQuery{.layer_type = "full_attention"},
          ModelQuery{.tower = "vision"}}) {
        CHECK(from_hf_config(good, query).status.code == VKROPE_ERROR_INVALID_ARGUMENT);
    }
}
