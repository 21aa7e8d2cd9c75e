// SPDX-License-Identifier: MIT
#include "conformance/table.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "conformance/report.hpp"
#include "conformance/reports/input_file.hpp"
#include "conformance/suite.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "shell/terminal.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
using tools::printable;

/// The cells of one device, keyed by the name of their row.
using Column = std::map<std::string, std::string>;

struct Counts {
    std::map<std::string, std::size_t> of = {};
    double seconds = 0;
};

/// "12 pass", "3 pass, 2 unsupported"; failures are highlighted.
std::string cell_of(const Counts& counts) {
    std::string cell;
    for (const Verdict verdict : verdicts) {
        const auto found = counts.of.find(word_for(verdict));
        if (found == counts.of.end()) {
            continue;
        }
        const char* word = verdict == Verdict::fail          ? "FAIL"
                           : verdict == Verdict::unstable    ? "UNSTABLE"
                           : verdict == Verdict::error       ? "ERROR"
                           : verdict == Verdict::unsupported ? "unsup."
                                                             : word_for(verdict);
        cell += fmt::format("{}{} {}", cell.empty() ? "" : ", ", found->second, word);
    }
    return cell;
}

std::string until_semicolon(const std::string& text) {
    return text.substr(0, text.find(';'));
}

/// Rows in the order of the reports.
struct Rows {
    std::vector<std::string> names;
    std::set<std::string> known;

    void add(const std::string& name) {
        if (known.insert(name).second) {
            names.push_back(name);
        }
    }
};

Column column_of(const Json& device, Rows& groups) {
    std::map<std::string, Counts> counts;
    double seconds = 0;
    std::optional<double> u;
    for (const Json& check : device.at("cases")) {
        const auto group = printable(check.at("group").get<std::string>());
        groups.add(group);
        ++counts[group].of[check.at("status").get<std::string>()];
        seconds += check.at("seconds").get<double>();
        if (!check.at("max_u").is_null()) {
            u = std::max(u.value_or(0), check.at("max_u").get<double>());
        }
    }
    Column column;
    for (const auto& [group, count] : counts) {
        column[group] = cell_of(count);
    }
    const Json& properties = device.at("properties");
    if (u) {
        column["largest error"] = fmt::format("{:.3f} u", *u);
    }
    column["subnormals of f32"] = printable(properties.at("subnormals").get<std::string>());
    column["rounding of f32"] = printable(properties.at("rounding").get<std::string>());
    column["specials of f32"] = printable(properties.at("specials").get<std::string>());
    column["f16 it converts"] = printable(until_semicolon(properties.at("f16").get<std::string>()));
    column["bits of a NaN"] = printable(until_semicolon(properties.at("nan").get<std::string>()));
    column["seconds"] = fmt::format("{:.1f}", seconds);
    column["verdict"] = printable(device.at("verdict").get<std::string>());
    return column;
}

}  // namespace

std::string table_of(const Json& devices, const std::vector<MissingDevice>& missing) {
    Rows groups;
    std::vector<Column> columns;
    std::string text = "\n";
    for (const Json& device : devices) {
        columns.push_back(column_of(device, groups));
        const auto word = [&device](const char* key) {
            return printable(device.at(key).get<std::string>());
        };
        text += fmt::format(
            "{:>3}  {}; {}; Vulkan {}, subgroups of {}\n", columns.size(), word("name"),
            word("driver"), word("api_version"),
            device.at("limits").at("subgroup_size").get_ref<const Json::number_unsigned_t&>());
        for (const Json& tool : device.at("tools")) {
            text += fmt::format(
                "       with {} {}{}\n", printable(tool.at("name").get<std::string>()),
                printable(tool.at("version").get<std::string>()),
                tool.at("alters_features").get<bool>() ? ", which alters features" : "");
        }
    }
    for (const MissingDevice& device : missing) {
        text += fmt::format("  -  {}: not run: {}\n", printable(device.name),
                            printable(device.reason));
    }
    if (columns.empty()) {
        return text;
    }
    std::vector<std::string> rows = std::move(groups.names);
    rows.insert(rows.end(),
                {"largest error", "subnormals of f32", "rounding of f32", "specials of f32",
                 "bits of a NaN", "f16 it converts", "seconds", "verdict"});
    std::size_t width = 0;
    for (const std::string& row : rows) {
        width = std::max(width, row.size());
    }
    std::vector<std::size_t> widths;
    std::string head = fmt::format("\n{:<{}}", "group", width);
    for (const Column& column : columns) {
        std::size_t widest = 1;
        for (const auto& [row, cell] : column) {
            widest = std::max(widest, cell.size());
        }
        widths.push_back(widest);
        head += fmt::format("  {:<{}}", widths.size(), widest);
    }
    const auto line_of = [](const std::string& cells) {
        return cells.substr(0, cells.find_last_not_of(' ') + 1) + '\n';
    };
    text += line_of(head);
    for (const std::string& row : rows) {
        std::string line = fmt::format("{:<{}}", row, width);
        for (std::size_t i = 0; i < columns.size(); ++i) {
            const auto cell = columns[i].find(row);
            line += fmt::format("  {:<{}}", cell == columns[i].end() ? "-" : cell->second,
                                widths[i]);
        }
        text += line_of(line);
    }
    text += '\n';
    std::size_t number = 0;
    for (const Json& device : devices) {
        const auto reason = printable(device.at("verdict_reason").get<std::string>());
        text += fmt::format("{:>3}  {}{}{}\n", ++number,
                            printable(device.at("verdict").get<std::string>()),
                            reason.empty() ? "" : ": ", reason);
    }
    return text;
}

