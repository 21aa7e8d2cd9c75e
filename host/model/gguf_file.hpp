// SPDX-License-Identifier: MIT
// The head of a GGUF file: its metadata, and where its tensors lie. No weights are read.
// The format: docs/gguf.md of ggml. Nothing that the file says of its sizes is believed before the
// file is known to be that long. What a file of any length may ask for is bounded all the same:
// from_gguf() says by what.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "vkrope/model.hpp"

namespace vkrope {

/// As the file numbers them.
enum class GgufType : std::uint32_t {
    uint8 = 0,
    int8 = 1,
    uint16 = 2,
    int16 = 3,
    uint32 = 4,
    int32 = 5,
    float32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    uint64 = 10,
    int64 = 11,
    float64 = 12,
};

/// "uint32", "string", ...
const char* name(GgufType type) noexcept;

/// A value of the metadata. Long strings, long lists, and lists of anything but numbers are known
/// by their type only.
struct GgufValue {
    GgufType type = GgufType::uint8;
    bool known = false;           ///< text or numbers are what the file says
    std::string text = {};        ///< of a string
    std::vector<double> numbers;  ///< one, or those of a list; of a boolean 0 or 1

    bool is_list() const noexcept { return type == GgufType::array; }
};

class GgufFile {
   public:
    /// Reads metadata and tensor infos of a file of `file_bytes` bytes. Throws ImportError.
    GgufFile(std::uint64_t file_bytes, const GgufRead& read);

    /// Null where the file does not have the key.
    const GgufValue* find(const std::string& key) const;
    const std::map<std::string, GgufValue>& values() const noexcept { return values_; }

    /// The numbers of one of the tensors that shape frequencies: "rope_freqs.weight",
    /// "rope_factors_long.weight", "rope_factors_short.weight". Empty where the file has no such
    /// tensor. Throws ImportError for one that is not a list of float32, or that is not where the
    /// file says.
    std::vector<double> factors(const std::string& tensor) const;

   private:
    struct Tensor {
        std::uint32_t dimensions = 0;
        std::uint64_t count = 0;  // of the first dimension
        std::uint32_t element = 0;
        std::uint64_t offset = 0;  // in the section of data
    };

    void read_values(class GgufCursor& cursor, std::uint64_t count);
    void read_tensors(class GgufCursor& cursor, std::uint64_t count);

    const std::uint64_t file_bytes_;
    const GgufRead read_;
    std::map<std::string, GgufValue> values_;
    std::map<std::string, Tensor> tensors_;  // those that shape frequencies
    std::uint64_t alignment_ = 32;
    std::uint64_t data_ = 0;  // where the section of data begins
};

}  // namespace vkrope
