// SPDX-License-Identifier: MIT
// Parses a GGUF file once to import several of its RoPEs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "model/gguf/file.hpp"
#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

class GgufFile;

class GgufModel {
   public:
    // If the file is not a GGUF file, rotation() returns the error. Keeps `read`, because each
    // rotation reads the tensors that scale its frequencies.
    GgufModel(std::uint64_t file_bytes, const GgufRead& read);
    explicit GgufModel(const std::string& path);

    // Same as vkrope_model_from_gguf.
    Result<RopeParams> rotation(const ModelQuery& query) const;

   private:
    void parse(std::uint64_t file_bytes, const GgufRead& read);
    // Adds the other parts of a split file from the same folder.
    void add_parts(const std::string& path);

    std::shared_ptr<GgufFile> file_;
    Status problem_;
};

}  // namespace vkrope
