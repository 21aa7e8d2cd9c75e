// SPDX-License-Identifier: MIT
#include "explain/matrix.hpp"

#include <limits>
#include <span>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/failure.hpp"
#include "cli/output_file.hpp"
#include "io/npy.hpp"
#include "reference/oracle.hpp"

namespace vkrope::tools {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1}
                                         << 34;  // a mistyped range must not fill the disk
constexpr std::int64_t lowest = std::numeric_limits<std::int32_t>::min(),
                       past_highest = std::int64_t{1} << 31;

}  // namespace

PositionRange parse_range(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
        throw BadValue(
            fmt::format("'{}' must be two positions A:B, for A up to but not including B", text));
    }
    const PositionRange range = {parse_integer(text.substr(0, colon), lowest, past_highest - 1),
                                 parse_integer(text.substr(colon + 1), lowest + 1, past_highest)};
    if (range.first >= range.end) {
        throw BadValue(
            fmt::format("'{}' has no positions: A must be below B, which is not included", text));
    }
    return range;
}

void write_matrix(const Rotation& rotation, const PositionRange& range, const std::string& path,
                  const std::string& model_path) {
    const auto rows = static_cast<std::uint64_t>(range.end - range.first);
    const std::uint64_t pairs = rotation.inv_freq.size();
    const std::uint64_t shape[] = {rows, 2 * pairs};
    const std::uint64_t bytes = npy::data_bytes(npy::Type::f4, shape);
    if (bytes > max_file_bytes) {
        fail(ExitCode::usage,
             "--matrix: {} positions of {} numbers have {} bytes; at most {} are written", rows,
             2 * pairs, bytes, max_file_bytes);
    }
    const std::string header = npy::make_header(npy::Type::f4, shape);
    std::vector<OutputFile> files;
    files.emplace_back("--out", path, header.size() + bytes);
    files.front().check_distinct_from("--model", model_path);
    files.front().write(header);
    std::vector<float> row(2 * pairs);
    for (std::int64_t position = range.first; position < range.end; ++position) {
        for (std::uint64_t j = 0; j < pairs; ++j) {
            const reference::CosSin turn = reference::exact_cos_sin(position, rotation.inv_freq[j]);
            row[j] = static_cast<float>(rotation.attention_factor * turn.sin);
            row[pairs + j] = static_cast<float>(rotation.attention_factor * turn.cos);
        }
        files.front().write(std::as_bytes(std::span(row)));
    }
    OutputFile::publish(files);
}

}  // namespace vkrope::tools
