// SPDX-License-Identifier: MIT
#include "conformance/reports/page.hpp"

#include <algorithm>
#include <map>

#include "conformance/report.hpp"
#include "conformance/reports/bench_rows.hpp"
#include "conformance/reports/html.hpp"
#include "conformance/suite.hpp"
#include "files/svg.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
namespace svg = tools::svg;

std::string word(const Json& object, const char* key) {
    return html::text(object.at(key).get_ref<const std::string&>());
}

std::string verdict_mark(const Json& device) {
    const auto& verdict = device.at("verdict").get_ref<const std::string&>();
    return html::mark(verdict, verdict == conformant   ? "good"
                               : verdict == not_judged ? "none"
                                                       : "bad");
}

std::string verdict_line(const Json& device) {
    const std::string reason = word(device, "verdict_reason");
    return fmt::format("<p class=\"verdict\">{}{}{}</p>\n", verdict_mark(device),
                       reason.empty() ? "" : ": ", reason);
}

struct GroupRow {
    std::map<std::string, std::size_t> of = {};
    std::optional<double> u = {};
    double seconds = 0;
};

std::string groups_table(const Json& device) {
    std::vector<std::string> order;
    std::map<std::string, GroupRow> groups;
    for (const Json& check : device.at("cases")) {
        const auto& name = check.at("group").get_ref<const std::string&>();
        if (!groups.contains(name)) {
            order.push_back(name);
        }
        GroupRow& row = groups[name];
        ++row.of[check.at("status").get<std::string>()];
        row.seconds += check.at("seconds").get<double>();
        if (!check.at("max_u").is_null()) {
            row.u = std::max(row.u.value_or(0), check.at("max_u").get<double>());
        }
    }
    std::vector<std::vector<std::string>> rows;
    for (const std::string& name : order) {
        const GroupRow& row = groups[name];
        std::string counts;
        for (const auto& [status, count] : row.of) {
            const bool bad = status == word_for(Verdict::fail) ||
                             status == word_for(Verdict::unstable) ||
                             status == word_for(Verdict::error);
            counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count,
                                  bad ? html::mark(status, "bad") : html::text(status));
        }
        rows.push_back({html::text(name), counts, row.u ? fmt::format("{:.3f} u", *row.u) : "-",
                        fmt::format("{:.1f} s", row.seconds)});
    }
    return "<h3>Groups of checks</h3>\n" +
           html::table({"group", "checks", "largest error", "time"}, rows);
}

std::string failures_list(const Json& device) {
    std::string items;
    for (const Json& check : device.at("cases")) {
        const std::string& repeat = check.at("repeat").get_ref<const std::string&>();
        if (repeat.empty()) {
            continue;
        }
        items += fmt::format("<li>{} {}: {}<br/><code>{}</code></li>\n",
                             html::mark(check.at("status").get<std::string>(), "bad"),
                             word(check, "id"), word(check, "reason"), html::text(repeat));
    }
    return items.empty() ? "" : "<h3>Failures</h3>\n<ul>\n" + items + "</ul>\n";
}

/// Error against position, one line a source; and how much of its bound each uses.
std::string errors_figure(const Json& errors) {
    std::vector<double> positions, values;
    svg::Plot plot = {
        .title = "Error against position, f32", .x = {}, .y = {}, .series = {}, .bounds = {}};
    std::vector<std::vector<std::string>> used;
    for (const Json& line : errors) {
        svg::Series series = {
            .label = line.at("source").get<std::string>(), .points = {}, .dots = true};
        double largest = 0;
        for (const Json& point : line.at("points")) {
            const double x = point.at(0).get<double>() + 1, y = point.at(1).get<double>();
            series.points.push_back({x, y});
            positions.push_back(x);
            values.push_back(y);
            largest = std::max(largest, y);
        }
        const double bound = line.at("bound_u").get<double>();
        plot.bounds.push_back(
            {.label = svg::number_text(bound) + " u", .y = bound, .series = plot.series.size()});
        values.push_back(bound);
        used.push_back(
            {html::text(series.label), fmt::format("{:.3f} u", largest),
             fmt::format("{} u", svg::number_text(bound)),
             html::bar(largest / bound, fmt::format("{:.0f} %", 100 * largest / bound))});
        plot.series.push_back(std::move(series));
    }
    if (positions.empty()) {
        return {};
    }
    values.push_back(0);
    plot.x = svg::axis_over("position", svg::Scale::logarithmic, positions);
    plot.y = svg::axis_over("error in u", svg::Scale::linear, values);
    svg::Drawing drawing(760, 380, plot.title);
    svg::draw(drawing, plot, {.x = 10, .y = 10, .width = 740, .height = 360});
    return "<h3>Errors</h3>\n<figure>\n" + drawing.file() + "</figure>\n" +
           html::table({"angle source", "largest error", "bound", "bound used"}, used);
}

