// SPDX-License-Identifier: MIT
// The oracle of the ops: bias, norm, clip, rotation, norm, scale, Hadamard transform and store of a
// tensor, in plain loops of long double, with the error that the contract allows each channel. It
// shares no code with the library.
#pragma once

#include <algorithm>
#include <span>

#include "verify/oracle/quantise.hpp"

namespace vkrope::oracle {

enum class NormKind { none, rms, layer };

// rms: x / sqrt(mean(x^2) + eps) * w. layer: (x - mean) / sqrt(variance + eps) * w + bias, with
// the population variance.
struct Norm {
    NormKind kind = NormKind::none;
    bool over_token = false;  // one statistic for all heads of a token, not for each head row
    // The part of each head row that the norm takes; `channels` 0: all of it. Other channels keep
    // their values and do not affect the norm.
    std::uint64_t first_channel = 0, channels = 0;
    bool after = false;  // applied after the rotation
    double eps = 0;
    std::vector<double> weight = {};  // [n] or [heads, n] for a part of n channels; empty: none
    double weight_offset = 0;         // added to every weight
    std::vector<double> bias = {};    // of a layer norm; same shape as the weight; empty: none
    // Rounds to this type after the product with the reciprocal root, and again after the product
    // with the weight.
    std::optional<Type> round_between = {};
    // Replaces 1 / sqrt(square + eps) over n channels, to model a mistake.
    std::function<long double(long double square, std::uint64_t n)> reciprocal_root = {};
};

// The ops before and after the rotation, in the order of execution: Hadamard transform of the input
// undone, bias, norm before, clip, rotation, norm after, scale, Hadamard transform. Ops also apply
// to channels outside the windows.
struct Ops {
    std::vector<double> bias = {};  // [head_dim] or [heads, head_dim]; empty: none
    Norm norm = {};
    double clip = 0;                        // limit of the magnitude; 0: none
    double scale = 1;                       // exact product of the constant factors
    std::vector<double> scale_tokens = {};  // [batch, tokens]; empty: none
    // Block sizes in channels, see hadamard() in quantise.hpp; 0: none. The transform of the input
    // is its own inverse.
    std::uint64_t hadamard_of_input = 0, hadamard = 0;
    // Parameters of the tokens from `from_token` of their sequence on; each replaces `bias`,
    // `norm.weight` or `norm.bias` unless it is empty.
    struct Second {
        std::uint64_t from_token = 0;
        std::vector<double> bias, weight, norm_bias;

        // Adapts from_token to sequences without their first `tokens` tokens.
        void leave_out(std::uint64_t tokens) { from_token -= std::min(from_token, tokens); }
    };
    std::optional<Second> second = {};
};

// Returns whether any of the ops changes a channel.
bool has_steps(const Ops& steps);

// Rows of a quantised type that are read.
struct QuantisedInput {
    Store type = Store::q8_0;
    std::uint64_t group = 0;         // channels of a scale; 0: the row
    std::vector<float> scales = {};  // [batch, tokens, heads, groups]; empty: none
};

// One tensor of an operation: its layouts, its rotation, the ops around it and its store.
struct Definition {
    Tensor in, out;       // of one shape; the strides of a quantised output count channels
    Operation operation;  // its rotation; without inv_freq if the tensor is not rotated
    Ops ops = {};         // around the rotation
    std::optional<QuantisedStore> store = {};  // of a quantised output
    double bound_u = 6;  // largest error of a rotated channel, in units of u * a * (|x0| + |x1|)
                         // with u = 2^-24 and the factor a that `gain` selects
    bool any_angles = false;  // the angles are not known: only channels that no op changes are
                              // compared
    std::optional<QuantisedInput> read = {};  // of a quantised input; its strides count channels
};

// Reads a row. Each channel of a quantised type is rounded as in dequantise(). Its error is that of
// a device that flushes subnormal scales and products, if the operation allows for one.
void read_row(const Definition& definition, const void* input, const Place& place,
              std::span<Approximate> row);

// Applies the ops to each token that has input rows, and calls visit(batch, token, [heads,
// head_dim]) with its channels before they are stored. With u = 2^-24, the error of a channel is
// carried from op to op:
//
// - bias, scale: u for each addition, product and factor that is not a float.
// - rms norm: (k/2 + 5) u, and 2 u for the weight, relative to the result, where k is
//   ceil(log2 of the norm's channels in a row), plus ceil(log2 heads) for a norm over a token. The
//   sum of squares rounds k times, and the root halves that error; the squares, the mean, 1/n and
//   eps contribute 0.5 each, the root 1.8 and the product 1.
// - layer norm: the same with absolute errors, because its sums cancel.
// - rotation: bound_u * u * attention factor * (|x0| + |x1|).
// - Hadamard transforms: see hadamard() in quantise.hpp.
//
// Each op adds Operation::absolute_allowance. Values beyond the range of f32 between the ops are
// not covered.
void apply_ops(const Definition& definition, const void* input,
               const std::function<void(std::uint64_t batch, std::uint64_t token,
                                        std::span<const Approximate> channels)>& visit);

}  // namespace vkrope::oracle
