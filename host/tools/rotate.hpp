// SPDX-License-Identifier: MIT
// vkrope rotate, in its steps: read and check everything, rotate on the device, verify, report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model_file.hpp"
#include "tensor_file.hpp"
#include "token_positions.hpp"
#include "words.hpp"

namespace vkrope::tools {

struct RotateOptions {
    ModelOptions model;
    std::string q, k, out_q, out_k, positions;  // paths; empty: not given
    Layout layout = Layout::bshd;
    std::optional<Element> dtype;
    std::optional<std::int32_t> first_position;
    bool inverse = false;
    Gain gain = Gain::apply;
    AngleSource angles = AngleSource::by_default;
    bool float32_angles = false;
    std::optional<Pairing> pairing;
    std::optional<std::uint32_t> head_dim, rotary_offset;
    std::string device;
    std::uint32_t repetitions = 1;
    bool verify = false, roof = false, json = false;
};

struct RotateInputs {
    Rotation rotation;  // the model's, with the command line's changes and the offsets of the rows that the files have
    std::optional<TensorFile> q, k;
    std::uint32_t batch = 0, tokens = 0;
    Element element = Element::f32;
    TokenPositions positions;
    std::optional<ModelFile> model = {};  // that the rotation is of
};

/// Q or K on the command line: two options and their paths, empty where not given.
struct TensorPaths {
    const char* input_option;
    const std::string& input;
    const char* output_option;
    const std::string& output;
};

/// There is one of them at least, and each has both files. Throws Failure.
void check_tensors(const TensorPaths& q, const TensorPaths& k);

/// Reads what the options name and checks all that can be checked without a device. Throws Failure.
RotateInputs read_inputs(const RotateOptions& options);

struct CopySpeed {
    double nanoseconds = 0;
    std::string shader;
};

struct Measured {
    DeviceInfo device;
    AnglePlan angles;                   // all zero where there was nothing to rotate
    std::vector<std::byte> q, k;        // the rotated tensors
    std::optional<double> nanoseconds;  // median of one rotation
    std::optional<CopySpeed> copy;
    std::uint64_t bytes = 0;  // of Q and K, read and written
};

/// A first run pays for memory that is touched for the first time and for cold caches. Whoever asks for times gets one before them.
inline bool warms_up(const RotateOptions& options) noexcept {
    return options.repetitions > 1 || options.roof;
}

/// Everything that happens on the device. Throws Failure.
Measured rotate_on_device(const RotateOptions& options, const RotateInputs& inputs);

struct Verification {
    std::optional<reference::Verdict> q, k;  // nothing: absent, or not asked for
    double bound_u = 0;                      // what the contract allows
    bool asked_for = false;
    bool passed = false;  // asked for, and every value is within the contract
    std::string failure;  // asked for and not passed: what was wrong, with the worst value
};

/// Compares the outputs with the definition of the operation, on the CPU.
Verification verify(const RotateOptions& options, const RotateInputs& inputs, const Measured& measured);

/// On stdout, as text or as JSON.
void report(const RotateOptions& options, const RotateInputs& inputs, const Measured& measured, const Verification& verification);

}  // namespace vkrope::tools
