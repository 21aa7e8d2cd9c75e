// SPDX-License-Identifier: MIT
// Tests the search for the fastest tuning with devices that are formulas, and what it prints.
#include "tune.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace vkrope::bench {
namespace {

bool same(const Tuning& a, const Tuning& b) {
    return a.lane_heads == b.lane_heads && a.group_lanes == b.group_lanes &&
           a.group_tokens == b.group_tokens;
}

// Returns 1 at the best value, less at the others; 0, the library's choice, is a bit worse.
double factor(std::uint32_t value, std::uint32_t best) {
    return value == 0 ? 0.9 : std::pow(0.8, std::fabs(std::log2(double(value) / best)));
}

// A device that is 1.25 times as fast as by default with the best tuning.
struct Formula {
    Tuning best;
    std::vector<Tuning> asked = {};

    std::optional<Tried> operator()(const Tuning& tuning, std::size_t) {
        asked.push_back(tuning);
        if (tuning.group_lanes != 0 && tuning.group_tokens * 16 > tuning.group_lanes)
            return std::nullopt;
        const double speedup = 1.25 * factor(tuning.lane_heads, best.lane_heads) *
                               factor(tuning.group_lanes, best.group_lanes) *
                               factor(tuning.group_tokens, best.group_tokens);
        return Tried{tuning, 1000 / speedup, speedup};
    }
};

Search search_on(Formula& device) {
    return search([&](const Tuning& tuning, std::size_t rounds) { return device(tuning, rounds); });
}

}  // namespace

TEST_CASE("the best tuning is found with few trials, each once but the last") {
    for (const Tuning& best :
         {Tuning{4, 128, 2}, Tuning{16, 1024, 32}, Tuning{1, 32, 1}, Tuning{8, 256, 16}}) {
        Formula device{best};
        const Search found = search_on(device);
        CHECK(same(found.tried[0].tuning, best));
        CHECK(found.tried[0].speedup == doctest::Approx(1.25));
        CHECK(std::is_sorted(found.tried.begin(), found.tried.end(),
                             [](const Tried& a, const Tried& b) { return a.speedup > b.speedup; }));
        CHECK(same(device.asked[0], {}));
        CHECK(found.tried.size() + found.refused == device.asked.size() - 5);
        CHECK(device.asked.size() < 80);
        for (std::size_t i = 0; i + 5 < device.asked.size(); ++i)
            for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(same(device.asked[i], device.asked[j]));
    }
}

TEST_CASE("refused tunings are counted, and a device that refuses all has none") {
    Formula device{{4, 32, 32}};
    const Search found = search_on(device);
    CHECK(found.refused > 0);
    for (const Tried& tried : found.tried)
        CHECK((tried.tuning.group_lanes == 0 ||
               tried.tuning.group_tokens * 16 <= tried.tuning.group_lanes));
    const Search none = search([](const Tuning&, std::size_t) { return std::nullopt; });
    CHECK(none.tried.empty());
    CHECK(none.refused > 20);
}

TEST_CASE("a tuning that was fast once by chance is not the fastest") {
    std::vector<Tuning> seen;
    const Search found = search([&](const Tuning& tuning, std::size_t rounds) {
        const bool again = std::any_of(seen.begin(), seen.end(),
                                       [&](const Tuning& other) { return same(tuning, other); });
        seen.push_back(tuning);
        CHECK(again == (rounds > 5));
        const bool lucky = !again && tuning.group_lanes == 256 && tuning.group_tokens == 0;
        const double speedup = lucky ? 2 : tuning.lane_heads == 4 ? 1.1 : 0.9;
        return std::optional<Tried>({tuning, 1000 / speedup, speedup});
    });
    CHECK(found.tried[0].speedup == doctest::Approx(1.1));
    CHECK(found.tried[0].tuning.lane_heads == 4);
}

TEST_CASE("the table and the JSON say what to write, if something is faster") {
    Tuned tuned{
        .row = "rope/a/f16", .label = "a model", .bytes = 8000, .roof_ns = 700, .default_ns = 1000};
    tuned.search = {{{{4, 0, 8}, 800, 1.25}, {{}, 1010, 0.99}}, 3};
    const std::string lines = table(tuned);
    CAPTURE(lines);
    CHECK(lines.find("rope/a/f16: a model\n") == 0);
    CHECK(lines.find("            4            0            8       0.80       10     "
                     "88     1.25\n") != std::string::npos);
    CHECK(lines.find("the fastest: info.tuning = {4, 0, 8};\n") != std::string::npos);
    CHECK(lines.find("2 tunings, 3 more refused") != std::string::npos);
    const auto parsed = nlohmann::json::parse(json(tuned, {}, "abc"));
    CHECK(parsed["to_paste"] == "info.tuning = {4, 0, 8};");
    CHECK(parsed["tunings"][0]["group_tokens"] == 8);
    CHECK(parsed["tunings"][1]["speedup"] == 0.99);
    CHECK(parsed["refused"] == 3);
    CHECK(parsed["commit"] == "abc");

    tuned.needs_gpu_mapping = true;
    CHECK(table(tuned).find("info.mapping = VKROPE_MAPPING_GPU; info.tuning = {4, 0, 8};") !=
          std::string::npos);
    tuned.search.tried[0].speedup = 1.01;
    CHECK(table(tuned).find("none is 2 % faster than the default") != std::string::npos);
    CHECK(nlohmann::json::parse(json(tuned, {}, ""))["to_paste"] == "");
}

}  // namespace vkrope::bench
