// SPDX-License-Identifier: MIT
#include "conformance/cases/parts.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "verify/compare.hpp"

namespace vkrope::conformance {
namespace {

std::vector<std::uint64_t> rotated_planes(const CaseTensor& tensor,
                                          const CaseDescription& description) {
    if (!tensor.has_planes) {
        return {0};
    }
    for (const std::uint64_t plane : description.planes_rotated) {
        if (plane >= tensor.planes) {
            wrong_file("planes_rotated names plane {}; {} has {}", plane, tensor.name,
                       tensor.planes);
        }
    }
    return description.planes_rotated;
}

/// Copies to the initial output the planes that are not rotated.
void pass_planes_through(const CaseTensor& tensor, const std::vector<std::uint64_t>& rotated,
                         std::vector<std::byte>& output) {
    if (!tensor.has_planes) {
        return;
    }
    const std::size_t bytes = npy::item_bytes(tensor.parent.header.type);
    each_element(tensor, [&](std::uint64_t index, std::uint64_t parent) {
        if (!std::binary_search(rotated.begin(), rotated.end(), plane_of(tensor, index))) {
            std::memcpy(output.data() + index * bytes, tensor.parent.data.data() + parent * bytes,
                        bytes);
        }
    });
}

}  // namespace

Part read_part(const CaseFolder& folder, const CaseDescription& description, TensorIndex which,
               verify::Operation& operation, verify::Memory& memory) {
    CaseTensor tensor = read_tensor(folder, tensor_names[which], *description.tensors[which],
                                    description.dtype);
    if (description.has_steps && tensor.has_planes) {
        unsupported("the axis P with schema 'rope-case/2'");
    }
    CaseOps ops = add_ops(folder, description.steps[which], tensor, which, description.dtype,
                          operation, memory);
    operation.info.tensor[which].heads = description.has_steps ? tensor.heads : 0;
    Part part;
    part.planes = rotated_planes(tensor, description);
    pass_planes_through(tensor, part.planes, ops.output.initial);
    part.in = memory.put(tensor.parent.data);
    part.out = memory.put(ops.output.initial);
    part.strides = tensor.in;
    part.cache = std::move(ops.cache);
    part.actual = {.which = which, .tensor = std::move(tensor), .output = std::move(ops.output)};
    return part;
}

Tensor rows(const Part& part, const VkDescriptorBufferInfo& piece, const RowStrides& strides,
            Element element, std::uint64_t plane, std::uint32_t sequence) {
    const CaseTensor& shape = part.actual.tensor;
    const std::int64_t first = strides.offset + strides.plane * static_cast<std::int64_t>(plane) +
                               strides.batch * sequence;
    const VkDeviceSize skipped = verify::stored_bytes(element, static_cast<std::uint64_t>(first));
    if (strides.token == 0 && shape.tokens > 1) {
        unsupported("tensors.{}.view: all tokens are one row", shape.name);
    }
    // In the library a stride of 0 means "packed". For an axis of length 1 this makes no
    // difference.
    return {.where = {VK_NULL_HANDLE, piece.offset + skipped, piece.range - skipped},
            .heads = shape.heads,
            .token_stride = strides.token,
            .head_stride = strides.head == 0 && shape.heads > 1 ? broadcast : strides.head,
            .batch_stride = strides.batch};
}

void hold_work(const Part& part, std::uint64_t passes) {
    constexpr std::uint64_t max_calls = 1u << 14, max_written = std::uint64_t{1} << 29;
    const CaseTensor& tensor = part.actual.tensor;
    const std::uint64_t planes = part.planes.size(),
                        sequences = tensor.in.batch == 0 ? tensor.batch : 1;
    if (passes * planes * sequences > max_calls) {
        unsupported(
            "tensors.{}: {} windows one after another, {} rotated planes and {} sequences that a "
            "view repeats take {} calls, more than {}",
            tensor.name, passes, planes, sequences, passes * planes * sequences, max_calls);
    }
    if (passes > 1 && passes * tensor.count > max_written) {
        unsupported("tensors.{}: {} windows one after another write {} elements, more than {}",
                    tensor.name, passes, passes * tensor.count, max_written);
    }
    hold_elements(tensor, passes);
}

void note_stored(const verify::Operation& operation, const verify::Bytes& after, Part& part) {
    Actual& actual = part.actual;
    const TensorIndex which = actual.which;
    if (part.cache) {
        verify::each_stored_row(operation, which, [&](std::uint64_t, std::size_t byte) {
            actual.output.written[(byte - part.out.offset) / actual.output.row_bytes] = true;
        });
    }
    MadeScales made;
    made.values = verify::made_scales(operation, which, after);
    if (made.values.empty()) {
        return;
    }
    const oracle::Tensor out = verify::rows_of(operation, which, true);
    for (std::size_t row = 0; row < made.values.size(); ++row) {
        if (!verify::scale_of(operation, which, out, row)) {
            made.values[row] = std::numeric_limits<float>::quiet_NaN();
        }
    }
    if (actual.tensor.has_batch) {
        made.shape.push_back(actual.tensor.batch);
    }
    if (actual.tensor.has_tokens) {
        made.shape.push_back(actual.tensor.tokens);
    }
    made.shape.push_back(actual.tensor.heads);
    actual.scales = std::move(made);
}

}  // namespace vkrope::conformance
