// SPDX-License-Identifier: MIT
// Which channels form a pair: each channel of a window has its number as its value, and must go
// where the definition says, and back.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "error.hpp"

using namespace vkrope::shader;

namespace {

std::array<float, 8> elements(const Unit& unit) {
    return {unit.a.x, unit.a.y, unit.a.z, unit.a.w, unit.b.x, unit.b.y, unit.b.z, unit.b.w};
}

/// n elements of a row in which every channel has its number as its value; the others have a value
/// that is not in the row.
Unit channels_from(uint first, uint n) {
    std::array<float, 8> e;
    for (uint i = 0; i < 8; ++i) e[i] = i < n ? float(first + i) : -1;
    return Unit({e[0], e[1], e[2], e[3]}, {e[4], e[5], e[6], e[7]});
}

}  // namespace

TEST_CASE("units become pairs and pairs units") {
    const uint rotary_dim = 48;
    for (const uint pairing : {pairing_half_split, pairing_interleaved}) {
        for (const uint n : {1u, 2u, 4u, 8u}) {
            std::vector<int> met(rotary_dim);
            for (uint pair = 0; pair < rotary_dim / 2; pair += n) {
                const uvec2 at = vkrope_pair_channels(pairing, rotary_dim, n, pair);
                const Unit A = channels_from(at.x, n), B = channels_from(at.y, n);
                Unit x0, x1, back_a, back_b;
                vkrope_to_pairs(pairing, n, A, B, x0, x1);
                vkrope_from_pairs(pairing, n, x0, x1, back_a, back_b);
                for (uint i = 0; i < n; ++i) {
                    const uint j = pair + i;
                    const bool half = pairing == pairing_half_split;
                    CHECK(elements(x0)[i] == float(half ? j : 2 * j));
                    CHECK(elements(x1)[i] == float(half ? j + rotary_dim / 2 : 2 * j + 1));
                    CHECK(elements(back_a)[i] == elements(A)[i]);
                    CHECK(elements(back_b)[i] == elements(B)[i]);
                    ++met[at.x + i];
                    ++met[at.y + i];
                }
            }
            CHECK(met == std::vector<int>(rotary_dim, 1));
        }
    }
}
