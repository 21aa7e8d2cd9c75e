// SPDX-License-Identifier: MIT
// Describes the layout of SPIR-V: a header, then instructions, each with its opcode and length in
// the first word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <spirv/unified1/spirv.hpp>

namespace vkrope {

constexpr std::size_t header_words = 5;

inline spv::Op op_of(const std::uint32_t* instruction) noexcept {
    return spv::Op(instruction[0] & spv::OpCodeMask);
}

inline std::uint32_t length_of(const std::uint32_t* instruction) noexcept {
    return instruction[0] >> spv::WordCountShift;
}

// Returns the first word of an instruction of `length` words.
constexpr std::uint32_t first_word(spv::Op op, std::uint32_t length) noexcept {
    return length << spv::WordCountShift | std::uint32_t(op);
}

}  // namespace vkrope
