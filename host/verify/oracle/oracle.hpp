// SPDX-License-Identifier: MIT
// The oracle: RoPE by its definition, in plain loops, with angles that are exact products of
// position and inv_freq. It shares no code with the library, so that a mistake of the library
// cannot repeat itself here. For tools and tests; not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace vkrope::oracle {

enum class Type { f32, f16, bf16 };

/// Returns the size of one element in bytes.
inline std::size_t bytes_of(Type type) {
    return type == Type::f32 ? 4 : 2;
}

/// widen() returns the exact value of a stored element, narrow() the nearest element, ties to even.
float widen(Type type, std::uint32_t bits);
std::uint32_t narrow(Type type, long double value);

/// A paged cache [pages, page_size] for the rows of an output, with one row per token; strides are
/// in elements.
struct Cache {
    /// [batch, tokens]; a slot is page * page_size + row. A token whose slot is -1 or outside the
    /// cache is not stored.
    std::vector<std::int64_t> slot_mapping = {};
    std::uint64_t pages = 0, page_size = 1;
    std::uint64_t page_stride = 0, row_stride = 0;
};

/// One tensor [batch, tokens, heads, head_dim], with strides in elements. If the head_stride of an
/// input is 0, all heads read one row.
struct Tensor {
    Type type = Type::f32;
    std::uint64_t batch = 1, tokens = 0, heads = 0, head_dim = 0;
    std::uint64_t batch_stride = 0, token_stride = 0, head_stride = 0;
    std::uint64_t heads_per_group = 0,
                  group_stride = 0;  // heads_per_group 0: one group
    // Replaces batch_stride and token_stride of an output.
    std::optional<Cache> cache = {};
};

/// Calls visit(row, first) for each stored row with its index in [batch, tokens, heads] and its
/// first element.
void each_row(const Tensor& tensor,
              const std::function<void(std::uint64_t row, std::uint64_t first)>& visit);

/// Channels that form pairs with each other; `offset` counts from Operation::rotary_offset.
struct Window {
    std::uint64_t offset = 0, pairs = 0;
};

/// The effect of the attention factor: cos and sin are multiplied by it, lack it, or are divided by
/// it. The numbers are those of vkrope::Gain; the oracle shares no type with the library.
enum class Gain { apply, omit, divide_out };

/// Cos and sin of the angle of one pair.
struct CosSin {
    long double cos = 1, sin = 0;
};

/// Returns cos and sin of the exact product position * inv_freq.
CosSin exact_cos_sin(std::int64_t position, double inv_freq);

/// Returns cos and sin of the sum of two angles.
CosSin sum_of(const CosSin& a, const CosSin& b);

/// The operation: rotates the windows of every row and copies all other channels unchanged.
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
    std::vector<std::int64_t> positions;   // [batch, tokens]
    double absolute_allowance = 0x1p-148;  // the contract's absolute term; on a device that flushes
                                           // subnormals flushing_allowance()
    /// Tokens with |position| < `covered` are rotated. The pairs of other tokens are only
    /// rearranged according to interleaved_out.
    std::uint64_t covered = std::numeric_limits<std::uint64_t>::max();
    /// Replaces exact_cos_sin(position, inv_freq[pair]) with its phase, to model other arithmetic
    /// or a mistake; `pair` is an index into inv_freq. The factor and the direction are applied to
    /// the result.
    std::function<CosSin(std::int64_t position, std::size_t pair)> cos_sin = {};
};

/// One element of a tensor.
struct Place {
    std::uint64_t batch = 0, token = 0, head = 0, channel = 0;
};

/// The result of comparing an output with the definition.
struct Verdict {
    std::uint64_t elements = 0;        // compared
    std::uint64_t passed_through = 0;  // elements that are not rotated
    /// Largest error of all rotated elements: the distance from the exact value to the output
    /// (ElementTable::distance), less `absolute_allowance`, in units of u * a * (|x0| + |x1|),
    /// where u = 2^-24 and a is the factor that `gain` selects.
    double largest_error_u = 0;
    bool nan_mismatch = false;  // an output is NaN and the exact value is not, or the reverse
    /// An element that is not rotated differs from the input: in a bit if input and output have the
    /// same type, otherwise from the input rounded to nearest.
    bool bits_changed = false;
    std::uint64_t out_of_range = 0;  // tokens whose position is not covered, or whose slot is
                                     // outside the cache and is not -1
    std::string worst;               // "batch 0 token 17 head 3 channel 5: got ..., exact ..."
    Place worst_place = {};          // the same as numbers
};

/// Compares `output`, laid out as `out`, with the exact rotation of `input`, laid out as `in`;
/// elements have 4 or 2 bytes. Both have the same shape. Only the rows that each_row() visits are
/// compared, not elements between rows or rows without a slot.
///
/// progress  optional; called with the fraction done, 0 to 1
Verdict compare(const Tensor& in, const Tensor& out, const Operation& operation, const void* input,
                const void* output, const std::function<void(double)>& progress = {});

/// Compares as above where input and output have one layout.
inline Verdict compare(const Tensor& tensor, const Operation& operation, const void* input,
                       const void* output) {
    return compare(tensor, tensor, operation, input, output);
}

}  // namespace vkrope::oracle
