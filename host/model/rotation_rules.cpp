// SPDX-License-Identifier: MIT
#include "model/rotation_rules.hpp"

#include <cmath>
#include <limits>

#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;

constexpr std::size_t max_warnings = 100;
constexpr double fastest =
    0x1p11;  // radians per position, for which the fraction of a turn has room
constexpr double slowest =
    std::numeric_limits<double>::min();  // a double below this loses some digits

}  // namespace

void check_query(const ModelQuery& query) {
    if (query.layer >= 0 && !query.layer_type.empty()) {
        fail(VKROPE_ERROR_INVALID_ARGUMENT, "layer is %d and layer_type is '%s'; set only one of them",
             query.layer, shown_key(std::string(query.layer_type)).c_str());
    }
    if (query.seq_len > max_positions) {
        fail(VKROPE_ERROR_INVALID_ARGUMENT, "seq_len is %llu: it must be at most %llu", ull{query.seq_len},
             ull{max_positions});
    }
}

void require_usable(const Rotation& rotation, std::size_t turning, double base,
                    const char* base_name) {
    for (std::size_t j = 0; j < turning; ++j) {
        const double frequency = rotation.inv_freq[j];
        if (!(frequency < fastest)) {
            fail(VKROPE_ERROR_INVALID_DATA,
                 "%s %.9g makes inv_freq[%llu] %g radians per position: it must be below 2048",
                 base_name, base, ull{j}, frequency);
        }
        if (frequency < slowest) {
            fail(VKROPE_ERROR_INVALID_DATA,
                 "%s %.9g and the scaling %s make inv_freq[%llu] %g radians per position: it must "
                 "be "
                 "at least %.3g",
                 base_name, base, shown_key(rotation.rope_type).c_str(), ull{j}, frequency,
                 slowest);
        }
    }
    const double factor = rotation.attention_factor;
    if (!(factor >= 0x1p-64 && factor <= 0x1p64)) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "the scaling %s makes the attention factor %g: it must be 2^-64 to 2^64",
             shown_key(rotation.rope_type).c_str(), factor);
    }
    if (!(std::isfinite(rotation.softmax_scale) && rotation.softmax_scale > 0)) {
        fail(VKROPE_ERROR_INVALID_DATA,
             "the scaling %s makes the softmax scale %g: it must be finite and above 0",
             shown_key(rotation.rope_type).c_str(), rotation.softmax_scale);
    }
}

void shorten(std::vector<std::string>& warnings) {
    if (warnings.size() > max_warnings) {
        const std::size_t more = warnings.size() - max_warnings;
        warnings.resize(max_warnings);
        warnings.push_back("and " + std::to_string(more) + " more warnings");
    }
}

}  // namespace vkrope
