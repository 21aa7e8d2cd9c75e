// SPDX-License-Identifier: MIT
// Tests the computations and pictures of `vkrope explain`.
#include "explain/explain.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>

#include "io/svg.hpp"
#include "support/names.hpp"

using namespace vkrope;
using namespace vkrope::tools;

namespace {

RopeParams rotation_of(std::uint32_t pairs, double base) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 2 * pairs;
    rotation.base = base;
    rotation.max_position = 4096;
    rotation.inv_freq.resize(pairs);
    REQUIRE(default_inv_freq(base, rotation.rotary_dim, rotation.inv_freq.data()));
    return rotation;
}

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t count = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++count;
    return count;
}

}  // namespace

TEST_CASE("pairs: channels, wavelengths, slowdown, turns") {
    RopeParams rotation = rotation_of(4, 10000);
    rotation.inv_freq[2] /= 2.5;
    rotation.inv_freq[3] = 0;
    rotation.pairing = VKROPE_INTERLEAVED;
    const Explanation explanation = explain(rotation);
    REQUIRE(explanation.pairs.size() == 4);
    CHECK(explanation.pairs[1].first == 2);
    CHECK(explanation.pairs[1].second == 3);
    CHECK(explanation.pairs[0].wavelength == doctest::Approx(2 * std::numbers::pi));
    CHECK(explanation.pairs[1].wavelength == doctest::Approx(20 * std::numbers::pi));
    CHECK(explanation.pairs[0].slower == 1);
    CHECK(explanation.pairs[1].slower == 1);
    CHECK(explanation.pairs[2].slower == doctest::Approx(2.5));
    CHECK(std::isinf(explanation.pairs[3].slower));
    CHECK(std::isinf(explanation.pairs[3].wavelength));
    CHECK(explanation.pairs[0].turns == doctest::Approx(4096 / (2 * std::numbers::pi)));
    CHECK(explanation.pairs[3].turns == 0);
    rotation.pairing = VKROPE_HALF_SPLIT;
    CHECK(explain(rotation).pairs[1].second == 5);
    rotation.head_dim = 12;
    rotation.windows[0] = {0, 2};
    rotation.windows[1] = {4, 6};
    const Explanation windows = explain(rotation);
    RopeParams unrotated;
    unrotated.head_dim = 8;
    unrotated.no_rope = true;
    CHECK(windows.pairs[0].second == 1);
    CHECK(windows.pairs[1].first == 4);
    CHECK(windows.pairs[3].second == 9);
    CHECK(json_of(windows)["windows"][1]["offset"] == 4);
    CHECK(json_of(explain(unrotated))["windows"].empty());
    CHECK(test::names(text_of(windows, true), "channels 0 1 4 9 12"));
    CHECK(json_of(explanation)["pairs_without_a_turn"] == nlohmann::ordered_json({3}));
    CHECK(json_of(explanation)["pairs"][3]["wavelength"].is_null());
}

TEST_CASE("a norm says which channels of a row it takes") {
    RopeParams rotation = rotation_of(4, 10000);
    rotation.ops.norms_known = true;
    Norm& norm = rotation.ops.tensor[K].norm;
    norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f};
    const auto text = [&] { return text_of(explain(rotation), true); };
    CHECK(count_of(text(), "K: rms norm of each head (eps 1e-06), rotation") == 1);
    CHECK(json_of(explain(rotation))["ops"]["k"]["norm"]["channels"] == 0);
    norm.first_channel = 2;
    norm.channels = 3;
    CHECK(count_of(text(), "K as a row of the latent cache: rms norm of channels 2 to 4 (eps") ==
          1);
    CHECK(json_of(explain(rotation))["ops"]["k"]["norm"]["first_channel"] == 2);
    CHECK(json_of(explain(rotation))["ops"]["k"]["norm"]["channels"] == 3);
    norm.span = VKROPE_NORM_SPAN_TOKEN;
    CHECK(count_of(text(), "channels 2 to 4 of all heads of a token (eps") == 1);
    rotation.no_rope = true;
    CHECK(count_of(text(), "rotates           nothing") == 1);
    CHECK(count_of(text(), "of a token (eps 1e-06)\n") == 1);
}

