// SPDX-License-Identifier: MIT
// Checks angles with a phase, and sums over axes, with the shader's functions on the words and
// texels that fill_angles writes. The bounds of the sources apply, since a phase is added to the
// angle in units of 2^-64 turn, before anything is rounded to f32.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cstdio>
#include <cstring>

#include "base/meaning.hpp"
#include "search.hpp"
#include "sources.hpp"

using namespace vkrope::bounds;
using vkrope::AngleSource;
using vkrope::AngleTableLayout;
using vkrope::CosSin;
using vkrope::RopeParams;
using vkrope::shader_source::Turning;
namespace shader = vkrope::shader;
namespace glsl = vkrope::glsl;

namespace {

constexpr std::size_t pairs = 16;
constexpr std::int64_t lowest = INT32_MIN, highest = INT32_MAX;

// Returns positions about 0, the ends of digits, and the ends of a table for `rows` positions.
std::vector<std::int64_t> positions_to(std::uint64_t rows, Random& random) {
    const auto end = std::int64_t(rows);
    std::vector<std::int64_t> result;
    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{2048}, std::int64_t{4096}, end - 1})
        for (const std::int64_t further : {-1, 0, 1}) result.push_back(at + further);
    for (int i = 0; i < (all ? 2000 : 100); ++i)
        result.push_back(std::int64_t(random() % rows) >> random() % 20);
    for (std::size_t i = result.size(); i-- > 0;) result.push_back(-result[i]);
    std::erase_if(result, [&](std::int64_t p) { return p >= end || p <= -end; });
    return result;
}

// Returns frequencies of models, and phases up to the largest that a rotation may have.
RopeParams rotation_with_phases(double attention_factor, Random& random, std::uint32_t axes = 1) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = 2 * pairs;
    rotation.rotary_dim = 2 * pairs;
    rotation.attention_factor = attention_factor;
    for (std::size_t i = 0; i < axes * pairs; ++i) {
        const double sign = random() % 4 == 0 ? -1 : 1;
        rotation.inv_freq.push_back(sign * std::pow(1e4, -uniform(random)));
    }
    for (std::size_t j = 0; j < pairs; ++j)
        rotation.phase.push_back((uniform(random) - 0.5) * (j % 4 == 0 ? 4095 : 7));
    if (axes > 1) rotation.sections = {.order = VKROPE_SECTIONS_SUM, .axes = axes};
    return rotation;
}

// The table or the words of a rotation, where the functions of the shader read them.
class Filled {
   public:
    Filled(const RopeParams& rotation, AngleSource source, std::uint64_t rows) {
        const vkrope::Result<AngleTableLayout> planned = plan_angles(rotation, source, rows, 16384);
        REQUIRE(bool(planned));
        plan_ = planned.value;
        words_.resize(plan_.bytes / sizeof(glsl::uvec4) + 1);
        REQUIRE(bool(fill_angles(rotation, plan_, words_.data(), plan_.bytes)));
        for (const glsl::uvec4 word : words_) texels_.push_back(glsl::uintBitsToFloat(word));
        glsl::turn_words = words_.data();
        glsl::angle_texture = {.texels = texels_.data(),
                               .width = std::int32_t(plan_.extent.width),
                               .height = std::int32_t(plan_.extent.height)};
    }

    const AngleTableLayout& layout() const { return plan_; }

    // Returns cos and sin in row `row` of a direct_buffer.
    CosSin in_row(std::uint64_t row, std::size_t pair) const {
        float of[2];
        const auto* bytes = reinterpret_cast<const std::byte*>(words_.data());
        std::memcpy(of, bytes + (row * plan_.pairs + pair) * sizeof of, sizeof of);
        return {of[0], of[1]};
    }

   private:
    AngleTableLayout plan_;
    std::vector<glsl::uvec4> words_;
    std::vector<glsl::vec4> texels_;
};

