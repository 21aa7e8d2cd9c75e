// SPDX-License-Identifier: MIT
// The params.json of original checkpoints: Mistral's is read, and what is in code is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "hf_config_reading.hpp"
#include "hf_config_refusals.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

std::string params(const std::string& fields) {
    return R"({"dim": 5120, "n_layers": 40, "hidden_dim": 14336, "n_heads": 32, "n_kv_heads": 8,
              "norm_eps": 1e-5, "vocab_size": 131072)" +
           fields + "}";
}

std::string latent(const std::string& yarn) {
    return params(R"(, "rope_theta": 1e4, "head_dim": 128, "q_lora_rank": 1536,
                     "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512,
                     "v_head_dim": 128, "yarn": {"original_max_position_embeddings": 8192,
                     "factor": 36, "beta": 32, "alpha": 1)" +
                  yarn + "}");
}

}  // namespace

TEST_CASE("params.json: one head width, interleaved") {
    const RopeParams given = imported(params(R"(, "rope_theta": 1e9, "head_dim": 128)"));
    CHECK(given.pairing == interleaved);
    CHECK(given.head_dim == 128);
    CHECK(given.ops.q_heads == 32);
    CHECK(given.ops.k_heads == 8);
    CHECK(warns(given, "dim params.json"));
    check_plain(given, 1e9);
    // mistral-inference writes the model_type of its arguments.
    const RopeParams named = imported(
        params(R"(, "rope_theta": 1e9, "head_dim": 128, "model_type": "transformer")"));
    CHECK(named.pairing == interleaved);
    CHECK(named.inv_freq == given.inv_freq);
    const RopeParams divided = imported(params(R"(, "rope_theta": 5e5, "use_scaled_rope": false)"));
    CHECK(divided.head_dim == 160);
    check_plain(divided, 5e5);
    CHECK(imported(params(R"(, "rope_theta": 1e9)"), {.pairing = half}).pairing == half);
}

TEST_CASE("params.json: YaRN with latent attention, and queries by position") {
    const double m = 0.1 * std::log(36.0) + 1;
    std::vector<double> expected(32);
    REQUIRE(default_inv_freq(1e4, 64, expected.data()));
    YarnScaling scaling;
    scaling.factor = 36;
    scaling.original_max_position_embeddings = 8192;
    double attention = 0;
    REQUIRE(scale_yarn(expected, 1e4, scaling, attention));
    const RopeParams plain = imported(latent(R"(, "apply_scale": false)"));
    CHECK(plain.rope_type == "yarn");
    CHECK(plain.pairing == interleaved);
    CHECK(plain.q_rotary_offset == 128);
    CHECK(plain.k_rotary_offset == 512);
    CHECK(plain.inv_freq == expected);
    CHECK(plain.attention_factor == 1);
    CHECK(plain.softmax_scale == 1);
    for (const char* scales : {R"(, "apply_scale": true)", ""}) {
        const RopeParams scaled = imported(latent(scales));
        CHECK(scaled.inv_freq == expected);
        CHECK(scaled.attention_factor == 1);
        CHECK(close(scaled.softmax_scale, m * m));
    }
    const RopeParams queries = imported(params(
        R"(, "rope_theta": 1e6, "llama_4_scaling": {"original_max_position_embeddings": 8192,
           "beta": 0.1}, "yarn": {"original_max_position_embeddings": 8192, "factor": 36,
           "beta": 32,
           "alpha": 1, "apply_scale": true})"));
    CHECK(queries.ops.query_scale.kind == VKROPE_QUERY_SCALING_MINISTRAL3);
    CHECK(queries.ops.query_scale.length == 8192);
    CHECK(queries.ops.query_scale.beta == 0.1);
    CHECK(queries.ops.tensor[Q].scale_tokens);
    CHECK(close(queries.attention_factor, m));
    CHECK(queries.softmax_scale == 1);
}

TEST_CASE("params.json: what is in code, or is not known, is refused") {
    const auto refused = [](const std::string& fields, ErrorCode code, const std::string& words,
                            const ModelQuery& query = {}) {
        check_refused({params(fields), words}, code, query);
    };
    refused("", VKROPE_ERROR_INVALID_DATA, "rope_theta");
    refused(R"(, "rope_theta": 5e5, "use_scaled_rope": true)", VKROPE_ERROR_NOT_SUPPORTED,
            "use_scaled_rope true config.json");
    refused(R"(, "rope_theta": 5e5, "use_qk_norm": true)", VKROPE_ERROR_NOT_SUPPORTED,
            "use_qk_norm true");
    refused(R"(, "rope_theta": 5e5, "nope_layer_interval": 4)", VKROPE_ERROR_NOT_SUPPORTED,
            "nope_layer_interval 4");
    refused(R"(, "rope_theta": 1e4, "yarn": {"factor": 4, "mscale": 1})",
            VKROPE_ERROR_NOT_SUPPORTED, "yarn.mscale 1");
    refused(R"(, "rope_theta": 1e4, "yarn": {"factor": 4})", VKROPE_ERROR_INVALID_DATA,
            "yarn.original_max_position_embeddings");
    refused(R"(, "rope_theta": 1e4, "yarn": 4)", VKROPE_ERROR_INVALID_DATA, "yarn 4");
    refused(R"(, "rope_theta": 1e4, "qk_rope_head_dim": 64)", VKROPE_ERROR_INVALID_DATA,
            "qk_nope_head_dim");
    refused(R"(, "rope_theta": 1e4, "head_dim": 63)", VKROPE_ERROR_INVALID_DATA, "head_dim 63");
    refused(R"(, "rope_theta": 1e4)", VKROPE_ERROR_INVALID_ARGUMENT, "query.layer 40 40",
            {.by_layer = true, .layer = 40});
    refused(R"(, "rope_theta": 1e4)", VKROPE_ERROR_INVALID_ARGUMENT, "query.layer_type x",
            {.layer_type = "x"});
    refused(R"(, "rope_theta": 1e4)", VKROPE_ERROR_INVALID_ARGUMENT, "query.tower vision",
            {.tower = "vision"});
    // DeepSeek's own inference code: its scaling has defaults there.
    check_refused({R"({"vocab_size": 129280, "dim": 7168, "inter_dim": 18432, "n_layers": 61,
                       "n_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
                       "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128})",
                   "inter_dim 18432"},
                  VKROPE_ERROR_NOT_SUPPORTED);
}

TEST_CASE("a null does not say of which kind a document is") {
    const std::string model = R"("model_type": "llama", "n_layers": 2, "rope_theta": 1e4)";
    for (const char* key : {"dim", "_class_name", "architecture"}) {
        CAPTURE(key);
        check_plain(imported("{" + model + ", \"" + key + "\": null}"), 1e4);
    }
    check_plain(imported(R"({"dim": null, "n_heads": 32, "head_dim": 64, "rope_theta": 1e4})"),
                1e4);
    check_plain(imported(R"({"_class_name": null, "head_dim": 64, "rope_theta": 1e4})"), 1e4);
}
