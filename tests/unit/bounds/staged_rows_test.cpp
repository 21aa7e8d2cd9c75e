// SPDX-License-Identifier: MIT
// Checks rows that one lane or several lanes transform and store, with the shader's own source. Not
// a byte differs from the oracle's. Between two barriers no lanes race, and no lanes wait for a
// bank of shared memory.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "base/meaning.hpp"
#include "flush.hpp"
#include "hard_rows.hpp"
#include "lanes.hpp"

using namespace vkrope::bounds;
using namespace vkrope::shader;

namespace {

// The rows of a workgroup whose lanes have two or more units of a row each, as on a GPU.
struct Rows {
    uint channels, unit, lanes;  // `lanes` is the number per row
    uint count = 0;              // number of rows in the workgroup

    uint words() const { return VKROPE_ROW_WORDS(channels, staged_gaps); }
    VkropeRow of(uint lane) const {
        return VkropeRow{lane / lanes * words(), channels, lane % lanes, lanes};
    }
    std::size_t workgroup() const { return std::size_t{count} * lanes; }
};

Rows rows_of(uint channels, uint unit) {
    Rows rows{channels, unit, std::min(64u, (channels / unit + 1) / 2)};
    rows.count = std::max(1u, 64 / rows.lanes);
    return rows;
}

// The worst bank conflict among the steps of each kind.
struct Worst {
    std::size_t conflict = 0;
    std::string step;
    bool raced = false;

    void note(const char* name) {
        raced = raced || vkrope::bounds::raced();
        const std::size_t now = worst_conflict();
        if (now > conflict) step = name;
        conflict = std::max(conflict, now);
    }
};

float channel_of(uint row, uint channel) {
    return std::sin(float(row * 977 + channel) * 0.7f) * float(1 + channel % 7);
}

// Stages every lane's units, which are half a row apart, after the levels inside each unit.
void stage(const Rows& rows, uint levels, Worst& worst) {
    shared.words.assign(std::size_t{rows.count} * rows.words(), 0);
    until_barrier(rows.workgroup(), [&](uint lane) {
        const VkropeRow row = rows.of(lane);
        const uint units = rows.channels / rows.unit, half = (units + 1) / 2;
        for (uint step = row.lane; step < half; step += row.lanes) {
            for (const uint unit : {step, std::min(step + half, units - 1)}) {
                const uint first = unit * rows.unit;
                float x[8] = {};
                for (uint i = 0; i < rows.unit; ++i)
                    x[i] = channel_of(lane / rows.lanes, first + i);
                Unit u({x[0], x[1], x[2], x[3]}, {x[4], x[5], x[6], x[7]});
                u = vkrope_hadamard_inside(rows.unit, levels, u);
                vkrope_stage_unit(rows.unit, row.at + vkrope_place(first), 1, u);
            }
        }
    });
    worst.note("units");
}

// Applies the Hadamard levels beyond a unit, in the same passes as a kernel.
void transform(const Rows& rows, uint levels, Worst& worst) {
    const uint inside = VKROPE_UNIT_LEVELS(rows.unit);
    if (levels <= inside) return;
    const uint most = VKROPE_PASS_LEVELS(rows.channels, rows.lanes);
    const uint passes = (levels - inside + most - 1) / most;
    const uint each = (levels - inside + passes - 1) / passes;
    CHECK(passes <= 3);
    for (uint level = inside; level < levels; level += each) {
        until_barrier(rows.workgroup(), [&](uint lane) {
            vkrope_hadamard_pass(levels, level, std::min(levels - level, each), rows.of(lane));
        });
        worst.note("levels");
    }
}

std::vector<float> by_levels(std::vector<float> row, uint levels) {
    for (uint level = 0; level < levels; ++level) {
        const uint apart = 1u << level;
        for (std::size_t a = 0; a < row.size(); ++a) {
            if ((a & apart) != 0) continue;
            const float x = row[a], y = row[a + apart];
            row[a] = x + y;
            row[a + apart] = x - y;
        }
    }
    for (float& x : row) x *= levels == 0 ? 1 : vkrope_hadamard_factor(levels);
    return row;
}

// ---- Codes ----

// A way to store rows.
struct How {
    uint type = 0;
    float scale = 0;  // a given scale, or the floor of a computed scale
    bool made = false, power_of_two = false;
    bool flushes = false;  // the processor flushes subnormals

