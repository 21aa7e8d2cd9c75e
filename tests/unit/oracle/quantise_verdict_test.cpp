// SPDX-License-Identifier: MIT
// Checks the verdict on quantised outputs. The result of the definition for any row within the
// error is right, and every mistake that changes more than that is found.
#include "verify/oracle/quantise_verdict.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>

using namespace vkrope::oracle;

namespace {

using Bytes = std::vector<std::uint8_t>;
using Row = std::vector<float>;

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

constexpr Store every_store[] = {Store::e4m3fn, Store::e5m2, Store::int8, Store::q8_0,
                                 Store::q4_0,   Store::q4_1, Store::q5_0, Store::q5_1,
                                 Store::iq4_nl, Store::int4};

struct Stored {
    Bytes bytes;
    std::vector<float> scales = {};
};

Stored stored(const QuantisedStore& store, const Row& row) {
    if (has_blocks(store.type)) return {quantise_blocks(store.type, row)};
    if (store.made) {
        Stored all;
        const std::size_t group = row.size() / store.groups(row.size());
        for (std::size_t first = 0; first < row.size(); first += group) {
            const MadeRow made = quantise_made(store.type, std::span(row).subspan(first, group),
                                               store.floor);
            all.bytes.insert(all.bytes.end(), made.codes.begin(), made.codes.end());
            all.scales.push_back(made.scale);
        }
        return all;
    }
    return {quantise_given(store.type, row, store.given.empty() ? 1 : store.given[0])};
}

// Returns the verdict on a row whose channels may have the relative error `error`.
CodesVerdict judged(const QuantisedStore& store, const Row& exact, double error,
                    const Stored& got) {
    std::vector<Approximate> row;
    for (const float x : exact) {
        const bool finite = std::isfinite(x);
        // As in a rotation, an infinity has an infinite error, which gives no bound.
        row.push_back({x, finite          ? static_cast<long double>(error) * std::fabs(x)
                          : std::isinf(x) ? INFINITY
                                          : 0});
    }
    CodesVerdict verdict;
    compare_row(store, store.given.empty() ? 1 : store.given[0], row, got.bytes, got.scales, "",
                verdict);
    return verdict;
}

// Returns all ways to store: with and without scales, given and computed.
std::vector<QuantisedStore> every_way() {
    std::vector<QuantisedStore> ways;
    for (const Store type : every_store) {
        ways.push_back({.type = type});
        if (!has_blocks(type)) {
            ways.push_back({.type = type, .given = {-3.7f}});
            ways.push_back({.type = type, .made = true});
            ways.push_back({.type = type, .made = true, .floor = 0.01f});
            ways.push_back({.type = type, .made = true, .group = 32});
        }
    }
    return ways;
}

// Returns rows of 64 channels, from usual to extreme ones.
std::vector<Row> rows() {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<Row> made;
    for (const float size : {1.f, 1e-3f, 40.f, 1e4f}) {
        Row row(64);
        for (float& x : row) x = size * normal(random);
        made.push_back(row);
    }
    Row ties(64), zeros(64, 0.f), special = made[0];
    for (int i = 0; i < 64; ++i) {
        ties[std::size_t(i)] = float(i % 32 - 16) * 0.5f;
        zeros[std::size_t(i)] = i % 3 == 0 ? -0.f : 0.f;
    }
    special[3] = not_a_number;
    special[40] = -infinity;
    made.insert(made.end(),
                {ties, zeros, special, Row(64, not_a_number), Row(64, 1e-42f), Row(64, -2.f)});
    return made;
}

}  // namespace

