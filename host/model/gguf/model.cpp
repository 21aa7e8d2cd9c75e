// SPDX-License-Identifier: MIT
#include "model/gguf/model.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/status.hpp"
#include "model/gguf/import.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 62;

// Maximum number of parts; models of a terabyte have about a hundred.
constexpr std::uint64_t max_parts = 1024;

// On Windows, a path that is made of a std::string is not UTF-8.
std::filesystem::path utf8_path(const std::string& path) {
    return std::u8string(path.begin(), path.end());
}

// Reads a regular file and opens it only during each read, because a split model has many files.
GgufRead reader_of(const std::filesystem::path& path) {
    return [path](std::uint64_t offset, void* to, std::size_t count) {
        std::ifstream file(path, std::ios::binary);
        file.seekg(std::streamoff(offset));
        file.read(static_cast<char*>(to), std::streamsize(count));
        return std::size_t(file.gcount());
    };
}

// Returns "-00001-of-00003.gguf", the format of llama_split_path() in llama.cpp.
std::string end_of_part(std::uint64_t number, std::uint64_t count) {
    char text[64];
    std::snprintf(text, sizeof text, "-%05llu-of-%05llu.gguf",
                  static_cast<unsigned long long>(number) + 1,
                  static_cast<unsigned long long>(count));
    return text;
}

}  // namespace

GgufModel::GgufModel(std::uint64_t file_bytes, const GgufRead& read) {
    problem_ = status_of(
        "the file", [&] { parse(file_bytes, read); });
}

GgufModel::GgufModel(const std::string& path) {
    problem_ = status_of(
        "the file",
        [&] {
            std::error_code problem;
            const std::filesystem::path file = utf8_path(path);
            const std::filesystem::file_type kind = std::filesystem::status(file, problem).type();
            if (kind != std::filesystem::file_type::regular) {  // opening a pipe would wait for its
                                                                // other end
                const bool missing = kind == std::filesystem::file_type::not_found;
                invalid_data("{} {}", path, missing ? "does not exist" : "is not a regular file");
            }
            const std::uint64_t bytes = std::filesystem::file_size(file, problem);
            if (!std::ifstream(file, std::ios::binary) || problem)
                invalid_data("{} cannot be opened", path);
            parse(bytes, reader_of(file));
            add_parts(path);
        });
}

void GgufModel::add_parts(const std::string& path) {
    const std::uint64_t count = file_->split("split.count");
    const std::string first = end_of_part(0, count);
    if (count < 2 || file_->split("split.no") != 0 || !path.ends_with(first)) return;
    if (count > max_parts)
        invalid_data("split.count is {}: it must be at most {}", count, max_parts);
    for (std::uint64_t number = 1; number < count; ++number) {
        const std::filesystem::path other = utf8_path(path.substr(0, path.size() - first.size()) +
                                                      end_of_part(number, count));
        std::error_code problem;
        const bool regular = std::filesystem::is_regular_file(other, problem);
        const std::uint64_t bytes = regular ? std::filesystem::file_size(other, problem) : 0;
        if (regular && !problem) file_->add_part(number, bytes, reader_of(other));
    }
}

void GgufModel::parse(std::uint64_t file_bytes, const GgufRead& read) {
    if (!read) invalid_argument("read is empty: it must be a function");
    if (file_bytes > max_file_bytes)
        invalid_argument("file_bytes is {}: it must be at most {}", file_bytes, max_file_bytes);
    file_ = std::make_shared<GgufFile>(file_bytes, read);
}

Result<RopeParams> GgufModel::rotation(const ModelQuery& asked) const {
    RopeParams rotation;
    const Status status = status_of("the file", [&] {
        const Query query = checked(asked);
        if (query.tower != "text")
            invalid_argument(
                "query.tower is '{}': a GGUF file holds a language model, so it must be text",
                shown_key(std::string(query.tower)));
        if (!problem_) throw ImportError{problem_};
        GgufFile file = query.ignore.empty() ? GgufFile() : *file_;
        for (const std::string& name : query.ignore) {
            if (file.erase(name)) continue;
            invalid_argument("query.ignore has '{}': the file has no such key", shown_key(name));
        }
        rotation = GgufImport(query.ignore.empty() ? *file_ : file, query).run();
        for (const std::string& name : query.ignore)
            warn(rotation, "ignored key {}: the query asks for it", file_->find(name).name);
        shorten(rotation.warnings);
    });
    return {status, std::move(rotation)};
}

}  // namespace vkrope
