// SPDX-License-Identifier: MIT
#include <cstring>
#include <new>

#include "base/status.hpp"
#include "kernel/spirv/evaluate.hpp"
#include "kernel/spirv/instruction.hpp"
#include "kernel/spirv/spirv.hpp"

namespace vkrope {

namespace {

using namespace spv;

// Returns whether an instruction in a function has a result and a result type. (HasResultAndType()
// of SPIR-V's header covers all instructions, but is 18 KB of code.)
bool has_typed_result(spv::Op op) noexcept {
    switch (op) {
        case OpLine:
        case OpNoLine:
        case OpFunctionEnd:
        case OpStore:
        case OpCopyMemory:
        case OpImageWrite:
        case OpControlBarrier:
        case OpMemoryBarrier:
        case OpAtomicStore: return false;
        default: return op < OpLoopMerge || op > OpUnreachable;  // these opcodes end a block
    }
}

// Facts about an id. A comment that names a kind of id limits the field to ids of that kind.
struct Known {
    Scalar scalar;                  // for a value
    std::uint32_t at = 0, end = 0;  // a function: where it starts, and its OpFunctionEnd
    std::uint32_t next = 0;         // a function: the next reached function
    std::uint32_t order = 0;        // a block: its number in its function, from 1
    // For the continue target of a loop that stays: the header of the loop. The target stays, too.
    std::uint32_t loop_header = 0;
    std::uint32_t only_target = 0;  // a block with a known condition: its successor
    bool reached = false;           // for a block or function
    // True if the id is defined outside functions or in reached code and, if it is a variable of
    // the module, reached code uses it.
    bool stays = false;
    bool is_merge = false;    // for the merge block of a construct that stays; it stays too
    bool is_float16 = false;  // for the 16-bit float type, or a vector of it
};

struct Instruction {
    const std::uint32_t* words;
    std::uint32_t length;
    spv::Op op;
};

// Visits reached functions in program order, in which a value is computed before its uses, except
// across the back edge of a loop.
class Pruner {
   public:
    Pruner(const std::uint32_t* words, std::size_t count, Known* of_id, std::uint32_t* out) noexcept
        : words_(words), count_(count), of_id_(of_id), out_(out) {}

    std::size_t run() noexcept {
        walk<&Pruner::learn>(header_words);
        // Visits the entry point, and then called functions in the order of the calls.
        for (std::uint32_t function = of_id_[0].next; function != 0;
             function = of_id_[function].next)
            walk<&Pruner::reach>(of_id_[function].at);
        walk<&Pruner::survey>(header_words);
        walk<&Pruner::write>(header_words);
        return written_;
    }

   private:
    // Visits the module except functions that are not reached. If `start` is a function, visits
    // only that function.
    template <void (Pruner::*visit)(const Instruction&)>
    void walk(std::size_t start) noexcept {
        in_function_ = false;
        block_ = blocks_ = 0;
        for (std::size_t at = start; at < count_; at += length_of(words_ + at)) {
            const Instruction i = {words_ + at, length_of(words_ + at), op_of(words_ + at)};
            if (i.op == OpFunction) {
                Known& function = of_id_[i.words[2]];
                function.at = std::uint32_t(at);
                if (!function.reached) {
                    if (function.end == 0) function.end = end_of_function(at);
                    at = function.end;
                    continue;
                }
                in_function_ = true;
                function_ = i.words[2];
                first_block_ = true;
            } else if (i.op == OpLabel) {
                block_ = i.words[1];
                if (first_block_) of_id_[block_].reached = true;
                first_block_ = false;
            }
            (this->*visit)(i);
            if (i.op == OpFunctionEnd) {
                if (start != header_words) return;
                in_function_ = false;
                block_ = 0;
            }
        }
    }

    std::uint32_t end_of_function(std::size_t at) const noexcept {
        while (op_of(words_ + at) != OpFunctionEnd) at += length_of(words_ + at);
        return std::uint32_t(at);
    }

    bool is_reached() const noexcept {
        return !in_function_ || block_ == 0 || first_block_ || of_id_[block_].reached;
    }

    void mark(std::uint32_t block) noexcept { of_id_[block].reached = true; }

    void mark_function(std::uint32_t id) noexcept {
        if (of_id_[id].reached) return;
        of_id_[id].reached = true;
        of_id_[last_reached_].next = id;
        last_reached_ = id;
    }

    bool leads(std::uint32_t from, std::uint32_t to) const noexcept {
        return of_id_[from].reached &&
               (of_id_[from].only_target == 0 || of_id_[from].only_target == to);
    }

