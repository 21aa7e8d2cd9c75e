// SPDX-License-Identifier: MIT
// Whether another engine's rotation is right and, where it is not, which known mistake explains it:
// every mistake is the definition of the operation with something changed, and the output is
// compared with each.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rotate/definition.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope::tools {

/// Another RoPE that the model has: of its other layers, or at another length.
struct OtherRotation {
    std::string mistake;  // as Match::mistake
    std::string meaning;
    Rotation rotation;
};

/// One tensor, what an engine made of it, and what it should have made.
struct Evidence {
    reference::Tensor in, out;
    const void* input = nullptr;
    const void* output = nullptr;
    reference::Operation operation;  // the right one; one window; positions of the first axis
    FurtherAxes further;             // positions of the others
    // What only mistakes need to know.
    double base = 0;                    // as Rotation::base
    double softmax_scale = 1;           // as Rotation::softmax_scale
    std::uint64_t other_offset = 0;     // where the window of the other tensor, K or Q, begins
    std::vector<OtherRotation> others;  // of the same head_dim
};

/// How an output compares with one known mistake.
struct Match {
    std::string
        mistake;  // "swapped_pairing", or two of them: "swapped_pairing + attention_factor_missing"
    std::string meaning;      // "half_split where interleaved is right, or the reverse"
    double max_error_u = 0;   // infinite where an output is NaN and should not be, or the reverse
    double share_within = 0;  // of the elements: those within the bound
    double share_close = 0;   // within the tolerance
    bool changes_rest =
        false;  // a channel outside the window is not what it should be, which no error in u tells
    bool explains = false;   // all of them are within the bound
    bool nearly = false;     // all of them are within the tolerance
    bool precision = false;  // it is no other operation, but the right one in other arithmetic
    std::string
        where;  // it was tried on what is wrong, and this is where that is; empty: on everything
};

enum class Outcome {
    pass,         // within the bound
    close,        // the right operation, within the tolerance
    mistake,      // the first match explains it, within the bound or within the tolerance
    unexplained,  // neither
};

struct Limits {
    double bound_u = 6;          // the widest that the contract promises of any source of angles
    double tolerance = 1e-2;     // of |x0| + |x1|, times the attention factor: what computing in 16
                                 // bits throughout may cost
    bool accepts_close = false;  // the tolerance was asked for: other arithmetic is no mistake
                                 // then, as far as it is close
    std::uint64_t sampled_elements = std::uint64_t{1}
                                     << 20;  // of a tensor, that mistakes are tried on
    std::uint64_t glimpsed_elements = std::uint64_t{1}
                                      << 14;  // that two mistakes at once are tried on before
};

/// All that is wrong lies together, in the least of these that holds it.
enum class Region { element, row, token, head, sequence };
struct Lone {
    Region region = Region::element;
    reference::Place worst;  // its batch, token, head and channel, as far as the region fixes them,
                             // are those of all
    double expected = 0, actual = 0;  // of the worst
    std::optional<double>
        error_u;  // likewise; nothing: a channel that should have passed through, or a NaN
    std::uint64_t wrong = 0;  // elements
};

struct Judgement {
    Outcome outcome = Outcome::unexplained;
    double max_error_u = 0;      // of the right operation
    double share_within = 0;     // likewise
    std::uint64_t elements = 0;  // compared with the right operation: all
    std::uint64_t sampled =
        0;  // compared with each mistake at least; one that explains them was compared with all
    std::string breach;  // what was wrong, with where; empty: nothing
    std::optional<Lone>
        lone;  // where no mistake explains everything, and what is wrong is not all over the tensor
    std::uint64_t rows = 0, wrong_rows = 0;
    std::string wrong_in;  // which sequences, tokens and heads these are: "token 3, heads 1, 4-7";
                           // empty: of all some are
    std::vector<Match> matches;  // best first
};

/// progress  called with the fraction done, 0 to 1
Judgement judge(const Evidence& evidence, const Limits& limits,
                const std::function<void(double)>& progress = {});

}  // namespace vkrope::tools
