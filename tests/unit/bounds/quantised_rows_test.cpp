// SPDX-License-Identifier: MIT
// Whole blocks and rows as a kernel quantises them, with the shader's own source, against the
// oracle: not a byte differs.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <vector>

#include "flush.hpp"
#include "hard_rows.hpp"
#include "meaning.hpp"

using namespace vkrope::bounds;
using namespace vkrope::shader;

namespace {

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
    std::array<uint, 8> packed;
    for (uint i = 0; i < 8; ++i)
        packed[i] = vkrope_pack_codes(vkrope_block_codes(type, four(row, first + 4 * i), block));
    std::vector<uint> words = {vkrope_scales_word(type, block)}, codes;
    uint fifth_bits = 0;
    for (uint i = 0; i < (type == element_q8_0 ? 8 : 4); ++i) {
        if (type != element_q8_0)
            fifth_bits |= vkrope_join_fifth_bits(packed[i], packed[i + 4]) << (4 * i);
        codes.push_back(type == element_q8_0 ? packed[i]
                                             : vkrope_join_nibbles(packed[i], packed[i + 4]));
    }
    if (vkrope_has_fifth_bit(type)) words.push_back(fifth_bits);
    words.insert(words.end(), codes.begin(), codes.end());
    // The first half of an odd number is not stored.
    for (std::size_t byte = vkrope_block_halves(type) % 2 * 2; byte < 4 * words.size(); ++byte)
        bytes.push_back(std::uint8_t(words[byte / 4] >> (8 * (byte % 4))));
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

void print(const char* what, std::size_t rows, bool flushes) {
    std::printf("quantise: %zu %s%s\n", rows, what, flushes ? ", subnormals flushed" : "");
}

}  // namespace

TEST_CASE("quantise: blocks have the oracle's bytes") {
    for (const bool flushes : {false, true}) {
        const std::size_t count = all ? 10000000 : 100000;
        std::size_t blocks = 0;
        for (const Store store : stores) {
            if (vkrope::oracle::block_channels(store) == 1) continue;
            Random random(std::uint64_t(type_of(store)));
            std::size_t wrong = 0;
            int first_wrong = -1;
            for (std::size_t i = 0; i < count; ++i, ++blocks) {
                const int kind = int(i % kinds);
                const Row row = hard_row(random, kind, 32);
                const uint n = 1u << (i / kinds % 4);
                if (blocks_of_shader(type_of(store), n, row, flushes) !=
                    vkrope::oracle::quantise_blocks(store, row)) {
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
            if (vkrope::oracle::block_channels(store) == 1) continue;
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
                const Bytes right = vkrope::oracle::quantise_blocks(store, row);
                wrong += blocks_of_shader(type, 4, row, flushes) == right ? 0 : 1;
                zeros += right.back() == vkrope::oracle::quantise_blocks(store, Row(32)).back() ? 1
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
            if (vkrope::oracle::block_channels(store) != 1) continue;
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
                const auto right = vkrope::oracle::quantise_made(store, row, floor, power_of_two);
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
        if (vkrope::oracle::block_channels(store) == 1) continue;
        CHECK(2 * vkrope_block_halves(type_of(store)) == vkrope::oracle::block_bytes(store));
    }
}
