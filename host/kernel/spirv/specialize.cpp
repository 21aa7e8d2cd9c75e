// SPDX-License-Identifier: MIT
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

#include "base/status.hpp"
#include "kernel/spirv/evaluate.hpp"
#include "kernel/spirv/instruction.hpp"
#include "kernel/spirv/spirv.hpp"

namespace vkrope {

namespace {

using namespace spv;

struct FloatControl {
    std::uint32_t mode;
    spv::Capability capability;
    spv::ExecutionMode execution_mode;
    std::uint32_t bits;
};
constexpr FloatControl controls[] = {
    {round_to_even_16, spv::CapabilityRoundingModeRTE, spv::ExecutionModeRoundingModeRTE, 16},
    {round_to_even_32, spv::CapabilityRoundingModeRTE, spv::ExecutionModeRoundingModeRTE, 32},
    {denorm_preserve_16, spv::CapabilityDenormPreserve, spv::ExecutionModeDenormPreserve, 16},
    {denorm_preserve_32, spv::CapabilityDenormPreserve, spv::ExecutionModeDenormPreserve, 32},
    {keep_zero_inf_nan_16, spv::CapabilitySignedZeroInfNanPreserve,
     spv::ExecutionModeSignedZeroInfNanPreserve, 16},
    {keep_zero_inf_nan_32, spv::CapabilitySignedZeroInfNanPreserve,
     spv::ExecutionModeSignedZeroInfNanPreserve, 32}};

constexpr char extension_name[24] = "SPV_KHR_float_controls";
// Words that all modes add.
constexpr std::size_t most_mode_words = 1 + sizeof extension_name / 4 +
                                        std::size(controls) * (2 + 4);

const std::uint32_t* after(const std::uint32_t* instruction) noexcept {
    return instruction + length_of(instruction);
}

// Returns the next label of a function, or its end.
const std::uint32_t* next_block(const std::uint32_t* i) noexcept {
    do i = after(i);
    while (op_of(i) != OpLabel && op_of(i) != OpFunctionEnd);
    return i;
}

// One specialisation: first the instructions outside functions, then reached functions in the order
// of the calls. A function is visited in program order, in which a value is computed before its
// uses, except across the back edge of a loop. At last, what is left is written.
class Specialization {
   public:
    Specialization(const SpecializedModule& of, const std::uint32_t* values,
                   std::uint32_t value_count, BindingList& bindings) noexcept
        : words_(of.module.words.get()), functions_(words_ + of.functions_at),
          end_(words_ + of.module.count), of_id_(of.of_id.get()), facts_(of.facts.get()),
          reached_(of.reached.get()), values_(values), value_count_(value_count),
          bindings_(bindings) {
        std::memset(facts_, 0, words_[3]);
    }

    // Finds what stays. Returns the most words that write() may write without modes.
    std::size_t find() noexcept {
        for (const std::uint32_t* i = words_ + header_words; i != functions_; i = after(i))
            learn(i);
        auto most = std::size_t(functions_ - words_);
        for (std::uint32_t f = 0; f < reached_count_; ++f) {
            reach(words_ + of_id_[reached_[f]].at);
            most += of_id_[reached_[f]].end - of_id_[reached_[f]].at;
        }
        return most;
    }

    // Writes what stays. Returns the number of words.
    std::size_t write(std::uint32_t modes, LoopControls loops, std::uint32_t* out) noexcept {
        copied_ = words_;
        out_ = out;
        const std::uint32_t* i = words_ + header_words;
        for (bool in_capabilities = true; i != functions_; i = after(i)) {
            if (in_capabilities && op_of(i) != OpCapability) {
                in_capabilities = false;
                copy_to(i);
                put_capabilities(modes);
            }
            write_global(i, modes);
        }
        while (i != end_) {
            const std::uint32_t* const end = words_ + of_id_[i[2]].end;
            if (has(i[2], reached))
                write_function(i, end, loops);
            else
                replace(i, end);
            i = end;
        }
        copy_to(end_);
        return std::size_t(out_ - out);
    }

    bool bindings_are_full() const noexcept { return bindings_are_full_; }

