// SPDX-License-Identifier: MIT
// The tensors of a case in the memory of its operation.
#pragma once

#include "conformance/cases/run.hpp"
#include "verify/memory.hpp"

namespace vkrope::conformance {

/// A tensor of a case in memory. Each pass reads the output of the previous pass.
struct Part {
    Actual actual;
    std::optional<CaseCache> cache;
    std::vector<std::uint64_t> planes;  // the planes that are rotated
    VkDescriptorBufferInfo in, out;
    RowStrides strides;  // of `in`
};
/// Reads a tensor and its ops, and adds both to the operation. Throws Refusal.
Part read_part(const CaseFolder& folder, const CaseDescription& description, TensorIndex which,
               verify::Operation& operation, verify::Memory& memory);

/// Returns the rows of a plane, starting at `sequence`, in a piece of memory.
Tensor rows(const Part& part, const VkDescriptorBufferInfo& piece, const RowStrides& strides,
            Element element, std::uint64_t plane, std::uint32_t sequence);

/// Limits the repeated work that a small case may request: windows in separate passes, planes in
/// separate calls, and sequences that a view repeats.
void hold_work(const Part& part, std::uint64_t passes);

/// Records the rows that the call of an operation stored, and their scales.
void note_stored(const verify::Operation& operation, const verify::Bytes& after, Part& part);

}  // namespace vkrope::conformance
