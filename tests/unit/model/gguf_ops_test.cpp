// SPDX-License-Identifier: MIT
// The steps around the rotation that a GGUF file states. Expected values: what the graphs of
// llama.cpp do, src/models/*.cpp.
#include <doctest/doctest.h>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

constexpr std::uint32_t f32_tensor = 0;

/// A model of 32 query heads and 8 key heads of 128 channels.
GgufBuilder with_heads(const char* architecture) {
    GgufBuilder file = plain(architecture);
    file.u32("attention.head_count", 32)
        .u32("attention.head_count_kv", 8)
        .f32("attention.layer_norm_rms_epsilon", 1e-5f)
        .f32("attention.layer_norm_epsilon", 1e-3f);
    return file;
}

/// The same with weights of this many channels for Q and K in a layer.
GgufBuilder with_norms(const char* architecture, const std::vector<std::uint64_t>& q,
                       const std::vector<std::uint64_t>& k, const char* what = "weight",
                       const char* layer = "0") {
    GgufBuilder file = with_heads(architecture);
    const std::string prefix = std::string("blk.") + layer + ".attn_";
    file.tensor_of(prefix + "q_norm.weight", q, f32_tensor, 0)
        .tensor_of(prefix + "k_norm.weight", k, f32_tensor, 0);
    if (what == std::string("bias"))
        file.tensor_of(prefix + "q_norm.bias", q, f32_tensor, 0)
            .tensor_of(prefix + "k_norm.bias", k, f32_tensor, 0);
    return file;
}

}  // namespace

TEST_CASE("GGUF: a file without weights of norms has no norm") {
    const ModelOps ops = rotation_of(with_heads("llama")).ops;
    CHECK(ops.tensor[Q].norm.kind == VKROPE_NORM_NONE);
    CHECK(ops.tensor[K].norm.kind == VKROPE_NORM_NONE);
    CHECK(ops.tensor[V].norm.kind == VKROPE_NORM_NONE);
    CHECK(ops.q_heads == 32);
    CHECK(ops.k_heads == 8);
}

TEST_CASE("GGUF: the extents of the weights say what a norm spans") {
    const Norm head = rotation_of(with_norms("qwen3", {128}, {128})).ops.tensor[Q].norm;
    CHECK(head.kind == VKROPE_NORM_RMS);
    CHECK(head.span == VKROPE_NORM_SPAN_HEAD);
    CHECK(head.place == VKROPE_NORM_PLACE_BEFORE);
    CHECK(head.weight == VKROPE_PARAMETER_CHANNEL);
    CHECK(head.weight_offset == 0);
    CHECK(head.bias == VKROPE_PARAMETER_NONE);
    CHECK(head.eps == 1e-5f);

    const ModelOps token = rotation_of(with_norms("olmo2", {4096}, {1024})).ops;
    CHECK(token.tensor[Q].norm.span == VKROPE_NORM_SPAN_TOKEN);
    CHECK(token.tensor[Q].norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL);
    CHECK(token.tensor[K].norm.span == VKROPE_NORM_SPAN_TOKEN);

    const ModelOps each = rotation_of(with_norms("command-r", {128, 32}, {128, 8})).ops;
    CHECK(each.tensor[Q].norm.kind == VKROPE_NORM_LAYER);
    CHECK(each.tensor[Q].norm.span == VKROPE_NORM_SPAN_HEAD);
    CHECK(each.tensor[Q].norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL);
    CHECK(each.tensor[Q].norm.eps == 1e-3f);
    CHECK(each.tensor[K].norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL);

    const ModelOps biased = rotation_of(with_norms("chameleon", {128, 32}, {128, 8}, "bias")).ops;
    CHECK(biased.tensor[Q].norm.bias == VKROPE_PARAMETER_HEAD_CHANNEL);
    CHECK(biased.tensor[K].norm.bias == VKROPE_PARAMETER_HEAD_CHANNEL);
}

TEST_CASE("GGUF: no norm and a norm that is not known are two answers") {
    const auto known = [](const GgufBuilder& file, const ModelQuery& query = {}) {
        return rotation_of(file, query).ops.norms_known;
    };
    CHECK_FALSE(known(with_heads("llama")));  // a file without tensors of layers, or a part of one
    GgufBuilder layer = with_heads("llama");
    layer.tensor_of("blk.3.attn_q.weight", {4096, 4096}, f32_tensor, 0);
    CHECK(known(layer));
    CHECK(known(layer, {.by_layer = true, .layer = 3}));
    CHECK_FALSE(known(layer, {.by_layer = true, .layer = 2}));
    CHECK(known(with_norms("qwen3", {128}, {128})));
    CHECK_FALSE(known(with_norms("qwen3", {96}, {128})));
    const RopeParams unknown = rotation_of(with_norms("of_mine", {128}, {128}),
                                           {.pairing = VKROPE_HALF_SPLIT});
    CHECK_FALSE(unknown.ops.norms_known);
    CHECK(unknown.ops.tensor[Q].norm.kind == VKROPE_NORM_NONE);
    CHECK(warns(unknown, "blk.0.attn_q_norm.weight unknown"));
}

