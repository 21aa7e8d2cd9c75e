// SPDX-License-Identifier: MIT
// The steps of a case around the rotation, and its caches, as an operation has them.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/cases/tensor.hpp"
#include "verify/memory.hpp"

namespace vkrope::conformance {

/// What the library computes for one tensor: contiguous, all planes; or the whole cache.
struct CaseOutput {
    Element element = VKROPE_F32;
    std::vector<std::uint64_t> shape = {};  // quantised: the last axis counts bytes
    std::uint64_t row_bytes = 0;            // of the channels of one head
    std::vector<std::byte> initial = {};    // contents before the call
    std::vector<bool> written = {};         // rows that a token goes to; empty: all
};

/// The cache of one tensor, and the slot of each token.
struct CaseCache {
    PagedCache paged;
    std::int64_t head_stride = 0;
    bool heads_before_rows = false;  // the layout has H before P
    std::uint64_t slot_count = 0;
    std::vector<std::int64_t> slots;  // [batch, tokens]
};

struct CaseOps {
    CaseOutput output;
    std::optional<CaseCache> cache;
};

/// Reads and checks every file of the steps of a tensor, and adds them to the operation, which has
/// the rest of its ops: formats, shapes, parameters, and what the call has in memory. `element` is
/// the type of the output unless the steps say otherwise. Throws Refusal.
CaseOps add_ops(const CaseFolder& folder, const StepsCase& steps, const CaseTensor& tensor,
                TensorIndex which, Element element, verify::Operation& operation,
                verify::Memory& memory);

/// True if K and V can go to their rows in one call.
bool same_slots(const std::optional<CaseCache>& a, const std::optional<CaseCache>& b);

}  // namespace vkrope::conformance
