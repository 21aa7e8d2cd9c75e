// SPDX-License-Identifier: MIT
// The norms, the clip and the query scale that config.json implies for each class of models, and
// the kernel that one call makes of them.
#include <doctest/doctest.h>

#include <string>

#include "meaning.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;

namespace {

RopeParams read(const std::string& fields, const ModelQuery& query = {}) {
    const std::string json = R"({"hidden_size": 512, "num_attention_heads": 8,
        "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 8,
        "max_position_embeddings": 4096, "rope_theta": 10000.0, )" +
                             fields + "}";
    auto rotation = from_hf_config(json, query);
    REQUIRE_MESSAGE(rotation, rotation.status.what);
    return std::move(rotation.value);
}

ModelOps ops_of(const std::string& fields, const ModelQuery& query = {}) {
    return read(fields, query).ops;
}

void check_norm(const Norm& norm, NormKind kind, NormSpan span, NormPlace place, float eps,
                ParameterShape weight, std::uint32_t offset = 0,
                ParameterShape bias = VKROPE_PARAMETER_NONE) {
    CHECK(norm.kind == kind);
    CHECK(norm.span == span);
    CHECK(norm.place == place);
    CHECK(norm.eps == eps);
    CHECK(norm.weight == weight);
    CHECK(norm.weight_offset == offset);
    CHECK(norm.bias == bias);
}

constexpr auto rms = VKROPE_NORM_RMS, layer = VKROPE_NORM_LAYER, none = VKROPE_NORM_NONE;
constexpr auto head = VKROPE_NORM_SPAN_HEAD, token = VKROPE_NORM_SPAN_TOKEN;
constexpr auto before = VKROPE_NORM_PLACE_BEFORE, after = VKROPE_NORM_PLACE_AFTER;
constexpr auto channel = VKROPE_PARAMETER_CHANNEL, each_head = VKROPE_PARAMETER_HEAD_CHANNEL,
               no_weight = VKROPE_PARAMETER_NONE;

}  // namespace

TEST_CASE("ops of a model: rms norms of head rows") {
    ModelOps ops = ops_of(R"("model_type": "qwen3", "rms_norm_eps": 1e-5)");
    check_norm(ops.tensor[Q].norm, rms, head, before, 1e-5f, channel);
    check_norm(ops.tensor[K].norm, rms, head, before, 1e-5f, channel);
    CHECK(ops.tensor[V].norm.kind == none);
    CHECK(ops.q_heads == 8);
    CHECK(ops.k_heads == 2);
    ops = ops_of(R"("model_type": "qwen3_moe")");
    CHECK(ops.tensor[Q].norm.eps == 1e-6f);
    ops = ops_of(R"("model_type": "gemma3_text")");
    check_norm(ops.tensor[Q].norm, rms, head, before, 1e-6f, channel, 1);
    ops = ops_of(R"("model_type": "gemma3n_text")");
    check_norm(ops.tensor[K].norm, rms, head, before, 1e-6f, channel);
    check_norm(ops.tensor[V].norm, rms, head, before, 1e-6f, no_weight);
    CHECK(ops_of(R"("model_type": "llama")").tensor[Q].norm.kind == none);
    CHECK(ops_of(R"("model_type": "qwen2")").tensor[Q].norm.kind == none);
}

TEST_CASE("ops of a model: norms that a key asks for") {
    CHECK(ops_of(R"("model_type": "glm4_moe")").tensor[Q].norm.kind == none);
    CHECK(ops_of(R"("model_type": "glm4_moe", "use_qk_norm": true)").tensor[Q].norm.kind == rms);
    CHECK(ops_of(R"("model_type": "minimax_m2")").tensor[Q].norm.span == token);
    CHECK(ops_of(R"("model_type": "minimax_m2", "use_qk_norm": false)").tensor[Q].norm.kind ==
          none);
}

