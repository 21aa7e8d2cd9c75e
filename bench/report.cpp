// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "io/svg.hpp"
#include "results.hpp"

namespace vkrope::bench {
namespace {

namespace svg = tools::svg;

// On a narrow screen the table becomes a list in which each row shows its name, then its figures,
// then its bar.
constexpr const char* style = R"(
:root{color-scheme:light dark;--paper:#ffffff;--ink:#222222;--quiet:#555555;--line:#e2e2e2;
--bar:#0072b2;--other:#9a9a9a;--roof:#b00020}
@media (prefers-color-scheme:dark){:root{--paper:#14171a;--ink:#e8e8e8;--quiet:#a8a8a8;
--line:#33383d;--bar:#56b4e9;--other:#7c7c7c;--roof:#ff6b7d}}
body{margin:0 auto;max-width:64rem;padding:1rem;background:var(--paper);color:var(--ink);
font:1rem/1.45 sans-serif}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}
p,dt{color:var(--quiet)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dd{margin:0;
overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child,.words{text-align:left}
.bar{width:100%;min-width:6rem}
.bar svg{display:block;width:100%;height:.9rem}
.fill{fill:var(--bar)}.other{fill:var(--other)}.limit{stroke:var(--roof);stroke-width:2;
vector-effect:non-scaling-stroke}
.key{padding:0 .5em;color:var(--paper);background:var(--bar)}.key.other{background:var(--other)}
.loss{color:var(--roof)}
figure{margin:1rem 0;overflow-x:auto}figure svg{display:block;width:100%;min-width:28rem;
height:auto}
@media (max-width:50rem){
tr{display:grid;grid-template-columns:repeat(4,1fr);border-bottom:1px solid var(--line);
padding:.25rem 0}
th,td{border:0;padding:.1rem .25rem}th,td:first-child,.words{white-space:normal;
overflow-wrap:anywhere}
td:first-child,.bar{grid-column:1/-1}th:first-child,th.bar{display:none}.words{grid-column:span 2}
.bar{width:auto}
}
)";

std::string time_text(double ns) {
    if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
    if (ns < 1e6) return fmt::format("{:.1f} µs", ns / 1e3);
    return fmt::format("{:.2f} ms", ns / 1e6);
}

/// Returns the name without its first part, which is in the heading.
std::string rest_of(const std::string& name) {
    return name.substr(name.find('/') + 1);
}

std::vector<Measured> those_of(const std::vector<Measured>& results, std::string_view prefix) {
    std::vector<Measured> found;
    std::copy_if(results.begin(), results.end(), std::back_inserter(found),
                 [&](const Measured& result) { return result.name.starts_with(prefix); });
    return found;
}

/// Returns the share that a full bar stands for in all bars of a table: the largest share, but at
/// least 1.25, so that the roof line is not at the edge.
double full_bar(const std::vector<Measured>& results) {
    double full = 1.25;
    for (const Measured& result : results) {
        const double roof = result.counter("roof");
        full = std::max({full, roof, roof * result.counter("vkrope_speedup")});
    }
    return full;
}

/// Returns a bar for the share of the roof, which is drawn as a line; for a rival also a bar for
/// vkrope below it.
std::string bar_cell(const Measured& result, double full) {
    const double share = result.counter("roof"), ours = share * result.counter("vkrope_speedup");
    const auto rect = [&](const char* look, double part, int y, int height) {
        return fmt::format("<rect class=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"/>", look, y,
                           part / full * 100, height);
    };
    const std::string says = ours > 0 ? fmt::format("{:.0f} % of the roof, vkrope {:.0f} %",
                                                    share * 100, ours * 100)
                                      : fmt::format("{:.0f} % of the roof", share * 100);
    const std::string rects = ours > 0 ? rect("other", share, 0, 5) + rect("fill", ours, 5, 5)
                                       : rect("fill", share, 0, 10);
    return fmt::format(
        "<td class=\"bar\"><svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"{0}\">{1}"
        "<line class=\"limit\" x1=\"{2:.2f}\" y1=\"0\" x2=\"{2:.2f}\" y2=\"10\"/></svg></td>",
        says, rects, 100 / full);
}

/// A column: a heading, and a counter of the row or one of the words below.
struct Column {
    const char *head, *shows;
};
constexpr Column row_time = {"time", "time"}, rate = {"GB/s", "rate"},
                 share = {"of the roof", "share"}, bar = {"", "bar"},
                 speedup = {"vkrope", "vkrope_speedup"};

std::string cell_of(const Measured& result, std::string_view shows, double full) {
    if (shows == "bar") return bar_cell(result, full);
    if (shows == "label") return "<td class=\"words\">" + svg::escaped(result.label) + "</td>";
    if (shows == "time") return "<td>" + time_text(result.ns) + "</td>";
    if (shows == "rate")
        return fmt::format("<td>{:.2f}</td>", result.counter("bytes_per_second") / 1e9);
    if (shows == "share") return fmt::format("<td>{:.0f} %</td>", result.counter("roof") * 100);
    const double number = result.counter(std::string(shows));
    if (shows == "passes") return fmt::format("<td>{:.0f}</td>", number);
    if (number == 0) return "<td></td>";
    const bool loss = number < 1 && shows != "vkrope_over_empty";
    return fmt::format("<td{}>{:.2f} x</td>", loss ? " class=\"loss\"" : "", number);
}

/// A table with one row for each result whose name begins with `prefix`.
struct Table {
    const char *prefix, *heading, *what;
    std::vector<Column> columns;
};

std::string section(const Table& table, const std::vector<Measured>& all) {
    const std::vector<Measured> results = those_of(all, table.prefix);
    if (results.empty()) return {};
    std::string html = fmt::format("<section>\n<h2>{}</h2>\n", table.heading);
    if (*table.what != 0) html += fmt::format("<p>{}</p>\n", table.what);
    html += "<table>\n<thead><tr><th>row</th>";
    for (const auto& [head, shows] : table.columns) {
        const std::string_view of = shows;
        html += fmt::format("<th{}>{}</th>",
                            of == "bar"     ? " class=\"bar\""
                            : of == "label" ? " class=\"words\""
                                            : "",
                            head);
    }
    html += "</tr></thead>\n<tbody>\n";
    for (const Measured& result : results) {
        html += fmt::format("<tr><td>{}</td>", svg::escaped(rest_of(result.name)));
        for (const Column& column : table.columns)
            html += cell_of(result, column.shows, full_bar(results));
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table>\n</section>\n";
}

const std::vector<Column> over_fused = {row_time,
                                        rate,
                                        share,
                                        {"passes", "passes"},
                                        {"over them", "passes_over_fused"},
                                        {"with products", "products_over_fused"},
                                        {"ggml's way", "ggml_over_fused"}};
const Table tables_before_plots[] = {
    {"rope/",
     "vkrope and the roof",
     "Bytes read and written a second, against the fastest shader that copies as many bytes on "
     "this device, timed alternately: the red line, 100 %. In place only rotated channels count. "
     "Medians.",
     {row_time, rate, share, bar}},
    {"rival/",
     "Rivals",
     "<span class=\"key other\">rival</span> The same rotation as other libraries do it, in "
     "shaders "
     "of this project, and (unfused) vkrope's Q and K one after the other. <span "
     "class=\"key\">vkrope</span> By default, timed alternately with each of them; the column says "
     "how many times as fast it is, and less than 1 is a loss. They are not the originals; ggml's "
     "alone was measured, on two cores, 32 heads of 128: 1.9 GB/s in f32 and 0.9 in f16 on "
     "lavapipe 26.2.6, and 0.05 and 0.02 on lavapipe 22.3.6, which runs only invocations along x "
     "in step, where ggml's workgroups have one. The row ggml has such workgroups, ggml_along_x "
     "has full ones. A rival far below its original says nothing about the original.",
     {row_time, rate, share, speedup, bar}},
    {"ops/", "From the projection to the cache",
     "Norms, rotation and the store of K and V in one dispatch. The last columns say how many "
     "times as long other ways take, timed alternately: the passes that it replaces, and those of "
     "ggml's backend.",
     over_fused},
    {"cache/", "To a quantised cache",
     "The same with Hadamard transforms, which graph engines compute as passes or as matrix "
     "products.",
     over_fused},
    {"cpu/",
     "Without a GPU",
     "Plain loops on all cores of the processor, and how many times as fast vkrope is, timed "
     "alternately; less than 1 is a loss. f16 is converted by integers here, though many "
     "processors could do it.",
     {row_time, rate, speedup}}};
const Table tables_after_plots[] = {
    {"copy/",
     "The roof",
     "The fastest copy shader for the bytes of each shape.",
     {row_time, rate, {"shader", "label"}}},
    {"copy_buffer/",
     "vkCmdCopyBuffer",
     "The same bytes by the copy command.",
     {row_time, rate, share, bar}},
    {"empty/",
     "An empty dispatch",
     "As many workgroups, of the same size, that find nothing to do; and vkrope's time over "
     "theirs.",
     {row_time, {"vkrope", "vkrope_over_empty"}}},
    {"host/", "On the host", "", {row_time}}};

/// Returns a drawing without the XML declaration, for use inside a page.
std::string inlined(const svg::Drawing& drawing) {
    const std::string file = drawing.file();
    return "<figure>\n" + file.substr(file.find("<svg")) + "</figure>\n";
}

std::string growth_plot(const std::vector<Measured>& results, std::string_view prefix,
                        const std::string& title, const std::string& unit) {
    svg::Series series{.label = "vkrope", .points = {}, .dots = true};
    svg::Series roof{.label = "the roof", .points = {}, .dots = true};
    std::vector<double> x, y;
    for (const Measured& result : those_of(results, prefix)) {
        const double tokens = result.counter("tokens_per_second");
        if (tokens <= 0) continue;
        series.points.push_back(
            {std::strtod(result.name.c_str() + prefix.size(), nullptr), 1e9 / tokens});
        x.push_back(series.points.back().x);
        y.push_back(series.points.back().y);
        if (const double part = result.counter("roof"); part > 0) {
            roof.points.push_back({x.back(), y.back() * part});
            y.push_back(y.back() * part);
        }
    }
    if (series.points.size() < 2) return {};
    svg::Drawing drawing(640, 360, title);
    svg::Plot plot{.title = title,
                   .x = svg::axis_over(unit, svg::Scale::logarithmic, x),
                   .y = svg::axis_over("ns a token", svg::Scale::logarithmic, y),
                   .series = {series, roof},
                   .bounds = {}};
    svg::draw(drawing, plot, {10, 10, 620, 340});
    return inlined(drawing);
}

}  // namespace

std::string html_report(const std::vector<Measured>& results,
                        const std::vector<std::pair<std::string, std::string>>& context) {
    std::string title = "RoPE on";
    for (const char* const part : {"device", "date"}) {
        for (const auto& [name, value] : context) {
            if (name == part) title += (name == "date" ? ", " : " ") + svg::escaped(value);
        }
    }
    if (context.empty()) title = "vkrope-bench";
    std::string html = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\"/>\n<title>{1}</title>\n"
        "<style>{0}</style>\n</head>\n<body>\n<h1>{1}</h1>\n<dl>\n",
        style, title);
    for (const auto& [name, value] : context)
        html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", svg::escaped(name), svg::escaped(value));
    html += "</dl>\n";
    for (const Table& table : tables_before_plots) html += section(table, results);
    const std::string plots =
        growth_plot(results, "growth/tokens/", "Time a token by tokens: 32 and 8 heads of 128, f16",
                    "tokens") +
        growth_plot(results, "growth/tokens_of_one_head/",
                    "Time a token by tokens: one head of 128, f16", "tokens") +
        growth_plot(results, "growth/heads/",
                    "Time a token by heads: 4096 tokens, heads of 128, f16", "heads");
    if (!plots.empty()) html += "<section>\n<h2>How cost grows</h2>\n" + plots + "</section>\n";
    for (const Table& table : tables_after_plots) html += section(table, results);
    return html + "</body>\n</html>\n";
}

}  // namespace vkrope::bench
