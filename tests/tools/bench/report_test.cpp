// SPDX-License-Identifier: MIT
// Tests the page that --html writes: well-formed, without script, and safe for any device name.
#include <doctest/doctest.h>

#include "results.hpp"

namespace vkrope::bench {
namespace {

/// Returns the first error of well-formedness of a page; empty if there is none.
std::string unbalanced(const std::string& html) {
    std::vector<std::string> open;
    for (std::size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
        const std::size_t end = html.find('>', at);
        if (end == std::string::npos) return "a tag without an end";
        const std::string tag = html.substr(at + 1, end - at - 1);
        if (tag.find('<') != std::string::npos) return "a bare < before " + tag;
        if (tag.starts_with("!") || tag.ends_with("/")) continue;
        if (!tag.starts_with("/")) {
            open.push_back(tag.substr(0, tag.find(' ')));
        } else if (open.empty() || open.back() != tag.substr(1)) {
            return "</" + tag.substr(1) + "> closes " + (open.empty() ? "nothing" : open.back());
        } else {
            open.pop_back();
        }
    }
    return open.empty() ? "" : open.back() + " stays open";
}

Measured measured(const std::string& name, double ns) {
    return {name,
            "a <label> & \"more\"",
            ns,
            {{"bytes_per_second", 5e9},
             {"roof", 0.87},
             {"tokens_per_second", 1e9 / ns},
             {"vkrope_speedup", 6.25}}};
}

const std::vector<Measured> everything = {measured("rope/prefill/f32/computed/in_place", 1e6),
                                          measured("rival/ggml/prefill/f32", 6e6),
                                          measured("cpu/prefill/f32", 3e6),
                                          measured("copy/prefill/f32", 9e5),
                                          measured("copy_buffer/prefill/f32", 9e5),
                                          measured("growth/tokens/1", 2e4),
                                          measured("growth/tokens/4", 3e4),
                                          measured("growth/heads/1", 2e4),
                                          measured("growth/heads/2", 3e4),
                                          measured("empty/decode/f32", 700),
                                          measured("host/record/prefill", 900)};

}  // namespace

TEST_CASE("the page is well-formed and has no script, whatever was measured") {
    for (const std::vector<Measured>& results :
         {everything, {everything[0]}, {everything[5]}, {}}) {
        const std::string html = html_report(results,
                                             {{"device", "<script>alert(1)</script> & \"co\""}});
        CHECK(unbalanced(html) == "");
        for (const char* forbidden :
             {"<script", "<?xml", "href", "http://localhost", "@import", "url("}) {
            CAPTURE(forbidden);
            CHECK(html.find(forbidden) == std::string::npos);
        }
        CHECK(html.find("prefers-color-scheme:dark") != std::string::npos);
        CHECK(html.find("name=\"viewport\"") != std::string::npos);
    }
}

TEST_CASE(
    "the title has the device and the date; a faster rival is marked, and no bar ends "
    "outside its box") {
    const std::string html = html_report(
        {}, {{"device", "A & B"}, {"driver", "C"}, {"date", "2031-02-03 04:05"}});
    CHECK(html.find("<title>RoPE on A &amp; B, 2031-02-03 04:05</title>") != std::string::npos);
    CHECK(html.find("<h1>RoPE on A &amp; B, 2031-02-03 04:05</h1>") != std::string::npos);

    Measured rival = measured("rival/ggml/prefill/f32", 6e6);
    const char* const loss = "<td class=\"loss\">0.50 x</td>";
    CHECK(html_report({rival}, {}).find("class=\"loss\"") == std::string::npos);
    rival.counters["vkrope_speedup"] = 0.5;
    CHECK(html_report({rival}, {}).find(loss) != std::string::npos);

    // 4 times the speed of the roof fills the box, so the roof is at a quarter of the box.
    Measured fast = measured("copy_buffer/prefill/f32", 1e6);
    fast.counters = {{"roof", 4}};
    Measured slow = fast;
    slow.counters["roof"] = 0.5;
    const std::string bars = html_report({fast, slow}, {});
    for (const char* part : {"width=\"100.00\"", "width=\"12.50\"", "x1=\"25.00\""})
        CHECK(bars.find(part) != std::string::npos);
}

}  // namespace vkrope::bench
