// SPDX-License-Identifier: MIT
// The words of the command line and of the reports, and the values that they stand for.
#pragma once

#include <fmt/format.h>

#include <string>

#include "vkrope/runtime.hpp"

namespace vkrope::tools {

template <class T>
struct Choice {
    const char* word;
    T value;
};

inline constexpr Choice<Layout> layouts[] = {
    {"bshd", Layout::bshd}, {"bhsd", Layout::bhsd}, {"sbhd", Layout::sbhd}, {"thd", Layout::thd}};
/// Types of an output, in the order of Element.
inline constexpr Choice<Element> stored_elements[] = {
    {"f32", Element::f32},       {"f16", Element::f16},   {"bf16", Element::bf16},
    {"e4m3fn", Element::e4m3fn}, {"e5m2", Element::e5m2}, {"int8", Element::int8},
    {"q8_0", Element::q8_0},     {"q4_0", Element::q4_0}, {"q4_1", Element::q4_1},
    {"q5_0", Element::q5_0},     {"q5_1", Element::q5_1}};
/// Types of an input.
inline constexpr Choice<Element> elements[] = {stored_elements[0], stored_elements[1],
                                               stored_elements[2]};
inline constexpr Choice<Pairing> pairings[] = {{"half_split", Pairing::half_split},
                                               {"interleaved", Pairing::interleaved}};
inline constexpr Choice<Gain> gains[] = {
    {"apply", Gain::apply}, {"omit", Gain::omit}, {"divide_out", Gain::divide_out}};
inline constexpr Choice<AngleSource> angle_sources[] = {
    {"factored_texture", AngleSource::factored_texture},
    {"computed", AngleSource::computed},
    {"direct_texture", AngleSource::direct_texture},
    {"direct_buffer", AngleSource::direct_buffer}};

/// A number of bytes in readable form.
inline std::string bytes_text(std::uint64_t bytes) {
    return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", double(bytes) / 1024)
                           : fmt::format("{:.1f} MiB", double(bytes) / (1 << 20));
}

/// Returns the word for a value that is in the table.
template <class T, std::size_t count>
constexpr const char* word_for(const Choice<T> (&choices)[count], T value) noexcept {
    for (const Choice<T>& choice : choices) {
        if (choice.value == value) {
            return choice.word;
        }
    }
    return "?";
}

}  // namespace vkrope::tools