TEST_CASE("ops of a model: norms over all heads of a token, and what they clip") {
    ModelOps ops = ops_of(R"("model_type": "olmo2")");
    check_norm(ops.tensor[Q].norm, rms, token, before, 1e-5f, each_head);
    ops = ops_of(R"("model_type": "olmoe", "clip_qkv": 8.0)");
    check_norm(ops.tensor[K].norm, rms, token, before, 1e-5f, each_head);
    CHECK(ops.tensor[Q].clip == 8);
    CHECK(ops.tensor[V].clip == 8);
    ops = ops_of(R"("model_type": "olmo", "clip_qkv": 8.0)");
    CHECK(ops.tensor[Q].norm.kind == none);
    CHECK(ops.tensor[K].clip == 8);
    CHECK(ops_of(R"("model_type": "llama", "clip_qkv": 8.0)").tensor[K].clip == 0);
    CHECK(ops_of(R"("model_type": "mpt", "attn_config": {"rope": true, "clip_qkv": 8.0})")
              .tensor[V]
              .clip == 8);
}

TEST_CASE("ops of a model: norms after the rotation") {
    check_norm(ops_of(R"("model_type": "hunyuan_v1_dense")").tensor[Q].norm, rms, head, after,
               1e-5f, channel);
    const std::string llama4 =
        R"("model_type": "llama4_text", "no_rope_layers": [1, 1, 1, 0, 1, 1, 1, 0])";
    ModelOps ops = ops_of(llama4, {.by_layer = true, .layer = 0});
    check_norm(ops.tensor[Q].norm, rms, head, after, 1e-5f, no_weight);
    CHECK(ops.query_scale.kind == VKROPE_QUERY_SCALING_NONE);
    ops = ops_of(llama4, {.by_layer = true, .layer = 3});
    CHECK(ops.tensor[Q].norm.kind == none);
    CHECK(ops.query_scale.kind == VKROPE_QUERY_SCALING_LLAMA4);
    CHECK(ops.query_scale.length == 8192);
    CHECK(ops.query_scale.beta == 0.1);
    CHECK(ops.tensor[Q].scale_tokens);
    CHECK_FALSE(ops.tensor[K].scale_tokens);
}

TEST_CASE("ops of a model: layer norms") {
    check_norm(ops_of(R"("model_type": "cohere", "use_qk_norm": true)").tensor[Q].norm, layer, head,
               before, 1e-5f, each_head);
    CHECK(ops_of(R"("model_type": "cohere")").tensor[Q].norm.kind == none);
    check_norm(ops_of(R"("model_type": "chameleon", "rms_norm_eps": 1e-3)").tensor[K].norm, layer,
               head, before, 1e-5f, each_head, 0, each_head);
    check_norm(ops_of(R"("model_type": "persimmon")").tensor[K].norm, layer, head, before, 1e-5f,
               channel, 0, channel);
}

TEST_CASE("ops of a model: scales of queries by position") {
    const QueryScale scale = ops_of(R"("model_type": "ministral3", "rope_parameters": {
        "rope_type": "yarn", "factor": 16.0, "beta_fast": 32.0, "beta_slow": 1.0,
        "rope_theta": 10000.0, "original_max_position_embeddings": 16384,
        "llama_4_scaling_beta": 0.1})")
                                 .query_scale;
    CHECK(scale.kind == VKROPE_QUERY_SCALING_MINISTRAL3);
    CHECK(scale.length == 16384);
    CHECK(scale.beta == 0.1);
    const QueryScale logn = ops_of(R"("model_type": "qwen", "use_logn_attn": true,
                                         "seq_length": 2048)")
                                .query_scale;
    CHECK(logn.kind == VKROPE_QUERY_SCALING_LOGN);
    CHECK(logn.length == 2048);
}

