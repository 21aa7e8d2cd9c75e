// SPDX-License-Identifier: MIT
#include "cli/ops_text.hpp"

#include <fmt/format.h>

#include "base/meaning.hpp"

namespace vkrope::tools {
namespace {

constexpr Choice<ParameterShape> shapes[] = {{"channel", VKROPE_PARAMETER_CHANNEL},
                                             {"head_channel", VKROPE_PARAMETER_HEAD_CHANNEL}};
constexpr Choice<QueryScaling> query_scalings[] = {{"logn", VKROPE_QUERY_SCALING_LOGN},
                                                   {"llama4", VKROPE_QUERY_SCALING_LLAMA4},
                                                   {"ministral3", VKROPE_QUERY_SCALING_MINISTRAL3}};

// Returns the channels of a norm: "each head" or "channels 0 to 511".
std::string part_text(const Norm& norm) {
    if (norm.channels == 0) return fmt::format("each {}", word_for(norm_spans, norm.span));
    return fmt::format("channels {} to {}{}", norm.first_channel,
                       norm.first_channel + norm.channels - 1,
                       norm.span == VKROPE_NORM_SPAN_TOKEN ? " of all heads of a token" : "");
}

std::string norm_text(const Norm& norm) {
    return fmt::format("{} norm of {} (eps {:g}{}{})", word_for(norm_kinds, norm.kind),
                       part_text(norm), norm.eps,
                       norm.weight == VKROPE_PARAMETER_NONE ? ""
                       : norm.weight_offset == 1            ? ", 1 + weight"
                                                            : ", weight",
                       norm.bias == VKROPE_PARAMETER_NONE ? "" : ", bias");
}

nlohmann::ordered_json shape_json(ParameterShape shape) {
    return shape == VKROPE_PARAMETER_NONE ? nlohmann::ordered_json(nullptr)
                                          : nlohmann::ordered_json(word_for(shapes, shape));
}

nlohmann::ordered_json tensor_json(const Ops& ops, bool norms_known) {
    return {{"norm", norms_known ? norm_json(ops.norm) : "not known"},
            {"clip",
             ops.clip == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(ops.clip)}};
}

// Returns a formula, "1 + 0.1 ln(1 + floor(p / 8192))"; empty if there is none.
std::string query_scale_text(const QueryScale& scale) {
    switch (scale.kind) {
        case VKROPE_QUERY_SCALING_LOGN:
            return fmt::format("ln(p + 1) / ln({:g}) beyond {:g} tokens", scale.length,
                               scale.length);
        case VKROPE_QUERY_SCALING_LLAMA4:
            return fmt::format("1 + {:g} ln(1 + floor((p + 1) / {:g}))", scale.beta, scale.length);
        case VKROPE_QUERY_SCALING_MINISTRAL3:
            return fmt::format("1 + {:g} ln(1 + floor(p / {:g}))", scale.beta, scale.length);
        default: return "";
    }
}

}  // namespace

std::string ops_text(const Ops& ops, bool rotates) {
    std::string text;
    const auto add_if = [&text](bool taken, const std::string& step) {
        text += !taken ? "" : (text.empty() ? "" : ", ") + step;
    };
    const bool has_norm = ops.norm.kind != VKROPE_NORM_NONE,
               after = ops.norm.place == VKROPE_NORM_PLACE_AFTER;
    add_if(ops.hadamard_of_input != 0,
           fmt::format("undo the Hadamard transform of {}", ops.hadamard_of_input));
    add_if(ops.bias != VKROPE_PARAMETER_NONE, "bias");
    add_if(has_norm && !after, norm_text(ops.norm));
    add_if(ops.clip != 0, fmt::format("clip to +-{:g}", ops.clip));
    add_if(rotates, "rotation");
    add_if(has_norm && after, norm_text(ops.norm));
    add_if(scale_of(ops) != 1 || ops.scale_call, "scale");
    add_if(ops.scale_tokens, "scale by position");
    add_if(ops.hadamard != 0, fmt::format("Hadamard transform of {}", ops.hadamard));
    return text.empty() ? "none" : text;
}

nlohmann::ordered_json norm_json(const Norm& norm) {
    if (norm.kind == VKROPE_NORM_NONE) return nullptr;
    return {{"kind", word_for(norm_kinds, norm.kind)},
            {"span", word_for(norm_spans, norm.span)},
            {"place", word_for(norm_places, norm.place)},
            {"eps", norm.eps},
            {"weight", shape_json(norm.weight)},
            {"weight_offset", norm.weight_offset},
            {"bias", shape_json(norm.bias)},
            {"first_channel", norm.first_channel},
            {"channels", norm.channels}};
}

nlohmann::ordered_json ops_json(const ModelOps& ops) {
    const QueryScale& scale = ops.query_scale;
    nlohmann::ordered_json scale_json = nullptr;
    if (scale.kind != VKROPE_QUERY_SCALING_NONE) {
        scale_json = {{"kind", word_for(query_scalings, scale.kind)},
                      {"length", scale.length},
                      {"beta", scale.beta}};
    }
    return {{"q", tensor_json(ops.tensor[Q], ops.norms_known)},
            {"k", tensor_json(ops.tensor[K], ops.norms_known)},
            {"v", tensor_json(ops.tensor[V], ops.norms_known)},
            {"query_scale", scale_json}};
}

std::string model_ops_text(const RopeParams& rotation) {
    const ModelOps& ops = rotation.ops;
    const Ops plain;
    std::string text;
    const auto add = [&](const char* name, const Ops& of_tensor, bool rotates) {
        const std::string taken = ops_text(of_tensor, rotates);
        if (taken != ops_text(plain, rotates))
            text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, taken);
    };
    add("Q", ops.tensor[Q], !rotation.no_rope);
    add(ops.tensor[K].norm.channels != 0 ? "K as a row of the latent cache" : "K", ops.tensor[K],
        !rotation.no_rope);
    add("V", ops.tensor[V], false);
    if (!ops.norms_known)
        text += fmt::format("{}norms of Q and K: not known", text.empty() ? "" : "; ");
    else if (ops.tensor[Q].norm.kind == VKROPE_NORM_NONE &&
             ops.tensor[K].norm.kind == VKROPE_NORM_NONE)
        text += fmt::format("{}norms of Q and K: none", text.empty() ? "" : "; ");
    const std::string scale = query_scale_text(ops.query_scale);
    text += scale.empty() ? "" : fmt::format("; at position p the factor of Q is {}", scale);
    return text;
}

}  // namespace vkrope::tools