   private:
    // Facts about an id in one specialisation, as bits.
    enum Fact : std::uint8_t {
        known = 1,    // a value is known; a value of a specialisation constant is given
        reached = 2,  // a block or function that is reached
        // The id is defined outside functions or in reached code and, if it is a variable of the
        // module, reached code uses it.
        stays = 4,
        is_merge = 8,      // the merge block of a construct that stays; it stays too
        continues = 16,    // the continue target of a loop that stays; it stays too
        visited = 32,      // a block that was visited
        is_bound = 64,     // a variable with a binding
        is_float16 = 128,  // the 16-bit float type, or a vector of it
    };

    bool has(std::uint32_t id, std::uint32_t facts) const noexcept {
        return (facts_[id] & facts) != 0;
    }
    void add(std::uint32_t id, Fact fact) noexcept { facts_[id] = std::uint8_t(facts_[id] | fact); }

    void set(std::uint32_t id, std::uint32_t value) noexcept {
        add(id, known);
        of_id_[id].value = value;
    }

    // Keeps the given value of a specialisation constant.
    void set_default(std::uint32_t id, std::uint32_t value) noexcept {
        if (!has(id, known)) set(id, value);
    }

    // Evaluates an operation with operands from `first` on, which defines the id i[2].
    void evaluate_into(spv::Op op, const std::uint32_t* i, std::uint32_t first) noexcept {
        const std::uint32_t count = operands_of(op);
        if (count == 0 || first + count != length_of(i)) return;
        Scalar operands[3] = {{true, 0}, {true, 0}, {true, 0}};
        for (std::uint32_t n = 0; n < count; ++n) operands[n] = scalar(i[first + n]);
        const Scalar result = evaluate(op, operands);
        if (result.known) set(i[2], result.value);
    }

    Scalar scalar(std::uint32_t id) const noexcept {
        return has(id, known) ? Scalar{true, of_id_[id].value} : Scalar{};
    }

    // ---- What stays ----

    // Records facts from an instruction outside functions. This is possible in one pass because
    // SPIR-V declares decorations before constants, and constants before their uses.
    void learn(const std::uint32_t* i) noexcept {
        const spv::Op op = op_of(i);
        if (op >= OpTypeVoid && op < OpVariable) add(i[op <= OpTypeForwardPointer ? 1 : 2], stays);
        switch (op) {
            case OpEntryPoint: mark_function(i[2]); return;
            case OpDecorate:
                if (i[2] == std::uint32_t(DecorationSpecId) && i[3] < value_count_)
                    set(i[1], values_[i[3]]);
                if (i[2] == std::uint32_t(DecorationBinding)) {
                    add(i[1], is_bound);
                    of_id_[i[1]].binding = i[3];
                }
                return;
            case OpTypeBool: bool_type_ = i[1]; return;
            case OpTypeFloat:
                if (i[2] == 16) add(i[1], is_float16);
                return;
            case OpTypeVector:
                if (has(i[2], is_float16)) add(i[1], is_float16);
                return;
            case OpConstant:
                if (length_of(i) == 4) set(i[2], i[3]);
                return;
            case OpConstantTrue: return set(i[2], 1);
            case OpConstantFalse: return set(i[2], 0);
            case OpSpecConstant: return set_default(i[2], i[3]);
            case OpSpecConstantTrue: return set_default(i[2], 1);
            case OpSpecConstantFalse: return set_default(i[2], 0);
            case OpSpecConstantOp: return evaluate_into(spv::Op(i[3]), i, 4);
            default: return;
        }
    }

    void mark(std::uint32_t block) noexcept { add(block, reached); }

    void mark_function(std::uint32_t id) noexcept {
        if (has(id, reached)) return;
        add(id, reached);
        reached_[reached_count_++] = id;
    }

