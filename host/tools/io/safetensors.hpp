// SPDX-License-Identifier: MIT
// Files in Hugging Face's safetensors format: the length of a header, the header as JSON, and the
// data of all tensors without gaps. https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/regular_file.hpp"
#include "model/json_document.hpp"

namespace vkrope::safetensors {

using Error = tools::FileError;

// The format allows 100 MB. This is the limit for all JSON of vkrope, above what checkpoints need.
inline constexpr std::uint64_t max_header_bytes = max_json_bytes;
inline constexpr std::size_t max_name_bytes = 65535, max_dtype_bytes = 64;
inline constexpr std::size_t max_rank = 64;

struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<std::uint64_t> shape;  // slowest dimension first; empty for a single number
    std::uint64_t begin = 0, end = 0;  // range of bytes, relative to the beginning of the data
};

struct Header {
    std::uint64_t data_offset = 0;  // offset of the data in the file
    std::vector<Tensor> tensors;    // sorted by name

    // Returns null if there is no tensor of that name.
    const Tensor* find(std::string_view name) const noexcept;
};

// Returns the number of bits of an element; none if this reader does not know the dtype. Tensors
// of such a dtype are allowed, but their size is not checked.
std::optional<std::uint32_t> element_bits(std::string_view dtype) noexcept;

// Reads a header and checks every rule of the format, so that each byte of the data belongs to one
// tensor. Throws Error.
//
// start       the first bytes of the file: all of them, or at least those before the data
// file_bytes  size of the whole file
Header parse_header(std::span<const std::byte> start, std::uint64_t file_bytes);

// Reads only the header of a file. Throws Error.
Header read_header(const tools::RegularFile& file);

}  // namespace vkrope::safetensors
