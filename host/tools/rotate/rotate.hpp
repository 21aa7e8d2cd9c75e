// SPDX-License-Identifier: MIT
// The steps of vkrope rotate: read and check everything, rotate on the device, verify, report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/device_text.hpp"
#include "cli/output_file.hpp"
#include "cli/words.hpp"
#include "io/model_file.hpp"
#include "io/tensor_file.hpp"
#include "io/token_positions.hpp"
#include "rotate/ops.hpp"
#include "verify/compare.hpp"
#include "verify/oracle/verdict.hpp"

namespace vkrope::tools {

struct RotateOptions {
    ModelOptions model;
    OfEachTensor<std::string> inputs, outputs;  // paths; empty: not given
    OfEachTensor<const char*> output_options = {"--out-q", "--out-k", "--out-v"};
    const char* output_help = "File for the output of {}, .npy.";
    std::string positions;  // path; empty: not given
    Layout layout = VKROPE_LAYOUT_BSHD;
    std::optional<Element> dtype;
    std::optional<std::int32_t> first_position;
    bool inverse = false;
    Gain gain = VKROPE_GAIN_APPLY;
    AngleSource angles = VKROPE_ANGLES_AUTOMATIC;
    bool float32_angles = false;
    std::optional<std::uint32_t> head_dim, rotary_offset;
    std::string device;
    std::string pipeline_cache;  // a folder; empty: pipelines are not kept
    std::uint32_t repetitions = 1;
    bool verify = false, roof = false, json = false;
    OpsOptions ops;
};

/// Adds the options for files and for the operation on their tensors.
void add_operation(CommandLine& command, RotateOptions& options);

struct RotateInputs {
    RopeParams rotation;  // the model's, with the changes of the command line and the rotary
                          // offsets of the rows in the files
    OfEachTensor<std::optional<TensorFile>> tensors;
    std::uint32_t batch = 0, tokens = 0;
    Element element = VKROPE_F32;
    TokenPositions positions;
    std::optional<ModelFile> model = {};  // the model of the rotation
    OfEachTensor<TensorOps> ops;
    std::vector<float> q_scale_tokens = {};  // [batch, tokens]; empty: none
    float q_scale = 1;
    std::uint32_t first_set_tokens = 0;  // 0: one set of parameters
};

/// Reads the files named by the options and checks everything that can be checked without a device.
/// Throws Failure.
RotateInputs read_inputs(const RotateOptions& options);

/// Reads and checks the ops around the rotation of these tensors: the requested ops and, if there
/// are any, the model's ops too. Throws Failure.
void read_ops(const RotateOptions& options, RotateInputs& inputs);

/// Sets the store of each tensor and checks that it fits the tensor. Throws Failure.
void read_stores(const OpsOptions& options, RotateInputs& inputs);

/// An array that a run writes.
struct OutputArray {
    const char* option = nullptr;
    std::string path;
    npy::Type type = npy::Type::f4;
    std::vector<std::uint64_t> shape;
};

/// Opens a file for each array, writes its header, and rejects one that replaces an input or
/// another output.
std::vector<OutputFile> open_outputs(const RotateOptions& options,
                                     const std::vector<OutputArray>& arrays);

struct CopySpeed {
    double nanoseconds = 0;
    std::string shader;
};

/// Returns the operation on the tensors, whose data moves from the inputs to its memory. The source
/// of its angles is not set.
///
/// has_outputs  whether the memory has room for outputs
verify::Operation operation_of(const RotateOptions& options, RotateInputs& inputs,
                               bool has_outputs);

/// As verify::definition_of(). A layer without RoPE passes its channels through.
oracle::Definition definition_of(const RotateInputs& inputs, const verify::Operation& operation,
                                 TensorIndex which, bool flushes);

struct Measured {
    KnownDevice device;
    AngleTableLayout angles;            // all zero if there was nothing to rotate
    verify::Operation operation;        // its memory contains the outputs
    std::optional<double> nanoseconds;  // median of one rotation
    std::optional<CopySpeed> copy;
    std::uint64_t bytes = 0;  // number of bytes of all tensors, read and written
};

/// Returns true if a warm-up must precede the run, because times are measured: the first run also
/// pays for first-touch memory and cold caches.
inline bool warms_up(const RotateOptions& options) noexcept {
    return options.repetitions > 1 || options.roof;
}

/// Does everything that needs the device. Throws Failure.
Measured rotate_on_device(const RotateOptions& options, RotateInputs& inputs);

struct Verification {
    struct OfTensor {
        oracle::Verdict verdict;
        bool has_ops = false;  // other than the rotation and the store
    };
    // None if the tensor is absent or verification was not requested.
    OfEachTensor<std::optional<OfTensor>> verdicts;
    double bound_u = 0;  // error bound of the contract for rotated values
    bool asked_for = false;
    bool passed = false;  // asked for, and every value is within the contract
    std::string failure;  // if requested and not passed: the error, with the worst value
};

/// Compares the outputs with the definition of the operation, on the CPU. A V without ops is
/// compared with its input bit for bit.
Verification verify(const RotateOptions& options, const RotateInputs& inputs,
                    const Measured& measured);

/// Prints the report to stdout, as text or as JSON.
void report(const RotateOptions& options, const RotateInputs& inputs, const Measured& measured,
            const Verification& verification);

}  // namespace vkrope::tools
