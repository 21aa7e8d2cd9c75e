// SPDX-License-Identifier: MIT
// The norms, the clip and the query scale that config.json implies for each class of models, and
// the kernel that one call makes of them.
#include <doctest/doctest.h>

#include <string>

#include "support/names.hpp"
#include "vkrope/model.hpp"

using namespace vkrope;

namespace {

Rotation read(const std::string& fields, const ModelQuery& query = {}) {
    const std::string json = R"({"hidden_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 8,
        "max_position_embeddings": 4096, "rope_theta": 10000.0, )" +
                             fields + "}";
    auto rotation = from_hf_config(json, query);
    REQUIRE_MESSAGE(rotation, rotation.status.what);
    return std::move(rotation.value);
}

ModelFinish finish_of(const std::string& fields, const ModelQuery& query = {}) {
    return read(fields, query).finish;
}

void check_norm(const Norm& norm, NormKind kind, NormSpan span, NormPlace place, float eps,
                ParameterShape weight, std::uint32_t offset = 0,
                ParameterShape bias = ParameterShape::none) {
    CHECK(norm.kind == kind);
    CHECK(norm.span == span);
    CHECK(norm.place == place);
    CHECK(norm.eps == eps);
    CHECK(norm.weight == weight);
    CHECK(norm.weight_offset == offset);
    CHECK(norm.bias == bias);
}

constexpr auto rms = NormKind::rms, layer = NormKind::layer, none = NormKind::none;
constexpr auto head = NormSpan::head, token = NormSpan::token;
constexpr auto before = NormPlace::before, after = NormPlace::after;
constexpr auto channel = ParameterShape::channel, each_head = ParameterShape::head_channel,
               no_weight = ParameterShape::none;

}  // namespace

TEST_CASE("finish of a model: rms norms of head rows") {
    ModelFinish finish = finish_of(R"("model_type": "qwen3", "rms_norm_eps": 1e-5)");
    check_norm(finish.q.norm, rms, head, before, 1e-5f, channel);
    check_norm(finish.k.norm, rms, head, before, 1e-5f, channel);
    CHECK(finish.v.norm.kind == none);
    CHECK(finish.q_heads == 8);
    CHECK(finish.k_heads == 2);
    finish = finish_of(R"("model_type": "qwen3_moe")");
    CHECK(finish.q.norm.eps == 1e-6f);
    finish = finish_of(R"("model_type": "gemma3_text")");
    check_norm(finish.q.norm, rms, head, before, 1e-6f, channel, 1);
    finish = finish_of(R"("model_type": "gemma3n_text")");
    check_norm(finish.k.norm, rms, head, before, 1e-6f, channel);
    check_norm(finish.v.norm, rms, head, before, 1e-6f, no_weight);
    CHECK(finish_of(R"("model_type": "llama")").q.norm.kind == none);
    CHECK(finish_of(R"("model_type": "qwen2")").q.norm.kind == none);
}

TEST_CASE("finish of a model: norms that a key asks for") {
    CHECK(finish_of(R"("model_type": "glm4_moe")").q.norm.kind == none);
    CHECK(finish_of(R"("model_type": "glm4_moe", "use_qk_norm": true)").q.norm.kind == rms);
    CHECK(finish_of(R"("model_type": "minimax_m2")").q.norm.span == token);
    CHECK(finish_of(R"("model_type": "minimax_m2", "use_qk_norm": false)").q.norm.kind == none);
}

TEST_CASE("finish of a model: norms over all heads of a token, and what they clip") {
    ModelFinish finish = finish_of(R"("model_type": "olmo2")");
    check_norm(finish.q.norm, rms, token, before, 1e-5f, each_head);
    finish = finish_of(R"("model_type": "olmoe", "clip_qkv": 8.0)");
    check_norm(finish.k.norm, rms, token, before, 1e-5f, each_head);
    CHECK(finish.q.clip == 8);
    CHECK(finish.v.clip == 8);
    finish = finish_of(R"("model_type": "olmo", "clip_qkv": 8.0)");
    CHECK(finish.q.norm.kind == none);
    CHECK(finish.k.clip == 8);
    CHECK(finish_of(R"("model_type": "llama", "clip_qkv": 8.0)").k.clip == 0);
}

