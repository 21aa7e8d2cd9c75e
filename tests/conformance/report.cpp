// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <algorithm>

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

struct Counts {
    std::size_t of[std::size(verdicts)] = {};
    double seconds = 0;
};

/// Groups in the order in which they ran.
std::vector<std::pair<std::string, Counts>> counts_of(const DeviceReport& device) {
    std::vector<std::pair<std::string, Counts>> groups;
    for (const CheckReport& check : device.checks) {
        if (groups.empty() || groups.back().first != check.group) {
            groups.emplace_back(check.group, Counts{});
        }
        Counts& counts = groups.back().second;
        ++counts.of[static_cast<std::size_t>(check.outcome.verdict)];
        counts.seconds += check.outcome.seconds;
    }
    return groups;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& number) {
    return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string line_of(const CheckReport& check) {
    const Outcome& outcome = check.outcome;
    std::string line = fmt::format("{:<11}  {}", word_for(outcome.verdict), check.id);
    const auto add = [&line](const std::optional<double>& number, const char* unit) {
        line += number ? fmt::format("  {:.3g}{}", *number, unit) : "";
    };
    add(outcome.max_error, "");
    add(outcome.max_u, " u");
    add(outcome.max_ulp, " ULP");
    line += outcome.reason.empty() ? "" : "  " + outcome.reason;
    std::replace_if(
        line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
    return line + '\n';
}

std::string table_of(const Report& report) {
    std::size_t width = 5;
    for (const DeviceReport& device : report) {
        for (const CheckReport& check : device.checks) {
            width = std::max(width, check.group.size());
        }
    }
    std::string table;
    for (const DeviceReport& device : report) {
        table += fmt::format("\n{}, {}\n{:<{}}", device.device.name, device.device.driver, "group", width);
        for (const Verdict verdict : verdicts) {
            table += fmt::format("  {:>11}", word_for(verdict));
        }
        table += fmt::format("  {:>9}\n", "time");
        for (const auto& [group, counts] : counts_of(device)) {
            table += fmt::format("{:<{}}", group, width);
            for (const std::size_t count : counts.of) {
                table += fmt::format("  {:>11}", count);
            }
            table += fmt::format("  {:>7.2f} s\n", counts.seconds);
        }
    }
    return table;
}

nlohmann::ordered_json json_of(const Report& report, bool with_uuid) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    for (const DeviceReport& device : report) {
        nlohmann::ordered_json cases = nlohmann::ordered_json::array();
        for (const CheckReport& check : device.checks) {
            nlohmann::ordered_json entry = {{"id", check.id},
                                            {"status", word_for(check.outcome.verdict)},
                                            {"max_error", number_or_null(check.outcome.max_error)},
                                            {"reason", check.outcome.reason}};
            if (check.outcome.max_u) {
                entry["max_u"] = *check.outcome.max_u;
            }
            if (check.outcome.max_ulp) {
                entry["max_ulp"] = *check.outcome.max_ulp;
            }
            cases.push_back(std::move(entry));
        }
        nlohmann::ordered_json entry = {{"name", device.device.name}, {"driver", device.device.driver}};
        if (with_uuid) {
            entry["uuid"] = device.device.uuid;
        }
        entry["cases"] = std::move(cases);
        devices.push_back(std::move(entry));
    }
    return {{"devices", std::move(devices)}};
}

std::string sentence_of(const Report& report) {
    std::size_t of[std::size(verdicts)] = {}, all = 0;
    for (const DeviceReport& device : report) {
        for (const CheckReport& check : device.checks) {
            ++of[static_cast<std::size_t>(check.outcome.verdict)];
            ++all;
        }
    }
    std::string sentence = fmt::format("of {} checks", all);
    for (const Verdict verdict : verdicts) {
        const std::size_t count = of[static_cast<std::size_t>(verdict)];
        sentence += count > 0 ? fmt::format(", {} {}", count, word_for(verdict)) : "";
    }
    return sentence;
}

ExitCode exit_of(const Report& report) noexcept {
    std::size_t good = 0;
    bool failed = false, lost = false, out_of_memory = false, erred = false;
    for (const DeviceReport& device : report) {
        for (const CheckReport& check : device.checks) {
            const Outcome& outcome = check.outcome;
            const bool error = outcome.verdict == Verdict::error;
            good += outcome.verdict == Verdict::pass || outcome.verdict == Verdict::computed ? 1 : 0;
            failed = failed || outcome.verdict == Verdict::fail;
            erred = erred || error;
            lost = lost || (error && outcome.exit == ExitCode::device_failed);
            out_of_memory = out_of_memory || (error && outcome.exit == ExitCode::out_of_memory);
        }
    }
    // What a script should act on first comes first: nothing that a lost device says counts.
    return lost            ? ExitCode::device_failed
           : out_of_memory ? ExitCode::out_of_memory
           : failed        ? ExitCode::verification_failed
           : erred         ? ExitCode::bad_file
           : good == 0     ? ExitCode::verification_failed
                           : ExitCode::success;
}

}  // namespace vkrope::conformance
