// SPDX-License-Identifier: MIT
// Tests that a model file is read once for all queries, by deleting it before the queries, and that
// only the heads of the language model are counted.
#include "io/model_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

using namespace vkrope;
using namespace vkrope::tools;

namespace {

void check_read_once(const std::string& original) {
    CAPTURE(original);
    const std::string copy = VKROPE_TEST_SCRATCH "/model_file_test" +
                             std::filesystem::path(original).extension().string();
    std::filesystem::copy_file(original, copy, std::filesystem::copy_options::overwrite_existing);
    const ModelFile file(copy);
    const Result<RopeParams> before = file.read({});
    std::filesystem::resize_file(copy, 0);
    const Result<RopeParams> after = file.read({});
    REQUIRE_MESSAGE(before, before.status.what);
    REQUIRE_MESSAGE(after, after.status.what);
    CHECK(after->inv_freq == before->inv_freq);
    CHECK(file.read({.layer = 0}));
    std::filesystem::remove(copy);
}

}  // namespace

TEST_CASE("a config.json is read once") {
    check_read_once(VKROPE_TEST_MODELS "/llama-3.1-8b.json");
}

TEST_CASE("a GGUF file is read once") {
    check_read_once(VKROPE_TEST_MODELS "/../corpus/gguf/yarn.gguf");
}

TEST_CASE("head counts are those of the language model, not of a vision tower") {
    const std::string path = VKROPE_TEST_SCRATCH "/model_file_heads.json";
    const auto heads_of = [&path](const char* config, const char* tower) {
        std::ofstream(path) << config;
        ModelOptions options;
        options.path = path;
        options.tower = tower;
        return load_model(options).heads;
    };
    const char* nested = R"({"model_type": "qwen2_vl", "num_attention_heads": 3,
        "text_config": {"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2,
        "rope_theta": 10000.0}, "vision_config": {"depth": 2, "embed_dim": 256, "num_heads": 8,
        "hidden_size": 256}})";
    CHECK(heads_of(nested, "text").q == 4u);
    CHECK(heads_of(nested, "text").k == 2u);
    CHECK(!heads_of(nested, "vision").q);
    CHECK(!heads_of(nested, "vision").k);
    CHECK(heads_of(R"({"hidden_size": 256, "n_head": 8, "rope_theta": 10000.0})", "text").k == 8u);
}
