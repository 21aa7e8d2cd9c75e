// SPDX-License-Identifier: MIT
// Reads the parameters of one scaling, for the functions that apply it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/hf/scaling.hpp"

namespace vkrope {

class ScalingParameters {
   public:
    ScalingParameters(const ScalingSection& section, const ScalingInput& input, Rotation& rotation);

    /// The section, and the section with the language model's own object.
    const Scopes& own() const { return own_; }
    const Scopes& everywhere() const { return everywhere_; }
    const std::string& name() const { return section_.name; }
    const ScalingInput& input() const { return input_; }
    /// The scaling changes its frequencies and its factors.
    Rotation& rotation() const { return rotation_; }

    /// Fails with the message of a formula that refuses its parameters.
    void check(const Status& status) const;
    void warn(std::string warning) const;
    void warn_of_unused() const;
    void warn_without_length(const char* warning) const;

    Field required(const Scopes& scopes, const char* name) const;
    double number(const char* name) const;
    /// The field, or `otherwise` if it is missing.
    double number(const char* name, double otherwise) const;
    /// mscale and similar fields, for which 0 is valid.
    double magnitude(const char* name, double otherwise) const;
    double max_position() const;
    double original_max_position() const;
    /// The given factor, or else the ratio of the extended to the trained length.
    double factor_beyond(double original) const;

   private:
    const ScalingSection& section_;
    const ScalingInput& input_;
    Rotation& rotation_;
    const Scopes own_, everywhere_;
};

/// A length of a file as a whole number.
std::uint64_t trained_length(double number);

/// YaRN, with the attention factor of transformers' code.
void apply_yarn(const ScalingParameters& parameters);
/// YaRN of DeepSeek's code, which also scales the softmax.
void apply_deepseek_yarn(const ScalingParameters& parameters);
void apply_longrope(const ScalingParameters& parameters);

}  // namespace vkrope
