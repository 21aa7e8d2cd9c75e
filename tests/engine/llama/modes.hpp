// SPDX-License-Identifier: MIT
// What the program does with a model. Each mode prints a row, and returns whether it is as it must
// be.
#pragma once

#include "harness.hpp"

namespace engine {

/// Compares what vkrope stores with ggml's quantisation of vkrope's own rows, with ggml's rows and
/// caches, and with exact angles, at 64 positions that end with the last.
bool observe(const Setup& setup, std::int32_t last_position);

/// Puts vkrope's rows in place of ggml's, on the CPU and on Vulkan, and compares logits.
bool replace(Setup setup);

/// Lets llama.cpp shift its context, and compares its cache of K with that of vkrope's call.
bool shift(const Setup& setup);

/// Quantises rows by ggml's definition. ggml_quantize_chunk searches better codes for iq4_nl than
/// ggml stores in a cache.
Bytes quantise(ggml_type type, const float* rows, std::int64_t channels);

/// Counts the parts of `unit` bytes that differ.
std::size_t differences(const Bytes& a, const Bytes& b, std::size_t unit = 1);

}  // namespace engine
