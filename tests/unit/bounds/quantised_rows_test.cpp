// SPDX-License-Identifier: MIT
// Whole blocks and rows as a kernel quantises them, with the shader's own source, against the
// oracle: not a byte differs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "flush.hpp"
#include "reference/oracle.hpp"
#include "reference/quantise.hpp"
#include "search.hpp"

using namespace vkrope::bounds;
using namespace vkrope::shader;
using vkrope::reference::Store;

namespace {

using Row = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

constexpr std::array<Store, 8> stores = {Store::e4m3fn, Store::e5m2, Store::int8, Store::q8_0,
                                         Store::q4_0,   Store::q4_1, Store::q5_0, Store::q5_1};

uint type_of(Store store) {
    return element_e4m3fn + uint(std::find(stores.begin(), stores.end(), store) - stores.begin());
}

vec4 four(const Row& row, std::size_t first) {
    return {row[first], row[first + 1], row[first + 2], row[first + 3]};
}

/// Extremes of units of n, joined as a tree in the order of channels; each unit has one half.
VkropeExtremes extremes_of(uint type, uint n, const Row& row, std::size_t first,
                           std::size_t channels) {
    if (channels > n) {
        return vkrope_join_extremes(
            type, extremes_of(type, n, row, first, channels / 2),
            extremes_of(type, n, row, first + channels / 2, channels - channels / 2));
    }
    float at[8] = {};
    std::copy_n(row.begin() + std::ptrdiff_t(first), n, at);
    return vkrope_extremes(type, n, {{at[0], at[1], at[2], at[3]}, {at[4], at[5], at[6], at[7]}});
}

void append_block(uint type, uint n, const Row& row, std::size_t first, Bytes& bytes) {
    const VkropeBlock block = vkrope_block(type, extremes_of(type, n, row, first, 32));
    std::array<uint, 8> words;
    uint fifth_bits = 0;
    for (uint i = 0; i < 8; ++i) {
        words[i] = vkrope_pack_codes(vkrope_block_codes(type, four(row, first + 4 * i), block));
        fifth_bits |= vkrope_fifth_bits(words[i]) << 4 * i;
    }
    for (uint i = 0; i < vkrope_block_halves(type); ++i) {
        uint half = 0;
        if (i < vkrope_header_halves(type)) {
            half = vkrope_header_half(type, i, block.scales, fifth_bits);
        } else {
            const uint channel = vkrope_channel_of_half(type, i);
            half = vkrope_code_half(type, channel, words[channel / 4],
                                    words[(channel + 16) / 4 % 8]);
        }
        bytes.push_back(std::uint8_t(half));
        bytes.push_back(std::uint8_t(half >> 8));
    }
}

[[gnu::noinline]] Bytes blocks_of_shader(uint type, uint n, const Row& row, bool flushes) {
    const Flushing flushing(flushes);
    Bytes bytes;
    for (std::size_t first = 0; first < row.size(); first += 32)
        append_block(type, n, row, first, bytes);
    return bytes;
}

struct Made {
    uint scale = 0;
    Bytes codes;
};

[[gnu::noinline]] Made row_of_shader(uint type, uint n, const Row& row, float floor,
                                     bool power_of_two, bool flushes) {
    const Flushing flushing(flushes);
    const VkropeExtremes extremes = extremes_of(type, n, row, 0, row.size());
    const VkropeMadeScale scale = vkrope_made_scale(
        type, extremes, power_of_two ? vkrope_power_of_two_from(type, extremes, floor) : floor);
    Made made;
    made.scale = scale.bits;
    for (std::size_t i = 0; i < row.size(); i += 4) {
        const uint word = vkrope_pack_codes(
            vkrope_codes(type, vkrope_quotient(four(row, i), scale)));
        for (uint byte = 0; byte < 4; ++byte) made.codes.push_back(std::uint8_t(word >> 8 * byte));
    }
    return made;
}

float random_float(Random& random) {
    return std::bit_cast<float>(std::uint32_t(random()));
}

/// A finite number with an exponent in [low, high].
float scattered(Random& random, int low, int high) {
    const int exponent = low + int(random() % std::uint64_t(high - low + 1));
    return float(std::ldexp((1 + uniform(random)) * (random() % 2 == 0 ? 1 : -1), exponent));
}

constexpr int kinds = 16;

/// A row that is hard in one of several ways.
Row hard_row(Random& random, int kind, std::size_t channels) {
    using vkrope::reference::narrow;
    using vkrope::reference::Type;
    using vkrope::reference::widen;
    Row row(channels);
    const float scale = float(std::ldexp(1.0, int(random() % 20) - 10));
    const float step = scattered(random, -145, 110);
    const float constant = scattered(random, -149, 127);
    const int low = -149 + int(random() % 30);
    for (float& x : row) {
        const auto plain = float((uniform(random) + uniform(random) + uniform(random) - 1.5) * 4);
        switch (kind) {
            case 1: x = widen(Type::bf16, narrow(Type::bf16, plain)); break;
            case 2: x = widen(Type::f16, narrow(Type::f16, plain * scale)); break;
            case 3: x = float(int(random() % 511) - 255) / 2 * scale; break;  // ties
            case 4: x = random() % 16 == 0 ? plain * 1000 : plain / 10; break;
            case 5: x = scattered(random, -149, -120); break;
            case 6: x = scattered(random, 120, 127); break;
            case 7: x = constant; break;
            case 8: x = random() % 2 == 0 ? 0.f : -0.f; break;
            case 9: x = random() % 8 == 0 ? random_float(random) : plain; break;
            case 10: x = random_float(random); break;
            case 11: x = random() % 2 == 0 ? constant : -constant; break;
            case 12: x = float(int(random() % 33) - 16) * step; break;  // ties of any size
            case 13: x = scattered(random, low, low + 5); break;        // around the smallest 1/d
            case 14: x = scattered(random, -44, -38); break;            // around lifted channels
            case 15: x = plain + float(random() % 2) * scale; break;
            default: x = plain * scale;
        }
    }
    // Some have a NaN, an infinity, or a zero.
    const float spice[] = {std::numeric_limits<float>::quiet_NaN(),
                           -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::infinity(),
                           0.f,
                           -0.f,
                           std::bit_cast<float>(0xffc00001u)};
    for (std::uint64_t i = random() % 8; i >= 6; --i)
        row[random() % channels] = spice[random() % std::size(spice)];
    return row;
}

void print(const char* what, std::size_t rows, bool flushes) {
    std::printf("quantise: %zu %s%s\n", rows, what, flushes ? ", subnormals flushed" : "");
}

}  // namespace