std::string device_facts(const Json& device) {
    std::vector<std::pair<std::string, std::string>> pairs = {
        {"driver", word(device, "driver")},
        {"Vulkan", word(device, "api_version")},
        {"kind", word(device, "type")}};
    const auto add = [&pairs](const std::string& name, const Json& value) {
        std::string text;
        if (value.is_array()) {
            for (const Json& item : value) {
                text += (text.empty() ? "" : ", ") +
                        (item.is_string() ? item.get<std::string>() : item.dump());
            }
        } else {
            text = value.is_string() ? value.get<std::string>() : value.dump();
        }
        pairs.emplace_back(name, html::text(text.empty() ? "none" : text));
    };
    if (const Json& facts = device.at("facts"); !facts.empty()) {
        add("vendor", facts.at("vendor"));
        add("features", facts.at("features"));
        for (const Json& choice : facts.at("choices")) {
            add(choice.at("kernel").get<std::string>(), choice.at("chosen").get<std::string>() +
                                                            "; " +
                                                            choice.at("why").get<std::string>());
        }
    }
    for (const auto& [name, value] : device.at("limits").items()) {
        std::string spaced = name;
        std::replace(spaced.begin(), spaced.end(), '_', ' ');
        add("limit: " + spaced, value);
    }
    for (const auto& [name, value] : device.at("properties").items()) {
        add("property: " + name, value);
    }
    for (const Json& tool : device.at("tools")) {
        add("tool", tool.at("name"));
    }
    return "<h3>Device</h3>\n" + html::facts(pairs);
}

std::string bench_table(const Json& device, const std::vector<Json>& benches) {
    for (const Json& bench : benches) {
        if (bench_device(bench) != device.at("name").get_ref<const std::string&>()) {
            continue;
        }
        std::vector<std::vector<std::string>> rows;
        for (const BenchRow& row : bench_rows(bench)) {
            rows.push_back({html::text(row.name), fmt::format("{:.1f} µs", row.ns / 1e3),
                            row.roof > 0
                                ? html::bar(row.roof, fmt::format("{:.0f} %", 100 * row.roof))
                                : "-"});
        }
        return "<h3>Speed</h3>\n<p>The roof is the fastest copy of the same bytes.</p>\n" +
               html::table({"row", "time", "share of the roof"}, rows);
    }
    return {};
}

}  // namespace

std::string page_of(const Json& report, const std::vector<Json>& benches, const std::string& log) {
    const Json& devices = report.at("devices");
    std::vector<std::vector<std::string>> summary;
    std::string sections;
    for (const Json& device : devices) {
        const std::string reason = word(device, "verdict_reason");
        summary.push_back(
            {word(device, "name"), verdict_mark(device), reason.empty() ? "-" : reason});
        std::string body = verdict_line(device) + failures_list(device) + groups_table(device);
        if (const Json& facts = device.at("facts"); !facts.empty()) {
            body += errors_figure(facts.at("errors"));
        }
        body += bench_table(device, benches) + device_facts(device);
        sections += html::section(device.at("name").get_ref<const std::string&>(), body);
    }
    std::string body = fmt::format("<p>vkrope {}, level {}, {}</p>\n", word(report, "version"),
                                   word(report, "level"), word(report, "date"));
    body += html::section("Verdicts", html::table({"device", "verdict", "reason"}, summary));
    body += sections;
    if (!log.empty()) {
        std::string lines;
        std::string_view rest = log;
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find('\n'), rest.size());
            lines += html::text(rest.substr(0, end)) + '\n';
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        body += html::section("Log", "<pre>" + lines + "</pre>\n");
    }
    return html::page("vkrope: report of a device test", body);
}

}  // namespace vkrope::conformance
