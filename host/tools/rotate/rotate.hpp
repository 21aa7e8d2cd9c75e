// SPDX-License-Identifier: MIT
// Steps of vkrope rotate: read and check everything, rotate on the device, verify, report.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/model_file.hpp"
#include "files/tensor_file.hpp"
#include "files/token_positions.hpp"
#include "shell/command_line.hpp"
#include "shell/output_file.hpp"
#include "shell/words.hpp"

namespace vkrope::tools {

/// The tensors of a rotation, in the order in which they are read, written and reported. V is never
/// rotated, only moved.
template <class T>
using OfEachTensor = std::array<T, std::size(every_tensor)>;

/// The names of a tensor in reports and on the command line.
struct TensorNames {
    const char* name;
    const char* input_option;
    const char* output_option;
};
inline constexpr OfEachTensor<TensorNames> tensor_names = {
    {{"Q", "--q", "--out-q"}, {"K", "--k", "--out-k"}, {"V", "--v", "--out-v"}}};

struct RotateOptions {
    ModelOptions model;
    OfEachTensor<std::string> inputs, outputs;  // paths; empty: not given
    std::string positions;                      // path; empty: not given
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
};

/// Adds --model and what belongs to it, --q, --k and --v, their outputs, and the positions.
void add_tensor_files(CommandLine& command, RotateOptions& options, const char* v_output);

/// Adds what says how the tensors are read and rotated: --layout, --gain, --angles and others.
void add_operation(CommandLine& command, RotateOptions& options);

/// Adds --device, --pipeline-cache, --verify, --repeat and --json.
void add_run(CommandLine& command, RotateOptions& options);

struct RotateInputs {
    Rotation rotation;  // of the model, with the changes of the command line and the rotary offsets
                        // of the rows in the files
    OfEachTensor<std::optional<TensorFile>> tensors;
    std::uint32_t batch = 0, tokens = 0;
    Element element = VKROPE_F32;
    TokenPositions positions;
    std::optional<ModelFile> model = {};  // the model of the rotation
};

/// The two options of a tensor and their paths; a path is empty if not given.
struct TensorPaths {
    const char* input_option = nullptr;
    std::string_view input;
    const char* output_option = nullptr;
    std::string_view output;
};

/// Checks that Q or K is given, and that each given tensor has both files. Throws Failure.
void check_tensors(const OfEachTensor<TensorPaths>& paths);

/// Reads the files named by the options and checks everything that can be checked without a device.
/// Throws Failure.
RotateInputs read_inputs(const RotateOptions& options);

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

/// Options that `vkrope check` has too.
void add_positions(CommandLine& command, RotateOptions& options);
void add_layout(CommandLine& command, RotateOptions& options);
void add_window(CommandLine& command, RotateOptions& options);

struct Measured {
    DeviceInfo device;
    AnglePlan angles;  // all zero if there was nothing to rotate
    OfEachTensor<std::vector<std::byte>> outputs;
    std::optional<double> nanoseconds;  // median of one rotation
    std::optional<CopySpeed> copy;
    std::uint64_t bytes = 0;  // of all tensors, read and written
};

/// The first run also pays for first-touch memory and cold caches, so a run that measures times is
/// preceded by a warm-up.
inline bool warms_up(const RotateOptions& options) noexcept {
    return options.repetitions > 1 || options.roof;
}

/// Does everything that needs the device. Throws Failure.
Measured rotate_on_device(const RotateOptions& options, const RotateInputs& inputs);

/// Opens the device that was asked for. Throws Failure.
Device open_device(const RotateOptions& options);

/// Fails if the table of the angles that were asked for does not reach all positions on a device
/// with these limits.
void check_table_fits(const RotateOptions& options, const RotateInputs& inputs,
                      const VkPhysicalDeviceLimits& limits);

/// The definition of what happens to a tensor; V is not rotated.
reference::Operation operation_of(const RotateOptions& options, const RotateInputs& inputs,
                                  TensorIndex which);

/// The bound of the contract for rotated values, in units of u = 2^-24.
double bound_of(const RotateOptions& options, const RotateInputs& inputs, const AnglePlan& angles);

struct Verification {
    OfEachTensor<std::optional<reference::Verdict>> verdicts;  // none: absent or not asked for
    double bound_u = 0;  // error bound of the contract for Q and K
    bool asked_for = false;
    bool passed = false;  // asked for, and every value is within the contract
    std::string failure;  // if asked for and not passed: what was wrong, with the worst value
};

/// Compares the outputs with the definition of the operation, on the CPU. V is compared with its
/// input bit for bit.
Verification verify(const RotateOptions& options, const RotateInputs& inputs,
                    const Measured& measured);

/// Prints the report to stdout, as text or as JSON.
void report(const RotateOptions& options, const RotateInputs& inputs, const Measured& measured,
            const Verification& verification);

}  // namespace vkrope::tools