    // Records facts from the reached blocks of a function, and marks the blocks and functions that
    // they reach.
    void reach(const std::uint32_t* i) noexcept {
        std::uint32_t block = 0, merge = 0;  // merge: that of the selection of a block, or 0
        for (;; i = after(i)) {
            const spv::Op op = op_of(i);
            switch (op) {
                case OpFunctionEnd: return;
                case OpLabel:
                    if (block == 0) mark(i[1]);
                    block = i[1];
                    add(block, visited);
                    while (!has(block, reached)) {
                        i = next_block(i);
                        if (op_of(i) == OpFunctionEnd) return;
                        block = i[1];
                        add(block, visited);
                    }
                    add(block, stays);
                    of_id_[block].only_target = 0;
                    continue;
                case OpSelectionMerge: merge = i[1]; continue;
                case OpLoopMerge:
                    add(i[1], is_merge);
                    if (has(i[2], reached)) continue;
                    add(i[2], continues);
                    of_id_[i[2]].loop_header = block;
                    continue;
                case OpBranch: mark(i[1]); continue;
                case OpBranchConditional: {
                    // A loop keeps its condition.
                    const std::uint32_t target = merge != 0 ? target_of(i) : 0;
                    of_id_[block].only_target = target;
                    if (merge != 0 && target == 0) add(merge, is_merge);
                    if (target != i[3]) mark(i[2]);
                    if (target != i[2]) mark(i[3]);
                    merge = 0;
                    continue;
                }
                case OpSwitch:
                    mark(i[2]);
                    for (std::uint32_t w = 4; w < length_of(i); w += 2) mark(i[w]);
                    if (merge != 0) add(merge, is_merge);
                    merge = 0;
                    continue;
                case OpReturn:
                case OpReturnValue:
                case OpKill:
                case OpUnreachable:
                case OpLine:
                case OpNoLine:
                case OpImageWrite:
                case OpControlBarrier:
                case OpMemoryBarrier:
                case OpAtomicStore: continue;
                // The instructions that keep the module variables that they name. With logical
                // addressing no others take a pointer that is not computed. vkrope's shaders
                // neither select between pointers nor apply atomics to a whole variable.
                case OpCopyMemory: add(i[2], stays); [[fallthrough]];
                case OpStore: add(i[1], stays); continue;
                case OpLoad:
                case OpAccessChain:
                case OpInBoundsAccessChain:
                case OpArrayLength:
                case OpImageTexelPointer: add(i[3], stays); break;
                case OpFunctionCall:
                    mark_function(i[3]);
                    for (std::uint32_t w = 4; w < length_of(i); ++w) add(i[w], stays);
                    break;
                case OpPhi: set_phi(i, block); break;
                default: evaluate_into(op, i, 3);
            }
            // The instruction has a type and a result.
            add(i[2], stays);
            facts_of_types_ |= facts_[i[1]];
        }
    }

    bool leads(std::uint32_t from, std::uint32_t to) const noexcept {
        return has(from, reached) &&
               (of_id_[from].only_target == 0 || of_id_[from].only_target == to);
    }

    // Returns the target of the OpBranchConditional of a selection, or 0 if it may take either.
    std::uint32_t target_of(const std::uint32_t* branch) const noexcept {
        return !has(branch[1], known) ? 0 : of_id_[branch[1]].value != 0 ? branch[2] : branch[3];
    }

    // Sets the value of a phi of a block, if it is known.
    void set_phi(const std::uint32_t* i, std::uint32_t block) noexcept {
        Scalar value;
        for (std::uint32_t w = 3; w + 1 < length_of(i); w += 2) {
            const std::uint32_t from = i[w + 1];
            if (!has(from, visited) || from == block) return;  // from a back edge
            if (!leads(from, block)) continue;
            const Scalar brought = scalar(i[w]);
            if (!brought.known || (value.known && value.value != brought.value)) return;
            value = brought;
        }
        if (value.known) set(i[2], value.value);
    }

    // ---- Writing ----

    // Copies the words from copied_ to `to`.
    void copy_to(const std::uint32_t* to) noexcept {
        if (to == copied_) return;
        std::memcpy(out_, copied_, std::size_t(to - copied_) * sizeof *to);
        out_ += to - copied_;
        copied_ = to;
    }

    // Copies the words up to `from`. What is put next replaces those from there to `to`.
    void replace(const std::uint32_t* from, const std::uint32_t* to) noexcept {
        copy_to(from);
        copied_ = to;
    }

    void replace(const std::uint32_t* i) noexcept { replace(i, after(i)); }

    template <class... Words>
    void put(Words... words) noexcept {
        ((*out_++ = words), ...);
    }