namespace {

/// Rejects an unknown status, which would be neither good nor bad.
void check_statuses(const std::string& option, const std::string& file, const Json& devices) {
    for (const Json& device : devices) {
        for (const Json& check : device.at("cases")) {
            const auto status = check.at("status").get<std::string>();
            const bool known = std::any_of(
                std::begin(verdicts), std::end(verdicts),
                [&status](Verdict verdict) { return status == word_for(verdict); });
            if (!known) {
                tools::fail(tools::ExitCode::bad_file,
                            "{}: '{}': the check '{}' has the status '{}', which is not a "
                            "known status",
                            option, file, shown_key(check.at("id").get<std::string>()),
                            shown_key(status));
            }
        }
    }
}

void check_verdicts(const std::string& option, const std::string& file, const Json& devices) {
    for (const Json& device : devices) {
        const auto verdict = device.at("verdict").get<std::string>();
        if (std::find(std::begin(device_verdicts), std::end(device_verdicts), verdict) ==
            std::end(device_verdicts)) {
            tools::fail(
                tools::ExitCode::bad_file,
                "{}: '{}': the device '{}' has the verdict '{}', which is not a known verdict",
                option, file, shown_key(device.at("name").get<std::string>()), shown_key(verdict));
        }
    }
}

}  // namespace

void check_words(const std::string& option, const std::string& file, const Json& devices) {
    check_statuses(option, file, devices);
    check_verdicts(option, file, devices);
}

Json read_devices(const std::string& file) {
    const std::string content = content_of("--table", file, max_json_bytes);
    const auto is_none = [&file](const char* why) {
        tools::fail(tools::ExitCode::bad_file,
                    "--table: '{}' is not a report of vkrope-conformance --json{}{}", file,
                    *why == '\0' ? "" : ": ", why);
    };
    Json devices;
    try {
        devices = Json(parse_json(content)).at("devices");
        static_cast<void>(table_of(devices));  // accesses all fields that it needs
        check_words("--table", file, devices);
    } catch (const ImportError& problem) {
        is_none(static_cast<const char*>(problem.status.what));
    } catch (const nlohmann::json::exception&) {
        is_none("");
    }
    return devices;
}

std::string shortfall_of(const Json& devices) {
    std::string unchecked;
    std::size_t number = 0;
    for (const Json& device : devices) {
        ++number;
        std::size_t good = 0, waived = 0;
        std::string bad;  // the first check that is a failure of the run
        for (const Json& check : device.at("cases")) {
            const auto status = check.at("status").get<std::string>();
            for (const Verdict verdict : verdicts) {
                if (status != word_for(verdict)) {
                    continue;
                }
                good += is_good(verdict) ? 1 : 0;
                waived += verdict == Verdict::waived ? 1 : 0;
                if (is_bad(verdict) && bad.empty()) {
                    bad = check.at("id").get<std::string>();
                }
            }
        }
        const auto verdict = device.at("verdict").get<std::string>();
        // A waiver leaves the verdict as it is, but not what the run ends with.
        const bool ended = device.contains("ends") && !device.at("ends").empty();
        const bool excused = waived > 0 && bad.empty() && !ended;
        if (verdict == unstable_device || (verdict == not_conformant && !excused)) {
            return fmt::format("device {} is {}", number, verdict);
        }
        if (!bad.empty()) {
            return fmt::format("device {} has failed: {}", number, shown_key(bad));
        }
        if (good == 0 && unchecked.empty()) {
            unchecked = fmt::format("on device {} nothing was checked", number);
        }
    }
    return number == 0 ? "nothing was checked, because there is no device" : unchecked;
}

}  // namespace vkrope::conformance