    uint shown_words() const { return made ? 1 : has_blocks() ? VKROPE_SHOWN_WORDS(type) : 0; }
    bool has_blocks() const { return VKROPE_HAS_BLOCKS(type); }
    // Codes of a byte each need not be staged if a row has whole words.
    bool stores_codes(bool whole) const { return whole && !has_blocks() && type != element_int4; }
};

// The bytes that a workgroup stores of these rows, each row from byte `to` on. The steps between
// barriers are those of ops_shared.glsl.
struct Stored {
    std::vector<Bytes> rows;
    std::vector<uint> scales;
};

void put(Bytes& bytes, int at, uint word) {
    for (int byte = 0; byte < 4; ++byte)
        if (at + byte >= 0 && at + byte < int(bytes.size()))
            bytes[std::size_t(at + byte)] = std::uint8_t(word >> (8 * byte));
}

// Stages codes. If a row has whole words, single codes are stored at once.
[[gnu::noinline]] void make_codes(const Rows& rows, const How& how, bool whole, Worst& worst,
                                  Stored& stored) {
    const uint type = how.type;
    const uint shown = rows.count * rows.words();
    const auto shown_of = [&](uint lane) { return shown + lane / rows.lanes * rows.lanes; };
    const auto stage_words = [&](uint lane, const auto& word_of) {
        const VkropeRow row = rows.of(lane);
        for (uint quad = row.lane; quad < vkrope_quads(row); quad += row.lanes)
            if (how.stores_codes(whole))
                put(stored.rows[lane / rows.lanes], int(4 * quad), word_of(row, quad));
            else
                VKROPE_STAGED(row.at + vkrope_place(4 * quad)) = word_of(row, quad);
    };
    if (!how.has_blocks() && !how.made) {
        until_barrier(
            rows.workgroup(),
            [&](uint lane) {
                stage_words(
                    lane,
                    [&](const VkropeRow& row, uint quad) {
                        return vkrope_given_codes(type, row, quad, how.scale);
                    });
            });
    } else if (how.made) {
        until_barrier(rows.workgroup(), [&](uint lane) {
            VKROPE_STAGED(shown + lane) = vkrope_staged_most(type, rows.of(lane));
        });
        worst.note("most");
        stored.scales.assign(rows.count, 0);
        until_barrier(rows.workgroup(), [&](uint lane) {
            VkropeExtremes extremes = vkrope_no_extremes(type);
            for (uint other = 0; other < rows.lanes; ++other)
                extremes.most = std::max<uint>(extremes.most,
                                               VKROPE_STAGED(shown_of(lane) + other));
            float least = how.scale;
            if (how.power_of_two) least = vkrope_power_of_two_from(type, extremes, least);
            const VkropeMadeScale scale = vkrope_made_scale(type, extremes, least);
            stored.scales[lane / rows.lanes] = scale.bits;
            stage_words(lane, [&](const VkropeRow& row, uint quad) {
                return vkrope_made_codes(type, row, quad, scale);
            });
        });
    } else if (VKROPE_BLOCK_LANES(type, rows.channels, rows.lanes) == 1) {
        until_barrier(
            rows.workgroup(), [&](uint lane) { vkrope_stage_blocks(type, rows.of(lane)); });
    } else {
        std::vector<VkropeShare> shares(rows.workgroup());
        until_barrier(rows.workgroup(), [&](uint lane) {
            shares[lane] = vkrope_begin_blocks(type, rows.of(lane), shown_of(lane),
                                               uint(rows.workgroup()));
        });
        worst.note("extremes");
        until_barrier(rows.workgroup(), [&](uint lane) {
            vkrope_end_blocks(type, rows.of(lane), shown_of(lane), uint(rows.workgroup()),
                              shares[lane]);
        });
    }
    if (whole || how.has_blocks()) worst.note("codes");
}

Stored store(const Rows& rows, const How& how, const std::vector<Row>& numbers, uint to,
             Worst& worst) {
    const uint type = how.type;
    shared.words.assign(rows.count * rows.words() + how.shown_words() * rows.workgroup(),
                        0xdeadbeef);
    for (uint row = 0; row < rows.count; ++row) {
        for (uint c = 0; c < rows.channels; ++c)
            shared.words[row * rows.words() + vkrope_place(c)] = std::bit_cast<uint>(
                numbers[row][c]);
    }
    const uint bytes = vkrope_row_bytes(type, rows.channels);
    const bool whole = (to | bytes) % 4 == 0;
    Stored stored;
    stored.rows.assign(rows.count, Bytes(bytes));
    {
        const Flushing flushing(how.flushes);
        make_codes(rows, how, whole, worst, stored);
    }
    if (how.stores_codes(whole)) return stored;
    until_barrier(rows.workgroup(), [&](uint lane) {
        const VkropeRow row = rows.of(lane);
        for (uint at = to / 4 + row.lane; at <= (to + bytes - 1) / 4; at += row.lanes) {
            const int from = int(4 * at - to);
            const uint word = whole ? vkrope_staged_word(type, row, at - to / 4)
                                    : vkrope_staged_bytes(type, row, from);
            put(stored.rows[lane / rows.lanes], from, word);
        }
    });
    if (whole) worst.note("bytes");  // other rows are merged, which is rare
    return stored;
}

// Returns whether a row is stored as the oracle stores it.
bool right(Store of, const How& how, const Row& row, const Stored& stored, uint number) {
    const Bytes& bytes = stored.rows[number];
    if (how.made) {
        const auto made = vkrope::oracle::quantise_made(of, row, how.scale, how.power_of_two);
        return stored.scales[number] == std::bit_cast<uint>(made.scale) && bytes == made.codes;
    }
    return bytes == (how.has_blocks() ? vkrope::oracle::quantise_blocks(of, row)
                                      : vkrope::oracle::quantise_given(of, row, how.scale));
}

constexpr std::pair<uint, uint> shapes[] = {{32, 8},  {64, 8},   {96, 8},   {128, 8}, {256, 8},
                                            {576, 8}, {1024, 8}, {4096, 8}, {64, 4},  {128, 4},
                                            {256, 4}, {128, 2},  {64, 1},   {128, 1}};

}  // namespace

