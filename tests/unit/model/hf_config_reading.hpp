// SPDX-License-Identifier: MIT
// Reads a configuration for the tests of model families.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

inline constexpr Pairing half = VKROPE_HALF_SPLIT;
inline constexpr Pairing interleaved = VKROPE_INTERLEAVED;

/// The text of one of the files in tests/data/models.
inline std::string model_file(const std::string& name) {
    std::ifstream stream(VKROPE_TEST_MODELS "/" + name + ".json");
    REQUIRE_MESSAGE(stream.good(), name);
    return {std::istreambuf_iterator<char>(stream), {}};
}

inline bool close(double a, double b) {
    return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

inline RopeParams imported(const std::string& json, const ModelQuery& query = {}) {
    const Result<RopeParams> result = from_hf_config(json, query);
    REQUIRE_MESSAGE(result, result.status.what, " in ", json.substr(0, 300));
    return result.value;
}

inline std::vector<std::uint32_t> sections_of(const RopeParams& rotation) {
    return {rotation.sections.pairs, rotation.sections.pairs + rotation.sections.axes};
}

/// Checks that all frequencies follow from `base`, divided by `factor`.
inline void check_plain(const RopeParams& rotation, double base, double factor = 1) {
    REQUIRE(rotation.inv_freq.size() == rotation.rotary_dim / 2);
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        CAPTURE(j);
        CHECK(close(rotation.inv_freq[j],
                    std::pow(base, -2.0 * double(j) / rotation.rotary_dim) / factor));
    }
}

struct Family {
    std::string type;  // model_type
    std::uint32_t head_dim, rotary_dim;
    Pairing pairing;
    double base;
    std::string json;  // the other keys
    std::size_t warnings = 0;
};

}  // namespace vkrope::test
