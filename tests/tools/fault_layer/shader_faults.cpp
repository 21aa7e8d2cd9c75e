// SPDX-License-Identifier: MIT
// Faults of a compiler that translates a shader incorrectly.
#include <algorithm>

#include "faults.hpp"

namespace vkrope::faults {
namespace {

using spv::Op;
using Base = Module::Base;

constexpr std::uint32_t sign = 0x80000000, exponent = 0x7f800000;
constexpr auto arithmetic = {Op::OpFAdd, Op::OpFSub, Op::OpFMul};

void exchange(Module& module, Op from, Op to) {
    for (Instruction& instruction : module.code())
        if (instruction.op == from) instruction.op = to;
}

void fsub_is_fadd(Module& module) {
    exchange(module, Op::OpFSub, Op::OpFAdd);
}

// ---- Arithmetic ----

// Adds a * b + c with one rounding, or nearly always as if with one rounding, because software
// devices execute Fma with two roundings. The error of the product is from Dekker, the error of
// the sum from Knuth.
void add_fused(Module& module, Substitute& to, Id type, Id a, Id b, Id c, Id result) {
    const auto add = [&](Id x, Id y) { return to.add(Op::OpFAdd, type, {x, y}); };
    const auto sub = [&](Id x, Id y) { return to.add(Op::OpFSub, type, {x, y}); };
    const auto mul = [&](Id x, Id y) { return to.add(Op::OpFMul, type, {x, y}); };
    const auto high = [&](Id x) {
        const Id scaled = mul(x, module.constant(type, 0x45800800));  // 2^12 + 1
        return sub(scaled, sub(scaled, x));
    };
    const Id product = mul(a, b), a_high = high(a), b_high = high(b), a_low = sub(a, a_high),
             b_low = sub(b, b_high);
    const Id crossed = add(add(sub(mul(a_high, b_high), product), mul(a_high, b_low)),
                           mul(a_low, b_high));
    const Id product_error = add(crossed, mul(a_low, b_low));
    const Id sum = add(product, c), of_c = sub(sum, product);
    const Id sum_error = add(sub(product, sub(sum, of_c)), sub(c, of_c));
    const Id fused = add(sum, add(sum_error, product_error));
    const Id overflows = to.add(Op::OpIsNan, module.like(type, Base::boolean), {fused});
    to.add(Op::OpSelect, type, {overflows, sum, fused}, result);
}

// Fuses every sum or difference that has a product as an operand.
void contract(Module& module) {
    for (const Op op : {Op::OpFAdd, Op::OpFSub}) {
        module.replace(
            op,
            [&](const Instruction& sum, Substitute& to) {
                const auto product = [&](std::size_t index) {
                    const Instruction* made = module.definition(sum.operand(index));
                    return made != nullptr && made->op == Op::OpFMul ? made : nullptr;
                };
                const bool first = product(0) != nullptr;
                if (!first && product(1) == nullptr) return to.add(sum);
                const Instruction of = *product(first ? 0 : 1);
                Id a = of.operand(0), c = sum.operand(first ? 1 : 0);
                if (op == Op::OpFSub) {
                    Id& negated = first ? c : a;
                    negated = to.add(Op::OpFNegate, sum.type(), {negated});
                }
                add_fused(module, to, sum.type(), a, of.operand(1), c, sum.result());
            });
    }
}

// Lets `write` change the bits of each f32 result.
void change_bits(Module& module, std::initializer_list<Op> ops,
                 const std::function<Id(Substitute&, Id type, Id bits)>& write) {
    module.change_results(
        ops,
        [&](Substitute& to, Id type, Id raw, Id as) {
            const Id integers = module.like(type, Base::uint32);
            const Id bits = write(to, integers, to.add(Op::OpBitcast, integers, {raw}));
            to.add(Op::OpBitcast, type, {bits}, as);
        });
}

// Computes products with the precision that RelaxedPrecision allows.
void low_precision(Module& module) {
    change_bits(
        module, {Op::OpFMul},
        [&](Substitute& to, Id type, Id bits) {
            return to.add(Op::OpBitwiseAnd, type, {bits, module.constant(type, 0xffffe000)});
        });
}

void lose_nan(Module& module) {
    module.change_results(
        arithmetic,
        [&](Substitute& to, Id type, Id raw, Id as) {
            const Id is = to.add(Op::OpIsNan, module.like(type, Base::boolean), {raw});
            to.add(Op::OpSelect, type, {is, module.constant(type, 0), raw}, as);
        });
}

void saturate(Module& module) {
    change_bits(
        module, arithmetic,
        [&](Substitute& to, Id type, Id bits) {
            const Id size = to.add(Op::OpBitwiseAnd, type, {bits, module.constant(type, ~sign)});
            const Id is = to.add(Op::OpIEqual, module.like(type, Base::boolean),
                                 {size, module.constant(type, exponent)});
            const Id largest = to.add(Op::OpISub, type, {bits, module.constant(type, 1)});
            return to.add(Op::OpSelect, type, {is, largest, bits});
        });
}

void lose_sign_of_zero(Module& module) {
    module.change_results(
        arithmetic,
        [&](Substitute& to, Id type, Id raw, Id as) {
            const Id zero = module.constant(type, 0);
            const Id is = to.add(Op::OpFOrdEqual, module.like(type, Base::boolean), {raw, zero});
            to.add(Op::OpSelect, type, {is, zero, raw}, as);
        });
}

// Converts f32 to f16 by truncation instead of rounding.
void cut_halves(Module& module) {
    module.replace(
        Op::OpFConvert,
        [&](const Instruction& given, Substitute& to) {
            const Id wide = module.type_of(given.operand(0));
            if (!module.is_half(given.type())) return to.add(given);
            const Id integers = module.like(wide, Base::uint32);
            const Id bits = to.add(Op::OpBitcast, integers, {given.operand(0)});
            const Id cut = to.add(Op::OpBitwiseAnd, integers,
                                  {bits, module.constant(integers, 0xffffe000)});
            to.add(Op::OpFConvert, given.type(), {to.add(Op::OpBitcast, wide, {cut})},
                   given.result());
        });
}

void high_word_is_signed(Module& module) {
    exchange(module, Op::OpUMulExtended, Op::OpSMulExtended);
}

void shift_keeps_sign(Module& module) {
    exchange(module, Op::OpShiftRightLogical, Op::OpShiftRightArithmetic);
}

void comparison_is_signed(Module& module) {
    exchange(module, Op::OpULessThan, Op::OpSLessThan);
    exchange(module, Op::OpUGreaterThan, Op::OpSGreaterThan);
    exchange(module, Op::OpULessThanEqual, Op::OpSLessThanEqual);
    exchange(module, Op::OpUGreaterThanEqual, Op::OpSGreaterThanEqual);
}

// ---- Control flow ----

void end_loops(Module& module) {
    constexpr std::uint32_t trips = 16;
    std::vector<Id> ends, conditions;
    for (const Instruction& instruction : module.code())
        if (instruction.op == Op::OpLoopMerge) ends.push_back(instruction.operands[0]);
    const auto ends_loop = [&](Id label) {
        return std::find(ends.begin(), ends.end(), label) != ends.end();
    };
    for (const Instruction& instruction : module.code())
        if (instruction.op == Op::OpBranchConditional && ends_loop(instruction.operands[2]))
            conditions.push_back(instruction.operands[0]);
    for (const Op op : {Op::OpULessThan, Op::OpSLessThan}) {
        module.replace(
            op,
            [&](const Instruction& given, Substitute& to) {
                const auto found = std::find(conditions.begin(), conditions.end(), given.result());
                if (found == conditions.end()) return to.add(given);
                const Id type = given.type(), counter = given.operand(0);
                const Id more = to.add(op, type, {counter, given.operand(1)});
                const Id few = to.add(op, type,
                                      {counter, module.constant(module.type_of(counter), trips)});
                to.add(Op::OpLogicalAnd, type, {more, few}, given.result());
            });
    }
}

// ---- Memory ----

// Lets `write` change the coordinates, (x, y), of each texel that is read.
void change_texels(Module& module,
                   const std::function<Id(Substitute&, Id type, Id coordinates)>& write) {
    module.replace(
        Op::OpImageFetch,
        [&](const Instruction& given, Substitute& to) {
            Instruction fetch = given;
            fetch.operands[3] = write(to, module.type_of(given.operand(1)), given.operand(1));
            to.add(fetch);
        });
}

void texel_one_row_off(Module& module) {
    change_texels(
        module,
        [&](Substitute& to, Id type, Id at) {
            return to.add(Op::OpIAdd, type,
                          {at, module.constant(type, std::vector<std::uint32_t>{0, 1})});
        });
}

// Swaps neighbouring rows (or columns, in a folded table) whose number has bit 13 set: 2^13 is the
// start of the upper half of what devices usually support.
void far_texels_swizzled(Module& module) {
    constexpr std::uint32_t bit = 13;
    change_texels(module, [&](Substitute& to, Id type, Id at) {
        const Id shifted = to.add(Op::OpShiftRightLogical, type, {at, module.constant(type, bit)});
        const Id flips = to.add(Op::OpBitwiseAnd, type, {shifted, module.constant(type, 1)});
        return to.add(Op::OpBitwiseXor, type, {at, flips});
    });
}

// Replaces an atomic by a read, an operation and a write, so other invocations can interfere.
void split_atomic(Module& module, Op atomic, Op computes) {
    module.replace(
        atomic,
        [&](const Instruction& given, Substitute& to) {
            const Id type = given.type(), pointer = given.operand(0), value = given.operand(3);
            const Id old = to.add(Op::OpLoad, type, {pointer}, given.result());
            to.add({Op::OpStore, {pointer, to.add(computes, type, {old, value})}});
        });
}

void count_is_not_atomic(Module& module) {
    split_atomic(module, Op::OpAtomicIAdd, Op::OpIAdd);
}

void merge_is_not_atomic(Module& module) {
    split_atomic(module, Op::OpAtomicAnd, Op::OpBitwiseAnd);
    split_atomic(module, Op::OpAtomicOr, Op::OpBitwiseOr);
}

void store_three_words(Module& module) {
    module.replace(
        Op::OpStore,
        [&](const Instruction& given, Substitute& to) {
            const Id pointer = given.operands[0], value = given.operands[1];
            const Id type = module.type_of(value);
            if (module.definition(type)->op != Op::OpTypeVector || module.components(type) != 4)
                return to.add(given);
            const Id old = to.add(Op::OpLoad, type, {pointer});
            const Id mixed = to.add(Op::OpVectorShuffle, type, {value, old, 0, 1, 2, 7});
            to.add({Op::OpStore, {pointer, mixed}});
        });
}

constexpr Fault all[] = {
    {"fsub_is_fadd", "executes OpFSub as OpFAdd", nullptr, fsub_is_fadd},
    {"contracts", "fuses a product with a sum in spite of NoContraction", nullptr, contract},
    {"low_precision", "computes products with 10 bits of fraction", nullptr, low_precision},
    {"loses_nan", "assumes that no result is NaN", nullptr, lose_nan},
    {"saturates", "makes the largest number of an infinity", nullptr, saturate},
    {"loses_sign_of_zero", "makes +0 of -0", nullptr, lose_sign_of_zero},
    {"f16_rounds_to_zero", "rounds f32 to f16 toward zero in spite of RoundingModeRTE", nullptr,
     cut_halves},
    {"high_word_is_signed", "takes the factors of OpUMulExtended for signed numbers", nullptr,
     high_word_is_signed},
    {"shift_keeps_sign", "executes OpShiftRightLogical as OpShiftRightArithmetic", nullptr,
     shift_keeps_sign},
    {"comparison_is_signed", "compares unsigned numbers as signed ones", nullptr,
     comparison_is_signed},
    {"loops_end", "leaves a loop after 16 trips", nullptr, end_loops},
    {"texel_one_row_off", "reads the texel below the one that OpImageFetch names", nullptr,
     texel_one_row_off},
    {"far_texels_swizzled", "exchanges neighbouring texels whose row or column is 2^13 or more",
     nullptr, far_texels_swizzled},
    {"count_is_not_atomic", "executes OpAtomicIAdd as a load and a store", nullptr,
     count_is_not_atomic},
    {"merge_is_not_atomic", "executes OpAtomicAnd and OpAtomicOr as loads and stores", nullptr,
     merge_is_not_atomic},
    {"stores_three_words", "does not write the fourth word of 16 bytes", nullptr,
     store_three_words},
};

}  // namespace

void flush_subnormals(Module& module) {
    change_bits(
        module, arithmetic,
        [&](Substitute& to, Id type, Id bits) {
            const Id masked = to.add(Op::OpBitwiseAnd, type,
                                     {bits, module.constant(type, exponent)});
            const Id flushed = to.add(Op::OpBitwiseAnd, type, {bits, module.constant(type, sign)});
            const Id is = to.add(Op::OpIEqual, module.like(type, Base::boolean),
                                 {masked, module.constant(type, 0)});
            return to.add(Op::OpSelect, type, {is, flushed, bits});
        });
}

void unify_nan(Module& module) {
    module.change_results(
        arithmetic,
        [&](Substitute& to, Id type, Id raw, Id as) {
            const Id is = to.add(Op::OpIsNan, module.like(type, Base::boolean), {raw});
            to.add(Op::OpSelect, type, {is, module.constant(type, 0x7fc00000), raw}, as);
        });
}

std::span<const Fault> shader_faults() {
    return all;
}

}  // namespace vkrope::faults
