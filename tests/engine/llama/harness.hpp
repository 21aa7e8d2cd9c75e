// SPDX-License-Identifier: MIT
// A model of llama.cpp with few layers and random weights, whose graph stops at every node.
// Backends then compute one by one what they would fuse.
#pragma once

#include <llama.h>

#include <functional>

#include "run.hpp"

namespace engine {

struct Setup {
    std::string architecture, device;  ///< device: "CPU" or "Vulkan0"
    ggml_type k, v;                    ///< types of the caches
    bool yarn;                         ///< with a factor of 4
};

/// Returns null if libllama does not build the model (models.cpp).
llama_model* random_model(const Setup& setup);

/// Runs when ggml has computed a layer's rows, before attention reads them.
using AtLayer = std::function<void(const Layer&, const Copies&)>;

class Harness {
   public:
    /// Exit status of a program whose model llama.cpp itself does not run.
    static constexpr int no_model = 3;

    explicit Harness(const Setup& setup);
    ~Harness();

    /// Returns the logits of all tokens. Without `at_layer`, llama.cpp runs undisturbed.
    std::vector<float> decode(const std::vector<llama_token>& tokens, std::int32_t first_position,
                              const AtLayer& at_layer = {});
    llama_memory_t memory() { return llama_get_memory(context_); }
    /// Returns by how much each cell has moved in a context shift.
    const std::vector<std::int32_t>& deltas() const { return deltas_; }

   private:
    bool before(ggml_tensor* node);
    void after(ggml_tensor* node);

    llama_model* model_;
    llama_context* context_ = nullptr;
    Copies copies_;
    std::map<const ggml_tensor*, ggml_tensor*> stores_;
    std::vector<std::int32_t> deltas_;
    AtLayer at_layer_;
};

/// Returns `count` tokens, the same each time.
std::vector<llama_token> some_tokens(std::size_t count);

}  // namespace engine
