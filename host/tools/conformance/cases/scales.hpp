// SPDX-License-Identifier: MIT
// The scales that the library makes for the rows of a quantised output: where it writes them, and
// in the order of a case.
#pragma once

#include "conformance/cases/tensor.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct CaseCache;

/// The made scales of one tensor, one for each row.
struct MadeScales {
    std::vector<std::uint64_t> shape;  // batch, tokens, heads: the axes of the layout
    std::vector<float> values;         // NaN: the token has no slot
    std::uint64_t stray = 0;           // numbers beside them that have changed
};

/// The buffer of the scales, poisoned where the library has to write.
class CaseScales {
   public:
    /// `cache`: nothing if rows do not go to slots, whose numbers are checked.
    CaseScales(DeviceUnderTest& device, const CaseTensor& tensor, const CaseCache* cache);

    VkDescriptorBufferInfo where() const noexcept { return buffer_.whole(); }
    MadeScales read(DeviceUnderTest& device);

   private:
    std::vector<std::uint64_t> shape_;
    std::vector<std::int64_t> places_;  // in the buffer; -1: nowhere
    std::size_t room_ = 0;              // numbers in the buffer
    Buffer buffer_;
};

}  // namespace vkrope::conformance
