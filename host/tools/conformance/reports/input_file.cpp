// SPDX-License-Identifier: MIT
#include "conformance/reports/input_file.hpp"

#include <algorithm>
#include <span>

#include "cli/failure.hpp"
#include "conformance/report.hpp"
#include "conformance/reports/page.hpp"
#include "io/regular_file.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
using tools::ExitCode;

template <class... Values>
[[noreturn]] void refuse(const std::string& option, const std::string& file,
                         fmt::format_string<Values...> sentence, Values&&... values) {
    tools::fail(ExitCode::bad_file, "{}: '{}' {}", option, file,
                fmt::format(sentence, std::forward<Values>(values)...));
}

std::string content_of(const std::string& option, const std::string& file) {
    try {
        const tools::RegularFile source(file);
        if (source.bytes() > max_json_bytes) {
            refuse(option, file, "has more than {} bytes, more than any report has",
                   max_json_bytes);
        }
        std::string content(std::size_t(source.bytes()), '\0');
        source.read(0, std::as_writable_bytes(std::span(content)));
        return content;
    } catch (const tools::FileError& error) {
        refuse(option, file, "{}", error.what());
    }
}

// Checks the status words, because an unknown status would be neither good nor bad.
void check_words(const std::string& option, const std::string& file, const Json& devices) {
    for (const Json& device : devices) {
        for (const Json& check : device.at("cases")) {
            const auto status = check.at("status").get<std::string>();
            if (std::none_of(std::begin(verdicts), std::end(verdicts),
                             [&status](Verdict verdict) { return status == word_for(verdict); })) {
                refuse(option, file, "has the status '{}' of the check '{}', which is none",
                       shown_key(status), shown_key(check.at("id").get<std::string>()));
            }
        }
        const auto verdict = device.at("verdict").get<std::string>();
        if (std::find(std::begin(device_verdicts), std::end(device_verdicts), verdict) ==
            std::end(device_verdicts)) {
            refuse(option, file, "has the verdict '{}' on the device '{}', which is none",
                   shown_key(verdict), shown_key(device.at("name").get<std::string>()));
        }
    }
}

Json parsed(const std::string& option, const std::string& file, const std::string& content) {
    try {
        return Json(parse_json(content));
    } catch (const ImportError& problem) {
        tools::fail(ExitCode::bad_file, "{}: '{}': {}", option, file,
                    static_cast<const char*>(problem.status.what));
    }
}

}  // namespace

Json json_from(const std::string& option, const std::string& file) {
    return parsed(option, file, content_of(option, file));
}

Json report_from(const std::string& option, const std::string& file) {
    const std::string content = content_of(option, file);
    if (content.starts_with("PK")) {
        refuse(option, file, "is a ZIP archive, the form of '{}'; this program reads '{}'",
               "vkrope-report/1", report_format);
    }
    Json report = parsed(option, file, content);
    if (!report.is_object() || !report.contains("format") || !report.at("format").is_string())
        refuse(option, file, "is not a report of vkrope-conformance: it has no \"format\"");
    if (const auto format = report.at("format").get<std::string>(); format != report_format)
        refuse(option, file, "has the format '{}'; this program reads '{}'", format, report_format);
    try {
        static_cast<void>(page_of({{file, report}}));  // accesses all fields that are used
        check_words(option, file, report.at("devices"));
    } catch (const nlohmann::json::exception&) {
        refuse(option, file, "lacks fields of a report");
    }
    return report;
}

}  // namespace vkrope::conformance
