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

TEST_CASE("ops that no caller has set are not known") {
    CHECK_FALSE(ModelOps().norms_known);
}