std::array<CosSin, 8> of_unit(const shader::Unit& c, const shader::Unit& s) {
    return {{{c.a.x, s.a.x},
             {c.a.y, s.a.y},
             {c.a.z, s.a.z},
             {c.a.w, s.a.w},
             {c.b.x, s.b.x},
             {c.b.y, s.b.y},
             {c.b.z, s.b.z},
             {c.b.w, s.b.w}}};
}

bool same_bits(CosSin a, CosSin b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

// Returns the sum over axes of position times frequency, plus the phase, in real arithmetic.
Exact exact_of(const RopeParams& rotation, std::span<const std::int64_t> positions,
               std::size_t pair) {
    Exact sum = exact(1, rotation.phase[pair]);
    for (std::size_t axis = 0; axis < positions.size(); ++axis) {
        const Exact next = exact(positions[axis], rotation.inv_freq[axis * pairs + pair]);
        sum = {sum.cos * next.cos - sum.sin * next.sin, sum.sin * next.cos + sum.cos * next.sin};
    }
    return sum;
}

// Returns the error of the rotation of a random pair; see error_of.
double error_at(CosSin angle, const Exact& of, double attention_factor, Random& random) {
    const float x0 = float(uniform(random) - 0.5) * 8,
                x1 = std::ldexp(float(uniform(random) - 0.5), int(random() % 8));
    return error_of(rotate(x0, x1, angle), x0, x1, of, attention_factor);
}

// Returns the row of a direct table for a position; see AngleTableLayout.
std::uint64_t direct_row(std::int64_t position, std::uint64_t rows) {
    return position >= 0 ? std::uint64_t(position) : rows - 1 + std::uint64_t(-position);
}

}  // namespace

TEST_CASE("vkrope_add_turns: a product and a sum of 64 bits, of positions of every sign") {
    std::vector<std::uint32_t> positions = {0,          1,          2,          0x7fffffff,
                                            0x80000000, 0x80000001, 0xffffffff, 0xfffffffe};
    std::vector<std::uint64_t> numbers = {0,
                                          1,
                                          0xffffffff,
                                          0x100000000,
                                          0x1ffffffff,
                                          0x7fffffffffffffff,
                                          0x8000000000000000,
                                          0xffffffff00000000,
                                          0xfffffffffffffffe,
                                          0xffffffffffffffff};
    Random random(21);
    for (int i = 0; i < 24; ++i) positions.push_back(std::uint32_t(random() >> random() % 32));
    for (int i = 0; i < 40; ++i) numbers.push_back(random() >> random() % 64);
    std::size_t wrong = 0, compared = 0;
    for (const std::uint32_t position : positions) {
        for (const std::uint64_t fraction : numbers) {
            for (const std::uint64_t angle : numbers) {
                // The function adds four pairs at once. Each pair must keep its own carry.
                const std::array<std::uint64_t, 4> fractions = {fraction, angle, ~fraction,
                                                                fraction << 32 | angle >> 32};
                const std::array<std::uint64_t, 4> angles = {angle, fraction, angle + 1, ~angle};
                const auto words = [](const std::array<std::uint64_t, 4>& of, int shift) {
                    return glsl::uvec4(std::uint32_t(of[0] >> shift), std::uint32_t(of[1] >> shift),
                                       std::uint32_t(of[2] >> shift),
                                       std::uint32_t(of[3] >> shift));
                };
                glsl::uvec4 low = words(angles, 0), high = words(angles, 32);
                shader::vkrope_add_turns(words(fractions, 0), words(fractions, 32), position, low,
                                         high);
                const std::array<std::uint64_t, 4> got = {
                    low.x | std::uint64_t{high.x} << 32, low.y | std::uint64_t{high.y} << 32,
                    low.z | std::uint64_t{high.z} << 32, low.w | std::uint64_t{high.w} << 32};
                for (std::size_t i = 0; i < 4; ++i) {
                    const auto sum = __int128(fractions[i]) * std::int32_t(position) +
                                     __int128(angles[i]);
                    wrong += got[i] != std::uint64_t(sum);
                    ++compared;
                }
            }
        }
    }
    CHECK(wrong == 0);
    CHECK(compared == 4 * 32 * 50 * 50);
}