TEST_CASE(
    "verdict on codes: of exact rows one code and one scale are right, and every bit counts") {
    for (const QuantisedStore& store : every_way()) {
        CAPTURE(int(store.type));
        CAPTURE(store.made);
        for (const Row& row : rows()) {
            const Stored right = stored(store, row);
            const CodesVerdict verdict = judged(store, row, 0, right);
            INFO(verdict.first_wrong);
            CHECK(verdict.right());
            CHECK(verdict.codes == row.size());
            CHECK(verdict.decided == row.size());
            std::size_t missed = 0;
            // Types without blocks treat all elements alike, so a share of their bits is enough.
            const std::size_t step = has_blocks(store.type) ? 1 : 7;
            for (std::size_t bit = 0; bit < 8 * right.bytes.size(); bit += step) {
                Stored wrong = right;
                wrong.bytes[bit / 8] ^= std::uint8_t(1u << bit % 8);
                missed += judged(store, row, 0, wrong).right() ? 1 : 0;
            }
            CHECK(missed == 0);
            for (std::size_t i = 0; i < right.scales.size(); ++i) {
                Stored wrong = right;
                wrong.scales[i] = std::nextafter(right.scales[i], infinity);
                CHECK(judged(store, row, 0, wrong).wrong_scales ==
                      (std::isinf(right.scales[i]) ? 0u : 1u));
                wrong.scales[i] = not_a_number;
                CHECK(judged(store, row, 0, wrong).wrong_scales == 1);
            }
        }
    }
}

TEST_CASE("verdict on codes: the codes of any row within the error are right") {
    std::mt19937 random(6);
    std::uniform_real_distribution<double> share(-1, 1);
    for (const double error : {1e-7, 1e-5, 1e-2}) {
        for (const QuantisedStore& store : every_way()) {
            CAPTURE(error);
            CAPTURE(int(store.type));
            for (const Row& row : rows()) {
                for (int trial = 0; trial < 10; ++trial) {
                    Row near = row;
                    for (float& x : near) {
                        // Half of the channels are at an end of the range.
                        const double off = trial % 2 == 0 ? share(random)
                                                          : std::copysign(1, share(random));
                        x = float(x * (1 + 0.999 * error * off));
                    }
                    if (error < 1e-6)  // no float may be that close
                        near = row;
                    const CodesVerdict verdict = judged(store, row, error, stored(store, near));
                    INFO(verdict.first_wrong);
                    CHECK(verdict.right());
                }
            }
        }
    }
}

TEST_CASE("verdict on codes: a code that is off by one is wrong unless the error reaches it") {
    // 127 makes d and the scale 1. Then channel c is as far from its neighbours as possible.
    Row row(32);
    for (int c = 0; c < 32; ++c) row[std::size_t(c)] = float(4 * c - 60);
    row[31] = 127;
    row[7] = 20.4999f;
    for (const QuantisedStore& store :
         {QuantisedStore{.type = Store::q8_0}, QuantisedStore{.type = Store::int8, .made = true},
          QuantisedStore{.type = Store::int8}}) {
        const Stored right = stored(store, row);
        CHECK(judged(store, row, 1e-3, right).decided == 31);
        CHECK(judged(store, row, 1e-6, right).decided == 32);
        const std::size_t header = store.type == Store::q8_0 ? 2 : 0;
        for (std::size_t c = 0; c < 32; ++c) {
            for (const int off : {-1, 1}) {
                Stored wrong = right;
                wrong.bytes[header + c] = std::uint8_t(right.bytes[header + c] + off);
                const bool reached = c == 7 && off == 1;
                CHECK(judged(store, row, 1e-3, wrong).wrong_codes == (reached ? 0 : 1));
                CHECK(judged(store, row, 1e-6, wrong).wrong_codes == 1);
            }
        }
    }
}

TEST_CASE(
    "verdict on codes: of equal magnitudes the first gives the sign, unless either may be the "
    "largest") {
    for (const Store type : {Store::q4_0, Store::q5_0}) {
        Row row(32, 1.f), last(32, 1.f);
        row[4] = last[20] = 3;
        row[20] = last[4] = -3;
        for (float& x : last)  // d of the last one is d of the first with the other sign
            x = -x;
        const Stored first = stored({.type = type}, row);
        Stored other = first;
        other.bytes[1] ^= 0x80;
        CHECK(judged({.type = type}, row, 0, first).right());
        CHECK(judged({.type = type}, row, 0, other).wrong_scales == 1);
        Row near = row;
        near[20] = -3.00001f;  // now this one is the largest
        const Stored of_near = stored({.type = type}, near);
        CHECK((of_near.bytes[1] ^ first.bytes[1]) == 0x80);
        CHECK(judged({.type = type}, row, 0, of_near).wrong_scales == 1);
        CHECK(judged({.type = type}, row, 1e-5, of_near).right());
        CHECK(judged({.type = type}, row, 1e-5, first).right());
    }
}

