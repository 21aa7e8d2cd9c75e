// SPDX-License-Identifier: MIT
// Converts the ops of a case around the rotation, and its caches, to an operation.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/cases/tensor.hpp"
#include "verify/memory.hpp"

namespace vkrope::conformance {

/// The output of one tensor: contiguous with all planes, or the whole cache.
struct CaseOutput {
    Element element = VKROPE_F32;
    std::vector<std::uint64_t> shape = {};  // if quantised, the last axis counts bytes
    std::uint64_t row_bytes = 0;            // size of the channels of one head
    std::vector<std::byte> initial = {};    // contents before the call
    std::vector<bool> written = {};         // rows that tokens are stored to; empty: all
};

/// The cache of one tensor, and the slot of each token.
struct CaseCache {
    PagedCache paged;
    std::int64_t head_stride = 0;
    bool heads_before_rows = false;  // in the layout, H comes before P
    std::uint64_t slot_count = 0;
    std::vector<std::int64_t> slots;  // [batch, tokens]
};

struct CaseOps {
    CaseOutput output;
    std::optional<CaseCache> cache;
};

/// Reads and checks all files of the ops of a tensor. Adds formats, shapes, parameters and the
/// memory of the call to the operation, which already contains the other fields of the ops.
/// `element` is the type of the output unless `steps` gives another type. Throws Refusal.
CaseOps add_ops(const CaseFolder& folder, const StepsCase& steps, const CaseTensor& tensor,
                TensorIndex which, Element element, verify::Operation& operation,
                verify::Memory& memory);

/// Returns true if one call can store K and V to these caches.
bool same_slots(const std::optional<CaseCache>& a, const std::optional<CaseCache>& b);

}  // namespace vkrope::conformance
