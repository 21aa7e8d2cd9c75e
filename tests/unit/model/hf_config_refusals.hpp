// SPDX-License-Identifier: MIT
// Reads configurations that must be refused.
#pragma once

#include <doctest/doctest.h>

#include <ctime>
#include <string>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

inline std::string llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
              "max_position_embeddings": 8192, )" +
           fields + "}";
}

struct Bad {
    std::string json, words;  // what the message names
};

inline void check_refused(const Bad& bad, ErrorCode code, const ModelQuery& query = {}) {
    CAPTURE(bad.json.substr(0, 400));
    const Result<RopeParams> result = from_hf_config(bad.json, query);
    check_error(result.status, code, bad.words);
    CHECK(result.value.inv_freq.empty());
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
    const Result<RopeParams> result = from_hf_config(json);
    CHECK_MESSAGE(result, result.status.what);
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// A model of `type` with no other special field.
inline std::string of_type(const std::string& type) {
    return R"({"model_type": ")" + type +
           R"(", "hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 10000})";
}

}  // namespace vkrope::test
