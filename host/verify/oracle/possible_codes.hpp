// SPDX-License-Identifier: MIT
// The scales and the codes that a row of f32 may have whose channels are within their error of the
// exact ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "verify/oracle/quantise.hpp"

namespace vkrope::oracle {

enum class Rounding { as_defined, ties_to_even, ties_away, toward_zero };

/// How a tensor is quantised. The scales of blocks are in their bytes.
struct QuantisedStore {
    Store type = Store::q8_0;
    /// For elements that stand alone: factors that multiply, one, or one for each head.
    std::vector<float> given = {};
    /// With two sets of parameters: those of the tokens from this one on; empty: as the others.
    std::vector<float> given_second = {};
    std::uint64_t second_from = 0;
    bool made = false;          // a scale for each row, as quantise_made() makes it
    float floor = 0;            // of made scales
    bool power_of_two = false;  // made scales are

    // Changes of the definition, for mistakes. Halves of q4_0 and the like are rounded up.
    Rounding rounding = Rounding::as_defined;
    /// By the scale if the definition multiplies by its reciprocal, and the reverse.
    bool other_division = false;
    bool saturates = true;      // false: beyond the range e4m3fn is NaN, and e5m2 infinite
    bool symmetric = false;     // q4_0, q5_0: d = amax / 7 or 15, as if no code were -8 or -16
    bool d_as_stored = false;   // codes are of d rounded to f16, not of the f32 d
    bool one_of_token = false;  // a made scale for all heads of a token together
};

/// The numbers of f32 from `low` to `high`; for a channel that is a NaN, both are.
struct Interval {
    float low = 0, high = 0;

    bool is_nan() const { return std::isnan(low) || std::isnan(high); }
    float least_magnitude() const {
        return low <= 0 && high >= 0 ? 0 : std::min(std::fabs(low), std::fabs(high));
    }
    float max_magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
    Interval negated() const { return {-high, -low}; }
};

/// What f32 a channel may be.
Interval interval_of(const Approximate& channel);

/// Bits of a float with `sign` as the highest, as integers in the order of the values; -0 is
/// below 0.
int rank(std::uint32_t bits, std::uint32_t sign);

/// Codes as integers in the order of their values.
struct Codes {
    int low = 0, high = 0;
};
int rank_of_code(Store store, std::uint8_t code);

// ---- Elements that stand alone ----

/// The scale that is made for a row.
Interval possible_scale(const QuantisedStore& store, std::span<const Interval> row);

/// given  the factor that multiplies
/// scale  the made scale that was stored, if scales are made
Codes possible_codes(const QuantisedStore& store, const Interval& channel, float given,
                     float scale);

// ---- Blocks ----

/// d before it is rounded to f16, without its sign, and m.
struct BlockScales {
    Interval d, m;
    bool negative_d = false;
};

/// stored_negative  the sign of the stored d, which holds if a row has a d of that sign
BlockScales possible_scales(const QuantisedStore& store, std::span<const Interval> block,
                            bool stored_negative);

Codes possible_codes(const QuantisedStore& store, const Interval& channel,
                     const BlockScales& scales);

}  // namespace vkrope::oracle
