// SPDX-License-Identifier: MIT
// What vkrope.h says that an operation is, in the terms of the oracle. It knows nothing of the
// library but that header: defaults, strides and bounds are read here a second time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/operation.hpp"
#include "verify/oracle/ops.hpp"
#include "verify/oracle/possible_codes.hpp"

namespace vkrope::verify {

constexpr std::uint32_t batch_of(const Operation& operation) {
    return operation.call.batch == 0 ? 1 : operation.call.batch;
}
/// Tokens of all sequences.
constexpr std::size_t tokens_of(const Operation& operation) {
    return std::size_t{batch_of(operation)} * operation.call.tokens;
}
constexpr bool has(const Operation& operation, vkrope_tensor_index which) {
    return operation.call.in[which].heads != 0;
}
constexpr bool is_quantised(vkrope_element element) {
    return element > VKROPE_BF16;
}
constexpr oracle::Type type_of(vkrope_element element) {
    return static_cast<oracle::Type>(element);
}
/// Of a quantised type.
constexpr oracle::Store store_of(vkrope_element element) {
    return static_cast<oracle::Store>(element - VKROPE_E4M3FN);
}
/// Bytes of so many channels: whole blocks, if the type has blocks.
std::size_t stored_bytes(vkrope_element element, std::size_t channels);

/// Whether a tensor has a step besides the rotation.
bool has_steps(const Operation& operation, vkrope_tensor_index which);

/// Positions of the tokens: [axes, batch, tokens], with one axis unless the kernel has sections.
std::vector<std::int64_t> positions_of(const Operation& operation);

/// Whether the angles cover a position.
bool covers(const Operation& operation, std::int64_t position);

/// Whether the angles of a token of all sequences are covered, on every axis.
bool is_covered(const Operation& operation, const std::vector<std::int64_t>& positions,
                std::size_t token);

/// The position axis of a pair; 0 if axes are summed.
std::uint32_t axis_of(const vkrope_sections& sections, std::uint32_t pair);

/// cos and sin of the angle of a pair, without the attention factor. `pair` is an index in
/// [head_groups, pairs].
oracle::CosSin exact_cos_sin(const Operation& operation, const std::vector<std::int64_t>& positions,
                             std::size_t token, std::size_t pair);

/// cos and sin of the float32 product of position and frequency, each converted to float.
oracle::CosSin float32_cos_sin(std::int64_t position, double inv_freq);

/// The bound of the contract for rotated channels, in units of oracle::Verdict::largest_error_u.
double bound_of(const Operation& operation);

/// The rows of an input or an output; strides count channels.
oracle::Tensor rows_of(const Operation& operation, vkrope_tensor_index which, bool output);

/// One tensor of an operation.
struct Definition {
    oracle::Tensor in, out;
    oracle::Operation rotation;  // its positions are token numbers, for its own cos_sin
    oracle::Ops steps;
    std::optional<oracle::QuantisedStore> store;  // of a quantised output
};

/// flushes  whether the device may take subnormal numbers for zeros
Definition definition_of(const Operation& operation, vkrope_tensor_index which, bool flushes);

/// The first byte in memory of channel `first` of an output, where oracle::each_row() has it.
std::size_t byte_of(const Operation& operation, vkrope_tensor_index which, std::uint64_t first);

/// Place of a made scale in scales_out, in floats; none for a row that is not stored.
std::optional<std::uint64_t> scale_of(const Operation& operation, vkrope_tensor_index which,
                                      const oracle::Tensor& out, std::uint64_t row);

/// Tokens that vkrope_call::out_of_range counts.
std::uint32_t tokens_out_of_range(const Operation& operation);

}  // namespace vkrope::verify
