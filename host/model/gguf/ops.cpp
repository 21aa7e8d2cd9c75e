// SPDX-License-Identifier: MIT
// Source: llama.cpp; src/llama-arch.cpp for tensors and keys, the graphs in src/models/*.cpp for
// the kind and place of the norms, load_arch_hparams() for the scale of the scores.
#include <algorithm>
#include <cmath>

#include "model/gguf/import.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {

void GgufImport::ops() {
    ModelOps& ops = rotation_.ops;
    ops.q_heads = head_count("attention.head_count");
    ops.k_heads = row_.latent ? 1 : head_count("attention.head_count_kv");
    if (ops.k_heads == 0) ops.k_heads = ops.q_heads;  // every query head has one key head
    norms();
    norms_without_weight();
    if (!row_.latent) clip();
    if (row_.known() && !ops.norms_known && !norms_told_ && file_.has_layer(-1)) {
        warn(rotation_,
             "whether Q and K have norms is not known: the file has no tensors of layer {}",
             query_.layer);
    }
    query_scale();
    ops.tensor[Q].scale_tokens = ops.query_scale.kind != VKROPE_QUERY_SCALING_NONE;
}

// Returns 0 if the file has no such number, or several for the chosen layers.
std::uint32_t GgufImport::head_count(const char* key) {
    const Field field = find(key);
    if (!field) return 0;
    const std::vector<std::uint64_t> all = whole_numbers(field, 0, max_heads);
    if (!field.is_list()) return std::uint32_t(all[0]);
    const LayerNumbers each = {field.name, {all.begin(), all.end()}};
    return std::uint32_t(layers_.common(each, query_, kind_, true).value_or(0));
}

// Reads the norms of the selected layer, or else of the first layer that has a norm of Q or, if
// there is none, of K. In latent attention only the latent channels of K's row have one.
void GgufImport::norms() {
    ModelOps& ops = rotation_.ops;
    std::string layer = "blk." + std::to_string(query_.layer) + ".";
    if (query_.layer < 0) {
        layer = file_.layer_with(row_.latent ? "attn_kv_a_norm.weight" : "attn_q_norm.weight");
        if (layer.empty()) layer = file_.layer_with("attn_k_norm.weight");
    }
    if (!row_.known()) {
        for (const char* name :
             {"attn_q_norm.weight", "attn_k_norm.weight", "attn_kv_a_norm.weight"}) {
            if (file_.norm_extents(layer + name) == nullptr) continue;
            return warn(rotation_,
                        "{}: the architecture is unknown, so that the norm of this tensor is not "
                        "known: it is left out",
                        layer + name);
        }
        return;
    }
    // The norms of the layer may be in missing parts of a split file.
    const bool whole = file_.parts_read() >= file_.split("split.count");
    norms_told_ = row_.norms.unread || !whole;
    ops.norms_known = !row_.norms.unread && file_.has_layer(query_.layer) && whole;
    const std::uint32_t row = rotation_.head_dim, rank = rotation_.k_rotary_offset;
    Norm& of_k = ops.tensor[K].norm;
    if (row_.latent ? !norm_of(layer + "attn_kv_a_norm", 1, rank, of_k)
                    : !norm_of(layer + "attn_q_norm", ops.q_heads, row, ops.tensor[Q].norm) ||
                          !norm_of(layer + "attn_k_norm", ops.k_heads, row, of_k)) {
        ops.tensor[Q].norm = of_k = {};
        ops.norms_known = false;
        norms_told_ = true;
    } else if (row_.latent && of_k.kind != VKROPE_NORM_NONE) {
        of_k.channels = rank;
    } else if (row_.latent && ops.norms_known) {  // every such architecture has it
        warn(rotation_,
             "{}attn_kv_a_norm.weight is missing: the norm of the latent row is not known", layer);
        ops.norms_known = false;
        norms_told_ = true;
    } else if (row_.norms.of_v_too && ops.tensor[K].norm.kind != VKROPE_NORM_NONE) {
        ops.tensor[V].norm = ops.tensor[K].norm;
        ops.tensor[V].norm.weight = ops.tensor[V].norm.bias = VKROPE_PARAMETER_NONE;
    }
}

