// SPDX-License-Identifier: MIT
// Provides the specialised words of rope.comp in kernels, for every angle source.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <vector>

#include "interface.h"
#include "kernel/spirv/modules.hpp"
#include "kernel/spirv/spirv.hpp"

namespace vkrope::test {

// The angle source of a kernel, and the tensors that its dispatches see.
struct KernelKind {
    const char* name;
    std::uint32_t angles;
    bool has_k, has_v = false,
                turns = true;  // turns: whether there is a Q, else V alone as K
};

inline const std::vector<KernelKind>& kernel_kinds() {
    static const std::vector<KernelKind> all = {
        {"factored_texture", shader::angles_factored, true},
        {"computed", shader::angles_computed, true},
        {"direct_texture", shader::angles_texture, true},
        {"direct_buffer", shader::angles_pairs, true},
        {"cos_sin_cache, f32", shader::angles_cos_sin_cache + shader::element_f32, true},
        {"cos_sin_cache, f16", shader::angles_cos_sin_cache + shader::element_f16, true},
        {"cos_sin_cache, bf16", shader::angles_cos_sin_cache + shader::element_bf16, true},
        {"factored_texture, one tensor", shader::angles_factored, false},
        {"computed, one tensor", shader::angles_computed, false},
        {"direct_texture, one tensor", shader::angles_texture, false},
        {"direct_buffer, one tensor", shader::angles_pairs, false},
        {"factored_texture, with V", shader::angles_factored, true, true},
        {"cos_sin_cache, f32, with V", shader::angles_cos_sin_cache + shader::element_f32, true,
         true},
        {"V alone", shader::angles_factored, true, false, false}};
    return all;
}

inline constexpr std::array<std::uint32_t, 3> conversions = {
    shader::conversion_integer, shader::conversion_normals, shader::conversion_native};

// Other differences between kernels. `batch`: heads per lane, or 0 for all, as on a processor.
struct KernelVariation {
    std::uint32_t access, unit, element, axes, scatter, positions, pairing_out, windows, batch;
    std::uint32_t quantised = 0;  // element type of the outputs; 0: `element`
};

inline constexpr std::array<KernelVariation, 6> kernel_variations = {
    {{shader::access_wide, 8, shader::element_f16, 0, 0, 0, 0, 1, 4},
     {shader::access_wide, 8, shader::element_bf16, 0, 0, 1, 0, 1, 0},
     {shader::access_wide, 4, shader::element_f32, 0, 1, 1, 1, 2, 1},
     {shader::access_word, 2, shader::element_bf16, 3, 1, 1, 0, 1, 0},
     {shader::access_narrow, 1, shader::element_f16, 3, 0, 1, 1, 4, 2},
     {shader::access_pair, 4, shader::element_f16, 0, 1, 1, 0, 1, 4}}};

// A module of a kernel, and what it was made with.
struct KernelWords : Spirv {
    shader::Constants values;
    BindingList binds;
};

inline KernelWords kernel_of(const shader::Constants& values, std::uint32_t modes = 0,
                             LoopControls loops = LoopControls::as_written) {
    static std::size_t packed_words = 0;
    static auto module = [] {
        auto packed = unpack(rope_module.bytes, rope_module.size);
        packed_words = packed->count;
        return Specializer::of(std::move(packed));
    }();
    REQUIRE(module.status);
    KernelWords kernel = {{}, values, {}};
    auto special = module->specialize(&values.workgroup_size, shader::constant_count, modes, loops,
                                      kernel.binds);
    REQUIRE(special.status);
    CHECK(special->count < packed_words * 9 / 10);
    static_cast<Spirv&>(kernel) = std::move(special.value);
    return kernel;
}

// `counts`: out_of_range has a binding. `ops`: which lanes compute an RMS norm of Q over a head,
// and a layer norm of K after the rotation. `weights`: both norms have weights. `change`: changes
// the constants.
inline KernelWords kernel_module(const KernelKind& kind, const KernelVariation& v,
                                 std::uint32_t conversion, bool counts = true,
                                 std::uint32_t ops = shader::ops_none, bool weights = true,
                                 const std::function<void(shader::Constants&)>& change = {}) {
    const bool gpu = v.batch != 0, pair = v.access == shader::access_pair;
    const std::uint32_t dim = 16 * v.windows;
    shader::Constants values = {.workgroup_size = 64,
                                .chunk_lanes = gpu ? dim / (2 * v.unit) : 1,
                                .head_lanes = gpu ? 4u : 1u,
                                .group_tokens = gpu ? 1u : 64u,
                                .chunks_together = gpu ? 1u : 2u,
                                .units_apart = gpu,
                                .rare_branches = gpu,
                                .access = v.access,
                                .unit_elements = v.unit,
                                .conversion = conversion,
                                .copy_access = pair ? shader::access_wide : v.access,
                                .copy_elements = pair ? 8 : v.unit};
    shader::TensorConstants &q = values.tensor[Q], &k = values.tensor[K];
    for (shader::TensorConstants& tensor : values.tensor) {
        tensor.element_in = v.element;
        tensor.element_out = v.quantised != 0 ? v.quantised : v.element;
        tensor.batch = v.batch;
    }
    q.head_dim = kind.turns ? dim + 16 : 0;
    // V is loaded with K if a lane has one chunk of V.
    k.head_dim = !kind.has_k ? 0 : kind.has_v && v.batch == 4 ? dim : dim + 32;
    values.tensor[V].head_dim = kind.has_v ? k.head_dim : 0;
    values.scatter = kind.has_k ? v.scatter : 0;
    values.pairing_out = v.pairing_out;
    values.rotary_dim = kind.turns ? dim : 0;
    const auto window = [&](std::uint32_t number) {
        return kind.turns && number < v.windows ? 16u : 0u;
    };
    values.window_dim_0 = window(0), values.window_dim_1 = window(1),
    values.window_dim_2 = window(2), values.window_dim_3 = window(3);
    values.window_at_1 = window(1), values.window_at_2 = 2 * window(2),
    values.window_at_3 = 3 * window(3);
    values.angles = kind.angles;
    values.positions = v.positions;
    values.axes = v.axes;
    values.section_0 = values.section_1 = values.section_2 = v.axes == 0 ? 0 : 3;
    values.counter = counts;
    values.few_registers = kind.turns && kind.has_k && v.batch == 1;
    values.ops = ops;
    if (ops != shader::ops_none) {
        values.exchanged = 64;
        values.staged = 1024;
        values.norms_held = 8;
        q.norm_dim = q.head_dim, k.norm_dim = k.head_dim;
        q.ops = shader::op_rms | shader::op_before | shader::op_clip;
        k.ops = shader::op_layer | shader::op_after | shader::op_scale;
        if (weights) q.weight = k.weight = k.norm_bias = shader::shape_channel;
    }
    if (change) change(values);
    return kernel_of(values);
}

// Calls visit(kind, variation, conversion) for every kernel.
template <class Visit>
void each_kernel(const Visit& visit) {
    for (const KernelKind& kind : kernel_kinds()) {
        for (const std::uint32_t conversion : conversions) {
            for (const KernelVariation& v : kernel_variations) {
                CAPTURE(std::string(kind.name));
                CAPTURE(conversion);
                CAPTURE(v.access);
                visit(kind, v, conversion);
            }
        }
    }
}

inline std::vector<std::uint32_t> words_of(const Spirv& module) {
    return {module.words.get(), module.words.get() + module.count};
}

}  // namespace vkrope::test
