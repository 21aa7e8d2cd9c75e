// SPDX-License-Identifier: MIT
// The steps around the rotation that a GGUF file states. Expected values: what the graphs of
// llama.cpp do, src/models/*.cpp.
#include <doctest/doctest.h>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/model.hpp"

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
    const ModelFinish finish = rotation_of(with_heads("llama")).finish;
    CHECK(finish.q.norm.kind == NormKind::none);
    CHECK(finish.k.norm.kind == NormKind::none);
    CHECK(finish.v.norm.kind == NormKind::none);
    CHECK(finish.q_heads == 32);
    CHECK(finish.k_heads == 8);
}

TEST_CASE("GGUF: the extents of the weights say what a norm spans") {
    const Norm head = rotation_of(with_norms("qwen3", {128}, {128})).finish.q.norm;
    CHECK(head.kind == NormKind::rms);
    CHECK(head.span == NormSpan::head);
    CHECK(head.place == NormPlace::before);
    CHECK(head.weight == ParameterShape::channel);
    CHECK(head.weight_offset == 0);
    CHECK(head.bias == ParameterShape::none);
    CHECK(head.eps == 1e-5f);

    const ModelFinish token = rotation_of(with_norms("olmo2", {4096}, {1024})).finish;
    CHECK(token.q.norm.span == NormSpan::token);
    CHECK(token.q.norm.weight == ParameterShape::head_channel);
    CHECK(token.k.norm.span == NormSpan::token);

    const ModelFinish each = rotation_of(with_norms("command-r", {128, 32}, {128, 8})).finish;
    CHECK(each.q.norm.kind == NormKind::layer);
    CHECK(each.q.norm.span == NormSpan::head);
    CHECK(each.q.norm.weight == ParameterShape::head_channel);
    CHECK(each.q.norm.eps == 1e-3f);
    CHECK(each.k.norm.weight == ParameterShape::head_channel);

    const ModelFinish biased =
        rotation_of(with_norms("chameleon", {128, 32}, {128, 8}, "bias")).finish;
    CHECK(biased.q.norm.bias == ParameterShape::head_channel);
    CHECK(biased.k.norm.bias == ParameterShape::head_channel);
}

TEST_CASE("GGUF: no norm and a norm that is not known are two answers") {
    const auto known = [](const GgufBuilder& file, const ModelQuery& query = {}) {
        return rotation_of(file, query).finish.norms_known;
    };
    CHECK_FALSE(known(with_heads("llama")));  // a file without tensors of layers, or a part of one
    GgufBuilder layer = with_heads("llama");
    layer.tensor_of("blk.3.attn_q.weight", {4096, 4096}, f32_tensor, 0);
    CHECK(known(layer));
    CHECK(known(layer, {.layer = 3}));
    CHECK_FALSE(known(layer, {.layer = 2}));
    CHECK(known(with_norms("qwen3", {128}, {128})));
    CHECK_FALSE(known(with_norms("qwen3", {96}, {128})));
    const Rotation unknown = rotation_of(with_norms("of_mine", {128}, {128}),
                                         {.pairing = Pairing::half_split});
    CHECK_FALSE(unknown.finish.norms_known);
    CHECK(unknown.finish.q.norm.kind == NormKind::none);
    CHECK(warns(unknown, "blk.0.attn_q_norm.weight not known"));
}

TEST_CASE("GGUF: what an architecture does differently") {
    CHECK(rotation_of(with_norms("hunyuan_vl", {128}, {128})).finish.q.norm.place ==
          NormPlace::after);
    CHECK(rotation_of(with_norms("maincoder", {128}, {128})).finish.q.norm.place ==
          NormPlace::after);
    CHECK(rotation_of(with_norms("hunyuan-moe", {128}, {128})).finish.k.norm.place ==
          NormPlace::after);
    const Norm v = rotation_of(with_norms("gemma3n", {128}, {128})).finish.v.norm;
    CHECK(v.kind == NormKind::rms);
    CHECK(v.weight == ParameterShape::none);
    CHECK(rotation_of(with_norms("gemma3", {128}, {128})).finish.v.norm.kind == NormKind::none);

    GgufBuilder clamped = with_heads("dbrx");
    clamped.f32("attention.clamp_kqv", 8);
    CHECK(rotation_of(clamped).finish.v.clip == 8);
    CHECK(rotation_of(with_heads("dbrx")).finish.q.clip == 0);

    // Llama 4: layers that rotate have a norm, every fourth one scales its queries.
    const GgufBuilder four = with_heads("llama4");
    const ModelFinish first = rotation_of(four, {.layer = 0}).finish,
                      fourth = rotation_of(four, {.layer = 3}).finish;
    CHECK(first.q.norm.kind == NormKind::rms);
    CHECK(first.q.norm.place == NormPlace::after);
    CHECK(first.q.norm.weight == ParameterShape::none);
    CHECK(first.query_scale.kind == QueryScaling::none);
    CHECK(fourth.q.norm.kind == NormKind::none);
    CHECK(fourth.query_scale.kind == QueryScaling::llama4);
    CHECK(fourth.q.scale_tokens);
    GgufBuilder maverick = four;
    maverick.u32("expert_count", 128);
    CHECK(rotation_of(maverick, {.layer = 0}).finish.q.norm.kind == NormKind::none);

    GgufBuilder mistral = with_heads("mistral3");
    mistral.f32("attention.temperature_scale", 0.1f)
        .u32("rope.scaling.original_context_length", 16384);
    const QueryScale scale = rotation_of(mistral).finish.query_scale;
    CHECK(scale.kind == QueryScaling::ministral3);
    CHECK(scale.length == 16384);
}

TEST_CASE("GGUF: norms belong to the layer that the query names") {
    const GgufBuilder file = with_norms("qwen3", {128}, {128}, "weight", "2");
    CHECK(rotation_of(file).finish.q.norm.kind == NormKind::rms);
    CHECK(rotation_of(file, {.layer = 2}).finish.q.norm.kind == NormKind::rms);
    CHECK(rotation_of(file, {.layer = 1}).finish.q.norm.kind == NormKind::none);
}

TEST_CASE("GGUF: other tensors with such names are not norms of a layer") {
    for (const char* layer : {"", "10000", "0.x", "-1"}) {
        CAPTURE(layer);
        const GgufBuilder file = with_norms("qwen3", {128}, {128}, "weight", layer);
        CHECK(rotation_of(file).finish.q.norm.kind == NormKind::none);
    }
}

TEST_CASE("GGUF: a norm of another width is left out, and the file says why") {
    for (const std::vector<std::uint64_t>& extents :
         {std::vector<std::uint64_t>{64}, {4095}, {128, 31}, {}, {128, 32, 2}, {0}}) {
        CAPTURE(extents.size());
        const Rotation rotation = rotation_of(with_norms("qwen3", extents, {128}));
        CHECK(rotation.finish.q.norm.kind == NormKind::none);
        CHECK(rotation.finish.k.norm.kind == NormKind::none);
        CHECK(warns(rotation, "blk.0.attn_q_norm.weight"));
    }
    CHECK(warns(rotation_of(with_norms("qwen3", {128}, {128}, "bias")), "blk.0.attn_q_norm.bias"));
}

TEST_CASE("GGUF: wrong numbers of the finish are refused by name") {
    const auto refused = [](const GgufBuilder& file, const char* words) {
        check_error(read(file).status, Code::invalid_data, words);
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
