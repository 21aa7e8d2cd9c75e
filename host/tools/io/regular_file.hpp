// SPDX-License-Identifier: MIT
// Reads parts of regular files. Opening any other file might block until its other end opens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace vkrope::tools {

// Says what is wrong with a file, in one sentence that does not name the file.
struct FileError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

class RegularFile {
   public:
    // Throws FileError.
    explicit RegularFile(const std::string& path);
    RegularFile(const RegularFile&) = delete;
    RegularFile& operator=(const RegularFile&) = delete;

    std::uint64_t bytes() const noexcept { return bytes_; }

    // Fills `to` with the bytes from `offset` on. Throws FileError.
    void read(std::uint64_t offset, std::span<std::byte> to) const;

    // Returns the first `most` bytes, or all if there are fewer. Throws FileError.
    std::vector<std::byte> start(std::uint64_t most) const;

   private:
    // A file descriptor that is also closed if the constructor of RegularFile throws.
    struct Descriptor {
        int number = -1;
        ~Descriptor();
    };
    Descriptor file_;
    std::uint64_t bytes_ = 0;
};

}  // namespace vkrope::tools