    void write_global(const std::uint32_t* i, std::uint32_t modes) noexcept {
        switch (op_of(i)) {
            case OpDecorate:
                // A plain constant has no SpecId.
                if (!has(i[1], stays) || i[2] == std::uint32_t(DecorationSpecId)) replace(i);
                return;
            case OpName:
                if (!has(i[1], stays)) replace(i);
                return;
            case OpEntryPoint: write_entry_point(i); return put_execution_modes(modes, i[2]);
            case OpVariable:
                if (!has(i[2], stays)) return replace(i);
                if (has(i[2], is_bound)) add_binding(i);
                return;
            case OpCapability:
                if (i[1] == std::uint32_t(spv::CapabilityFloat16) && !uses(is_float16)) replace(i);
                return;
            case OpTypeFloat:
            case OpTypeVector:
                if (has(i[1], is_float16) && !uses(is_float16)) replace(i);
                return;
            case OpSpecConstant:
            case OpSpecConstantTrue:
            case OpSpecConstantFalse: return write_constant(i);
            case OpSpecConstantOp:
                if (has(i[2], known)) write_constant(i);
                return;
            case OpSpecConstantComposite:
                replace(i, i + 1);
                return put(first_word(OpConstantComposite, length_of(i)));
            default: return;
        }
    }

    void write_constant(const std::uint32_t* i) noexcept {
        replace(i);
        const std::uint32_t value = of_id_[i[2]].value;
        if (i[1] == bool_type_)
            put(first_word(value != 0 ? OpConstantTrue : OpConstantFalse, 3), i[1], i[2]);
        else
            put(first_word(OpConstant, 4), i[1], i[2], value);
    }

    void add_binding(const std::uint32_t* variable) noexcept {
        const auto storage = spv::StorageClass(variable[3]);
        VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        if (storage == spv::StorageClassUniform) type = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
        if (storage == spv::StorageClassUniformConstant) type = VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
        if (!bindings_.add({of_id_[variable[2]].binding, type})) bindings_are_full_ = true;
    }

    // Returns whether the remaining code has a result of a type with this fact.
    bool uses(Fact fact) const noexcept { return (facts_of_types_ & fact) != 0; }

    // Writes an entry point with the inputs that remain, after its name, which ends with a zero
    // byte.
    void write_entry_point(const std::uint32_t* i) noexcept {
        replace(i);
        std::uint32_t* const start = out_;
        bool in_name = true;
        for (std::uint32_t w = 0; w < length_of(i); ++w) {
            if (in_name || has(i[w], stays)) put(i[w]);
            if (w >= 3 && i[w] >> 24 == 0) in_name = false;
        }
        *start = first_word(OpEntryPoint, std::uint32_t(out_ - start));
    }

    void put_capabilities(std::uint32_t modes) noexcept {
        if (modes == 0) return;
        for (const FloatControl& control : controls)
            if (modes & control.mode)
                put(first_word(OpCapability, 2), std::uint32_t(control.capability));
        constexpr std::uint32_t name_words = sizeof extension_name / 4;
        put(first_word(OpExtension, 1 + name_words));
        std::memcpy(out_, extension_name, sizeof extension_name);
        out_ += name_words;
    }

    void put_execution_modes(std::uint32_t modes, std::uint32_t entry_point) noexcept {
        for (const FloatControl& control : controls)
            if (modes & control.mode)
                put(first_word(OpExecutionMode, 4), entry_point,
                    std::uint32_t(control.execution_mode), control.bits);
    }

    void write_function(const std::uint32_t* i, const std::uint32_t* end,
                        LoopControls loops) noexcept {
        std::uint32_t block = 0, target = 0;  // target: the only one of the block, or 0
        for (; i != end; i = after(i)) {
            switch (op_of(i)) {
                case OpLabel:
                    block = i[1];
                    while (!has(block, reached)) {
                        const std::uint32_t* const next = next_block(i);
                        replace(i, next);
                        write_unreached(block);
                        i = next;
                        if (op_of(i) == OpFunctionEnd) return;
                        block = i[1];
                    }
                    target = of_id_[block].only_target;
                    break;
                case OpLoopMerge:
                    copy_to(after(i));
                    *(out_ - length_of(i) + 3) = control(i[3], loops);
                    break;
                case OpSelectionMerge:
                    if (target != 0) replace(i);
                    break;
                case OpBranchConditional:
                    if (target == 0) break;
                    replace(i);
                    put(first_word(OpBranch, 2), target);
                    break;
                case OpPhi: write_phi(i, block); break;
                default: break;
            }
        }
    }

