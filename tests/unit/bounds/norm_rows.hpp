// SPDX-License-Identifier: MIT
// Computes norms of rows as a kernel does, with the shader's own source compiled as C++.
#pragma once

#include <algorithm>
#include <vector>

#include "verify/shader_source/shader.hpp"

namespace vkrope::bounds {

inline int levels_of(std::size_t n) {
    int levels = 0;
    while (std::size_t{1} << levels < n) ++levels;
    return levels;
}

// A norm over the rows of `heads` heads.
struct NormOf {
    bool layer = false;
    std::size_t heads = 1;
    float eps = 1e-6f;
};

// Returns the sum over a row of units of `unit_elements`; leaf_of changes units before the sum.
template <class Leaf>
float tree_sum(const float* row, std::size_t head_dim, shader::uint unit_elements, Leaf leaf_of) {
    const std::size_t units = head_dim / unit_elements;
    const auto levels = shader::uint(levels_of(units));
    float sum = 0;
    for (std::size_t i = 0; i < std::size_t{1} << levels; ++i) {
        float leaf = 0;
        if (i < units) {
            float at[8] = {};
            std::copy_n(row + i * unit_elements, unit_elements, at);
            const shader::Unit u = {{at[0], at[1], at[2], at[3]}, {at[4], at[5], at[6], at[7]}};
            leaf = shader::vkrope_unit_sum(unit_elements, leaf_of(u));
        }
        sum = shader::vkrope_tree_add(levels, shader::uint(i), leaf);
    }
    return sum;
}

inline float row_sum(const std::vector<float>& row, shader::uint unit_elements, float scale,
                     bool squares) {
    return tree_sum(
        row.data(), row.size(), unit_elements,
        [&](shader::Unit u) {
            u = shader::vkrope_scale(u, scale);
            return squares ? shader::vkrope_squares(u) : u;
        });
}

// Returns the norm of [heads, head_dim] with a weight of 1 + w.
inline std::vector<float> normed(const NormOf& of, const std::vector<float>& row,
                                 shader::uint unit_elements, float w) {
    const std::size_t head_dim = row.size() / of.heads;
    shader::VkropeNorm norm = shader::vkrope_no_norm();
    const auto sum_of = [&](auto leaf_of) {
        std::vector<float> heads;
        for (std::size_t head = 0; head < of.heads; ++head)
            heads.push_back(tree_sum(&row[head * head_dim], head_dim, unit_elements, leaf_of));
        const auto levels = shader::uint(levels_of(of.heads));
        float sum = 0;
        for (std::size_t head = 0; head < std::size_t{1} << levels; ++head)
            sum = shader::vkrope_tree_add(levels, shader::uint(head),
                                          head < of.heads ? heads[head] : 0.f);
        return sum;
    };
    const auto sums = [&](bool centred, bool squares) {
        const auto scaled_by = [&](float scale) {
            return sum_of([=](shader::Unit u) {
                if (centred) u = shader::vkrope_centred(u, norm.scale, norm.mean);
                u = shader::vkrope_scale(u, scale);
                return squares ? shader::vkrope_squares(u) : u;
            });
        };
        return shader::vec2{scaled_by(1), scaled_by(shader::vkrope_small)};
    };
    const auto inverse_n = float(1.0 / double(row.size()));
    shader::vec2 differences = {0, 0};
    if (of.layer) {
        shader::vkrope_set_mean(norm, sums(false, false), inverse_n);
        differences = sums(true, false);
    }
    shader::vkrope_set_root(norm, differences, sums(of.layer, true), inverse_n, of.eps);
    const float weight = 1 + w;
    std::vector<float> out;
    for (const float x : row) {
        shader::Unit u = {{x, x, x, x}, {x, x, x, x}};
        if (of.layer) u = shader::vkrope_centred(u, norm.scale, norm.mean);
        u = shader::vkrope_scale(u, norm.scale_d);
        if (of.layer) u = shader::vkrope_centred(u, 1, norm.rest);
        const float divided = shader::vkrope_scale(u, norm.root).a.x;
        out.push_back(divided * weight);
    }
    return out;
}

}  // namespace vkrope::bounds
