// SPDX-License-Identifier: MIT
// GGUF files of an architecture that no table has: what their keys say is read, or named.
#include <doctest/doctest.h>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

constexpr ModelQuery paired = {.pairing = VKROPE_INTERLEAVED};

/// Rows of latent attention, as the converters of llama.cpp write them.
GgufBuilder latent_rows(const char* architecture) {
    GgufBuilder file(architecture);
    file.u32("block_count", 2).u32("context_length", 8192).u32("attention.key_length", 576);
    file.u32("attention.kv_lora_rank", 512).u32("rope.dimension_count", 64);
    return file.f32("rope.freq_base", 10000);
}

}  // namespace

TEST_CASE("GGUF: an unknown architecture with latent attention turns the tails of its rows") {
    GgufBuilder file = latent_rows("nautilus").u32("attention.key_length_mla", 192);
    CHECK(read(file).status.code == VKROPE_ERROR_NOT_SUPPORTED);
    const RopeParams rotation = rotation_of(file, paired);
    CHECK(rotation.head_dim == 64);
    CHECK(rotation.rotary_dim == 64);
    CHECK(rotation.q_rotary_offset == 128);
    CHECK(rotation.k_rotary_offset == 512);
    CHECK(rotation.inv_freq == frequencies(10000, 64));
    CHECK_FALSE(rotation.ops.norms_known);
    CHECK(
        rotation_of(latent_rows("deepseek2").u32("attention.key_length_mla", 192)).ops.norms_known);
    // What YaRN does to its softmax is said by no key.
    file.text("rope.scaling.type", "yarn").f32("rope.scaling.factor", 4);
    file.u32("rope.scaling.original_context_length", 4096);
    CHECK(warns(rotation_of(file, paired), "nautilus YaRN softmax not known"));

    // Older files, whose key_length is the width of a query row.
    GgufBuilder older("nautilus");
    older.u32("attention.key_length", 192).u32("attention.kv_lora_rank", 512);
    CHECK(rotation_of(older.u32("rope.dimension_count", 64), paired).k_rotary_offset == 512);
    CHECK(rotation_of(older, paired).q_rotary_offset == 128);
    // Half of what it needs.
    GgufBuilder widths("nautilus");
    widths.u32("attention.key_length", 576).u32("attention.key_length_mla", 192);
    check_error(read(widths.u32("rope.dimension_count", 64), paired).status,
                VKROPE_ERROR_INVALID_DATA, "nautilus.attention.kv_lora_rank");
    GgufBuilder rank = plain("nautilus").u32("attention.kv_lora_rank", 0);
    CHECK(rotation_of(rank, paired).k_rotary_offset == 0);
    CHECK(rotation_of(rank, paired).rotary_dim == 128);
}

TEST_CASE("GGUF: what is said of an unknown architecture is true of its file") {
    GgufBuilder bases = plain("nautilus").f32("rope.freq_base_swa", 10000);
    bases.u32("attention.sliding_window", 1024).u32("attention.sliding_window_pattern", 4);
    const auto layer = [&](int number) {
        return rotation_of(
            bases,
            {.by_layer = true, .layer = std::uint32_t(number), .pairing = VKROPE_HALF_SPLIT});
    };
    CHECK(layer(0).inv_freq == frequencies(10000, 128));
    CHECK(layer(3).inv_freq == frequencies(500000, 128));
    for (const int number : {0, 3}) {
        CHECK(warns(layer(number), "nautilus unknown"));
        CHECK(!warns(layer(number), "same RoPE"));
    }
    const GgufBuilder axes = plain("nautilus").i32_list("rope.dimension_sections", {24, 20, 20, 0});
    CHECK(warns(rotation_of(axes, paired), "nautilus.rope.dimension_sections unknown not known"));
    CHECK(!warns(rotation_of(axes, paired), "tokens of this architecture"));
    CHECK(warns(rotation_of(plain().i32_list("rope.dimension_sections", {24, 20, 20, 0})),
                "llama.rope.dimension_sections one position"));
}

TEST_CASE("GGUF: a norm of K alone is read whichever layer is asked for") {
    const auto of_k = [](const char* architecture, const char* tensor) {
        GgufBuilder file = plain(architecture);
        file.u32("attention.head_count", 32).f32("attention.layer_norm_rms_epsilon", 1e-5f);
        return file.tensor_of(tensor, {128}, 0, 0);
    };
    for (const char* number : {"0", "2"}) {
        const std::string tensor = "blk." + std::string(number) + ".attn_k_norm.weight";
        const GgufBuilder file = of_k("llama", tensor.c_str());
        for (const ModelQuery& query : {ModelQuery(), ModelQuery{.by_layer = true,
                                                      .layer = std::uint32_t(number[0] - '0')}}) {
            const ModelOps ops = rotation_of(file, query).ops;
            CHECK(ops.tensor[K].norm.kind == VKROPE_NORM_RMS);
            CHECK(ops.tensor[Q].norm.kind == VKROPE_NORM_NONE);
        }
        CHECK(warns(rotation_of(of_k("nautilus", tensor.c_str()), paired), tensor + " unknown"));
    }
}