    static std::uint32_t control(std::uint32_t written, LoopControls loops) noexcept {
        switch (loops) {
            case LoopControls::of_driver: return LoopControlMaskNone;
            case LoopControls::rolled:
                return written == LoopControlUnrollMask ? LoopControlUnrollMask
                                                        : LoopControlDontUnrollMask;
            default: return written;
        }
    }

    void write_unreached(std::uint32_t block) noexcept {
        if (has(block, continues))
            put(first_word(OpLabel, 2), block, first_word(OpBranch, 2), of_id_[block].loop_header);
        else if (has(block, is_merge))
            put(first_word(OpLabel, 2), block, first_word(OpUnreachable, 1));
    }

    void write_phi(const std::uint32_t* i, std::uint32_t block) noexcept {
        replace(i);
        std::uint32_t* const start = out_;
        put(0u, i[1], i[2]);
        for (std::uint32_t w = 3; w + 1 < length_of(i); w += 2) {
            const std::uint32_t from = i[w + 1];
            const bool back_edge_stays = !has(from, reached) && has(from, continues) &&
                                         of_id_[from].loop_header == block;  // write_unreached()
            if (leads(from, block) || back_edge_stays) put(i[w], from);
        }
        *start = first_word(OpPhi, std::uint32_t(out_ - start));
    }

    const std::uint32_t* const words_;
    const std::uint32_t* const functions_;
    const std::uint32_t* const end_;
    SpecializedModule::Id* const of_id_;
    std::uint8_t* const facts_;
    std::uint32_t* const reached_;
    const std::uint32_t* const values_;
    const std::uint32_t value_count_;
    BindingList& bindings_;
    bool bindings_are_full_ = false;
    std::uint32_t reached_count_ = 0, bool_type_ = 0;
    std::uint32_t facts_of_types_ = 0;       // of the types of results that remain
    const std::uint32_t* copied_ = nullptr;  // the first word that is not yet written
    std::uint32_t* out_ = nullptr;
};

}  // namespace

Result<Specializer> Specializer::of(Result<Spirv> module) noexcept {
    Result<Specializer> result;
    if (result.status = module.status; !result) return result;
    SpecializedModule& of = result->of_;
    const std::uint32_t* const words = module->words.get();
    const std::uint32_t bound = words[3];
    of.of_id.reset(new (std::nothrow) SpecializedModule::Id[bound]);
    of.facts.reset(new (std::nothrow) std::uint8_t[bound]);
    std::uint32_t functions = 0;
    std::size_t at = header_words;
    while (at < module->count && op_of(words + at) != OpFunction) at += length_of(words + at);
    of.functions_at = at;
    while (of.of_id && at < module->count) {
        SpecializedModule::Id& function = of.of_id[words[at + 2]];
        function.at = std::uint32_t(at);
        while (op_of(words + at) != OpFunctionEnd) at += length_of(words + at);
        function.end = std::uint32_t(++at);
        ++functions;
    }
    of.reached.reset(new (std::nothrow) std::uint32_t[functions + 1]);
    if (!of.of_id || !of.facts || !of.reached)
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for the ids of a SPIR-V module of %zu words",
                              module->count);
    of.module = std::move(module.value);
    return result;
}

Result<Spirv> Specializer::specialize(const std::uint32_t* values, std::uint32_t value_count,
                                      std::uint32_t modes, LoopControls loops,
                                      BindingList& bindings) noexcept {
    Result<Spirv> result;
    Specialization specialization(of_, values, value_count, bindings);
    const std::size_t most = specialization.find() + most_mode_words;
    result->words.reset(new (std::nothrow) std::uint32_t[most]);
    if (!result->words) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for a SPIR-V module of %zu words", most);
        return result;
    }
    result->count = specialization.write(modes, loops, result->words.get());
    if (specialization.bindings_are_full())
        result.status = error(VKROPE_ERROR_LIMIT_EXCEEDED,
                              "a SPIR-V module binds more than %u descriptors", BindingList::most);
    return result;
}

}  // namespace vkrope
