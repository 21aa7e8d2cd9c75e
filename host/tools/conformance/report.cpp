// SPDX-License-Identifier: MIT
#include "conformance/report.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "cli/device_text.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"
#include "conformance/reports/input_file.hpp"

namespace vkrope::conformance {
namespace {

using tools::ExitCode;

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
    return tools::printable(line) + '\n';
}

DeviceVerdict verdict_of(const DeviceReport& device) {
    std::size_t of[std::size(verdicts)] = {};
    for (const CheckReport& check : device.checks) ++of[std::size_t(check.outcome.verdict)];
    const auto count = [&of](Verdict verdict) { return of[std::size_t(verdict)]; };
    if (!device.ends.empty()) {
        return {not_conformant,
                device.ends[0] + (device.ends.size() > 1
                                      ? fmt::format(", and {} more", device.ends.size() - 1)
                                      : "")};
    }
    // A waiver changes the exit code of a run, not the verdict on the device.
    if (const std::size_t waived = count(Verdict::waived); count(Verdict::fail) + waived > 0) {
        return {not_conformant,
                fmt::format("{} of {} checks failed{}", count(Verdict::fail) + waived,
                            device.checks.size(),
                            waived > 0 ? fmt::format(", {} of them waived", waived) : "")};
    }
    if (count(Verdict::unstable) > 0) {
        return {unstable_device, fmt::format("{} of {} checks gave different bits when repeated",
                                             count(Verdict::unstable), device.checks.size())};
    }
    if (count(Verdict::error) > 0) {
        return {not_judged, fmt::format("{} of {} checks could not be run", count(Verdict::error),
                                        device.checks.size())};
    }
    for (const Tool& tool : device.traits.tools)
        if (tool.alters_features)
            return {not_judged, tool.name + " reports that it alters the features of the device"};
    if (device.interrupted) {
        return {not_judged,
                fmt::format("the run was interrupted after {} checks", device.checks.size())};
    }
    if (!device.whole_suite || count(Verdict::pass) == 0)
        return {not_judged, "only a part of the suite ran"};
    return {conformant, count(Verdict::unsupported) > 0
                            ? fmt::format("{} checks unsupported", count(Verdict::unsupported))
                            : ""};
}

namespace {

nlohmann::ordered_json case_json(const CheckReport& check) {
    const Outcome& outcome = check.outcome;
    nlohmann::ordered_json json = {{"id", check.id},
                                   {"group", check.group},
                                   {"status", word_for(outcome.verdict)},
                                   {"max_error", number_or_null(outcome.max_error)},
                                   {"reason", outcome.reason},
                                   {"max_u", number_or_null(outcome.max_u)},
                                   {"max_ulp", number_or_null(outcome.max_ulp)},
                                   {"seconds", outcome.seconds},
                                   {"repeat", check.repeat}};
    if (!outcome.operation.empty()) json["operation"] = outcome.operation;
    for (const ErrorCurve& curve : outcome.curves) {
        json["curves"].push_back(
            {{"source", curve.source}, {"bound_u", curve.bound_u}, {"points", curve.points}});
    }
    return json;
}

nlohmann::ordered_json limits_json(const VkPhysicalDeviceLimits& limits, const Traits& traits) {
    return {{"storage_buffers_per_stage", limits.maxPerStageDescriptorStorageBuffers},
            {"storage_buffer_range", limits.maxStorageBufferRange},
            {"storage_buffer_offset_alignment", limits.minStorageBufferOffsetAlignment},
            {"image_side", limits.maxImageDimension2D},
            {"workgroups", limits.maxComputeWorkGroupCount},
            {"workgroup_invocations", limits.maxComputeWorkGroupInvocations},
            {"push_constant_bytes", limits.maxPushConstantsSize},
            {"subgroup_size", traits.subgroup_size}};
}

// Returns the date in UTC: "2026-01-31".
std::string today() {
    using namespace std::chrono;
    const year_month_day date = floor<days>(system_clock::now());
    return fmt::format("{}-{:02}-{:02}", int(date.year()), unsigned(date.month()),
                       unsigned(date.day()));
}

nlohmann::ordered_json device_entry(const DeviceReport& report, bool with_uuid) {
    nlohmann::ordered_json entry = tools::device_json(report.device);
    if (!with_uuid) entry.erase("uuid");
    entry["limits"] = limits_json(report.device.limits, report.traits);
    entry["properties"] = {{"vendor_id", report.traits.vendor_id},
                           {"device_id", report.traits.device_id},
                           {"driver_version", report.traits.driver_version},
                           {"features", report.traits.features},
                           {"subnormals", report.traits.subnormals},
                           {"rounding", report.traits.rounding},
                           {"specials", report.traits.specials},
                           {"nan", report.traits.nan},
                           {"f16", report.traits.f16}};
    entry["tools"] = nlohmann::ordered_json::array();
    for (const Tool& tool : report.traits.tools) {
        entry["tools"].push_back({{"name", tool.name},
                                  {"version", tool.version},
                                  {"alters_features", tool.alters_features}});
    }
    const DeviceVerdict verdict = verdict_of(report);
    entry["verdict"] = verdict.word;
    entry["verdict_reason"] = verdict.reason;
    entry["interrupted"] = report.interrupted;
    entry["ends"] = report.ends;
    entry["cases"] = nlohmann::ordered_json::array();
    for (const CheckReport& check : report.checks) entry["cases"].push_back(case_json(check));
    return entry;
}

}  // namespace

nlohmann::ordered_json json_of(const Report& report, Level level, bool with_uuid) {
    nlohmann::ordered_json devices = nlohmann::ordered_json::array();
    for (const DeviceReport& device : report) devices.push_back(device_entry(device, with_uuid));
    return {{"format", report_format},
            {"version", VKROPE_PROJECT_VERSION},
            {"system", VKROPE_BUILT_FOR},
            {"date", today()},
            {"level", level == Level::full ? "full" : "quick"},
            {"devices", std::move(devices)}};
}

std::string report_path(const std::string& path, const Report& report) {
    std::error_code problem;
    if (!std::filesystem::is_directory(tools::path_of(path), problem)) return path;
    const std::string devices = report.size() == 1 ? report[0].device.name
                                                   : fmt::format("{} devices", report.size());
    std::string name;  // letters, digits and dots; each run of other characters is one _
    for (const char c : devices.substr(0, 64))
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.')
            name += c;
        else if (!name.ends_with('_'))
            name += '_';
    name.resize(name.find_last_not_of('_') + 1);
    return tools::text_of(tools::path_of(path) /
                          fmt::format("vkrope-report-{}-{}.json", name, today()));
}

std::string verdicts_text(const Report& report) {
    std::string text;
    for (const DeviceReport& device : report) {
        std::string counts;
        for (const Verdict verdict : verdicts) {
            const auto count = std::count_if(
                device.checks.begin(), device.checks.end(),
                [verdict](const CheckReport& check) { return check.outcome.verdict == verdict; });
            counts += count > 0 ? fmt::format(", {} {}", count, word_for(verdict)) : "";
        }
        double u = 0, seconds = 0;
        for (const CheckReport& check : device.checks) {
            u = std::max(u, check.outcome.max_u.value_or(0));
            seconds += check.outcome.seconds;
        }
        const DeviceVerdict verdict = verdict_of(device);
        text += fmt::format("verdict: {}: {}{}{}{}; largest error {:.3f} u; {:.1f} s\n",
                            tools::device_text(device.device), verdict.word,
                            verdict.reason.empty() ? "" : ", ", tools::printable(verdict.reason),
                            counts, u, seconds);
    }
    return text;
}

namespace {

std::size_t good_checks(const DeviceReport& device) noexcept {
    std::size_t good = 0;
    for (const CheckReport& check : device.checks)
        good += check.outcome.verdict == Verdict::pass ? 1 : 0;
    return good;
}

}  // namespace

std::string sentence_of(const Report& report) {
    std::size_t of[std::size(verdicts)] = {}, all = 0;
    for (const DeviceReport& device : report) {
        for (const CheckReport& check : device.checks) {
            ++of[std::size_t(check.outcome.verdict)];
            ++all;
        }
    }
    std::string sentence = fmt::format("of {} checks", all);
    for (const Verdict verdict : verdicts) {
        const std::size_t count = of[std::size_t(verdict)];
        sentence += count > 0 ? fmt::format(", {} {}", count, word_for(verdict)) : "";
    }
    for (const DeviceReport& device : report) {
        if (!device.ends.empty())
            sentence += fmt::format("; {} {}", device.device.name, device.ends[0]);
        if (report.size() > 1 && good_checks(device) == 0)
            sentence += "; none was good on " + device.device.name;
    }
    return sentence;
}

ExitCode exit_of(const Report& report) noexcept {
    bool failed = false, lost = false, out_of_memory = false, erred = false,
         all_checked = !report.empty();
    for (const DeviceReport& device : report) {
        for (const CheckReport& check : device.checks) {
            const Outcome& outcome = check.outcome;
            const bool error = outcome.verdict == Verdict::error;
            failed = failed || outcome.verdict == Verdict::fail ||
                     outcome.verdict == Verdict::unstable;
            erred = erred || error;
            lost = lost || (error && outcome.exit == ExitCode::device_failed);
            out_of_memory = out_of_memory || (error && outcome.exit == ExitCode::out_of_memory);
        }
        lost = lost || (device.checks.empty() && !device.ends.empty());
        all_checked = all_checked && good_checks(device) > 0;
    }
    // Ordered by what a script should act on first; after a lost device no other result counts.
    return lost            ? ExitCode::device_failed
           : out_of_memory ? ExitCode::out_of_memory
           : failed        ? ExitCode::verification_failed
           : erred         ? ExitCode::bad_file
           : !all_checked  ? ExitCode::verification_failed
                           : ExitCode::success;
}

}  // namespace vkrope::conformance
