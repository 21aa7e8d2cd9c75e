// SPDX-License-Identifier: MIT
// Arrays in .npy files, format versions 1.0, 2.0 and 3.0, C order, little-endian.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/npy_dict.hpp"

namespace vkrope::npy {

enum class Type { f4, f2, u2, i4, i8, f8, u1 };

std::size_t item_bytes(Type type) noexcept;

// Returns the numpy name, "<f4".
const char* name(Type type) noexcept;

struct Header {
    Type type = Type::f4;
    std::vector<std::uint64_t> shape;  // slowest dimension first; empty for a single number
    std::uint64_t data_offset = 0;     // offset of the first element in the file
    std::uint64_t data_bytes = 0;
};

struct Array {
    Header header;
    std::vector<std::byte> data;  // header.data_bytes
};

// Reads and checks a header. Allocates memory of a size claimed by the file only after that size
// has been checked.
//
// start       the first bytes of the file: all of them, or at least max_header_bytes
// file_bytes  size of the whole file, which must end exactly where the data ends
Header parse_header(std::span<const std::byte> start, std::uint64_t file_bytes);

inline constexpr std::size_t max_header_bytes = 12 + 65536;

// Parses a whole file in memory.
Array parse(std::span<const std::byte> file);

// Reads a regular file on disk.
Array read(const std::string& path);

// Returns the bytes before the data, format version 1.0.
std::string make_header(Type type, std::span<const std::uint64_t> shape);

// Formats a shape as a Python tuple, (1, 2).
std::string shape_text(std::span<const std::uint64_t> shape);

// Returns the size of an array in bytes. Throws Error if it does not fit in 63 bits, whatever its
// zero dimensions.
std::uint64_t data_bytes(Type type, std::span<const std::uint64_t> shape);

}  // namespace vkrope::npy
