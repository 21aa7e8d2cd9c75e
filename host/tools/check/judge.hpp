// SPDX-License-Identifier: MIT
// Compares the output of another engine - the rotation, the ops around it and its quantised store -
// with the definition. If the output is wrong, finds the known mistake that explains it: each
// mistake is the definition with one change, and is compared with the output.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/hypothesis.hpp"

namespace vkrope::tools {

// The comparison of an output with the definition, or with one known mistake.
struct Match {
    std::string
        mistake;  // "swapped_pairing", or two of them: "swapped_pairing + attention_factor_missing"
    std::string meaning;      // "pairs are interleaved, not half_split"
    double share_within = 0;  // share of the elements within the bound
    bool explains = false;    // all elements are within the bound
    bool nearly = false;      // all elements are within the tolerance
    bool precision = false;   // the correct operation in other arithmetic
    bool of_norm = false;     // a mistake in the norm
    std::string where = {};   // location of the wrong rows if tried only on them; empty: tried on
                              // everything
    // Largest distance from the right value, as a share of |x0| + |x1| times the attention factor,
    // or with other ops of the largest exact value of the same head row. Infinite if one of the
    // two is NaN. For a quantised output, the largest distance of a code from the codes that it
    // may be, as a share of the largest code, or of a scale, as a share of the scale. A quantised
    // output is nearly right if scales are within the tolerance, no code is more than one off, and
    // the share of codes that are one off is at most min(0.25, tolerance * the largest code).
    double largest_error = 0;
    bool changes_rest = false;  // a channel outside the windows is wrong; the distance does not
                                // include it

    double error_u() const { return largest_error * 0x1p24; }
};

enum class Outcome {
    pass,         // within the bound
    close,        // the correct operation, within the tolerance
    mistake,      // the first match explains the output, within the bound or within the tolerance
    unexplained,  // nothing explains the output
};

struct Limits {
    double tolerance = 1e-2;     // times (|x0| + |x1|) * attention factor: a possible error of
                                 // computing in 16 bits throughout
    bool accepts_close = false;  // set by the user: accepts other arithmetic within the tolerance
    std::uint64_t sampled_elements =
        std::uint64_t{1} << 14;  // number of elements of a tensor to try each mistake on first
};

// The smallest region that contains all wrong elements.
enum class Region { element, row, token, head, sequence };
struct Lone {
    Region region = Region::element;
    oracle::Place worst;  // the worst element; its batch, token, head and channel apply to all
                          // wrong elements as far as the region fixes them
    double expected = 0, actual = 0;  // values of the worst element
    std::optional<double> error_u;    // error of the worst element; none for a channel that should
                                      // have passed through, a NaN, or other ops
    std::uint64_t wrong = 0;          // number of wrong elements
};

struct Judgement {
    Outcome outcome = Outcome::unexplained;
    Match right;  // comparison with the correct operation
    // The mistakes that explain the output, the likelier first; after a pass, those that would
    // pass as well.
    std::vector<Match> matches;
    std::vector<std::string> findings;  // what was measured, if nothing explains the output
    std::uint64_t elements = 0;         // number compared with the correct operation: all elements
    double bound_u = 0;                 // as oracle::Definition::bound_u
    std::string breach;                 // what was wrong and where; empty if nothing was
    // The pairs whose errors rounding cannot explain, see odd_pairs(). If there are any, the
    // output is never close.
    std::vector<std::size_t> odd_pairs;
    std::uint64_t pairs = 0;    // number of pairs in a row
    bool with_ops = false;      // the output has ops besides the rotation
    bool quantised = false;     // if true, the wrong rows are not known
    std::uint64_t sampled = 0;  // minimum number of elements compared with each mistake; a mistake
                                // that explains these was compared with all elements
    std::optional<Lone> lone;   // set if no mistake explains everything and the wrong elements
                                // share a region
    std::uint64_t rows = 0, wrong_rows = 0;
    std::string wrong_in;  // sequences, tokens and heads of the wrong rows: "token 3, heads 1,
                           // 4-7"; empty if each has wrong rows
};

// Returns the pairs whose errors rounding cannot explain; empty if there are none. Rounding errors
// grow with the angle, because they come from the products of position and frequency, and in pairs
// that hardly turn cos is 1. So errors are not rounding
// - in pairs whose errors are much larger in proportion to their angle than those of the others;
// - in all wrong pairs if several pairs that turn further are right, or if errors are larger than
//   rounding to f32 causes and some pairs are right in which rounding to 16 bits would show.
//
// rows  as in compare()
std::vector<std::size_t> odd_pairs(const Observation& observation, const Hypothesis& right,
                                   const std::vector<bool>& rows);

// Returns the mistake that each wrong row has the right values of another row, as if a slot of a
// cache were wrong; none if some wrong row does not.
std::optional<Match> rows_of_others(const Observation& observation, const std::vector<bool>& wrong);

// The number of matches that a report shows.
constexpr std::size_t shown_matches = 3;

// progress  called with the fraction done, 0 to 1
Judgement judge(const Observation& observation, const Limits& limits,
                const std::function<void(double)>& progress = {});

}  // namespace vkrope::tools
