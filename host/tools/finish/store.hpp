// SPDX-License-Identifier: MIT
// How the outputs are stored: their types, the Hadamard transforms before, the scales.
#pragma once

#include "rotate/rotate.hpp"

namespace vkrope::tools {

/// A value for all tensors, or one for each that is named: "q8_0", "k=q8_0,v=q4_0".
template <class T>
struct ForTensors {
    std::optional<T> all;
    OfEachTensor<std::optional<T>> named;

    std::optional<T> of(TensorIndex which) const { return named[which] ? named[which] : all; }
};

/// A factor that is given, a file with one for each head, or a scale that is made for each row.
struct ScaleOption {
    bool of_row = false, power_of_two = false;
    float factor = 1;
    std::string of_heads = {};  // path; empty: the other two
};

/// The options of files with made scales, and what their help says of them.
struct ScaleFileOptions {
    OfEachTensor<const char*> names = {"--out-q-scales", "--out-k-scales", "--out-v-scales"};
    const char* help = "File for the scales made for {}, .npy";
};

struct StoreOptions {
    ForTensors<Element> types;
    ForTensors<std::uint32_t> hadamard;
    bool hadamard_of_llama_cpp = false;
    ForTensors<ScaleOption> scales;
    std::optional<double> scale_floor;
    ScaleFileOptions scale_options;
    OfEachTensor<std::string> scale_files;  // paths; empty: not given
};

/// How one tensor is stored.
struct StoreSteps {
    Element type = VKROPE_F32;
    std::uint32_t hadamard = 0;  // channels of a block; 0: none
    StoreScale scale = VKROPE_STORE_SCALE_NONE;
    std::vector<float> given_scales = {};  // one, or one for each head
    float scale_floor = 0;

    std::uint64_t bytes(std::uint64_t channels) const noexcept {
        return channels / block_channels(type) * element_bytes(type);
    }
};

/// Where the scale of row `row` of [batch, tokens, heads] is in a file with the tensor's layout.
std::uint64_t scale_in_file(const reference::Tensor& view, std::uint64_t row) noexcept;

/// Adds --store, --hadamard, --store-scale and what belongs to it.
void add_store(CommandLine& command, StoreOptions& options);

/// True if one of these options was given.
bool asks_for_store(const StoreOptions& options);

/// Checks the options against the tensors. Throws Failure.
OfEachTensor<StoreSteps> store_steps(const StoreOptions& options, const RotateInputs& inputs);

}  // namespace vkrope::tools