TEST_CASE("the factored table with phases: within the bound, by the rows of the shader") {
    double largest = 0;
    std::size_t other_bits = 0, direct_bits = 0, compared = 0;
    for (const double factor : attention_factors) {
        for (const std::uint64_t rows : {1ull, 2ull, 2047ull, 2048ull, 2049ull, 2050ull, 3000ull,
                                         4096ull, 4097ull, 131072ull, 1ull << 22}) {
            Random random(23);
            const RopeParams rotation = rotation_with_phases(factor, random);
            const Filled table(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, rows);
            const Angles angles(rotation.inv_freq, factor, Turning{.phase = rotation.phase});
            const double bound = vkrope::error_bound(VKROPE_ANGLES_FACTORED_TEXTURE, factor);
            std::uint64_t last = 0;
            for (const std::int64_t position : positions_to(rows, random)) {
                const auto coarse = std::uint64_t(std::abs(position >> shader::fine_digit_bits));
                last = std::max(last, coarse);
                for (const std::size_t first : {std::size_t{0}, std::size_t{8}}) {
                    shader::Unit c, s, c1, s1;
                    const auto read = [&](std::size_t pair, std::uint32_t n, shader::Unit& to_c,
                                          shader::Unit& to_s) {
                        shader::vkrope_phased_angles(
                            std::uint32_t(position), std::uint32_t(rows), std::uint32_t(pair), n,
                            table.layout().fold_log2, table.layout().row_texels, to_c, to_s);
                    };
                    read(first, 8, c, s);
                    const auto of = of_unit(c, s);
                    for (std::size_t j = 0; j < 8; ++j) {
                        const std::size_t pair = first + j;
                        const double error = error_at(
                            of[j], exact_of(rotation, {&position, 1}, pair), factor, random);
                        largest = std::max(largest, error / bound);
                        read(pair, 1, c1, s1);
                        other_bits += !same_bits(of[j], {c1.a.x, s1.a.x});
                        other_bits += !same_bits(
                            of[j], angles.at(VKROPE_ANGLES_FACTORED_TEXTURE, position, pair));
                        if (position < 0 || position >= 2048) continue;
                        const CosSin direct = angles.at(VKROPE_ANGLES_DIRECT_BUFFER, position,
                                                        pair);
                        direct_bits += same_bits(of[j], direct);
                        ++compared;
                    }
                }
            }
            CHECK(glsl::angle_texture.outside == 0);
            CHECK(last == shader::coarse_rows(rows, true) - 1);  // no coarse row is unused
        }
    }
    std::printf("factored, with phases: share of the bound %.2f\n", largest);
    CHECK(largest <= 1);
    CHECK(largest > 0.3);
    CHECK(other_bits == 0);
    CHECK(compared > 1000);
    CHECK(direct_bits == compared);  // at 0 to 2047 the coarse row is (1, 0)
}

TEST_CASE("the factored table with phases: a negated coarse row errs by no more than the bound") {
    const auto source = [](std::uint64_t coarse, std::uint64_t fine, double attention_factor) {
        const CosSin row = vkrope::table_entry(0 - coarse, 1),
                     other = vkrope::table_entry(fine, attention_factor);
        glsl::vec4 c, s;
        const shader::Unit negated = shader::vkrope_flip({glsl::vec4(row.sin), glsl::vec4(0)},
                                                         0x80000000u);
        shader::vkrope_add_angles(glsl::vec4(row.cos), negated.a, glsl::vec4(other.cos),
                                  glsl::vec4(other.sin), c, s);
        return CosSin{c.x, s.x};
    };
    const int starts = all ? 10000 : 500, steps = all ? 20000 : 3000;
    const Trial worst = worst_trial(24, starts, steps, 0, true, source);
    std::printf("factored, negated coarse rows, found: %.3f at a = %.6f\n", worst.error,
                worst.attention_factor);
    CHECK(worst.error <= vkrope::error_bound(VKROPE_ANGLES_FACTORED_TEXTURE, 1.5));
    CHECK(worst.error > 4);
}

