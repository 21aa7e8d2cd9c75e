// SPDX-License-Identifier: MIT
// Passes numbers without an enumerator as C does. C accepts any number for an enumeration; in C++ a
// number without an enumerator may be undefined.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace vkrope::test {

constexpr std::uint32_t no_enumerators[] = {77u, 0x7fffffffu, 0x80000000u, 0xffffffffu};

template <class Enum>
void put(Enum& field, std::uint32_t number) {
    static_assert(sizeof field == sizeof number);
    std::memcpy(&field, &number, sizeof number);
}

template <class Enum>
std::uint32_t number_in(const Enum& field) {
    std::uint32_t number;
    std::memcpy(&number, &field, sizeof number);
    return number;
}

template <class T>
using AsInC = std::conditional_t<std::is_enum_v<T>, std::uint32_t, T>;

// Returns a function as C calls it, with numbers for enumerations.
template <class Result, class... Parameters>
auto as_in_c(Result (*function)(Parameters...)) {
    return reinterpret_cast<Result (*)(AsInC<Parameters>...)>(
        reinterpret_cast<void (*)()>(function));
}

}  // namespace vkrope::test
