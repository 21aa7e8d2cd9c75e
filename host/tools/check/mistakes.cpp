// SPDX-License-Identifier: MIT
#include "check/mistakes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

namespace vkrope::tools {
namespace {

using reference::CosSin;
using reference::Gain;
using reference::Operation;
using reference::Tensor;
using reference::Type;
using Attempt = std::optional<Trial>;

Trial right(const Evidence& evidence) {
    return {.in = evidence.in,
            .out = evidence.out,
            .operation = evidence.operation,
            .further = evidence.further};
}

/// The correct operation with one change.
template <class Change>
Attempt with(const Evidence& evidence, const Change& change) {
    Trial trial = right(evidence);
    change(trial.operation);
    return trial;
}

Attempt if_any(bool applicable, Attempt attempt) {
    return applicable ? std::move(attempt) : std::nullopt;
}

std::vector<double> powers(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    return base > 0 && default_inv_freq(base, rotary_dim, inv_freq.data()) ? inv_freq
                                                                           : std::vector<double>();
}

std::uint32_t rotary_dim(const Evidence& evidence) {
    return static_cast<std::uint32_t>(2 * evidence.operation.inv_freq.size());
}

bool differ(const std::vector<double>& a, const std::vector<double>& b) {
    const auto far = [](double x, double y) { return std::fabs(x - y) > 1e-12 * std::fabs(y); };
    return a.size() != b.size() || !std::equal(a.begin(), a.end(), b.begin(),
                                               [&](double x, double y) { return !far(x, y); });
}

/// The correct operation with other frequencies, if their pairs fit in the row from the rotary
/// offset on.
Attempt with_frequencies(const Evidence& evidence, const std::vector<double>& inv_freq) {
    const bool fits = evidence.operation.rotary_offset + 2 * inv_freq.size() <=
                      evidence.in.head_dim;
    return if_any(!inv_freq.empty() && fits && differ(inv_freq, evidence.operation.inv_freq),
                  with(evidence, [&](Operation& operation) { operation.inv_freq = inv_freq; }));
}

using Positions = std::vector<std::int64_t>;  // of one axis, [batch, tokens]

/// Replaces the positions on every axis: change(token, right) returns the position of one token,
/// counted over all sequences.
Attempt with_positions(const Evidence& evidence,
                       const std::function<std::int64_t(std::uint64_t, const Positions&)>& change) {
    Attempt attempt = right(evidence);
    each_axis(*attempt, [&change](Positions& positions) {
        const Positions right = positions;
        for (std::uint64_t token = 0; token < positions.size(); ++token) {
            positions[token] = change(token, right);
        }
    });
    const bool changed = attempt->operation.positions != evidence.operation.positions ||
                         attempt->further.positions != evidence.further.positions;
    return if_any(changed, attempt);
}

Attempt with_offset(const Evidence& evidence, std::uint64_t offset) {
    const Operation& operation = evidence.operation;
    const bool fits = offset + 2 * operation.inv_freq.size() <= evidence.in.head_dim;
    return if_any(fits && offset != operation.rotary_offset,
                  with(evidence, [offset](Operation& changed) { changed.rotary_offset = offset; }));
}

// The pairs.

Attempt swapped_pairing(const Evidence& evidence) {
    return if_any(evidence.operation.inv_freq.size() > 1, with(evidence, [](Operation& operation) {
                      operation.interleaved = !operation.interleaved;
                  }));
}

Attempt reordered_pairs(const Evidence& evidence) {
    return if_any(evidence.operation.inv_freq.size() > 1, with(evidence, [](Operation& operation) {
                      operation.interleaved_out = !operation.interleaved;
                  }));
}

// The turn.

Attempt inverse_direction(const Evidence& evidence) {
    return with(evidence, [](Operation& operation) { operation.inverse = !operation.inverse; });
}

Attempt rotated_twice(const Evidence& evidence) {
    Attempt attempt = with(evidence, [](Operation& operation) {
        operation.attention_factor *= operation.attention_factor;
    });
    each_axis(*attempt, [](Positions& positions) {
        for (std::int64_t& position : positions) {
            position *= 2;
        }
    });
    return attempt;
}

Attempt cos_and_sin_exchanged(const Evidence& evidence) {
    return with(evidence, [&evidence](Operation& operation) {
        operation.cos_sin = [inv_freq = evidence.operation.inv_freq](std::int64_t position,
                                                                     std::size_t pair) {
            const CosSin turn = reference::exact_cos_sin(position, inv_freq[pair]);
            return CosSin{turn.sin, turn.cos};
        };
    });
}

// The attention factor.

bool has_factor(const Evidence& evidence, Gain gain) {
    return evidence.operation.attention_factor != 1 && evidence.operation.gain == gain;
}

Attempt attention_factor_missing(const Evidence& evidence) {
    return if_any(has_factor(evidence, Gain::apply),
                  with(evidence, [](Operation& operation) { operation.gain = Gain::omit; }));
}

Attempt attention_factor_applied(const Evidence& evidence) {
    return if_any(has_factor(evidence, Gain::omit) || has_factor(evidence, Gain::divide_out),
                  with(evidence, [](Operation& operation) { operation.gain = Gain::apply; }));
}

Attempt attention_factor_twice(const Evidence& evidence) {
    return if_any(has_factor(evidence, Gain::apply), with(evidence, [](Operation& operation) {
                      operation.attention_factor *= operation.attention_factor;
                  }));
}

Attempt attention_factor_divided(const Evidence& evidence) {
    return if_any(has_factor(evidence, Gain::apply),
                  with(evidence, [](Operation& operation) { operation.gain = Gain::divide_out; }));
}

Attempt softmax_scale_applied(const Evidence& evidence) {
    return if_any(evidence.softmax_scale != 1, with(evidence, [&evidence](Operation& operation) {
                      operation.attention_factor *= evidence.softmax_scale;
                  }));
}

// The frequencies.

Attempt frequencies_unscaled(const Evidence& evidence) {
    return if_any(evidence.operation.attention_factor != 1,
                  with_frequencies(evidence, powers(evidence.base, rotary_dim(evidence))));
}

Attempt unscaled(const Evidence& evidence, double base) {
    Attempt attempt = with_frequencies(evidence, powers(base, rotary_dim(evidence)));
    if (attempt) {
        attempt->operation.attention_factor = 1;
    }
    return attempt;
}

Attempt scaling_ignored(const Evidence& evidence) {
    return unscaled(evidence, evidence.base);
}

Attempt base_10000(const Evidence& evidence) {
    return if_any(evidence.base != 10000, unscaled(evidence, 10000));
}

Attempt base_10000_with_factor(const Evidence& evidence) {
    return if_any(evidence.base != 10000 && evidence.operation.attention_factor != 1 &&
                      evidence.operation.gain != Gain::omit,
                  with_frequencies(evidence, powers(10000, rotary_dim(evidence))));
}

/// Applies the scaling to each frequency a second time.
Attempt scaling_twice(const Evidence& evidence) {
    const std::vector<double> unscaled = powers(evidence.base, rotary_dim(evidence));
    std::vector<double> inv_freq = unscaled.empty() ? unscaled : evidence.operation.inv_freq;
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
        inv_freq[j] *= inv_freq[j] / unscaled[j];
    }
    return with_frequencies(evidence, inv_freq);
}

bool is_partial(const Evidence& evidence) {
    return rotary_dim(evidence) < evidence.in.head_dim;
}

Attempt whole_head(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    attempt->operation.rotary_offset = 0;
    attempt->operation.inv_freq = powers(evidence.base,
                                         static_cast<std::uint32_t>(evidence.in.head_dim));
    return if_any(is_partial(evidence) && !attempt->operation.inv_freq.empty(), attempt);
}

Attempt exponent_of_head_dim(const Evidence& evidence) {
    std::vector<double> inv_freq = powers(evidence.base,
                                          static_cast<std::uint32_t>(evidence.in.head_dim));
    inv_freq.resize(std::min(inv_freq.size(), evidence.operation.inv_freq.size()));
    return if_any(is_partial(evidence), with_frequencies(evidence, inv_freq));
}

Attempt inclusive_spacing(const Evidence& evidence) {
    std::vector<double> inv_freq(evidence.operation.inv_freq.size());
    const bool known = evidence.base > 0 &&
                       inclusive_inv_freq(evidence.base, rotary_dim(evidence), inv_freq.data());
    return if_any(known, with_frequencies(evidence, inv_freq));
}

// The positions.

Attempt position_plus_one(const Evidence& evidence) {
    return with_positions(
        evidence, [](std::uint64_t token, const Positions& right) { return right[token] + 1; });
}

Attempt position_minus_one(const Evidence& evidence) {
    return with_positions(
        evidence, [](std::uint64_t token, const Positions& right) { return right[token] - 1; });
}

Attempt positions_zero(const Evidence& evidence) {
    return with_positions(evidence, [](std::uint64_t, const Positions&) { return 0; });
}

Attempt not_rotated(const Evidence& evidence) {
    Attempt attempt = positions_zero(evidence);
    if (attempt) {
        attempt->operation.gain = Gain::omit;
    }
    return if_any(evidence.operation.attention_factor != 1, attempt);
}

Attempt positions_from_zero(const Evidence& evidence) {
    return with_positions(evidence, [&evidence](std::uint64_t token, const Positions&) {
        return static_cast<std::int64_t>(token % evidence.in.tokens);
    });
}

Attempt positions_of_first_sequence(const Evidence& evidence) {
    return with_positions(evidence, [&evidence](std::uint64_t token, const Positions& right) {
        return right[token % evidence.in.tokens];
    });
}

// The axes of positions.

bool same_axes(const Sections& a, const Sections& b, std::size_t pairs) {
    for (std::uint32_t pair = 0; pair < pairs; ++pair) {
        if (axis_of(a, pair) != axis_of(b, pair)) {
            return false;
        }
    }
    return true;
}

Attempt sections_ignored(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    attempt->further = {};
    return if_any(!evidence.further.positions.empty(), attempt);
}

Attempt sections_in_the_other_order(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Sections& sections = attempt->further.sections;
    const bool interleaved = sections.order == SectionOrder::interleaved;
    sections.order = interleaved ? SectionOrder::sequential : SectionOrder::interleaved;
    const bool there_is_such = sections.axes == 3 || sections.axes == 4;
    return if_any(there_is_such && !same_axes(sections, evidence.further.sections,
                                              evidence.operation.inv_freq.size()),
                  attempt);
}

/// Height and width are the two axes of images, and the last two axes of text with images.
Attempt height_and_width_exchanged(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    std::vector<Positions>& further = attempt->further.positions;
    if (further.size() == 1) {
        std::swap(attempt->operation.positions, further[0]);
    } else if (further.size() > 1) {
        std::swap(further[0], further[1]);
    }
    return if_any(!further.empty(), attempt);
}

// The window.

Attempt window_of_the_other_tensor(const Evidence& evidence) {
    return if_any(evidence.other_offset != 0, with_offset(evidence, evidence.other_offset));
}

Attempt window_at_start(const Evidence& evidence) {
    return with_offset(evidence, 0);
}

Attempt window_at_end(const Evidence& evidence) {
    const std::uint64_t width = 2 * evidence.operation.inv_freq.size();
    return width > evidence.in.head_dim || evidence.in.head_dim - width == evidence.other_offset
               ? std::nullopt
               : with_offset(evidence, evidence.in.head_dim - width);
}

// The layout.

void exchange_tokens_and_heads(Tensor& tensor) {
    std::swap(tensor.tokens, tensor.heads);
    std::swap(tensor.token_stride, tensor.head_stride);
}

void exchange_tokens_and_batch(Tensor& tensor) {
    std::swap(tensor.tokens, tensor.batch);
    std::swap(tensor.token_stride, tensor.batch_stride);
}

/// Beyond the last token, positions continue from that of the last one.
std::int64_t continued(const Positions& positions, std::uint64_t tokens, std::uint64_t batch,
                       std::uint64_t token) {
    const std::uint64_t last = tokens - 1;
    const std::int64_t position = positions[batch * tokens + std::min(token, last)];
    return token <= last ? position : position + static_cast<std::int64_t>(token - last);
}

Attempt positions_along_heads(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    exchange_tokens_and_heads(attempt->in);
    exchange_tokens_and_heads(attempt->out);
    each_axis(*attempt, [&in = evidence.in](Positions& positions) {
        const Positions right = std::move(positions);
        positions.clear();
        for (std::uint64_t row = 0; row < in.batch * in.heads; ++row) {
            positions.push_back(continued(right, in.tokens, row / in.heads, row % in.heads));
        }
    });
    return if_any(evidence.in.heads > 1, attempt);
}

Attempt positions_along_batch(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    exchange_tokens_and_batch(attempt->in);
    exchange_tokens_and_batch(attempt->out);
    each_axis(*attempt, [&in = evidence.in](Positions& positions) {
        const Positions right = std::move(positions);
        positions.clear();
        for (std::uint64_t row = 0; row < in.batch * in.tokens; ++row) {
            positions.push_back(continued(right, in.tokens, 0, row % in.batch));
        }
    });
    return if_any(evidence.in.batch > 1, attempt);
}

/// Sets the strides as if two axes adjacent in memory had been exchanged in memory but not in the
/// shape. Returns false if they are not adjacent.
bool exchange_in_memory(std::uint64_t& a_stride, std::uint64_t a, std::uint64_t& b_stride,
                        std::uint64_t b) {
    if (a_stride < b_stride) {
        return exchange_in_memory(b_stride, b, a_stride, a);
    }
    if (a < 2 || b < 2 || a_stride != b_stride * b) {
        return false;
    }
    a_stride = b_stride;
    b_stride *= a;
    return true;
}

Attempt tokens_and_heads_exchanged(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Tensor& out = attempt->out;
    const bool neighbours = exchange_in_memory(out.token_stride, out.tokens, out.head_stride,
                                               out.heads);
    return if_any(neighbours, attempt);
}

Attempt tokens_and_sequences_exchanged(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Tensor& out = attempt->out;
    const bool neighbours = exchange_in_memory(out.token_stride, out.tokens, out.batch_stride,
                                               out.batch);
    return if_any(neighbours, attempt);
}

// The arithmetic.

Turn float32_product(std::vector<float> inv_freq) {
    return [inv_freq = std::move(inv_freq)](std::int64_t position, std::size_t pair) {
        const long double angle = static_cast<float>(position) * inv_freq[pair];
        return CosSin{std::cos(angle), std::sin(angle)};
    };
}

std::vector<float> rounded(const std::vector<double>& inv_freq) {
    return {inv_freq.begin(), inv_freq.end()};
}

Attempt float32_angles(const Evidence& evidence) {
    return with(evidence, [](Operation& operation) {
        operation.cos_sin = float32_product(rounded(operation.inv_freq));
    });
}

/// 1 / base^(2j / rotary_dim) in float32 throughout, as PyTorch code computes it, followed by the
/// scaling.
std::vector<float> float32_powers(const Evidence& evidence) {
    const std::vector<double>& inv_freq = evidence.operation.inv_freq;
    const std::vector<double> unscaled = powers(evidence.base, rotary_dim(evidence));
    std::vector<float> floats;
    for (std::size_t j = 0; j < unscaled.size(); ++j) {
        const float exponent = static_cast<float>(2 * j) / static_cast<float>(rotary_dim(evidence));
        const float power = 1.0f / std::pow(static_cast<float>(evidence.base), exponent);
        floats.push_back(static_cast<float>(power * (inv_freq[j] / unscaled[j])));
    }
    return floats;
}

/// The pow() of an engine decides the last bits of a float32 frequency, and implementations differ.
/// At a far position each variant is another angle.
std::vector<Turn> float32_products(const Evidence& evidence) {
    std::vector<Turn> turns;
    for (const int ulps : {0, 1, -1, 2, -2}) {
        for (std::vector<float> inv_freq :
             {rounded(evidence.operation.inv_freq), float32_powers(evidence)}) {
            for (float& frequency : inv_freq) {
                for (int step = 0; step < std::abs(ulps); ++step) {
                    frequency = std::nextafter(
                        frequency, ulps > 0 ? std::numeric_limits<float>::infinity() : 0.0f);
                }
            }
            if (!inv_freq.empty()) {
                turns.push_back(float32_product(std::move(inv_freq)));
            }
        }
    }
    return turns;
}

Attempt float32_angles_by_running_product(const Evidence& evidence) {
    constexpr std::size_t max_pairs = 512;  // each pair of each token repeats the product up to it
    const std::vector<double> unscaled = powers(evidence.base, rotary_dim(evidence));
    const std::vector<double>& inv_freq = evidence.operation.inv_freq;
    if (unscaled.empty() || unscaled.size() > max_pairs) {
        return std::nullopt;
    }
    std::vector<float> scaling;
    for (std::size_t j = 0; j < unscaled.size(); ++j) {
        scaling.push_back(static_cast<float>(inv_freq[j] / unscaled[j]));
    }
    const float step = std::pow(static_cast<float>(evidence.base),
                                -2.0f / static_cast<float>(rotary_dim(evidence)));
    return with(evidence, [&](Operation& operation) {
        operation.cos_sin = [scaling, step](std::int64_t position, std::size_t pair) {
            auto angle = static_cast<float>(position);
            for (std::size_t j = 0; j < pair; ++j) {
                angle *= step;
            }
            const long double scaled = angle * scaling[pair];
            return CosSin{std::cos(scaled), std::sin(scaled)};
        };
    });
}

Attempt tables_in_16_bits(const Evidence& evidence) {
    const Type type = evidence.out.type == Type::f32 ? evidence.in.type : evidence.out.type;
    return if_any(
        type != Type::f32, with(evidence, [&](Operation& operation) {
            const long double factor = operation.gain == Gain::apply ? operation.attention_factor
                                                                     : 1;
            operation.cos_sin = [inv_freq = operation.inv_freq, type, factor](std::int64_t position,
                                                                              std::size_t pair) {
                const CosSin turn = reference::exact_cos_sin(position, inv_freq[pair]);
                const auto rounded = [&](long double value) {
                    return reference::widen(type, reference::narrow(type, factor * value)) / factor;
                };
                return CosSin{rounded(turn.cos), rounded(turn.sin)};
            };
        }));
}

Attempt subnormals_flushed(const Evidence& evidence) {
    return with(evidence,
                [](Operation& operation) { operation.absolute_allowance = 0x1p-123 + 0x1p-148; });
}

struct Row {
    const char* name;
    Attempt (*attempt)(const Evidence&);
    Part part;
    const char* meaning;
    bool precision = false;
    std::vector<Turn> (*turns)(const Evidence&) = nullptr;  // as Mistake::turns
};

// If several explain an output equally well, the first of them is reported first.
constexpr Row rows[] = {
    {"swapped_pairing", swapped_pairing, Part::pairing,
     "half_split instead of interleaved, or the reverse"},
    {"reordered_pairs", reordered_pairs, Part::pairing,
     "right, but written in the order of the other pairing"},
    {"attention_factor_missing", attention_factor_missing, Part::factor,
     "cos and sin lack the attention factor"},
    {"attention_factor_twice", attention_factor_twice, Part::factor,
     "the attention factor was applied twice"},
    {"attention_factor_divided", attention_factor_divided, Part::factor,
     "divided by the attention factor"},
    {"attention_factor_applied", attention_factor_applied, Part::factor,
     "the attention factor was to be left out"},
    {"softmax_scale_applied", softmax_scale_applied, Part::factor,
     "multiplied by what belongs to the softmax scale"},
    {"scaling_ignored", scaling_ignored, Part::frequencies,
     "unscaled frequencies, no attention factor"},
    {"frequencies_unscaled", frequencies_unscaled, Part::frequencies,
     "unscaled frequencies, with the attention factor"},
    {"scaling_twice", scaling_twice, Part::frequencies, "the frequencies were scaled twice"},
    {"position_plus_one", position_plus_one, Part::positions, "every position is one too large"},
    {"position_minus_one", position_minus_one, Part::positions, "every position is one too small"},
    {"inverse_direction", inverse_direction, Part::direction,
     "turned the wrong way: sin has the wrong sign"},
    {"not_rotated", not_rotated, Part::alone, "the output is the input"},
    {"positions_zero", positions_zero, Part::positions, "rotated as at position 0: not at all"},
    {"positions_from_zero", positions_from_zero, Part::positions,
     "positions were counted from 0 in each sequence"},
    {"positions_of_first_sequence", positions_of_first_sequence, Part::positions,
     "every sequence has the positions of the first one"},
    {"sections_ignored", sections_ignored, Part::axes,
     "every pair was turned by the position on the first axis"},
    {"sections_in_the_other_order", sections_in_the_other_order, Part::axes,
     "sequential sections instead of interleaved, or the reverse"},
    {"height_and_width_exchanged", height_and_width_exchanged, Part::axes,
     "the positions of height and width changed places"},
    {"rotated_twice", rotated_twice, Part::positions, "rotated a second time"},
    {"window_of_the_other_tensor", window_of_the_other_tensor, Part::window,
     "K's window was rotated in Q, or Q's in K"},
    {"window_at_start", window_at_start, Part::window,
     "the window was taken at the start of a row"},
    {"window_at_end", window_at_end, Part::window, "the window was taken at the end of a row"},
    {"whole_head", whole_head, Part::window,
     "all of head_dim was rotated, with frequencies for it"},
    {"exponent_of_head_dim", exponent_of_head_dim, Part::frequencies,
     "exponents divide by head_dim, not by rotary_dim"},
    {"base_10000", base_10000, Part::frequencies,
     "unscaled frequencies of base 10000, no attention factor"},
    {"base_10000_with_factor", base_10000_with_factor, Part::frequencies,
     "unscaled frequencies of base 10000, with the attention factor"},
    {"inclusive_spacing", inclusive_spacing, Part::frequencies,
     "exponents reach 1: j / (n - 1), not j / n"},
    {"positions_along_heads", positions_along_heads, Part::layout,
     "heads were taken for tokens: axes in another order"},
    {"positions_along_batch", positions_along_batch, Part::layout,
     "sequences were taken for tokens: axes in another order"},
    {"tokens_and_heads_exchanged", tokens_and_heads_exchanged, Part::layout,
     "tokens and heads were reshaped, not transposed"},
    {"tokens_and_sequences_exchanged", tokens_and_sequences_exchanged, Part::layout,
     "tokens and sequences were reshaped, not transposed"},
    // Computation of cos and sin comes last: it uses the frequencies that another mistake may have
    // changed.
    {"cos_and_sin_exchanged", cos_and_sin_exchanged, Part::arithmetic,
     "sin stands where cos belongs, and the reverse"},
    {"float32_angles", float32_angles, Part::arithmetic,
     "angles are float32 products of position and frequency", true, float32_products},
    {"float32_angles_by_running_product", float32_angles_by_running_product, Part::arithmetic,
     "float32 angles, each pair's a multiple of the last one's", true},
    {"tables_in_16_bits", tables_in_16_bits, Part::arithmetic,
     "cos and sin were rounded to 16 bits", true},
    {"subnormals_flushed", subnormals_flushed, Part::alone,
     "right, but for subnormal numbers that became 0", true},
};

std::optional<Mistake> mistake_of(const Row& row, const Evidence& evidence) {
    Attempt attempt = row.attempt(evidence);
    if (!attempt) {
        return std::nullopt;
    }
    return Mistake{.name = row.name,
                   .meaning = row.meaning,
                   .trial = std::move(*attempt),
                   .part = row.part,
                   .precision = row.precision,
                   .turns = row.turns == nullptr ? std::vector<Turn>() : row.turns(evidence)};
}

/// Returns true if a mistake in the frequencies gives this other RoPE of the model.
bool same_rotation(const Mistake& mistake, const Rotation& rotation) {
    return mistake.part == Part::frequencies &&
           !differ(rotation.inv_freq, mistake.trial.operation.inv_freq) &&
           rotation.attention_factor == mistake.trial.operation.attention_factor;
}

Mistake other_rotation(const Evidence& evidence, const OtherRotation& other) {
    Trial trial = right(evidence);
    trial.operation.inv_freq = other.rotation.inv_freq;
    trial.operation.attention_factor = other.rotation.attention_factor;
    return {.name = other.mistake,
            .meaning = other.meaning,
            .trial = std::move(trial),
            .part = Part::frequencies};
}

}  // namespace

