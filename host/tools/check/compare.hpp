// SPDX-License-Identifier: MIT
// Computes a hypothesis with the oracle, on all tokens or a sample, and compares an output with it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "check/judge.hpp"

namespace vkrope::tools {

// Every `step`-th of `count` indices and the last, since token 0 at position 0 shows no mistake.
struct Every {
    std::uint64_t step = 1, first = 0, count = 0;
};

// Selects at most `most` of `count` indices.
Every at_most(std::uint64_t most, std::uint64_t count);

// Consecutive tokens of one sequence. Tokens are complete, since a norm may need all heads.
struct Tokens {
    std::uint64_t batch = 0, first = 0, count = 0;
};
using Sample = std::vector<Tokens>;

Sample all_tokens(const Hypothesis& hypothesis);

// Returns about `wanted` elements of evenly spaced tokens of evenly spaced sequences.
Sample sample_of(const Hypothesis& hypothesis, std::uint64_t wanted);

// Returns the tokens of the rows that are set in `rows`, [batch, tokens, heads].
Sample tokens_of(const Hypothesis& hypothesis, const std::vector<bool>& rows);

// Returns about `wanted` elements of these rows, of evenly spaced tokens; of all if `rows` is
// empty.
Sample sample_for(const Hypothesis& hypothesis, const std::vector<bool>& rows,
                  std::uint64_t wanted);

std::uint64_t elements_of(const Hypothesis& hypothesis, const Sample& sample);

// Receives [heads, head_dim] of a token, after all ops and before they are stored.
using VisitToken = std::function<void(std::uint64_t batch, std::uint64_t token,
                                      std::span<const oracle::Approximate> channels)>;

// Computes the tokens of a sample.
//
// go_on  asked after every few tokens; false ends the computation
void each_token(const Observation& observation, const Hypothesis& hypothesis, const Sample& sample,
                const VisitToken& visit, const std::function<bool()>& go_on = {});

// The result of comparing an output with a hypothesis. For a quantised output only the verdict is
// set.
struct Comparison {
    oracle::Verdict verdict;
    double largest_error = 0;                           // as Match::largest_error
    oracle::Place first_beyond = {}, last_beyond = {};  // corners of the bounding box of the
                                                        // elements beyond the bound
    // [batch, tokens, heads] Rows with an element beyond the bound, and beyond the tolerance.
    std::vector<bool> rows_beyond, rows_far;
    std::vector<std::uint64_t> beyond_in;  // [head_dim] number beyond the bound per channel

    std::uint64_t beyond() const { return verdict.elements - verdict.within; }
};

// Return the first element of a hypothesis in the memory of its input and of the output.
const void* input_of(const Observation& observation, const Hypothesis& hypothesis);
const void* output_of(const Observation& observation, const Hypothesis& hypothesis);

// Whether a comparison of numbers goes on when an element is beyond the bound, or farther off than
// the tolerance.
enum class Until { end, wrong, beyond };

// rows      [batch, tokens, heads] the rows to compare, for numbers only; empty: all
// progress  called with the fraction done, 0 to 1
Comparison compare(const Observation& observation, const Hypothesis& hypothesis,
                   const Limits& limits, const Sample& sample, const std::vector<bool>& rows = {},
                   Until until = Until::end, const std::function<void(double)>& progress = {});

}  // namespace vkrope::tools
