// SPDX-License-Identifier: MIT
// The tensors of one call of a case: their formats, their steps and their rows.
#pragma once

#include "conformance/cases/description.hpp"
#include "conformance/cases/ops.hpp"
#include "conformance/cases/tensor.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

/// A tensor on the device. Each pass reads the result of the previous one and frees its input.
struct Resident {
    TensorIndex which;
    CaseTensor tensor;
    CaseOps ops;
    CaseOutput output;
    Buffer in;  // first pass: the parent buffer of the case
    Buffer out = {};
    std::uint64_t passes = 0;
};

/// A plane of a tensor: Q, K or V of a call.
struct Part {
    const Resident* resident;
    std::uint64_t plane;
};

/// The tensors of one call.
struct Members {
    const Part *q = nullptr, *k = nullptr, *v = nullptr;
};

/// Adds the formats and the steps of the tensors. Returns the parameter buffer of the call.
Buffer add_formats(DeviceUnderTest& device, const CaseDescription& description,
                   DeviceUnderTest::KernelCall& call, const Members& members,
                   std::uint32_t rotary_offset);

/// The strides of a part's input: a pass after the first reads the output of the previous one,
/// which is contiguous.
const RowStrides& input_strides(const Part& part);

/// Sets the input and the output of a part from `sequence` on; without a part, nothing.
void place(const CaseDescription& description, const Part* part, std::uint32_t sequence, Tensor& in,
           Tensor& out);

}  // namespace vkrope::conformance
