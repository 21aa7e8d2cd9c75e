// SPDX-License-Identifier: MIT
#include "verify/oracle/code_edges.hpp"

#include <algorithm>
#include <bit>

namespace vkrope::oracle {
namespace {

constexpr std::size_t row = 32, fixed = 2;

// Maps floats to integers in the same order; both zeros become 0.
std::int64_t number_of(float x) {
    const auto bits = std::int64_t{std::bit_cast<std::uint32_t>(x)};
    return bits < 0x80000000 ? bits : 0x80000000 - bits;
}

float float_of(std::int64_t number) {
    return std::bit_cast<float>(std::uint32_t(number < 0 ? 0x80000000 - number : number));
}

int code_in_row(Store store, float largest, bool made, float x) {
    std::vector<float> channels(row, x);
    channels[0] = -largest;
    channels[1] = largest;
    if (has_blocks(store)) return fields_of(store, quantise_blocks(store, channels)).codes[fixed];
    return made ? quantise_made(store, channels, 0).codes[fixed] : code_of(store, x);
}

}  // namespace

float largest_for_ties(Store store) {
    switch (store) {
        case Store::q8_0:
        case Store::iq4_nl: return 127;
        case Store::q4_0: return 8;
        case Store::q5_0: return 16;
        case Store::q4_1: return 7.5f;
        case Store::q5_1: return 15.5f;
        default: return largest(store);
    }
}

std::vector<float> code_edges(Store store, float largest, bool made) {
    std::vector<float> rows;
    const auto add = [&](float x) {
        if (rows.size() % row == 0) rows.insert(rows.end(), {-largest, largest});
        rows.push_back(x);
    };
    const std::int64_t end = number_of(largest);
    for (std::int64_t first = -end; first <= end;) {
        const int code = code_in_row(store, largest, made, float_of(first));
        // Codes ascend with numbers, so all floats with one code are neighbours.
        std::int64_t last = first, beyond = end + 1;
        while (beyond - last > 1) {
            const std::int64_t middle = last + (beyond - last) / 2;
            const bool same = code_in_row(store, largest, made, float_of(middle)) == code;
            (same ? last : beyond) = middle;
        }
        add(float_of(first));
        add(float((double{float_of(first)} + double{float_of(last)}) / 2));
        add(float_of(last));
        first = last + 1;
    }
    while (rows.size() % row != 0) add(largest);
    return rows;
}

}  // namespace vkrope::oracle