TEST_CASE("direct tables with phases: within the bound, with rows for positions below 0") {
    double largest = 0;
    for (const double factor : attention_factors) {
        for (const std::uint64_t rows : {1ull, 2ull, 3000ull, 4097ull}) {
            Random random(25);
            const RopeParams rotation = rotation_with_phases(factor, random);
            const Filled table(rotation, VKROPE_ANGLES_DIRECT_BUFFER, rows);
            const Angles angles(rotation.inv_freq, factor, Turning{.phase = rotation.phase});
            REQUIRE(table.layout().bytes == (2 * rows - 1) * pairs * 8);
            const double bound = vkrope::error_bound(VKROPE_ANGLES_DIRECT_BUFFER, factor);
            std::size_t other_bits = 0;
            for (const std::int64_t position : positions_to(rows, random)) {
                for (std::size_t pair = 0; pair < pairs; ++pair) {
                    const CosSin of = table.in_row(direct_row(position, rows), pair);
                    const Exact exactly = exact_of(rotation, {&position, 1}, pair);
                    largest = std::max(largest, error_at(of, exactly, factor, random) / bound);
                    other_bits += !same_bits(
                        of, angles.at(VKROPE_ANGLES_DIRECT_BUFFER, position, pair));
                }
            }
            CHECK(other_bits == 0);
        }
    }
    std::printf("direct, with phases: share of the bound %.2f\n", largest);
    CHECK(largest <= 1);
    CHECK(largest > 0.4);
}

TEST_CASE("computed angles with phases, of one axis and of sums over axes: within the bound") {
    double largest = 0;
    std::size_t other_bits = 0;
    for (const std::uint32_t axes : {1u, 2u, 3u, 8u}) {
        for (const double factor : attention_factors) {
            Random random(26 + axes);
            const RopeParams rotation = rotation_with_phases(factor, random, axes);
            const Filled words(rotation, VKROPE_ANGLES_COMPUTED, 1);
            const Angles angles(rotation.inv_freq, factor,
                                Turning{.phase = rotation.phase, .axes = axes});
            const double bound = vkrope::error_bound(VKROPE_ANGLES_COMPUTED, factor);
            for (int i = 0; i < (all ? 20000 : 1000); ++i) {
                std::array<std::int64_t, 8> positions = {};
                for (std::int64_t& p : positions) {
                    p = i == 0   ? lowest
                        : i == 1 ? highest
                        : i == 2 ? -1
                        : i == 3 ? 0
                                 : std::int64_t(std::int32_t(random())) >> random() % 31;
                }
                for (const std::size_t first : {std::size_t{0}, std::size_t{8}}) {
                    const auto turned = [&](std::size_t pair, std::uint32_t n) {
                        shader::VkropeTurns turns;
                        std::uint32_t at = shader::turn_header_vec4s;
                        for (std::uint32_t axis = 0; axis < axes; ++axis, at += pairs / 2)
                            shader::vkrope_add_axis(at, std::uint32_t(positions[axis]),
                                                    std::uint32_t(pair), n, turns);
                        shader::vkrope_add_axis(at, 1, std::uint32_t(pair), n, turns);
                        shader::Unit c, s;
                        shader::vkrope_turned_angles(turns, n, c, s);
                        return of_unit(c, s);
                    };
                    const auto of = turned(first, 8);
                    for (std::size_t j = 0; j < 8; ++j) {
                        const std::size_t pair = first + j;
                        const std::span<const std::int64_t> each(positions.data(), axes);
                        const double error = error_at(of[j], exact_of(rotation, each, pair), factor,
                                                      random);
                        largest = std::max(largest, error / bound);
                        other_bits += !same_bits(of[j], turned(pair, 1)[0]);
                        other_bits += !same_bits(of[j], angles.sum_at(each, pair));
                    }
                }
            }
        }
    }
    std::printf("computed, with phases and sums: share of the bound %.2f\n", largest);
    CHECK(largest <= 1);
    CHECK(largest > 0.4);
    CHECK(other_bits == 0);
}
