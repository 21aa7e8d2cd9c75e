// SPDX-License-Identifier: MIT
// The words of a module on their way from this library to the driver: unpacked, then specialised.
//
// Specialisation happens here because a driver may optimise a module before it applies specialisation constants; SwiftShader does,
// takes 16 times as long to compile and runs every branch. Vulkan needs nothing for this: the result is an ordinary module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "vkrope/types.hpp"

namespace vkrope {

struct Spirv {
    std::unique_ptr<std::uint32_t[]> words;
    std::size_t count = 0;
};

/// The words that shaders/embed.cmake packed into `size` bytes.
Result<Spirv> unpack(const std::uint8_t* bytes, std::size_t size) noexcept;

/// `words` with every specialisation constant replaced: by values[SpecId], or by what its operation makes of such values. An
/// operation that is not integer or Boolean arithmetic on scalars is left to the driver.
///
/// words   a valid SPIR-V module of `count` words, whose SpecIds are below `value_count` and whose constants are 32 bits or Boolean
Result<Spirv> specialize(const std::uint32_t* words, std::size_t count, const std::uint32_t* values,
                         std::uint32_t value_count) noexcept;

/// A module without what constant conditions make unreachable: branches never taken, functions that nothing calls any more, and the
/// decorations of both. What it bound is then no longer statically used, and needs no descriptor. Loops keep their conditions.
///
/// module  valid SPIR-V of logical addressing, with blocks in an order in which values are computed before their uses
Result<Spirv> prune(const Spirv& module) noexcept;

}  // namespace vkrope
