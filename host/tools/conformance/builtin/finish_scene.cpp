// SPDX-License-Identifier: MIT
// What the outputs of a scene must be: the oracle's, and the same in every way.
#include "conformance/builtin/finish_scene.hpp"

#include <cstring>

#include "conformance/builtin/finish_run.hpp"
#include "reference/finish.hpp"
#include "reference/quantise.hpp"

namespace vkrope::conformance {
namespace {

using namespace scenes;

reference::Finish steps_of(const Scene& scene, const Finish& finish,
                           const Parameters::OfTensor& parameters) {
    const auto doubles = [](const std::vector<float>& floats) {
        return std::vector<double>(floats.begin(), floats.end());
    };
    const Norm& norm = finish.norm;
    reference::Finish steps;
    steps.bias = doubles(parameters.bias);
    steps.norm.kind = norm.kind == VKROPE_NORM_RMS     ? reference::NormKind::rms
                      : norm.kind == VKROPE_NORM_LAYER ? reference::NormKind::layer
                                                       : reference::NormKind::none;
    steps.norm.over_token = norm.span == VKROPE_NORM_SPAN_TOKEN;
    steps.norm.after = norm.place == VKROPE_NORM_PLACE_AFTER;
    steps.norm.eps = norm.eps;
    steps.norm.weight = doubles(parameters.weight);
    steps.norm.weight_offset = norm.weight_offset;
    steps.norm.bias = doubles(parameters.norm_bias);
    steps.clip = finish.clip;
    steps.hadamard = finish.hadamard;
    steps.scale = double{scale_of(finish)} * (finish.scale_call ? double{scene.q_scale} : 1);
    if (finish.scale_tokens) {
        steps.scale_tokens = doubles(token_scales());
    }
    return steps;
}

/// Compares the outputs of one way with the oracle.
void hold_definition(DeviceUnderTest& device, const Scene& scene, const Outputs& outputs,
                     Findings& findings) {
    const KernelInfo info = kernel_of(scene, {});
    const Parameters parameters = parameters_of(info);
    const Rotation rotation = rotation_of(scene);
    const struct {
        char name;
        std::uint32_t heads, seed;
        const Finish& finish;
        const Bytes& output;
    } tensors[] = {{'Q', q_heads, 1, scene.q, outputs.q},
                   {'K', k_heads, 2, scene.k, outputs.k},
                   {'V', k_heads, 3, scene.v, outputs.v}};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto& [name, heads, seed, finish, output] = tensors[i];
        const auto shape = [&](Element element) {
            const std::uint64_t row = scene.head_dim;
            return reference::Tensor{.type = type_of(element),
                                     .batch = batch,
                                     .tokens = tokens,
                                     .heads = heads,
                                     .head_dim = row,
                                     .batch_stride = row * heads * tokens,
                                     .token_stride = row * heads,
                                     .head_stride = row};
        };
        reference::Operation operation;
        if (device.traits().flushes_subnormals) {
            operation.absolute_allowance = 0x1p-123 + 0x1p-148;
        }
        for (std::uint32_t t = 0; t < batch * tokens; ++t) {
            operation.positions.push_back(first_position + t % tokens);
        }
        if (name != 'V') {
            operation.interleaved = scene.pairing == VKROPE_INTERLEAVED;
            operation.rotary_offset = scene.rotary_offset;
            operation.inv_freq = rotation.inv_freq;
        }
        const Bytes input = input_of(scene, heads, seed);
        const reference::FinishVerdict verdict = reference::compare(
            shape(scene.in), shape(scene.out), operation,
            steps_of(scene, finish, parameters.tensors[i]),
            error_bound(VKROPE_ANGLES_DIRECT_BUFFER, 1), input.data(), output.data());
        findings.hold(verdict.right(), "{}: {} of {} values are within the contract: {}", name,
                      verdict.within, verdict.elements, verdict.worst);
    }
}

/// What a quantised type makes of one tensor.
struct Quantised {
    std::vector<std::uint8_t> codes;
    std::vector<float> scales;  // made ones
};

/// `rows`: f32, before the store. `given`: its scales, if there are any.
Quantised quantised(const Scene& scene, const Finish& finish, const std::vector<float>& given,
                    std::uint32_t heads, const Bytes& rows) {
    const auto store = reference::Store(static_cast<std::uint32_t>(scene.out) -
                                        static_cast<std::uint32_t>(VKROPE_E4M3FN));
    Quantised all;
    std::vector<float> row(scene.head_dim);
    for (std::size_t i = 0; i < rows_of(heads); ++i) {
        std::memcpy(row.data(), rows.data() + i * row.size() * sizeof(float),
                    row.size() * sizeof(float));
        std::vector<std::uint8_t> codes;
        if (block_channels(scene.out) != 1) {
            codes = reference::quantise_blocks(store, row);
        } else if (is_made(finish.store_scale)) {
            reference::MadeRow made = reference::quantise_made(
                store, row, finish.scale_floor,
                finish.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
            codes = std::move(made.codes);
            all.scales.push_back(made.scale);
        } else {
            const float factor = given.empty() ? 1 : given[i % heads % given.size()];
            codes = reference::quantise_given(store, row, factor);
        }
        all.codes.insert(all.codes.end(), codes.begin(), codes.end());
    }
    return all;
}

/// Compares the codes of one way with the definition of their type, for the rows of f32 that the
/// device itself stores; and these rows with the oracle.
void hold_codes(DeviceUnderTest& device, const Scene& scene, const Outputs& outputs,
                Findings& findings) {
    Scene plain = scene;
    plain.out = VKROPE_F32;
    for (Finish* finish : {&plain.q, &plain.k, &plain.v}) {
        finish->store_scale = VKROPE_STORE_SCALE_NONE;
        finish->scale_floor = 0;
    }
    const Outputs rows = run(device, plain, {.mapping = VKROPE_MAPPING_CPU});
    hold_definition(device, plain, rows, findings);
    const Parameters parameters = parameters_of(kernel_of(scene, {}));
    const struct {
        char name;
        std::uint32_t heads;
        const Finish& finish;
        const Bytes &rows, &codes, &scales;
    } tensors[] = {{'Q', q_heads, scene.q, rows.q, outputs.q, outputs.q_scales},
                   {'K', k_heads, scene.k, rows.k, outputs.k, outputs.k_scales},
                   {'V', k_heads, scene.v, rows.v, outputs.v, outputs.v_scales}};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto& [name, heads, finish, floats, codes, scales] = tensors[i];
        const Quantised expected = quantised(scene, finish, parameters.tensors[i].store_scale,
                                             heads, floats);
        std::size_t differing = 0;
        for (std::size_t at = 0; at < codes.size(); ++at) {
            differing += std::to_integer<std::uint8_t>(codes[at]) != expected.codes[at];
        }
        findings.hold(codes.size() == expected.codes.size() && differing == 0,
                      "{}: {} of {} bytes differ from the definition", name, differing,
                      codes.size());
        findings.hold(scales == bytes_of(expected.scales),
                      "{}: a scale is not the one of the definition", name);
    }
}

}  // namespace

