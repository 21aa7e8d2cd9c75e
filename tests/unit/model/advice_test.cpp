// SPDX-License-Identifier: MIT
// The advice of an error works: what the message tells the caller to give, or to change in the
// file, makes the reading succeed.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gguf_reading.hpp"
#include "hf_config_refusals.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

struct Advice {
    const char* words;  // of the message
    std::string json, followed;
    ModelQuery query = {}, followed_by = {};
};

const std::string unknown = R"({"model_type": "brand_new", "head_dim": 64, "rope_theta": 1e4,
                                "num_hidden_layers": 8, "max_position_embeddings": 8192)";
const std::string rope = R"("rope_scaling": {"rope_type": "yarn", "factor": 4,
                            "original_max_position_embeddings": 2048})";
const std::string latent_keys =
    R"("rope_theta": 1e4, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "kv_lora_rank": 512)";
const std::string bases =
    R"({"model_type": "granite_swa", "head_dim": 64, "num_hidden_layers": 4,
        "layer_rope_theta": [1e4, 2e4, 1e4, 1e4]})";
const std::string two_kinds = R"("layer_types": ["full_attention", "sliding_attention"])";

}  // namespace

TEST_CASE("the advice of an error about a config.json works") {
    const ModelQuery pairing = {.pairing = VKROPE_INTERLEAVED};
    const std::string contradicting =
        R"({"model_type": "llama", "head_dim": 64, "rope_theta": 1e4, "rope_interleaved": true})";
    const std::string yarn = R"(, "yarn": {"factor": 4, "original_max_position_embeddings": 2048})";
    const Advice advices[] = {
        {"pairing", contradicting, contradicting, {}, pairing},
        {"pairing", "{" + latent_keys + "}", "{" + latent_keys + "}", {}, pairing},
        {"pairing",
         R"({"model_type": "brand_new", )" + latent_keys + "}",
         R"({"model_type": "brand_new", )" + latent_keys + "}",
         {},
         pairing},
        {"pairing", R"({"model_type": "llama", )" + latent_keys + "}",
         R"({"model_type": "llama", "rope_interleave": true, )" + latent_keys + "}"},
        {"single layer",
         bases,
         bases,
         {.layer_type = "sliding_attention"},
         {.by_layer = true, .layer = 1}},
        {"set only one",
         bases,
         bases,
         {.layer_type = "full_attention", .by_layer = true, .layer = 1},
         {.by_layer = true, .layer = 1}},
        {"yarn rope_parameters", unknown + yarn + "}",
         unknown + R"(, "rope_parameters": {"rope_type": "yarn", "factor": 4,
                      "original_max_position_embeddings": 2048, "rope_theta": 1e4}})"},
        {"yarn null", unknown + yarn + "}", unknown + R"(, "yarn": null})"},
        {"rope_scaling_factor null", unknown + R"(, "rope_scaling_factor": 4})",
         unknown + R"(, "rope_scaling_factor": null})"},
        {"yarn_only_types rope_parameters null",
         unknown + ", " + rope + R"(, "yarn_only_types": ["full_attention"]})",
         unknown + R"(, "yarn_only_types": null, "rope_parameters": {
                      "full_attention": {"rope_type": "yarn", "factor": 4, "rope_theta": 1e4,
                                         "original_max_position_embeddings": 2048},
                      "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}})"},
        {"layer_group_size no layer",
         unknown + R"(, "layer_group_size": 4})",
         unknown + R"(, "layer_group_size": 4})",
         {.by_layer = true, .layer = 1},
         {}},
        {"layer_group_size layer_types null",
         unknown + R"(, "layer_group_size": 4})",
         R"({"model_type": "brand_new", "head_dim": 64, "rope_theta": 1e4, "num_hidden_layers": 2,
             "layer_group_size": null, )" +
             two_kinds + "}",
         {.by_layer = true, .layer = 1},
         {.by_layer = true, .layer = 1}},
        {"vision_config.rope_scaling null",
         R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "num_heads": 16,
             "rope_scaling": {"type": "linear", "factor": 2}}})",
         R"({"model_type": "qwen2_vl", "vision_config": {"embed_dim": 1280, "num_heads": 16,
             "rope_scaling": null}})",
         {.tower = "vision"},
         {.tower = "vision"}},
    };
    for (const Advice& advice : advices) {
        CAPTURE(advice.json);
        const Result<RopeParams> before = from_hf_config(advice.json, advice.query);
        CHECK(!before);
        check_names(before.status.what, advice.words);
        const Result<RopeParams> after = from_hf_config(advice.followed, advice.followed_by);
        CHECK_MESSAGE(after, after.status.what);
    }
}

