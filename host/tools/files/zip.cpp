// SPDX-License-Identifier: MIT
#include "files/zip.hpp"

#include <array>

namespace vkrope::tools::zip {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50,
                        end_signature = 0x06054b50;
constexpr std::size_t local_bytes = 30, central_bytes = 46, end_bytes = 22;
constexpr std::uint32_t version = 10;             // 1.0: files without compression
constexpr std::uint32_t first_day = 1u << 5 | 1;  // 1980-01-01: an archive has no date of its own
constexpr std::size_t max_entries = 64;

void put(std::string& text, std::uint32_t number, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
        text += static_cast<char>(number >> 8 * i & 0xff);
    }
}

/// The fields that both headers of a file have, from "version needed" to "extra field length".
void put_file(std::string& text, const Entry& entry) {
    const auto size = static_cast<std::uint32_t>(entry.content.size());
    put(text, version, 2);
    put(text, 0, 2);  // flags
    put(text, 0, 2);  // method: stored
    put(text, 0, 2);  // time
    put(text, first_day, 2);
    put(text, crc32(entry.content), 4);
    put(text, size, 4);
    put(text, size, 4);
    put(text, static_cast<std::uint32_t>(entry.name.size()), 2);
    put(text, 0, 2);
}

/// Little-endian fields of an archive, with bounds.
class Reader {
   public:
    explicit Reader(std::string_view archive) noexcept : archive_(archive) {}

    std::uint32_t number(std::size_t at, std::size_t bytes) const {
        const std::string_view field = text(at, bytes);
        std::uint32_t value = 0;
        for (std::size_t i = 0; i < bytes; ++i) {
            value |= std::uint32_t{static_cast<unsigned char>(field[i])} << 8 * i;
        }
        return value;
    }

    std::string_view text(std::size_t at, std::size_t bytes) const {
        if (at > archive_.size() || bytes > archive_.size() - at) {
            throw BadArchive("it is cut off");
        }
        return archive_.substr(at, bytes);
    }

    std::size_t size() const noexcept { return archive_.size(); }

   private:
    std::string_view archive_;
};

Entry entry_at(const Reader& reader, std::size_t central) {
    if (reader.number(central, 4) != central_signature) {
        throw BadArchive("its list of files is damaged");
    }
    const std::size_t local = reader.number(central + 42, 4);
    if (reader.number(local, 4) != local_signature) {
        throw BadArchive("its list of files is damaged");
    }
    if (reader.number(central + 10, 2) != 0) {
        throw BadArchive("its files are compressed; files of a report are not");
    }
    const std::size_t size = reader.number(central + 24, 4);
    const std::size_t start = local + local_bytes + reader.number(local + 26, 2) +
                              reader.number(local + 28, 2);
    Entry entry = {
        .name = std::string(reader.text(central + central_bytes, reader.number(central + 28, 2))),
        .content = std::string(reader.text(start, size))};
    if (crc32(entry.content) != reader.number(central + 16, 4)) {
        throw BadArchive("a file in it has changed: its checksum is another");
    }
    return entry;
}

}  // namespace

std::uint32_t crc32(std::string_view bytes) noexcept {
    static const auto table = [] {
        std::array<std::uint32_t, 256> made = {};
        for (std::uint32_t i = 0; i < made.size(); ++i) {
            std::uint32_t crc = i;
            for (int bit = 0; bit < 8; ++bit) {
                crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
            }
            made[i] = crc;
        }
        return made;
    }();
    std::uint32_t crc = 0xffffffffu;
    for (const char byte : bytes) {
        crc = crc >> 8 ^ table[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
    }
    return ~crc;
}

std::string archive_of(const std::vector<Entry>& entries) {
    std::string archive, central;
    for (const Entry& entry : entries) {
        const auto offset = static_cast<std::uint32_t>(archive.size());
        put(archive, local_signature, 4);
        put_file(archive, entry);
        archive += entry.name + entry.content;

        put(central, central_signature, 4);
        put(central, version, 2);  // made by
        put_file(central, entry);
        put(central, 0, 2);  // comment
        put(central, 0, 2);  // disk
        put(central, 0, 2);  // internal attributes
        put(central, 0, 4);  // external attributes
        put(central, offset, 4);
        central += entry.name;
    }
    const auto count = static_cast<std::uint32_t>(entries.size());
    const auto start = static_cast<std::uint32_t>(archive.size());
    archive += central;
    put(archive, end_signature, 4);
    put(archive, 0, 4);  // numbers of disks
    put(archive, count, 2);
    put(archive, count, 2);
    put(archive, static_cast<std::uint32_t>(central.size()), 4);
    put(archive, start, 4);
    put(archive, 0, 2);  // comment
    return archive;
}

std::vector<Entry> entries_of(std::string_view archive) {
    const Reader reader(archive);
    if (archive.size() < 4 || reader.number(0, 4) != local_signature) {
        throw BadArchive("it is not a ZIP archive");
    }
    if (archive.size() < end_bytes) {
        throw BadArchive("it is cut off");
    }
    const std::size_t end = archive.size() - end_bytes;  // an archive of ours has no comment
    if (reader.number(end, 4) != end_signature) {
        throw BadArchive("it is cut off, or another program has written it");
    }
    const std::size_t count = reader.number(end + 10, 2);
    if (count > max_entries) {
        throw BadArchive("it has more files than a report");
    }
    std::vector<Entry> entries;
    std::size_t central = reader.number(end + 16, 4);
    for (std::size_t i = 0; i < count; ++i) {
        entries.push_back(entry_at(reader, central));
        central += central_bytes + reader.number(central + 28, 2) + reader.number(central + 30, 2) +
                   reader.number(central + 32, 2);
    }
    return entries;
}

}  // namespace vkrope::tools::zip
