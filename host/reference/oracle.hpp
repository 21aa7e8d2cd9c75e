// SPDX-License-Identifier: MIT
// The oracle: RoPE by its definition, in plain loops, with angles that are exact
// products of position and inv_freq. It shares no code with the library, so
// that a mistake there cannot repeat itself here. For tools and tests; not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace vkrope::reference {

enum class Type { f32, f16, bf16 };

/// Exact value of a stored element; the nearest stored element, ties to even.
float widen(Type type, std::uint32_t bits);
std::uint32_t narrow(Type type, long double value);

/// Rows of an output in pages, one a token: [pages, page_size], strides in elements.
struct Cache {
    /// [batch, tokens] page * page_size + row; -1, and any row that the cache does not have, is
    /// nowhere.
    std::vector<std::int64_t> slot_mapping = {};
    std::uint64_t pages = 0, page_size = 1;
    std::uint64_t page_stride = 0, row_stride = 0;
};

/// One tensor [batch, tokens, heads, head_dim], strides in elements. An input with head_stride 0:
/// all heads read one row.
struct Tensor {
    Type type = Type::f32;
    std::uint64_t batch = 1, tokens = 0, heads = 0, head_dim = 0;
    std::uint64_t batch_stride = 0, token_stride = 0, head_stride = 0;
    std::uint64_t heads_per_group = 0,
                  group_stride = 0;  // heads in groups of so many; 0: one group
    // Outputs: says where rows are in place of batch_stride and token_stride.
    std::optional<Cache> cache = {};
};

/// Calls visit(row, first) for the rows of a tensor that are anywhere: their index in [batch,
/// tokens, heads], their first element.
void each_row(const Tensor& tensor,
              const std::function<void(std::uint64_t row, std::uint64_t first)>& visit);

/// Channels that are rotated among themselves, from Operation::rotary_offset on.
struct Window {
    std::uint64_t offset = 0, pairs = 0;
};

/// What becomes of the attention factor: cos and sin times it, without it, or divided by it.
enum class Gain { apply, omit, divide_out };

/// What turns one pair.
struct CosSin {
    long double cos = 1, sin = 0;
};

/// Of position * inv_freq, which is exact.
CosSin exact_cos_sin(std::int64_t position, double inv_freq);

/// The operation: the windows of every row are rotated, the rest passes through.
struct Operation {
    bool interleaved = false;
    std::optional<bool> interleaved_out = {};  // how pairs are written; nothing: as they are read
    bool inverse = false;
    std::uint64_t rotary_offset = 0;
    std::vector<Window> windows = {};  // apart; none: one with all pairs, at 0
    std::vector<double> inv_freq;      // [pairs of all windows] radians per position
    double attention_factor = 1.0;
    Gain gain = Gain::apply;
    std::vector<std::int64_t> positions;   // [batch, tokens]
    double absolute_allowance = 0x1p-148;  // the contract's absolute term; 2^-123 + 2^-148 where
                                           // the device flushes subnormals
    /// Positions with |position| below it are rotated. Other rows are not: their pairs are only
    /// written as interleaved_out says.
    std::uint64_t covered = std::numeric_limits<std::uint64_t>::max();
    /// In place of exact_cos_sin(position, inv_freq[pair]): what other arithmetic makes of it, or a
    /// mistake. The factor and the direction come on top.
    std::function<CosSin(std::int64_t position, std::size_t pair)> cos_sin = {};
    std::vector<double> limits_u = {};  // errors that Verdict::within counts elements against
    std::vector<bool> rows = {};        // [batch, tokens, heads] those that are compared; none: all
};

/// One element of a tensor.
struct Place {
    std::uint64_t batch = 0, token = 0, head = 0, channel = 0;
};

/// What comparing an output with the definition found.
struct Verdict {
    std::uint64_t elements = 0;        // compared
    std::uint64_t passed_through = 0;  // of these, not rotated
    /// Distance between the exact value and the nearest value that would have been stored as the
    /// output was, in units of u * a * (|x0| + |x1|), u = 2^-24 and a the factor that `gain`
    /// leaves, after `absolute_allowance` is taken off. Largest over all rotated elements.
    double largest_error_u = 0;
    bool nan_mismatch = false;  // an output is NaN where the exact value is not, or the reverse
    /// An element that is not rotated is not the input: bit for bit where input and output have one
    /// type, else rounded to the nearest.
    bool bits_changed = false;
    std::uint64_t out_of_range = 0;  // tokens whose position is not covered, or whose slot, other
                                     // than -1, the cache does not have
    std::vector<std::uint64_t> within;  // of `elements`, by limit: those that are no farther off;
                                        // not rotated: that are right
    std::string worst;       // where: "batch 0 token 17 head 3 channel 5: got ..., exact ..."
    Place worst_place = {};  // the same as numbers
    double worst_got = 0, worst_exact = 0;
    std::uint64_t beyond = 0;  // of `elements`: those that limits_u[0] does not let in
    Place first_beyond = {}, last_beyond = {};  // the corners of the box that holds these
    std::vector<bool> rows_beyond;              // [batch, tokens, heads] with such an element
    std::vector<std::uint64_t> beyond_in;  // [head_dim] how many of these there are in a channel
};

/// Compares `output` with the exact rotation of `input`, which are laid out as `out` and `in` say,
/// elements of 4 or 2 bytes. Both have one shape. Elements between rows, and rows that no slot
/// names, are not looked at: each_row() tells which those are.
///
/// progress  optional; called with the fraction done, 0 to 1
Verdict compare(const Tensor& in, const Tensor& out, const Operation& operation, const void* input,
                const void* output, const std::function<void(double)>& progress = {});

/// The same for an input and an output that are laid out alike.
inline Verdict compare(const Tensor& tensor, const Operation& operation, const void* input,
                       const void* output, const std::function<void(double)>& progress = {}) {
    return compare(tensor, tensor, operation, input, output, progress);
}

}  // namespace vkrope::reference