// Returns false if the file has this norm, but not for rows of this many channels.
bool GgufImport::norm_of(const std::string& tensor, std::uint32_t head_count, std::uint32_t row,
                         Norm& norm) {
    const auto* weight = file_.norm_extents(tensor + ".weight");
    if (weight == nullptr) return true;
    const auto* bias = file_.norm_extents(tensor + ".bias");
    const std::uint64_t channels = row, all = channels * std::uint64_t{head_count};
    const std::vector<std::uint64_t> one_head = {channels}, each_head = {channels, head_count},
                                     token = {all};
    if (row == 0 ||
        (*weight != one_head && *weight != each_head && (*weight != token || all == 0))) {
        warn(rotation_, "{}.weight is for neither one head nor all heads: its norm is left out",
             tensor);
        return false;
    }
    if (bias != nullptr && (*bias != *weight || row_.norms.kind != VKROPE_NORM_LAYER)) {
        warn(rotation_,
             "{}.bias does not belong to a layer norm like its weight: its norm is left out",
             tensor);
        return false;
    }
    norm.kind = row_.norms.kind;
    norm.place = row_.norms.place;
    norm.eps = eps(norm.kind);
    norm.span = *weight == token && *weight != one_head ? VKROPE_NORM_SPAN_TOKEN
                                                        : VKROPE_NORM_SPAN_HEAD;
    norm.weight = *weight == one_head ? VKROPE_PARAMETER_CHANNEL : VKROPE_PARAMETER_HEAD_CHANNEL;
    norm.bias = bias == nullptr ? VKROPE_PARAMETER_NONE : norm.weight;
    return true;
}

float GgufImport::eps(NormKind kind) {
    const Field field = required(kind == VKROPE_NORM_LAYER ? "attention.layer_norm_epsilon"
                                                           : "attention.layer_norm_rms_epsilon",
                                 "the norms of Q and K need it");
    return norm_eps(field, 0);
}

// Adds the norms of Llama 4, which have no weights.
void GgufImport::norms_without_weight() {
    if (!row_.norms.without_weight) return;
    rotation_.ops.norms_known = true;
    const Field experts = find("expert_count");
    if (rotation_.no_rope || (experts && whole_number(experts, 0, max_whole) == 128)) return;
    Norm norm;
    norm.kind = VKROPE_NORM_RMS;
    norm.place = VKROPE_NORM_PLACE_AFTER;
    const bool given(find("attention.layer_norm_rms_epsilon"));
    norm.eps = given ? eps(norm.kind) : 1e-5f;  // the default of the class
    rotation_.ops.tensor[Q].norm = rotation_.ops.tensor[K].norm = norm;
}

void GgufImport::clip() {
    const Field field = find("attention.clamp_kqv");
    const double bound = field ? finite_number(field) : 0;
    if (bound < 0 || !std::isfinite(float(bound))) refuse(field, "a float, at least 0");
    for (const int tensor : {Q, K, V}) rotation_.ops.tensor[tensor].clip = float(bound);
}

void GgufImport::query_scale() {
    QueryScale& scale = rotation_.ops.query_scale;
    if (row_.query_scale == VKROPE_QUERY_SCALING_LLAMA4 && rotation_.no_rope)
        scale = {VKROPE_QUERY_SCALING_LLAMA4, 8192, 0.1};  // from llama.cpp, not from the file
    if (row_.query_scale != VKROPE_QUERY_SCALING_MINISTRAL3) return;
    // deepseek2.cpp reads temperature_length, mistral3.cpp only the other one.
    const Field beta = find("attention.temperature_scale"),
                original = find("rope.scaling.original_context_length"),
                own = find("attention.temperature_length");
    const Field& first = row_.latent && own ? own : original;
    const Field& other = row_.latent && own ? original : own;
    if (!beta || finite_number(beta) == 0 || !first) return;
    if (other && finite_number(other) != finite_number(first)) {
        warn(rotation_, "{} but {}: the first scales the queries, as in llama.cpp", stated(first),
             stated(other));
    }
    scale = {VKROPE_QUERY_SCALING_MINISTRAL3, positive_number(first), positive_number(beta)};
}

void GgufImport::scores() {
    double scale = row_.score_scale;  // 0: computed from the width of a query row
    if (row_.shared_width_layer_count != 0 && layers_.count == row_.shared_width_layer_count)
        scale = 1 / std::sqrt(double(divided_head_dim()));
    for (const char* name : {"attention.scale", "attention.output_scale"}) {
        const Field field = find(name);
        if (!is_on(field)) continue;
        if (row_.score_key != nullptr && row_.score_key == std::string_view(name)) {
            scale = positive_number(field);
        } else {
            warn(rotation_,
                 "{}llama.cpp does not read it for this architecture, so that its effect on the "
                 "softmax scale is not known",
                 ignored(field));
        }
    }
    if (scale != 0) {
        const double width = rotation_.head_dim + (row_.latent ? rotation_.q_rotary_offset : 0);
        rotation_.softmax_scale *= scale * std::sqrt(width);
    }
    const Field cap = find("attn_logit_softcapping");
    const double most = cap ? finite_number(cap) : row_.score_cap;
    if (most != 0) {
        warn(rotation_,
             "{} is {}{}: the scores s become c * tanh(s / c) before the softmax, which "
             "softmax_scale does not say",
             cap.name, most, cap ? "" : ", as in llama.cpp, because it is missing");
    }
}

}  // namespace vkrope