TEST_CASE(
    "verdict on codes: there is one code at d = 2^-128, whose reciprocal overflows, and just "
    "above") {
    const float end = 0x1p-128f, next = std::nextafter(end, 1.f);
    for (const auto& [type, divisor] : {std::pair{Store::q8_0, 127.f},
                                        {Store::q4_0, -8.f},
                                        {Store::q4_1, 15.f},
                                        {Store::q5_0, -16.f},
                                        {Store::q5_1, 31.f}}) {
        CAPTURE(int(type));
        for (const float d : {end, next}) {
            Row row(32);
            row[3] = divisor * d;
            const Stored right = stored({.type = type}, row);
            CodesVerdict verdict = judged({.type = type}, row, 0, right);
            INFO(verdict.first_wrong);
            CHECK(verdict.right());
            CHECK(verdict.decided == 32);
            const auto code = [&](const Stored& of) { return fields_of(type, of.bytes).codes[3]; };
            CHECK((code(right) == code(stored({.type = type}, Row(32)))) == (d == end));
            // Where d may be on either side of the limit, any code is right.
            verdict = judged({.type = type}, row, 1e-6, right);
            CHECK(verdict.right());
            CHECK(verdict.decided < 32);
        }
    }
}

TEST_CASE("verdict on codes: an iq4_nl block has the scale of least squares of its codes") {
    Row row(32);
    for (int c = 0; c < 32; ++c) row[std::size_t(c)] = float(c % 16) - 7.75f;
    row[20] = 12.7f;  // gives d0 = -0.1
    const auto first = [](const Row& of) { return quantise_blocks(Store::iq4_nl, of); };
    const BlockFields fields = fields_of(Store::iq4_nl, first(row));
    CHECK(fields.codes[20] == 0);  // 12.7 / -0.1 = -127
    CHECK(fields.codes[0] == 13);  // 77.5 is nearer to 69 than to 89
    double of_x = 0, of_v = 0;
    for (std::size_t c = 0; c < 32; ++c) {
        const double x = row[c], v = iq4_values[std::size_t(fields.codes[c])];
        of_x += x * x * v * x;
        of_v += x * x * v * v;
    }
    CHECK(std::fabs(widen(Type::f16, fields.d) - of_x / of_v) < 0.1 * 0x1p-11);
    CHECK(first(Row(32, 0.9e-15f)) == Bytes(18, 0));
    CHECK(first(Row(32, not_a_number)) == Bytes(18, 0));
    row[5] = -infinity;
    Bytes infinite(18, 0x88);
    infinite[0] = 0;
    infinite[1] = 0x7c;
    CHECK(first(row) == infinite);
    // Sums that overflow leave a NaN, and the codes say which of two channels was the largest.
    for (const float sign : {1.f, -1.f}) {
        Row ties(32, 0.8e20f);
        ties[1] = sign * 1e20f;
        ties[2] = std::nextafter(-ties[1], 0.f);
        Row other = ties;
        other[1] = -ties[2], other[2] = -ties[1];
        CHECK(std::isnan(widen(Type::f16, fields_of(Store::iq4_nl, first(ties)).d)));
        CHECK(fields_of(Store::iq4_nl, first(ties)).codes !=
              fields_of(Store::iq4_nl, first(other)).codes);
        for (const Row* made : {&ties, &other})
            CHECK(judged({Store::iq4_nl}, ties, 1e-6, stored({Store::iq4_nl}, *made)).right());
        Stored wrong = stored({Store::iq4_nl}, ties);
        wrong.bytes[2] ^= 1;
        CHECK(!judged({Store::iq4_nl}, ties, 1e-6, wrong).right());
    }
    const BlockFields overflow = fields_of(Store::iq4_nl, first(Row(32, 1e20f)));
    CHECK(overflow.d == 0x7e00);
    CHECK(overflow.codes[7] == 0);
}

