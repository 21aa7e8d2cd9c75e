// SPDX-License-Identifier: MIT
// Proves the error bound of computed angles, 4.5 u a (|x0| + |x1|). Their steps are fixed-point
// turns, polynomials that include the attention factor, and the rotation.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <vector>

#include "base/meaning.hpp"
#include "proof.hpp"
#include "search.hpp"

using namespace vkrope::bounds;

namespace {

constexpr double limit = vkrope::error_bound(VKROPE_ANGLES_COMPUTED, 1);
static_assert(limit == vkrope::error_bound(VKROPE_ANGLES_COMPUTED, 1.5));

// The coefficients of vkrope_turn, whose size the estimate needs. The estimate is compared with the
// errors of vkrope_turn.
constexpr std::array sine = {-0.16666655242443085, 0.008332177996635437, -0.0001951729936990887};
constexpr std::array cosine = {0.041666656732559204, -0.0013887732056900859, 2.4477192710037343e-5};

// The errors of cos and sin in units of u a.
struct Errors {
    double cos = 0, sin = 0;
};

// Returns the errors of the polynomials in exact arithmetic, in units of u: the largest of 2^16
// angles. Between these angles the errors change by less than 1e-4.
Errors approximation() {
    Errors most;
    for (int i = 0; i <= 1 << 16; ++i) {
        const long double x = i * (two_pi / 8 * 0x1p-16L), z = x * x;
        const long double s = x + x * z * (sine[0] + z * (sine[1] + z * sine[2]));
        const long double c = 1 - z / 2 + z * z * (cosine[0] + z * (cosine[1] + z * cosine[2]));
        most.sin = std::fmax(most.sin, double(std::fabs(s - std::sin(x)) / u));
        most.cos = std::fmax(most.cos, double(std::fabs(c - std::cos(x)) / u));
    }
    return {most.cos + 1e-4, most.sin + 1e-4};
}

// Returns the error, in units of u, of p0 + z (p1 + z p2) if z has the error z_error.
double polynomial_error(const std::array<double, 3>& p, double z, double z_error) {
    const double inner = half_ulp_near(z * std::fabs(p[2])) + std::fabs(p[2]) * z_error +
                         half_ulp_near(std::fabs(p[1]));
    return z * inner + std::fabs(p[1]) * z_error + half_ulp_near(z * std::fabs(p[1])) +
           half_ulp_near(std::fabs(p[0]));
}

// Returns upper bounds of the errors of cos and sin at an angle in [0, pi / 4]. Each step of
// vkrope_turn has the errors of its operands times their factors, and its own rounding. Names are
// as in the shader.
Errors component_errors(Interval angle, Interval factor) {
    static const Errors polynomials = approximation();
    // The rounding error of a result that contains the factor.
    const auto rounding = [&](double magnitude) {
        return half_ulp_near(factor.high * magnitude) / factor.low;
    };
    const double x = angle.high, z = x * x;
    // The part of 7 bits is exact. The other part is at most 2^-6 of x and has the errors of its
    // constant, its product and a sum. rest_low, below 6e-6 radians, has the same errors.
    const double small = 3 * 0x1p-6 * (x + 6e-6) + 3 * 6e-6;
    const double x_error = half_ulp_near(x) + small, ax_error = rounding(x) + small;
    const double z_error = 2 * x * x_error + half_ulp_near(z);
    const double az_error = x * ax_error + x * x_error + rounding(z);

    const double p = std::fabs(sine[0]),
                 q = cosine[0];  // largest values of the two polynomials, at 0
    const double ax_z_error = z * ax_error + x * z_error + rounding(x * z);
    const double cubic_error = p * ax_z_error + x * z * polynomial_error(sine, z, z_error) +
                               rounding(p * x * z);
    const double az_z_error = z * az_error + z * z_error + rounding(z * z);
    const double quartic_error = q * az_z_error + z * z * polynomial_error(cosine, z, z_error) +
                                 rounding(q * z * z);

    Errors errors;
    errors.sin = ax_error + cubic_error + polynomials.sin + rounding(max_sin(angle));
    // `rough` and `lost` add up to a - az / 2, ignoring u^2, because half_az and both differences
    // are exact.
    errors.cos = az_error / 2 + quartic_error + rounding(q * z * z + 2 * double(u)) +
                 polynomials.cos + rounding(max_cos(angle));
    // Products of errors.
    errors.sin += 1e-4;
    errors.cos += 1e-4;
    return errors;
}

// Returns the error of the angle in units of u. Each fraction was truncated to 2^-64 turn, times up
// to 2^31 positions. A phase was truncated to 2^-64 turn, and their sum to 2^-32 turn.
constexpr double angle_error(int axes) {
    return (axes * 0x1p-33 + 0x1p-64 + 0x1p-32) * double(two_pi) / double(u);
}

// Returns an upper bound of the factor of |x0| and |x1| in the error of the rotation: the errors
// of the components, and the roundings of product and sum, at most 2 u of the component.
double rotation_bound(Errors errors, double cos, double sin, int axes = 1) {
    const double unit = double(u), of_cos = errors.cos + angle_error(axes) * sin,
                 of_sin = errors.sin + angle_error(axes) * cos;
    return std::max(of_cos + 2 * (cos + unit * of_cos), of_sin + 2 * (sin + unit * of_sin));
}

// Computes cos and sin of all 2^32 turns in 80 bits, as sums of two angles.
class ExactTurns {
   public:
    ExactTurns() {
        for (std::uint64_t i = 0; i < coarse_.size(); ++i) {
            coarse_[i] = exact(i << 48);
            fine_[i] = exact(i << 32);
        }
    }
    Exact operator()(std::uint32_t turns) const {
        const Exact &a = coarse_[turns >> 16], &b = fine_[turns & 0xffffu];
        return {a.cos * b.cos - a.sin * b.sin, a.sin * b.cos + a.cos * b.sin};
    }

