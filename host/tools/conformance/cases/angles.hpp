// SPDX-License-Identifier: MIT
// Maps a base, a scaling and sections to frequencies, and cos and sin files to a cos_sin_cache.
#pragma once

#include "conformance/cases/folder.hpp"
#include "verify/memory.hpp"

namespace vkrope::conformance {

struct Frequencies {
    std::vector<double> inv_freq;
    double attention_factor = 1;  // of the case, including that of ggml scaling
};

/// Returns the frequencies of `pairs` pairs. The exponents restart in every independent section.
Frequencies frequencies_of(const CaseFolder& folder, const BaseCase& base, double attention_factor,
                           const std::optional<SectionsCase>& sections, std::uint32_t pairs);

/// Adds cos and sin from files to an operation whose call has the gain of the case. Returns the
/// files' shape: [rows, width] or, with `direct`, [tokens, width] or [batch, tokens, width].
std::vector<std::uint64_t> add_cos_sin_cache(const CaseFolder& folder, const CacheCase& cache,
                                             verify::Operation& operation, verify::Memory& memory);

}  // namespace vkrope::conformance
