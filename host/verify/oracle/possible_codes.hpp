// SPDX-License-Identifier: MIT
// Computes the scales and the codes that are possible for a row of f32 whose channels are within
// their error of the exact values.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "verify/oracle/quantise.hpp"

namespace vkrope::oracle {

enum class Rounding { as_defined, ties_to_even, ties_away, toward_zero };

/// The quantisation of a tensor. The scales of blocks are part of their bytes.
struct QuantisedStore {
    Store type = Store::q8_0;
    /// For types without blocks: the factors that multiply, one for all heads or one for each head.
    std::vector<float> given = {};
    /// With two sets of parameters: the factors of the tokens from `second_from` on. Empty: all
    /// tokens use `given`.
    std::vector<float> given_second = {};
    std::uint64_t second_from = 0;
    bool made = false;          // each row has a scale, as in quantise_made()
    float floor = 0;            // least made scale
    bool power_of_two = false;  // made scales are powers of two

    // Deviations from the definition, to model mistakes. q4_0 and similar types round halves up.
    Rounding rounding = Rounding::as_defined;
    /// Divides where the definition multiplies by the reciprocal, and the reverse.
    bool other_division = false;
    bool saturates = true;      // false: beyond the range, e4m3fn gives NaN and e5m2 infinity
    bool symmetric = false;     // q4_0, q5_0: d = amax / 7 or 15, as if no code were -8 or -16
    bool d_as_stored = false;   // codes use d rounded to f16 instead of the f32 d
    bool one_of_token = false;  // all heads of a token share one made scale
};

/// The f32 numbers from `low` to `high`. Both are NaN for a channel that is NaN.
struct Interval {
    float low = 0, high = 0;

    bool is_nan() const { return std::isnan(low) || std::isnan(high); }
    float least_magnitude() const {
        return low <= 0 && high >= 0 ? 0 : std::min(std::fabs(low), std::fabs(high));
    }
    float max_magnitude() const { return std::max(std::fabs(low), std::fabs(high)); }
    Interval negated() const { return {-high, -low}; }
};

/// Returns the f32 numbers that a channel may be.
Interval interval_of(const Approximate& channel);

/// Maps the bits of a float, whose highest bit is `sign`, to integers in the order of the values;
/// -0 is below 0.
int rank(std::uint32_t bits, std::uint32_t sign);

/// Codes as integers in the order of their values.
struct Codes {
    int low = 0, high = 0;
};
int rank_of_code(Store store, std::uint8_t code);

// ---- Types without blocks ----

/// Returns the made scales that are possible for a row.
Interval possible_scale(const QuantisedStore& store, std::span<const Interval> row);

/// given  the factor that multiplies
/// scale  the stored scale, if scales are made
Codes possible_codes(const QuantisedStore& store, const Interval& channel, float given,
                     float scale);

// ---- Blocks ----

/// d before rounding to f16 and without its sign, and m.
struct BlockScales {
    Interval d, m;
    bool negative_d = false;
};

/// stored_negative  the sign of the stored d, which is used if d can have this sign
BlockScales possible_scales(const QuantisedStore& store, std::span<const Interval> block,
                            bool stored_negative);

Codes possible_codes(const QuantisedStore& store, const Interval& channel,
                     const BlockScales& scales);

}  // namespace vkrope::oracle
