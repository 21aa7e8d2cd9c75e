// SPDX-License-Identifier: MIT
// Maps a base, a scaling and sections to the frequencies and the table of the library, and cos and
// sin files to a cos_sin_cache.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct Frequencies {
    std::vector<double> inv_freq;
    double attention_factor = 1;  // of the case, with the contribution of ggml scaling
};

/// Returns the frequencies of `pairs` pairs. The exponents restart in every independent section.
Frequencies frequencies_of(const CaseFolder& folder, const BaseCase& base, double attention_factor,
                           const std::optional<SectionsCase>& sections, std::uint32_t pairs);

/// Cos and sin in the form that a call takes. Refers to its own plan, so it must not be moved while
/// angles() is in use.
class CaseAngles {
   public:
    /// `rotation` has the frequencies and the attention factor; every |position| up to `largest` is
    /// covered.
    static CaseAngles exact(DeviceUnderTest& device, const RopeParams& rotation, Gain gain,
                            std::uint64_t largest);

    /// Files have shape [rows, width] or, with `direct`, [tokens, width] or [batch, tokens, width].
    static CaseAngles cached(DeviceUnderTest& device, const CaseFolder& folder,
                             const CacheCase& cache, std::uint32_t pairs, double attention_factor,
                             Gain gain);

    AngleSource source() const noexcept { return table_ ? table_->layout().source : plan_.source; }
    Element element() const noexcept { return plan_.element; }
    bool channel_angles() const noexcept { return plan_.channel_angles; }
    Angles angles() const noexcept;
    Gain gain() const noexcept { return gain_; }

    /// Returns the shape of the cos and sin files.
    const std::vector<std::uint64_t>& shape() const noexcept { return shape_; }

   private:
    std::optional<AngleTable> table_;
    AngleTableLayout plan_;
    Buffer cos_, sin_;
    Gain gain_ = VKROPE_GAIN_APPLY;
    std::vector<std::uint64_t> shape_;
};

}  // namespace vkrope::conformance
