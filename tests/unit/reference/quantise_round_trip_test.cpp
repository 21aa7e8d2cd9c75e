// SPDX-License-Identifier: MIT
// What a quantised type keeps of a row, with and without a Hadamard transform: the table of the
// guide (host/guide/finish.md) has the numbers that are measured here.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "reference/quantise.hpp"

using namespace vkrope::reference;

namespace {

constexpr std::size_t head_dim = 128, rows = 200;

/// Standard normal numbers, the sums of twelve uniform ones, the same with every library.
class Normal {
   public:
    double next() {
        double sum = -6;
        for (int draw = 0; draw < 12; ++draw) {
            state_ = state_ * 6364136223846793005u + 1442695040888963407u;
            sum += static_cast<double>(state_ >> 11) * 0x1p-53;
        }
        return sum;
    }

   private:
    std::uint64_t state_ = 1;
};

/// Of 128 standard normal channels; with outliers, channels 20 and 90 are 30 times as large.
std::vector<std::vector<float>> make_rows(bool outliers) {
    Normal normal;
    std::vector<std::vector<float>> made(rows, std::vector<float>(head_dim));
    for (std::vector<float>& row : made) {
        for (std::size_t c = 0; c < head_dim; ++c) {
            row[c] = static_cast<float>((outliers && (c == 20 || c == 90) ? 30 : 1) *
                                        normal.next());
        }
    }
    return made;
}

std::vector<float> transformed(const std::vector<float>& row) {
    std::vector<Approximate> channels;
    for (const float x : row) {
        channels.push_back({x, 0});
    }
    hadamard(channels, head_dim, 0);
    std::vector<float> values;
    for (const Approximate& channel : channels) {
        values.push_back(static_cast<float>(channel.value));
    }
    return values;
}

/// The root mean square of what storing changes, over the root mean square of the rows.
double relative_error(Store store, bool made, const std::vector<std::vector<float>>& of,
                      bool with_hadamard) {
    double changed = 0, all = 0;
    for (const std::vector<float>& row : of) {
        const std::vector<float> given = with_hadamard ? transformed(row) : row;
        std::vector<float> back;
        if (block_channels(store) != 1) {
            back = dequantise(store, quantise_blocks(store, given));
        } else if (made) {
            const MadeRow codes = quantise_made(store, given, 0);
            back = dequantise(store, codes.codes, codes.scale);
        } else {
            back = dequantise(store, quantise_given(store, given, 1));
        }
        if (with_hadamard) {
            back = transformed(back);  // it is its own inverse
        }
        for (std::size_t c = 0; c < head_dim; ++c) {
            changed += std::pow(double(back[c]) - double(row[c]), 2);
            all += std::pow(double(row[c]), 2);
        }
    }
    return std::sqrt(changed / all);
}

}  // namespace

TEST_CASE("round trip: the errors are as in the guide's table") {
    std::ifstream file(VKROPE_TEST_GUIDE "/finish.md");
    std::stringstream guide;
    guide << file.rdbuf();
    REQUIRE(guide.str().size() > 1000);
    const auto normal = make_rows(false), outliers = make_rows(true);
    struct Line {
        const char* name;
        Store store;
        bool made;
    };
    for (const Line& line :
         {Line{"`e4m3fn`, no scale", Store::e4m3fn, false},
          Line{"`e4m3fn`, scale of the row", Store::e4m3fn, true},
          Line{"`e5m2`, no scale", Store::e5m2, false},
          Line{"`e5m2`, scale of the row", Store::e5m2, true},
          Line{"`int8`, scale of the row", Store::int8, true}, Line{"`q8_0`", Store::q8_0, true},
          Line{"`q5_1`", Store::q5_1, true}, Line{"`q5_0`", Store::q5_0, true},
          Line{"`q4_1`", Store::q4_1, true}, Line{"`q4_0`", Store::q4_0, true}}) {
        const auto percent = [&line](const std::vector<std::vector<float>>& of, bool with) {
            return 100 * relative_error(line.store, line.made, of, with);
        };
        char text[200];
        std::snprintf(text, sizeof text, "| %s | %.2f %% | %.2f %% | %.2f %% | %.2f %% |",
                      line.name, percent(normal, false), percent(normal, true),
                      percent(outliers, false), percent(outliers, true));
        INFO("measured: ", text);
        CHECK(guide.str().find(text) != std::string::npos);
    }
}

TEST_CASE("round trip: of a million codes, few differ between x times 1 / scale and x / scale") {
    Normal normal;
    int differ = 0, furthest = 0;
    for (int i = 0; i < 4000000; ++i) {
        const auto x = static_cast<float>(normal.next());
        const float scale = 0.013f, product = x * (1 / scale), quotient = x / scale;
        const auto code = [](float number) {
            return static_cast<std::int8_t>(quantise_given(Store::int8, {&number, 1}, 1).front());
        };
        const int distance = product == quotient ? 0 : std::abs(code(product) - code(quotient));
        furthest = std::max(furthest, distance);
        differ += distance;
    }
    CHECK(furthest == 1);
    CHECK(differ <= 4 * 5);
}
