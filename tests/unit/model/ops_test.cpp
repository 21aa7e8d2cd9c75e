// SPDX-License-Identifier: MIT
// Makes the kernel of a model's ops with one call.
#include <doctest/doctest.h>

#include "base/meaning.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;

TEST_CASE("one call makes the kernel of a model") {
    const Result<RopeParams> read = from_hf_config(
        R"({"model_type": "gemma3n_text", "hidden_size": 512, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 8,
            "max_position_embeddings": 4096, "rope_theta": 10000.0})");
    REQUIRE_MESSAGE(read, read.status.what);
    const RopeParams& rotation = read.value;
    const auto plan = plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 4096, 16384);
    REQUIRE(plan);
    auto info = kernel_info(rotation, plan.value, VKROPE_BF16, VKROPE_BF16, VKROPE_F16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->tensor[Q].ops.norm.weight == VKROPE_PARAMETER_CHANNEL);
    CHECK(info->tensor[V].ops.norm.kind == VKROPE_NORM_RMS);
    CHECK(same_format(info->tensor[V], TensorInfo{VKROPE_F16, VKROPE_F16, 64, 0}));
    CHECK(info->tensor[Q].heads == 8);
    CHECK(info->tensor[V].heads == 2);
    const auto parameters = plan_parameters(info.value);
    REQUIRE_MESSAGE(parameters, parameters.status.what);
    CHECK(parameters->bytes == 2 * 64 * 4);
    info = kernel_info(rotation, plan.value, VKROPE_BF16, std::nullopt, std::nullopt);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->tensor[K].ops.norm.kind == VKROPE_NORM_NONE);
    CHECK(info->tensor[V].head_dim == 0);
    // A kernel without V works, too.
    info = kernel_info(rotation, plan.value, VKROPE_BF16, VKROPE_BF16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->tensor[Q].ops.norm.kind == VKROPE_NORM_RMS);
    CHECK(info->tensor[K].ops.norm.weight == VKROPE_PARAMETER_CHANNEL);
    CHECK(info->tensor[K].heads == 2);
    CHECK(info->tensor[V].ops.norm.kind == VKROPE_NORM_NONE);
    CHECK(info->tensor[V].heads == 0);
}

TEST_CASE("one call makes the kernel of a layer without RoPE") {
    const Result<RopeParams> read = from_hf_config(
        R"({"model_type": "llama4_text", "hidden_size": 512, "num_attention_heads": 8,
            "num_key_value_heads": 2, "head_dim": 64, "num_hidden_layers": 8,
            "max_position_embeddings": 4096, "rope_theta": 10000.0})",
        {.by_layer = true, .layer = 3});
    REQUIRE_MESSAGE(read, read.status.what);
    const auto info = kernel_info(read.value, VKROPE_BF16, VKROPE_BF16, VKROPE_F16);
    REQUIRE_MESSAGE(info, info.status.what);
    CHECK(info->rotary_dim == 0);
    CHECK(info->pairing == VKROPE_PAIRING_NONE);
    CHECK(info->tensor[Q].ops.scale_tokens);
    CHECK(info->tensor[Q].ops.norm.kind == VKROPE_NORM_NONE);
    CHECK(info->tensor[Q].heads == 8);
    CHECK(same_format(info->tensor[K], TensorInfo{VKROPE_BF16, VKROPE_BF16, 64, 0}));
    CHECK(plan_parameters(info.value)->bytes == 0);
}

TEST_CASE("the kernel of a latent row has its norm, whether it rotates or not") {
    const char* const configs[] = {
        R"({"model_type": "deepseek_v3", "hidden_size": 512, "num_attention_heads": 8,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512,
            "rope_theta": 10000.0})",
        R"({"model_type": "kimi_linear", "num_attention_heads": 8, "mla_use_nope": true,
            "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "kv_lora_rank": 512})"};
    for (const char* const config : configs) {
        CAPTURE(config);
        Result<RopeParams> read = from_hf_config(config);
        REQUIRE_MESSAGE(read, read.status.what);
        RopeParams& rotation = read.value;
        AngleTableLayout plan;
        if (!rotation.no_rope)
            plan = plan_angles(rotation, VKROPE_ANGLES_AUTOMATIC, 4096, 16384).value;
        const auto made = [&] {
            return rotation.no_rope ? kernel_info(rotation, VKROPE_BF16, VKROPE_BF16)
                                    : kernel_info(rotation, plan, VKROPE_BF16, VKROPE_BF16);
        };
        auto info = made();
        REQUIRE_MESSAGE(info, info.status.what);
        const TensorInfo& k = info->tensor[K];
        CHECK(k.head_dim == 576);
        CHECK(k.rotary_offset == (rotation.no_rope ? 0 : 512));
        CHECK(k.heads == 1);
        CHECK(k.ops.norm.first_channel == 0);
        CHECK(k.ops.norm.channels == 512);
        CHECK(info->tensor[Q].head_dim == 192);
        CHECK(info->tensor[Q].heads == 8);
        CHECK(info->tensor[Q].ops.norm.kind == VKROPE_NORM_NONE);
        CHECK(plan_parameters(info.value)->tensor[K].weight.count == 512);
        rotation.k_rotary_offset = 0;  // K is the other channels alone
        info = made();
        REQUIRE_MESSAGE(info, info.status.what);
        CHECK(info->tensor[K].head_dim == 64);
        CHECK(info->tensor[K].ops.norm.kind == VKROPE_NORM_NONE);
    }
}

TEST_CASE("ops that no caller has set are not known") {
    CHECK_FALSE(ModelOps().norms_known);
}