TEST_CASE("ops of a model: norms of classes with code of their own") {
    for (const char* type : {"afmoe", "exaone_moe", "hy_v3", "exaone4", "apertus"}) {
        CAPTURE(type);
        const std::string fields = std::string(R"("model_type": ")") + type + '"';
        check_norm(ops_of(fields, {.by_layer = true, .layer = 0}).tensor[Q].norm, rms, head, before,
                   1e-5f, channel);
        check_norm(ops_of(fields + R"(, "rms_norm_eps": 1e-3)", {.by_layer = true, .layer = 0})
                       .tensor[K]
                       .norm,
                   rms, head, before, 1e-3f, channel);
    }
    for (const char* type : {"doge", "laguna", "mellum"}) {
        CAPTURE(type);
        check_norm(ops_of(std::string(R"("model_type": ")") + type + '"').tensor[K].norm, rms, head,
                   before, 1e-6f, channel);
    }
    check_norm(ops_of(R"("model_type": "minimax_m3_vl_text")").tensor[Q].norm, rms, head, before,
               1e-6f, channel, 1);
    check_norm(
        ops_of(R"("model_type": "olmo_hybrid")", {.by_layer = true, .layer = 3}).tensor[Q].norm,
        rms, token, before, 1e-6f, each_head);
    check_norm(ops_of(R"("model_type": "plamo2", "rms_norm_eps": 1e-3)").tensor[K].norm, rms, head,
               before, 1e-6f, each_head);
    const ModelOps ops = ops_of(
        R"("model_type": "deepseek_v4", "compress_ratios": [0, 0, 4, 128, 0, 0, 0, 0],
                     "compress_rope_theta": 160000.0)",
        {.by_layer = true, .layer = 0});
    check_norm(ops.tensor[Q].norm, rms, head, before, 1e-6f, no_weight);
    check_norm(ops.tensor[K].norm, rms, head, before, 1e-6f, channel);
    CHECK(ops.norms_known);
}

TEST_CASE("ops of a model: a class without norms and one whose norms are not known") {
    for (const char* type : {"llama", "mistral", "qwen2", "olmo", "gpt_oss", "cohere2", "phi"}) {
        CAPTURE(type);
        const ModelOps ops = ops_of(std::string(R"("model_type": ")") + type + '"',
                                    {.by_layer = true, .layer = 0});
        CHECK(ops.norms_known);
        CHECK(ops.tensor[Q].norm.kind == none);
    }
    for (const char* fields :
         {R"("model_type": "minicpmv")", R"("model_type": "openelm")", R"("model_type": "of_mine")",
          R"("model_type": "bailing_moe_v2")", R"("partial_rotary_factor": 1.0)",
          R"("model_type": "hf_olmo", "attention_layer_norm": true)",
          R"("model_type": "mpt", "rope": true, "attn_config": {"rope": true, "qk_ln": true})"}) {
        CAPTURE(fields);
        const RopeParams rotation = read(fields);
        CHECK_FALSE(rotation.ops.norms_known);
        CHECK(rotation.ops.tensor[Q].norm.kind == none);
        CHECK(test::warns(rotation, "Q K norms not known"));
    }
    CHECK(ops_of(R"("model_type": "hf_olmo", "attention_layer_norm": false)").norms_known);
    const ModelOps asked = ops_of(R"("model_type": "openelm",
                                           "normalize_qk_projections": true)");
    CHECK(asked.norms_known);
    check_norm(asked.tensor[Q].norm, rms, head, before, 1e-6f, channel);
    CHECK(ops_of(R"("model_type": "openelm", "normalize_qk_projections": false)").norms_known);
    CHECK_FALSE(ModelOps().norms_known);
}

TEST_CASE("ops of a model: a key that asks for norms in another class leaves them not known") {
    for (const char* key : {"use_qk_norm", "qk_layernorm", "normalize_qk_projections", "qk_ln",
                            "attention_layer_norm"}) {
        for (const char* type : {"llama", "qwen2", "gpt_neox", "solar_open", "deepseek_v3"}) {
            CAPTURE(key);
            CAPTURE(type);
            const std::string fields = std::string(R"("model_type": ")") + type +
                                       R"(", "kv_lora_rank": 512, ")" + key + R"(": )";
            const RopeParams rotation = read(fields + "true");
            CHECK_FALSE(rotation.ops.norms_known);
            CHECK(test::warns(rotation, "Q K norms not known"));
            CHECK(read(fields + "false").ops.norms_known);
        }
    }
    CHECK(ops_of(R"("model_type": "qwen3", "use_qk_norm": true)").norms_known);
}

