// SPDX-License-Identifier: MIT
// The third step: builds hypotheses from what the pairs show. First finds the geometry, which says
// which channels form pairs, and the ops around the rotation; then the angles; then the factor.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "check/fit.hpp"
#include "check/mistakes.hpp"
#include "check/observe.hpp"

namespace vkrope::tools {

// A hypothesis that fits what was seen.
struct Candidate {
    Mistake mistake;
    double misfit = 1;
    bool is_ambiguous = false;  // another value fits about as well, so only an exact match counts
};

class Search {
   public:
    // rows  the rows to explain, as in compare(); empty: all
    Search(const Observation& observation, const std::vector<bool>& rows);

    // Returns the hypotheses with stated values that fit, likeliest first.
    std::vector<Candidate> stated();

    // The same, with frequencies, angles, cos or sin in other arithmetic.
    std::vector<Candidate> with_arithmetic();

    // Returns the hypotheses with positions that were read from the output, likeliest first.
    //
    // rounded  with frequencies that were rounded to 16 bits
    std::vector<Candidate> with_positions(bool rounded);

    // Returns the hypotheses with another base, factor or number in the file, likeliest first.
    //
    // rounded  as in with_positions()
    std::vector<Candidate> with_frequencies(bool rounded);

    // Returns sentences on what fits and what does not.
    std::vector<std::string> findings() const;

   private:
    // A row of a table that changes positions, and a hypothesis with the change.
    struct Moved {
        const Row* row;
        Hypothesis positions;
        bool other_steps;  // tokens are at other distances from each other
    };

    // The channels of the pairs, and the ops around the rotation: a model's RoPE, changed by rows.
    struct Geometry {
        Mistake mistake, start;  // with and without the rows' changes
        std::vector<const Row*> rows;
        std::shared_ptr<const SeenPairs> seen = {};
        double misfit = 1;
        std::vector<Moved> moved = {};
    };

    std::vector<Geometry> geometries() const;
    std::vector<Geometry> likeliest(std::size_t most) const;  // one of each layout of the pairs
    bool see(Geometry& geometry, std::uint64_t wanted) const;
    void add_angles(const Geometry& geometry, const Mistake& base, std::vector<Candidate>& found);
    void add_fit(const Geometry& geometry, const Mistake& mistake, std::vector<Candidate>& found);
    using Change = std::function<std::optional<Mistake>(const Mistake& base)>;
    using Visit = std::function<void(const Mistake&)>;
    void each_changed(const Geometry& geometry, const Change& change, const Visit& visit) const;
    void each_frequencies(const Geometry& geometry, const Visit& visit) const;
    void each_rounding(const Mistake& mistake, bool rounded, const Visit& visit) const;
    void add_positions(const Geometry& geometry, const Mistake& base,
                       std::initializer_list<FindPositions*> ways, bool quickly,
                       std::vector<Candidate>& found);

    const Observation& observation_;
    const std::vector<bool>& rows_;
    std::vector<Geometry> geometries_;
    double best_angles_ = 1;  // least misfit of the angles that were tried
};

// Names how the positions that were found differ from the right ones: an offset of all or some
// tokens, one position for all, another order, a limit, or other integer positions.
//
// tokens  [batch, tokens] the tokens that were seen
Mistake::Named name_of_positions(const Hypothesis& right, const FoundPositions& found,
                                 const std::vector<bool>& tokens);

// Names how the axes by which pairs were found to turn differ from the right ones.
Mistake::Named name_of_axes(const Hypothesis& right, const std::vector<std::uint32_t>& found);

// Frequencies that no table states: of another base, of linear scaling by another factor, or of
// another number in the model file.
struct OtherFrequencies {
    std::string name, detail;                   // as OtherRotation::mistake
    double base = 0, divisor = 1;               // of unscaled frequencies
    std::optional<OtherRotation> of_file = {};  // replaces base and divisor
};

std::vector<OtherFrequencies> other_frequencies(const Observation& observation);

std::optional<Mistake> with(const Mistake& mistake, const OtherFrequencies& other,
                            const Observation& observation);

}  // namespace vkrope::tools
