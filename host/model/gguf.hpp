// SPDX-License-Identifier: MIT
// A GGUF file that is parsed once and asked for several of its RoPEs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/gguf_file.hpp"
#include "vkrope/model.hpp"

namespace vkrope {

class GgufModel {
   public:
    /// Where the file is no GGUF file, rotation() says why. What reads is kept: each rotation reads
    /// the tensors that shape its frequencies.
    GgufModel(std::uint64_t file_bytes, const GgufRead& read);
    explicit GgufModel(const std::string& path);

    /// As from_gguf().
    Result<Rotation> rotation(const ModelQuery& query) const;

   private:
    void parse(std::uint64_t file_bytes, const GgufRead& read);

    std::shared_ptr<const GgufFile> file_;
    Status problem_;
};

}  // namespace vkrope
