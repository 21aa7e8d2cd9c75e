// SPDX-License-Identifier: MIT
// Checks limits on what a configuration may ask for: bytes, values, depth, names and time. The
// texts here are not JSON, or too long for tests/data/models/cases.
#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

std::string llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "max_position_embeddings": 8192, )" +
           fields + "}";
}

struct Bad {
    std::string json, words;  // what the message names
};

void check_refused(const Bad& bad, ErrorCode code, const ModelQuery& query = {}) {
    CAPTURE(bad.json.substr(0, 400));
    const Result<RopeParams> result = from_hf_config(bad.json, query);
    check_error(result.status, code, bad.words);
    CHECK(result.value.inv_freq.empty());
}

std::string nested(std::size_t depth) {
    return llama_with(R"("rope_theta": 10000, "x": )" + std::string(depth, '[') +
                      std::string(depth, ']'));
}

// Returns `count` elements, with a comma between them.
template <class Element>
std::string listed(std::size_t count, Element&& element) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i)
        list += (i == 0 ? "" : ", ") + element(std::to_string(i));
    return list;
}

// Returns the seconds of processor time that it takes to read a valid document.
double seconds_to_read(const std::string& json) {
    const std::clock_t begin = std::clock();
    const Result<RopeParams> result = from_hf_config(json);
    CHECK_MESSAGE(result, result.status.what);
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST_CASE("a document is bounded in bytes and in values, and says so") {
    const std::string plain = llama_with(R"("rope_theta": 1e4)");
    const std::size_t most = std::size_t{16} << 20;
    CHECK(from_hf_config(plain + std::string(most - plain.size(), ' ')));
    check_refused({plain + std::string(most + 1 - plain.size(), ' '), "16777217 bytes 16777216"},
                  VKROPE_ERROR_INVALID_DATA);
    const auto with_values =
        [](std::size_t count) {  // the document, five fields and a list also count as values
            const auto zero = [](const std::string&) { return std::string("0"); };
            return llama_with(R"("rope_theta": 1e4, "x": [)" + listed(count - 7, zero) + "]");
        };
    CHECK(from_hf_config(with_values(524288)));
    check_refused({with_values(524289), "524288 values"}, VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("the layer types of a document are limited, and the error names the limit") {
    const auto quoted = [](const std::string& number) { return "\"t" + number + '"'; };
    const auto section = [&](const std::string& number) {
        return quoted(number) + R"(: {"rope_theta": 1e4})";
    };
    const auto layers = [&](std::size_t count) {
        return llama_with(R"("rope_theta": 1e4, "layer_types": [)" + listed(count, quoted) + "]");
    };
    const auto sections = [&](std::size_t count) {
        return llama_with(R"("rope_parameters": {)" + listed(count, section) + "}");
    };
    CHECK(from_hf_config(layers(64)));
    check_refused({layers(65), "layer_types 65 64"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({layers(60000), "layer_types 60000"}, VKROPE_ERROR_INVALID_DATA);
    const auto letters = [](std::size_t count) {
        return llama_with(R"("rope_theta": 1e4, "sliding_window_pattern": ")" +
                          std::string(count, 'L') + "\"");
    };
    CHECK(from_hf_config(letters(65536)));
    check_refused({letters(65537), "sliding_window_pattern 65537 65536"},
                  VKROPE_ERROR_INVALID_DATA);
    CHECK(from_hf_config(sections(64)));
    check_refused({sections(65), "rope_parameters 65 64"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({sections(60000), "rope_parameters 60000"}, VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("there are at most 100 warnings, and the number of others is said") {
    const auto key = [](const std::string& number) { return "\"qk_norm" + number + "\": true"; };
    const Result<RopeParams> result = from_hf_config(
        llama_with(R"("rope_theta": 1e4, )" + listed(1000, key)));
    REQUIRE(result);
    REQUIRE(result->warnings.size() == 101);
    CHECK(names(result->warnings.back(), "900"));
}

TEST_CASE("a language model deep inside others is compared with each of them once") {
    const auto key = [](const std::string& number) {
        return "\"some_key_of_no_matter_" + number + "\": 0";
    };
    const std::string flat = llama_with(R"("rope_theta": 1e4, )" + listed(50000, key));
    std::string deep = flat;
    for (int i = 0; i < 60; ++i) {
        deep =
            R"({"vlm_config": {"a": 1}, "decoder": {"a": 1}, "encoder": {"a": 1},
               "thinker_config": )" +
            deep + "}";
    }
    CHECK(seconds_to_read(deep) < 4 * seconds_to_read(flat) + 0.1);
}

TEST_CASE("text that is not the JSON of a configuration") {
    const Bad bad[] = {
        {"", "JSON"},
        {"{", "JSON"},
        {llama_with("\"rope_theta\": 1e4") + "x", "JSON"},
        {"[1]", "document array"},
        {"null", "document null"},
        {std::string("{\"a\": \"\xff\x1b[31m\"}"), "JSON"},
        {llama_with(R"("rope_theta": 1e4, "rope_theta": 1e4)"), "rope_theta"},
        {llama_with(
             R"("rope_theta": 1e4, "rope_scaling": {"type": "linear", "factor": 2, "factor": 4})"),
         "factor"},
        {llama_with(R"("rope_theta": 1e4, "a": [{"b": 1}, {"b\u001b": 1, "b\u001b": 2}])"), "b?"},
        {nested(64), "nested 64"},
        {nested(1000000), "nested 64"},
    };
    for (const Bad& b : bad) check_refused(b, VKROPE_ERROR_INVALID_DATA);
    CHECK(from_hf_config(nested(63)));
    // The same key in two objects is not a duplicate.
    CHECK(from_hf_config(
        llama_with(R"("rope_theta": 1e4, "a": [{"b": 1}, {"b": 1}], "b": {"b": 1})")));
}

TEST_CASE("values that are not JSON numbers, and bytes after the end") {
    for (const char* value : {"NaN", "Infinity", "-Infinity"})
        check_refused({llama_with(std::string("\"rope_theta\": ") + value), "rope_theta"},
                      VKROPE_ERROR_INVALID_DATA);
    check_refused({llama_with("\"rope_theta\": NULL"), "JSON"}, VKROPE_ERROR_INVALID_DATA);
    check_refused({llama_with("\"rope_theta\": 1e999"), "1e999"}, VKROPE_ERROR_INVALID_DATA);
    std::string text = llama_with("\"rope_theta\": 10000");
    text += '\0';
    text += "garbage";
    check_refused({text, "byte 0"}, VKROPE_ERROR_INVALID_DATA);
}

TEST_CASE("floats that are not finite are ignored where nothing reads them, and nowhere else") {
    const std::string plain =
        R"({"model_type": "llama", "head_dim": 4, "rope_theta": 1e4,
           "max_position_embeddings": 64)";
    const std::string unread =
        R"(, "x": null, "time_step_limit": [0.0, Infinity, null, {"y": -Infinity}], "z": NaN,
        "text \" NaN": "a \\" , "NaN\\": null)";
    const Result<RopeParams> result = from_hf_config(plain + unread + "}");
    REQUIRE_MESSAGE(result, result.status.what);
    CHECK(result.value.inv_freq == from_hf_config(plain + "}").value.inv_freq);
    const Result<RopeParams> falcon = from_hf_config(
        R"({"model_type": "falcon_h1", "head_dim": 128, "rope_theta": 1e11,
            "time_step_limit": [0.0, Infinity]})");
    REQUIRE_MESSAGE(falcon, falcon.status.what);
    CHECK(falcon->base == 1e11);
    CHECK(falcon->warnings.empty());
    const Bad bad[] = {
        {plain + unread + R"(, "rope_scaling": {"type": "linear", "factor": NaN}})",
         "rope_scaling.factor NaN"},
        {plain + R"(, "rope_scaling": {"type": "linear", "factor": Infinity}})",
         "rope_scaling.factor Infinity"},
        {plain +
             R"(, "rope_scaling": {"type": "longrope", "factor": 2, "short_factor": [1, -Infinity],
                "long_factor": [1, 1]}})",
         "rope_scaling.short_factor[1] -Infinity"},
        {plain + R"(, "num_hidden_layers": NaN})", "num_hidden_layers NaN"},
        {R"({"model_type": NaN})", "model_type NaN"},
        {plain + R"(, "a": NaN, "b": 1, "b": 2})", "b"},
        {plain + R"(, "a": NaN, "b": 1e999})", "1e999"},
        {R"({"a": NaNs})", "JSON"},
        {R"({"a": +Infinity})", "JSON"},
        {R"({"a": 1Infinity})", "JSON"},
        {R"({NaN: 1})", "JSON"},
        {R"({"a": nullNaN})", "JSON"},
        {"NaN", "NaN"},
        {R"({"a": NaN, "b": "\)", "JSON"},
    };
    for (const Bad& b : bad) check_refused(b, VKROPE_ERROR_INVALID_DATA);
}
