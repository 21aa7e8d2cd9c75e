// SPDX-License-Identifier: MIT
// The words of the command line and of the reports, and the values that they stand for.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/meaning.hpp"

namespace vkrope::tools {

template <class T>
struct Choice {
    const char* word;
    T value;
};

inline constexpr Choice<Layout> layouts[] = {{"bshd", VKROPE_LAYOUT_BSHD},
                                             {"bhsd", VKROPE_LAYOUT_BHSD},
                                             {"sbhd", VKROPE_LAYOUT_SBHD},
                                             {"thd", VKROPE_LAYOUT_THD}};
constexpr Choice<Element> choice_of(Element element) noexcept {
    return {element_name(element), element};
}
// All element types, in the order of Element.
inline constexpr Choice<Element> stored_elements[] = {
    choice_of(VKROPE_F32),    choice_of(VKROPE_F16),  choice_of(VKROPE_BF16),
    choice_of(VKROPE_E4M3FN), choice_of(VKROPE_E5M2), choice_of(VKROPE_INT8),
    choice_of(VKROPE_Q8_0),   choice_of(VKROPE_Q4_0), choice_of(VKROPE_Q4_1),
    choice_of(VKROPE_Q5_0),   choice_of(VKROPE_Q5_1), choice_of(VKROPE_IQ4_NL),
    choice_of(VKROPE_INT4)};
// The element types that are not quantised.
inline constexpr Choice<Element> elements[] = {stored_elements[0], stored_elements[1],
                                               stored_elements[2]};
inline constexpr Choice<ScaleType> scale_types[] = {{"f32", VKROPE_SCALE_TYPE_F32},
                                                    {"ue8m0", VKROPE_SCALE_TYPE_UE8M0}};
inline constexpr Choice<SecondOf> seconds[] = {{"result", VKROPE_SECOND_RESULT},
                                               {"input", VKROPE_SECOND_INPUT}};
inline constexpr Choice<Pairing> pairings[] = {{"half_split", VKROPE_HALF_SPLIT},
                                               {"interleaved", VKROPE_INTERLEAVED}};
inline constexpr Choice<Gain> gains[] = {{"apply", VKROPE_GAIN_APPLY},
                                         {"omit", VKROPE_GAIN_OMIT},
                                         {"divide_out", VKROPE_GAIN_DIVIDE_OUT}};
inline constexpr Choice<AngleSource> angle_sources[] = {
    {"factored_texture", VKROPE_ANGLES_FACTORED_TEXTURE},
    {"computed", VKROPE_ANGLES_COMPUTED},
    {"direct_texture", VKROPE_ANGLES_DIRECT_TEXTURE},
    {"direct_buffer", VKROPE_ANGLES_DIRECT_BUFFER}};

// Returns a number of bytes in readable form.
inline std::string bytes_text(std::uint64_t bytes) {
    return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", double(bytes) / 1024)
                           : fmt::format("{:.1f} MiB", double(bytes) / (1 << 20));
}

// Returns the word for a value that is in the table.
template <class T, std::size_t count>
constexpr const char* word_for(const Choice<T> (&choices)[count], T value) noexcept {
    for (const Choice<T>& choice : choices)
        if (choice.value == value) return choice.word;
    return "?";
}

}  // namespace vkrope::tools
