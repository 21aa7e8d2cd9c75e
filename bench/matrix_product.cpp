// SPDX-License-Identifier: MIT
#include "matrix_product.hpp"

#include <bit>
#include <cmath>

#include "cli/failure.hpp"
#include "divide_up.hpp"
#include "interface.h"

namespace vkrope::bench {
namespace {

constexpr std::uint8_t packed[] = {
#include "matrix_product.inc"
};
constexpr PackedModule module = {packed, sizeof packed};
constexpr std::uint32_t rows_owned = 4, columns_owned = 4;  // per invocation

std::vector<float> hadamard_matrix(std::uint32_t n) {
    const float one = 1 / std::sqrt(float(n));
    std::vector<float> matrix;
    for (std::uint32_t i = 0; i < n; ++i) {
        for (std::uint32_t j = 0; j < n; ++j)
            matrix.push_back(std::popcount(i & j) % 2 == 0 ? one : -one);
    }
    return matrix;
}

}  // namespace

MatrixProduct::MatrixProduct(Device& device, std::uint32_t n) : n_(n) {
    using tools::check, tools::Subject, tools::value_of;
    const std::vector<float> matrix = hadamard_matrix(n);
    matrix_ = value_of(Buffer::make(device, matrix.size() * 4), Subject::device);
    check(matrix_.upload(matrix.data(), matrix.size() * 4), Subject::device);
    shader_ = value_of(
        Shader::make(device, module, {n}, sizeof(std::uint32_t), "matrix_product", {.size = 256}),
        Subject::device);
    check(reset(), Subject::device);
}

void MatrixProduct::record(VkCommandBuffer commands, const VkDescriptorBufferInfo& in,
                           const VkDescriptorBufferInfo& out, std::uint32_t rows) const {
    Descriptors descriptors;
    descriptors.buffers[shader::binding_q_in] = in;
    descriptors.buffers[shader::binding_q_out] = out;
    descriptors.buffers[shader::binding_table] = matrix_.whole();
    const std::uint64_t invocations = divide_up(rows, rows_owned) * (n_ / columns_owned);
    shader_.record(commands, descriptors, &rows, divide_up(invocations, shader_.workgroup_size()));
}

}  // namespace vkrope::bench
