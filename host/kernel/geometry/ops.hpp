// SPDX-License-Identifier: MIT
// Computes the lanes, shared memory and loop iterations that norms, biases, clip, scale, Hadamard
// transforms and quantised stores need: pure arithmetic.
#pragma once

#include "base/meaning.hpp"
#include "base/parameter_layout.hpp"
#include "kernel/geometry/geometry.hpp"

namespace vkrope {

// Returns whether the lanes of a row store it together.
inline bool stores_together(const TensorInfo& tensor) noexcept {
    return tensor.head_dim != 0 && (tensor.ops.hadamard != 0 || is_quantised(tensor.out) ||
                                    tensor.ops.hadamard_of_input != 0);
}
inline bool stores_together(const KernelInfo& info) noexcept {
    return any_tensor(
        info, [](const TensorInfo& tensor) { return stores_together(tensor); });
}

// Returns whether rows that do not rotate keep their bytes: neither an op nor the type changes
// them.
inline bool keeps_rows(const TensorInfo& tensor) noexcept {
    Ops ops = tensor.ops;
    if (ops.hadamard == ops.hadamard_of_input) ops.hadamard = ops.hadamard_of_input = 0;
    return tensor.in == tensor.out && !has_ops(ops) &&
           is_made(ops.store_scale) == !!ops.scales_in &&
           (ops.store_scale == VKROPE_STORE_SCALE_NONE || is_made(ops.store_scale));
}

// Returns whether a tensor of a kernel has ops, a quantised output or a second destination, or rows
// that come from a cache, so that the shader needs more than the plain rotation.
inline bool has_ops(const KernelInfo& info) noexcept {
    if (moves_keys(info)) return true;
    return any_tensor(info, [](const TensorInfo& tensor) {
        return has_ops(tensor.ops) || stores_together(tensor) || has_second(tensor);
    });
}

// Returns the bits shader::op_* of a tensor.
std::uint32_t op_bits(const TensorInfo& tensor) noexcept;

// Sets the constants of a tensor's ops and of its store.
void set_ops(const TensorInfo& tensor, const TensorParameters& parameters,
             shader::TensorConstants& constants) noexcept;

// Returns the number of heads that a norm treats as one row: 1, or all.
std::uint32_t row_heads(const TensorInfo& tensor) noexcept;

// Returns the floats that a workgroup's lanes exchange for sums, for one tensor at a time.
std::uint64_t exchanged(const KernelInfo& info, const Geometry& geometry) noexcept;

// Returns the words of rows that a workgroup's lanes store together, for one tensor at a time.
std::uint64_t staged(const KernelInfo& info, const Geometry& geometry) noexcept;

// Bytes of shared memory that both need together, and the bytes that every device has.
inline constexpr std::uint64_t max_shared_bytes = 4 * VKROPE_SHARED_WORDS;
std::uint64_t shared_bytes(const KernelInfo& info, const Geometry& geometry) noexcept;

// Numbers of loop iterations of a lane that owns its rows, for the rows of one norm and for each
// head, of the tensor that needs the most iterations.
struct Iterations {
    std::uint64_t row = 0, head = 0;
};
Iterations owned_iterations(const KernelInfo& info, const Geometry& geometry) noexcept;

}  // namespace vkrope
