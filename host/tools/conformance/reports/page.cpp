// SPDX-License-Identifier: MIT
#include "conformance/reports/page.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "conformance/report.hpp"
#include "conformance/reports/html.hpp"
#include "conformance/suite.hpp"
#include "io/svg.hpp"

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
        if (!groups.contains(name)) order.push_back(name);
        GroupRow& row = groups[name];
        ++row.of[check.at("status").get<std::string>()];
        row.seconds += check.at("seconds").get<double>();
        if (!check.at("max_u").is_null())
            row.u = std::max(row.u.value_or(0), check.at("max_u").get<double>());
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
        if (repeat.empty()) continue;
        items += fmt::format("<li>{} {}: {}<br/><code>{}</code></li>\n",
                             html::mark(check.at("status").get<std::string>(), "bad"),
                             word(check, "id"), word(check, "reason"), html::text(repeat));
    }
    return items.empty() ? "" : "<h3>Failures</h3>\n<ul>\n" + items + "</ul>\n";
}

// Draws error against position, one line for each source, and the used part of each bound.
std::string errors_figure(const Json& device) {
    std::vector<double> positions, values;
    svg::Plot plot = {
        .title = "Error against position, f32", .x = {}, .y = {}, .series = {}, .bounds = {}};
    std::vector<std::vector<std::string>> used;
    std::vector<Json> curves;
    for (const Json& check : device.at("cases"))
        if (check.contains("curves"))
            curves.insert(curves.end(), check.at("curves").begin(), check.at("curves").end());
    for (const Json& line : curves) {
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
    if (positions.empty()) return {};
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
    for (const char* kind : {"properties", "limits"}) {
        for (const auto& [name, value] : device.at(kind).items()) {
            std::string spaced = name;
            std::replace(spaced.begin(), spaced.end(), '_', ' ');
            add(kind == std::string("limits") ? "limit: " + spaced : spaced, value);
        }
    }
    for (const Json& tool : device.at("tools")) add("tool", tool.at("name"));
    return "<h3>Device</h3>\n" + html::facts(pairs);
}

std::string all_counts(const Json& device) {
    std::string counts;
    for (const Verdict verdict : verdicts) {
        std::size_t count = 0;
        for (const Json& check : device.at("cases"))
            count += check.at("status") == word_for(verdict) ? 1 : 0;
        if (count > 0)
            counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, word_for(verdict));
    }
    return counts.empty() ? "-" : counts;
}

// A device of a report, with the keys for sorting.
struct Entry {
    std::string name, driver, date;
    const Json* device;
    const NamedReport* from;
};

std::vector<Entry> entries_of(const std::vector<NamedReport>& reports) {
    std::vector<Entry> entries;
    for (const NamedReport& named : reports) {
        for (const Json& device : named.report.at("devices")) {
            entries.push_back({.name = device.at("name").get<std::string>(),
                               .driver = device.at("driver").get<std::string>(),
                               .date = named.report.at("date").get<std::string>(),
                               .device = &device,
                               .from = &named});
        }
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.name, b.date, a.driver) < std::tie(b.name, a.date, b.driver);
    });
    return entries;
}

}  // namespace

std::string page_of(const std::vector<NamedReport>& reports) {
    std::vector<std::vector<std::string>> rows;
    std::string sections;
    for (const Entry& entry : entries_of(reports)) {
        const Json& device = *entry.device;
        const Json& report = entry.from->report;
        const std::string reason = word(device, "verdict_reason");
        const std::string system = report.contains("system") ? word(report, "system") : "-";
        rows.push_back({html::text(entry.name), html::text(entry.driver), system,
                        html::text(entry.date),
                        verdict_mark(device) + (reason.empty() ? "" : ": " + reason),
                        all_counts(device), html::text(entry.from->name)});
        sections += html::section(
            entry.name,
            fmt::format("<p>{}, {}; vkrope {}, level {}</p>\n", html::text(entry.driver),
                        html::text(entry.date), word(report, "version"), word(report, "level")) +
                verdict_line(device) + failures_list(device) + groups_table(device) +
                errors_figure(device) + device_facts(device));
    }
    const std::string table = html::table(
        {"device", "driver", "system", "date", "verdict", "checks", "report"}, rows);
    return html::page("vkrope: devices and drivers", html::section("Verdicts", table) + sections);
}

}  // namespace vkrope::conformance
