// SPDX-License-Identifier: MIT
// Reads a GGUF file that a test built.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/gguf_builder.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

inline Result<RopeParams> read(const GgufBuilder& file, const ModelQuery& query = {}) {
    const std::string bytes = file.file();
    return from_gguf(bytes.data(), bytes.size(), query);
}

inline RopeParams rotation_of(const GgufBuilder& file, const ModelQuery& query = {}) {
    Result<RopeParams> result = read(file, query);
    REQUIRE_MESSAGE(result, result.status.what);
    return std::move(result.value);
}

inline void check_refused(const std::string& bytes, ErrorCode code, const std::string& words) {
    CAPTURE(words);
    const Result<RopeParams> result = from_gguf(bytes.data(), bytes.size());
    check_error(result.status, code, words);
    CHECK(result.value.inv_freq.empty());
}

inline void check_refused(const GgufBuilder& file, ErrorCode code, const std::string& words) {
    check_refused(file.file(), code, words);
}

// Returns a file with only what a head of 128 channels needs.
inline GgufBuilder plain(const std::string& architecture = "llama") {
    GgufBuilder file(architecture);
    file.u32("block_count", 12).u32("context_length", 8192).u32("attention.key_length", 128);
    file.u32("rope.dimension_count", 128).f32("rope.freq_base", 500000);
    return file;
}

inline std::vector<double> frequencies(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    REQUIRE(default_inv_freq(base, rotary_dim, inv_freq.data()));
    return inv_freq;
}

inline std::vector<double> scaled(double base, std::uint32_t rotary_dim, const GgmlScaling& scaling,
                                  double& attention_factor) {
    std::vector<double> inv_freq = frequencies(base, rotary_dim);
    REQUIRE(scale_ggml(inv_freq, base, scaling, attention_factor));
    return inv_freq;
}

// Compares frequencies from two ways of the same arithmetic in double.
inline void check_close(const std::vector<double>& actual, const std::vector<double>& expected) {
    REQUIRE(actual.size() == expected.size());
    for (std::size_t j = 0; j < actual.size(); ++j) {
        CAPTURE(j);
        CHECK(std::abs(actual[j] - expected[j]) <= 1e-12 * expected[j]);
    }
}

}  // namespace vkrope::test
