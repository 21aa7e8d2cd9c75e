// SPDX-License-Identifier: MIT
// The words of rope.comp as kernels have them: specialised and pruned, for every source of angles.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "interface.h"
#include "kernel/modules.hpp"
#include "kernel/spirv.hpp"

namespace vkrope::test {

/// Where a kernel's angles come from, and how many tensors its dispatches see.
struct KernelKind {
    const char* name;
    const Module* module;
    std::uint32_t angles, tensors;
};

inline const std::vector<KernelKind>& kernel_kinds() {
    static const std::vector<KernelKind> all = {
        {"factored_texture", &wide_module(AngleSource::factored_texture), shader::angles_factored, 2},
        {"computed", &wide_module(AngleSource::computed), shader::angles_computed, 2},
        {"direct_texture", &wide_module(AngleSource::direct_texture), shader::angles_texture, 2},
        {"direct_buffer", &wide_module(AngleSource::direct_buffer), shader::angles_pairs, 2},
        {"caller_buffer, f32", &wide_module(AngleSource::caller_buffer), shader::angles_apart + shader::element_f32, 2},
        {"caller_buffer, f16", &wide_module(AngleSource::caller_buffer), shader::angles_apart + shader::element_f16, 2},
        {"caller_buffer, bf16", &wide_module(AngleSource::caller_buffer), shader::angles_apart + shader::element_bf16, 2},
        {"factored_texture, lean", lean_module(AngleSource::factored_texture), shader::angles_factored, 1},
        {"computed, lean", lean_module(AngleSource::computed), shader::angles_computed, 1},
        {"direct_texture, lean", lean_module(AngleSource::direct_texture), shader::angles_texture, 1},
        {"direct_buffer, lean", lean_module(AngleSource::direct_buffer), shader::angles_pairs, 1}};
    return all;
}

inline constexpr std::array<std::uint32_t, 3> conversions = {shader::conversion_integer, shader::conversion_normals,
                                                             shader::conversion_native};

/// What else differs from kernel to kernel.
struct KernelVariation {
    std::uint32_t access, unit, element, axes, scatter, positions, pairing_out, windows;
};

inline constexpr std::array<KernelVariation, 4> kernel_variations = {
    {{shader::access_wide, 8, shader::element_f16, 0, 0, 0, 0, 1},
     {shader::access_wide, 4, shader::element_f32, 0, 1, 1, 1, 2},
     {shader::access_word, 2, shader::element_bf16, 3, 1, 1, 0, 1},
     {shader::access_narrow, 1, shader::element_f16, 3, 0, 1, 1, 4}}};

inline Spirv kernel_module(const KernelKind& kind, const KernelVariation& v, std::uint32_t conversion) {
    std::vector<std::uint32_t> values(shader::constant_count, 4);
    values[shader::constant_pairing] = 0;
    values[shader::constant_pairing_out] = v.pairing_out;
    values[shader::constant_rotary_dim] = 16 * v.windows;
    values[shader::constant_positions] = v.positions;
    values[shader::constant_access] = v.access;
    values[shader::constant_unit_elements] = v.unit;
    for (const auto element :
         {shader::constant_first_in, shader::constant_first_out, shader::constant_second_in, shader::constant_second_out})
        values[element] = v.element;
    values[shader::constant_scatter] = kind.tensors == 2 ? v.scatter : 0;
    for (std::uint32_t w = 0; w < 4; ++w) {
        values[shader::constant_window_dim + w] = w < v.windows ? 16 : 0;
        values[shader::constant_window_at + w] = w < v.windows ? 16 * w : 0;
    }
    values[shader::constant_angles] = kind.angles;
    values[shader::constant_axes] = v.axes;
    values[shader::constant_section_order] = 0;
    for (std::uint32_t i = 0; i < 8; ++i) values[shader::constant_sections + i] = i < v.axes ? 3 : 0;
    values[shader::constant_tensors] = kind.tensors;
    values[shader::constant_counter] = kind.module->counts;
    values[shader::constant_conversion] = conversion;
    const auto packed = unpack(kind.module->packed, kind.module->packed_bytes);
    REQUIRE(packed.status);
    const auto special = specialize(packed->words.get(), packed->count, values.data(), shader::constant_count);
    REQUIRE(special.status);
    auto pruned = prune(special.value);
    REQUIRE(pruned.status);
    CHECK(pruned->count < packed->count * 9 / 10);
    return std::move(pruned.value);
}

inline std::vector<std::uint32_t> words_of(const Spirv& module) {
    return {module.words.get(), module.words.get() + module.count};
}

}  // namespace vkrope::test
