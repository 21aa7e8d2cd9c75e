// SPDX-License-Identifier: MIT
#include "conformance/cases/members.hpp"

namespace vkrope::conformance {
namespace {

Tensor rows(const Part& part, const RowStrides& strides, const Buffer& buffer, Element element,
            std::uint32_t sequence) {
    const CaseTensor& shape = part.resident->tensor;
    const VkDescriptorBufferInfo whole = buffer.whole();
    const std::int64_t first = strides.offset +
                               strides.plane * static_cast<std::int64_t>(part.plane) +
                               strides.batch * sequence;
    const VkDeviceSize offset = stored_bytes(element, static_cast<std::uint64_t>(first));
    Tensor tensor = {.where = {whole.buffer, offset, 0}, .heads = shape.heads};
    tensor.where.range = whole.range - tensor.where.offset;
    tensor.buffer_size = whole.range;
    // The library takes a stride of 0 to mean "packed", which makes no difference for an axis
    // of length 1.
    tensor.token_stride = strides.token;
    tensor.batch_stride = strides.batch;
    tensor.head_stride = strides.head == 0 && shape.heads > 1 ? broadcast : strides.head;
    if (strides.token == 0 && shape.tokens > 1) {
        unsupported("tensors.{}.view: all tokens are one row", shape.name);
    }
    return tensor;
}

}  // namespace

Buffer add_formats(DeviceUnderTest& device, const CaseDescription& description,
                   DeviceUnderTest::KernelCall& call, const Members& members,
                   std::uint32_t rotary_offset) {
    ParameterSources sources, second;
    KernelInfo& info = call.info;
    Call& to = call.call;
    const auto add = [&](const Part* part, TensorInfo& format, std::uint32_t& heads, Ops& ops,
                         TensorParameterSources& source, TensorParameterSources& second_source,
                         VkDescriptorBufferInfo& scale_tokens, VkDescriptorBufferInfo& scales_out) {
        if (part == nullptr) {
            return;
        }
        const Resident& resident = *part->resident;
        format = {.in = description.dtype,
                  .out = resident.output.element,
                  .head_dim = resident.tensor.head_dim,
                  .rotary_offset = resident.which == V ? 0 : rotary_offset};
        if (description.has_steps) {
            heads = resident.tensor.heads;
        }
        ops = resident.ops.ops();
        source = resident.ops.sources();
        if (const std::uint32_t tokens = resident.ops.first_set_tokens(); tokens != 0) {
            second_source = resident.ops.second_sources();
            to.first_set_tokens = tokens;
        }
        scale_tokens = resident.ops.scale_tokens();
        scales_out = resident.ops.scales_out();
        if (resident.ops.cache()) {
            call.info.scatter_kv = true;
            call.call.paged_cache = resident.ops.cache()->paged;
        }
    };
    add(members.q, info.tensor[Q], info.tensor[Q].heads, info.tensor[Q].ops, sources.tensor[Q],
        second.tensor[Q], to.scale_tokens[Q], to.scales_out[Q]);
    add(members.k, info.tensor[K], info.tensor[K].heads, info.tensor[K].ops, sources.tensor[K],
        second.tensor[K], to.scale_tokens[K], to.scales_out[K]);
    add(members.v, info.tensor[V], info.tensor[V].heads, info.tensor[V].ops, sources.tensor[V],
        second.tensor[V], to.scale_tokens[V], to.scales_out[V]);
    // Tensors without parameters have no sets.
    info.two_parameter_sets = to.first_set_tokens != 0 && value_of(plan_parameters(info)).bytes > 0;
    to.first_set_tokens = info.two_parameter_sets ? to.first_set_tokens : 0;
    return parameters_of(device, info, sources, second, call.call.parameters);
}

const RowStrides& input_strides(const Part& part) {
    return part.resident->passes == 1 ? part.resident->tensor.in : part.resident->tensor.out;
}

void place(const CaseDescription& description, const Part* part, std::uint32_t sequence, Tensor& in,
           Tensor& out) {
    if (part == nullptr) {
        return;
    }
    const Resident& resident = *part->resident;
    in = rows(*part, input_strides(*part), resident.in, description.dtype, sequence);
    if (resident.ops.cache()) {
        out = {.where = resident.out.whole(),
               .heads = resident.tensor.heads,
               .head_stride = resident.ops.cache()->head_stride};
    } else {
        out = rows(*part, resident.output.rows, resident.out, resident.output.element, sequence);
    }
}

}  // namespace vkrope::conformance
