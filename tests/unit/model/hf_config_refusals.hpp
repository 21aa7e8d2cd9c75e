// SPDX-License-Identifier: MIT
// Reads configurations that must be refused.
#pragma once

#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "vkrope/model.hpp"

namespace vkrope::test {

inline std::string llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "max_position_embeddings": 8192, )" +
           fields + "}";
}

struct Bad {
    std::string json;
    const char* text;  // part of the message
};

inline void check_refused(const Bad& bad, Code code) {
    CAPTURE(bad.json.substr(0, 400));
    const Result<Rotation> result = from_hf_config(bad.json);
    CHECK(result.status.code == code);
    CHECK_MESSAGE(std::string(result.status.what).find(bad.text) != std::string::npos,
                  result.status.what, " lacks ", bad.text);
    CHECK(result.value.inv_freq.empty());
    for (const char* c = result.status.what; *c != 0; ++c) {
        CHECK((*c >= ' ' && *c <= '~'));
    }
}

inline std::string nested(std::size_t depth) {
    return llama_with(R"("rope_theta": 10000, "x": )" + std::string(depth, '[') +
                      std::string(depth, ']'));
}

/// `count` elements, with a comma between them.
template <class Element>
std::string listed(std::size_t count, Element&& element) {
    std::string list;
    for (std::size_t i = 0; i < count; ++i) {
        list += (i == 0 ? "" : ", ") + element(std::to_string(i));
    }
    return list;
}

/// Seconds of processor time to read a valid document.
inline double seconds_to_read(const std::string& json) {
    const std::clock_t begin = std::clock();
    const Result<Rotation> result = from_hf_config(json);
    CHECK_MESSAGE(result, result.status.what);
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// A model of `type` with no other special field.
inline std::string of_type(const std::string& type) {
    return R"({"model_type": ")" + type +
           R"(", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000})";
}

}  // namespace vkrope::test