TEST_CASE("staged rows: a Hadamard transform by several lanes equals its levels in order") {
    std::size_t rows_checked = 0;
    for (const uint gaps : {0u, 1u}) {
        staged_gaps = gaps;
        for (const uint channels : {32u, 64u, 96u, 128u, 256u, 512u, 576u, 1024u}) {
            for (const uint unit : {1u, 2u, 4u, 8u}) {
                for (uint levels = 0; levels <= 9 && channels % (1u << levels) == 0; ++levels) {
                    const Rows rows = rows_of(channels, unit);
                    CAPTURE(gaps);
                    CAPTURE(channels);
                    CAPTURE(unit);
                    CAPTURE(levels);
                    Worst worst;
                    stage(rows, levels, worst);
                    transform(rows, levels, worst);
                    CHECK_FALSE(worst.raced);
                    CHECK_FALSE(shared.outside);
                    std::size_t wrong = 0;
                    for (uint row = 0; row < rows.count; ++row, ++rows_checked) {
                        std::vector<float> right;
                        for (uint c = 0; c < channels; ++c) right.push_back(channel_of(row, c));
                        right = by_levels(right, levels);
                        for (uint c = 0; c < channels; ++c) {
                            const uint at = row * rows.words() + vkrope_place(c);
                            wrong += shared.words[at] != std::bit_cast<uint>(right[c]) ? 1 : 0;
                        }
                    }
                    CHECK(wrong == 0);
                    // Units of one or two elements occur if strides rule out 16-byte access.
                    const bool common = channels == 64 || channels == 128 || channels == 256;
                    if (gaps == 1 && unit >= 4 && common) {
                        CAPTURE(worst.step);
                        CHECK(worst.conflict <= (channels == 256 ? 3 : 2));
                    }
                }
            }
        }
    }
    std::printf("staged rows: %zu rows transformed\n", rows_checked);
    CHECK(rows_checked > 1000);
}

