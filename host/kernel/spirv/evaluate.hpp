// SPDX-License-Identifier: MIT
// What operations make of known scalars of 32 bits or Boolean: SPIR-V 1.3, section 3.32. The same numbers stand for an operation on
// constants and for one in a function.
#pragma once

#include <cstdint>

namespace vkrope {

struct Scalar {
    bool known = false;
    std::uint32_t value = 0;
};

/// Operands of an operation that evaluate() knows; 0 for others.
inline std::uint32_t operands_of(std::uint32_t op) noexcept {
    switch (op) {
        case 168: return 1;  // OpLogicalNot
        case 169: return 3;  // OpSelect
        case 128:            // OpIAdd
        case 130:            // OpISub
        case 132:            // OpIMul
        case 134:            // OpUDiv
        case 137:            // OpUMod
        case 164:            // OpLogicalEqual
        case 165:            // OpLogicalNotEqual
        case 166:            // OpLogicalOr
        case 167:            // OpLogicalAnd
        case 170:            // OpIEqual
        case 171:            // OpINotEqual
        case 172:            // OpUGreaterThan
        case 174:            // OpUGreaterThanEqual
        case 176:            // OpULessThan
        case 178:            // OpULessThanEqual
        case 197:            // OpBitwiseOr
        case 199: return 2;  // OpBitwiseAnd
        default: return 0;
    }
}

/// The result; not known where an operand is not that matters, or a divisor is 0.
inline Scalar evaluate(std::uint32_t op, const Scalar (&operand)[3]) noexcept {
    const std::uint32_t count = operands_of(op), a = operand[0].value, b = operand[1].value, c = operand[2].value;
    if (count == 0) return {};
    if (op == 167 && ((operand[0].known && !a) || (operand[1].known && !b))) return {true, 0};
    for (std::uint32_t i = 0; i < count; ++i) {
        if (!operand[i].known) return {};
    }
    switch (op) {
        case 128: return {true, a + b};
        case 130: return {true, a - b};
        case 132: return {true, a * b};
        case 134: return {b != 0, b != 0 ? a / b : 0};
        case 137: return {b != 0, b != 0 ? a % b : 0};
        case 164:
        case 170: return {true, a == b};
        case 165:
        case 171: return {true, a != b};
        case 166:
        case 197: return {true, a | b};
        case 167:
        case 199: return {true, a & b};
        case 168: return {true, !a};
        case 169: return {true, a ? b : c};
        case 172: return {true, a > b};
        case 174: return {true, a >= b};
        case 176: return {true, a < b};
        default: return {true, a <= b};  // OpULessThanEqual
    }
}

}  // namespace vkrope