    // Returns the target of the OpBranchConditional of a selection, or 0 if it may take either.
    std::uint32_t target_of(const Instruction& branch) const noexcept {
        const Scalar condition = of_id_[branch.words[1]].scalar;
        return condition.known ? branch.words[condition.value ? 2 : 3] : 0;
    }

    // ---- Reachability and known values ----

    // Records facts from the instructions outside functions.
    void learn(const Instruction& i) noexcept {
        if (in_function_) return;  // an instruction of the entry point
        if (i.op >= OpTypeVoid && i.op <= OpVariable)
            of_id_[i.words[i.op <= OpTypeForwardPointer ? 1 : 2]].stays = true;
        switch (i.op) {
            case OpEntryPoint: mark_function(i.words[2]); return;
            case OpConstant: of_id_[i.words[2]].scalar = {i.length == 4, i.words[3]}; return;
            case OpConstantTrue: of_id_[i.words[2]].scalar = {true, 1}; return;
            case OpConstantFalse: of_id_[i.words[2]].scalar = {true, 0}; return;
            case OpVariable: of_id_[i.words[2]].stays = false; return;  // unless it is used
            case OpTypeFloat: of_id_[i.words[1]].is_float16 = i.words[2] == 16; return;
            case OpTypeVector:
                of_id_[i.words[1]].is_float16 = of_id_[i.words[2]].is_float16;
                return;
            default: return;
        }
    }

    // Records facts from a reached function, and marks the blocks and functions that it reaches.
    void reach(const Instruction& i) noexcept {
        if (i.op == OpLabel) of_id_[i.words[1]].order = ++blocks_;
        if (block_ == 0 || !is_reached()) return;
        switch (i.op) {
            case OpFunctionCall: mark_function(i.words[3]); return;
            case OpSelectionMerge: selects_ = true; return;
            case OpBranch: mark(i.words[1]); break;
            case OpBranchConditional: {
                const std::uint32_t target = selects_ ? target_of(i)
                                                      : 0;  // a loop keeps its condition
                of_id_[block_].only_target = target;
                if (target != i.words[3]) mark(i.words[2]);
                if (target != i.words[2]) mark(i.words[3]);
                break;
            }
            case OpSwitch:
                mark(i.words[2]);
                for (std::uint32_t w = 4; w < i.length; w += 2) mark(i.words[w]);
                break;
            case OpPhi: of_id_[i.words[2]].scalar = value_of_phi(i); return;
            default:
                if (operands_of(i.op) != 0 && operands_of(i.op) == i.length - 3) {
                    Scalar operands[3];
                    for (std::uint32_t w = 3; w < i.length; ++w)
                        operands[w - 3] = of_id_[i.words[w]].scalar;
                    of_id_[i.words[2]].scalar = evaluate(i.op, operands);
                }
                return;
        }
        selects_ = false;
    }

    Scalar value_of_phi(const Instruction& i) const noexcept {
        Scalar value;
        for (std::uint32_t w = 3; w + 1 < i.length; w += 2) {
            const std::uint32_t from = i.words[w + 1];
            if (of_id_[from].order == 0 || of_id_[from].order >= of_id_[block_].order)
                return {};  // the value comes from a back edge
            if (!leads(from, block_)) continue;
            const Scalar brought = of_id_[i.words[w]].scalar;
            if (!brought.known || (value.known && value.value != brought.value)) return {};
            value = brought;
        }
        return value;
    }

    // ---- References of the remaining code ----

    void survey(const Instruction& i) noexcept {
        if (!in_function_) return;
        if (!is_reached()) return;
        if (i.op == OpLabel) of_id_[i.words[1]].stays = true;
        if (has_typed_result(i.op)) {
            of_id_[i.words[2]].stays = true;
            if (of_id_[i.words[1]].is_float16) uses_float16_ = true;
        }
        name_variables(i);
        if (i.op == OpSelectionMerge && of_id_[block_].only_target == 0)
            of_id_[i.words[1]].is_merge = true;
        if (i.op == OpLoopMerge) {
            of_id_[i.words[1]].is_merge = true;
            of_id_[i.words[2]].loop_header = block_;
        }
    }

