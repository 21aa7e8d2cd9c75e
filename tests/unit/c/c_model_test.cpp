// SPDX-License-Identifier: MIT
// Model files and rotations through the C interface.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "c_rotation.hpp"
#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.h"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;

TEST_CASE("C: a query's pairing replaces the model's") {
    const std::string config =
        R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1})";
    vkrope_model_query query = {};
    for (const bool given : {false, true}) {
        query.pairing = given ? VKROPE_INTERLEAVED : VKROPE_PAIRING_NONE;
        vkrope_model* read = nullptr;
        REQUIRE(vkrope_model_from_hf_config(config.data(), config.size(), &query, &read, nullptr) ==
                VKROPE_SUCCESS);
        const OwnedModel model(read);
        CHECK(params_of(model).pairing == (given ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT));
        CHECK(params_of(model).base == 10000);
    }
    query.pairing = vkrope_pairing(9);
    vkrope_model* none = nullptr;
    vkrope_error error;
    check_refused(vkrope_model_from_hf_config(config.data(), config.size(), &query, &none, &error),
                  error, "query.pairing 9");
}

TEST_CASE("C: a model file that has no RoPE that is known is a code and a sentence") {
    vkrope_error error;
    vkrope_model* rotation = nullptr;
    const char broken[] = "{\"model_type\": ";
    CHECK(vkrope_model_from_hf_config(broken, sizeof broken - 1, nullptr, &rotation, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    CHECK(rotation == nullptr);
    CHECK(!std::string(error.what).empty());
    check_refused(vkrope_model_from_hf_config(nullptr, 0, nullptr, &rotation, &error), error,
                  "json null");
}

TEST_CASE("C: what is asked of a model, zero being the default") {
    const std::string json =
        R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 2,
           "rope_theta": 10000.0, "num_hidden_layers": 3,
            "max_position_embeddings": 2048})";
    vkrope_model_query query = {};
    const auto ask = [&](vkrope_error& error) {
        vkrope_model* rotation = nullptr;
        const vkrope_result result = vkrope_model_from_hf_config(json.data(), json.size(), &query,
                                                                 &rotation, &error);
        CHECK((rotation != nullptr) == (result == VKROPE_SUCCESS));
        vkrope_model_destroy(rotation);
        return result;
    };
    vkrope_error error;
    CHECK(ask(error) == VKROPE_SUCCESS);
    query.by_layer = VK_TRUE;
    query.layer = 2;  // the last one
    CHECK(ask(error) == VKROPE_SUCCESS);
    query.layer = 3;
    CHECK(ask(error) == VKROPE_ERROR_INVALID_ARGUMENT);
    query.by_layer = VK_FALSE;
    check_refused(ask(error), error, "query.layer 3 query.by_layer");
    query.by_layer = VK_TRUE;
    query.layer = UINT32_MAX;
    check_refused(ask(error), error, "query.layer 4294967295");
    query = vkrope_model_query{};
    query.tower = "vision";
    check_refused(ask(error), error, "vision_config");
}

TEST_CASE("C: a GGUF file, through a function and from a disk") {
    GgufBuilder file("qwen2vl");
    file.u32("attention.key_length", 128)
        .u32("rope.dimension_count", 128)
        .f32("rope.freq_base", 1e6f);
    const std::string bytes = file.i32_list("rope.dimension_sections", {16, 24, 24, 0}).file();
    const vkrope_read_at read = [](void* user, std::uint64_t offset, void* to, std::size_t count) {
        return static_cast<std::string*>(user)->copy(static_cast<char*>(to), count,
                                                     std::size_t(offset));
    };
    std::string content = bytes;
    vkrope_model* made = nullptr;
    vkrope_error error;
    REQUIRE(vkrope_model_from_gguf(content.size(), read, &content, nullptr, &made, &error) ==
            VKROPE_SUCCESS);
    const OwnedModel model(made);
    CHECK(params_of(model).pairing == VKROPE_HALF_SPLIT);
    CHECK(params_of(model).inv_freq_count == 64);
    CHECK(params_of(model).sections.pairs[1] == 24);

    const std::string path = std::string(VKROPE_TEST_SCRATCH) + "/c.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    REQUIRE(vkrope_model_from_gguf_file(path.c_str(), nullptr, &made, &error) == VKROPE_SUCCESS);
    CHECK(params_of(OwnedModel(made)).inv_freq_count == 64);

    vkrope_model_query query = {};
    query.tower = "vision";
    check_refused(vkrope_model_from_gguf_file(path.c_str(), &query, &made, &error), error,
                  "vision");
    CHECK(made == nullptr);
    content.resize(20);  // shorter than the stated size
    CHECK(vkrope_model_from_gguf(bytes.size(), read, &content, nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    check_refused(vkrope_model_from_gguf(bytes.size(), nullptr, nullptr, nullptr, &made, &error),
                  error, "read null");
    check_refused(vkrope_model_from_gguf_file(nullptr, nullptr, &made, &error), error, "path null");
    CHECK(vkrope_model_from_gguf_file((path + ".missing").c_str(), nullptr, &made, &error) ==
          VKROPE_ERROR_INVALID_DATA);
    check_names(error.what, path + ".missing");
}

TEST_CASE("C: a model has what its file says: sections, norms, warnings") {
    const std::string json = R"({"model_type": "qwen2_vl", "head_dim": 128, "rope_theta": 1e6,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})";
    vkrope_model* made = nullptr;
    REQUIRE(vkrope_model_from_hf_config(json.data(), json.size(), nullptr, &made, nullptr) ==
            VKROPE_SUCCESS);
    const OwnedModel model(made);
    const vkrope_rope_params& rotation = params_of(model);
    CHECK(rotation.sections.axes == 3);
    CHECK(rotation.sections.pairs[1] == 24);
    CHECK(rotation.ops.norms_known == VK_TRUE);
    CHECK(rotation.ops.tensor[VKROPE_Q].norm.kind == VKROPE_NORM_NONE);
    const vkrope::RopeParams owned(rotation);
    REQUIRE(rotation.warning_count == owned.warnings.size());
    for (std::size_t i = 0; i < owned.warnings.size(); ++i)
        CHECK(owned.warnings[i] == rotation.warnings[i]);
    CHECK(vkrope_model_get_params(nullptr) == nullptr);
}
