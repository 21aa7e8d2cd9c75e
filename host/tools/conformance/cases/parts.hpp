// SPDX-License-Identifier: MIT
// The tensors of a case in the memory of its operation.
#pragma once

#include "conformance/cases/run.hpp"
#include "verify/memory.hpp"

namespace vkrope::conformance {

/// A tensor of a case in memory. Each pass reads what the one before it has written.
struct Part {
    Actual actual;
    std::optional<CaseCache> cache;
    std::vector<std::uint64_t> planes;  // that are rotated
    VkDescriptorBufferInfo in, out;
    RowStrides strides;  // of `in`
};
/// Reads a tensor and its steps, and adds both to the operation. Throws Refusal.
Part read_part(const CaseFolder& folder, const CaseDescription& description, TensorIndex which,
               verify::Operation& operation, verify::Memory& memory);

/// The rows of a plane from `sequence` on, in a piece of memory.
Tensor rows(const Part& part, const VkDescriptorBufferInfo& piece, const RowStrides& strides,
            Element element, std::uint64_t plane, std::uint32_t sequence);

/// A small case may still request much repeated work: windows one after another, planes that
/// take one call each, sequences that a view repeats.
void hold_work(const Part& part, std::uint64_t passes);

/// Notes the rows that the call of an operation has stored, and its scales.
void note_stored(const verify::Operation& operation, const verify::Bytes& after, Part& part);

}  // namespace vkrope::conformance
