// SPDX-License-Identifier: MIT
// ZIP archives of a few small files, stored without compression (PKWARE's APPNOTE 6.3, sections
// 4.3.7, 4.3.12 and 4.3.16). Debian's libraries for ZIP bring two more to link, and read formats
// that no report has.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace vkrope::tools::zip {

struct Entry {
    std::string name;  ///< a file name without a path
    std::string content;
};

/// The archive, at most 4 GiB. It holds no time, owner or mode: the same entries give the same
/// bytes.
std::string archive_of(const std::vector<Entry>& entries);

/// Throws BadArchive, which says what is wrong: no ZIP archive, cut off, changed, or made by
/// another program in a way that is not read here.
std::vector<Entry> entries_of(std::string_view archive);

class BadArchive : public std::exception {
   public:
    explicit BadArchive(const char* what) noexcept : what_(what) {}
    const char* what() const noexcept override { return what_; }

   private:
    const char* what_;
};

/// The CRC-32 of ZIP (ISO 3309, polynomial 0xedb88320).
std::uint32_t crc32(std::string_view bytes) noexcept;

}  // namespace vkrope::tools::zip