TEST_CASE("verdict on codes: what bytes stand for") {
    const auto block = [](Store store, Bytes head, std::uint8_t codes) {
        head.resize(block_bytes(store), codes);
        return dequantise(store, head);
    };
    // d = 0.5, m = -2
    CHECK(block(Store::q8_0, {0, 0x38}, 0x83)[5] == -62.5f);
    CHECK(block(Store::q4_0, {0, 0x38}, 0x9f)[3] == 3.5f);   // (15 - 8) d
    CHECK(block(Store::q4_0, {0, 0x38}, 0x9f)[19] == 0.5f);  // (9 - 8) d
    CHECK(block(Store::q4_1, {0, 0x38, 0, 0xc0}, 0x9f)[31] == 2.5f);
    CHECK(block(Store::q5_0, {0, 0x38, 2, 0, 0, 0}, 0x9f)[1] == 7.5f);  // (31 - 16) d
    CHECK(block(Store::q5_0, {0, 0x38, 2, 0, 0, 0}, 0x9f)[2] == -0.5f);
    CHECK(block(Store::q5_1, {0, 0x38, 0, 0xc0, 0, 0, 8, 0}, 0x9f)[19] == 10.5f);
    CHECK(block(Store::iq4_nl, {0, 0x38}, 0x0f)[0] == 56.5f);    // 113 d
    CHECK(block(Store::iq4_nl, {0, 0x38}, 0x0f)[16] == -63.5f);  // -127 d
    CHECK(std::isnan(block(Store::q4_0, {1, 0x7c}, 0)[0]));
    CHECK(std::isnan(block(Store::q8_0, {0, 0x7c}, 0)[0]));  // infinity times 0
    CHECK(dequantise(Store::int4, {{0x8f, 0x71}}, 0.5f) == Row{-0.5f, -4, 0.5f, 3.5f});
    CHECK(dequantise(Store::int8, {{0x80, 0x7f}}, 2) == Row{-256, 254});
    CHECK(dequantise(Store::e4m3fn, {{0x38, 0xfe}}, 2) == Row{2, -896});
    CHECK(dequantise(Store::e5m2, {{0x3c, 0xfc}}, 3) == Row{3, -infinity});
    CHECK(dequantise(Store::int8, {{1}}, 1e-45f) == Row{1e-45f});
}

TEST_CASE("verdict on codes: the nearest value of iq4_nl, a tie goes up") {
    CHECK(iq4_index(-1000) == 0);
    CHECK(iq4_index(-115.5f) == 1);
    CHECK(iq4_index(std::nextafter(-115.5f, -200.f)) == 0);
    CHECK(iq4_index(0) == 8);
    CHECK(iq4_index(-4.5f) == 8);
    CHECK(iq4_index(7) == 9);
    CHECK(iq4_index(1000) == 15);
}

TEST_CASE("verdict on codes: -0 is the minimum unless an earlier channel may be 0") {
    const QuantisedStore store = {.type = Store::q4_1};
    const auto right = [&](const Approximate& first, float stored_first) {
        std::vector<Approximate> exact(32, Approximate{1, 0});
        exact[0] = first;
        exact[1] = {-0.L, 0};
        Row row(32, 1);
        row[0] = stored_first;
        row[1] = -0.f;
        CodesVerdict verdict;
        compare_row(store, 1, exact, stored(store, row).bytes, {}, "", verdict);
        return verdict.wrong_scales == 0;
    };
    const Approximate may_be_0 = {0, 0x1p-148L}, one = {1, 0};
    CHECK(right(may_be_0, 0));          // m is +0
    CHECK(right(may_be_0, 0x1p-148f));  // m is -0
    CHECK(right(one, 1));
    CHECK(!right(one, 0));
}
