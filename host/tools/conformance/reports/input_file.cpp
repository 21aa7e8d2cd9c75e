// SPDX-License-Identifier: MIT
#include "conformance/reports/input_file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "conformance/reports/bench_rows.hpp"
#include "conformance/reports/page.hpp"
#include "conformance/table.hpp"
#include "files/zip.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "shell/failure.hpp"

namespace vkrope::conformance {
namespace {

using Json = nlohmann::ordered_json;
using tools::ExitCode;

constexpr std::size_t max_archive_bytes = 64 << 20;

Json parsed(const std::string& option, const std::string& file, const std::string& content) {
    try {
        return Json(parse_json(content));
    } catch (const ImportError& problem) {
        tools::fail(ExitCode::bad_file, "{}: '{}': {}", option, file,
                    static_cast<const char*>(problem.status.what));
    }
}

/// Takes a document that is a report or the output of a benchmark.
void take(ReportFile& read, const std::string& option, const std::string& file, Json json) {
    if (json.is_object() && json.contains("benchmarks") && json.contains("context")) {
        try {
            static_cast<void>(bench_device(json) + bench_driver(json) + bench_date(json));
            static_cast<void>(bench_rows(json));
        } catch (const std::exception&) {
            tools::fail(ExitCode::bad_file, "{}: '{}' lacks fields of vkrope-bench", option, file);
        }
        read.benches.push_back(std::move(json));
        return;
    }
    if (!json.is_object() || !json.contains("format") || !json.at("format").is_string()) {
        tools::fail(ExitCode::bad_file,
                    "{}: '{}' is not a report of vkrope-conformance: it has no \"format\"", option,
                    file);
    }
    if (const auto& format = json.at("format").get_ref<const std::string&>();
        format != report_format) {
        tools::fail(ExitCode::bad_file, "{}: '{}' has the format '{}'; this program reads '{}'",
                    option, file, format, report_format);
    }
    try {
        static_cast<void>(page_of(json, {}, {}));  // accesses all fields that anyone needs
    } catch (const nlohmann::json::exception&) {
        tools::fail(ExitCode::bad_file, "{}: '{}' lacks fields of a report", option, file);
    }
    check_words(option, file, json.at("devices"));
    read.report = std::move(json);
}

}  // namespace

std::string content_of(const std::string& option, const std::string& file, std::size_t max_bytes) {
    struct stat about = {};
    if (::stat(file.c_str(), &about) != 0) {
        tools::fail(ExitCode::bad_file, "{}: '{}' cannot be read: {}", option, file,
                    std::strerror(errno));
    }
    if (!S_ISREG(about.st_mode)) {  // reading it may never end, or never begin
        tools::fail(ExitCode::bad_file, "{}: '{}' is {}; it must be a regular file", option, file,
                    S_ISDIR(about.st_mode) ? "a directory" : "not a regular file");
    }
    std::ifstream stream(file, std::ios::binary);
    if (!stream) {
        tools::fail(ExitCode::bad_file, "{}: '{}' cannot be read: {}", option, file,
                    std::strerror(errno));
    }
    std::string content;
    for (char piece[65536]; stream.read(piece, sizeof piece), stream.gcount() > 0;) {
        content.append(piece, static_cast<std::size_t>(stream.gcount()));
        if (content.size() > max_bytes) {
            tools::fail(ExitCode::bad_file,
                        "{}: '{}' has more than {} bytes, more than any report has", option, file,
                        max_bytes);
        }
    }
    return content;
}

Json json_from(const std::string& option, const std::string& file) {
    return parsed(option, file, content_of(option, file, max_json_bytes));
}

ReportFile report_from(const std::string& option, const std::string& file) {
    const std::string content = content_of(option, file, max_archive_bytes);
    ReportFile read;
    if (!content.starts_with("PK")) {
        take(read, option, file, parsed(option, file, content));
        return read;
    }
    try {
        for (const tools::zip::Entry& entry : tools::zip::entries_of(content)) {
            if (entry.name.ends_with(".json")) {
                take(read, option, file, parsed(option, file, entry.content));
            }
        }
    } catch (const tools::zip::BadArchive& bad) {
        tools::fail(ExitCode::bad_file, "{}: '{}' is not an archive of --report: {}", option, file,
                    bad.what());
    }
    if (read.report.is_null()) {
        tools::fail(ExitCode::bad_file,
                    "{}: '{}' is not an archive of --report: it has no report.json", option, file);
    }
    return read;
}

}  // namespace vkrope::conformance
