// SPDX-License-Identifier: MIT
// Reads the ops of a layer. Source: llama.cpp; src/llama-arch.cpp for tensors and keys, the graphs
// in src/models/*.cpp for the kind and place of the norms.
#include <algorithm>
#include <cmath>

#include "model/gguf/readers.hpp"
#include "model/rotation_rules.hpp"

namespace vkrope {
namespace {

class GgufOpsImport {
   public:
    GgufOpsImport(GgufFields& keys, const GgufFile& file, const GgufArchitecture& architecture,
                  const Query& query, RopeParams& rotation)
        : keys_(keys), file_(file), architecture_(architecture), known_(architecture.known()),
          query_(query), rotation_(rotation) {}

    ModelOps run() {
        if (architecture_.latent) {  // its norms precede the split into heads
            ops_.norms_known = known_;
        } else {
            of_heads();
            if (known_ && !ops_.norms_known && !said_ && file_.has_layer(-1)) {
                warn(rotation_,
                     "whether Q and K have norms is not known: the file has no tensors of layer {}",
                     query_.layer);
            }
        }
        query_scale();
        ops_.tensor[Q].scale_tokens = ops_.query_scale.kind != VKROPE_QUERY_SCALING_NONE;
        return ops_;
    }

   private:
    void of_heads() {
        ops_.q_heads = heads("attention.head_count");
        ops_.k_heads = heads("attention.head_count_kv");
        if (ops_.k_heads == 0) {
            ops_.k_heads = ops_.q_heads;  // every query head has one key head
        }
        norms();
        norms_without_weight();
        clip();
    }

    /// Returns 0 if the file has no such number, or a number per layer and no layer is selected.
    std::uint32_t heads(const char* key) {
        const Field field = keys_.find(key);
        if (!field) {
            return 0;
        }
        const std::vector<std::uint64_t> all = whole_numbers(field, 0, max_heads);
        const bool each = field.is_list();
        const auto layer = each ? static_cast<std::size_t>(std::max(query_.layer, 0)) : 0;
        return (each && query_.layer < 0) || layer >= all.size() ? 0 : std::uint32_t(all[layer]);
    }

    /// Returns the tensor prefix of the selected layer, or else of the first layer that has a norm
    /// of Q or, if there is none, of K.
    std::string layer_of_norms() const {
        if (query_.layer >= 0) return "blk." + std::to_string(query_.layer) + ".";
        const std::string of_q = file_.layer_with("attn_q_norm.weight");
        return of_q.empty() ? file_.layer_with("attn_k_norm.weight") : of_q;
    }

    void norms() {
        const std::string layer = layer_of_norms();
        if (!known_) {
            for (const char* norm : {"attn_q_norm.weight", "attn_k_norm.weight"}) {
                if (file_.norm_extents(layer + norm) != nullptr) {
                    warn(
                        rotation_,
                        "{}{}: the architecture is unknown, so that the norm of this tensor is not "
                        "known: it is left out",
                        layer, norm);
                    break;
                }
            }
            return;
        }
        const GgufNorms& row = architecture_.norms;
        // The norms of the layer may be in missing parts of a split file.
        const bool whole = file_.parts_read() >= file_.split_count();
        said_ = row.unread || !whole;
        ops_.norms_known = !row.unread && file_.has_layer(query_.layer) && whole;
        if (!norm_of(layer + "attn_q_norm", ops_.q_heads, row, ops_.tensor[Q].norm) ||
            !norm_of(layer + "attn_k_norm", ops_.k_heads, row, ops_.tensor[K].norm)) {
            ops_.tensor[Q].norm = ops_.tensor[K].norm = {};
            ops_.norms_known = false;
            said_ = true;
            return;
        }
        if (row.of_v_too && ops_.tensor[K].norm.kind != VKROPE_NORM_NONE) {
            ops_.tensor[V].norm = ops_.tensor[K].norm;
            ops_.tensor[V].norm.weight = ops_.tensor[V].norm.bias = VKROPE_PARAMETER_NONE;
        }
    }

