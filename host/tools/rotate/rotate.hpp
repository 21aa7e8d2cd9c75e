// SPDX-License-Identifier: MIT
// The steps of vkrope rotate: read and check everything, rotate on the device, verify, report.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/device_text.hpp"
#include "cli/output_file.hpp"
#include "operation/operation.hpp"
#include "verify/compare.hpp"
#include "verify/oracle/verdict.hpp"

namespace vkrope::tools {

// The operation, and how it is run.
struct RotateOptions : OperationOptions {
    std::string device;
    std::string pipeline_cache;  // a folder; empty: pipelines are not kept
    std::uint32_t repetitions = 1;
    bool verify = false, roof = false;
};

// What an array to write holds of its tensor.
enum class Content { rows, scales, second };

// An array to write.
struct OutputArray {
    const char* option = nullptr;
    std::string path;
    npy::Type type = npy::Type::f4;
    std::vector<std::uint64_t> shape;
    TensorIndex which = Q;
    Content content = Content::rows;
};

// Returns a file for each output. Rejects one that replaces an input or another output.
std::vector<OutputFile> open_outputs(const RotateOptions& options,
                                     const std::vector<OutputArray>& outputs);

struct CopySpeed {
    double nanoseconds = 0;
    std::string shader;
};

struct Measured {
    KnownDevice device;
    AngleTableLayout angles;            // all zero if nothing was rotated
    verify::Operation operation;        // its memory contains the outputs
    std::optional<double> nanoseconds;  // median of one rotation
    std::optional<CopySpeed> copy;
    std::uint64_t bytes = 0;  // number of bytes of all tensors, read and written
};

// Returns true if a warm-up must precede the run, because times are measured: the first run also
// pays for first-touch memory and cold caches.
inline bool warms_up(const RotateOptions& options) noexcept {
    return options.repetitions > 1 || options.roof;
}

// Does everything that needs the device. Throws Failure.
Measured rotate_on_device(const RotateOptions& options, OperationInputs& inputs);

struct Verification {
    struct OfTensor {
        oracle::Verdict verdict;
        bool has_ops = false;                        // other than the rotation and the store
        std::optional<oracle::Verdict> second = {};  // on the second destination
    };
    // None if the tensor is absent or verification was not requested.
    OfEachTensor<std::optional<OfTensor>> verdicts;
    double bound_u = 0;  // error bound of the contract for rotated values; 0 if nothing rotates
    bool asked_for = false;
    bool passed = false;  // asked for, and every value is within the contract
    std::string failure;  // if requested and not passed: the error, with the worst value
};

// Compares the outputs with the definition of the operation, on the CPU. A V without ops is
// compared with its input bit for bit.
Verification verify(const RotateOptions& options, const OperationInputs& inputs,
                    const Measured& measured);

// Prints the report to stdout, as text or as JSON.
void report(const RotateOptions& options, const OperationInputs& inputs, const Measured& measured,
            const Verification& verification);

}  // namespace vkrope::tools
