// SPDX-License-Identifier: MIT
// Source: DeepseekV32Indexer and GlmMoeDsaIndexer in transformers, which have a pairing each;
// indexer_rope_interleave: deepseek_v2.py of vLLM and of SGLang, for which a missing key is false.
#include "defaults.hpp"
#include "model/hf/indexer.hpp"

#include "model/import_error.hpp"
#include "model/json_document.hpp"
#include "model/limits.hpp"

namespace vkrope {

void become_indexer(const Source& source, const ModelQuery& query, Rotation& rotation) {
    const ModelType& type = source.model.type;
    if (!type.indexer) {
        fail(VKROPE_ERROR_INVALID_ARGUMENT,
             "layer_type is 'indexer': model_type %s is not known to have one",
             type.name == nullptr ? "(unknown)" : type.name);
    }
    const Field width = find_first(source.top, {"index_head_dim"}),
                heads = find_first(source.top, {"index_n_heads"}),
                pairing = find_first(source.top, {"indexer_rope_interleave"});
    rotation.head_dim = width ? std::uint32_t(whole_number(width, 2, max_head_dim)) : 128;
    if (rotation.head_dim < rotation.rotary_dim) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s is %u: it must be at least qk_rope_head_dim, which is %u",
             width ? width.name.c_str() : "index_head_dim", rotation.head_dim, rotation.rotary_dim);
    }
    rotation.q_rotary_offset = rotation.k_rotary_offset = 0;
    rotation.pairing = value_or(query.pairing, !pairing         ? *type.indexer
                                              : truth(pairing) ? VKROPE_INTERLEAVED
                                                               : VKROPE_HALF_SPLIT);
    rotation.softmax_scale = 1;
    rotation.finish = {};
    rotation.finish.norms_known = true;
    rotation.finish.tensor[K].norm = {.kind = VKROPE_NORM_LAYER,
                              .eps = 1e-6f,
                              .weight = VKROPE_PARAMETER_CHANNEL,
                              .bias = VKROPE_PARAMETER_CHANNEL};
    rotation.finish.q_heads = heads ? std::uint32_t(whole_number(heads, 1, max_heads)) : 0;
    rotation.finish.k_heads = 1;
    rotation.warnings.push_back(
        "the indexer turns the first channels of its rows; DeepSeek's own code then multiplies "
        "them by a Hadamard matrix, which no field of the file says");
}

}  // namespace vkrope