    // Keeps the module variables that a reached instruction uses. With logical addressing only the
    // instructions below take a pointer that is not computed. vkrope's shaders neither select
    // between pointers nor apply atomics to a whole variable.
    void name_variables(const Instruction& i) noexcept {
        std::uint32_t first = 0, end = 0;
        switch (i.op) {
            case OpStore: first = 1, end = 2; break;
            case OpCopyMemory: first = 1, end = 3; break;
            case OpLoad:
            case OpAccessChain:
            case OpInBoundsAccessChain:
            case OpArrayLength:
            case OpImageTexelPointer: first = 3, end = 4; break;
            case OpFunctionCall: first = 4, end = i.length; break;
            default: break;
        }
        for (std::uint32_t w = first; w < end; ++w) of_id_[i.words[w]].stays = true;
    }

    // ---- Writing the remaining code ----

    void put(std::initializer_list<std::uint32_t> words) noexcept {
        for (const std::uint32_t word : words) out_[written_++] = word;
    }

    void copy(const Instruction& i) noexcept {
        for (std::uint32_t w = 0; w < i.length; ++w) out_[written_++] = i.words[w];
    }

    void write(const Instruction& i) noexcept {
        if (!is_reached()) {
            write_unreached(i);
            return;
        }
        const std::uint32_t target = block_ == 0 ? 0 : of_id_[block_].only_target;
        switch (i.op) {
            case OpName:
            case OpDecorate:
                if (of_id_[i.words[1]].stays) copy(i);
                return;
            case OpSelectionMerge:
                if (target == 0) copy(i);
                return;
            case OpBranchConditional:
                if (target == 0)
                    copy(i);
                else
                    put({first_word(OpBranch, 2), target});
                return;
            case OpPhi: return write_phi(i);
            case OpEntryPoint: return write_entry_point(i);
            case OpVariable:
                if (of_id_[i.words[2]].stays) copy(i);
                return;
            case OpCapability:
                if (i.words[1] != std::uint32_t(spv::CapabilityFloat16) || uses_float16_) copy(i);
                return;
            case OpTypeFloat:
            case OpTypeVector:
                if (!of_id_[i.words[1]].is_float16 || uses_float16_) copy(i);
                return;
            default: copy(i);
        }
    }

    void write_unreached(const Instruction& i) noexcept {
        if (i.op == OpFunctionEnd) return copy(i);
        if (i.op != OpLabel) return;
        const Known& block = of_id_[i.words[1]];
        if (block.loop_header != 0)
            put({first_word(OpLabel, 2), i.words[1], first_word(OpBranch, 2), block.loop_header});
        else if (block.is_merge)
            put({first_word(OpLabel, 2), i.words[1], first_word(OpUnreachable, 1)});
    }

    // Writes an entry point with the inputs that remain, after its name, which ends with a zero
    // byte.
    void write_entry_point(const Instruction& i) noexcept {
        const std::size_t start = written_;
        bool in_name = true;
        for (std::uint32_t w = 0; w < i.length; ++w) {
            if (in_name || of_id_[i.words[w]].stays) put({i.words[w]});
            if (w >= 3 && i.words[w] >> 24 == 0) in_name = false;
        }
        out_[start] = first_word(OpEntryPoint, std::uint32_t(written_ - start));
    }

    void write_phi(const Instruction& i) noexcept {
        const std::size_t start = written_;
        put({0, i.words[1], i.words[2]});
        for (std::uint32_t w = 3; w + 1 < i.length; w += 2) {
            const std::uint32_t from = i.words[w + 1];
            const bool stays = !of_id_[from].reached &&
                               of_id_[from].loop_header == block_;  // see write_unreached()
            if (leads(from, block_) || stays) put({i.words[w], from});
        }
        out_[start] = first_word(OpPhi, std::uint32_t(written_ - start));
    }

    const std::uint32_t* words_;
    std::size_t count_;
    Known* of_id_;
    std::uint32_t* out_;
    std::size_t written_ = 0;
    bool in_function_ = false, first_block_ = false, selects_ = false, uses_float16_ = false;
    std::uint32_t function_ = 0, block_ = 0, blocks_ = 0, last_reached_ = 0;
};

}  // namespace

Result<Spirv> prune(const Spirv& module) noexcept {
    Result<Spirv> result;
    const std::uint32_t* words = module.words.get();
    const std::unique_ptr<Known[]> of_id(new (std::nothrow) Known[words[3]]);
    // Pruning never makes a module longer.
    result->words.reset(new (std::nothrow) std::uint32_t[module.count]);
    if (!of_id || !result->words) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for a SPIR-V module of %zu words", module.count);
        return result;
    }
    std::memcpy(result->words.get(), words, header_words * sizeof *words);
    Pruner pruner(words, module.count, of_id.get(), result->words.get() + header_words);
    result->count = header_words + pruner.run();
    return result;
}

}  // namespace vkrope
