// SPDX-License-Identifier: MIT
#include "runtime/cache_file.hpp"

#ifndef _WIN32
#include <dirent.h>
#endif

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <system_error>

#include "base/status.hpp"

namespace vkrope {

namespace {

namespace fs = std::filesystem;

constexpr char prefix[] = "vkrope-", suffix[] = ".pipelines", temporary[] = ".tmp";
constexpr auto abandoned_after = std::chrono::hours(1);

// Header of a file, in the byte order of the machine. A machine with another byte order reads a
// different magic number and ignores the file.
struct Header {
    std::uint64_t magic = 0x0a0d65706f726b76;  // "vkrope\r\n"
    std::uint32_t version = 1;
    CacheIdentity identity;
    std::uint32_t reserved = 0;
    std::uint64_t data_bytes = 0;
    std::uint64_t checksum = 0;  // checksum of the fields above and of the data
};
static_assert(sizeof(Header) == cache_header_bytes);
static_assert(std::is_trivially_copyable_v<Header>);
static_assert(offsetof(Header, checksum) == cache_header_bytes - sizeof(std::uint64_t));

std::uint64_t checksum_of(const Header& header, const std::byte* data) noexcept {
    return checksum(data, header.data_bytes, checksum(&header, offsetof(Header, checksum)));
}

std::string hex(std::uint64_t number) {
    char text[17];
    std::snprintf(text, sizeof text, "%016" PRIx64, number);
    return text;
}

std::string name_of(const fs::path& file) {
    const auto name = file.filename().u8string();
    return std::string(name.begin(), name.end());
}

Status damaged(const fs::path& file, const char* what) {
    return error(VKROPE_ERROR_INVALID_DATA, "pipeline cache %s: %s; it is ignored and replaced",
                 name_of(file).c_str(), what);
}

Status not_kept(const fs::path& file, const char* step) {
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "pipeline_cache_folder: %s could not be %s: the folder must exist, be writable "
                 "and have free space; the pipelines are not kept",
                 name_of(file).c_str(), step);
}

bool is_one_of_ours(const std::string& text) {
    return text.compare(0, std::strlen(prefix), prefix) == 0 &&
           text.find(suffix) != std::string::npos;
}

bool is_temporary(const fs::path& file) {
    return file.extension() == temporary;
}

struct Kept {
    fs::path file = {};
    std::uint64_t bytes = 0;
    fs::file_time_type written = {};
};

#ifdef _WIN32
std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> all;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
        all.push_back(name_of(at->path()));
    return all;
}
#else
// Lists the names in a folder. libstdc++'s iterator ends the program if memory runs out.
std::vector<std::string> names_in(const fs::path& folder) {
    const auto close = [](DIR* opened) { closedir(opened); };
    const std::unique_ptr<DIR, decltype(close)> opened(opendir(folder.c_str()), close);
    std::vector<std::string> all;
    while (const dirent* entry = opened ? readdir(opened.get()) : nullptr)
        all.emplace_back(static_cast<const char*>(entry->d_name));
    return all;
}
#endif

// Lists the cache files in a folder. Another process may remove or replace a file at any time, so
// an error means that the file is missing.
std::vector<Kept> kept_files(const fs::path& folder) {
    std::vector<Kept> all;
    for (const std::string& name : names_in(folder)) {
        if (!is_one_of_ours(name)) continue;
        std::error_code missing;
        Kept one{folder / name};
        one.bytes = fs::file_size(one.file, missing);
        if (!missing) one.written = fs::last_write_time(one.file, missing);
        if (!missing) all.push_back(std::move(one));
    }
    return all;
}

// Removes the oldest files, because those of old drivers, and temporary files of killed processes,
// would stay for ever.
void make_room(const fs::path& newest, std::uint64_t most) {
    std::vector<Kept> all = kept_files(newest.parent_path());
    std::sort(all.begin(), all.end(),
              [](const Kept& a, const Kept& b) { return a.written < b.written; });
    std::uint64_t total = 0;
    for (const Kept& one : all) total += is_temporary(one.file) ? 0 : one.bytes;
    const auto now = fs::file_time_type::clock::now();
    for (const Kept& one : all) {
        std::error_code ignored;
        if (is_temporary(one.file)) {
            if (now - one.written > abandoned_after) fs::remove(one.file, ignored);
        } else if (total > most && one.file.filename() != newest.filename()) {
            fs::remove(one.file, ignored);
            total -= one.bytes;
        }
    }
}

