// SPDX-License-Identifier: MIT
// What a case.json of "rope-case/2" adds: the steps around the rotation, the element type of the
// outputs with the scales of quantised ones, and caches. As written: no other file is read.
#pragma once

#include <array>
#include <variant>

#include "conformance/cases/fields.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// The tensors of a case. V is never rotated.
inline constexpr const char* tensor_names[] = {"q", "k", "v"};
template <class T>
using OfEachTensor = std::array<T, std::size(every_tensor)>;

struct NormCase {
    NormKind kind = VKROPE_NORM_RMS;
    NormSpan span = VKROPE_NORM_SPAN_HEAD;
    NormPlace place = VKROPE_NORM_PLACE_BEFORE;
    double eps = 0;
    std::string weight, bias;  // files; empty: none
    std::optional<Element> weight_dtype;
    std::uint32_t weight_offset = 0;
};

/// The cache that an output goes to.
struct CacheOutputCase {
    Integers slots;
    std::vector<std::uint64_t> shape;
    std::string layout;
    std::uint64_t page_size = 0;
    std::string initial;  // file
};

/// A scale in the document, or the name of the file that has one for each head.
using GivenScaleCase = std::variant<double, std::string>;
/// A scale is made for each row.
struct MadeScaleCase {
    double floor = 0;
    bool power_of_two = false;
};
using StoreScaleCase = std::variant<GivenScaleCase, MadeScaleCase>;

/// The steps of one tensor.
struct StepsCase {
    std::string bias;  // file; empty: none
    std::optional<NormCase> norm;
    // Of tokens from first_set_tokens on, unless that is 0: files; empty: as for the others.
    std::uint32_t first_set_tokens = 0;
    std::string second_bias, second_weight, second_norm_bias;
    double clip = 0, scale = 1;
    std::string scale_tokens;    // file; empty: none
    std::uint64_t hadamard = 1;  // channels of a block
    std::optional<Element> out;  // none: as the input
    std::optional<StoreScaleCase> store_scale;
    std::optional<CacheOutputCase> cache;

    /// True if values change outside the rotated windows, too.
    bool change_values() const {
        return !bias.empty() || norm || clip != 0 || scale != 1 || !scale_tokens.empty() ||
               hadamard != 1;
    }
};

/// Reads the keys of "rope-case/2" that are steps. `present` says which tensors the case has.
/// Throws Refusal.
OfEachTensor<StepsCase> read_steps(Fields& root, const OfEachTensor<bool>& present);

}  // namespace vkrope::conformance