void hold(DeviceUnderTest& device, const Scene& scene, Findings& findings) {
    const Outputs outputs = run(device, scene, {.mapping = VKROPE_MAPPING_CPU});
    if (is_quantised(scene.out)) {
        hold_codes(device, scene, outputs, findings);
    } else {
        hold_definition(device, scene, outputs, findings);
    }
    const auto same = [&](const char* what, const Way& way) {
        findings.hold(run(device, scene, way) == outputs, "{} gives different bits", what);
    };
    same("the mapping of GPUs", {.mapping = VKROPE_MAPPING_GPU});
    if (scene.head_dim == usual_head_dim) {  // other kernels, or other accesses to memory
        same("a tensor that starts in the middle of 16 bytes",
             {.mapping = VKROPE_MAPPING_GPU, .lead = 2});
        same("the same on a processor", {.mapping = VKROPE_MAPPING_CPU, .lead = 2});
        if (is_quantised(scene.out))
            same("an output that starts at any byte", {.mapping = VKROPE_MAPPING_GPU, .lead = 3});
        same("a cache", {.mapping = VKROPE_MAPPING_CPU, .slots = true});
    }
    if (scene.in == scene.out) {
        same("in place", {.mapping = VKROPE_MAPPING_CPU, .in_place = true});
    }
}

}  // namespace vkrope::conformance
