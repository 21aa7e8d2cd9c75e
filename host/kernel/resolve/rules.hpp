// SPDX-License-Identifier: MIT
// Declares the rules of a call, by subject; resolve() applies them in order.
#pragma once

#include "interface.h"
#include "kernel/geometry/overlap.hpp"
#include "kernel/resolve/resolve.hpp"

namespace vkrope {

// The rows of Q, K or V.
struct InAndOut {
    TensorRows in, out;
};

// Sets the buffer and the strides of both views of a tensor that is present.
//
// from, to  the paged cache of the input, and of the output; null: they have one row per token
Status resolve_tensor(const KernelInfo& info, TensorIndex index, const PagedCache* from,
                      const PagedCache* to, InAndOut& rows, ResolvedTensor& resolved) noexcept;

// Checks that a field is at most its last enumerator.
//
// tensor  the name of the tensor that the field belongs to, or null
Status check_enumerator(const char* tensor, const char* field, std::uint32_t value,
                        std::uint32_t last) noexcept;

Status check_ops(const KernelInfo& info) noexcept;

// Checks the heads of a tensor whose dispatches need the number of their first head, in 16 bits.
Status check_head_count(const char* tensor, std::uint32_t heads) noexcept;

// Checks the scales of the rows that are stored and read.
//
// scatters, gathers  rows go to slots, and come from slots
Status check_scales(const char* tensor, const TensorInfo& of, bool scatters, bool gathers) noexcept;
Status resolve_scales(const KernelInfo& info, TensorIndex index, const Call& call,
                      ResolvedCall& resolved) noexcept;

// Returns an error if a field is set that the kernel, or a call of the kernel, would not use.
Status check_unused(const KernelInfo& info) noexcept;
Status check_unused(const KernelInfo& info, std::size_t parameter_bytes, const Call& call) noexcept;

Status resolve_positions(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept;
Status resolve_slots(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept;
Status resolve_angles(const KernelInfo& info, const StorageLimits& limits, const Angles& angles,
                      ResolvedCall& resolved) noexcept;
Status resolve_ops(const KernelInfo& info, std::size_t parameter_bytes, const StorageLimits& limits,
                   const Call& call, ResolvedCall& resolved) noexcept;
Status resolve_gain(const Call& call, ResolvedCall& resolved) noexcept;

// Checks that the table covers every implicit position; sequences start `step` positions apart.
Status check_covered(const Call& call, std::uint32_t step) noexcept;

// Returns whether the caller has set any part of a buffer.
inline bool is_given(const VkDescriptorBufferInfo& of) noexcept {
    return of.buffer || (of.offset | of.range) != 0;
}

// Checks a buffer of words, from which `bytes` bytes are used, starting at where.offset.
Status check_words(const char* name, const VkDescriptorBufferInfo& where,
                   std::uint64_t bytes) noexcept;

// Width of the numbers in a buffer, which a flag of the caller states.
struct Width {
    bool is_64;
    const char* to_64;  // what the caller must do for 64 bits: "set int64"
};

// Checks such a buffer. A range of exactly twice the size of 32-bit numbers is an error: the
// numbers probably have 64 bits, and the flag is wrong.
//
// bytes  size of the numbers that the call reads
// own    size of all numbers, including those between and after the ones that the call reads
Status check_numbers(const char* name, const VkDescriptorBufferInfo& where, Width width,
                     std::uint64_t bytes, std::uint64_t own) noexcept;

// Checks a buffer of words, and binds the bytes that are used.
Status bind_words(const char* name, const VkDescriptorBufferInfo& where, std::uint64_t bytes,
                  const StorageLimits& limits, VkDescriptorBufferInfo& bound,
                  std::uint32_t& offset_words) noexcept;

// Checks and binds the uniform buffer of computed angles.
Status bind_uniforms(const char* name, const Angles& angles, const StorageLimits& limits,
                     VkDescriptorBufferInfo& bound) noexcept;

// Returns the number of words from the first id or slot of a call to the end of its last one.
std::uint64_t words_of(const View& numbers, const Call& call) noexcept;

// Checks that ids, slots and table do not overlap the outputs, and that the counter overlaps no
// other buffer of the call.
Status check_words_apart(const KernelInfo& info, const Call& call, const ResolvedCall& resolved,
                         const InAndOut (&rows)[tensor_count]) noexcept;

}  // namespace vkrope
