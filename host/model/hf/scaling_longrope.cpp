// SPDX-License-Identifier: MIT
#include <vector>

#include "model/hf/scaling_parameters.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {
namespace {

using nlohmann::json;
using ull = unsigned long long;

std::vector<double> divisors(const ScalingParameters& parameters, const char* name) {
    Rotation& rotation = parameters.rotation();
    const Field field = parameters.required(parameters.own(), name);
    if (!field.value->is_array()) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %s: it must be a list of numbers", field.name.c_str(),
             shown(*field.value).c_str());
    }
    std::vector<double> numbers;
    for (const json& entry : *field.value) {
        numbers.push_back(
            positive_number({field.name + "[" + std::to_string(numbers.size()) + "]", &entry}));
    }
    if (numbers.size() != rotation.inv_freq.size()) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s has %llu elements: it must have rotary_dim / 2 = %llu",
             field.name.c_str(), ull{numbers.size()}, ull{rotation.inv_freq.size()});
    }
    return numbers;
}

}  // namespace

void apply_longrope(const ScalingParameters& parameters) {
    Rotation& rotation = parameters.rotation();
    const std::vector<double> near = divisors(parameters, "short_factor");
    const std::vector<double> far = divisors(parameters, "long_factor");
    LongRopeScaling scaling;
    scaling.short_factor = near.data();
    scaling.long_factor = far.data();
    scaling.count = near.size();
    scaling.original_max_position_embeddings = parameters.original_max_position();
    scaling.attention_factor = parameters.number("attention_factor", 0);
    scaling.short_mscale = parameters.number("short_mscale", 0);
    scaling.long_mscale = parameters.number("long_mscale", 0);
    if (const Field given = find(parameters.own(), {"attention_factor"});
        given && (scaling.short_mscale != 0 || scaling.long_mscale != 0)) {
        parameters.warn("ignored key " + given.name + ", which is " + shown(*given.value) +
                        ": short_mscale and long_mscale are taken for their lists");
    }
    // A given attention factor needs no factor.
    const bool needed = scaling.attention_factor == 0 &&
                        (scaling.short_mscale == 0 || scaling.long_mscale == 0);
    scaling.factor = needed || find(parameters.own(), {"factor"})
                         ? parameters.factor_beyond(scaling.original_max_position_embeddings)
                         : 1;
    parameters.warn_without_length(
        "longrope depends on the length, which is unknown: assuming the short list");
    parameters.check(scale_longrope(rotation.inv_freq, scaling, parameters.input().seq_len,
                                    rotation.attention_factor));
    const std::uint64_t original = trained_length(scaling.original_max_position_embeddings);
    if (parameters.input().seq_len <= original) rotation.longest_seq_len = original;
}

}  // namespace vkrope
