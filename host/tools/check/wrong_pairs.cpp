// SPDX-License-Identifier: MIT
// Mistakes in the pairs and in the attention factor.
#include <cmath>
#include <memory>
#include <utility>

#include "check/mistakes.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

using oracle::Gain;

// Returns true if there is an attention factor and it is used in this way.
bool has_factor(const Hypothesis& hypothesis, Gain gain) {
    return hypothesis.operation.attention_factor != 1 && hypothesis.operation.gain == gain;
}

// Replaces the attention factor.
bool replace_factor(Hypothesis& wrong, double factor) {
    const double right = std::exchange(wrong.operation.attention_factor, factor);
    wrong.operation.gain = Gain::apply;
    return std::fabs(factor - right) > 1e-12 * right;
}

// Makes a change that uses the factor in another way.
auto use_factor(Gain right, Gain other) {
    return [right, other](const Observation&, Hypothesis& wrong) {
        const bool used = has_factor(wrong, right);
        wrong.operation.gain = other;
        return used;
    };
}

// Computes the tensor from the input of the other one, if both have the same shape.
bool take_other_input(const Observation& observation, Hypothesis& wrong) {
    const oracle::Tensor &in = wrong.in, &other = observation.other_in;
    const bool same = observation.other_input != nullptr && in.type == other.type &&
                      in.batch == other.batch && in.tokens == other.tokens &&
                      in.heads == other.heads && in.head_dim == other.head_dim;
    wrong.in = other;
    wrong.input = observation.other_input;
    return same;
}

// Makes a row that computes the first or the second channel of each pair from the other tensor.
Row crossed(std::size_t member) {
    return {"q_and_k_crossed", Part::alone,
            "computed one channel of each pair of Q from K, or of K from Q",
            [member](const Observation& observation, Hypothesis& wrong) {
                Hypothesis other = wrong;
                const bool possible = take_other_input(observation, other);
                wrong.other_channels.resize(wrong.in.head_dim);
                for (const oracle::Pair& pair : oracle::pairs_of(wrong.operation))
                    wrong.other_channels[pair.out[member]] = true;
                wrong.of_other_channels = std::make_shared<const Hypothesis>(std::move(other));
                wrong.detail = member == 0 ? "the first" : "the second";
                return possible;
            }};
}

}  // namespace

Rows pair_mistakes() {
    return {
        {"swapped_pairing", Part::pairing, "took the other pairing",
         [](const Observation&, Hypothesis& wrong) {
             bool& interleaved = wrong.operation.interleaved;
             interleaved = !interleaved;
             wrong.detail = interleaved ? "interleaved, not half_split"
                                        : "half_split, not interleaved";
             return wrong.operation.inv_freq.size() > 1;
         },
         "interleaved, not half_split"},
        {"reordered_pairs", Part::pairing,
         "stored right values in the channel order of the other pairing",
         [](const Observation&, Hypothesis& wrong) {
             wrong.operation.interleaved_out = !wrong.operation.interleaved;
             return wrong.operation.inv_freq.size() > 1;
         }},
        {"table_order_of_other_pairing", Part::alone,
         "laid out cos and sin of the channels in the order of the other pairing",
         // Each channel of a pair then turns by its own angle, as if in two different rotations.
         [](const Observation&, Hypothesis& wrong) {
             oracle::Operation& operation = wrong.operation;
             const std::vector<double> right = operation.inv_freq;
             const std::size_t pairs = right.size();
             const bool interleaved = operation.interleaved;
             if (pairs < 2 || operation.windows.size() > 1 || operation.head_groups != 1 ||
                 !wrong.operation.further.positions.empty())
                 return false;
             Hypothesis second = wrong;
             wrong.other_channels.resize(wrong.in.head_dim);
             const auto of_channel = [&](std::size_t channel) {
                 return right[interleaved ? channel % pairs : channel / 2];
             };
             const std::vector<oracle::Pair> all = oracle::pairs_of(operation);
             for (std::size_t j = 0; j < pairs; ++j) {
                 operation.inv_freq[j] = of_channel(interleaved ? 2 * j : j);
                 second.operation.inv_freq[j] = of_channel(interleaved ? 2 * j + 1 : j + pairs);
                 wrong.other_channels[all[j].out[1]] = true;
             }
             wrong.of_other_channels = std::make_shared<const Hypothesis>(std::move(second));
             return true;
         }},
        {"q_and_k_exchanged", Part::alone, "gave Q the result of K, or K that of Q",
         take_other_input},
        crossed(0),
        crossed(1),
        {"attention_factor_missing", Part::factor, "left out the attention factor",
         use_factor(Gain::apply, Gain::omit)},
        {"attention_factor_twice", Part::factor, "applied the attention factor twice",
         [](const Observation&, Hypothesis& wrong) {
             wrong.operation.attention_factor *= wrong.operation.attention_factor;
             return has_factor(wrong, Gain::apply);
         }},
        {"attention_factor_divided", Part::factor, "divided by the attention factor",
         use_factor(Gain::apply, Gain::divide_out)},
        {"yarn_magnitude_applied", Part::factor,
         "used YaRN's magnitude 0.1 ln(factor) + 1, which is not the model's attention factor",
         // m(1) of arXiv:2309.00071, section 3.4, used where mscales cancel or the file gives
         // another factor.
         [](const Observation& observation, Hypothesis& wrong) {
             const double factor = factor_of_scaling(observation, wrong);
             return factor > 1 && replace_factor(wrong, 0.1 * std::log(factor) + 1);
         }},
        {"softmax_root_applied", Part::factor,
         "multiplied cos and sin by the magnitude that belongs to the softmax scale",
         // DeepSeek's softmax scale contains the square of a magnitude, one for Q and one for K.
         [](const Observation& observation, Hypothesis& wrong) {
             return observation.softmax_scale > 0 &&
                    replace_factor(wrong, wrong.operation.attention_factor *
                                              std::sqrt(observation.softmax_scale));
         }},
        {"attention_factor_applied", Part::factor,
         "applied the attention factor, which --gain asks to omit or divide out",
         [](const Observation&, Hypothesis& wrong) {
             const bool used = has_factor(wrong, Gain::omit) || has_factor(wrong, Gain::divide_out);
             wrong.operation.gain = Gain::apply;
             return used;
         }},
        {"softmax_scale_applied", Part::factor, "multiplied by the factor of the softmax scale",
         [](const Observation& observation, Hypothesis& wrong) {
             wrong.operation.attention_factor *= observation.softmax_scale;
             return observation.softmax_scale != 1;
         }},
    };
}

}  // namespace vkrope::tools
