// SPDX-License-Identifier: MIT
// Mistakes in the positions, in their axes, in the direction, and in the location of each row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "base/meaning.hpp"
#include "check/mistakes.hpp"

namespace vkrope::tools {
namespace {

using oracle::Tensor;

// Replaces the sections; returns whether this changes the axis of a pair.
bool change_sections(Hypothesis& wrong, const Sections& sections) {
    const std::vector<std::uint32_t> right = wrong.operation.further.axes;
    set_sections(wrong, sections);
    return wrong.operation.further.axes != right;
}

// Makes a row whose positions are change(token, right, tokens of a sequence).
template <class Change>
Row positions(const char* name, const char* meaning, const Change& change) {
    return {name, Part::positions, meaning,
            [change](const Observation&, Hypothesis& wrong) {
                return replace_positions(
                    wrong,
                    [&](std::uint64_t token, const Positions& right) -> std::int64_t {
                        return change(token, right, wrong.in.tokens);
                    });
            }};
}

// Returns whether positions start again within a row [tokens], as those of packed sequences do.
bool restart(const Hypothesis& right) {
    const Positions& all = right.operation.positions;
    for (std::size_t token = 1; token < all.size(); ++token)
        if (token % right.in.tokens != 0 && all[token] < all[token - 1]) return true;
    return false;
}

// Makes a row with the index of each token in its row as its position.
//
// packed  whether the right positions start again within a row
Row from_zero(const char* name, const char* meaning, bool packed) {
    return {name, Part::positions, meaning,
            [packed](const Observation&, Hypothesis& wrong) {
                return restart(wrong) == packed &&
                       replace_positions(
                           wrong,
                           [&](std::uint64_t token, const Positions&) {
                               return std::int64_t(token % wrong.in.tokens);
                           });
            }};
}

// Makes a row with positions rounded to a type, if no position is too large for the type.
Row positions_in(const Rounded& rounded) {
    return {"positions_in_16_bits", Part::positions, "rounded positions to 16 bits",
            [rounded](const Observation&, Hypothesis& wrong) {
                bool finite = true;
                wrong.detail = rounded.name;
                const bool changed = replace_positions(
                    wrong,
                    [&](std::uint64_t token, const Positions& right) {
                        const double position = rounded_to(rounded.type,
                                                           static_cast<long double>(right[token]));
                        finite = finite && std::isfinite(position);
                        return finite ? std::int64_t(position) : 0;
                    });
                return finite && changed;
            }};
}

// Returns true if frequencies, ops and scales are the same for all rows. Otherwise the ops and
// scales of a row would have to move with the row, which no engine has done.
bool has_equal_rows(const Hypothesis& right) {
    const oracle::Ops& ops = right.ops;
    const std::uint64_t normed = normed_channels(right);  // more parameters are those of heads
    return !right.store && right.operation.head_groups <= 1 && ops.scale_tokens.empty() &&
           !ops.norm.over_token && ops.bias.size() <= right.in.head_dim &&
           ops.norm.weight.size() <= normed && ops.norm.bias.size() <= normed;
}

// Returns the position of a token. Tokens after the last one continue from its position.
std::int64_t continued(const Positions& positions, std::uint64_t tokens, std::uint64_t batch,
                       std::uint64_t token) {
    const std::uint64_t last = tokens - 1;
    const std::int64_t position = positions[batch * tokens + std::min(token, last)];
    return token <= last ? position : position + std::int64_t(token - last);
}

// Sets the strides as if two axes adjacent in memory had been exchanged in memory but not in the
// shape. Returns false if they are not adjacent.
bool exchange_in_memory(std::uint64_t& a_stride, std::uint64_t a, std::uint64_t& b_stride,
                        std::uint64_t b) {
    if (a_stride < b_stride) return exchange_in_memory(b_stride, b, a_stride, a);
    if (a < 2 || b < 2 || a_stride != b_stride * b) return false;
    a_stride = b_stride;
    b_stride *= a;
    return true;
}

// Takes heads, or the sequences of the batch, for tokens.
bool taken_for_tokens(Hypothesis& wrong, bool heads) {
    const Tensor in = wrong.in;
    if ((heads ? in.heads : in.batch) < 2 || !has_equal_rows(wrong)) return false;
    for (Tensor* tensor : {&wrong.in, &wrong.out}) {
        std::swap(tensor->tokens, heads ? tensor->heads : tensor->batch);
        std::swap(tensor->token_stride, heads ? tensor->head_stride : tensor->batch_stride);
    }
    const std::uint64_t tokens = wrong.in.tokens;
    each_axis(wrong, [&](Positions& positions) {
        const Positions right = std::exchange(positions, {});
        for (std::uint64_t row = 0; row < wrong.in.batch * tokens; ++row)
            positions.push_back(
                continued(right, in.tokens, heads ? row / tokens : 0, row % tokens));
    });
    return true;
}

bool heads_for_tokens(const Observation&, Hypothesis& wrong) {
    return taken_for_tokens(wrong, true);
}

bool batch_for_tokens(const Observation&, Hypothesis& wrong) {
    return taken_for_tokens(wrong, false);
}

// turning  exchanges them only in the pairs that turn, if there are others
Row exchanged_cos_and_sin(bool turning) {
    return {
        "cos_and_sin_exchanged", Part::exchange, "exchanged cos and sin",
        // sin + i cos = i (cos - i sin): the other direction, and a quarter of a turn.
        [turning](const Observation&, Hypothesis& wrong) {
            oracle::Operation& operation = wrong.operation;
            const std::vector<double>& inv_freq = operation.inv_freq;
            operation.inverse = !operation.inverse;
            operation.phase.resize(inv_freq.size());
            for (std::size_t j = 0; j < inv_freq.size(); ++j)
                operation.phase[j] -= turning && inv_freq[j] == 0 ? 0 : std::numbers::pi / 2;
            return wrong.operation.further.summed.empty() &&
                   (!turning || std::find(inv_freq.begin(), inv_freq.end(), 0.0) != inv_freq.end());
        }};
}

}  // namespace

Rows position_mistakes() {
    using std::uint64_t;
    return {
        positions(
            "position_plus_one", "took every position one too large",
            [](uint64_t token, const Positions& right, uint64_t) { return right[token] + 1; }),
        positions(
            "position_minus_one", "took every position one too small",
            [](uint64_t token, const Positions& right, uint64_t) { return right[token] - 1; }),
        {"inverse_direction", Part::direction,
         "rotated in the other direction, by sin with the other sign",
         [](const Observation&, Hypothesis& wrong) {
             wrong.operation.inverse = !wrong.operation.inverse;
             return true;
         }},
        exchanged_cos_and_sin(false),
        exchanged_cos_and_sin(true),
        {"not_rotated", Part::alone, "stored the input",
         [](const Observation&, Hypothesis& wrong) {
             wrong.operation.gain = oracle::Gain::omit;
             return wrong.operation.attention_factor != 1 &&
                    replace_positions(wrong, [](uint64_t, const Positions&) { return 0; });
         }},
        positions("positions_zero", "rotated nothing, or every token at position 0",
                  [](uint64_t, const Positions&, uint64_t) { return 0; }),
        from_zero("positions_from_zero",
                  "counted positions from 0 in each sequence or chunk of one", false),
        from_zero("positions_not_restarted",
                  "counted positions on through the sequences of a packed row, from 0 at its "
                  "first token",
                  true),
        {"positions_consecutive", Part::positions,
         "counted tokens where positions are given, from that of the first token on",
         [](const Observation&, Hypothesis& wrong) {
             return wrong.operation.further.positions.empty() &&
                    replace_positions(wrong, [&](uint64_t token, const Positions& right) {
                        const uint64_t of_sequence = token % wrong.in.tokens;
                        return right[token - of_sequence] + std::int64_t(of_sequence);
                    });
         }},
        positions("zero_ids_replaced",
                  "took positions of 0 for missing ones, and replaced them by the token's index",
                  [](uint64_t token, const Positions& right, uint64_t tokens) {
                      return right[token] == 0 ? std::int64_t(token % tokens) : right[token];
                  }),
        positions("positions_of_first_sequence",
                  "gave every sequence the positions of the first one",
                  [](uint64_t token, const Positions& right, uint64_t tokens) {
                      return right[token % tokens];
                  }),
        positions("positions_of_first_token",
                  "gave every token of a sequence the position of its first one",
                  [](uint64_t token, const Positions& right, uint64_t tokens) {
                      return right[token - token % tokens];
                  }),
        positions_in(in_16_bits[0]),
        positions_in(in_16_bits[1]),
        {"sections_ignored", Part::axes, "rotated every pair by the position on the first axis",
         [](const Observation&, Hypothesis& wrong) {
             return !std::exchange(wrong.operation.further, {}).positions.empty();
         }},
        {"sections_in_the_other_order", Part::axes,
         "took sections one after the other where they alternate, or the reverse",
         [](const Observation&, Hypothesis& wrong) {
             Sections sections = wrong.sections;
             const bool interleaved = sections.order == VKROPE_SECTIONS_INTERLEAVED;
             sections.order = interleaved ? VKROPE_SECTIONS_SEQUENTIAL
                                          : VKROPE_SECTIONS_INTERLEAVED;
             const bool there_is_such = sections.axes == 3 || sections.axes == 4;
             return there_is_such && change_sections(wrong, sections);
         }},
        {"sections_without_end", Part::axes,
         "let the axes alternate over all pairs, beyond the end of their sections",
         // Three equal sections that contain all pairs repeat the axes 0, 1, 2 up to the last pair.
         [](const Observation&, Hypothesis& wrong) {
             Sections sections = wrong.sections;
             const std::size_t pairs = wrong.operation.inv_freq.size() /
                                       wrong.operation.head_groups;
             const auto third = std::uint32_t((pairs + 2) / 3);
             for (std::uint32_t axis = 0; axis < max_axes; ++axis)
                 sections.pairs[axis] = axis < 3 ? third : 0;
             return sections.order == VKROPE_SECTIONS_INTERLEAVED && sections.axes == 3 &&
                    change_sections(wrong, sections);
         }},
        {"height_and_width_exchanged", Part::axes, "exchanged the positions of height and width",
         // Height and width are both axes of images, or the last two axes of text with images.
         [](const Observation&, Hypothesis& wrong) {
             std::vector<Positions>& further = wrong.operation.further.positions;
             if (further.size() == 1)
                 std::swap(wrong.operation.positions, further[0]);
             else if (further.size() > 1)
                 std::swap(further[0], further[1]);
             return !further.empty();
         }},
        {"rotated_twice", Part::positions, "rotated twice",
         [](const Observation&, Hypothesis& wrong) {
             wrong.operation.attention_factor *= wrong.operation.attention_factor;
             replace_positions(
                 wrong, [](uint64_t token, const Positions& right) { return 2 * right[token]; });
             return true;
         }},
    };
}

Rows layout_mistakes() {
    return {
        {"positions_along_heads", Part::layout,
         "took heads for tokens: the axes are in another order", heads_for_tokens},
        {"positions_along_batch", Part::layout,
         "took sequences for tokens: the axes are in another order", batch_for_tokens},
        {"tokens_and_heads_exchanged", Part::layout,
         "reshaped tokens and heads, and did not transpose them",
         [](const Observation&, Hypothesis& wrong) {
             Tensor& out = wrong.out;
             return !wrong.store &&
                    exchange_in_memory(out.token_stride, out.tokens, out.head_stride, out.heads);
         }},
        {"tokens_and_sequences_exchanged", Part::layout,
         "reshaped tokens and sequences, and did not transpose them",
         [](const Observation&, Hypothesis& wrong) {
             Tensor& out = wrong.out;
             return !wrong.store &&
                    exchange_in_memory(out.token_stride, out.tokens, out.batch_stride, out.batch);
         }},
    };
}

}  // namespace vkrope::tools
