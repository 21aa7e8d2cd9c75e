// SPDX-License-Identifier: MIT
// Checks algebraic properties of a rotation, for every formula and angle source. With u = 2^-24, an
// output is within b = B u (|x0| + |x1|) of the exact value, where B is the bound of the source.
// The tolerances follow:
//
//   R(p) R(q) = R(p + q)  the second rotation turns errors of b in both members into at most
//                         sqrt(2) b, and adds an error for a pair whose |y0| + |y1| is at most
//                         sqrt(2) (|x0| + |x1|); with b of the right side: (2 sqrt(2) + 1) b
//   R(-p) R(p) = 1        the same, but the right side is exact: 2 sqrt(2) b
//   |R x| = |x|           an error of b in both members, with |x0| + |x1| <= sqrt(2) |x|: 2 b
//   R(0) = 1              compared as numbers
#include <cmath>

#include "base/meaning.hpp"
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr double u = 0x1p-24;
constexpr std::uint32_t head_dim = 64, tokens = 96, heads = 4;

struct Way {
    Pairing pairing;
    AngleSource source;

    // Returns the largest |position|, which sets the length of the table if the source has one.
    std::int64_t farthest() const {
        return source == VKROPE_ANGLES_COMPUTED           ? INT32_MAX
               : source == VKROPE_ANGLES_FACTORED_TEXTURE ? (std::int64_t{1} << 22) - 1
                                                          : 8191;
    }
    double bound() const { return error_bound(source, 1) * u * (1 + 0x1p-20); }  // 2nd-order errors
};

Trial at(const std::vector<std::int64_t>& positions, const Way& way, const Bytes& q = {}) {
    Trial trial = trial_of(VKROPE_F32, head_dim, tokens, way.pairing);
    trial.shape.q_per_group = heads;
    trial.info.angles = way.source;
    trial.max_position = std::uint32_t(way.farthest() + 1);
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.ids = positions;
    trial.rows[Q] = q;
    return trial;
}

std::vector<float> floats(const Bytes& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

// Compares two results of x that should be equal, element by element. The tolerance is
// `factor` * b, where b is computed from the pair of the element in x.
void hold_close(const Bytes& a, const Bytes& b, const Bytes& x, const Way& way, double factor,
                const char* what, Test& test) {
    const std::vector<float> left = floats(a), right = floats(b), from = floats(x);
    for (std::size_t i = 0; i < left.size(); ++i) {
        const std::size_t channel = i % head_dim, row = i - channel;
        const std::size_t other = way.pairing == VKROPE_HALF_SPLIT
                                      ? (channel + head_dim / 2) % head_dim
                                      : channel ^ 1;
        const double size = std::fabs(double{from[i]}) + std::fabs(double{from[row + other]});
        const double distance = std::fabs(double{left[i]} - double{right[i]});
        test.measure_error(distance);
        test.hold(distance <= factor * way.bound() * size,
                  "{}: row {} channel {} differs by {:.3g} u, but the contract allows {:.3g} u",
                  what, row / head_dim, channel, distance / (u * size),
                  factor * error_bound(way.source, 1));
    }
}

double length(const std::vector<float>& values, std::size_t row) {
    double sum = 0;
    for (std::size_t i = 0; i < head_dim; ++i)
        sum += double{values[row * head_dim + i]} * double{values[row * head_dim + i]};
    return std::sqrt(sum);
}

void add_way(Checks& checks, const Way& way) {
    const std::string name = fmt::format("{}_{}", name_of(way.pairing), name_of(way.source));
    checks.add(
        "composition_" + name,
        [=](Test& test) {
            const Bytes x = random_elements(VKROPE_F32, std::size_t{tokens} * heads * head_dim, 91);
            const std::int64_t half = way.farthest() / 2;
            for (const std::int64_t q : {std::int64_t{1}, std::int64_t{777}, -half}) {
                const std::vector<std::int64_t> p = random_positions(tokens, -half, half, 92);
                std::vector<std::int64_t> sum = p;
                for (std::int64_t& position : sum) position += q;
                const Bytes once = test.run(at(p, way, x)).rows[Q];
                const Bytes twice = test.run(at(std::vector(tokens, q), way, once)).rows[Q];
                const Bytes together = test.run(at(sum, way, x)).rows[Q];
                hold_close(twice, together, x, way, 2 * std::sqrt(2.0) + 1, "R(p) R(q) = R(p + q)",
                           test);
                test.hold(once != twice, "a rotation by {} positions changes nothing", q);
            }
        });
    checks.add("inverse_" + name, [=](Test& test) {
        const Bytes x = random_elements(VKROPE_F32, std::size_t{tokens} * heads * head_dim, 93);
        const std::vector<std::int64_t> p = random_positions(tokens, -way.farthest(),
                                                             way.farthest(), 94);
        const Bytes once = test.run(at(p, way, x)).rows[Q];
        Trial back = at(p, way, once);
        back.call.direction = VKROPE_INVERSE;
        const Bytes undone = test.run(back).rows[Q];
        hold_close(undone, x, x, way, 2 * std::sqrt(2.0), "the inverse of a rotation undoes it",
                   test);
        Trial negative = at(p, way, once);
        for (std::int64_t& position : negative.ids) {
            position = -position;
        }
        test.hold(test.run(negative).rows[Q] == undone,
                  "the inverse at p and forward at -p have different bits");
    });
    checks.add(
        "norm_" + name,
        [=](Test& test) {
            const Bytes x = random_elements(VKROPE_F32, std::size_t{tokens} * heads * head_dim, 95);
            const Bytes y =
                test.run(at(random_positions(tokens, -way.farthest(), way.farthest(), 96), way, x))
                    .rows[Q];
            const std::vector<float> before = floats(x), after = floats(y);
            for (std::size_t row = 0; row < before.size() / head_dim; ++row) {
                const double was = length(before, row), is = length(after, row);
                test.hold(std::fabs(is - was) <= 2 * way.bound() * was,
                          "row {} had a length of {:.9g}, but now has {:.9g}", row, was, is);
            }
        });
    checks.add("identity_at_position_0_" + name, [=](Test& test) {
        for (const Element element : elements) {
            Trial trial = trial_of(element, head_dim, tokens, way.pairing);
            trial.info.angles = way.source;
            trial.info.positions = VKROPE_POSITIONS_IDS;
            trial.ids.assign(tokens, 0);
            trial.rows[Q] = random_elements(element, elements_of(trial, Q), 97);
            const Bytes y = test.run(trial).rows[Q];
            for (std::size_t i = 0; i < elements_of(trial, Q); ++i) {
                test.hold(value(element, y, i) == value(element, trial.rows[Q], i),
                          "{} {} comes back as {}", name_of(element),
                          value(element, trial.rows[Q], i), value(element, y, i));
            }
        }
    });
}

}  // namespace

void add_algebra(Checks& checks) {
    for (const AngleSource source : our_sources)
        add_way(checks, {pairings[std::size_t(source) % 2], source});
}

}  // namespace vkrope::conformance