   private:
    std::vector<Exact> coarse_ = std::vector<Exact>(1u << 16), fine_ = std::vector<Exact>(1u << 16);
};

struct Sweep {
    double cos = 0, sin = 0,
           rotation = 0;  // largest errors of the components, and the resulting bound
};

// Checks `count` turns, a multiple of 4, from `first` on with stride `stride`. Compares every
// `compared`-th turn with the estimate, too.
Sweep sweep(double attention_factor, std::uint32_t first, std::uint32_t stride, std::uint64_t count,
            std::uint64_t compared) {
    static const ExactTurns exact_turns;
    const auto factor = turn_factor(attention_factor);
    const long double scale = 1 / (u * attention_factor);
    int exponent = 0;
    const double significant = 2 * std::frexp(attention_factor,
                                              &exponent);  // the estimate depends on this
    Sweep worst;
    std::uint32_t turns = first;
    bool as_estimated = true;
    for (std::uint64_t i = 0; i < count; i += 4) {
        const vkrope::glsl::uvec4 four(turns, turns + stride, turns + 2 * stride,
                                       turns + 3 * stride);
        turns += 4 * stride;
        vkrope::glsl::vec4 c, s;
        vkrope::shader::vkrope_turn(vkrope::glsl::uvec4(0), four, vkrope::glsl::uvec4(1), factor, c,
                                    s);
        const auto look = [&](std::uint32_t t, float cos, float sin) {
            const Exact e = exact_turns(t);
            const Errors errors = {double(std::fabs(cos - attention_factor * e.cos) * scale),
                                   double(std::fabs(sin - attention_factor * e.sin) * scale)};
            worst.cos = std::max(worst.cos, errors.cos);
            worst.sin = std::max(worst.sin, errors.sin);
            const double exact_cos = double(std::fabs(e.cos)), exact_sin = double(std::fabs(e.sin));
            worst.rotation = std::max(worst.rotation, rotation_bound(errors, exact_cos, exact_sin));
            if (i % compared == 0) {
                const bool swapped = exact_sin > exact_cos;
                const double x = std::asin(std::min(exact_cos, exact_sin));
                Errors most = component_errors({x, x}, {significant, significant});
                if (swapped) std::swap(most.cos, most.sin);
                as_estimated = as_estimated && errors.cos <= most.cos && errors.sin <= most.sin;
            }
        };
        look(four.x, c.x, s.x);
        look(four.y, c.y, s.y);
        look(four.z, c.z, s.z);
        look(four.w, c.w, s.w);
    }
    CHECK(as_estimated);
    return worst;
}

}  // namespace

