// SPDX-License-Identifier: MIT
// Proves the error bound of the factored table, 6 u a (|x0| + |x1|). Coarse and fine rows are
// rounded once, with the factor in the fine rows, then added as angles; the rotation follows.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/meaning.hpp"
#include "proof.hpp"
#include "search.hpp"

using namespace vkrope::bounds;

namespace {

// Returns an upper bound of the factor of |x0| in the error, in units of u a.
//
// Angles in [0, pi / 2] are enough, because signs change no rounding. |cos| of the summed angle is
// |cos cos - sin sin| or cos cos + sin sin. The products are the same and the second is larger, so
// the second is enough. sin of the summed angle is this cos with the coarse angle's complement.
//
// Coarse and fine entries have their rounding errors, times the entry that they are multiplied by.
// Then come two products, their sum, and the two roundings of the rotation. 1e-4 covers products
// of errors, errors of double, and the phases, truncated to 2^-42 turn. If the exact sum is a
// power of two, earlier errors may raise it above, where half an ulp is twice as large.
double estimate(Interval coarse, Interval fine, Interval factor) {
    const double cos0 = max_cos(coarse), sin0 = max_sin(coarse), cos1 = max_cos(fine),
                 sin1 = max_sin(fine);
    const double apart = std::fmax(0, std::fmax(coarse.low - fine.high, fine.low - coarse.high));
    const double sum = max_cos({apart, apart}), a = factor.high;
    const double coarse_rows = half_ulp(cos0) * cos1 + half_ulp(sin0) * sin1;
    const double fine_rows = cos0 * half_ulp(a * cos1) + sin0 * half_ulp(a * sin1);
    const double products = half_ulp_near(a * cos0 * cos1) + half_ulp_near(a * sin0 * sin1);
    return coarse_rows + (fine_rows + products + half_ulp_near(a * sum)) / factor.low + 2 * sum +
           1e-4;
}

double proved(Interval factor, double gap) {
    const Interval quarter = {0, 0x1.921fb54442d19p+0};
    return supremum<3>({quarter, quarter, factor}, gap,
                       [](const auto& box) { return estimate(box[0], box[1], box[2]); });
}

constexpr double limit = vkrope::error_bound(VKROPE_ANGLES_FACTORED_TEXTURE, 1);
static_assert(limit == vkrope::error_bound(VKROPE_ANGLES_FACTORED_TEXTURE, 1.5));

}  // namespace

TEST_CASE("the factored table: the bound is proved") {
    const double plain = proved({1, 1}, 0.01), factor = proved({1, 2}, 0.02);
    std::printf("factored, proved: %.3f at a = 1, %.3f with a factor\n", plain, factor);
    CHECK(factor <= limit);
    CHECK(plain <= factor);
}

TEST_CASE("the factored table: no rotation errs by more than the bound, and some come close") {
    const Searched found = searched("factored", 4, all ? 20000 : 5000, true, factored);
    CHECK(std::max(found.plain, found.factor) <= limit);
    CHECK(found.plain > 4);
    CHECK(found.factor > 4.6);
}
