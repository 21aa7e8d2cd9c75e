// SPDX-License-Identifier: MIT
// Names and meanings of bindings, push constants, flags and offsets, for hosts that do not include
// shaders/interface.h. The compiler compares the tables with it.
#pragma once

#include <span>

#include "interface.h"

namespace vkrope::tools {

struct NamedBinding {
    shader::uint number;
    const char *name, *meaning;
};

/// A member of shader::Push.
struct PushMember {
    const char *name, *type;
    shader::uint offset, bytes;
    const char* meaning;
};

struct NamedNumber {
    const char* name;
    shader::uint value;
    const char* meaning;
};

/// In the order of their numbers, each number once.
std::span<const NamedBinding> named_bindings() noexcept;
/// In the order of their offsets, without gaps.
std::span<const PushMember> push_members() noexcept;
/// Bits of Push::flags.
std::span<const NamedNumber> push_flags() noexcept;
/// Bytes of Push::offsets.
std::span<const NamedNumber> push_offsets() noexcept;

}  // namespace vkrope::tools