TEST_CASE("quantise: blocks have the oracle's bytes") {
    for (const bool flushes : {false, true}) {
        const std::size_t count = all ? 10000000 : 100000;
        std::size_t blocks = 0;
        for (const Store store : stores) {
            if (vkrope::reference::block_channels(store) == 1) continue;
            Random random(std::uint64_t(type_of(store)));
            std::size_t wrong = 0;
            int first_wrong = -1;
            for (std::size_t i = 0; i < count; ++i, ++blocks) {
                const int kind = int(i % kinds);
                const Row row = hard_row(random, kind, 32);
                const uint n = 1u << (i / kinds % 4);
                if (blocks_of_shader(type_of(store), n, row, flushes) !=
                    vkrope::reference::quantise_blocks(store, row)) {
                    if (wrong++ == 0) first_wrong = kind;
                }
            }
            CAPTURE(int(store));
            CAPTURE(flushes);
            CAPTURE(first_wrong);
            CHECK(wrong == 0);
        }
        print("blocks", blocks, flushes);
    }
}

TEST_CASE("quantise: blocks next to the d from which on 1/d overflows, 2^-128") {
    for (const bool flushes : {false, true}) {
        for (const Store store : stores) {
            if (vkrope::reference::block_channels(store) == 1) continue;
            const uint type = type_of(store);
            const float divisor = store == Store::q8_0   ? 127.f
                                  : store == Store::q4_0 ? 8.f
                                  : store == Store::q5_0 ? 16.f
                                  : store == Store::q4_1 ? 15.f
                                                         : 31.f;
            std::size_t wrong = 0, zeros = 0;
            for (int off = -200; off <= 200; ++off) {
                const auto most = std::bit_cast<float>(
                    uint(int(std::bit_cast<uint>(divisor * 0x1p-128f)) + off));
                Row row(32);
                for (std::size_t j = 0; j < 32; ++j) row[j] = most * float(j) / 31;
                const Bytes right = vkrope::reference::quantise_blocks(store, row);
                wrong += blocks_of_shader(type, 4, row, flushes) == right ? 0 : 1;
                zeros += right.back() == vkrope::reference::quantise_blocks(store, Row(32)).back()
                             ? 1
                             : 0;
            }
            CAPTURE(int(store));
            CAPTURE(flushes);
            CHECK(wrong == 0);
            CHECK(zeros > 100);  // both sides are there
            CHECK(zeros < 300);
        }
    }
}

TEST_CASE("quantise: rows with scales that are made have the oracle's codes and scales") {
    for (const bool flushes : {false, true}) {
        const std::size_t count = all ? 3000000 : 30000;
        std::size_t rows = 0;
        for (const Store store : stores) {
            if (vkrope::reference::block_channels(store) != 1) continue;
            Random random(std::uint64_t(type_of(store)));
            std::size_t wrong = 0;
            int first_wrong = -1;
            for (std::size_t i = 0; i < count; ++i, ++rows) {
                const int kind = int(i % kinds);
                const Row row = hard_row(random, kind, i % 3 == 0 ? 64 : 128);
                const float floors[] = {0, 1e-8f, 1e-4f, 0x1p-140f};
                const float floor = floors[random() % std::size(floors)];
                const bool power_of_two = random() % 2 != 0;
                const Made got = row_of_shader(type_of(store), 1u << (i / kinds % 4), row, floor,
                                               power_of_two, flushes);
                const auto right = vkrope::reference::quantise_made(store, row, floor,
                                                                    power_of_two);
                if (got.scale != std::bit_cast<uint>(right.scale) || got.codes != right.codes) {
                    if (wrong++ == 0) first_wrong = kind;
                }
            }
            CAPTURE(int(store));
            CAPTURE(flushes);
            CAPTURE(first_wrong);
            CHECK(wrong == 0);
        }
        print("rows", rows, flushes);
    }
}

TEST_CASE("quantise: the size of a block is the oracle's") {
    for (const Store store : stores) {
        if (vkrope::reference::block_channels(store) == 1) continue;
        CHECK(2 * vkrope_block_halves(type_of(store)) == vkrope::reference::block_bytes(store));
    }
}
