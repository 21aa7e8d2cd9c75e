// SPDX-License-Identifier: MIT
// Reads a configuration that must have certain warnings.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

using Texts = std::vector<std::string>;

/// A Llama with rows of 64 channels.
inline std::string small_llama_with(const std::string& fields) {
    return R"({"model_type": "llama", "head_dim": 64, "max_position_embeddings": 8192,
              "rope_theta": 1e4, )" +
           fields + "}";
}

/// Reads a rotation with a warning for each of `named`, which has these words, and no other.
inline RopeParams warned(const std::string& json, const Texts& named,
                         const ModelQuery& query = {}) {
    CAPTURE(json);
    const Result<RopeParams> result = from_hf_config(json, query);
    REQUIRE_MESSAGE(result, result.status.what);
    std::string all;
    for (const std::string& warning : result.value.warnings) all += warning + "\n";
    CHECK_MESSAGE(result.value.warnings.size() == named.size(), all);
    for (const std::string& words : named) CHECK_MESSAGE(warns(result.value, words), all, words);
    return result.value;
}

}  // namespace vkrope::test
