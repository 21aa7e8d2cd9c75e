// SPDX-License-Identifier: MIT
// Computes results of operations on known 32-bit or Boolean scalars (SPIR-V 1.3, section 3.32).
// Operations on constants and operations in functions use the same opcodes.
#pragma once

#include <cstdint>
#include <spirv/unified1/spirv.hpp>

namespace vkrope {

struct Scalar {
    bool known = false;
    std::uint32_t value = 0;
};

// Returns the number of operands of an operation that evaluate() supports; 0 for others.
inline std::uint32_t operands_of(spv::Op op) noexcept {
    using namespace spv;
    switch (op) {
        case OpLogicalNot: return 1;
        case OpSelect: return 3;
        case OpIAdd:
        case OpISub:
        case OpIMul:
        case OpUDiv:
        case OpUMod:
        case OpLogicalEqual:
        case OpLogicalNotEqual:
        case OpLogicalOr:
        case OpLogicalAnd:
        case OpIEqual:
        case OpINotEqual:
        case OpUGreaterThan:
        case OpUGreaterThanEqual:
        case OpULessThan:
        case OpULessThanEqual:
        case OpBitwiseOr:
        case OpBitwiseXor:
        case OpBitwiseAnd:
        case OpShiftLeftLogical: return 2;
        default: return 0;
    }
}

// Returns the result. It is unknown if an operand that affects it is, if a divisor is 0, or if the
// operation is not supported. Operands that the operation does not have are known.
inline Scalar evaluate(spv::Op op, const Scalar (&operand)[3]) noexcept {
    using namespace spv;
    const std::uint32_t a = operand[0].value, b = operand[1].value, c = operand[2].value;
    if (op == OpLogicalAnd && ((operand[0].known && !a) || (operand[1].known && !b)))
        return {true, 0};
    if (!operand[0].known || !operand[1].known || !operand[2].known) return {};
    switch (op) {
        case OpIAdd: return {true, a + b};
        case OpISub: return {true, a - b};
        case OpIMul: return {true, a * b};
        case OpUDiv: return {b != 0, b != 0 ? a / b : 0};
        case OpUMod: return {b != 0, b != 0 ? a % b : 0};
        case OpLogicalEqual:
        case OpIEqual: return {true, a == b};
        case OpLogicalNotEqual:
        case OpINotEqual: return {true, a != b};
        case OpLogicalOr:
        case OpBitwiseOr: return {true, a | b};
        case OpLogicalAnd:
        case OpBitwiseAnd: return {true, a & b};
        case OpBitwiseXor: return {true, a ^ b};
        case OpShiftLeftLogical: return {b < 32, b < 32 ? a << b : 0};
        case OpLogicalNot: return {true, !a};
        case OpSelect: return {true, a ? b : c};
        case OpUGreaterThan: return {true, a > b};
        case OpUGreaterThanEqual: return {true, a >= b};
        case OpULessThan: return {true, a < b};
        case OpULessThanEqual: return {true, a <= b};
        default: return {};
    }
}

}  // namespace vkrope
