// SPDX-License-Identifier: MIT
// The nodes of ggml's graph from a layer's projections to its attention, found backwards.
#pragma once

#include <ggml.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace engine {

/// The way of Q, K or V. What the graph does not have is null.
struct Chain {
    ggml_tensor* input = nullptr;  ///< rows that vkrope reads, with any strides; null: none
    ggml_tensor *bias = nullptr, *norm = nullptr, *weight = nullptr, *clip = nullptr;
    ggml_tensor *rope = nullptr, *scale = nullptr, *scale_tokens = nullptr, *hadamard = nullptr;
    bool norm_after = false;        ///< the norm follows the rotation or the clip
    ggml_tensor* output = nullptr;  ///< the last rows in f32
    ggml_tensor* store = nullptr;   ///< SET_ROWS of K and V, to `cache`
    ggml_tensor* cache = nullptr;
    std::int64_t head_dim = 0, heads = 0;
    std::int64_t first_channel = 0;  ///< of a part of the latent row of MLA
    ggml_tensor* unknown = nullptr;  ///< an op before the input that the rules should know
    std::size_t nodes = 0;           ///< that compute, in place of which vkrope has a call
};

/// Indexed by vkrope_tensor_index.
using Layer = std::array<Chain, 3>;

/// Finds the layer before an attention. Returns whether it has rows that vkrope makes.
///
/// stores  the last SET_ROWS to each cache
bool find(Layer& layer, const ggml_tensor* attention,
          const std::map<const ggml_tensor*, ggml_tensor*>& stores);

/// Returns the leaf that rows come from: a view or a copy of a cache comes from the cache.
ggml_tensor* leaf_of(ggml_tensor* rows);
bool is_weight(const ggml_tensor* tensor);

/// Returns parameter `index` of a node, a float.
float parameter(const ggml_tensor* node, int index);

}  // namespace engine
