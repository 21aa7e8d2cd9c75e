// SPDX-License-Identifier: MIT
// Vision transformers of timm, against the formulas of its RotaryEmbeddingCat and
// RotaryEmbeddingDinoV3 in long double: a patch of a grid of N turns by its coordinate times
// theta^(-j / n).
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

std::string timm(const std::string& architecture, const std::string& fields) {
    return R"({"architecture": ")" + architecture + R"(", "num_classes": 1000, )" + fields + "}";
}

std::string with_input(const std::string& size) {
    return R"("pretrained_cfg": {"input_size": )" + size + "}";
}

/// The coordinate of timm for patch `i` of `patches`, and the position that the importer names.
struct Patch {
    long double coordinate;
    int position;
};

/// An axis whose patches are at (i + offset) * reference / N; reference 0: at i + offset.
std::vector<Patch> axis_of_grid(int patches, int reference, int offset) {
    std::vector<Patch> axis;
    for (int i = 0; i < patches; ++i) {
        const long double at = i + offset;
        axis.push_back({reference == 0 ? at : at / patches * reference, i + offset});
    }
    return axis;
}

void check_axis(const RopeParams& rotation, std::uint32_t axis, const std::vector<Patch>& patches,
                long double theta) {
    const std::uint32_t n = rotation.head_dim / 4;
    REQUIRE(rotation.inv_freq.size() == 2 * n);
    for (const Patch& patch : patches) {
        for (std::uint32_t j = 0; j < n; ++j) {
            CAPTURE(j);
            const std::uint32_t pair = axis * n + j;
            CHECK(axis_of(rotation.sections, pair) == axis);
            const long double angle = patch.coordinate / std::pow(theta, j / (long double)n);
            CHECK(std::fabs(patch.position * (long double)rotation.inv_freq[pair] - angle) <
                  1e-14L);
        }
    }
}

}  // namespace

TEST_CASE("timm: EVA-02 counts patches in units of its grid of 16 by 16") {
    const RopeParams same = imported(timm("eva02_base_patch14_224", with_input("[3, 224, 224]")));
    CHECK(same.pairing == interleaved);
    CHECK(same.head_dim == 64);
    CHECK(same.inv_freq[0] == 1);
    check_axis(same, 0, axis_of_grid(16, 16, 0), 10000);
    const RopeParams larger = imported(
        timm("eva02_large_patch14_448", with_input("[3, 448, 448]")));
    CHECK(larger.inv_freq[0] == 0.5);
    for (const std::uint32_t axis : {0u, 1u}) {
        check_axis(larger, axis, axis_of_grid(32, 16, 0), 10000);
    }
    CHECK(warns(larger, "row column tokens before"));
    CHECK(warns(larger, "32 32"));
    // rows and columns of an image that is not a square
    const RopeParams wide = imported(timm("eva02_large_patch14_448", with_input("[3, 448, 224]")));
    check_axis(wide, 0, axis_of_grid(32, 16, 0), 10000);
    check_axis(wide, 1, axis_of_grid(16, 16, 0), 10000);
}

TEST_CASE("timm: the Perception Encoder counts from 1, columns first") {
    const RopeParams rotation = imported(
        timm("vit_pe_core_large_patch14_336", with_input("[3, 336, 672]")));
    CHECK(rotation.head_dim == 64);
    check_axis(rotation, 0, axis_of_grid(48, 24, 1), 10000);
    check_axis(rotation, 1, axis_of_grid(24, 24, 1), 10000);
    CHECK(warns(rotation, "column + 1 row + 1"));
    const RopeParams giant = imported(
        timm("vit_pe_core_gigantic_patch14_448", with_input("[3, 448, 448]")));
    CHECK(giant.head_dim == 96);
    check_axis(giant, 0, axis_of_grid(32, 32, 0), 10000);
    CHECK(warns(giant, "column row"));
}

TEST_CASE("timm: RoPE-ViT's axial form has base 100 and no reference grid") {
    for (const char* name : {"vit_base_patch16_rope_224", "vit_small_patch16_rope_ape_224"}) {
        const RopeParams rotation = imported(timm(name, with_input("[3, 384, 384]")));
        CHECK(rotation.pairing == interleaved);
        check_axis(rotation, 1, axis_of_grid(24, 0, 0), 100);
        CHECK(warns(rotation, "column row"));
        CHECK(!warns(rotation, "24 24"));
    }
    for (const char* name :
         {"vit_base_patch16_rope_mixed_224", "vit_large_patch16_rope_mixed_ape_224"}) {
        check_refused({timm(name, with_input("[3, 224, 224]")), name}, VKROPE_ERROR_NOT_SUPPORTED);
    }
}

TEST_CASE("timm: DINOv3 turns as in Hugging Face's file of the same model") {
    const RopeParams rotation = imported(
        timm("vit_large_patch16_dinov3", with_input("[3, 224, 224]")));
    const RopeParams same = imported(model_file("dinov3-vitl16"));
    CHECK(rotation.pairing == same.pairing);
    CHECK(rotation.head_dim == same.head_dim);
    CHECK(rotation.sections == same.sections);
    REQUIRE(rotation.inv_freq.size() == same.inv_freq.size());
    for (std::size_t pair = 0; pair < same.inv_freq.size(); ++pair) {
        CHECK(close(rotation.inv_freq[pair], same.inv_freq[pair]));
    }
    CHECK(warns(rotation, "2 row + 1 - 14 2 column + 1 - 14"));
    CHECK(imported(timm("vit_7b_patch16_dinov3", with_input("[3, 256, 256]"))).head_dim == 128);
}

TEST_CASE("timm: what the file does not say or contradicts is named") {
    check_refused({timm("resnet50", with_input("[3, 224, 224]")), "architecture resnet50"},
                  VKROPE_ERROR_NOT_SUPPORTED);
    const std::string name = "eva02_base_patch14_448";
    for (const Bad& bad : {
             Bad{timm(name, R"("num_features": 768)"), "pretrained_cfg.input_size"},
             Bad{timm(name, with_input("448")), "pretrained_cfg.input_size 3"},
             Bad{timm(name, with_input("[3, 448]")), "pretrained_cfg.input_size 3"},
             Bad{timm(name, with_input("[3, 13, 448]")), "pretrained_cfg.input_size[1] 13"},
             Bad{timm(name, with_input("[3, 448, 1e9]")), "pretrained_cfg.input_size[2]"},
             Bad{timm(name, R"("model_args": 7)"), "model_args 7"},
         }) {
        check_refused(bad, VKROPE_ERROR_INVALID_DATA);
    }
    check_refused(
        {timm(name, R"("model_args": {"rope_temperature": 50}, )" + with_input("[3, 448, 448]")),
         "model_args.rope_temperature 50"},
        VKROPE_ERROR_NOT_SUPPORTED);
    const std::string good = timm(name, with_input("[3, 448, 448]"));
    CHECK(imported(good, {.tower = "vision"}).inv_freq == imported(good).inv_freq);
    CHECK(imported(good, {.pairing = half}).pairing == half);
    CHECK(from_hf_config(good, {.by_layer = true, .layer = 1}).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
}
