// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "svg.hpp"

namespace vkrope::bench {
namespace {

namespace svg = tools::svg;

constexpr const char* style = R"(
:root{color-scheme:light dark;--paper:#ffffff;--ink:#222222;--quiet:#555555;--line:#e2e2e2;--bar:#0072b2;--roof:#b00020}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e8e8e8;--quiet:#a8a8a8;--line:#33383d;--bar:#56b4e9;--roof:#ff6b7d}}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);color:var(--ink);font:1rem/1.45 sans-serif}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}
p,dt,caption{color:var(--quiet)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dd{margin:0;overflow-wrap:anywhere}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
td.bar{width:30%;min-width:6rem}
td.bar svg{display:block;width:100%;height:.9rem}
.fill{fill:var(--bar)}.limit{stroke:var(--roof);stroke-width:2}
figure{margin:1rem 0}figure svg{display:block;width:100%;height:auto}
)";

std::string escaped(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        switch (c) {
            case '<': safe += "&lt;"; break;
            case '>': safe += "&gt;"; break;
            case '&': safe += "&amp;"; break;
            case '"': safe += "&quot;"; break;
            default: safe += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        }
    }
    return safe;
}

std::string time_text(double ns) {
    if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6) return fmt::format("{:.1f} µs", ns / 1e3);
    return fmt::format("{:.2f} ms", ns / 1e6);
}

/// The name without its first part: what the heading says already.
std::string rest_of(const std::string& name) {
    return name.substr(name.find('/') + 1);
}

std::vector<Measured> those_of(const std::vector<Measured>& results, std::string_view prefix) {
    std::vector<Measured> found;
    std::copy_if(results.begin(), results.end(), std::back_inserter(found),
                 [&](const Measured& result) { return result.name.starts_with(prefix); });
    return found;
}

/// A bar of `share` of the roof, which stands at four fifths of the width: something may be above it.
std::string bar(double share) {
    const double width = std::clamp(share * 80, 0.0, 100.0);
    return fmt::format(
        "<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{0:.0f} % of the roof\">"
        "<rect class=\"fill\" width=\"{1:.1f}\" height=\"10\"/><line class=\"limit\" x1=\"80\" y1=\"0\" x2=\"80\" "
        "y2=\"10\"/></svg>",
        share * 100, width);
}

std::string cell(const std::string& text) {
    return "<td>" + text + "</td>";
}

/// A section: a table with a row for each result; nothing where there is none.
template <class Cells>
std::string table(std::string_view heading, std::string_view what, std::string_view head, const std::vector<Measured>& results,
                  const Cells& cells) {
    if (results.empty()) return {};
    std::string html =
        fmt::format("<section>\n<h2>{}</h2>\n<p>{}</p>\n<div class=\"scroll\">\n<table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
                    heading, what, head);
    for (const Measured& result : results) {
        html += fmt::format("<tr><td>{}</td>{}</tr>\n", escaped(rest_of(result.name)), cells(result));
    }
    return html + "</tbody>\n</table>\n</div>\n</section>\n";
}

std::string throughput_cells(const Measured& result) {
    const double share = result.counter("roof");
    return cell(time_text(result.ns)) + cell(fmt::format("{:.2f}", result.counter("bytes_per_second") / 1e9)) +
           cell(fmt::format("{:.0f} %", share * 100)) + "<td class=\"bar\">" + bar(share) + "</td>";
}

/// A drawing inside a page: without the line that only a file of its own has.
std::string inlined(const svg::Drawing& drawing) {
    const std::string file = drawing.file();
    return "<figure>\n" + file.substr(file.find("<svg")) + "</figure>\n";
}

std::string growth_plot(const std::vector<Measured>& results, std::string_view prefix, const std::string& title,
                        const std::string& unit) {
    svg::Series series{.label = "measured", .points = {}, .dots = true};
    std::vector<double> x, y;
    for (const Measured& result : those_of(results, prefix)) {
        const double tokens = result.counter("tokens_per_second");
        if (tokens <= 0) continue;
        series.points.push_back({std::strtod(result.name.c_str() + prefix.size(), nullptr), 1e9 / tokens});
        x.push_back(series.points.back().x);
        y.push_back(series.points.back().y);
    }
    if (series.points.size() < 2) return {};
    svg::Drawing drawing(640, 360, title);
    svg::Plot plot{.title = title,
                   .x = svg::axis_over(unit, svg::Scale::logarithmic, x),
                   .y = svg::axis_over("ns a token", svg::Scale::logarithmic, y),
                   .series = {series},
                   .bounds = {}};
    svg::draw(drawing, plot, {10, 10, 620, 340});
    return inlined(drawing);
}

}  // namespace

std::string html_report(const std::vector<Measured>& results, const std::vector<std::pair<std::string, std::string>>& context) {
    std::string html = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>vkrope-bench</title>\n"
        "<style>{}</style>\n</head>\n<body>\n<h1>vkrope-bench</h1>\n<dl>\n",
        style);
    for (const auto& [name, value] : context) html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
    html += "</dl>\n";
    constexpr const char* head = "<th>row</th><th>time</th><th>GB/s</th><th>of the roof</th><th></th>";
    html += table("vkrope and the roof",
                  "Bytes read and written a second, against the fastest shader that copies as many bytes on this device, timed "
                  "alternately: the line. Medians.",
                  head, those_of(results, "rope/"), throughput_cells);
    html += table(
        "Rivals",
        "The same rotation as other libraries do it, in shaders of our own writing, and vkrope's Q and K one after the other. "
        "The last column says how many times as fast vkrope is by default, timed alternately.",
        "<th>row</th><th>time</th><th>GB/s</th><th>of the roof</th><th></th><th>vkrope</th>", those_of(results, "rival/"),
        [](const Measured& result) {
            return throughput_cells(result) + cell(fmt::format("{:.2f} x", result.counter("vkrope_speedup")));
        });
    const auto rate = [](const Measured& result) {
        return cell(time_text(result.ns)) + cell(fmt::format("{:.2f}", result.counter("bytes_per_second") / 1e9));
    };
    html += table("Without a GPU", "Plain loops on all cores of the processor.", "<th>row</th><th>time</th><th>GB/s</th>",
                  those_of(results, "cpu/"), rate);
    const std::string plots =
        growth_plot(results, "growth/tokens/", "Time a token by tokens: 32 and 8 heads of 128, f16", "tokens") +
        growth_plot(results, "growth/heads/", "Time a token by heads: 4096 tokens, heads of 128, f16", "heads");
    if (!plots.empty()) html += "<section>\n<h2>How cost grows</h2>\n" + plots + "</section>\n";
    std::vector<Measured> copies = those_of(results, "copy/"), commands = those_of(results, "copy_buffer/");
    html += table("The roof", "The fastest copy shader for the bytes of each shape.",
                  "<th>row</th><th>time</th><th>GB/s</th><th>shader</th>", copies,
                  [&](const Measured& result) { return rate(result) + cell(escaped(result.label)); });
    html += table("vkCmdCopyBuffer", "The same bytes by the copy command.", head, commands, throughput_cells);
    html += table("On the host", "", "<th>row</th><th>time</th>", those_of(results, "host/"),
                  [](const Measured& result) { return cell(time_text(result.ns)); });
    return html + "</body>\n</html>\n";
}

}  // namespace vkrope::bench
