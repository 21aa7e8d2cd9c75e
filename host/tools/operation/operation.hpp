// SPDX-License-Identifier: MIT
// An operation whose tensors are files: its options, the inputs that they name, and the operation
// in memory. vkrope rotate runs it, vkrope check compares an engine's output with it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/words.hpp"
#include "io/model_file.hpp"
#include "io/tensor_file.hpp"
#include "io/token_positions.hpp"
#include "operation/ops.hpp"
#include "verify/definition.hpp"
#include "verify/operation.hpp"

namespace vkrope::tools {

struct OperationOptions {
    ModelOptions model;
    OfEachTensor<std::string> inputs, outputs;  // paths; empty: not given
    OfEachTensor<const char*> output_options = {"--out-q", "--out-k", "--out-v"};
    const char* output_help = "File for the output of {}, .npy.";
    std::string positions;  // path; empty: not given
    Layout layout = VKROPE_LAYOUT_BSHD;
    bool reads_caches = false;  // offers the options of keys that move
    ForTensors<Element> dtype;
    std::optional<std::int32_t> first_position;
    bool inverse = false;
    Gain gain = VKROPE_GAIN_APPLY;
    AngleSource angles = VKROPE_ANGLES_AUTOMATIC;
    bool float32_angles = false;
    std::optional<std::uint32_t> head_dim, rotary_offset;
    bool json = false;
    OpsOptions ops;
};

// Adds the options for files and for the operation on their tensors.
void add_operation(CommandLine& command, OperationOptions& options);

struct OperationInputs {
    RopeParams rotation;  // the model's, with the changes of the command line and the rotary
                          // offsets of the rows in the files
    OfEachTensor<std::optional<TensorFile>> tensors;
    std::uint32_t batch = 0, tokens = 0;
    TokenPositions positions;
    std::optional<ModelFile> model = {};  // the model of the rotation
    OfEachTensor<TensorOps> ops;
    std::vector<float> q_scale_tokens = {};  // [batch, tokens]; empty: none
    float q_scale = 1;
};

// Returns whether K or V comes from a cache: its type is quantised, or it has a Hadamard transform.
bool moves_keys(const OperationOptions& options, const OperationInputs& inputs);

// Reads the files named by the options and checks everything that can be checked without a device.
// Throws Failure.
OperationInputs read_inputs(const OperationOptions& options);

// Reads and checks the ops around the rotation of these tensors: the requested ops and, if there
// are any, the model's ops too. Throws Failure.
void read_ops(const OperationOptions& options, OperationInputs& inputs);

// Sets the store of each tensor and checks that it fits the tensor. Throws Failure.
void read_stores(const OpsOptions& options, OperationInputs& inputs);

// Returns rows [batch, tokens, heads] of equal size, which are in the order of a file, one after
// another.
std::vector<std::byte> rows_of_file(const oracle::Tensor& view, std::span<const std::byte> file);

// Returns the operation on the tensors, whose data moves from the inputs to its memory. The source
// of its angles is not set.
//
// has_outputs  whether the memory has room for outputs
verify::Operation operation_of(const OperationOptions& options, OperationInputs& inputs,
                               bool has_outputs);

}  // namespace vkrope::tools
