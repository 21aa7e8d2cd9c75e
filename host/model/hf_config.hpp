// SPDX-License-Identifier: MIT
// A Hugging Face config.json that is parsed once and asked for several of its RoPEs.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "vkrope/model.hpp"

namespace vkrope {

class HfConfig {
   public:
    /// Where the text is no configuration, rotation() says why and document() is no object.
    explicit HfConfig(std::string_view json_text);

    /// As from_hf_config().
    Result<Rotation> rotation(const ModelQuery& query) const;

    const nlohmann::json& document() const noexcept { return document_; }

   private:
    nlohmann::json document_;
    Status problem_;
};

}  // namespace vkrope
