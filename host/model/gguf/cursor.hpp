// SPDX-License-Identifier: MIT
// Reads the head of a GGUF file value by value; integers are little-endian.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>

#include "model/gguf/file.hpp"

namespace vkrope {

// The size of the file does not bound the head: a hole in a sparse file takes no space, and its
// zeros are valid entries. The largest real heads have 50 MB.
inline constexpr std::uint64_t max_head_bytes = std::uint64_t{256} << 20;

// A type, as numbered in the file.
struct GgufType {
    const char* name;
    std::uint64_t bytes;  // bytes of a value; 0 for a type whose length is in the file
    char kind;            // u: unsigned, i: signed, f: float, b: boolean, s: string, a: array
};
inline constexpr GgufType gguf_types[] = {
    {"uint8", 1, 'u'},  {"int8", 1, 'i'},  {"uint16", 2, 'u'},  {"int16", 2, 'i'},
    {"uint32", 4, 'u'}, {"int32", 4, 'i'}, {"float32", 4, 'f'}, {"boolean", 1, 'b'},
    {"string", 0, 's'}, {"array", 0, 'a'}, {"uint64", 8, 'u'},  {"int64", 8, 'i'},
    {"float64", 8, 'f'}};

inline std::uint64_t little_endian(const unsigned char* bytes, std::size_t count) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

// Returns the number with these bits. Integers above 2^53, which no rule accepts, are rounded.
inline double gguf_number(const GgufType& type, std::uint64_t bits) noexcept {
    if (type.kind == 'f') {
        return type.bytes == 8 ? std::bit_cast<double>(bits)
                               : double(std::bit_cast<float>(std::uint32_t(bits)));
    }
    const std::uint64_t above = 64 - 8 * type.bytes;  // bits beyond the value
    return type.kind == 'i' ? double(std::int64_t(bits << above) >> above) : double(bits);
}

// Reads the head of a file from the first byte on, but not beyond the end of the file or beyond
// 256 MiB. Every read throws ImportError if the file has fewer bytes.
class GgufCursor {
   public:
    GgufCursor(std::uint64_t file_bytes, const GgufRead& read)
        : file_bytes_(file_bytes), end_(std::min(file_bytes, max_head_bytes)), read_(read) {}

    std::uint64_t at() const noexcept { return at_; }
    std::uint64_t left() const noexcept { return end_ - at_; }

    // Sets the name of the current part, for errors about missing bytes.
    void inside(std::string what) { what_ = std::move(what); }
    const std::string& what() const noexcept { return what_; }

    // Skips `count` times `bytes` bytes; the product may exceed 64 bits.
    void skip(std::uint64_t count, std::uint64_t bytes = 1) {
        require(count, bytes);
        at_ += count * bytes;
    }

    std::uint64_t whole(std::size_t bytes) {
        unsigned char little[8];
        take(little, bytes);
        return little_endian(little, bytes);
    }

    std::uint32_t u32() { return std::uint32_t(whole(4)); }
    std::uint64_t u64() { return whole(8); }

    std::string text(std::uint64_t bytes) {
        require(bytes, 1);  // before memory is allocated
        std::string content(std::size_t(bytes), '\0');
        take(content.data(), content.size());
        return content;
    }

    const GgufType& type() {
        const std::uint32_t type = u32();
        if (type >= std::size(gguf_types))
            invalid_data("{} has the type {}: it must be 0 to 12", what(), type);
        return gguf_types[type];
    }

   private:
    void require(std::uint64_t count, std::uint64_t bytes) const {
        if (count <= left() / bytes) return;
        const std::string need = bytes == 1 ? std::to_string(count) + " bytes"
                                            : std::to_string(count) + " elements of " +
                                                  std::to_string(bytes) + " bytes";
        if (end_ < file_bytes_) {
            invalid_data("{} needs {} at {}: metadata and tensor infos must end within {} bytes",
                         what(), need, at_, end_);
        }
        invalid_data("the file is cut off: {} needs {} at {}, and the file has {}", what(), need,
                     at_, file_bytes_);
    }

    void take(void* to, std::size_t bytes) {
        const std::uint64_t from = at_;
        skip(bytes);
        if (bytes > sizeof buffer_) {
            read(from, to, bytes);
            return;
        }
        // Buffers reads, because a tokenizer has some 100 000 strings with a length before each.
        if (from < buffered_at_ || from + bytes > buffered_at_ + buffered_) {
            buffered_ = 0;
            const auto ahead = std::size_t(std::min<std::uint64_t>(sizeof buffer_, end_ - from));
            read(from, buffer_, ahead);
            buffered_at_ = from;
            buffered_ = ahead;
        }
        std::memcpy(to, buffer_ + (from - buffered_at_), bytes);
    }

    void read(std::uint64_t from, void* to, std::size_t bytes) {
        if (read_(from, to, bytes) != bytes)
            invalid_data("the file cannot be read at byte {}", from);
    }

    const std::uint64_t file_bytes_, end_;
    const GgufRead& read_;
    std::uint64_t at_ = 0;
    std::string what_ = "its header";
    std::uint64_t buffered_at_ = 0;
    std::size_t buffered_ = 0;
    unsigned char buffer_[16384];
};

}  // namespace vkrope
