// SPDX-License-Identifier: MIT
// Reads, changes and writes the instructions of a SPIR-V module.
#pragma once

#include <functional>
#include <initializer_list>

#include "support/spirv.hpp"

namespace vkrope::faults {

using Id = std::uint32_t;
using test::Instruction;

class Module;

// Collects the instructions that replace one instruction.
class Substitute {
   public:
    Substitute(Module& module, std::vector<Instruction>& code) : module_(module), code_(code) {}

    // Returns the id of the result, which is `result`, or a new id if that is 0.
    Id add(spv::Op op, Id type, std::initializer_list<std::uint32_t> operands, Id result = 0);
    void add(const Instruction& instruction) { code_.push_back(instruction); }

   private:
    Module& module_;
    std::vector<Instruction>& code_;
};

class Module {
   public:
    explicit Module(test::Words words);

    std::vector<std::uint32_t> words() const;

    Id new_id() { return bound_++; }

    // Returns the instruction with this result id; null for a label or an undefined id.
    const Instruction* definition(Id id) const;
    Id type_of(Id id) const;

    enum class Base { boolean, uint32, float32 };
    // Returns the id of a type: a scalar, or a vector with as many components as `type`.
    Id like(Id type, Base base);
    bool is(Id type, Base base) const;
    bool is_half(Id type) const;
    std::uint32_t components(Id type) const;

    // Returns a constant with the same bits in all components, or with bits for each component.
    Id constant(Id type, std::uint32_t bits);
    Id constant(Id type, const std::vector<std::uint32_t>& bits);

    std::vector<Instruction>& code() { return code_; }

    // Replaces each instruction by those that `write` adds, one of which may be the original.
    void replace(spv::Op op, const std::function<void(const Instruction&, Substitute&)>& write);

    // Lets `write` replace each f32 result of these operations. `write` must add an instruction
    // with the result id `as`; `raw` is the id of the original result.
    using Change = std::function<void(Substitute&, Id type, Id raw, Id as)>;
    void change_results(std::initializer_list<spv::Op> ops, const Change& write);

   private:
    Id declare(spv::Op op, std::vector<std::uint32_t> operands, std::size_t result_at);

    std::vector<std::uint32_t> header_;
    Id bound_ = 0;
    std::vector<Instruction> code_;          // all instructions but new declarations
    std::vector<Instruction> declarations_;  // new declarations, placed before the first function
};

}  // namespace vkrope::faults
