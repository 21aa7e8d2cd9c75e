// SPDX-License-Identifier: MIT
// Reads the head of a GGUF file: metadata and tensor locations, but no weights. Format:
// docs/gguf.md of ggml. A size in the file is used only after checking that the file is long
// enough. The limits in vkrope_model_from_gguf bound memory and time for files of any length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "model/field.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// Same as vkrope_read_at.
using GgufRead = std::function<std::size_t(std::uint64_t offset, void* to, std::size_t bytes)>;

// A value of the metadata. Long strings, long lists, and lists of values other than numbers are
// not_kept(): only their type is stored. A boolean in a list is stored as 0 or 1.
struct GgufValue {
    const char* type = "";
    json value = not_kept();
};

class GgufFile {
   public:
    GgufFile() = default;

    // Reads metadata and tensor infos of a file of `file_bytes` bytes. Throws ImportError.
    GgufFile(std::uint64_t file_bytes, const GgufRead& read);

    // Adds the tensors of another part of a split file. Throws ImportError unless it is part
    // `number` of this file.
    void add_part(std::uint64_t number, std::uint64_t file_bytes, const GgufRead& read);

    // Returns "split.count", the number of parts of a split file, or "split.no", the number of
    // this part; 0 for a file that is not split. Throws ImportError.
    std::uint64_t split(const char* key) const;

    // Return the number of parts read, including this file, and whether any part has tensors.
    std::uint64_t parts_read() const noexcept { return parts_.size(); }
    bool has_tensors() const noexcept { return has_tensors_; }

    // Returns the value of a key; empty if the file does not have it.
    Field find(const std::string& key) const;
    const std::map<std::string, GgufValue>& values() const noexcept { return values_; }

    // Removes a key. Returns false if the file does not have it.
    bool erase(const std::string& key) { return values_.erase(key) != 0; }

    // Returns the numbers of a tensor that scales frequencies: "rope_freqs.weight",
    // "rope_factors_long.weight" or "rope_factors_short.weight". Empty if the file has no such
    // tensor. Throws ImportError if it is not a list of float32 or cannot be read at its offset.
    std::vector<double> factors(const std::string& tensor) const;

    // Returns the extents of a norm tensor of Q or K, such as "blk.<layer>.attn_q_norm.weight",
    // innermost first. Null if the file does not have it.
    const std::vector<std::uint64_t>* norm_extents(const std::string& tensor) const;

    // Returns the prefix of the first layer, in the order of names, that has this tensor, such as
    // "attn_q_norm.weight". Empty if there is none.
    std::string layer_with(const std::string& norm) const;

    // Returns whether the file has tensors of a layer (-1: of any layer). If it has, a tensor that
    // is missing from the file does not exist.
    bool has_layer(int layer) const;

   private:
    struct Part {
        std::uint64_t bytes;
        GgufRead read;
        std::uint64_t alignment = 32;
        std::uint64_t data = 0;  // start of the data section
    };
    struct Tensor {
        std::size_t part = 0;
        std::vector<std::uint64_t> extents;
        std::uint32_t element = 0;
        std::uint64_t offset = 0;  // in the data section
    };

    void read_values(class GgufCursor& cursor, std::uint64_t count);
    void read_tensors(class GgufCursor& cursor, std::uint64_t count);
    void keep(const std::string& title, Tensor tensor);

    std::vector<Part> parts_;  // this file first
    bool has_tensors_ = false;
    std::map<std::string, GgufValue> values_;
    std::map<std::string, Tensor> tensors_;  // tensors that scale frequencies, and norms of Q and K
    std::set<int> layers_;                   // layers that have tensors
};

}  // namespace vkrope
