// SPDX-License-Identifier: MIT
#include "match.hpp"

#include <ggml-backend.h>

#include <cstring>

namespace engine {

namespace {

// Returns the node behind nodes that only name the same rows.
ggml_tensor* behind(ggml_tensor* rows) {
    while (rows->op == GGML_OP_RESHAPE || (rows->op == GGML_OP_VIEW && ggml_is_contiguous(rows) &&
                                           ggml_is_contiguous(rows->src[0]) &&
                                           ggml_nelements(rows) == ggml_nelements(rows->src[0])))
        rows = rows->src[0];
    return rows;
}

bool is_any(const Chain&, const ggml_tensor*) {
    return true;
}
bool is_weighted(const Chain&, const ggml_tensor* node) {
    const ggml_op norm = behind(node->src[0])->op;
    return (norm == GGML_OP_RMS_NORM || norm == GGML_OP_NORM) && is_weight(node->src[1]) &&
           node->src[1]->ne[0] == node->ne[0];
}
bool is_square(const Chain&, const ggml_tensor* node) {  // the harness looks at its numbers
    const ggml_tensor* matrix = node->src[0];
    return matrix->op == GGML_OP_NONE && !is_weight(matrix) && matrix->ne[0] == matrix->ne[1];
}
bool is_of_tokens(const Chain&, const ggml_tensor* node) {
    const ggml_tensor* factors = node->src[1];
    return factors->op == GGML_OP_NONE && factors->ne[0] * factors->ne[1] == 1 &&
           factors->ne[2] == node->ne[2] && !is_weight(factors);
}
bool is_bias(const Chain& chain, const ggml_tensor* node) {
    return is_weight(node->src[1]) && ggml_nelements(node->src[1]) == chain.head_dim * chain.heads;
}

// The ops of a call, in reverse. A norm is tried after the rotation, then before it.
struct Rule {
    ggml_op op;
    ggml_tensor* Chain::*field;
    bool (*fits)(const Chain&, const ggml_tensor*);
};
constexpr Rule rules[] = {
    {GGML_OP_MUL_MAT, &Chain::hadamard, is_square},
    {GGML_OP_MUL, &Chain::scale_tokens, is_of_tokens},
    {GGML_OP_SCALE, &Chain::scale,
     [](const Chain&, const ggml_tensor* node) { return parameter(node, 1) == 0; }},
    {GGML_OP_MUL, &Chain::weight, is_weighted},
    {GGML_OP_RMS_NORM, &Chain::norm, is_any},
    {GGML_OP_NORM, &Chain::norm, is_any},
    {GGML_OP_ROPE, &Chain::rope, is_any},
    {GGML_OP_CLAMP, &Chain::clip,
     [](const Chain&, const ggml_tensor* of) { return parameter(of, 0) == -parameter(of, 1); }},
    {GGML_OP_MUL, &Chain::weight, is_weighted},
    {GGML_OP_RMS_NORM, &Chain::norm, is_any},
    {GGML_OP_NORM, &Chain::norm, is_any},
    {GGML_OP_ADD, &Chain::bias, is_bias},
};

// Walks backwards while nodes come in the order of the rules.
void walk(Chain& chain, ggml_tensor* last) {
    chain.input = last;
    chain.output = behind(last);
    for (const Rule& rule : rules) {
        ggml_tensor* node = behind(chain.input);
        if (node->op != rule.op || chain.*rule.field || !rule.fits(chain, node)) continue;
        if (rule.field == &Chain::rope || rule.field == &Chain::clip)
            chain.norm_after = chain.norm != nullptr;
        chain.*rule.field = node;
        chain.input = node->src[rule.op == GGML_OP_MUL_MAT ? 1 : 0];
        ++chain.nodes;
    }
    for (const ggml_op op : {GGML_OP_ROPE, GGML_OP_RMS_NORM, GGML_OP_NORM, GGML_OP_CLAMP})
        if (behind(chain.input)->op == op) chain.unknown = behind(chain.input);
    // vkrope reads rows with gaps where they are.
    ggml_tensor* copy = behind(chain.input);
    if (copy->op != GGML_OP_CONT || copy->src[0]->ne[0] != chain.head_dim ||
        copy->src[0]->ne[1] != chain.heads || copy->src[0]->nb[0] != sizeof(float))
        return;
    chain.input = copy->src[0];
    ++chain.nodes;
}

// The latent row of MLA is put together from its rotated part, K, and its normalised part, V.
void walk_latent(Chain& k, Chain& v, ggml_tensor* row) {
    for (const int i : {0, 1}) {
        Chain part = k;
        part.heads = 1;
        part.head_dim = row->src[i]->ne[0];
        part.first_channel = i * row->src[0]->ne[0];
        walk(part, row->src[i]);
        (part.rope ? k : v) = part;
    }
    k.nodes += 2;  // CONCAT and SET_ROWS
}

bool same_rope(const ggml_tensor* a, const ggml_tensor* b) {
    return a && b ? std::memcmp(a->op_params, b->op_params, sizeof a->op_params) == 0 : a == b;
}

}  // namespace

bool is_weight(const ggml_tensor* tensor) {
    return tensor->op == GGML_OP_NONE && tensor->buffer &&
           ggml_backend_buffer_get_usage(tensor->buffer) == GGML_BACKEND_BUFFER_USAGE_WEIGHTS;
}

float parameter(const ggml_tensor* node, int index) {
    float value;
    std::memcpy(&value, node->op_params + index, sizeof value);
    return value;
}

ggml_tensor* leaf_of(ggml_tensor* rows) {
    while (rows && rows->op != GGML_OP_NONE) rows = rows->src[rows->op == GGML_OP_MUL_MAT ? 1 : 0];
    return rows;
}

bool find(Layer& layer, const ggml_tensor* attention,
          const std::map<const ggml_tensor*, ggml_tensor*>& stores) {
    auto& [q, k, v] = layer;
    for (std::size_t t = 0; t < layer.size(); ++t) {
        layer[t].head_dim = attention->src[t]->ne[0];
        layer[t].heads = attention->src[t]->ne[2];
        if (t != 0) layer[t].cache = leaf_of(attention->src[t]);
        const auto store = stores.find(layer[t].cache);
        if (store != stores.end()) layer[t].store = store->second;
    }
    ggml_tensor* queries = attention->src[0];
    while (queries->op == GGML_OP_PERMUTE || queries->op == GGML_OP_VIEW) queries = queries->src[0];
    walk(q, queries);
    if (k.store && k.store == v.store) {
        ggml_tensor* row = behind(k.store->src[0]);
        if (row->op != GGML_OP_CONCAT) return false;
        walk_latent(k, v, row);
    } else if (k.store && v.store) {
        for (Chain* chain : {&k, &v}) {
            walk(*chain, chain->store->src[0]);
            ++chain->nodes;
        }
    }
    if (q.nodes == 0 || (k.input && !same_rope(q.rope, k.rope))) q.input = nullptr;
    return q.input || k.input;
}

}  // namespace engine
