// SPDX-License-Identifier: MIT
// What a configuration may ask for is bounded: bytes, values, depth, names and time.
#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "hf_config_refusals.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

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

TEST_CASE("layer types are few, and a document that names many says how many it may have") {
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

TEST_CASE("there are no more than 100 warnings, and how many there are beyond is said") {
    const auto key = [](const std::string& number) { return "\"rope" + number + "\": 1"; };
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
    for (const Bad& b : bad) {
        check_refused(b, VKROPE_ERROR_INVALID_DATA);
    }
    CHECK(from_hf_config(nested(63)));
    // The same key in two objects is not a duplicate.
    CHECK(from_hf_config(
        llama_with(R"("rope_theta": 1e4, "a": [{"b": 1}, {"b": 1}], "b": {"b": 1})")));
}
