// SPDX-License-Identifier: MIT
// Mistakes in a quantised store. Each is the definition of the store with one change.
#include <algorithm>
#include <cstddef>

#include "check/mistakes.hpp"

namespace vkrope::tools {
namespace {

using oracle::QuantisedStore, oracle::Rounding, oracle::Store;

bool in_blocks(Store type) {
    return oracle::block_channels(type) != 1;
}

bool has_nibbles(Store type) {
    return in_blocks(type) && type != Store::q8_0;
}

bool is_float(Store type) {
    return type == Store::e4m3fn || type == Store::e5m2;
}

/// Returns the bytes of a block whose halves are codes: the last 16 in q4_0 and similar types.
std::span<std::uint8_t> nibbles_of(std::span<std::uint8_t> block) {
    return block.last(16);
}

void exchange_nibbles(std::span<std::uint8_t> block) {
    for (std::uint8_t& byte : nibbles_of(block)) {
        byte = static_cast<std::uint8_t>(byte << 4 | byte >> 4);
    }
}

/// Converts bytes of channels 2 i and 2 i + 1 to bytes of channels i and i + 16.
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

/// Makes a change of outputs stored as codes. change(wrong) returns false if it changes nothing.
template <class Change>
Row row(const char* name, const char* meaning, const Change& change) {
    return {name, Part::store, meaning, [change](const Observation&, Hypothesis& wrong) {
                return wrong.store && change(wrong);
            }};
}

/// Makes a change of the definition, for types for which `applies` returns true.
template <class Applies, class Change>
Row of_definition(const char* name, const char* meaning, const Applies& applies,
                  const Change& change) {
    return row(name, meaning, [applies, change](Hypothesis& wrong) {
        const bool applicable = applies(*wrong.store);
        change(*wrong.store);
        return applicable;
    });
}

template <class Applies>
Row rounding(const char* name, const char* meaning, const Applies& applies, Rounding other) {
    return of_definition(
        name, meaning, [applies](const QuantisedStore& store) { return applies(store.type); },
        [other](QuantisedStore& store) { store.rounding = other; });
}

bool is_scaled(const QuantisedStore& store) {
    return !in_blocks(store.type) && !store.made &&
           std::any_of(store.given.begin(), store.given.end(),
                       [](float factor) { return factor != 1; });
}

Row power_of_two(const char* name, const char* meaning, bool other) {
    return of_definition(
        name, meaning,
        [other](const QuantisedStore& store) { return store.made && store.power_of_two != other; },
        [other](QuantisedStore& store) { store.power_of_two = other; });
}

Row reordered(const char* name, const char* meaning, void (*reorder)(std::span<std::uint8_t>)) {
    return row(name, meaning, [reorder](Hypothesis& wrong) {
        wrong.reorder = reorder;
        return has_nibbles(wrong.store->type);
    });
}

Row blocks_along(const char* name, const char* meaning, BlockAxis axis,
                 std::uint64_t oracle::Tensor::*length) {
    return row(name, meaning, [axis, length](Hypothesis& wrong) {
        wrong.along = axis;
        return in_blocks(wrong.store->type) &&
               wrong.out.*length % oracle::block_channels(wrong.store->type) == 0;
    });
}

}  // namespace

Rows store_mistakes() {
    const auto blocks = [](const QuantisedStore& store) { return in_blocks(store.type); };
    const auto made = [](const QuantisedStore& store) { return store.made; };
    const auto divide_otherwise = [](QuantisedStore& store) { store.other_division = true; };
    return {
        rounding(
            "ties_to_even", "rounded halves to even", [](Store type) { return !is_float(type); },
            Rounding::ties_to_even),
        rounding(
            "ties_away", "rounded halves away from zero",
            [](Store type) { return is_float(type) || has_nibbles(type); }, Rounding::ties_away),
        rounding(
            "truncated", "rounded values toward zero, not to the nearest code",
            [](Store) { return true; }, Rounding::toward_zero),
        of_definition("divided_by_scale",
                      "divided values by d, where the f32 1 / d multiplies them", blocks,
                      divide_otherwise),
        of_definition("scale_rounded_first", "divided values by d as it is stored, rounded to f16",
                      blocks, [](QuantisedStore& store) { store.d_as_stored = true; }),
        of_definition(
            "symmetric_range",
            "took the largest magnitude / 7 or 15 for d, not the value / -8 or -16",
            [](const QuantisedStore& store) {
                return store.type == Store::q4_0 || store.type == Store::q5_0;
            },
            [](QuantisedStore& store) { store.symmetric = true; }),
        of_definition("reciprocal_of_scale",
                      "multiplied values by 1 / scale, where the scale divides them", made,
                      divide_otherwise),
        row("scale_inverted", "took the reciprocals of the scales",
            [](Hypothesis& wrong) {
                const bool scaled = wrong.store->made || is_scaled(*wrong.store);
                for (std::vector<float>* scales : {&wrong.scales, &wrong.store->given}) {
                    for (float& scale : *scales) {
                        scale = 1 / scale;
                    }
                }
                return scaled;
            }),
        power_of_two("scale_not_power_of_two", "did not round scales up to powers of two", false),
        power_of_two("scale_power_of_two", "rounded scales up to powers of two (UE8M0)", true),
        of_definition("scale_of_token", "made one scale for all heads of a token, not one for each",
                      made, [](QuantisedStore& store) { store.one_of_token = true; }),
        of_definition("scale_not_applied", "stored values without the scale", is_scaled,
                      [](QuantisedStore& store) { store.given.clear(); }),
        of_definition(
            "not_saturated",
            "stored values beyond the range as NaN or infinity, not as the largest",
            [](const QuantisedStore& store) { return is_float(store.type) && !store.made; },
            [](QuantisedStore& store) { store.saturates = false; }),
        reordered("nibbles_exchanged", "exchanged the two 4-bit codes of a byte", exchange_nibbles),
        reordered("nibbles_of_neighbours",
                  "stored the codes of channels 2 j and 2 j + 1 in one byte", part_neighbours),
        blocks_along("blocks_along_tokens",
                     "formed blocks of 32 tokens: [batch, heads, head_dim, tokens]",
                     BlockAxis::tokens, &oracle::Tensor::tokens),
        blocks_along("blocks_along_heads",
                     "formed blocks of 32 heads: [batch, tokens, head_dim, heads]",
                     BlockAxis::heads, &oracle::Tensor::heads),
    };
}

}  // namespace vkrope::tools
