// SPDX-License-Identifier: MIT
// Translates an operation into the terms of the oracle. It uses only vkrope.h of the library, so
// the rules for defaults, strides and bounds are implemented a second time here.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verify/operation.hpp"
#include "verify/oracle/ops.hpp"

namespace vkrope::verify {

constexpr std::uint32_t batch_of(const Operation& operation) {
    return operation.call.batch == 0 ? 1 : operation.call.batch;
}
// Returns the number of tokens in all sequences.
constexpr std::size_t tokens_of(const Operation& operation) {
    return std::size_t{batch_of(operation)} * operation.call.tokens;
}
constexpr bool has(const Operation& operation, vkrope_tensor_index which) {
    return operation.call.in[which].heads != 0;
}
constexpr bool is_quantised(vkrope_element element) {
    return element > VKROPE_BF16;
}
static_assert(VKROPE_BF16 == int(oracle::Type::bf16) &&
                  VKROPE_INT4 - VKROPE_E4M3FN == int(oracle::Store::int4),
              "the types of vkrope.h and of the oracle are in one order");
constexpr oracle::Type type_of(vkrope_element element) {
    return oracle::Type(element);
}
// Requires a quantised type.
constexpr oracle::Store store_of(vkrope_element element) {
    return oracle::Store(element - VKROPE_E4M3FN);
}
// Returns the bytes of `channels` channels, which are whole blocks if the type has blocks.
std::size_t stored_bytes(vkrope_element element, std::size_t channels);

// Returns whether K or V comes from a cache: of slots, quantised or transformed.
bool is_read_from_cache(const Operation& operation, vkrope_tensor_index which);

// Returns the tokens [batch, tokens] whose rows of K or V keep their bytes because nothing changes
// them. Empty: none.
std::vector<bool> kept_tokens(const Operation& operation, vkrope_tensor_index which);

// Returns the number of elements of vkrope_call::norm_weight of a tensor in the call, and the
// elements. Requires vkrope_norm::weight_bound.
std::size_t bound_weights(const Operation& operation, vkrope_tensor_index which);
std::vector<float> bound_weight(const Operation& operation, vkrope_tensor_index which);

// Returns whether a tensor has an op other than the rotation.
bool has_steps(const Operation& operation, vkrope_tensor_index which);

// Returns positions as [axes, batch, tokens]; there is one axis unless the kernel has sections.
std::vector<std::int64_t> positions_of(const Operation& operation);

// Returns the position axis of a pair, or 0 if axes are summed.
std::uint32_t axis_of(const vkrope_sections& sections, std::uint32_t pair);

// Returns the contract's bound of rotated channels, as oracle::Definition::bound_u.
double bound_of(const Operation& operation);

// Returns the layout of an input or an output; strides count channels. Tokens that are not among
// the token_count of their sequence have no rows.
oracle::Tensor rows_of(const Operation& operation, vkrope_tensor_index which, bool output);

// Returns the definition of one tensor.
//
// flushes  whether the device may replace subnormal numbers with zeros
oracle::Definition definition_of(const Operation& operation, vkrope_tensor_index which,
                                 bool flushes);

// Returns whether a call writes vkrope_call::second of a tensor.
bool has_second(const Operation& operation, vkrope_tensor_index which);

// Returns the rows of the second destination, which are packed from the start of
// vkrope_call::second, and their definition. Require has_second().
oracle::Tensor second_rows_of(const Operation& operation, vkrope_tensor_index which);
oracle::Definition second_definition_of(const Operation& operation, vkrope_tensor_index which,
                                        bool flushes);

// Returns the first byte in memory of channel `first` of an output or an input; see
// oracle::each_row().
std::size_t byte_of(const Operation& operation, vkrope_tensor_index which, std::uint64_t first,
                    bool output = true);

// Returns the number of scales of a row, made or read.
std::uint64_t scales_of_row(const Operation& operation, vkrope_tensor_index which);

// Returns the bytes of a scale.
std::size_t scale_bytes(const Operation& operation, vkrope_tensor_index which);

// Returns the index of the first scale of a row in scales_out or scales_in. None: there is no row.
//
// rows  the outputs or the inputs
std::optional<std::uint64_t> scale_of(const Operation& operation, vkrope_tensor_index which,
                                      const oracle::Tensor& rows, std::uint64_t row);

// Returns scale `index` of an array of scales that starts at `first`. The byte 255 of UE8M0 is
// `last`: NaN where it is read, infinity where an infinite scale has been stored.
float scale_at(const Operation& operation, vkrope_tensor_index which, const Bytes& memory,
               std::uint64_t first, std::uint64_t index, float last);

// Returns by how much vkrope_call::out_of_range grows: by nothing if the call records nothing,
// because all rows are in place and nothing changes them. A token counts once, or twice if its
// position is covered and it has two slots, of K and of V, that are outside. A token_count that is
// too large counts once.
std::uint32_t tokens_out_of_range(const Operation& operation);

}  // namespace vkrope::verify
