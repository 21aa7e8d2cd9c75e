// SPDX-License-Identifier: MIT
// Files of Hugging Face's safetensors format: the length of a header, the header as JSON, and the
// data of all tensors without a gap. https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace vkrope::safetensors {

/// Says what is wrong with a file, in one sentence that does not name the file.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline constexpr std::uint64_t max_header_bytes = 100'000'000;  // the format's own limit
inline constexpr std::size_t max_tensors = std::size_t{1} << 18;
inline constexpr std::size_t max_name_bytes = 65535, max_dtype_bytes = 64;
inline constexpr std::size_t max_rank = 64;

struct Tensor {
    std::string name;
    std::string dtype;
    std::vector<std::uint64_t> shape;  // slowest dimension first; empty for a single number
    std::uint64_t begin = 0, end = 0;  // bytes, from the beginning of the data
};

struct Header {
    std::uint64_t data_offset = 0;  // offset of the data in the file
    std::vector<Tensor> tensors;    // as the header lists them

    /// Null if there is none of that name.
    const Tensor* find(std::string_view name) const noexcept;
};

/// Bits of an element; none if this reader does not know the dtype. Tensors of such a dtype are
/// allowed, and have no size to check.
std::optional<std::uint32_t> element_bits(std::string_view dtype) noexcept;

/// The length of the header, which the first bytes of a file state.
inline constexpr std::size_t length_bytes = 8;
std::uint64_t header_length(std::span<const std::byte, length_bytes> start) noexcept;

/// Reads and checks a header: every rule of the format, so that each byte of the data belongs to
/// one tensor. Throws Error.
///
/// start       the first bytes of the file: all of them, or at least those before the data
/// file_bytes  size of the whole file
Header parse_header(std::span<const std::byte> start, std::uint64_t file_bytes);

/// A regular file on disk; only its header is in memory.
class File {
   public:
    /// Opens the file and reads its header. Throws Error.
    explicit File(const std::string& path);
    File(const File&) = delete;
    File& operator=(const File&) = delete;

    const Header& header() const noexcept { return header_; }

    /// Reads the bytes of the file from `offset` on. Throws Error.
    void read(std::uint64_t offset, std::span<std::byte> to) const;

   private:
    /// Closed also if the constructor throws.
    struct Descriptor {
        int number = -1;
        ~Descriptor();
    };
    Descriptor file_;
    Header header_;
};

}  // namespace vkrope::safetensors
