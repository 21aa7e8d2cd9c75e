// SPDX-License-Identifier: MIT
// One operation on Q, K and V, run on the device and compared with:
//
//   its definition    verify/compare.hpp: values, codes and scales, the counter, and the bytes
//                     around the rows
//   the shader source shader_bits.hpp: the bits of every element without further ops
#pragma once

#include "cli/words.hpp"
#include "conformance/builtin/check.hpp"
#include "verify/definition.hpp"
#include "verify/unplaced.hpp"

namespace vkrope::conformance {

using verify::Bytes, verify::Shape;
using verify::bytes_of, verify::random_bits, verify::random_elements, verify::set, verify::store,
    verify::stored, verify::value;
using verify::elements_of, verify::inv_freq_of, verify::type_of;

// An operation to which run() assigns memory. It has a counter only if the device has a binding.
struct Trial : verify::Unplaced {
    Trial() { counts = true; }
    Trial(const verify::Unplaced& operation) : Unplaced(operation) {}
};

// The stored output, packed as [batch, tokens, heads, head_dim]. In pages, rows that belong to no
// token are 0.
struct Rotated {
    std::array<Bytes, 3> rows, second;         // second: empty without a second destination
    std::array<std::vector<float>, 3> scales;  // only scales that the kernel computes
    std::uint64_t dispatches = 0;
    std::optional<std::uint32_t> outside;  // increase of the counter, if there is one

    bool has_outside(std::size_t tokens) const { return outside.value_or(tokens) == tokens; }
};

inline bool same_bits(const Rotated& a, const Rotated& b) {
    return a.rows == b.rows && a.second == b.second && a.scales == b.scales;
}

// ---- For writing trials ----

// Returns a trial with only Q, of `head_dim` channels that are all rotated.
Trial trial_of(Element element, std::uint32_t head_dim, std::uint32_t tokens,
               Pairing pairing = VKROPE_HALF_SPLIT);

inline const char* name_of(Element element) {
    return tools::word_for(tools::stored_elements, element);
}
inline const char* name_of(Pairing pairing) {
    return tools::word_for(tools::pairings, pairing);
}
// Returns the name of a source on the command line, or "cos_sin_cache".
inline const char* name_of(AngleSource source) {
    return source == VKROPE_ANGLES_COS_SIN_CACHE ? "cos_sin_cache"
                                                 : tools::word_for(tools::angle_sources, source);
}
inline constexpr Element elements[] = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
inline constexpr AngleSource our_sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE,
                                              VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_TEXTURE,
                                              VKROPE_ANGLES_DIRECT_BUFFER};
inline constexpr Pairing pairings[] = {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED};

std::vector<std::int64_t> random_positions(std::size_t count, std::int64_t lowest,
                                           std::int64_t highest, std::uint32_t seed);

// Adds a cos_sin_cache [max_position, row_stride] to the trial. The columns after the pairs must
// not be read.
//
// ours  true: the values of fill_angles for this trial; false: arbitrary values
void add_cos_sin_cache(Trial& trial, Element table, std::uint32_t row_stride, bool ours);

}  // namespace vkrope::conformance