TEST_CASE("without a base the unscaled frequencies are not reported") {
    RopeParams rotation = rotation_of(4, 10000);
    rotation.base = 0;
    rotation.max_position = 0;
    const Explanation explanation = explain(rotation);
    CHECK(!explanation.knows_unscaled);
    CHECK(!explanation.knows_length);
    CHECK(explanation.length == 4096);
    CHECK(explanation.pairs[2].slower == 0);
    CHECK(json_of(explanation)["pairs"][2]["unscaled_inv_freq"].is_null());
}

TEST_CASE("axes of the pairs") {
    RopeParams rotation = rotation_of(8, 10000);
    rotation.sections = {VKROPE_SECTIONS_SEQUENTIAL, 3, {2, 3, 3}, 0};
    const auto axes = [&rotation] {
        std::vector<std::uint32_t> found;
        for (const ExplainedPair& pair : explain(rotation).pairs) found.push_back(pair.axis);
        return found;
    };
    CHECK(axes() == std::vector<std::uint32_t>{0, 0, 1, 1, 1, 2, 2, 2});
    rotation.sections = {VKROPE_SECTIONS_INTERLEAVED, 3, {4, 2, 2}, 0};
    CHECK(axes() == std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0, 0});
    rotation.sections = {};
    CHECK(axes() == std::vector<std::uint32_t>(8, 0));
}

TEST_CASE("the bound of q.k at known distances") {
    CHECK(decay_bound({1.0, 0.1, 0.01, 0.001}, 0) == doctest::Approx(2.5));  // (1 + 2 + 3 + 4) / 4
    CHECK(decay_bound({std::numbers::pi, 0}, 1) == doctest::Approx(0.5));    // |-1| and |-1 + 1|
    CHECK(decay_bound({std::numbers::pi / 2, 0}, 1) == doctest::Approx((1 + std::sqrt(2)) / 2));
    CHECK(decay_bound({}, 1) == 0);
}

TEST_CASE("a picture has a curve for each comparison, and the same bytes each time") {
    RopeParams rotation = rotation_of(16, 10000);
    const std::string plain = svg_of(explain(rotation));
    CHECK(plain == svg_of(explain(rotation)));
    CHECK(count_of(plain, "<polyline class=\"s0\"") == 2);
    CHECK(count_of(plain, "<polyline class=\"s1\"") == 0);
    CHECK(count_of(plain, "class=\"bound\"") == 2);  // the legend's sample and the line
    CHECK(plain.find("<script") == std::string::npos);
    CHECK(plain.find("prefers-color-scheme:dark") != std::string::npos);
    CHECK(plain.find("nan") == std::string::npos);
    CHECK(plain.find("inf") == std::string::npos);
    for (std::size_t j = 8; j < 16; ++j) rotation.inv_freq[j] /= 4;
    const std::string scaled = svg_of(explain(rotation));
    CHECK(count_of(scaled, "<polyline class=\"s0\"") == 2);
    CHECK(count_of(scaled, "<polyline class=\"s1\"") == 2);
    rotation.inv_freq.assign(16, 0);
    const std::string still = svg_of(explain(rotation));
    CHECK(still.find("nan") == std::string::npos);
    CHECK(still.find("inf") == std::string::npos);
    CHECK(svg_of(explain(rotation_of(1, 10000))).find("nan") == std::string::npos);
}

TEST_CASE("axes and numbers of plots") {
    using svg::axis_over;
    using svg::Scale;
    const double infinity = std::numeric_limits<double>::infinity();
    const svg::Axis some = axis_over("", Scale::logarithmic, {10, 0, -3, infinity, 0.5});
    CHECK(some.low == 0.5);
    CHECK(some.high == 10);
    for (const std::vector<double>& values :
         {std::vector<double>{}, {7}, {0}, {-2}, {std::nan("")}}) {
        for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
            const svg::Axis axis = axis_over("", scale, values);
            CHECK(axis.low < axis.high);
            CHECK((scale == Scale::linear || axis.low > 0));
        }
    }
    CHECK(svg::number_text(0) == "0");
    CHECK(svg::number_text(0.25) == "0.25");
    CHECK(svg::number_text(1000) == "1000");
    CHECK(svg::number_text(1e6) == "10⁶");
    CHECK(svg::number_text(2.5e-7) == "2.5·10⁻⁷");
    CHECK(svg::number_text(-1e12) == "-1·10¹²");
}

