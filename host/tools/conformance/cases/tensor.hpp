// SPDX-License-Identifier: MIT
// From a layout string and a view to rows: where the elements of a case's tensor are, in the file
// and in the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/folder.hpp"

namespace vkrope::conformance {

/// How far apart the steps along the axes that the library knows are, in elements. Axes that a
/// layout lacks have one step.
struct RowStrides {
    std::int64_t offset = 0, batch = 0, token = 0, head = 0, plane = 0;
};

struct CaseTensor {
    std::string name;  // "q" or "k"
    std::vector<std::uint64_t> shape;
    std::vector<std::int64_t> strides;  // of the input, as `shape`
    std::uint32_t batch = 1, tokens = 1, heads = 1, head_dim = 1, planes = 1;
    bool has_planes = false;
    RowStrides in, out;       // `out`: contiguous
    npy::Array parent;        // the file
    std::uint64_t count = 0;  // logical elements

    bool same_tokens(const CaseTensor& other) const noexcept {
        return batch == other.batch && tokens == other.tokens;
    }
};

/// Reads the file and checks shape, layout and view against it. Throws Refusal.
CaseTensor read_tensor(const CaseFolder& folder, const std::string& name, const TensorCase& tensor,
                       Element dtype);

/// Shape and view may name elements again and again that the file has once: refuses, as
/// unsupported, what would take far longer than the file gives reason for. `passes`: how often all
/// of them are written.
void hold_elements(const CaseTensor& tensor, std::uint64_t passes);

/// Calls visit(logical index, index in the parent buffer) for all elements, in logical order.
template <class Visit>
void each_element(const CaseTensor& tensor, const Visit& visit) {
    std::vector<std::uint64_t> at(tensor.shape.size(), 0);
    std::int64_t parent = tensor.in.offset;
    for (std::uint64_t index = 0; index < tensor.count; ++index) {
        visit(index, static_cast<std::uint64_t>(parent));
        for (std::size_t axis = at.size(); axis-- > 0;) {
            parent += tensor.strides[axis];
            if (++at[axis] < tensor.shape[axis]) {
                break;
            }
            parent -= tensor.strides[axis] * static_cast<std::int64_t>(tensor.shape[axis]);
            at[axis] = 0;
        }
    }
}

/// [0, 2, 17], as a sentence names an element.
std::string place_text(const CaseTensor& tensor, std::uint64_t index);

/// Axis P of a logical index; 0 without planes.
std::uint64_t plane_of(const CaseTensor& tensor, std::uint64_t index) noexcept;

}  // namespace vkrope::conformance
