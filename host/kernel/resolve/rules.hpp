// SPDX-License-Identifier: MIT
// The rules of a call by what they are about; resolve() asks one after the other.
#pragma once

#include <array>

#include "interface.h"
#include "kernel/geometry/overlap.hpp"
#include "kernel/resolve/resolve.hpp"

namespace vkrope {

/// A tensor that is present: both of its sides, whose views get a buffer and strides.
///
/// cache    whose rows the output has; null: it has the tokens'
/// rotates  not V
Status resolve_tensor(const KernelInfo& info, const HeadFormat& width, const PagedCache* cache,
                      bool rotates, TensorRows& in, TensorRows& out,
                      ResolvedTensor& resolved) noexcept;

Status resolve_positions(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept;
Status resolve_slots(const KernelInfo& info, const Call& call, ResolvedCall& resolved) noexcept;
Status resolve_angles(const KernelInfo& info, const StorageLimits& limits, const Angles& angles,
                      ResolvedCall& resolved) noexcept;
Status resolve_gain(const Call& call, ResolvedCall& resolved) noexcept;

/// A buffer of words: `bytes` bytes from where.offset on.
Status check_words(const char* name, const VkDescriptorBufferInfo& where,
                   std::uint64_t bytes) noexcept;

/// Such a buffer, bound whole.
Status bind_words(const char* name, const VkDescriptorBufferInfo& where, std::uint64_t bytes,
                  const StorageLimits& limits, VkDescriptorBufferInfo& bound,
                  std::uint32_t& offset_words) noexcept;

/// The numbers of computed angles.
Status bind_uniforms(const char* name, const Angles& angles, const StorageLimits& limits,
                     VkDescriptorBufferInfo& bound) noexcept;

/// Words from the first number of a call to behind its last one.
std::uint64_t words_of(const View& numbers, const Call& call) noexcept;

/// Ids, slots and table lie outside what the call writes, and the counter outside all else that it
/// touches. `tensors`: outputs, then inputs.
Status check_words_apart(const Call& call, const ResolvedCall& resolved,
                         const std::array<const TensorRows*, 6>& tensors) noexcept;

}  // namespace vkrope
