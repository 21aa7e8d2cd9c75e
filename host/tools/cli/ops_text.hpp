// SPDX-License-Identifier: MIT
// Describes the ops around a rotation, as text and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/words.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

inline constexpr Choice<NormKind> norm_kinds[] = {{"rms", VKROPE_NORM_RMS},
                                                  {"layer", VKROPE_NORM_LAYER}};
inline constexpr Choice<NormSpan> norm_spans[] = {{"head", VKROPE_NORM_SPAN_HEAD},
                                                  {"token", VKROPE_NORM_SPAN_TOKEN}};
inline constexpr Choice<NormPlace> norm_places[] = {{"before", VKROPE_NORM_PLACE_BEFORE},
                                                    {"after", VKROPE_NORM_PLACE_AFTER}};

// Returns "bias, rms norm of each head (eps 1e-06, weight), rotation"; "none" if there is no op.
std::string ops_text(const Ops& ops, bool rotates);

// Returns the norm with the shapes of its weight and its bias; null if there is none.
nlohmann::ordered_json norm_json(const Norm& norm);

// Returns the norms, the clip and the query scale of a model. A norm is null if the model has
// none, and "not known" if the reader does not know the model's norms.
nlohmann::ordered_json ops_json(const ModelOps& ops);

// Returns the ops of Q, K and V if a model has more ops than the rotation, and says whether Q and
// K have norms.
std::string model_ops_text(const RopeParams& rotation);

}  // namespace vkrope::tools