    /// Returns false if the file has this norm, but not for rows of head_dim channels.
    bool norm_of(const std::string& tensor, std::uint32_t head_count, const GgufNorms& row,
                 Norm& norm) {
        const auto* weight = file_.norm_extents(tensor + ".weight");
        if (weight == nullptr) {
            return true;
        }
        const auto* bias = file_.norm_extents(tensor + ".bias");
        const std::uint64_t channels = rotation_.head_dim,
                            all = channels * std::uint64_t{head_count};
        const std::vector<std::uint64_t> one_head = {channels}, each_head = {channels, head_count},
                                         token = {all};
        if (*weight != one_head && *weight != each_head && (*weight != token || all == 0)) {
            warn(rotation_, "{}.weight is for neither one head nor all heads: its norm is left out",
                 tensor);
            return false;
        }
        if (bias != nullptr && (*bias != *weight || row.kind != VKROPE_NORM_LAYER)) {
            warn(rotation_,
                 "{}.bias does not belong to a layer norm like its weight: its norm is left out",
                 tensor);
            return false;
        }
        norm.kind = row.kind;
        norm.place = row.place;
        norm.eps = eps(row.kind);
        norm.span = *weight == one_head || *weight == each_head ? VKROPE_NORM_SPAN_HEAD
                                                                : VKROPE_NORM_SPAN_TOKEN;
        norm.weight = *weight == one_head ? VKROPE_PARAMETER_CHANNEL
                                          : VKROPE_PARAMETER_HEAD_CHANNEL;
        norm.bias = bias == nullptr ? VKROPE_PARAMETER_NONE : norm.weight;
        return true;
    }

    float eps(NormKind kind) {
        const Field field = keys_.required(kind == VKROPE_NORM_LAYER
                                               ? "attention.layer_norm_epsilon"
                                               : "attention.layer_norm_rms_epsilon",
                                           "the norms of Q and K need it");
        return norm_eps(field, 0);
    }

    /// Adds the norms of Llama 4, which have no weights.
    void norms_without_weight() {
        if (!architecture_.norms.without_weight || rotation_.no_rope) {
            return;
        }
        const Field experts = keys_.find("expert_count");
        if (experts && whole_number(experts, 0, max_whole) == 128) {
            return;
        }
        Norm norm;
        norm.kind = VKROPE_NORM_RMS;
        norm.place = VKROPE_NORM_PLACE_AFTER;
        const bool given(keys_.find("attention.layer_norm_rms_epsilon"));
        norm.eps = given ? eps(norm.kind) : 1e-5f;  // the default of the class
        ops_.tensor[Q].norm = ops_.tensor[K].norm = norm;
        ops_.norms_known = true;
    }

    void clip() {
        const Field field = keys_.find("attention.clamp_kqv");
        if (!field || !architecture_.clips) {
            return;
        }
        const double bound = finite_number(field);
        if (bound < 0 || !std::isfinite(float(bound))) {
            invalid_data("{} is {}: it must be at least 0 and fit in a float", field.name, bound);
        }
        ops_.tensor[Q].clip = ops_.tensor[K].clip = ops_.tensor[V].clip = float(bound);
    }

    void query_scale() {
        if (architecture_.query_scale == VKROPE_QUERY_SCALING_LLAMA4 && rotation_.no_rope) {
            ops_.query_scale = {VKROPE_QUERY_SCALING_LLAMA4, 8192,
                                0.1};  // from llama.cpp, not from the file
        }
        if (architecture_.query_scale != VKROPE_QUERY_SCALING_MINISTRAL3) {
            return;
        }
        const Field beta = keys_.find("attention.temperature_scale"),
                    length = keys_.find("rope.scaling.original_context_length");
        if (beta && length && finite_number(beta) != 0) {
            ops_.query_scale = {VKROPE_QUERY_SCALING_MINISTRAL3, positive_number(length),
                                positive_number(beta)};
        }
    }

    GgufFields& keys_;
    const GgufFile& file_;
    const GgufArchitecture& architecture_;
    const bool known_;  // the table of architectures has a row
    const Query& query_;
    RopeParams& rotation_;
    ModelOps ops_;
    bool said_ = false;  // a warning has explained why the norms are not known
};

}  // namespace

ModelOps gguf_ops(GgufFields& keys, const GgufFile& file, const GgufArchitecture& architecture,
                  const Query& query, RopeParams& rotation) {
    return GgufOpsImport(keys, file, architecture, query, rotation).run();
}

}  // namespace vkrope
