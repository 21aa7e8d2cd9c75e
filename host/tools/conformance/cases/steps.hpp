// SPDX-License-Identifier: MIT
// The additions of "rope-case/2" to a case.json: the ops around the rotation, the element type of
// the outputs and the scales of quantised outputs, and caches. No other file is read.
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

/// The cache to which an output is stored.
struct CacheOutputCase {
    Integers slots;
    std::vector<std::uint64_t> shape;
    std::string layout;
    std::uint64_t page_size = 0;
    std::string initial;  // file of the initial contents
};

/// The files of the parameters of a tensor; empty: none.
struct ParameterFiles {
    std::string bias = {}, weight = {}, norm_bias = {};
};

/// The steps of one tensor, without the fields of Ops.
struct StepsCase {
    ParameterFiles files = {};
    std::optional<Element> weight_dtype = {};
    std::string scale_tokens = {};      // file; empty: none
    std::optional<Element> out = {};    // none: same as the input
    float store_scale = 1;              // given for the whole tensor
    std::string store_scale_file = {};  // file with one scale per head; empty: not given
    std::optional<CacheOutputCase> cache = {};
};

/// Reads the keys of "rope-case/2" for ops. Adds numbers to the operation, but not the shapes of
/// parameters or the layout of scales. `present`: the tensors of the case. Throws Refusal.
OfEachTensor<StepsCase> read_steps(Fields& root, const OfEachTensor<bool>& present,
                                   verify::Operation& operation);

}  // namespace vkrope::conformance
