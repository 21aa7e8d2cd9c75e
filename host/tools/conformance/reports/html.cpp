// SPDX-License-Identifier: MIT
#include "conformance/reports/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal.hpp"
#include "io/svg.hpp"

namespace vkrope::conformance::html {
namespace {

constexpr const char* style = R"(
:root{
color-scheme:light dark;--paper:#ffffff;--ink:#222222;--quiet:#555555;--line:#e2e2e2;
--bar:#0072b2;--good:#00694a;--bad:#b00020}
@media (prefers-color-scheme:dark){:root{
--paper:#14171a;--ink:#e8e8e8;--quiet:#a8a8a8;--line:#33383d;
--bar:#56b4e9;--good:#5fd6a8;--bad:#ff6b7d}}
body{margin:0 auto;max-width:64rem;padding:1rem;font:1rem/1.45 sans-serif}
body{background:var(--paper);color:var(--ink)}
h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem;margin-top:1.5rem}
h1,h2,h3,p,td,dd,li,pre{overflow-wrap:anywhere}
p,dt{color:var(--quiet)}.verdict{color:var(--ink);font-size:1.1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem}dd{margin:0}
table{border-collapse:collapse;width:100%}
th,td{padding:.25rem .5rem;text-align:left;vertical-align:top}
th,td{border-bottom:1px solid var(--line)}
pre{white-space:pre-wrap;max-height:30rem;overflow-y:auto;font-size:.85rem}
code{overflow-wrap:anywhere}
.good,.bad,.none{font-weight:bold}
.good{color:var(--good)}.bad{color:var(--bad)}.none{color:var(--quiet)}
.bar{display:block;min-width:6rem;height:.5rem;border:1px solid var(--line)}
.bar i{display:block;height:100%;background:var(--bar)}
figure{margin:1rem 0;overflow-x:auto}
figure svg{display:block;width:100%;min-width:34rem;height:auto}
@media (max-width:50rem){
dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}
thead{display:none}tr{display:block;border-bottom:1px solid var(--line);padding:.3rem 0}
td{display:block;border:0;padding:.1rem 0}
td::before{content:attr(data-head) ": ";color:var(--quiet)}
}
)";

}  // namespace

std::string text(std::string_view raw) {
    return tools::svg::escaped(tools::printable(raw));
}

std::string page(std::string_view title, std::string_view body) {
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n"
        "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<h1>{0}</h1>\n{2}</body>\n"
        "</html>\n",
        text(title), style, body);
}

std::string section(std::string_view heading, std::string_view body) {
    return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", text(heading), body);
}

std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows) {
    std::string html = "<table>\n<thead><tr>";
    for (const std::string& name : head) html += fmt::format("<th>{}</th>", text(name));
    html += "</tr></thead>\n<tbody>\n";
    for (const std::vector<std::string>& row : rows) {
        html += "<tr>";
        for (std::size_t i = 0; i < row.size(); ++i)
            html += fmt::format("<td data-head=\"{}\">{}</td>", text(head[i]), row[i]);
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table>\n";
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::string html = "<dl>\n";
    for (const auto& [name, value] : pairs)
        html += fmt::format("<dt>{}</dt><dd>{}</dd>\n", text(name), value);
    return html + "</dl>\n";
}

std::string mark(std::string_view word, std::string_view meaning) {
    return fmt::format("<span class=\"{}\">{}</span>", meaning, text(word));
}

std::string bar(double share, std::string_view says) {
    return fmt::format("{}<span class=\"bar\"><i style=\"width:{:.1f}%\"></i></span>", text(says),
                       std::clamp(share, 0.0, 1.0) * 100);
}

}  // namespace vkrope::conformance::html
