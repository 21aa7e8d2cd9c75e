// SPDX-License-Identifier: MIT
#include "module.hpp"

#include <algorithm>

namespace vkrope::faults {
namespace {

constexpr std::size_t bound_word = 3;

// Returns the index of the result among the operands, or -1 if there is no result.
int result_place(spv::Op op) {
    bool result = false, type = false;
    spv::HasResultAndType(op, &result, &type);
    return result ? (type ? 1 : 0) : -1;
}

}  // namespace

Id Substitute::add(spv::Op op, Id type, std::initializer_list<std::uint32_t> operands, Id result) {
    Instruction made = {op, {type, result != 0 ? result : module_.new_id()}};
    made.operands.insert(made.operands.end(), operands);
    code_.push_back(made);
    return made.result();
}

Module::Module(test::Words words)
    : header_(words.begin(), words.begin() + header_words), bound_(words[bound_word]),
      code_(test::instructions(words)) {}

std::vector<std::uint32_t> Module::words() const {
    std::vector<std::uint32_t> words = header_;
    words[bound_word] = bound_;
    const auto add = [&words](const Instruction& instruction) {
        words.push_back(first_word(instruction.op, std::uint32_t(instruction.operands.size() + 1)));
        words.insert(words.end(), instruction.operands.begin(), instruction.operands.end());
    };
    bool declared = false;
    for (const Instruction& instruction : code_) {
        if (instruction.op == spv::Op::OpFunction && !declared) {
            std::for_each(declarations_.begin(), declarations_.end(), add);
            declared = true;
        }
        add(instruction);
    }
    return words;
}

const Instruction* Module::definition(Id id) const {
    for (const std::vector<Instruction>* list : {&code_, &declarations_}) {
        for (const Instruction& instruction : *list) {
            const int place = result_place(instruction.op);
            if (place >= 0 && instruction.operands[std::size_t(place)] == id) return &instruction;
        }
    }
    return nullptr;
}

Id Module::type_of(Id id) const {
    return definition(id)->type();
}

Id Module::declare(spv::Op op, std::vector<std::uint32_t> operands, std::size_t result_at) {
    for (const std::vector<Instruction>* list : {&code_, &declarations_}) {
        for (const Instruction& instruction : *list) {
            if (instruction.op != op || instruction.operands.size() != operands.size()) continue;
            operands[result_at] = instruction.operands[result_at];
            if (instruction.operands == operands) return operands[result_at];
        }
    }
    operands[result_at] = new_id();
    declarations_.push_back({op, operands});
    return operands[result_at];
}

std::uint32_t Module::components(Id type) const {
    const Instruction* made = definition(type);
    return made->op == spv::Op::OpTypeVector ? made->operands[2] : 1;
}

Id Module::like(Id type, Base base) {
    const Id scalar = base == Base::boolean  ? declare(spv::Op::OpTypeBool, {0}, 0)
                      : base == Base::uint32 ? declare(spv::Op::OpTypeInt, {0, 32, 0}, 0)
                                             : declare(spv::Op::OpTypeFloat, {0, 32}, 0);
    const std::uint32_t count = components(type);
    return count == 1 ? scalar : declare(spv::Op::OpTypeVector, {0, scalar, count}, 0);
}

bool Module::is(Id type, Base base) const {
    const Instruction* made = definition(type);
    if (made->op == spv::Op::OpTypeVector) made = definition(made->operands[1]);
    return base == Base::boolean  ? made->op == spv::Op::OpTypeBool
           : base == Base::uint32 ? made->op == spv::Op::OpTypeInt && made->operands[2] == 0
                                  : made->op == spv::Op::OpTypeFloat && made->operands[1] == 32;
}

bool Module::is_half(Id type) const {
    const Instruction* made = definition(type);
    if (made->op == spv::Op::OpTypeVector) made = definition(made->operands[1]);
    return made->op == spv::Op::OpTypeFloat && made->operands[1] == 16;
}

Id Module::constant(Id type, std::uint32_t bits) {
    return constant(type, std::vector<std::uint32_t>(components(type), bits));
}

Id Module::constant(Id type, const std::vector<std::uint32_t>& bits) {
    const Instruction made = *definition(type);
    if (made.op != spv::Op::OpTypeVector)
        return declare(spv::Op::OpConstant, {type, 0, bits[0]}, 1);
    std::vector<std::uint32_t> operands = {type, 0};
    for (const std::uint32_t component : bits)
        operands.push_back(declare(spv::Op::OpConstant, {made.operands[1], 0, component}, 1));
    return declare(spv::Op::OpConstantComposite, operands, 1);
}

void Module::replace(spv::Op op,
                     const std::function<void(const Instruction&, Substitute&)>& write) {
    const std::vector<Instruction> before = code_;  // `write` may read code_
    std::vector<Instruction> after;
    Substitute substitute(*this, after);
    for (const Instruction& instruction : before)
        if (instruction.op == op)
            write(instruction, substitute);
        else
            after.push_back(instruction);
    code_ = std::move(after);
}

void Module::change_results(std::initializer_list<spv::Op> ops, const Change& write) {
    for (const spv::Op op : ops) {
        replace(
            op,
            [&](const Instruction& given, Substitute& to) {
                if (!is(given.type(), Base::float32)) return to.add(given);
                Instruction raw = given;
                raw.operands[1] = new_id();
                to.add(raw);
                write(to, given.type(), raw.result(), given.result());
            });
    }
}

}  // namespace vkrope::faults
