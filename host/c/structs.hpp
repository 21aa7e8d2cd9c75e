// SPDX-License-Identifier: MIT
// Structs that carry their size. The caller was compiled with another version of them, perhaps: a
// field that its version lacks reads as 0, and one that this version does not know must be 0.
#pragma once

#include <cstring>
#include <type_traits>

#include "vkrope/types.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::c {

/// An enumerator as C gave it, which may be any number: as an enum of C++ such a number would be
/// undefined.
template <class To, class Enum>
To enum_from(const Enum& field) noexcept {
    static_assert(std::is_enum_v<To> && std::is_enum_v<Enum> && sizeof(To) == sizeof(Enum) &&
                  sizeof(To) == sizeof(std::uint32_t));
    std::uint32_t number;
    std::memcpy(&number, &field, sizeof number);
    return To(number);
}

/// Copies the struct at `from` to the `known` bytes at `to`. `name` is the parameter's, for errors.
Status read_bytes(const void* from, const char* name, void* to, std::size_t known) noexcept;

/// Copies all but struct_size of the `known` bytes at `from` to the struct at `to`, as far as its
/// size reaches.
Status write_bytes(const void* from, const char* name, void* to, std::size_t known) noexcept;

template <class Struct>
constexpr bool carries_its_size =
    std::is_standard_layout_v<Struct>&& std::is_trivially_copyable_v<Struct>&&
        std::is_same_v<decltype(Struct::struct_size), std::size_t>&& offsetof(Struct,
                                                                              struct_size) == 0;

template <class Struct>
Status read(const Struct* from, const char* name, Struct& to) noexcept {
    static_assert(carries_its_size<Struct>);
    return read_bytes(from, name, &to, sizeof to);
}

/// A struct that may be absent, which means that all of it is 0.
template <class Struct>
Status read_optional(const Struct* from, const char* name, Struct& to) noexcept {
    if (from) return read(from, name, to);
    to = {};
    return {};
}

template <class Struct>
Status write(const Struct& from, const char* name, Struct* to) noexcept {
    static_assert(carries_its_size<Struct>);
    return write_bytes(&from, name, to, sizeof from);
}

}  // namespace vkrope::c
