// SPDX-License-Identifier: MIT
// Steps of vkrope finish: read and check everything, finish on the device, verify, report.
#pragma once

#include "finish/store.hpp"
#include "reference/finish.hpp"
#include "reference/quantise_verdict.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {

struct FinishOptions {
    RotateOptions given;  // model, tensors, positions, rotation, run
    // Paths; empty: not given.
    OfEachTensor<std::string> biases, norm_weights, norm_biases;
    // Of the tokens from first_set_tokens on.
    OfEachTensor<std::string> second_biases, second_norm_weights, second_norm_biases;
    std::optional<std::uint32_t> first_set_tokens;
    std::string q_scale_tokens;
    bool v_norm = false;  // a norm without weight
    // Instead of the model's.
    std::optional<NormKind> norm_kind;
    std::optional<NormSpan> norm_span;
    std::optional<NormPlace> norm_place;
    std::optional<double> norm_eps;
    std::optional<std::uint32_t> norm_offset;
    std::optional<double> clip;
    double q_scale = 1;
    StoreOptions store;
};

/// A weight or bias in a file; its shape fits the tensor.
struct ParameterFile {
    npy::Array array;
    ParameterShape shape = VKROPE_PARAMETER_NONE;

    ParameterSource source() const noexcept;
    std::vector<double> values() const;
};

/// The steps of one tensor, as the kernel takes them, and their parameters.
struct TensorSteps {
    Finish finish;
    ParameterFile bias, weight, norm_bias;
    ParameterFile second_bias, second_weight, second_norm_bias;  // if there is a second set
    StoreSteps store;
};

struct FinishInputs {
    RotateInputs rotate;
    OfEachTensor<TensorSteps> steps;
    std::vector<float> q_scale_tokens;  // [batch, tokens]; empty: none
    float q_scale = 1;
    std::uint32_t first_set_tokens = 0;  // 0: one set of parameters
};

/// Adds the options of norms, bias, clip and scale; add_store() adds the options of the store.
void add_steps(CommandLine& command, FinishOptions& options);

/// True if one of these options was given.
bool asks_for_steps(const FinishOptions& options);

/// Reads the files named by the options and checks everything that can be checked without a device.
/// Throws Failure.
FinishInputs read_inputs(const FinishOptions& options);

struct MeasuredFinish : Measured {
    OfEachTensor<std::vector<float>> scales;  // made ones, [batch, tokens, heads]
};

/// Does everything that needs the device. Throws Failure.
MeasuredFinish finish_on_device(const FinishOptions& options, const FinishInputs& inputs);

/// The definition of the steps of a tensor.
reference::Finish steps_of(const FinishInputs& inputs, TensorIndex which);

/// The definition of a quantised output.
reference::QuantisedStore quantised_store(const StoreSteps& steps);

struct FinishVerification {
    // None: absent, not asked for, or the other one.
    OfEachTensor<std::optional<reference::FinishVerdict>> verdicts;
    OfEachTensor<std::optional<reference::CodesVerdict>> codes;  // of quantised outputs
    bool passed = false;  // asked for, and every value is within the contract
    std::string failure;  // if asked for and not passed: what was wrong, with the worst value
};

/// Compares the outputs with the definition of the steps, on the CPU.
FinishVerification verify(const FinishOptions& options, const FinishInputs& inputs,
                          const MeasuredFinish& measured);

/// Prints the report to stdout, as text or as JSON.
void report(const FinishOptions& options, const FinishInputs& inputs, const Measured& measured,
            const FinishVerification& verification);

}  // namespace vkrope::tools
