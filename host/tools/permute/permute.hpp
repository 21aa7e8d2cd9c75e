// SPDX-License-Identifier: MIT
// Steps of vkrope permute: find the tensors of Q and K, write the file again, report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/model_file.hpp"
#include "files/safetensors.hpp"
#include "shell/output_file.hpp"

namespace vkrope::tools {

struct PermuteOptions {
    std::string model, in, out;      // paths; out is empty if not given
    std::optional<Pairing> pairing;  // of the weights in the file, instead of the model's
    Pairing to = Pairing::half_split;
    std::vector<std::string> q, k;  // patterns of names
    bool dry_run = false, json = false;
};

/// A tensor whose rows are channels of heads.
struct PermutedTensor {
    const safetensors::Tensor* tensor = nullptr;
    bool key = false;
    std::uint64_t heads = 0, channels = 0;            // of each head
    std::uint32_t rotary_offset = 0, rotary_dim = 0;  // the channels that change places
    std::vector<Window> windows;  // which of them form pairs, from the rotary offset
    std::uint64_t row_bytes = 0;
};

/// A tensor that looks like Q or K and stays as it is.
struct LeftTensor {
    const safetensors::Tensor* tensor = nullptr;
    std::string reason;
};

struct PermutePlan {
    std::optional<Pairing> from;  // none if nothing is permuted
    std::vector<PermutedTensor> permuted;
    std::vector<LeftTensor> left;
};

/// Finds what has to change, and checks that it fits the model. Throws Failure. Warnings and notes
/// go to stderr.
PermutePlan plan_permutation(const PermuteOptions& options, const ModelFile& model,
                             const safetensors::Header& header);

/// The channel of a head, in its present pairing, that becomes `channel` in the other one.
std::uint64_t source_channel(const PermutedTensor& tensor, Pairing to,
                             std::uint64_t channel) noexcept;

/// Writes the whole file, with the rows of these tensors in their new places. Throws Failure, or
/// safetensors::Error if the file cannot be read.
void write_permuted(const safetensors::File& file, const PermutePlan& plan, Pairing to,
                    OutputFile& out);

/// Prints the report to stdout, as text or as JSON.
void report(const PermuteOptions& options, const safetensors::File& file, const PermutePlan& plan);

}  // namespace vkrope::tools