TEST_CASE("staged rows: several lanes store the oracle's bytes, at any offset") {
    std::size_t blocks = 0;
    for (const bool flushes : {false, true}) {
        for (const Store of : stores) {
            const bool alone = !vkrope::oracle::has_blocks(of);
            for (const auto& [channels, unit] : shapes) {
                for (const uint kind :
                     {0u, 1u, 2u}) {  // rows of a processor; without gaps; with gaps
                    Rows rows = rows_of(channels, unit);
                    if (kind == 0) rows = {channels, unit, 1, 8};
                    staged_gaps = kind == 2 ? 1 : 0;
                    How how{.type = type_of(of), .flushes = flushes};
                    Random random(channels + unit + how.type);
                    Worst worst;
                    std::size_t wrong = 0;
                    int first_wrong = -1;
                    const std::size_t count = all ? 20000000 : 30000;
                    for (std::size_t i = 0; i < count / channels / rows.count + kinds; ++i) {
                        std::vector<Row> numbers;
                        for (uint row = 0; row < rows.count; ++row)
                            numbers.push_back(hard_row(random, int(i % kinds), channels));
                        const uint to = uint(i / kinds % 4) * (alone ? 1 : 2);
                        constexpr float floors[] = {0, 1e-8f, 1e-4f, 0x1p-140f};
                        how.made = alone && i % 2 == 0;
                        how.scale = how.made ? floors[random() % std::size(floors)] : 1;
                        how.power_of_two = how.made && random() % 2 != 0;
                        const Stored got = store(rows, how, numbers, to, worst);
                        for (uint row = 0; row < rows.count; ++row) {
                            blocks += (channels + 31) / 32;
                            if (right(of, how, numbers[row], got, row)) continue;
                            if (wrong++ == 0) first_wrong = int(i % kinds);
                        }
                    }
                    CAPTURE(int(of));
                    CAPTURE(flushes);
                    CAPTURE(channels);
                    CAPTURE(unit);
                    CAPTURE(kind);
                    CAPTURE(first_wrong);
                    CAPTURE(worst.step);
                    CHECK(wrong == 0);
                    CHECK_FALSE(worst.raced);
                    CHECK_FALSE(shared.outside);
                    const bool common = channels == 64 || channels == 128 || channels == 256;
                    if (kind == 2 && unit >= 4 && common && of != Store::q5_0 &&
                        of != Store::q5_1 && of != Store::iq4_nl && of != Store::int4)
                        CHECK(worst.conflict <= (channels == 256 ? 3 : 2));
                }
            }
        }
    }
    std::printf("staged rows: %zu blocks stored\n", blocks);
    CHECK(blocks > 1000000);
}

TEST_CASE("staged rows: blocks with d close to 2^-128, where 1/d starts to overflow") {
    staged_gaps = 0;
    const Rows one{32, 4, 1, 1};
    for (const bool flushes : {false, true}) {
        for (const auto& [of, divisor] : {std::pair{Store::q8_0, 127.f},
                                          {Store::q4_0, 8.f},
                                          {Store::q5_0, 16.f},
                                          {Store::q4_1, 15.f},
                                          {Store::q5_1, 31.f}}) {
            const How how{.type = type_of(of), .flushes = flushes};
            const Bytes of_zeros = vkrope::oracle::quantise_blocks(of, Row(32));
            Worst worst;
            std::size_t wrong = 0, zeros = 0;
            for (int off = -200; off <= 200; ++off) {
                const auto most = std::bit_cast<float>(
                    uint(int(std::bit_cast<uint>(divisor * 0x1p-128f)) + off));
                Row row(32);
                for (std::size_t j = 0; j < 32; ++j) row[j] = most * float(j) / 31;
                const Stored got = store(one, how, {row}, 0, worst);
                wrong += right(of, how, row, got, 0) ? 0 : 1;
                zeros += got.rows[0].back() == of_zeros.back() ? 1 : 0;
            }
            CAPTURE(int(of));
            CAPTURE(flushes);
            CHECK(wrong == 0);
            CHECK(zeros > 100);  // about half of the rows become 0
            CHECK(zeros < 300);
        }
    }
}

TEST_CASE("quantise: the extremes of a unit are those of its elements, joined in order") {
    Random random(34);
    for (const Store of : stores) {
        for (int i = 0; i < 16 * kinds; ++i) {
            const Row row = hard_row(random, i % kinds, 8);
            const Unit unit({row[0], row[1], row[2], row[3]}, {row[4], row[5], row[6], row[7]});
            VkropeExtremes joined = vkrope_no_extremes(type_of(of));
            for (uint n = 1; n <= 8; ++n) {
                joined = vkrope_join_extremes(type_of(of), joined,
                                              vkrope_extremes_of(type_of(of), row[n - 1]));
                if (!std::has_single_bit(n)) continue;
                const VkropeExtremes got = vkrope_extremes(type_of(of), n, unit);
                CHECK(got.most == joined.most);
                if (vkrope_has_minimum(type_of(of))) CHECK(got.least == joined.least);
            }
        }
    }
}
