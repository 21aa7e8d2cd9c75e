// SPDX-License-Identifier: MIT
// A SPIR-V module whose instructions can be exchanged for others.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <vector>

#define SPV_ENABLE_UTILITY_CODE
#include <spirv/unified1/spirv.hpp>

namespace vkrope::faults {

using Id = std::uint32_t;

/// Words after the first one, which holds opcode and length.
struct Instruction {
    spv::Op op;
    std::vector<std::uint32_t> operands;

    /// Of an instruction that has both, and what follows them.
    Id type() const { return operands[0]; }
    Id result() const { return operands[1]; }
    std::uint32_t operand(std::size_t index) const { return operands[index + 2]; }
};

class Module;

/// Takes the instructions that stand in for one.
class Substitute {
   public:
    Substitute(Module& module, std::vector<Instruction>& code) : module_(module), code_(code) {}

    /// Returns the result; `result` 0: a new id.
    Id add(spv::Op op, Id type, std::initializer_list<std::uint32_t> operands, Id result = 0);
    void add(const Instruction& instruction) { code_.push_back(instruction); }

   private:
    Module& module_;
    std::vector<Instruction>& code_;
};

class Module {
   public:
    Module(const std::uint32_t* words, std::size_t count);

    std::vector<std::uint32_t> words() const;

    Id new_id() { return bound_++; }

    /// What makes this id; null: nothing does, or a label.
    const Instruction* definition(Id id) const;
    Id type_of(Id id) const;

    enum class Base { boolean, uint32, float32 };
    /// A scalar, or a vector with as many components as `type`.
    Id like(Id type, Base base);
    bool is(Id type, Base base) const;
    bool is_half(Id type) const;
    std::uint32_t components(Id type) const;

    /// A constant whose components all have these bits, or these bits one by one.
    Id constant(Id type, std::uint32_t bits);
    Id constant(Id type, const std::vector<std::uint32_t>& bits);

    std::vector<Instruction>& code() { return code_; }

    /// Exchanges each instruction for what `write` adds, which may be the instruction itself.
    void replace(spv::Op op, const std::function<void(const Instruction&, Substitute&)>& write);

    /// Lets `write` make something else of each f32 result of these operations. It has to add an
    /// instruction with the result `as`; `raw` is what the operation yields.
    using Change = std::function<void(Substitute&, Id type, Id raw, Id as)>;
    void change_results(std::initializer_list<spv::Op> ops, const Change& write);

   private:
    Id declare(spv::Op op, std::vector<std::uint32_t> operands, std::size_t result_at);

    std::vector<std::uint32_t> header_;
    Id bound_ = 0;
    std::vector<Instruction> code_;          // all but new declarations
    std::vector<Instruction> declarations_;  // new ones, which come before the first function
};

}  // namespace vkrope::faults