TEST_CASE("finish of a model: norms after the rotation") {
    check_norm(finish_of(R"("model_type": "hunyuan_v1_dense")").q.norm, rms, head, after, 1e-5f,
               channel);
    const std::string llama4 =
        R"("model_type": "llama4_text", "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0])";
    ModelFinish finish = finish_of(llama4, {.layer = 0});
    check_norm(finish.q.norm, rms, head, after, 1e-5f, no_weight);
    CHECK(finish.query_scale.kind == QueryScaling::none);
    finish = finish_of(llama4, {.layer = 3});
    CHECK(finish.q.norm.kind == none);
    CHECK(finish.query_scale.kind == QueryScaling::llama4);
    CHECK(finish.query_scale.length == 8192);
    CHECK(finish.query_scale.beta == 0.1);
    CHECK(finish.q.scale_tokens);
    CHECK_FALSE(finish.k.scale_tokens);
}

TEST_CASE("finish of a model: layer norms") {
    check_norm(finish_of(R"("model_type": "cohere", "use_qk_norm": true)").q.norm, layer, head,
               before, 1e-5f, each_head);
    CHECK(finish_of(R"("model_type": "cohere")").q.norm.kind == none);
    check_norm(finish_of(R"("model_type": "chameleon", "rms_norm_eps": 1e-3)").k.norm, layer, head,
               before, 1e-5f, each_head, 0, each_head);
    check_norm(finish_of(R"("model_type": "persimmon")").k.norm, layer, head, before, 1e-5f,
               channel, 0, channel);
}

TEST_CASE("finish of a model: scales of queries by position") {
    const QueryScale scale = finish_of(R"("model_type": "ministral3", "rope_parameters": {
        "rope_type": "yarn", "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "rope_theta": 10000.0, "original_max_position_embeddings": 16384,
        "llama_4_scaling_beta": 0.1})")
                                 .query_scale;
    CHECK(scale.kind == QueryScaling::ministral3);
    CHECK(scale.length == 16384);
    CHECK(scale.beta == 0.1);
    const QueryScale logn = finish_of(R"("model_type": "qwen", "use_logn_attn": true,
                                         "seq_length": 2048)")
                                .query_scale;
    CHECK(logn.kind == QueryScaling::logn);
    CHECK(logn.length == 2048);
}

TEST_CASE("finish of a model: a bad eps is an error that names it") {
    const auto rotation = from_hf_config(R"({"model_type": "qwen3", "hidden_size": 512,
        "num_attention_heads": 8, "head_dim": 64, "rope_theta": 10000.0, "rms_norm_eps": 0})");
    test::check_error(rotation.status, Code::invalid_data, "rms_norm_eps 0");
}

TEST_CASE("finish of a model: one call makes its kernel") {
    const Rotation rotation = read(R"("model_type": "gemma3n_text")");
    const auto plan = plan_angles(rotation, AngleSource::by_default, 4096, 16384);
    REQUIRE(plan);
    auto info = kernel_info(rotation, plan.value, Element::bf16, Element::bf16, Element::f16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->q_finish.norm.weight == channel);
    CHECK(info->v_finish.norm.kind == rms);
    CHECK(info->v == HeadFormat{Element::f16, Element::f16, 64, 0});
    CHECK(info->q_heads == 8);
    CHECK(info->v_heads == 2);
    const auto parameters = plan_parameters(info.value);
    REQUIRE_MESSAGE(parameters, parameters.status.what);
    CHECK(parameters->bytes == 2 * 64 * 4);
    info = kernel_info(rotation, plan.value, Element::bf16, std::nullopt, std::nullopt);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->k_finish.norm.kind == none);
    CHECK(info->v.head_dim == 0);
    // Without V, too.
    info = kernel_info(rotation, plan.value, Element::bf16, Element::bf16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->q_finish.norm.kind == rms);
    CHECK(info->k_finish.norm.weight == channel);
    CHECK(info->k_heads == 2);
    CHECK(info->v_finish.norm.kind == none);
    CHECK(info->v_heads == 0);
}
