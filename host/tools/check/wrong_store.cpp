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

/// Makes a change of outputs stored as codes. change(form, tensor) returns false if it changes
/// nothing.
template <class Change>
Row row(const char* name, const char* meaning, const Change& change) {
    return {name, Part::store, meaning, [change](const Observation&, Hypothesis& wrong) {
                return wrong.store && change(*wrong.store, wrong.out);
            }};
}

/// Makes a change of the definition, for types for which `applies` returns true.
template <class Applies, class Change>
Row of_definition(const char* name, const char* meaning, const Applies& applies,
                  const Change& change) {
    return row(name, meaning, [applies, change](StoreForm& form, const oracle::Tensor&) {
        const bool applicable = applies(form.quantised);
        change(form.quantised);
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

Row symmetric(const char* meaning, Store type) {
    return of_definition(
        "symmetric_range", meaning,
        [type](const QuantisedStore& store) { return store.type == type; },
        [](QuantisedStore& store) { store.symmetric = true; });
}

Row not_saturated(const char* meaning, Store type) {
    return of_definition(
        "not_saturated", meaning,
        [type](const QuantisedStore& store) { return store.type == type && !store.made; },
        [](QuantisedStore& store) { store.saturates = false; });
}

Row power_of_two(const char* name, const char* meaning, bool other) {
    return of_definition(
        name, meaning,
        [other](const QuantisedStore& store) { return store.made && store.power_of_two != other; },
        [other](QuantisedStore& store) { store.power_of_two = other; });
}

Row reordered(const char* name, const char* meaning, void (*reorder)(std::span<std::uint8_t>)) {
    return row(name, meaning, [reorder](StoreForm& form, const oracle::Tensor&) {
        form.reorder = reorder;
        return has_nibbles(form.quantised.type);
    });
}

Row blocks_along(const char* name, const char* meaning, BlockAxis axis,
                 std::uint64_t oracle::Tensor::*length) {
    return row(name, meaning, [axis, length](StoreForm& form, const oracle::Tensor& out) {
        form.along = axis;
        return in_blocks(form.quantised.type) &&
               out.*length % oracle::block_channels(form.quantised.type) == 0;
    });
}

}  // namespace

Rows store_mistakes() {
    const auto blocks = [](const QuantisedStore& store) { return in_blocks(store.type); };
    const auto made = [](const QuantisedStore& store) { return store.made; };
    const auto divide_otherwise = [](QuantisedStore& store) { store.other_division = true; };
    return {
        rounding("ties_away", "halves were rounded away from zero, not to even", is_float,
                 Rounding::ties_away),
        rounding(
            "ties_to_even", "halves were rounded to even",
            [](Store type) { return !is_float(type); }, Rounding::ties_to_even),
        rounding("ties_away", "halves were rounded away from zero, not up", has_nibbles,
                 Rounding::ties_away),
        rounding(
            "truncated", "values were rounded toward zero, not to the nearest code",
            [](Store) { return true; }, Rounding::toward_zero),
        of_definition("divided_by_scale",
                      "values were divided by d, not multiplied by the f32 1 / d", blocks,
                      divide_otherwise),
        of_definition("scale_rounded_first",
                      "values were divided by d as it is stored, rounded to f16", blocks,
                      [](QuantisedStore& store) { store.d_as_stored = true; }),
        symmetric("d is the largest magnitude / 7, not x / -8", Store::q4_0),
        symmetric("d is the largest magnitude / 15, not x / -16", Store::q5_0),
        of_definition("reciprocal_of_scale",
                      "values were multiplied by 1 / scale, not divided by the scale", made,
                      divide_otherwise),
        row("scale_inverted", "the scales that were stored are their reciprocals",
            [](StoreForm& form, const oracle::Tensor&) {
                for (float& scale : form.scales) {
                    scale = 1 / scale;
                }
                return form.quantised.made;
            }),
        power_of_two("scale_not_power_of_two", "scales were not rounded up to powers of two",
                     false),
        power_of_two("scale_power_of_two", "scales were rounded up to powers of two (UE8M0)", true),
        of_definition("scale_of_token",
                      "one scale was made for all heads of a token, not one for each", made,
                      [](QuantisedStore& store) { store.one_of_token = true; }),
        of_definition("scale_inverted", "values were divided by the scale, not multiplied",
                      is_scaled,
                      [](QuantisedStore& store) {
                          for (float& factor : store.given) {
                              factor = 1 / factor;
                          }
                      }),
        of_definition("scale_not_applied", "values were stored without the scale", is_scaled,
                      [](QuantisedStore& store) { store.given.clear(); }),
        not_saturated("values beyond the range became NaN, not the largest", Store::e4m3fn),
        not_saturated("values beyond the range became infinite", Store::e5m2),
        reordered("nibbles_exchanged", "a byte has the code of channel j in its high half",
                  exchange_nibbles),
        reordered("nibbles_of_neighbours", "a byte has the codes of channels 2 j and 2 j + 1",
                  part_neighbours),
        blocks_along("blocks_along_tokens",
                     "a block has one channel of 32 tokens: [batch, heads, head_dim, tokens]",
                     BlockAxis::tokens, &oracle::Tensor::tokens),
        blocks_along("blocks_along_heads",
                     "a block has one channel of 32 heads: [batch, tokens, head_dim, heads]",
                     BlockAxis::heads, &oracle::Tensor::heads),
    };
}

}  // namespace vkrope::tools
