// SPDX-License-Identifier: MIT
// From a base, a scaling and sections to the library's frequencies and table; from cos and sin
// files to a caller's table.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct Frequencies {
    std::vector<double> inv_freq;
    double attention_factor = 1;  // the case's, and what ggml adds to it
};

/// Of pair j of `pairs`. The exponents start again in every independent section.
Frequencies frequencies_of(const CaseFolder& folder, const BaseCase& base, double attention_factor,
                           const std::optional<SectionsCase>& sections, std::uint32_t pairs);

/// Cos and sin as a call takes them. Refers to its own plan: must not move while angles() is in
/// use.
class CaseAngles {
   public:
    /// `rotation` holds frequencies and attention factor; every |position| up to `largest` is
    /// covered.
    static CaseAngles exact(DeviceUnderTest& device, const Rotation& rotation, Gain gain,
                            std::uint64_t largest);

    /// Files: [rows, width], or with `direct` [tokens, width] or [batch, tokens, width].
    static CaseAngles cached(DeviceUnderTest& device, const CaseFolder& folder,
                             const CacheCase& cache, std::uint32_t pairs, double attention_factor,
                             Gain gain);

    AngleSource source() const noexcept { return table_ ? table_->plan().source : plan_.source; }
    Element element() const noexcept { return plan_.element; }
    Angles angles() const noexcept;
    Gain gain() const noexcept { return gain_; }

    /// The shape of cos and sin.
    const std::vector<std::uint64_t>& shape() const noexcept { return shape_; }

   private:
    std::optional<AngleTable> table_;
    AnglePlan plan_;
    Buffer cos_, sin_;
    Gain gain_ = Gain::apply;
    std::vector<std::uint64_t> shape_;
};

}  // namespace vkrope::conformance
