// SPDX-License-Identifier: MIT
#include "model/hf/scaling_parameters.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/hf/finish.hpp"
#include "model/hf/scaling_types.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope {

ScalingParameters::ScalingParameters(const ScalingSection& section, const ScalingInput& input,
                                     Rotation& rotation)
    : section_(section), input_(input),
      rotation_(rotation), own_{section.scope()}, everywhere_{section.scope(), input.config} {}

void ScalingParameters::check(const Status& status) const {
    if (!status) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s: %s", section_.name.c_str(), status.what);
    }
}

void ScalingParameters::warn(std::string warning) const {
    rotation_.warnings.push_back(std::move(warning));
}

void ScalingParameters::warn_of_unused() const {
    const std::string& type = rotation_.rope_type;
    for (const auto& [key, value] : section_.object.items()) {
        if (!value.is_null() && !reads_field(type, key) && !finish_reads(input_.model_type, key)) {
            warn("ignored key " + section_.name + "." + shown_key(key) + ": rope_type " + type +
                 " does not use it");
        }
    }
}

void ScalingParameters::warn_without_length(const char* warning) const {
    if (input_.seq_len == 0) {
        warn(warning);
    }
}

Field ScalingParameters::required(const Scopes& scopes, const char* name) const {
    Field field = find(scopes, {name});
    if (!field) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s.%s is missing: rope_type %s needs it", section_.name.c_str(),
             name, rotation_.rope_type.c_str());
    }
    return field;
}

double ScalingParameters::number(const char* name) const {
    return positive_number(required(own_, name));
}

double ScalingParameters::number(const char* name, double otherwise) const {
    const Field field = find(own_, {name});
    return field ? positive_number(field) : otherwise;
}

double ScalingParameters::magnitude(const char* name, double otherwise) const {
    const Field field = find(own_, {name});
    return !field || *field.value == 0 ? (field ? 0 : otherwise) : positive_number(field);
}

double ScalingParameters::max_position() const {
    if (rotation_.max_position == 0) {
        fail(VKROPE_ERROR_INVALID_DATA, "max_position_embeddings is missing: rope_type %s needs it",
             rotation_.rope_type.c_str());
    }
    return double(rotation_.max_position);
}

double ScalingParameters::original_max_position() const {
    if (const Field field = find(everywhere_, {"original_max_position_embeddings"})) {
        return positive_number(field);
    }
    const double assumed = max_position();
    warn("original_max_position_embeddings is missing: assuming " +
         std::to_string(rotation_.max_position) + ", which is max_position_embeddings");
    return assumed;
}

double ScalingParameters::factor_beyond(double original) const {
    const Field field = find(own_, {"factor"});
    const Field length = find(everywhere_, {"original_max_position_embeddings"});
    if (!field && !length) {
        required(own_, "factor");
    }
    if (!field) {
        return max_position() / original;
    }
    const double factor = positive_number(field);
    if (length && rotation_.max_position != 0 &&
        std::fabs(factor * original - double(rotation_.max_position)) >= 1) {
        warn(field.name + " is " + shown(*field.value) + " but max_position_embeddings, " +
             std::to_string(rotation_.max_position) + ", is " +
             shown_number(double(rotation_.max_position) / original) +
             " times original_max_position_embeddings: the factor is taken");
    }
    return factor;
}

std::uint64_t trained_length(double number) {
    return static_cast<std::uint64_t>(std::min(number, 0x1p53));
}

}  // namespace vkrope
