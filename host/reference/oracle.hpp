// SPDX-License-Identifier: MIT
// The oracle: RoPE by its definition, in plain loops, with angles that are exact
// products of position and inv_freq. It shares no code with the library, so
// that a mistake there cannot repeat itself here. For tools and tests; not installed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace vkrope::reference {

enum class Type { f32, f16, bf16 };

/// Exact value of a stored element; the nearest stored element, ties to even.
float widen(Type type, std::uint32_t bits);
std::uint32_t narrow(Type type, long double value);

/// One tensor [batch, tokens, heads, head_dim], strides in elements.
struct Tensor {
    Type type = Type::f32;
    std::uint64_t batch = 1, tokens = 0, heads = 0, head_dim = 0;
    std::uint64_t batch_stride = 0, token_stride = 0, head_stride = 0;
};

/// The operation: the window [offset, offset + 2 * inv_freq.size()) of every row is rotated, the rest passes through.
struct Operation {
    bool interleaved = false;
    bool inverse = false;
    std::uint64_t rotary_offset = 0;
    std::vector<double> inv_freq;  // [pairs] radians per position
    double attention_factor = 1.0;
    std::vector<std::int64_t> positions;   // [batch, tokens]
    double absolute_allowance = 0x1p-148;  // the contract's absolute term; 2^-123 + 2^-148 where the device flushes subnormals
};

/// What comparing an output with the definition found.
struct Verdict {
    std::uint64_t elements = 0;        // compared
    std::uint64_t passed_through = 0;  // of these, outside the window
    /// Distance between the exact value and the nearest value that would have been stored as the output was, in units of
    /// u * a * (|x0| + |x1|), u = 2^-24, after `absolute_allowance` is taken off. Largest over all elements.
    double largest_error_u = 0;
    bool nan_mismatch = false;  // an output is NaN where the exact value is not, or the reverse
    bool bits_changed = false;  // a channel outside the window is not the input bit for bit
    std::string worst;          // where: "batch 0 token 17 head 3 channel 5: got ..., exact ..."
};

/// Compares `output` with the exact rotation of `input`; both are arrays laid out as `tensor` says, elements of 4 or 2 bytes.
///
/// progress  optional; called with the fraction done, 0 to 1
Verdict compare(const Tensor& tensor, const Operation& operation, const void* input, const void* output,
                const std::function<void(double)>& progress = {});

}  // namespace vkrope::reference
