// SPDX-License-Identifier: MIT
// Computes the scales and the codes that are possible for a row of f32 whose channels are within
// their error of the exact values.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "verify/oracle/quantise.hpp"

namespace vkrope::oracle {

// The f32 numbers from `low` to `high`. Both are NaN for a channel that is NaN.
struct Interval {
    float low = 0, high = 0;

    bool is_nan() const { return std::isnan(low) || std::isnan(high); }
    float least_magnitude() const {
        return low <= 0 && high >= 0 ? 0 : std::min(std::fabs(low), std::fabs(high));
    }
    float max_magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
    Interval negated() const { return {-high, -low}; }
};

// Returns the f32 numbers that a channel may be.
Interval interval_of(const Approximate& channel);

// Maps the bits of a float, whose highest bit is `sign`, to integers in the order of the values;
// -0 is below 0.
int rank(std::uint32_t bits, std::uint32_t sign);

// Codes as integers in the order of their values.
struct Codes {
    int low = 0, high = 0;
};
int rank_of_code(Store store, std::uint8_t code);

// ---- Types without blocks ----

// Returns the computed scales that are possible for a row, or a group of its channels.
Interval possible_scale(const QuantisedStore& store, std::span<const Interval> row);

// given  the factor that multiplies
// scale  the stored scale, if scales are computed
Codes possible_codes(const QuantisedStore& store, const Interval& channel, float given,
                     float scale);

// ---- Blocks ----

// d before rounding to f16 and without its sign, and m. d of iq4_nl is the d0 that gives the codes.
struct BlockScales {
    Interval d, m;
    bool negative_d = false;
};

// stored_negative  the sign of the stored d, which is used if d can have this sign
BlockScales possible_scales(const QuantisedStore& store, std::span<const Interval> block,
                            bool stored_negative);

Codes possible_codes(const QuantisedStore& store, const Interval& channel,
                     const BlockScales& scales);

// Returns the stored d that is possible with these codes, with its sign and before rounding to f16.
// None: any is possible, as the sums of an iq4_nl block may overflow.
std::optional<Interval> possible_d(const QuantisedStore& store, std::span<const Interval> block,
                                   std::span<const int> codes, const BlockScales& scales);

}  // namespace vkrope::oracle
