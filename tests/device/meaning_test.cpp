// SPDX-License-Identifier: MIT
// Properties that RoPE must have, whatever the formula. Tolerances follow from the contract: an
// output is within 2.5 u (|x0| + |x1|) of the exact value, u = 2^-24.
#include "meaning.hpp"

#include <cmath>
#include <numeric>

#include "support/test_device.hpp"

namespace vkrope::test {

namespace {

constexpr double u = 0x1p-24;
constexpr double bound = 2.5 * u;
constexpr std::uint32_t D = 64;

std::vector<float> floats(const Bytes& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

Bytes bytes_of(const std::vector<float>& values) {
    Bytes bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

// Rotates `row` to every position from `first` on: [tokens, D].
std::vector<float> rotate_row(const std::vector<float>& row, std::uint32_t tokens,
                              std::int32_t first, Pairing pairing) {
    std::vector<float> rows;
    for (std::uint32_t t = 0; t < tokens; ++t) rows.insert(rows.end(), row.begin(), row.end());
    const HostShape shape{.tokens = tokens, .heads = {1}, .first_position = first};
    return floats(rotate(device(), rotation(pairing, D, D), shape, bytes_of(rows), {}).q);
}

double dot(const float* a, const float* b) {
    double sum = 0;
    for (std::uint32_t i = 0; i < D; ++i) sum += double(a[i]) * double(b[i]);
    return sum;
}

struct Pair {
    std::uint32_t first, second;
};
Pair channels(Pairing pairing, std::uint32_t j) {
    return pairing == VKROPE_HALF_SPLIT ? Pair{j, j + D / 2} : Pair{2 * j, 2 * j + 1};
}

// Largest error of a dot product of a rotated q and a rotated k.
double dot_error(const std::vector<float>& q, const std::vector<float>& k, Pairing pairing) {
    double sum = 0;
    for (std::uint32_t j = 0; j < D / 2; ++j) {
        const auto [a, b] = channels(pairing, j);
        sum += double(std::fabs(q[a]) + std::fabs(q[b])) *
               double(std::fabs(k[a]) + std::fabs(k[b]));
    }
    return 4 * bound * sum;
}

}  // namespace

TEST_CASE(
    "the dot product of a rotated q and a rotated k depends on the distance of their positions "
    "alone") {
    const auto q = floats(random_elements(VKROPE_F32, D, 3)),
               k = floats(random_elements(VKROPE_F32, D, 4));
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        const auto near_q = rotate_row(q, 32, 0, pairing), near_k = rotate_row(k, 32, 0, pairing);
        const auto far_q = rotate_row(q, 32, 100000, pairing),
                   far_k = rotate_row(k, 32, 100000, pairing);
        const double allowed = 2 * dot_error(q, k, pairing);
        double spread = 0;
        for (std::uint32_t m = 0; m < 32; ++m) {
            for (std::uint32_t n = 0; n < 32; ++n) {
                const double here = dot(&near_q[m * D], &near_k[n * D]);
                CHECK(std::fabs(here - dot(&far_q[m * D], &far_k[n * D])) <= allowed);
                if (m + 1 < 32 && n + 1 < 32)
                    CHECK(std::fabs(here - dot(&near_q[(m + 1) * D], &near_k[(n + 1) * D])) <=
                          allowed);
                spread = std::max(spread, std::fabs(here - dot(&near_q[0], &near_k[0])));
            }
        }
        CHECK(spread > 1000 * allowed);  // other distances give other products
    }
}

TEST_CASE("softmax(q.k / sqrt(d)) is unchanged when all positions shift") {
    constexpr std::uint32_t tokens = 24;
    const HostShape shape{.tokens = tokens, .heads = {1, 1}};
    const Bytes q = random_elements(VKROPE_F32, tokens * D, 5),
                k = random_elements(VKROPE_F32, tokens * D, 6);
    const auto weights = [&](std::int32_t shift) {
        HostShape shifted = shape;
        shifted.first_position = shift;
        const Rotated out = rotate(device(), rotation(VKROPE_HALF_SPLIT, D, D), shifted, q, k);
        const auto rq = floats(out.q), rk = floats(out.k);
        std::vector<double> rows;
        for (std::uint32_t m = 0; m < tokens; ++m) {
            std::vector<double> row;
            for (std::uint32_t n = 0; n < tokens; ++n)
                row.push_back(std::exp(dot(&rq[m * D], &rk[n * D]) / std::sqrt(double(D))));
            const double sum = std::accumulate(row.begin(), row.end(), 0.0);
            for (const double w : row) rows.push_back(w / sum);
        }
        return rows;
    };
    const auto at_zero = weights(0);
    // Logits move by at most twice the error of a dot product of rows of at most 4 each; weights by
    // at most twice that.
    const double allowed = 2 * 2 * 2 * 4 * bound * (D / 2) * 8 * 8 / std::sqrt(double(D));
    for (const std::int32_t shift : {1, 777, 131072, -5000}) {
        const auto shifted = weights(shift);
        for (std::size_t i = 0; i < shifted.size(); ++i)
            CHECK(std::fabs(shifted[i] - at_zero[i]) <= allowed);
    }
}

TEST_CASE("for q = k = ones the mean of q.k falls over growing windows of distance") {
    const std::vector<float> ones(D, 1.0f);
    const auto rotated = rotate_row(ones, 4096, 0, VKROPE_HALF_SPLIT);
    double previous = dot(ones.data(), ones.data());
    double sum = 0;
    std::uint32_t distance = 0;
    for (const std::uint32_t window : {16u, 64u, 256u, 1024u, 4096u}) {
        for (; distance < window; ++distance) sum += dot(ones.data(), &rotated[distance * D]);
        CHECK(sum / window < previous);
        previous = sum / window;
    }
}

TEST_CASE("norms are kept") {
    const HostShape shape{.tokens = 500, .heads = {4}, .first_position = 12345};
    const Bytes q = random_elements(VKROPE_F32, 500 * 4 * D, 8);
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        const auto in = floats(q),
                   out = floats(rotate(device(), rotation(pairing, D, D), shape, q, {}).q);
        for (std::size_t row = 0; row < in.size(); row += D) {
            const double before = std::sqrt(dot(&in[row], &in[row])),
                         after = std::sqrt(dot(&out[row], &out[row]));
            // |x0| + |x1| <= sqrt(2) |x| for both members of each pair.
            CHECK(std::fabs(after - before) <= 2 * bound * before);
        }
    }
}

TEST_CASE("at position 0 with factor 1 every finite pair comes back equal") {
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        const HostShape shape{.batch = 64, .tokens = 1, .heads = {4}, .element = element};
        Bytes q = random_elements(element, 64 * 4 * D, 9);
        const float specials[] = {0.0f, -0.0f, 1.0f, -1.0f, 65504.0f, -65504.0f, 6.103515625e-5f};
        for (std::size_t i = 0; i < 7; ++i) {
            const std::uint32_t bits = reference::narrow(type_of(element), specials[i]);
            std::memcpy(q.data() + 3 * i * element_bytes(element), &bits, element_bytes(element));
        }
        for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
            const Bytes out = rotate(device(), rotation(pairing, D, D), shape, q, {}).q;
            for (std::size_t i = 0; i < 64 * 4 * D; ++i)
                CHECK(value(element, out, i) == value(element, q, i));
        }
    }
}