TEST_CASE("the advice of an error about a GGUF file works") {
    const auto advised = [](const GgufBuilder& file, const std::string& words,
                            const ModelQuery& query) {
        check_names(read(file).status.what, words);
        const Result<RopeParams> after = read(file, query);
        CHECK_MESSAGE(after, after.status.what);
    };
    advised(plain("nautilus"), "nautilus pairing", {.pairing = VKROPE_HALF_SPLIT});
    GgufBuilder heads("llama");
    heads.u32("block_count", 2).u32("embedding_length", 512).u32("rope.dimension_count", 32);
    heads.i32_list("attention.head_count", {8, 16}).f32("rope.freq_base", 1e4);
    advised(heads, "llama.attention.head_count 8 16 single layer", {.by_layer = true, .layer = 1});
    CHECK(read(heads, {.by_layer = true, .layer = 0}).value.head_dim == 64);
}

namespace {

GgufBuilder part(int number, int count, bool metadata) {
    const auto two = [](int value) { return GgufBuilder::little(std::uint64_t(value), 2); };
    GgufBuilder file = metadata ? plain() : GgufBuilder();
    return file.value_of("split.no", 2, two(number)).value_of("split.count", 2, two(count));
}

/// Writes the parts of a split file to a folder of their own and returns the name of the first.
std::string written(const std::string& folder, const std::vector<GgufBuilder>& parts) {
    const std::filesystem::path path = std::filesystem::path(VKROPE_TEST_SCRATCH) / folder;
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string name = "m-0000" + std::to_string(i + 1) + "-of-0000" +
                                 std::to_string(parts.size()) + ".gguf";
        const std::string bytes = parts[i].file();
        std::ofstream(path / name, std::ios::binary) << bytes;
    }
    return (path / ("m-00001-of-0000" + std::to_string(parts.size()) + ".gguf")).string();
}

}  // namespace

TEST_CASE("GGUF: a split file is read by its first part and the parts beside it") {
    const std::vector<float> divisors(64, 2);
    GgufBuilder third = part(2, 3, false);
    third.tensor("rope_freqs.weight", divisors);
    third.tensor_of("blk.0.attn_q_norm.weight", {128}, 0, 512);
    const std::string first = written(
        "split", {part(0, 3, true).f32("attention.layer_norm_rms_epsilon", 1e-5f),
                  part(1, 3, false), third});
    const Result<RopeParams> whole = from_gguf_file(first);
    REQUIRE_MESSAGE(whole, whole.status.what);
    CHECK(whole.value.rope_type == "rope_freqs");
    CHECK(whole.value.inv_freq[0] == 0.5);
    CHECK(whole.value.ops.tensor[Q].norm.kind == VKROPE_NORM_RMS);
    CHECK(!warns(whole.value, "split.count"));
    // Another part has no metadata; the first part alone has no tensors.
    std::string second = first;
    second.replace(second.find("00001"), 5, "00002");
    const Result<RopeParams> other = from_gguf_file(second);
    CHECK(!other);
    const std::string alone = part(0, 3, true).file();
    check_error(from_gguf(alone.data(), alone.size()).status, VKROPE_ERROR_NOT_SUPPORTED,
                "split.count 3");
    // With tensors of its own it is read, and the missing parts are named.
    GgufBuilder full = part(0, 3, true);
    full.tensor("rope_freqs.weight", divisors);
    const RopeParams warned = rotation_of(full);
    CHECK(warned.inv_freq[0] == 0.5);
    CHECK(warns(warned, "split.count 3 1"));
    check_error(read(part(1, 3, true)).status, VKROPE_ERROR_NOT_SUPPORTED,
                "split.no 1 split.count 3 first");
}

TEST_CASE("GGUF: parts of different models are refused") {
    GgufBuilder twice = part(1, 2, false);
    twice.tensor("rope_freqs.weight", std::vector<float>(64, 1));
    GgufBuilder first = part(0, 2, true);
    first.tensor("rope_freqs.weight", std::vector<float>(64, 1));
    check_error(from_gguf_file(written("split_twice", {first, twice})).status,
                VKROPE_ERROR_INVALID_DATA, "rope_freqs.weight twice");
    check_error(from_gguf_file(written("split_number", {first, part(0, 2, false)})).status,
                VKROPE_ERROR_INVALID_DATA, "split.no 0 split.count 2");
    check_error(from_gguf_file(written("split_count", {first, part(1, 3, false)})).status,
                VKROPE_ERROR_INVALID_DATA, "split.no 1 split.count 3");
}
