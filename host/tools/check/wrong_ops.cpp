// SPDX-License-Identifier: MIT
// Mistakes in the ops around the rotation.
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>

#include "check/mistakes.hpp"

namespace vkrope::tools {
namespace {

using oracle::Norm, oracle::NormKind, oracle::Ops;

// Makes a change of a norm, which returns false if there is no norm.
template <class Change>
auto of_norm(const Change& change) {
    return [change](const Observation&, Hypothesis& wrong) {
        Norm& norm = wrong.ops.norm;
        return norm.kind != NormKind::none && change(norm);
    };
}

Row norm_place(const char* name, const char* meaning, bool after) {
    return {name, Part::norm, meaning,
            [after](const Observation&, Hypothesis& wrong) {
                return wrong.ops.norm.kind != NormKind::none && !wrong.operation.inv_freq.empty() &&
                       std::exchange(wrong.ops.norm.after, after) != after;
            }};
}

Row norm_kind(const char* name, const char* meaning, NormKind right, NormKind other) {
    return {name, Part::norm, meaning, of_norm([right, other](Norm& norm) {
                return std::exchange(norm.kind, other) == right;
            })};
}

Row norm_span(const char* name, const char* meaning, bool over_token) {
    return {name, Part::norm, meaning, of_norm([over_token](Norm& norm) {
                return std::exchange(norm.over_token, over_token) != over_token;
            })};
}

double mean_of(const std::vector<double>& weight) {
    return std::accumulate(weight.begin(), weight.end(), 0.0) / double(weight.size());
}

// Makes a row of a norm that does not add 1 to the weight, or adds it wrongly. Whether the weights
// that were given hold 1 + w shows in their mean.
Row weight_offset(const char* name, const char* meaning, bool adds_one) {
    return {name, Part::norm, meaning,
            [adds_one](const Observation&, Hypothesis& wrong) {
                Norm& norm = wrong.ops.norm;
                const bool added_one = norm.weight_offset == 1;
                norm.weight_offset = 1 - norm.weight_offset;
                if (norm.weight.empty() || added_one == adds_one) return false;
                const double mean = mean_of(norm.weight);
                wrong.detail = !adds_one && mean > 0.5
                                   ? fmt::format(
                                         "or the weights given are 1 + w already, as in GGUF "
                                         "files, since their mean is {:.3g}: then it is right",
                                         mean)
                                   : "";
                return true;
            }};
}

Row another_eps(double eps) {
    return {"another_eps", Part::norm, "took another eps",
            [eps](const Observation&, Hypothesis& wrong) {
                Norm& norm = wrong.ops.norm;
                const double right = std::exchange(norm.eps, eps);
                wrong.detail = fmt::format("{:g}, not {:g}", eps, right);
                // An eps that is much smaller counts as missing.
                return norm.kind != NormKind::none && !norm.reciprocal_root && eps > 1e-4 * right &&
                       std::fabs(eps - right) > 1e-6 * right;
            },
            "1e-05, not 1e-06"};
}

// Gives all heads the weight of the first head; returns false if this changes nothing.
bool repeat_first_head(std::vector<double>& weight, std::uint64_t channels) {
    bool changed = false;
    for (std::size_t i = 0; i < weight.size(); ++i) {
        changed = changed || weight[i] != weight[i % channels];
        weight[i] = weight[i % channels];
    }
    return changed;
}

oracle::Type element_type(const Hypothesis& hypothesis) {
    return hypothesis.in.type == oracle::Type::f32 ? hypothesis.out.type : hypothesis.in.type;
}

// Makes a row for a Hadamard transform with this block size.
Row hadamard_of(std::uint64_t block) {
    return {fmt::format("hadamard_of_{}", block), Part::hadamard,
            fmt::format("took a Hadamard transform of blocks of {} channels", block),
            [block](const Observation&, Hypothesis& wrong) {
                const std::uint64_t right = std::exchange(wrong.ops.hadamard, block);
                return (right != 0 || wrong.store) && right != block &&
                       wrong.in.head_dim % block == 0;
            }};
}

}  // namespace

Rows ops_mistakes() {
    Rows rows = {
        norm_place("norm_before_rotation", "took the norm before the rotation, not after it",
                   false),
        norm_place("norm_after_rotation", "took the norm after the rotation, not before it", true),
        {"norm_missing", Part::norm, "left out the norm", of_norm([](Norm& norm) {
             norm = {};
             return true;
         })},
        {"eps_missing", Part::norm, "did not add eps", of_norm([](Norm& norm) {
             norm.eps = 0;
             return true;
         })},
        {"eps_outside_root", Part::norm, "added eps to the root, not under it",
         of_norm([](Norm& norm) {
             norm.reciprocal_root = [eps = norm.eps](long double square, std::uint64_t) {
                 return 1 / (std::sqrt(square) + eps);
             };
             return true;
         })},
        {"sum_instead_of_mean", Part::norm, "took the sum of the squares, not their mean",
         of_norm([](Norm& norm) {
             norm.reciprocal_root = [eps = norm.eps](long double square, std::uint64_t n) {
                 return 1 / std::sqrt(square * static_cast<long double>(n) + eps);
             };
             return true;
         })},
        norm_span("norm_of_each_head", "took the norm of each head, not of all heads of a token",
                  false),
        norm_span("norm_of_all_heads", "took the norm of all heads of a token, not of each head",
                  true),
        norm_kind("layer_norm_instead_of_rms", "subtracted the mean, as a layer norm does",
                  NormKind::rms, NormKind::layer),
        norm_kind("rms_instead_of_layer_norm", "did not subtract the mean, which a layer norm does",
                  NormKind::layer, NormKind::rms),
        {"weight_missing", Part::norm, "took the norm without its weight",
         [](const Observation&, Hypothesis& wrong) {
             wrong.ops.norm.weight_offset = 0;
             return !std::exchange(wrong.ops.norm.weight, {}).empty();
         }},
        weight_offset("one_plus_weight_forgotten", "multiplied the norm by w, not by 1 + w", false),
        weight_offset("one_plus_weight", "multiplied the norm by 1 + w, not by w", true),
        {.name = "rounded_before_weight",
         .part = Part::norm,
         .meaning = "rounded values to the element type before the product with the weight, and "
                    "after it",
         .change =
             [](const Observation&, Hypothesis& wrong) {
                 wrong.ops.norm.round_between = element_type(wrong);
                 return !wrong.ops.norm.weight.empty() && element_type(wrong) != oracle::Type::f32;
             },
         .precision = true},
        {"weight_of_first_head", Part::norm, "took the weight of head 0 for all heads",
         [](const Observation&, Hypothesis& wrong) {
             return repeat_first_head(wrong.ops.norm.weight, normed_channels(wrong));
         }},
        {"weight_of_other_tensor", Part::norm, "took the weight of K's norm for Q, or the reverse",
         [](const Observation& observation, Hypothesis& wrong) {
             const std::vector<double> right = wrong.ops.norm.weight;
             wrong.ops.norm.weight = observation.other_weight;
             return !right.empty() && wrong.ops.norm.weight.size() == right.size() &&
                    wrong.ops.norm.weight != right;
         }},
        {"norm_bias_missing", Part::norm, "took the norm without its bias",
         [](const Observation&, Hypothesis& wrong) {
             return !std::exchange(wrong.ops.norm.bias, {}).empty();
         }},
        {"bias_missing", Part::bias, "did not add the bias",
         [](const Observation&, Hypothesis& wrong) {
             return !std::exchange(wrong.ops.bias, {}).empty();
         }},
        {"clip_missing", Part::clip, "clipped nothing",
         [](const Observation&, Hypothesis& wrong) {
             return std::exchange(wrong.ops.clip, 0) != 0;
         }},
        {"scale_missing", Part::scale, "did not scale Q",
         [](const Observation&, Hypothesis& wrong) {
             const bool scaled = std::exchange(wrong.ops.scale, 1) != 1;
             return !std::exchange(wrong.ops.scale_tokens, {}).empty() || scaled;
         }},
        {"scale_twice", Part::scale, "scaled Q twice",
         [](const Observation&, Hypothesis& wrong) {
             Ops& ops = wrong.ops;
             const bool scaled = ops.scale != 1 || !ops.scale_tokens.empty();
             ops.scale *= ops.scale;
             for (double& scale : ops.scale_tokens) scale *= scale;
             return scaled;
         }},
        {"hadamard_missing", Part::hadamard, "left out the Hadamard transform",
         [](const Observation&, Hypothesis& wrong) {
             return std::exchange(wrong.ops.hadamard, 0) != 0;
         }},
        {"hadamard_unnormalised", Part::hadamard,
         "did not divide the Hadamard transform by the root of its channels",
         [](const Observation&, Hypothesis& wrong) {
             wrong.ops.scale *= std::sqrt(double(wrong.ops.hadamard));
             return wrong.ops.hadamard != 0;
         }},
    };
    for (const double eps : {1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12})
        rows.push_back(another_eps(eps));
    constexpr std::uint64_t max_hadamard = 512;
    for (std::uint64_t block = 2; block <= max_hadamard; block *= 2)
        rows.push_back(hadamard_of(block));
    rows.push_back({"v_rotated", Part::rotation, "rotated V like K",
                    [](const Observation& observation, Hypothesis& wrong) {
                        if (!observation.rotated) return false;
                        wrong.operation = observation.rotated->operation;
                        return !wrong.operation.inv_freq.empty() && fits(wrong);
                    }});
    return rows;
}

}  // namespace vkrope::tools
