// SPDX-License-Identifier: MIT
// Converts a layout string and a view to rows: the indices of the elements of a tensor in the file
// and in the result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/folder.hpp"

namespace vkrope::conformance {

/// Strides along the axes that the library knows, in elements. An axis that is not in the layout
/// has length 1.
struct RowStrides {
    std::int64_t offset = 0, batch = 0, token = 0, head = 0, plane = 0;
};

struct CaseTensor {
    std::string name;  // "q", "k" or "v"
    std::vector<std::uint64_t> shape;
    std::vector<std::int64_t> strides;  // of the input, in the order of `shape`
    std::uint32_t batch = 1, tokens = 1, heads = 1, head_dim = 1, planes = 1;
    bool has_batch = false, has_tokens = false, has_planes = false;  // axes in the layout
    RowStrides in, out;                                              // `out` is contiguous
    npy::Array parent;                                               // contents of the file
    std::uint64_t count = 0;                                         // number of logical elements

    bool same_tokens(const CaseTensor& other) const noexcept {
        return batch == other.batch && tokens == other.tokens;
    }
};

/// Reads the file and checks the shape, the layout and the view. Throws Refusal.
CaseTensor read_tensor(const CaseFolder& folder, const std::string& name, const TensorCase& tensor,
                       Element dtype);

/// Refuses, as unsupported, work that is far larger than the size of the file justifies, because
/// shape and view may repeat elements of the file. `passes`: number of times all elements are
/// written.
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

/// Formats the index of an element for error messages: q[0, 2, 17].
std::string place_text(const std::string& name, const std::vector<std::uint64_t>& shape,
                       std::uint64_t index);

/// Returns the index along axis P of a logical index, or 0 without planes.
std::uint64_t plane_of(const CaseTensor& tensor, std::uint64_t index) noexcept;

}  // namespace vkrope::conformance
