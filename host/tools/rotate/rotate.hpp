// SPDX-License-Identifier: MIT
// vkrope rotate, in its steps: read and check everything, rotate on the device, verify, report.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "files/model_file.hpp"
#include "files/tensor_file.hpp"
#include "files/token_positions.hpp"
#include "shell/words.hpp"

namespace vkrope::tools {

/// The tensors of a rotation, in the order in which they are read, written and reported. V is never
/// rotated: it goes along.
enum TensorIndex : std::size_t { Q, K, V };
inline constexpr TensorIndex every_tensor[] = {Q, K, V};
template <class T>
using OfEachTensor = std::array<T, std::size(every_tensor)>;

/// What reports and the command line call a tensor.
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
    std::string positions;                      // likewise
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
    Rotation rotation;  // the model's, with the command line's changes and the offsets of the rows
                        // that the files have
    OfEachTensor<std::optional<TensorFile>> tensors;
    std::uint32_t batch = 0, tokens = 0;
    Element element = Element::f32;
    TokenPositions positions;
    std::optional<ModelFile> model = {};  // that the rotation is of
};

/// A tensor on the command line: two options and their paths, empty where not given.
struct TensorPaths {
    const char* input_option = nullptr;
    std::string_view input;
    const char* output_option = nullptr;
    std::string_view output;
};

/// There is Q or K, and each tensor has both files. Throws Failure.
void check_tensors(const OfEachTensor<TensorPaths>& paths);

/// Reads what the options name and checks all that can be checked without a device. Throws Failure.
RotateInputs read_inputs(const RotateOptions& options);

struct CopySpeed {
    double nanoseconds = 0;
    std::string shader;
};

struct Measured {
    DeviceInfo device;
    AnglePlan angles;  // all zero where there was nothing to rotate
    OfEachTensor<std::vector<std::byte>> outputs;
    std::optional<double> nanoseconds;  // median of one rotation
    std::optional<CopySpeed> copy;
    std::uint64_t bytes = 0;  // of all tensors, read and written
};

/// A first run pays for memory that is touched for the first time and for cold caches. Whoever asks
/// for times gets one before them.
inline bool warms_up(const RotateOptions& options) noexcept {
    return options.repetitions > 1 || options.roof;
}

/// Everything that happens on the device. Throws Failure.
Measured rotate_on_device(const RotateOptions& options, const RotateInputs& inputs);

struct Verification {
    OfEachTensor<std::optional<reference::Verdict>> verdicts;  // nothing: absent, or not asked for
    double bound_u = 0;  // what the contract allows, of Q and K
    bool asked_for = false;
    bool passed = false;  // asked for, and every value is within the contract
    std::string failure;  // asked for and not passed: what was wrong, with the worst value
};

/// Compares the outputs with the definition of the operation, on the CPU: V with its input, bit for
/// bit.
Verification verify(const RotateOptions& options, const RotateInputs& inputs,
                    const Measured& measured);

/// On stdout, as text or as JSON.
void report(const RotateOptions& options, const RotateInputs& inputs, const Measured& measured,
            const Verification& verification);

}  // namespace vkrope::tools