std::vector<Mistake> mistakes_of(const Evidence& evidence) {
    std::vector<Mistake> mistakes;
    if (evidence.operation.inv_freq.empty() || evidence.operation.positions.empty() ||
        evidence.in.heads == 0) {
        return mistakes;
    }
    for (const Row& row : rows) {
        if (std::optional<Mistake> mistake = mistake_of(row, evidence)) {
            mistakes.push_back(std::move(*mistake));
        }
    }
    // The other RoPEs of the model come first: if they explain an output, they are likelier than a
    // base that happens to match. One without scaling is reported as scaling_ignored.
    const auto scaling_ignored = std::find_if(
        mistakes.begin(), mistakes.end(),
        [](const Mistake& mistake) { return mistake.name == "scaling_ignored"; });
    std::vector<Mistake> others;
    for (const OtherRotation& other : evidence.others) {
        const bool fits = evidence.operation.rotary_offset + 2 * other.rotation.inv_freq.size() <=
                          evidence.in.head_dim;
        const bool another = differ(other.rotation.inv_freq, evidence.operation.inv_freq) ||
                             other.rotation.attention_factor != evidence.operation.attention_factor;
        if (!other.rotation.rotates || !fits || !another) {
            continue;
        }
        if (scaling_ignored != mistakes.end() && same_rotation(*scaling_ignored, other.rotation)) {
            scaling_ignored->meaning += "; " + other.meaning;
        } else {
            others.push_back(other_rotation(evidence, other));
        }
    }
    mistakes.insert(mistakes.begin(), std::make_move_iterator(others.begin()),
                    std::make_move_iterator(others.end()));
    return mistakes;
}

void each_two(const Evidence& evidence, const std::vector<Mistake>& singles,
              const std::function<void(const Mistake&)>& visit) {
    for (const Mistake& first : singles) {
        const auto* row = std::find_if(std::begin(rows), std::end(rows), [&first](const Row& each) {
            return each.name == first.name;
        });
        row = row == std::end(rows) ? rows : row + 1;  // another RoPE combines with all rows
        Evidence changed = evidence;
        changed.in = first.trial.in;
        changed.out = first.trial.out;
        changed.operation = first.trial.operation;
        changed.further = first.trial.further;
        for (; row != std::end(rows); ++row) {
            if (first.part == Part::alone || row->part == Part::alone || row->part == first.part) {
                continue;
            }
            if (std::optional<Mistake> both = mistake_of(*row, changed)) {
                both->name = first.name + " + " + both->name;
                both->meaning = first.meaning + "; " + both->meaning;
                both->part = Part::alone;
                both->precision = false;
                visit(*both);
            }
        }
    }
}

}  // namespace vkrope::tools
