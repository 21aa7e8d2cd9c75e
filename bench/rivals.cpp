// SPDX-License-Identifier: MIT
#include "rivals.hpp"

#include <bit>
#include <cmath>

#include "base/divide_up.hpp"
#include "cli/failure.hpp"
#include "interface.h"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;

constexpr std::uint8_t packed[] = {
#include "rival.inc"
};
constexpr std::uint8_t packed_product[] = {
#include "matrix_product.inc"
};
constexpr PackedModule module = {packed, sizeof packed},
                       product_module = {packed_product, sizeof packed_product};

std::vector<float> hadamard_matrix(std::uint32_t n) {
    const float one = 1 / std::sqrt(float(n));
    std::vector<float> matrix;
    for (std::uint32_t i = 0; i < n; ++i)
        for (std::uint32_t j = 0; j < n; ++j)
            matrix.push_back(std::popcount(i & j) % 2 == 0 ? one : -one);
    return matrix;
}

}  // namespace

const char* word_for(Way way) noexcept {
    constexpr const char* words[] = {"ggml", "onnxruntime", "ncnn", "ggml_along_x"};
    return words[std::size_t(way)];
}

std::vector<float> cpu_table(const verify::Operation& operation) {
    const RopeParams rotation = verify::rotation_of(operation);
    const AngleTableLayout plan = value_of(
        plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, operation.call.tokens, 0),
        Subject::device);
    std::vector<float> table(plan.bytes / sizeof(float));
    check(fill_angles(rotation, plan, table.data(), plan.bytes), Subject::device);
    return table;
}

Rival::Rival(Device& device, const verify::Operation& operation, Way way)
    : way_(way), pairs_(operation.info.rotary_dim / 2),
      pairs_per_invocation_(operation.info.tensor[Q].in == VKROPE_F32 ? 1 : 2) {
    const std::vector<std::uint32_t> constants = {
        std::uint32_t(way), std::uint32_t(operation.info.tensor[Q].in), operation.info.rotary_dim};
    shader_ = value_of(tools::Shader::make(device, module, constants, sizeof(RivalPush),
                                           word_for(way), {.along_y = way == Way::ggml}),
                       Subject::device);
    push_.tokens = operation.call.tokens;
    push_.theta_scale = float(operation.inv_freq[1]);
    if (way == Way::onnxruntime) {
        const std::vector<float> pairs = cpu_table(operation);
        std::vector<float> numbers(pairs.size() / 2);
        for (const std::size_t sine : {0, 1}) {
            for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = pairs[2 * i + sine];
            const std::size_t bytes = numbers.size() * sizeof(float);
            Buffer& buffer = sine == 0 ? cos_ : sin_;
            buffer = value_of(Buffer::make(device, bytes), Subject::device);
            check(buffer.upload(numbers.data(), bytes), Subject::device);
        }
    }
    if (way == Way::ncnn) {
        texture_ = value_of(AngleTable::make(device, verify::rotation_of(operation),
                                             VKROPE_ANGLES_DIRECT_TEXTURE, operation.max_position),
                            Subject::device);
        push_.fold_log2 = texture_.layout().fold_log2;
        push_.row_texels = texture_.layout().row_texels;
    }
}

Status Rival::record(VkCommandBuffer commands, const Call& call) {
    for (const TensorIndex which : {Q, K}) {
        push_.heads = call.in[which].heads;
        Descriptors descriptors;
        descriptors.buffers[shader::binding_q_in] = call.in[which].where;
        descriptors.buffers[shader::binding_q_out] = call.out[which].where;
        descriptors.buffers[shader::binding_table] = cos_.whole();
        descriptors.buffers[shader::binding_table_sin] = sin_.whole();
        descriptors.view = texture_.angles().view;
        const std::uint64_t rows = (way_ == Way::ncnn ? divide_up(push_.heads, 4) : push_.heads) *
                                   push_.tokens;
        const std::uint64_t row = pairs_ / pairs_per_invocation_, size = shader_.workgroup_size();
        const auto groups = [&](std::uint64_t invocations) { return divide_up(invocations, size); };
        shader_.record(commands, descriptors, &push_,
                       way_ == Way::ggml ? rows * groups(row) : groups(rows * row));
    }
    return {};
}

Idle::Idle(Device& device, std::uint32_t workgroup_size) {
    const std::vector<std::uint32_t> constants = {std::uint32_t(Way::ggml_along_x),
                                                  std::uint32_t(VKROPE_F32), 2};
    shader_ = value_of(tools::Shader::make(device, module, constants, sizeof(RivalPush), "idle",
                                           {.size = workgroup_size}),
                       Subject::device);
}

Status Idle::record(VkCommandBuffer commands, const VkDescriptorBufferInfo& any,
                    std::uint64_t workgroups) {
    Descriptors descriptors;
    descriptors.buffers[shader::binding_q_in] = descriptors.buffers[shader::binding_q_out] = any;
    const RivalPush no_tokens;
    shader_.record(commands, descriptors, &no_tokens, workgroups);
    return {};
}

MatrixProduct::MatrixProduct(Device& device, std::uint32_t n) : n_(n) {
    const std::vector<float> matrix = hadamard_matrix(n);
    matrix_ = value_of(Buffer::make(device, matrix.size() * 4), Subject::device);
    check(matrix_.upload(matrix.data(), matrix.size() * 4), Subject::device);
    shader_ = value_of(tools::Shader::make(device, product_module, {n}, sizeof(std::uint32_t),
                                           "matrix_product", {}),
                       Subject::device);
    check(reset(), Subject::device);
}

void MatrixProduct::record(VkCommandBuffer commands, const VkDescriptorBufferInfo& in,
                           const VkDescriptorBufferInfo& out, std::uint32_t rows) const {
    Descriptors descriptors;
    descriptors.buffers[shader::binding_q_in] = in;
    descriptors.buffers[shader::binding_q_out] = out;
    descriptors.buffers[shader::binding_table] = matrix_.whole();
    // An invocation computes four rows of four columns.
    const std::uint64_t invocations = divide_up(rows, 4) * (n_ / 4);
    shader_.record(commands, descriptors, &rows, divide_up(invocations, shader_.workgroup_size()));
}

}  // namespace vkrope::bench
