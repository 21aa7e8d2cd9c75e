// SPDX-License-Identifier: MIT
// The steps of a case around the rotation, and its caches, as a kernel and a call take them.
#pragma once

#include "conformance/cases/folder.hpp"
#include "conformance/cases/scales.hpp"
#include "conformance/cases/tensor.hpp"
#include "conformance/device_under_test.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {

/// Bytes of `channels` channels; a multiple of the block.
constexpr std::uint64_t stored_bytes(Element element, std::uint64_t channels) noexcept {
    return channels / block_channels(element) * element_bytes(element);
}

/// What the library computes for one tensor: contiguous, all planes; or the whole cache.
struct CaseOutput {
    Element element = VKROPE_F32;
    std::vector<std::uint64_t> shape;  // quantised: the last axis counts bytes
    RowStrides rows;                   // without a cache; in channels
    std::uint64_t row_bytes = 0;       // of the channels of one head
    std::vector<std::byte> initial;    // contents before the call
    std::vector<bool> written;         // rows that a token goes to; empty: all
};

/// The cache of one tensor, and the slot of each token.
struct CaseCache {
    PagedCache paged;  // without its buffer
    std::int64_t head_stride = 0;
    bool heads_before_rows = false;  // the layout has H before P
    std::uint64_t slot_count = 0;
    CaseFolder::IntegerList slots;  // [batch, tokens]
    Buffer slot_mapping;
};

/// The steps of one tensor on the device.
class CaseOps {
   public:
    /// Reads and checks every file of the steps. `element` is the type of the output unless the
    /// steps say otherwise. Throws Refusal.
    CaseOps(DeviceUnderTest& device, const CaseFolder& folder, const StepsCase& steps,
            const CaseTensor& tensor, Element element);

    const Ops& ops() const noexcept { return ops_; }
    TensorParameterSources sources() const noexcept;
    /// Of the tokens from first_set_tokens on; 0: there is one set.
    TensorParameterSources second_sources() const noexcept;
    std::uint32_t first_set_tokens() const noexcept { return steps_.first_set_tokens; }
    VkDescriptorBufferInfo scale_tokens() const noexcept;
    const std::optional<CaseCache>& cache() const noexcept { return cache_; }
    VkDescriptorBufferInfo scales_out() const noexcept;
    /// The scales that the library has made; nothing if it makes none.
    std::optional<MadeScales> made_scales(DeviceUnderTest& device);

    /// The output of `tensor`: poison where the library has to write, and the initial contents of a
    /// cache. Also makes room for the scales that the library makes.
    CaseOutput output(DeviceUnderTest& device, const CaseTensor& tensor);

   private:
    struct Parameter {
        npy::Array array;
        ParameterShape shape = VKROPE_PARAMETER_NONE;
        ParameterSource source() const noexcept;
    };
    Parameter read_parameter(const std::string& file, const CaseTensor& tensor) const;
    void read_norm(const NormCase& norm, const CaseTensor& tensor);
    void read_second_set(const CaseTensor& tensor);
    TensorParameterSources sources(const Parameter& bias, const Parameter& weight,
                                   const Parameter& norm_bias) const noexcept;
    void read_scales(DeviceUnderTest& device, const CaseTensor& tensor);
    void read_hadamard(const CaseTensor& tensor);
    void read_store_scale(const CaseTensor& tensor);
    void read_cache(DeviceUnderTest& device, const CaseTensor& tensor);
    CaseOutput packed_output(const CaseTensor& tensor) const;
    CaseOutput cache_output(const CaseTensor& tensor) const;

    const CaseFolder& folder_;
    const StepsCase& steps_;
    Ops ops_;
    Element element_;
    Parameter bias_, weight_, norm_bias_;
    Parameter second_bias_, second_weight_, second_norm_bias_;
    std::vector<float> store_scales_;  // given: of the tensor, or of each head
    Buffer scale_tokens_;
    std::optional<CaseCache> cache_;
    std::optional<CaseScales> made_;
};

/// True if K and V can go to their rows in one call.
bool same_slots(const std::optional<CaseCache>& a, const std::optional<CaseCache>& b);

/// Returns the parameter buffer of a kernel, and where it is; nothing if the kernel has none.
/// `info` has the ops of the tensors that it handles. `second`: with two sets.
Buffer parameters_of(DeviceUnderTest& device, const KernelInfo& info,
                     const ParameterSources& sources, const ParameterSources& second,
                     VkDescriptorBufferInfo& where);

}  // namespace vkrope::conformance
