// SPDX-License-Identifier: MIT
#include "check/codes.hpp"

#include <algorithm>
#include <cstddef>

#include "check/judge.hpp"
#include "divide_up.hpp"
#include "meaning.hpp"

namespace vkrope::tools {
namespace {

using oracle::QuantisedStore, oracle::Rounding, oracle::Store;

bool in_blocks(Store type) {
    return oracle::block_channels(type) != 1;
}

bool has_nibbles(Store type) {
    return in_blocks(type) && type != Store::q8_0;
}

/// Both halves of a byte of a block. The codes of q4_0 and the like are its last 16 bytes.
std::span<std::uint8_t> nibbles_of(std::span<std::uint8_t> block) {
    return block.last(16);
}

void exchange_nibbles(std::span<std::uint8_t> block) {
    for (std::uint8_t& byte : nibbles_of(block)) {
        byte = static_cast<std::uint8_t>(byte << 4 | byte >> 4);
    }
}

/// From bytes of channels 2 i and 2 i + 1 to bytes of channels i and i + 16.
void part_neighbours(std::span<std::uint8_t> block) {
    const std::span<std::uint8_t> bytes = nibbles_of(block);
    std::uint8_t codes[32];
    for (std::size_t i = 0; i < 16; ++i) {
        codes[2 * i] = bytes[i] & 15;
        codes[2 * i + 1] = bytes[i] >> 4;
    }
    for (std::size_t i = 0; i < 16; ++i) {
        bytes[i] = static_cast<std::uint8_t>(codes[i] | codes[i + 16] << 4);
    }
}

/// Mistakes in the bits of codes.
template <class Add>
void add_roundings(Store type, const Add& add) {
    const bool is_float = type == Store::e4m3fn || type == Store::e5m2;
    const auto rounds = [](Rounding rounding) {
        return [rounding](StoreTrial& trial) { trial.store.rounding = rounding; };
    };
    if (is_float) {
        add("ties_away", "halves were rounded away from zero, not to even",
            rounds(Rounding::ties_away));
    } else {
        add("ties_to_even", "halves were rounded to even", rounds(Rounding::ties_to_even));
    }
    if (has_nibbles(type)) {
        add("ties_away", "halves were rounded away from zero, not up", rounds(Rounding::ties_away));
    }
    add("truncated", "values were rounded toward zero, not to the nearest code",
        rounds(Rounding::toward_zero));
}

template <class Add>
void add_scales(const StoredOutput& stored, const Add& add) {
    const QuantisedStore& store = stored.store;
    if (in_blocks(store.type)) {
        add("divided_by_scale", "values were divided by d, not multiplied by the f32 1 / d",
            [](StoreTrial& trial) { trial.store.other_division = true; });
        add("scale_rounded_first", "values were divided by d as it is stored, rounded to f16",
            [](StoreTrial& trial) { trial.store.d_as_stored = true; });
        if (store.type == Store::q4_0 || store.type == Store::q5_0) {
            add("symmetric_range",
                store.type == Store::q4_0 ? "d is the largest magnitude / 7, not x / -8"
                                          : "d is the largest magnitude / 15, not x / -16",
                [](StoreTrial& trial) { trial.store.symmetric = true; });
        }
        return;
    }
    if (store.made) {
        add("reciprocal_of_scale", "values were multiplied by 1 / scale, not divided by the scale",
            [](StoreTrial& trial) { trial.store.other_division = true; });
        add("scale_inverted", "the scales that were stored are their reciprocals",
            [](StoreTrial& trial) {
                for (float& scale : trial.scales) {
                    scale = 1 / scale;
                }
            });
        add(store.power_of_two ? "scale_not_power_of_two" : "scale_power_of_two",
            store.power_of_two ? "scales were not rounded up to powers of two"
                               : "scales were rounded up to powers of two (UE8M0)",
            [](StoreTrial& trial) { trial.store.power_of_two = !trial.store.power_of_two; });
        add("scale_of_token", "one scale was made for all heads of a token, not one for each",
            [](StoreTrial& trial) { trial.store.one_of_token = true; });
        return;
    }
    const auto is_factor = [](float factor) { return factor != 1; };
    if (std::any_of(store.given.begin(), store.given.end(), is_factor)) {
        add("scale_inverted", "values were divided by the scale, not multiplied",
            [](StoreTrial& trial) {
                for (float& factor : trial.store.given) {
                    factor = 1 / factor;
                }
            });
        add("scale_not_applied", "values were stored without the scale",
            [](StoreTrial& trial) { trial.store.given.clear(); });
    }
    if (store.type != Store::int8) {
        add("not_saturated",
            store.type == Store::e4m3fn ? "values beyond the range became NaN, not the largest"
                                        : "values beyond the range became infinite",
            [](StoreTrial& trial) { trial.store.saturates = false; });
    }
}

template <class Add>
void add_orders(Store type, const oracle::Tensor& out, const Add& add) {
    if (has_nibbles(type)) {
        add("nibbles_exchanged", "a byte has the code of channel j in its high half",
            [](StoreTrial& trial) { trial.reorder = exchange_nibbles; });
        add("nibbles_of_neighbours", "a byte has the codes of channels 2 j and 2 j + 1",
            [](StoreTrial& trial) { trial.reorder = part_neighbours; });
    }
    const auto lies_along = [](BlockAxis axis) {
        return [axis](StoreTrial& trial) { trial.along = axis; };
    };
    const std::uint64_t channels = oracle::block_channels(type);
    if (in_blocks(type) && out.tokens % channels == 0) {
        add("blocks_along_tokens",
            "a block has one channel of 32 tokens: [batch, heads, head_dim, tokens]",
            lies_along(BlockAxis::tokens));
    }
    if (in_blocks(type) && out.heads % channels == 0) {
        add("blocks_along_heads",
            "a block has one channel of 32 heads: [batch, tokens, head_dim, heads]",
            lies_along(BlockAxis::heads));
    }
}

/// The tokens of a sequence from `first` on.
Trial part_of(const Trial& trial, std::uint64_t batch, std::uint64_t first, std::uint64_t tokens) {
    Trial part = trial;
    part.in.batch = 1;
    part.in.tokens = tokens;
    part.first_in += batch * trial.in.batch_stride + first * trial.in.token_stride;
    each_axis(part, [&](std::vector<std::int64_t>& positions) {
        const auto from = positions.begin() +
                          static_cast<std::ptrdiff_t>(batch * trial.in.tokens + first);
        positions = std::vector(from, from + static_cast<std::ptrdiff_t>(tokens));
    });
    return part;
}

/// Compares blocks that lie along tokens or heads, 32 tokens at a time.
oracle::CodesVerdict compare_across(const StoredOutput& stored, const StoreTrial& store,
                                    const Trial& trial, const oracle::Ops& steps, double bound_u,
                                    const void* input) {
    const oracle::Tensor& in = trial.in;
    const Store type = store.store.type;
    const bool along_tokens = store.along == BlockAxis::tokens;
    const std::uint64_t channels = oracle::block_channels(type), size = oracle::block_bytes(type),
                        of_token = in.heads * in.head_dim,
                        step = along_tokens ? of_token : in.head_dim,
                        length = along_tokens ? channels : in.heads,
                        row_bytes = (along_tokens ? in.tokens : in.heads) / channels * size;
    oracle::CodesVerdict verdict;
    std::vector<oracle::Approximate> values, row(length);
    const std::uint64_t parts = divide_up(in.tokens, channels);
    for (std::uint64_t i_part = 0; i_part < in.batch * parts; ++i_part) {
        const std::uint64_t batch = i_part / parts, first = i_part % parts * channels,
                            tokens = std::min(channels, in.tokens - first),
                            token = batch * in.tokens + first;
        const Trial part = part_of(trial, batch, first, tokens);
        oracle::Ops part_steps = steps;
        if (!steps.scale_tokens.empty()) {
            const auto from = steps.scale_tokens.begin() + static_cast<std::ptrdiff_t>(token);
            part_steps.scale_tokens.assign(from, from + static_cast<std::ptrdiff_t>(tokens));
        }
        if (part_steps.second) {
            part_steps.second->leave_out(first);
        }
        values.clear();  // [tokens, heads, head_dim]
        oracle::apply_ops(part.in, by_axis(part.operation, part.further), part_steps, bound_u,
                          elements_from(input, part.first_in, in.type),
                          [&](std::uint64_t, std::uint64_t, const auto& of_one) {
                              values.insert(values.end(), of_one.begin(), of_one.end());
                          });
        for (std::uint64_t i = 0; i < values.size() / length; ++i) {
            const std::uint64_t at = along_tokens ? i
                                                  : i / in.head_dim * of_token + i % in.head_dim;
            for (std::uint64_t j = 0; j < length; ++j) {
                row[j] = values[at + j * step];
            }
            const std::uint64_t byte = along_tokens ? (batch * of_token + i) * row_bytes +
                                                          first / channels * size
                                                    : (token * in.head_dim + i) * row_bytes;
            oracle::compare_row(store.store, 1, row,
                                stored.codes.subspan(byte, length / channels * size), 0, "",
                                verdict);
        }
    }
    return verdict;
}

}  // namespace

StoreTrial right_store(const StoredOutput& stored) {
    return {.store = stored.store, .scales = stored.scales};
}

std::vector<StoreMistake> store_mistakes(const StoredOutput& stored, const oracle::Tensor& out) {
    std::vector<StoreMistake> mistakes;
    const auto add = [&](const char* name, const char* meaning, const auto& change) {
        StoreMistake mistake = {name, meaning, right_store(stored)};
        change(mistake.trial);
        mistakes.push_back(std::move(mistake));
    };
    add_roundings(stored.store.type, add);
    add_scales(stored, add);
    add_orders(stored.store.type, out, add);
    return mistakes;
}

oracle::CodesVerdict compare_stored(const StoredOutput& stored, const StoreTrial& store,
                                    const Trial& trial, const oracle::Ops& steps, double bound_u,
                                    const void* input,
                                    const std::function<void(double)>& progress) {
    if (store.along != BlockAxis::channels) {
        return compare_across(stored, store, trial, steps, bound_u, input);
    }
    const std::uint64_t size = oracle::block_bytes(store.store.type);
    const std::uint64_t first = trial.first_out / oracle::block_channels(store.store.type) * size;
    std::span<const std::uint8_t> codes = stored.codes.subspan(first);
    std::vector<std::uint8_t> reordered;
    if (store.reorder) {
        reordered.assign(codes.begin(), codes.end());
        for (std::uint64_t at = 0; at < reordered.size(); at += size) {
            store.reorder(std::span(reordered).subspan(at, size));
        }
        codes = reordered;
    }
    return oracle::compare_codes(trial.in, trial.out, by_axis(trial.operation, trial.further),
                                 steps, bound_u,
                                 elements_from(input, trial.first_in, trial.in.type), store.store,
                                 codes, store.scales, progress);
}

}  // namespace vkrope::tools
