// SPDX-License-Identifier: MIT
#include "rivals.hpp"

#include <cmath>

#include "cli/failure.hpp"
#include "divide_up.hpp"
#include "interface.h"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;

constexpr std::uint8_t packed[] = {
#include "rival.inc"
};
constexpr PackedModule module = {packed, sizeof packed};

}  // namespace

const char* word_for(Way way) noexcept {
    constexpr const char* words[] = {"ggml", "onnxruntime", "ncnn", "ggml_along_x"};
    return words[std::size_t(way)];
}

std::vector<float> cpu_table(const Shape& shape) {
    const RopeParams rotation = rotation_of(shape);
    const AngleTableLayout plan = value_of(
        plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, shape.tokens, 0), Subject::device);
    std::vector<float> table(plan.bytes / sizeof(float));
    check(fill_angles(rotation, plan, table.data(), plan.bytes), Subject::device);
    return table;
}

Rival::Rival(Device& device, const Shape& shape, Element element, Way way)
    : shape_(shape), element_(element), way_(way) {
    const std::vector<std::uint32_t> constants = {std::uint32_t(way), std::uint32_t(element),
                                                  shape.rotary_dim};
    shader_ = value_of(Shader::make(device, module, constants, sizeof(RivalPush), word_for(way),
                                    {.along_y = way == Way::ggml}),
                       Subject::device);
    push_.tokens = shape.tokens;
    push_.theta_scale = float(std::pow(shape.base, -2.0 / shape.rotary_dim));
    if (way == Way::onnxruntime) {
        const std::vector<float> pairs = cpu_table(shape);
        std::vector<float> cosines, sines;
        for (std::size_t i = 0; i < pairs.size(); i += 2) {
            cosines.push_back(pairs[i]);
            sines.push_back(pairs[i + 1]);
        }
        for (const auto& [buffer, numbers] : {std::pair{&cos_, &cosines}, {&sin_, &sines}}) {
            const std::size_t bytes = numbers->size() * sizeof(float);
            *buffer = value_of(Buffer::make(device, bytes), Subject::device);
            check(buffer->upload(numbers->data(), bytes), Subject::device);
        }
    }
    if (way == Way::ncnn) {
        texture_ = value_of(AngleTable::make(device, rotation_of(shape),
                                             VKROPE_ANGLES_DIRECT_TEXTURE, shape.max_position),
                            Subject::device);
        push_.fold_log2 = texture_.layout().fold_log2;
        push_.row_texels = texture_.layout().row_texels;
    }
}

Status Rival::record(VkCommandBuffer commands, const Rotated& q, const Rotated& k) {
    if (Status s = shader_.take_sets(2); !s) return s;
    for (const Rotated* tensor : {&q, &k}) {
        push_.heads = tensor->heads;
        Descriptors descriptors;
        descriptors.buffers[shader::binding_q_in] = tensor->in;
        descriptors.buffers[shader::binding_q_out] = tensor->out;
        descriptors.buffers[shader::binding_table] = cos_.whole();
        descriptors.buffers[shader::binding_table_sin] = sin_.whole();
        descriptors.view = texture_.angles().view;
        const std::uint64_t rows = (way_ == Way::ncnn ? divide_up(push_.heads, 4) : push_.heads) *
                                   push_.tokens;
        const std::uint64_t row = shape_.rotary_dim / 2 / (element_ == VKROPE_F32 ? 1 : 2),
                            size = shader_.workgroup_size();
        const auto groups = [&](std::uint64_t invocations) { return divide_up(invocations, size); };
        shader_.record(commands, descriptors, &push_,
                       way_ == Way::ggml ? rows * groups(row) : groups(rows * row));
    }
    return {};
}

Idle::Idle(Device& device, std::uint32_t workgroup_size) {
    const std::vector<std::uint32_t> constants = {std::uint32_t(Way::ggml_along_x),
                                                  std::uint32_t(VKROPE_F32), 2};
    shader_ = value_of(Shader::make(device, module, constants, sizeof(RivalPush), "idle",
                                    {.size = workgroup_size}),
                       Subject::device);
}

Status Idle::record(VkCommandBuffer commands, const VkDescriptorBufferInfo& any,
                    std::uint64_t workgroups) {
    if (Status s = shader_.take_sets(1); !s) return s;
    Descriptors descriptors;
    descriptors.buffers[shader::binding_q_in] = descriptors.buffers[shader::binding_q_out] = any;
    const RivalPush no_tokens;
    shader_.record(commands, descriptors, &no_tokens, workgroups);
    return {};
}

}  // namespace vkrope::bench