// On one device, so that a kernel with other windows must not serve a rotation.
TEST_CASE("windows: each is rotated as a head of its own") {
    constexpr std::uint32_t tokens = 7;
    const HostShape shape{.tokens = tokens, .heads = {1}, .first_position = 1000};
    const auto rows = floats(random_elements(VKROPE_F32, tokens * D, 14));
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        for (const std::uint32_t first : {D, D / 2, D / 4, D}) {
            CAPTURE(first);
            RopeParams together = rotation(pairing, D, D);
            if (first != D) {
                together.windows[0] = {0, first};
                together.windows[1] = {first, D - first};
            }
            const auto out = floats(rotate(device(), together, shape, bytes_of(rows), {}).q);
            for (const Window window : {Window{0, first}, Window{first, D - first}}) {
                if (window.rotary_dim == 0) continue;
                RopeParams alone = rotation(pairing, window.rotary_dim, window.rotary_dim);
                const auto from = together.inv_freq.begin() + window.offset / 2;
                alone.inv_freq.assign(from, from + window.rotary_dim / 2);
                std::vector<float> in, expected;
                for (std::uint32_t t = 0; t < tokens; ++t) {
                    const std::uint32_t at = t * D + window.offset;
                    for (std::uint32_t c = 0; c < window.rotary_dim; ++c) {
                        in.push_back(rows[at + c]);
                        expected.push_back(out[at + c]);
                    }
                }
                CHECK(floats(rotate(device(), alone, shape, bytes_of(in), {}).q) == expected);
            }
        }
    }
}