TEST_CASE("a plot: lines break at missing values, text cannot become markup") {
    svg::Plot plot = {
        .title = "a < b & \"c\"",
        .x = {"x", svg::Scale::logarithmic, 1, 100},
        .y = {"y", svg::Scale::linear, -1, 1},
        .series = {{"one", {{1, 0}, {2, 0.5}, {3, std::nan("")}, {4, 1}, {5, 0}}, true}},
        .bounds = {{"limit", 0.5}}};
    svg::Drawing drawing(100, 100, plot.title);
    svg::draw(drawing, plot, {0, 0, 100, 100});
    const std::string file = drawing.file();
    CHECK(count_of(file, "<polyline class=\"s0\"") == 2);
    CHECK(count_of(file, "<circle class=\"d0\"") == 4);
    CHECK(file.find("a &lt; b &amp; &quot;c&quot;") != std::string::npos);
    CHECK(file.find("a < b") == std::string::npos);
}

TEST_CASE("phases and head groups: a line for each pair of each group") {
    RopeParams rotation = rotation_of(4, 10000);
    rotation.head_groups = 2;
    rotation.phase = {0, 0.5, 0, 0, 0, 0, 0, -1.5};
    const std::vector<double> first = rotation.inv_freq;
    for (const double frequency : first) rotation.inv_freq.push_back(frequency / 2);
    const Explanation explanation = explain(rotation);
    REQUIRE(explanation.pairs.size() == 8);
    CHECK(!explanation.knows_unscaled);
    CHECK(explanation.pairs[7].pair == 3);
    CHECK(explanation.pairs[7].group == 1);
    CHECK(explanation.pairs[7].second == 7);
    CHECK(explanation.pairs[7].phase == -1.5);
    CHECK(explanation.pairs[5].inv_freq == first[1] / 2);
    CHECK(joint_frequencies(rotation) == first);
    const std::string text = text_of(explanation, true);
    for (const char* words : {"groups 2 Q", "-1.5 0.5 6 8", "j + 4", "factored_texture"})
        CHECK_MESSAGE(test::names(text, words), words);
    CHECK(count_of(text, "\n    3  3, 7") == 2);
    CHECK(json_of(explanation)["head_groups"] == 2);
    CHECK(json_of(explanation)["pairs"][7]["phase"] == -1.5);
    CHECK(json_of(explanation)["pairs"][7]["head_group"] == 1);
}

TEST_CASE("a sum over axes: a line for each axis that turns a pair") {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 4;
    rotation.sections.axes = 3;
    rotation.sections.order = VKROPE_SECTIONS_SUM;
    rotation.inv_freq = {1, 0, 0.5, 0, 0, 0};  // [axes, pairs]: pair 1 does not turn
    const Explanation explanation = explain(rotation);
    REQUIRE(explanation.pairs.size() == 3);
    CHECK(explanation.pairs[0].axis == 0);
    CHECK(explanation.pairs[1].axis == 1);
    CHECK(explanation.pairs[1].pair == 0);
    CHECK(explanation.pairs[2].pair == 1);
    CHECK(explanation.pairs[2].inv_freq == 0);
    CHECK(joint_frequencies(rotation) == std::vector<double>{1.5, 0});
    const std::string text = text_of(explanation, false);
    CHECK(test::names(text, "3 for each token"));
    CHECK(test::names(text, "2 of 3 frequencies"));
}

TEST_CASE("the picture of several axes: frequencies by axis") {
    RopeParams rotation = rotation_of(8, 10000);
    rotation.sections = {VKROPE_SECTIONS_SEQUENTIAL, 2, {4, 4}, 0};
    const std::string picture = svg_of(explain(rotation));
    CHECK(count_of(picture, ">axis 0<") == 1);
    CHECK(count_of(picture, ">axis 1<") == 1);
}
