// SPDX-License-Identifier: MIT
// The tensors, positions and parameters of the files as one operation.
#include "operation/operation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/meaning.hpp"

namespace vkrope::tools {
namespace {

constexpr std::size_t whole_words(std::size_t bytes) {
    return (bytes + 3) / 4 * 4;
}

// Adds parts to the memory of an operation. Each part has a buffer of its own on the device, and
// starts at a multiple of 4 bytes.
class Parts {
   public:
    explicit Parts(verify::Operation& operation) : operation_(operation) {}

    // Adds bytes that nothing has written yet. Without bytes, returns no part.
    VkDescriptorBufferInfo add(std::size_t bytes) {
        if (bytes == 0) return {};
        const std::size_t first = operation_.memory.size();
        operation_.memory.resize(first + whole_words(bytes));
        operation_.buffers.push_back(first);
        return {VK_NULL_HANDLE, first, bytes};
    }

    template <class T>
    VkDescriptorBufferInfo add(const std::vector<T>& numbers) {
        const VkDescriptorBufferInfo part = add(numbers.size() * sizeof(T));
        if (part.range != 0)
            std::memcpy(&operation_.memory[part.offset], numbers.data(), part.range);
        return part;
    }

   private:
    verify::Operation& operation_;
};

// Does nothing for a layer without RoPE.
void set_rotation(const OperationInputs& inputs, verify::Operation& operation) {
    RopeParams rotation = inputs.rotation;
    if (rotation.no_rope) return;
    if (inputs.positions.axes == 0 && rotation.sections.order != VKROPE_SECTIONS_SUM)
        rotation.sections = {};  // one position rotates all pairs
    KernelInfo info = {.pairing = rotation.pairing, .rotary_dim = rotation.rotary_dim};
    std::copy(std::begin(rotation.windows), std::end(rotation.windows), info.windows);
    info.sections = rotation.sections;
    info.phase = !rotation.phase.empty();
    info.head_groups = rotation.head_groups;
    info.positions = rotation.sections.axes != 0    ? VKROPE_POSITIONS_AXIS_IDS
                     : inputs.positions.ids.empty() ? VKROPE_POSITIONS_IMPLICIT
                                                    : VKROPE_POSITIONS_IDS;
    info.tensor[Q].rotary_offset = rotation.q_rotary_offset;
    info.tensor[K].rotary_offset = rotation.k_rotary_offset;
    operation.info = info;
    operation.inv_freq = rotation.inv_freq;
    operation.phase = rotation.phase;
    operation.attention_factor = rotation.attention_factor;
    operation.precision = rotation.precision;
    operation.max_position = std::uint32_t(largest_distance(inputs.positions) + 1);
}

void set_positions(const OperationInputs& inputs, Parts& parts, vkrope_positions& positions) {
    if (inputs.rotation.no_rope) return;
    const std::vector<std::int32_t>& ids = inputs.positions.ids;
    positions.ids = parts.add(ids);
    positions.first = inputs.positions.first;
    if (ids.empty() || ids.size() == inputs.tokens) positions.batch_stride = broadcast;
}

verify::Parameters parameters_of(const TensorOps& ops) {
    const OfEachParameter<ParameterFile>& files = ops.parameters;
    return {.bias = files[parameter_bias].values(),
            .weight = files[parameter_weight].values(),
            .norm_bias = files[parameter_norm_bias].values(),
            .store_scale = ops.given_scales};
}

// Sets the format and the layout of a tensor, and its parameters.
void set_tensor(const OperationInputs& inputs, TensorIndex which, verify::Operation& operation) {
    const oracle::Tensor& view = inputs.tensors[which]->view;
    const TensorOps& ops = inputs.ops[which];
    TensorInfo& info = operation.info.tensor[which];
    info.in = inputs.tensors[which]->element;
    info.out = ops.stored;
    info.head_dim = std::uint32_t(view.head_dim);
    info.second_of = ops.second_of;
    info.second = ops.second;
    // A kernel that only rotates accepts any number of heads.
    const bool counted = ops.any() || is_quantised(info.in) || is_quantised(ops.stored) ||
                         ops.has_second();
    info.heads = counted ? std::uint32_t(view.heads) : 0;
    info.ops = ops;
    operation.call.in[which] = {.heads = std::uint32_t(view.heads),
                                .token_stride = std::int64_t(view.token_stride),
                                .head_stride = std::int64_t(view.head_stride),
                                .batch_stride = std::int64_t(view.batch_stride)};
    operation.call.out[which] = operation.call.in[which];
    operation.parameters[which] = parameters_of(ops);
}

// Returns the bytes that the memory needs, or a few more.
std::size_t bytes_of(const OperationInputs& inputs, bool has_outputs) {
    std::size_t bytes = 4 * (inputs.positions.ids.size() + inputs.q_scale_tokens.size() + 8);
    for (const TensorIndex which : every_tensor) {
        if (const std::optional<TensorFile>& tensor = inputs.tensors[which]) {
            const TensorOps& ops = inputs.ops[which];
            const std::uint64_t count = elements_of(*tensor),
                                scales = is_made(ops.store_scale)
                                             ? ops.scale_bytes(count, tensor->view.head_dim)
                                             : 0;
            bytes += tensor->array.data.size() + ops.input_scales.size() + 16;
            bytes += has_outputs ? ops.stored_bytes(count) + scales + ops.second_bytes(count) : 0;
        }
    }
    return bytes;
}

}  // namespace

std::vector<std::byte> rows_of_file(const oracle::Tensor& view, std::span<const std::byte> file) {
    std::vector<std::byte> rows(file.size());
    const std::uint64_t count = view.batch * view.tokens * view.heads;
    const std::size_t bytes = file.size() / std::max<std::uint64_t>(count, 1);
    for (std::uint64_t row = 0; row < count; ++row)
        std::copy_n(&file[row_in_file(view, row) * bytes], bytes, &rows[row * bytes]);
    return rows;
}

verify::Operation operation_of(const OperationOptions& options, OperationInputs& inputs,
                               bool has_outputs) {
    verify::Operation operation;
    set_rotation(inputs, operation);
    Call& call = operation.call;
    call.batch = inputs.batch;
    call.tokens = inputs.tokens;
    call.direction = options.inverse ? VKROPE_INVERSE : VKROPE_FORWARD;
    operation.memory.reserve(bytes_of(inputs, has_outputs));
    Parts parts(operation);
    for (const TensorIndex which : every_tensor) {
        std::optional<TensorFile>& tensor = inputs.tensors[which];
        if (!tensor || elements_of(*tensor) == 0) {
            operation.info.tensor[which].rotary_offset = 0;
            continue;
        }
        set_tensor(inputs, which, operation);
        call.in[which].where = parts.add(tensor->array.data);
        tensor->array.data = std::vector<std::byte>();  // frees its memory
        TensorOps& ops = inputs.ops[which];
        ops.input_scales.resize(whole_words(ops.input_scales.size()));
        call.scales_in[which] = parts.add(ops.input_scales);
        if (has_outputs) {
            const std::uint64_t count = elements_of(*tensor);
            call.out[which].where = parts.add(ops.stored_bytes(count));
            if (is_made(ops.store_scale)) {
                call.scales_out[which] = parts.add(
                    whole_words(ops.scale_bytes(count, tensor->view.head_dim)));
            }
            call.second[which] = parts.add(ops.second_bytes(count));
        }
    }
    set_positions(inputs, parts, call.positions);
    call.scale_tokens[Q] = parts.add(inputs.q_scale_tokens);
    call.q_scale = operation.info.tensor[Q].ops.scale_call != 0 ? inputs.q_scale : 1;
    return operation;
}

}  // namespace vkrope::tools
