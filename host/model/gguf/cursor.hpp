// SPDX-License-Identifier: MIT
// Reads the head of a GGUF file value by value: whole numbers are little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/gguf/file.hpp"

namespace vkrope {

/// Bytes of a value; 0 for a type whose length is in the file.
std::uint64_t gguf_type_bytes(GgufType type) noexcept;

/// Whether values of a type are numbers, a boolean included.
bool is_number(GgufType type) noexcept;

std::uint64_t little_endian(const unsigned char* bytes, std::size_t count) noexcept;

/// The number with these bits. Whole numbers above 2^53 are rounded; no rule accepts such a number.
double gguf_number(GgufType type, std::uint64_t bits) noexcept;

/// Reads the head of a file from its first byte on, and nothing beyond the end of the file or
/// beyond 256 MiB. Every read throws ImportError if the file has fewer bytes.
class GgufCursor {
   public:
    GgufCursor(std::uint64_t file_bytes, const GgufRead& read);

    std::uint64_t at() const noexcept { return at_; }
    std::uint64_t left() const noexcept { return end_ - at_; }

    /// Sets what errors about missing bytes name.
    void inside(std::string what) { what_ = std::move(what); }
    const char* what() const noexcept { return what_.c_str(); }

    void skip(std::uint64_t bytes);
    /// Skips `count` times `bytes` bytes, which may not fit in 64 bits.
    void skip(std::uint64_t count, std::uint64_t bytes);

    std::uint64_t whole(std::size_t bytes);
    std::uint32_t u32() { return std::uint32_t(whole(4)); }
    std::uint64_t u64() { return whole(8); }
    std::string text(std::uint64_t bytes);
    GgufType type();

   private:
    [[noreturn]] void overrun(const std::string& need) const;
    void take(void* to, std::size_t bytes);
    void read(std::uint64_t from, void* to, std::size_t bytes);

    const std::uint64_t file_bytes_, end_;
    const GgufRead& read_;
    std::uint64_t at_ = 0;
    std::string what_ = "its header";
    std::uint64_t buffered_at_ = 0;
    std::size_t buffered_ = 0;
    unsigned char buffer_[16384];
};

}  // namespace vkrope
