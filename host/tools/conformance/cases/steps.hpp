// SPDX-License-Identifier: MIT
// What a case.json of "rope-case/2" adds: the steps around the rotation, the element type of the
// outputs with the scales of quantised ones, and caches. No other file is read.
#pragma once

#include <array>

#include "conformance/cases/fields.hpp"
#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// The tensors of a case. V is never rotated.
inline constexpr const char* tensor_names[] = {"q", "k", "v"};
template <class T>
using OfEachTensor = std::array<T, std::size(every_tensor)>;

/// The cache that an output goes to.
struct CacheOutputCase {
    Integers slots;
    std::vector<std::uint64_t> shape;
    std::string layout;
    std::uint64_t page_size = 0;
    std::string initial;  // file
};

/// Files of the parameters of a tensor; empty: none.
struct ParameterFiles {
    std::string bias = {}, weight = {}, norm_bias = {};
};

/// The steps of one tensor, beside their ops.
struct StepsCase {
    ParameterFiles files = {};
    std::optional<Element> weight_dtype = {};
    std::string scale_tokens = {};      // file; empty: none
    std::optional<Element> out = {};    // none: as the input
    float store_scale = 1;              // given for the tensor
    std::string store_scale_file = {};  // given for each head; empty: not
    std::optional<CacheOutputCase> cache = {};
};

/// Reads the keys of "rope-case/2" that are steps: numbers into the operation, without shapes of
/// parameters and the layout of scales. `present` says which tensors the case has. Throws Refusal.
OfEachTensor<StepsCase> read_steps(Fields& root, const OfEachTensor<bool>& present,
                                   verify::Operation& operation);

}  // namespace vkrope::conformance