TEST_CASE("ops of a model: norms of vision towers") {
    const ModelOps gemma = ops_of(
        R"("model_type": "gemma4", "vision_config": {"model_type": "gemma4_vision",
                     "hidden_size": 768, "num_attention_heads": 12, "rms_norm_eps": 1e-5})",
        {.tower = "vision"});
    CHECK(gemma.norms_known);
    check_norm(gemma.tensor[Q].norm, rms, head, before, 1e-5f, channel);
    check_norm(gemma.tensor[V].norm, rms, head, before, 1e-5f, no_weight);
    const ModelOps qwen = ops_of(
        R"("model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "num_heads": 16,
                     "model_type": "qwen2_vl"})",
        {.tower = "vision"});
    CHECK(qwen.norms_known);
    CHECK(qwen.tensor[Q].norm.kind == none);
}

TEST_CASE("ops of a model: of diffusers not known, and said; of timm's towers none") {
    for (const char* name : {"FluxTransformer2DModel", "WanTransformer3DModel",
                             "LTXVideoTransformer3DModel", "Kandinsky5Transformer3DModel"}) {
        const auto rotation = from_hf_config(R"({"_class_name": ")" + std::string(name) + "\"}");
        REQUIRE(rotation);
        CHECK_FALSE(rotation.value.ops.norms_known);
        CHECK(test::warns(rotation.value, "Q K norms not known"));
    }
    const auto tower = [](const std::string& fields) {
        return from_hf_config(R"({"architecture": "eva02_base_patch14_224",
                                  "pretrained_cfg": {"input_size": [3, 224, 224]})" +
                              fields + "}");
    };
    CHECK(tower("").value.ops.norms_known);
    const auto asked = tower(R"(, "model_args": {"qk_norm": true})");
    CHECK_FALSE(asked.value.ops.norms_known);
    CHECK(test::warns(asked.value, "model_args.qk_norm norms Q K"));
}

TEST_CASE("ops of a model: a key of norms in a vision tower leaves them not known") {
    const std::string fields = R"("model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280,
                                  "num_heads": 16, "qk_norm": )";
    CHECK_FALSE(ops_of(fields + "true}", {.tower = "vision"}).norms_known);
    CHECK(ops_of(fields + "false}", {.tower = "vision"}).norms_known);
}

TEST_CASE("ops of a model: a bad eps is an error that names it") {
    const auto rotation = from_hf_config(R"({"model_type": "qwen3", "hidden_size": 512,
        "num_attention_heads": 8, "head_dim": 64, "rope_theta": 10000.0, "rms_norm_eps": 0})");
    test::check_error(rotation.status, VKROPE_ERROR_INVALID_DATA, "rms_norm_eps 0");
}

TEST_CASE("ops of a model: one call makes its kernel") {
    const RopeParams rotation = read(R"("model_type": "gemma3n_text")");
    const auto plan = plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 4096, 16384);
    REQUIRE(plan);
    auto info = kernel_info(rotation, plan.value, VKROPE_BF16, VKROPE_BF16, VKROPE_F16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->tensor[Q].ops.norm.weight == channel);
    CHECK(info->tensor[V].ops.norm.kind == rms);
    CHECK(same_format(info->tensor[V], TensorInfo{VKROPE_F16, VKROPE_F16, 64, 0}));
    CHECK(info->tensor[Q].heads == 8);
    CHECK(info->tensor[V].heads == 2);
    const auto parameters = plan_parameters(info.value);
    REQUIRE_MESSAGE(parameters, parameters.status.what);
    CHECK(parameters->bytes == 2 * 64 * 4);
    info = kernel_info(rotation, plan.value, VKROPE_BF16, std::nullopt, std::nullopt);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->tensor[K].ops.norm.kind == none);
    CHECK(info->tensor[V].head_dim == 0);
    // Without V, too.
    info = kernel_info(rotation, plan.value, VKROPE_BF16, VKROPE_BF16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->tensor[Q].ops.norm.kind == rms);
    CHECK(info->tensor[K].ops.norm.weight == channel);
    CHECK(info->tensor[K].heads == 2);
    CHECK(info->tensor[V].ops.norm.kind == none);
    CHECK(info->tensor[V].heads == 0);
}