TEST_CASE("computed angles: the bound is proved") {
    const auto proved = [](Interval factor, int axes) {
        return supremum<2>({Interval{0, 0x1.921fb54442d19p-1}, factor}, 0.005,
                           [&](const auto& box) {
                               return rotation_bound(component_errors(box[0], box[1]),
                                                     max_cos(box[0]), max_sin(box[0]), axes);
                           });
    };
    const double plain = proved({1, 1}, 1), factor = proved({1, 2}, 1),
                 sum = proved({1, 2}, vkrope::max_axes);
    std::printf("computed, proved: %.3f at a = 1, %.3f with a factor, %.3f as a sum of 8 axes\n",
                plain, factor, sum);
    CHECK(factor <= limit);
    CHECK(plain <= factor);
    CHECK(sum <= limit);
    CHECK(sum >= factor);
}

TEST_CASE("computed angles: cos and sin of every turn") {
    // Factors of models; factors for which a, a cos or a times the angle is just above a power of
    // two, where half an ulp doubles; factors with the largest low part; and the ends of the range
    // of the contract.
    std::vector<double> factors = {
        1,           1.01,          1.02,    1.1386,      1.19,    1.5,         1.99,    2,
        1 + 0x1p-24, 1 + 0x1.8p-24, 1.08241, 1.273239545, 1.41422, 2 - 0x1p-24, 0x1p-64, 0x1.8p63};
    const std::size_t chosen = factors.size();
    Random random(7);
    for (int i = 0; i < 16; ++i) factors.push_back(1 + uniform(random));
    Sweep worst;
    double worst_factor = 0;
    for (std::size_t i = 0; i < factors.size(); ++i) {
        const double factor = factors[i];
        // With --all, checks every turn within an eighth of 0. The other quarters have the same
        // bits, see below.
        Sweep found;
        if (all && i < chosen)
            found = sweep(factor, 0xe0000000u, 1, std::uint64_t{1} << 30, 4096);
        else
            found = sweep(factor, std::uint32_t(random()), 32749, all ? 1 << 24 : 1 << 18, 32);
        if (all) {
            std::printf("computed, a = %.9g: cos %.4f, sin %.4f, rotation within %.4f\n", factor,
                        found.cos, found.sin, found.rotation);
            std::fflush(stdout);
        }
        if (found.rotation > worst.rotation) worst_factor = factor;
        worst = {std::max(worst.cos, found.cos), std::max(worst.sin, found.sin),
                 std::max(worst.rotation, found.rotation)};
    }
    std::printf("computed, components: cos %.3f, sin %.3f; rotation within %.3f, at a = %.9g\n",
                worst.cos, worst.sin, worst.rotation, worst_factor);
    CHECK(worst.rotation < limit);
    CHECK(worst.rotation > 2.9);  // cos is rounded near 1
}

TEST_CASE("computed angles: quarter turns swap cos and sin, bit by bit") {
    using vkrope::glsl::uvec4, vkrope::glsl::vec4;
    const auto factor = turn_factor(1.1386);
    const std::uint64_t count = std::uint64_t{1} << 30, stride = all ? 1 : 4099;
    bool same = true;
    for (std::uint64_t i = 0; i < count; i += stride) {
        const std::uint32_t turns = std::uint32_t(i) - (1u << 29);
        vec4 c, s;
        vkrope::shader::vkrope_turn(
            uvec4(0), uvec4(turns, turns + (1u << 30), turns + (2u << 30), turns + (3u << 30)),
            uvec4(1), factor, c, s);
        const auto is = [](float x, float y) {
            return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
        };
        same = same && is(c.y, -s.x) && is(s.y, c.x) && is(c.z, -c.x) && is(s.z, -s.x) &&
               is(c.w, s.x) && is(s.w, -c.x);
    }
    CHECK(same);
}

TEST_CASE("computed angles: no rotation errs by more than the bound") {
    double of = 0;
    vkrope::shader::VkropeTurnFactor factor;
    const auto source = [&](std::uint64_t phase, std::uint64_t, double attention_factor) {
        if (of != attention_factor) factor = turn_factor(of = attention_factor);
        return computed(phase, factor);
    };
    const Searched found = searched("computed", 8, all ? 10000 : 2000, false, source);
    CHECK(std::max(found.plain, found.factor) <= limit);
    CHECK(found.plain > 2.3);
    CHECK(found.factor > 2.6);
}