TEST_CASE("GGUF: what an architecture does differently") {
    CHECK(rotation_of(with_norms("hunyuan_vl", {128}, {128})).ops.tensor[Q].norm.place ==
          VKROPE_NORM_PLACE_AFTER);
    CHECK(rotation_of(with_norms("maincoder", {128}, {128})).ops.tensor[Q].norm.place ==
          VKROPE_NORM_PLACE_AFTER);
    CHECK(rotation_of(with_norms("hunyuan-moe", {128}, {128})).ops.tensor[K].norm.place ==
          VKROPE_NORM_PLACE_AFTER);
    const Norm v = rotation_of(with_norms("gemma3n", {128}, {128})).ops.tensor[V].norm;
    CHECK(v.kind == VKROPE_NORM_RMS);
    CHECK(v.weight == VKROPE_PARAMETER_NONE);
    CHECK(rotation_of(with_norms("gemma3", {128}, {128})).ops.tensor[V].norm.kind ==
          VKROPE_NORM_NONE);

    GgufBuilder clamped = with_heads("dbrx");
    clamped.f32("attention.clamp_kqv", 8);
    CHECK(rotation_of(clamped).ops.tensor[V].clip == 8);
    CHECK(rotation_of(with_heads("dbrx")).ops.tensor[Q].clip == 0);

    // Llama 4: layers that rotate have a norm, every fourth one scales its queries.
    const GgufBuilder four = with_heads("llama4");
    const ModelOps first = rotation_of(four, {.by_layer = true, .layer = 0}).ops,
                   fourth = rotation_of(four, {.by_layer = true, .layer = 3}).ops;
    CHECK(first.tensor[Q].norm.kind == VKROPE_NORM_RMS);
    CHECK(first.tensor[Q].norm.place == VKROPE_NORM_PLACE_AFTER);
    CHECK(first.tensor[Q].norm.weight == VKROPE_PARAMETER_NONE);
    CHECK(first.query_scale.kind == VKROPE_QUERY_SCALING_NONE);
    CHECK(fourth.tensor[Q].norm.kind == VKROPE_NORM_NONE);
    CHECK(fourth.query_scale.kind == VKROPE_QUERY_SCALING_LLAMA4);
    CHECK(fourth.tensor[Q].scale_tokens);
    GgufBuilder maverick = four;
    maverick.u32("expert_count", 128);
    CHECK(rotation_of(maverick, {.by_layer = true, .layer = 0}).ops.tensor[Q].norm.kind ==
          VKROPE_NORM_NONE);

    GgufBuilder mistral = with_heads("mistral3");
    mistral.f32("attention.temperature_scale", 0.1f)
        .u32("rope.scaling.original_context_length", 16384);
    const QueryScale scale = rotation_of(mistral).ops.query_scale;
    CHECK(scale.kind == VKROPE_QUERY_SCALING_MINISTRAL3);
    CHECK(scale.length == 16384);
}

TEST_CASE("GGUF: norms belong to the layer that the query names") {
    const GgufBuilder file = with_norms("qwen3", {128}, {128}, "weight", "2");
    CHECK(rotation_of(file).ops.tensor[Q].norm.kind == VKROPE_NORM_RMS);
    CHECK(rotation_of(file, {.by_layer = true, .layer = 2}).ops.tensor[Q].norm.kind ==
          VKROPE_NORM_RMS);
    CHECK(rotation_of(file, {.by_layer = true, .layer = 1}).ops.tensor[Q].norm.kind ==
          VKROPE_NORM_NONE);
}

TEST_CASE("GGUF: other tensors with such names are not norms of a layer") {
    for (const char* layer : {"", "10000", "0.x", "-1"}) {
        CAPTURE(layer);
        const GgufBuilder file = with_norms("qwen3", {128}, {128}, "weight", layer);
        CHECK(rotation_of(file).ops.tensor[Q].norm.kind == VKROPE_NORM_NONE);
    }
}

TEST_CASE("GGUF: a norm of another width is left out, and the file says why") {
    for (const std::vector<std::uint64_t>& extents :
         {std::vector<std::uint64_t>{64}, {4095}, {128, 31}, {}, {128, 32, 2}, {0}}) {
        CAPTURE(extents.size());
        const RopeParams rotation = rotation_of(with_norms("qwen3", extents, {128}));
        CHECK(rotation.ops.tensor[Q].norm.kind == VKROPE_NORM_NONE);
        CHECK(rotation.ops.tensor[K].norm.kind == VKROPE_NORM_NONE);
        CHECK(warns(rotation, "blk.0.attn_q_norm.weight"));
    }
    CHECK(warns(rotation_of(with_norms("qwen3", {128}, {128}, "bias")), "blk.0.attn_q_norm.bias"));
}

TEST_CASE("GGUF: wrong numbers of the ops are refused by name") {
    const auto refused = [](const GgufBuilder& file, const char* words) {
        check_error(read(file).status, VKROPE_ERROR_INVALID_DATA, words);
    };
    GgufBuilder no_eps = plain("qwen3");
    no_eps.tensor_of("blk.0.attn_q_norm.weight", {128}, f32_tensor, 0);
    refused(no_eps, "qwen3.attention.layer_norm_rms_epsilon");
    GgufBuilder large = no_eps;
    large.f32("attention.layer_norm_rms_epsilon", 2);
    refused(large, "qwen3.attention.layer_norm_rms_epsilon 2 1e-20 1");
    GgufBuilder twice = with_norms("qwen3", {128}, {128});
    twice.tensor_of("blk.0.attn_q_norm.weight", {128}, f32_tensor, 0);
    refused(twice, "blk.0.attn_q_norm.weight");
    GgufBuilder negative = with_heads("dbrx");
    negative.f32("attention.clamp_kqv", -1);
    refused(negative, "dbrx.attention.clamp_kqv -1");
}