// A file that is removed at the end unless it was renamed.
class TemporaryFile {
   public:
    explicit TemporaryFile(fs::path path) : path_(std::move(path)) {}
    ~TemporaryFile() {
        std::error_code ignored;
        if (!renamed_) fs::remove(path_, ignored);
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;

    const fs::path& path() const noexcept { return path_; }
    bool rename(const fs::path& to) {
        std::error_code failed;
        fs::rename(path_, to, failed);
        renamed_ = !failed;
        return renamed_;
    }

   private:
    fs::path path_;
    bool renamed_ = false;
};

bool write_all(const fs::path& file, const Header& header, const CacheData& data) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    out.write(reinterpret_cast<const char*>(data.data()), std::streamsize(data.size()));
    out.close();  // a full disk may only be noticed here
    return bool(out);
}

}  // namespace

std::uint64_t checksum(const void* bytes, std::size_t count, std::uint64_t hash) noexcept {
    const auto* byte = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < count; ++i) hash = (hash ^ byte[i]) * 0x100000001b3;
    return hash;
}

fs::path cache_file(const fs::path& folder, const CacheIdentity& identity) {
    return folder / (prefix + hex(checksum(&identity, sizeof identity)) + suffix);
}

Result<std::optional<CacheData>> read_cache_file(const fs::path& file,
                                                 const CacheIdentity& identity,
                                                 std::uint64_t most) {
    std::error_code missing;
    if (!fs::is_regular_file(file, missing)) return {};
    // Another process may replace the file meanwhile, so the size is that of the opened stream.
    std::ifstream in(file, std::ios::binary | std::ios::ate);
    if (!in) return {damaged(file, "it cannot be opened"), {}};
    const auto bytes = std::uint64_t(in.tellg());
    in.seekg(0);
    Header header;
    if (!in.read(reinterpret_cast<char*>(&header), sizeof header))
        return {damaged(file, "it ends in its header"), {}};
    const Header expected;
    if (header.magic != expected.magic || header.version != expected.version)
        return {damaged(file, "it has another format"), {}};
    if (!(header.identity == identity))
        return {damaged(file, "it belongs to another device or driver"), {}};
    if (bytes > most) return {damaged(file, "it has more than pipeline_cache_bytes"), {}};
    if (header.data_bytes != bytes - sizeof header)
        return {damaged(file, "its length is wrong"), {}};
    CacheData data(header.data_bytes);
    if (!in.read(reinterpret_cast<char*>(data.data()), std::streamsize(data.size())))
        return {damaged(file, "its length is wrong"), {}};
    if (header.checksum != checksum_of(header, data.data()))
        return {damaged(file, "its checksum is wrong"), {}};
    return {{}, std::move(data)};
}

Status write_cache_file(const fs::path& file, const CacheIdentity& identity, const CacheData& data,
                        std::uint64_t most) {
    if (data.size() + cache_header_bytes > most) {
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "pipeline_cache_bytes is %" PRIu64
                     ": the file would have %zu bytes, so the pipelines are not kept",
                     most, data.size() + cache_header_bytes);
    }
    Header header;
    header.identity = identity;
    header.data_bytes = data.size();
    header.checksum = checksum_of(header, data.data());
    // No other process may write to the same temporary file.
    std::random_device random;
    fs::path beside = file;
    beside += '.' + hex(std::uint64_t{random()} << 32 | random()) + temporary;
    TemporaryFile written(std::move(beside));
    if (!write_all(written.path(), header, data)) return not_kept(file, "written");
    if (!written.rename(file)) return not_kept(file, "replaced");
    make_room(file, most);
    return {};
}

}  // namespace vkrope