TEST_CASE("inverse undoes forward") {
    const HostShape shape{
        .tokens = 300, .heads = {2, 1}, .first_position = 70000, .in_place = true};
    const Bytes q = random_elements(VKROPE_F32, 300 * 2 * D, 10),
                k = random_elements(VKROPE_F32, 300 * D, 11);
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        HostRotation work = must(HostRotation::make(device(), rotation(pairing, D, D), shape));
        must(work.upload(q.data(), k.data()));
        must(work.run({.direction = VKROPE_FORWARD}));
        Bytes once(q.size()), back(q.size()), k_back(k.size());
        must(work.download(once.data(), k_back.data()));
        CHECK(once != q);
        must(work.run({.direction = VKROPE_INVERSE}));
        must(work.download(back.data(), k_back.data()));
        const auto before = floats(q), after = floats(back);
        for (std::size_t row = 0; row < before.size(); row += D) {
            for (std::uint32_t j = 0; j < D / 2; ++j) {
                const auto [a, b] = channels(pairing, j);
                const double size = double(std::fabs(before[row + a]) + std::fabs(before[row + b]));
                // The second rotation starts from errors of `bound` in both members, and from pairs
                // up to sqrt(2) as large.
                const double allowed = (2 * bound + 2 * bound) * size;
                CHECK(std::fabs(double(after[row + a]) - double(before[row + a])) <= allowed);
                CHECK(std::fabs(double(after[row + b]) - double(before[row + b])) <= allowed);
            }
        }
    }
}

TEST_CASE(
    "the dense rotation matrix and the sparse form x cos + rot(x) sin give the same rows as the "
    "device") {
    constexpr std::int32_t position = 4321;
    const auto x = floats(random_elements(VKROPE_F32, D, 12));
    for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
        const RopeParams r = rotation(pairing, D, D);
        std::vector<double> matrix(D * D, 0.0), rot(D), cosine(D), sine(D);
        for (std::uint32_t j = 0; j < D / 2; ++j) {
            const auto [a, b] = channels(pairing, j);
            const long double angle = static_cast<long double>(position) *
                                      static_cast<long double>(r.inv_freq[j]);
            const double c = double(std::cos(angle)), s = double(std::sin(angle));
            matrix[a * D + a] = c, matrix[a * D + b] = -s, matrix[b * D + a] = s,
                           matrix[b * D + b] = c;
            cosine[a] = cosine[b] = c, sine[a] = sine[b] = s;
            rot[a] = -double(x[b]), rot[b] = double(x[a]);
        }
        const auto got = rotate_row(x, 1, position, pairing);
        for (std::uint32_t i = 0; i < D; ++i) {
            double dense = 0;
            for (std::uint32_t j = 0; j < D; ++j) dense += matrix[i * D + j] * double(x[j]);
            const double sparse = double(x[i]) * cosine[i] + rot[i] * sine[i];
            CHECK(std::fabs(dense - sparse) <= 1e-12);
            CHECK(std::fabs(double(got[i]) - sparse) <= bound * 8 + 1e-12);  // |x0| + |x1| <= 8
        }
    }
}

TEST_CASE("a swapped pair layout is caught, except at position 0, which hides it") {
    const Bytes q = random_elements(VKROPE_F32, 16 * D, 13);
    for (const std::int32_t first : {0, 1}) {
        const HostShape shape{.batch = 16, .tokens = 1, .heads = {1}, .first_position = first};
        const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
        const Bytes out = rotate(device(), r, shape, q, {}).q;
        reference::Operation swapped;
        swapped.interleaved = true;
        swapped.inv_freq = r.inv_freq;
        swapped.positions.assign(16, first);
        const reference::Tensor tensor{.type = reference::Type::f32,
                                       .batch = 16,
                                       .tokens = 1,
                                       .heads = 1,
                                       .head_dim = D,
                                       .batch_stride = D,
                                       .token_stride = D,
                                       .head_stride = D};
        const double error =
            reference::compare(tensor, swapped, q.data(), out.data()).largest_error_u;
        if (first == 0) {
            CHECK(error <= 2.5);
        } else {
            CHECK(error > 1e5);
        }
    }
}

}  // namespace vkrope::test
