// SPDX-License-Identifier: MIT
#include "verify/on_device.hpp"

#include <algorithm>

#include "base/meaning.hpp"

namespace vkrope::verify {
namespace {

// Creates a buffer of at least 4 bytes, so that an empty array can be bound, with `data`.
Status upload(Device& device, const void* data, std::size_t bytes, Buffer& buffer) {
    Result<Buffer> made = Buffer::make(device, std::max<std::size_t>(bytes, 4));
    if (!made) return made.status;
    buffer = std::move(made.value);
    return bytes == 0 ? Status{} : buffer.upload(data, bytes);
}

ParameterSources sources_of(const TensorParameters& parameters) {
    const auto source = [](const std::vector<float>& floats) {
        return floats.empty() ? ParameterSource{}
                              : ParameterSource{floats.data(), VKROPE_F32, floats.size()};
    };
    ParameterSources sources = {};
    for (std::size_t which = 0; which < parameters.size(); ++which) {
        const Parameters& of = parameters[which];
        sources.tensor[which] = {source(of.bias), source(of.weight), source(of.norm_bias),
                                 source(of.store_scale)};
    }
    return sources;
}

Status upload_parameters(Device& device, const Operation& operation, Buffer& buffer) {
    const Result<ParameterLayout> plan = plan_parameters(operation.info);
    if (!plan || plan.value.bytes == 0) return plan.status;
    const std::size_t bytes = plan.value.bytes, floats = bytes / sizeof(float);
    const bool two = operation.info.two_parameter_sets != 0;
    std::vector<float> filled(two ? 2 * floats : floats);
    Status status = fill_parameters(plan.value, sources_of(operation.parameters), filled.data(),
                                    bytes);
    if (status && two)
        status = fill_parameters(plan.value, sources_of(operation.second), &filled[floats], bytes);
    return status ? upload(device, filled.data(), filled.size() * sizeof(float), buffer) : status;
}

}  // namespace

RopeParams rotation_of(const Operation& operation) {
    RopeParams rotation;
    rotation.pairing = operation.info.pairing;
    rotation.head_dim = rotation.rotary_dim = operation.info.rotary_dim;
    rotation.inv_freq = operation.inv_freq;
    rotation.phase = operation.phase;
    rotation.head_groups = head_groups_of(operation.info);
    rotation.attention_factor = operation.attention_factor;
    rotation.precision = operation.precision;
    rotation.sections = operation.info.sections;
    return rotation;
}

Result<OnDevice> OnDevice::make(Device& device, const Operation& operation) {
    OnDevice made;
    std::vector<std::size_t> starts = operation.buffers;
    if (starts.empty()) starts = {0};
    Status status;
    for (std::size_t i = 0; status && i < starts.size(); ++i) {
        const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : operation.memory.size();
        made.memory_.push_back({starts[i], {}});
        status = upload(device, operation.memory.data() + starts[i], end - starts[i],
                        made.memory_.back().buffer);
    }
    if (status) status = upload_parameters(device, operation, made.parameters_);
    if (!status) return {status};
    if (operation.info.rotary_dim == 0) return {status, std::move(made)};
    if (operation.info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        const Result<AngleTableLayout> plan = plan_cos_sin_cache(
            operation.info.rotary_dim / 2, operation.max_position, operation.row_stride,
            operation.info.table, operation.info.channel_angles != 0);
        made.plan_ = plan.value;
        made.plan_.attention_factor = operation.attention_factor;
        status = plan.status;
    } else {
        Result<AngleTable> table = AngleTable::make(device, rotation_of(operation),
                                                    operation.info.angles, operation.max_position);
        made.table_ = std::move(table.value);
        status = table.status;
    }
    return {status, std::move(made)};
}

std::size_t OnDevice::piece_with(std::size_t byte) const {
    const auto after = std::upper_bound(
        memory_.begin(), memory_.end(), byte,
        [](std::size_t at, const Piece& piece) { return at < piece.first; });
    return std::size_t(after - memory_.begin()) - 1;
}

Status OnDevice::download(const VkDescriptorBufferInfo& part, Bytes& memory) {
    Piece& piece = memory_[piece_with(part.offset)];
    return piece.buffer.download(&memory[part.offset], part.range, part.offset - piece.first);
}

Call OnDevice::call(Call of) const {
    const auto place = [this](VkDescriptorBufferInfo& part) {
        if (part.range != 0 && part.buffer == VK_NULL_HANDLE) {
            const Piece& piece = memory_[piece_with(part.offset)];
            part.buffer = piece.buffer.handle();
            part.offset -= piece.first;
        }
    };
    for (const TensorIndex which : every_tensor) {
        for (Tensor* tensor : {&of.in[which], &of.out[which]}) {
            if (tensor->heads != 0 && tensor->where.buffer == VK_NULL_HANDLE) {
                const Piece& piece = memory_[piece_with(tensor->where.offset)];
                tensor->buffer_size = piece.buffer.whole().range;
            }
            place(tensor->where);
        }
        place(of.scale_tokens[which]);
        place(of.scales_in[which]);
        place(of.scales_out[which]);
        place(of.second[which]);
        place(of.norm_weight[which]);
    }
    place(of.positions.ids);
    place(of.paged_cache.slot_mapping);
    place(of.paged_cache.source_mapping);
    place(of.paged_cache.v_slot_mapping);
    place(of.paged_cache.v_source_mapping);
    place(of.token_count);
    place(of.out_of_range);
    if (parameters_.handle() != VK_NULL_HANDLE) of.parameters = parameters_.whole();
    if (plan_.pairs == 0) {
        of.angles = table_.angles();
    } else {
        of.angles.layout = &plan_;
        place(of.angles.buffer);
        place(of.angles.sin);
    }
    return of;
}

}  // namespace vkrope::verify
