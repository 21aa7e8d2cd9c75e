// SPDX-License-Identifier: MIT
// Structs with a size field. The caller may be compiled with another version: a field that its
// version lacks reads as 0, and a field that this version does not know must be 0.
#pragma once

#include <cstring>
#include <type_traits>

#include "vkrope/types.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::c {

/// Converts an enumerator from C, which may be any number: as a C++ enum such a number would be
/// undefined.
template <class To, class Enum>
To enum_from(const Enum& field) noexcept {
    static_assert(std::is_enum_v<To> && std::is_enum_v<Enum> && sizeof(To) == sizeof(Enum) &&
                  sizeof(To) == sizeof(std::uint32_t));
    std::uint32_t number;
    std::memcpy(&number, &field, sizeof number);
    return To(number);
}

/// Copies the struct at `from` to the `known` bytes at `to`. `name` is the parameter name in error
/// messages.
Status read_bytes(const void* from, const char* name, void* to, std::size_t known) noexcept;

/// Copies the `known` bytes at `from`, except struct_size, to the struct at `to`, up to the size of
/// that struct.
Status write_bytes(const void* from, const char* name, void* to, std::size_t known) noexcept;

template <class Struct>
constexpr bool carries_its_size =
    std::is_standard_layout_v<Struct>&& std::is_trivially_copyable_v<Struct>&&
        std::is_same_v<decltype(Struct::struct_size), std::size_t>&& offsetof(Struct,
                                                                              struct_size) == 0;

/// What a field that is not used yet must be.
Status check_reserved(const char* name, const char* field, std::uint32_t value) noexcept;

template <class Struct>
Status read(const Struct* from, const char* name, Struct& to) noexcept {
    static_assert(carries_its_size<Struct>);
    Status status = read_bytes(from, name, &to, sizeof to);
    if constexpr (requires { to.reserved; }) {
        if (status) status = check_reserved(name, "reserved", to.reserved);
    }
    if constexpr (requires { to.reserved_2; }) {
        if (status) status = check_reserved(name, "reserved_2", to.reserved_2);
    }
    return status;
}

/// For a struct that may be absent: all fields are then 0.
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
