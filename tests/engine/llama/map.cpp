// SPDX-License-Identifier: MIT
#include <ggml-backend.h>

#include "run.hpp"

namespace engine {

std::string mutant;

namespace {

vkrope::Element element_of(ggml_type type) {
    switch (type) {
        case GGML_TYPE_F32: return VKROPE_F32;
        case GGML_TYPE_F16: return VKROPE_F16;
        case GGML_TYPE_BF16: return VKROPE_BF16;
        case GGML_TYPE_Q8_0: return VKROPE_Q8_0;
        case GGML_TYPE_Q4_0: return VKROPE_Q4_0;
        case GGML_TYPE_Q4_1: return VKROPE_Q4_1;
        case GGML_TYPE_Q5_0: return VKROPE_Q5_0;
        case GGML_TYPE_Q5_1: return VKROPE_Q5_1;
        case GGML_TYPE_IQ4_NL: return VKROPE_IQ4_NL;
        default: fail(std::string("vkrope has no ") + ggml_type_name(type));
    }
}

vkrope::RopeParams rotation_of(const ggml_tensor* rope) {
    const auto factors = rope->src[2] ? read<float>(rope->src[2]) : std::vector<float>();
    auto made = vkrope::rope_params_from_ggml_op(rope->op_params, std::uint32_t(rope->ne[0]),
                                                 rope->src[2] ? factors.data() : nullptr,
                                                 factors.size());
    check(made.status, "rope_params_from_ggml_op");
    if (mutant == "pairing")
        made->pairing = made->pairing == VKROPE_HALF_SPLIT ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT;
    return made.value;
}

vkrope::Ops ops_of(const Chain& chain) {
    vkrope::Ops ops;
    if (chain.bias) ops.bias = VKROPE_PARAMETER_HEAD_CHANNEL;
    if (const ggml_tensor* norm = chain.norm) {
        ops.norm.kind = norm->op == GGML_OP_RMS_NORM ? VKROPE_NORM_RMS : VKROPE_NORM_LAYER;
        ops.norm.place = chain.norm_after ? VKROPE_NORM_PLACE_AFTER : VKROPE_NORM_PLACE_BEFORE;
        if (norm->ne[0] != chain.head_dim) ops.norm.span = VKROPE_NORM_SPAN_TOKEN;
        ops.norm.eps = parameter(norm, 0) * (mutant == "eps" ? 1000 : 1);
    }
    if (chain.weight) {
        ops.norm.weight_bound = VK_TRUE;
        ops.norm.weight = ggml_nelements(chain.weight->src[1]) == chain.head_dim
                              ? VKROPE_PARAMETER_CHANNEL
                              : VKROPE_PARAMETER_HEAD_CHANNEL;
    }
    if (chain.clip) ops.clip = parameter(chain.clip, 1);
    if (chain.scale) ops.scale = parameter(chain.scale, 0);
    ops.scale_tokens = chain.scale_tokens != nullptr;
    if (chain.hadamard && mutant != "hadamard")
        ops.hadamard = std::uint32_t(chain.hadamard->src[0]->ne[0]);
    return ops;
}

}  // namespace

Plan plan_of(const Layer& layer) {
    const auto& [q, k, v] = layer;
    const ggml_tensor* rope = k.rope ? k.rope : q.rope;
    Plan plan;
    plan.rotation.no_rope = !rope;
    plan.rotation.head_dim = std::uint32_t(k.head_dim);
    if (rope) {
        plan.rotation = rotation_of(rope);
        const auto angles = vkrope::plan_angles(plan.rotation, VKROPE_ANGLES_COMPUTED, 1, 0);
        check(angles.status, "plan_angles");
        plan.angles = angles.value;
    }
    const vkrope::Element f32 = VKROPE_F32;
    const vkrope_rope_params rotation = plan.rotation.view();
    check(vkrope::status_of(vkrope_get_kernel_info, &rotation, rope ? &plan.angles : nullptr,
                            q.input ? &f32 : nullptr, k.input ? &f32 : nullptr,
                            v.input ? &f32 : nullptr, &plan.info),
          "kernel_info");
    plan.info.scatter_kv = k.input != nullptr;
    if (rope && plan.info.positions == VKROPE_POSITIONS_IMPLICIT)
        plan.info.positions = VKROPE_POSITIONS_IDS;
    for (const auto t : vkrope::every_tensor) {
        if (!layer[t].input) continue;
        vkrope::TensorInfo& tensor = plan.info.tensor[t];
        tensor.head_dim = std::uint32_t(layer[t].head_dim);
        tensor.heads = std::uint32_t(layer[t].heads);
        tensor.ops = ops_of(layer[t]);
        if (layer[t].cache) tensor.out = element_of(layer[t].cache->type);
    }
    return plan;
}

}  // namespace engine
