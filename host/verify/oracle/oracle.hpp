// SPDX-License-Identifier: MIT
// The oracle: RoPE by its definition, in plain loops, with angles that are exact products of
// position and inv_freq. It shares no code with the library, so that a mistake of the library
// cannot repeat itself here. For tools and tests; not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace vkrope::oracle {

enum class Type { f32, f16, bf16 };

// Returns the size of one element in bytes.
inline std::size_t bytes_of(Type type) {
    return type == Type::f32 ? 4 : 2;
}

// widen() returns the exact value of a stored element, narrow() the nearest element, ties to even.
float widen(Type type, std::uint32_t bits);
std::uint32_t narrow(Type type, long double value);

// A paged cache [pages, page_size] with one row per token; strides are in elements.
struct Cache {
    // [batch, tokens]; a slot is page * page_size + row. A token whose slot is -1 or outside the
    // cache has no row.
    std::vector<std::int64_t> slot_mapping = {};
    std::uint64_t pages = 0, page_size = 1;
    std::uint64_t page_stride = 0, row_stride = 0;
};

// One tensor [batch, tokens, heads, head_dim], with strides in elements. If the head_stride of an
// input is 0, all heads read one row.
struct Tensor {
    Type type = Type::f32;
    std::uint64_t batch = 1, tokens = 0, heads = 0, head_dim = 0;
    std::uint64_t batch_stride = 0, token_stride = 0, head_stride = 0;
    std::uint64_t heads_per_group = 0,
                  group_stride = 0;   // heads_per_group 0: one group
    std::optional<Cache> cache = {};  // replaces batch_stride and token_stride
    std::vector<bool> left_out = {};  // [batch, tokens] tokens without a row; empty: none
};

// Calls visit(row, first) for each stored row with its index in [batch, tokens, heads] and its
// first element.
void each_row(const Tensor& tensor,
              const std::function<void(std::uint64_t row, std::uint64_t first)>& visit);

// Channels that form pairs with each other; `offset` counts from Operation::rotary_offset.
struct Window {
    std::uint64_t offset = 0, pairs = 0;
};

// The effect of the attention factor: cos and sin are multiplied by it, lack it, or are divided by
// it. The numbers are those of vkrope::Gain; the oracle shares no type with the library.
enum class Gain { apply, omit, divide_out };

// Cos and sin of the angle of one pair.
struct CosSin {
    long double cos = 1, sin = 0;
};

// Return cos and sin of the exact product position * inv_freq, and of the f32 product of both as
// f32.
CosSin exact_cos_sin(std::int64_t position, double inv_freq);
CosSin float32_cos_sin(std::int64_t position, double inv_freq);

// Returns cos and sin of the sum of two angles.
CosSin sum_of(const CosSin& a, const CosSin& b);

// The axes after the first, if tokens have positions on several.
struct FurtherAxes {
    std::vector<std::vector<std::int64_t>> positions = {};  // [axes - 1][batch * tokens]
    // The axis by whose position a pair turns, repeated if there are more pairs. Empty: the first.
    std::vector<std::uint32_t> axes = {};
    // [head_groups, axes, pairs] Each pair turns by the sum of position times frequency over all
    // axes, and Operation::inv_freq is not used. Empty: it turns by one axis.
    std::vector<double> summed = {};

    std::uint32_t axis(std::size_t pair) const {
        return positions.empty() || axes.empty() ? 0 : axes[pair % axes.size()];
    }
};

// The positions that angles cover; a token is covered if its positions on all axes are.
struct Range {
    std::int64_t first = std::numeric_limits<std::int64_t>::min();
    std::int64_t last = std::numeric_limits<std::int64_t>::max();
};

// The operation: rotates the windows of every row and copies all other channels unchanged.
struct Operation {
    bool interleaved = false;
    std::optional<bool> interleaved_out = {};  // pairing of the output; none: that of the input
    bool inverse = false;
    std::uint64_t rotary_offset = 0;
    std::vector<Window> windows = {};  // ascending, disjoint; none: one with all pairs, at 0
    std::vector<double> inv_freq;      // [head_groups, pairs of all windows] radians per position
    std::vector<double> phase = {};    // same shape as inv_freq, radians; empty: none
    std::uint64_t head_groups = 1;     // groups of consecutive heads with one set of frequencies
    double attention_factor = 1.0;
    Gain gain = Gain::apply;
    std::vector<std::int64_t> positions;  // [batch, tokens], on the first axis
    FurtherAxes further = {};
    bool float32_angles = false;  // angles without phases are products of position and inv_freq,
                                  // all three rounded to f32
    double absolute_allowance = 0x1p-148;  // the contract's absolute term; on a device that flushes
                                           // subnormals flushing_allowance()
    // The pairs of tokens that are not covered are only rearranged, as interleaved_out says.
    Range covered = {};
    // Replaces the angle of a pair by the position on its axis, with its phase, to model other
    // arithmetic or a mistake; `pair` is an index into inv_freq. The factor and the direction are
    // applied to the result. Not for sums over axes.
    std::function<CosSin(std::int64_t position, std::size_t pair)> cos_sin = {};
};

// One element of a tensor.
struct Place {
    std::uint64_t batch = 0, token = 0, head = 0, channel = 0;
};

// An exact value, and the largest error of f32 arithmetic that the contract allows.
struct Approximate {
    long double value = 0, error = 0;
};

}  // namespace vkrope::oracle
