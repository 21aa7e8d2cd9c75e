// SPDX-License-Identifier: MIT
#include "model/rotation_rules.hpp"

#include <climits>
#include <cmath>
#include <limits>

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/query.hpp"

namespace vkrope {
namespace {

constexpr std::size_t max_warnings = 100;
constexpr double fastest = 0x1p11;  // radians per position; limit of a turn fraction
constexpr double slowest = std::numeric_limits<double>::min();  // smaller doubles lose digits

}  // namespace

Query checked(const ModelQuery& query) {
    Query of{.seq_len = query.seq_len, .pairing = query.pairing};
    if (query.layer_type) of.layer_type = query.layer_type;
    if (query.tower) of.tower = query.tower;
    if (query.by_layer)
        of.layer = int(query.layer);
    else if (query.layer != 0)
        invalid_argument("query.layer is {}: without query.by_layer it must be 0", query.layer);
    if (query.by_layer && query.layer > INT_MAX)
        invalid_argument("query.layer is {}: it must be below 2^31", query.layer);
    if (query.by_layer && !of.layer_type.empty()) {
        invalid_argument("query.layer is {} and query.layer_type is '{}'; set only one of them",
                         query.layer, shown_key(std::string(of.layer_type)));
    }
    if (query.pairing > VKROPE_INTERLEAVED) {
        invalid_argument("query.pairing is {}: it must be a vkrope_pairing",
                         unsigned(query.pairing));
    }
    if (query.ignore_count != 0 && query.ignore == nullptr)
        invalid_argument("query.ignore is null: query.ignore_count is {}", query.ignore_count);
    for (std::size_t i = 0; i < query.ignore_count; ++i) {
        if (query.ignore[i] == nullptr) invalid_argument("query.ignore[{}] is null", i);
        of.ignore.push_back(query.ignore[i]);
    }
    if (query.seq_len > max_positions) {
        invalid_argument("query.seq_len is {}: it must be at most {}", query.seq_len,
                         max_positions);
    }
    return of;
}

void require_usable(const RopeParams& rotation, std::size_t turning, double base,
                    const char* base_name) {
    for (std::size_t j = 0; j < turning; ++j) {
        const double frequency = rotation.inv_freq[j];
        if (!(frequency < fastest)) {
            invalid_data("{} {} makes inv_freq[{}] {} radians per position: it must be below 2048",
                         base_name, shown_number(base), j, frequency);
        }
        if (frequency < slowest) {
            invalid_data(
                "{} {} and the scaling {} make inv_freq[{}] {} radians per position: it must be at "
                "least {}",
                base_name, shown_number(base), shown_key(rotation.rope_type), j, frequency,
                shown_number(slowest, 3));
        }
    }
    const double factor = rotation.attention_factor;
    if (!(factor >= 0x1p-64 && factor <= 0x1p64)) {
        invalid_data("the scaling {} makes the attention factor {}: it must be 2^-64 to 2^64",
                     shown_key(rotation.rope_type), factor);
    }
    if (!(std::isfinite(rotation.softmax_scale) && rotation.softmax_scale > 0)) {
        invalid_data("the scaling {} makes the softmax scale {}: it must be finite and above 0",
                     shown_key(rotation.rope_type), rotation.softmax_scale);
    }
}

void set_base(RopeParams& rotation, double base, const char* base_name) {
    rotation.base = base;
    rotation.inv_freq.resize(rotation.rotary_dim / 2);
    require(default_inv_freq(base, rotation.rotary_dim, rotation.inv_freq.data()), base_name);
}

void add_axis(RopeParams& rotation, std::uint32_t width, double base, double factor) {
    rotation.sections.pairs[rotation.sections.axes++] = width / 2;
    for (std::uint32_t j = 0; j < width / 2; ++j)
        rotation.inv_freq.push_back(std::pow(base, -2.0 * j / width) * factor);
}

void warn_of_length(RopeParams& rotation, std::uint64_t seq_len) {
    if (rotation.max_position != 0 && seq_len > rotation.max_position) {
        warn(rotation, "seq_len is {}: the model was trained for {}", seq_len,
             rotation.max_position);
    }
}

float norm_eps(const Field& field, double otherwise) {
    const double value = field ? positive_number(field) : otherwise;
    if (!(value >= 1e-20 && value <= 1)) refuse(field, "1e-20 to 1");
    return float(value);
}

void shorten(Warnings& warnings) {
    if (warnings.size() > max_warnings) {
        const std::size_t more = warnings.size() - max_warnings;
        warnings.resize(max_warnings);
        warn(warnings, "and {} more warnings", more);
    }
}

}  // namespace vkrope
