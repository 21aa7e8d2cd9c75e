// SPDX-License-Identifier: MIT
// Measures what a quantised type keeps of a row, with and without a Hadamard transform. The results
// are the numbers of the guide (host/guide/ops.md).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/meaning.hpp"
#include "verify/oracle/quantise.hpp"

using namespace vkrope::oracle;

namespace {

constexpr std::size_t head_dim = 128, rows = 200;

// Standard normal numbers, as sums of twelve uniform numbers, the same with every library.
class Normal {
   public:
    double next() {
        double sum = -6;
        for (int draw = 0; draw < 12; ++draw) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            sum += double(state_ >> 11) * 0x1p-53;
        }
        return sum;
    }

   private:
    std::uint64_t state_ = 1;
};

// Returns rows of 128 standard normal channels; outliers are channels 20 and 90, 30 times as big.
std::vector<std::vector<float>> make_rows(bool outliers) {
    Normal normal;
    std::vector<std::vector<float>> made(rows, std::vector<float>(head_dim));
    for (std::vector<float>& row : made)
        for (std::size_t c = 0; c < head_dim; ++c)
            row[c] = float((outliers && (c == 20 || c == 90) ? 30 : 1) * normal.next());
    return made;
}

std::vector<float> transformed(const std::vector<float>& row) {
    std::vector<Approximate> channels;
    for (const float x : row) channels.push_back({x, 0});
    hadamard(channels, head_dim, 0);
    std::vector<float> values;
    for (const Approximate& channel : channels) values.push_back(float(channel.value));
    return values;
}

// Returns the root mean square of what storing changes, over that of the rows. Each `group`
// channels have a scale; 0: none have one.
double relative_error(Store store, std::size_t group, const std::vector<std::vector<float>>& of,
                      bool with_hadamard) {
    double changed = 0, all = 0;
    for (const std::vector<float>& row : of) {
        const std::vector<float> given = with_hadamard ? transformed(row) : row;
        std::vector<float> back;
        if (has_blocks(store)) {
            back = dequantise(store, quantise_blocks(store, given));
        } else if (group != 0) {
            for (std::size_t first = 0; first < head_dim; first += group) {
                const MadeRow codes = quantise_made(store, std::span(given).subspan(first, group),
                                                    0);
                const std::vector<float> part = dequantise(store, codes.codes, codes.scale);
                back.insert(back.end(), part.begin(), part.end());
            }
        } else {
            back = dequantise(store, quantise_given(store, given, 1));
        }
        if (with_hadamard) back = transformed(back);  // the transform is its own inverse
        for (std::size_t c = 0; c < head_dim; ++c) {
            changed += std::pow(double(back[c]) - double(row[c]), 2);
            all += std::pow(double(row[c]), 2);
        }
    }
    return std::sqrt(changed / all);
}

}  // namespace

TEST_CASE("round trip: errors in percent, of normal rows and of rows with outliers") {
    const auto normal = make_rows(false), outliers = make_rows(true);
    struct Line {
        Store store;
        std::size_t group;
        double errors[4];  // normal, normal with Hadamard, outliers, outliers with Hadamard
    };
    for (const Line& line : {Line{Store::e4m3fn, 0, {2.66, 2.66, 2.53, 2.67}},
                             Line{Store::e4m3fn, head_dim, {2.58, 2.55, 1.28, 2.67}},
                             Line{Store::e5m2, 0, {5.27, 5.27, 5.26, 5.34}},
                             Line{Store::e5m2, head_dim, {5.17, 5.21, 2.68, 5.31}},
                             Line{Store::int8, head_dim, {0.62, 0.64, 2.25, 0.41}},
                             Line{Store::int8, 32, {0.52, 0.53, 1.23, 0.38}},
                             Line{Store::q8_0, 0, {0.52, 0.53, 1.23, 0.38}},
                             Line{Store::q5_1, 0, {3.71, 3.78, 5.26, 2.86}},
                             Line{Store::q5_0, 0, {4.15, 4.26, 8.97, 3.03}},
                             Line{Store::q4_1, 0, {7.67, 7.77, 11.50, 5.94}},
                             Line{Store::q4_0, 0, {8.35, 8.61, 13.08, 6.26}},
                             Line{Store::iq4_nl, 0, {7.76, 7.84, 11.74, 6.78}},
                             Line{Store::int4, 32, {9.42, 9.73, 13.72, 6.78}},
                             Line{Store::int4, head_dim, {11.34, 11.67, 23.26, 7.46}}}) {
        CAPTURE(int(line.store));
        for (int i = 0; i < 4; ++i) {
            CAPTURE(i);
            const double percent = 100 * relative_error(line.store, line.group,
                                                        i < 2 ? normal : outliers, i % 2 != 0);
            CHECK(std::fabs(percent - line.errors[i]) <= 0.005001);
        }
    }
}

TEST_CASE("round trip: of a million codes, few differ between x times 1 / scale and x / scale") {
    Normal normal;
    int differ = 0, furthest = 0;
    for (int i = 0; i < 4000000; ++i) {
        const auto x = float(normal.next());
        const float scale = 0.013f, product = x * (1 / scale), quotient = x / scale;
        const auto code = [](float number) {
            return std::int8_t(quantise_given(Store::int8, {&number, 1}, 1).front());
        };
        const int distance = product == quotient ? 0 : std::abs(code(product) - code(quotient));
        furthest = std::max(furthest, distance);
        differ += distance;
    }
    CHECK(furthest == 1);
    CHECK(differ <= 4 * 5);
}
