// SPDX-License-Identifier: MIT
// Proves the error bounds of direct tables: 2.5 u (|x0| + |x1|), and 3 u a (|x0| + |x1|) with an
// attention factor. cos and sin are rounded once from double, then the rotation follows.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/meaning.hpp"
#include "proof.hpp"
#include "search.hpp"

using namespace vkrope::bounds;

namespace {

// Returns an upper bound of |x0|'s factor in the error, in u a, at `angle` in [0, pi / 2]. The
// factor of |x1| is the same at another angle, so the largest value is the bound.
//
// Nothing is neglected. Two successive roundings, of product and sum, each at most u / (1 + u) of
// the result, are 2 u - u^2 of it. An entry is at most the rounded factor. The phase was truncated
// to 2^-64 turn per position. Errors of double in the entry are below 2^-28 u.
double estimate(Interval angle, Interval factor, double positions) {
    const double unit = double(u);
    const double cosine = max_cos(angle), entry = factor.high * cosine;
    const double rounding = half_ulp(entry);
    const double most = factor.high == 1 ? 1.0 : entry + unit * rounding;
    const double phase = positions * 0x1p-64 * double(two_pi) / unit * max_sin(angle);
    return (rounding + 0x1p-28 +
            (2 - unit + unit * unit) * std::fmin(entry + unit * rounding, most)) /
               factor.low +
           phase;
}

double proved(Interval factor, double positions, double gap) {
    return supremum<2>(
        {Interval{0, 0x1.921fb54442d19p+0}, factor}, gap,
        [&](const auto& box) { return estimate(box[0], box[1], positions); });
}

double limit(double attention_factor) {
    return vkrope::error_bound(VKROPE_ANGLES_DIRECT_BUFFER, attention_factor);
}

vkrope::CosSin direct(std::uint64_t phase, std::uint64_t, double attention_factor) {
    return vkrope::table_entry(phase, attention_factor);
}

}  // namespace

TEST_CASE("direct tables: the bound is proved") {
    // A table for 2^25 positions has 256 MiB for one pair. For the 2^31 positions that a plan may
    // ask for, the truncation of the phase matters.
    const double plain = proved({1, 1}, 0x1p25, 1e-9), factor = proved({1, 2}, 0x1p25, 1e-8);
    const double far = proved({1, 1}, 0x1p31, 1e-6), far_factor = proved({1, 2}, 0x1p31, 1e-6);
    std::printf("direct, proved: %.8f, with a factor %.8f; to 2^31 positions %.6f, %.6f\n", plain,
                factor, far, far_factor);
    CHECK(plain <= limit(1));
    CHECK(factor <= limit(1.5) + 2e-7);  // 2e-7: terms of u^2 at factors near 1
    CHECK(far <= 2.50005);
    CHECK(far_factor <= 3.00005);
}

TEST_CASE("direct tables: no rotation errs by more than the bound, and some come close") {
    const Searched found = searched("direct", 1, all ? 10000 : 2000, false, direct);
    CHECK(found.plain <= limit(1));
    CHECK(found.plain > 2.4);
    CHECK(found.factor <= limit(1.5));
    CHECK(found.factor > 2.8);
}
