// SPDX-License-Identifier: MIT
#include "harness.hpp"

#include <ggml-backend.h>

#include <bit>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <random>

namespace engine {

namespace {

constexpr int crashes[] = {SIGABRT, SIGSEGV};

// Only a context shift turns the keys of a cache.
bool turns_cache(const ggml_tensor* node) {
    return node->op == GGML_OP_ROPE && std::strncmp(leaf_of(node->src[0])->name, "cache_k", 7) == 0;
}

// Whether a matrix is Hadamard's in Sylvester's order, and orthonormal.
bool is_hadamard(const Bytes& matrix) {
    const std::size_t count = matrix.size() / sizeof(float), n = std::size_t(std::sqrt(count));
    for (std::size_t i = 0; i < count; ++i) {
        const float sign = std::popcount(i / n & i % n) % 2 == 0 ? 1 : -1;
        if (std::fabs(floats(matrix)[i] - sign / std::sqrt(float(n))) > 1e-7f) return false;
    }
    return true;
}

}  // namespace

Harness::Harness(const Setup& setup) {
    for (const int crash : crashes) std::signal(crash, [](int) { std::_Exit(no_model); });
    model_ = random_model(setup);
    llama_context_params parameters = llama_context_default_params();
    parameters.n_ctx = 256;
    parameters.n_batch = parameters.n_ubatch = 64;
    parameters.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;  // else V is transposed
    parameters.op_offload = false;  // else layers are cut between devices
    parameters.type_k = setup.k;
    parameters.type_v = setup.v;
    parameters.cb_eval = [](ggml_tensor* node, bool ask, void* self) {
        auto& harness = *static_cast<Harness*>(self);
        if (ask) return harness.before(node);
        harness.after(node);
        return true;
    };
    parameters.cb_eval_user_data = this;
    if (model_) context_ = llama_init_from_model(model_, parameters);
    if (!context_) std::exit(no_model);
}

Harness::~Harness() {
    llama_free(context_);
    llama_model_free(model_);
}

bool Harness::before(ggml_tensor* node) {
    if (!at_layer_) return turns_cache(node);
    if (node->op == GGML_OP_SET_ROWS) {
        stores_[node->view_src] = node;
        copies_[node] = read<unsigned char>(node->view_src);
    }
    if (node->op != GGML_OP_FLASH_ATTN_EXT) return true;
    for (const int crash : crashes) std::signal(crash, SIG_DFL);  // from here on it is ours
    Layer layer;
    if (!find(layer, node, stores_)) {
        if (layer[1].store) fail("the nodes of a layer with a cache are not known");
        return true;
    }
    for (const Chain& of : layer) {
        if (of.input && of.unknown) fail(std::string("not known: ") + of.unknown->name);
        if (of.hadamard && !is_hadamard(copies_.at(of.hadamard->src[0])))
            fail("not a Hadamard matrix");
    }
    at_layer_(layer, copies_);
    return true;
}

// Leaves are read with the node that reads them, since later nodes may have their memory.
void Harness::after(ggml_tensor* node) {
    if (turns_cache(node)) deltas_ = read<std::int32_t>(node->src[1]);
    if (node->type == GGML_TYPE_F32 && node->op != GGML_OP_SET_ROWS)
        copies_[node] = read<unsigned char>(node);
    for (const ggml_tensor* leaf : node->src)
        if (leaf && leaf->op == GGML_OP_NONE && leaf->buffer && !is_weight(leaf))
            copies_[leaf] = read<unsigned char>(leaf);
}

std::vector<float> Harness::decode(const std::vector<llama_token>& tokens,
                                   std::int32_t first_position, const AtLayer& at_layer) {
    at_layer_ = at_layer;
    copies_.clear();
    stores_.clear();
    llama_batch batch = llama_batch_init(std::int32_t(tokens.size()), 0, 1);
    batch.n_tokens = std::int32_t(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        batch.token[i] = tokens[i];
        batch.pos[i] = first_position + std::int32_t(i);
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context_, batch) != 0) fail("llama_decode fails");
    llama_batch_free(batch);
    const auto vocabulary = std::size_t(llama_vocab_n_tokens(llama_model_get_vocab(model_)));
    const float* logits = llama_get_logits(context_);
    return {logits, logits + vocabulary * tokens.size()};
}

std::vector<llama_token> some_tokens(std::size_t count) {
    std::mt19937 random(1);
    std::vector<llama_token> tokens(count);
    for (llama_token& token : tokens) token = llama_token(random() % 256);
    return tokens;
}

}  // namespace engine
