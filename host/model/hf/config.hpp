// SPDX-License-Identifier: MIT
// Parses a Hugging Face config.json once to import several of its RoPEs.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "model/query.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

class HfConfig {
   public:
    // If the text is no configuration, rotation() returns the error and document() is no object.
    explicit HfConfig(std::string_view json_text);

    // Same as vkrope_model_from_hf_config.
    Result<RopeParams> rotation(const ModelQuery& query) const;

    const nlohmann::json& document() const noexcept { return document_; }

    // Returns the language model's object: the document, or an object inside it.
    const nlohmann::json& language_model() const;

   private:
    nlohmann::json document_;
    Status problem_;
};

}  // namespace vkrope
