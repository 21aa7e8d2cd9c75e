// SPDX-License-Identifier: MIT
#include "kernel/spirv/spirv.hpp"

#include <cstring>
#include <initializer_list>
#include <iterator>
#include <new>

#include "base/status.hpp"
#include "kernel/spirv/evaluate.hpp"
#include "kernel/spirv/instruction.hpp"

namespace vkrope {

namespace {

using namespace spv;

// Specialises a module in one pass over its instructions. This is possible because SPIR-V declares
// decorations before constants, and constants before their uses.
class Specializer {
   public:
    Specializer(Scalar* of_id, std::uint32_t* spec_id, const std::uint32_t* values,
                std::uint32_t value_count, std::uint32_t* out) noexcept
        : of_id_(of_id), spec_id_(spec_id), values_(values), value_count_(value_count), out_(out) {}

    void instruction(const std::uint32_t* words, std::uint32_t length) noexcept {
        const spv::Op op = op_of(words);
        switch (op) {
            case OpTypeBool: bool_type_ = words[1]; break;
            case OpDecorate:
                if (words[2] != std::uint32_t(spv::DecorationSpecId)) break;
                spec_id_[words[1]] = words[3] + 1;
                return;  // a plain constant has no SpecId
            case OpConstant: of_id_[words[2]] = {true, words[3]}; break;
            case OpConstantTrue: of_id_[words[2]] = {true, 1}; break;
            case OpConstantFalse: of_id_[words[2]] = {true, 0}; break;
            case OpSpecConstant: return constant(words[1], words[2], given(words[2], words[3]));
            case OpSpecConstantTrue: return constant(words[1], words[2], given(words[2], 1));
            case OpSpecConstantFalse: return constant(words[1], words[2], given(words[2], 0));
            case OpSpecConstantComposite: return copy(words, length, OpConstantComposite);
            case OpSpecConstantOp: {
                const Scalar result = operation(words, length);
                if (result.known) return constant(words[1], words[2], result.value);
                break;
            }
            default: break;
        }
        copy(words, length, op);
    }

    std::size_t written() const noexcept { return count_; }

   private:
    std::uint32_t given(std::uint32_t id, std::uint32_t otherwise) const noexcept {
        const std::uint32_t number = spec_id_[id];
        return number != 0 && number <= value_count_ ? values_[number - 1] : otherwise;
    }

    Scalar operation(const std::uint32_t* words, std::uint32_t length) const noexcept {
        Scalar operands[3];
        if (operands_of(spv::Op(words[3])) == 0 || operands_of(spv::Op(words[3])) != length - 4)
            return {};
        for (std::uint32_t i = 4; i < length; ++i) operands[i - 4] = of_id_[words[i]];
        return evaluate(spv::Op(words[3]), operands);
    }

    void constant(std::uint32_t type, std::uint32_t id, std::uint32_t value) noexcept {
        of_id_[id] = {true, value};
        const std::uint32_t scalar[] = {0, type, id, value};
        if (type == bool_type_) return copy(scalar, 3, value ? OpConstantTrue : OpConstantFalse);
        copy(scalar, 4, OpConstant);
    }

    void copy(const std::uint32_t* words, std::uint32_t length, spv::Op op) noexcept {
        std::memcpy(out_ + count_, words, length * sizeof *words);
        out_[count_] = first_word(op, length);
        count_ += length;
    }

    Scalar* of_id_;
    std::uint32_t* spec_id_;  // by id: SpecId + 1; 0: none
    const std::uint32_t* values_;
    std::uint32_t value_count_;
    std::uint32_t* out_;
    std::size_t count_ = 0;
    std::uint32_t bool_type_ = 0;
};

}  // namespace

Result<Spirv> unpack(const std::uint8_t* bytes, std::size_t size) noexcept {
    Result<Spirv> result;
    const std::uint8_t* const end = bytes + size;
    std::uint32_t digits = 0;  // unread 4-bit digits of a byte, lowest first; a 1 marks their end
    const auto number = [&] {
        std::uint64_t value = 0;
        for (std::uint32_t shift = 0;; shift += 3) {
            if (digits <= 1) {
                if (bytes == end) return value;
                digits = 256u | *bytes++;
            }
            const std::uint32_t digit = digits;
            digits >>= 4;
            value |= std::uint64_t{digit & 7} << shift;
            if ((digit & 8) == 0) return value;
        }
    };
    const auto count = std::size_t(number());
    result->words.reset(new (std::nothrow) std::uint32_t[count + 1]);
    if (!result->words) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for a SPIR-V module of %zu words", count);
        return result;
    }
    const auto append = [&](std::uint32_t word) { result->words[result->count++] = word; };
    while (result->count < std::min(count, header_words)) append(std::uint32_t(number()));

    struct Kind {
        std::uint32_t first;   // first word of each instruction
        std::uint32_t result;  // index of the operand that is the result id; 0: none
        std::uint32_t near;    // bit i: operand i is coded as its distance from the latest result
        std::size_t latest;    // index of the latest instruction of this kind; 0: none yet
    };
    const auto kind_count = std::uint32_t(number());
    const std::unique_ptr<Kind[]> kinds(new (std::nothrow) Kind[kind_count + 1]);
    if (!kinds) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for %u kinds of instructions", kind_count);
        return result;
    }
    for (std::uint32_t i = 0; i < kind_count; ++i) {
        kinds[i].first = std::uint32_t(number());
        kinds[i].result = std::uint32_t(number());
        kinds[i].near = std::uint32_t(number());
        kinds[i].latest = 0;
    }
    std::uint32_t latest_result = 0;
    while (result->count < count) {
        Kind& kind = kinds[number()];
        const std::size_t at = result->count;
        append(kind.first);
        for (std::uint32_t i = 1; i < length_of(&kind.first) && result->count < count; ++i) {
            const std::uint32_t same = kind.latest ? result->words[kind.latest + i] : 0;
            const bool near = i < 31 && (kind.near >> i & 1) != 0;
            const std::uint64_t coded = number();
            append((near ? latest_result : same) +
                   std::uint32_t(coded & 1 ? ~(coded >> 1) : coded >> 1));
            if (i == kind.result) latest_result = result->words[at + i];
        }
        kind.latest = at;
    }
    return result;
}

Result<Spirv> specialize(const std::uint32_t* words, std::size_t count, const std::uint32_t* values,
                         std::uint32_t value_count) noexcept {
    Result<Spirv> result;
    const std::uint32_t id_bound = words[3];
    const std::unique_ptr<Scalar[]> of_id(new (std::nothrow) Scalar[id_bound]);
    const std::unique_ptr<std::uint32_t[]> spec_id(new (std::nothrow) std::uint32_t[id_bound]());
    result->words.reset(new (std::nothrow) std::uint32_t[count]);  // no instruction gets longer
    if (!of_id || !spec_id || !result->words) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for a SPIR-V module of %zu words", count);
        return result;
    }
    std::memcpy(result->words.get(), words, header_words * sizeof *words);
    Specializer specializer(of_id.get(), spec_id.get(), values, value_count,
                            result->words.get() + header_words);
    std::size_t at = header_words;
    for (; at < count && op_of(words + at) != OpFunction; at += length_of(words + at))
        specializer.instruction(words + at, length_of(words + at));
    result->count = header_words + specializer.written();
    // Functions contain no constants.
    std::memcpy(result->words.get() + result->count, words + at, (count - at) * sizeof *words);
    result->count += count - at;
    return result;
}

void set_loop_controls(Spirv& module, bool rolled) noexcept {
    for (std::size_t at = header_words; at < module.count;
         at += length_of(module.words.get() + at)) {
        std::uint32_t* words = module.words.get() + at;
        if (op_of(words) != OpLoopMerge) continue;
        const std::uint32_t otherwise = rolled ? std::uint32_t(LoopControlDontUnrollMask) : 0;
        words[3] = rolled && words[3] == LoopControlUnrollMask ? words[3] : otherwise;
    }
}

namespace {

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

}  // namespace

Result<Spirv> with_modes(const Spirv& module, std::uint32_t modes) noexcept {
    Result<Spirv> result;
    constexpr std::size_t extension_words = 1 + sizeof extension_name / 4, words_a_control = 2 + 4;
    const std::size_t most = module.count + extension_words + std::size(controls) * words_a_control;
    result->words.reset(new (std::nothrow) std::uint32_t[most]);
    if (!result->words) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for a SPIR-V module of %zu words", most);
        return result;
    }
    std::uint32_t* out = result->words.get();
    const auto copy = [&](const std::uint32_t* words, std::size_t count) {
        std::memcpy(out, words, count * sizeof *words);
        out += count;
    };
    const auto put = [&](std::initializer_list<std::uint32_t> words) {
        copy(words.begin(), words.size());
    };
    copy(module.words.get(), header_words);
    bool capabilities = modes != 0;  // true while capabilities remain to be written
    std::size_t at = header_words;
    bool entered = false;  // past the entry point
    for (; at < module.count && !entered; at += length_of(module.words.get() + at)) {
        const std::uint32_t* words = module.words.get() + at;
        const spv::Op op = op_of(words);
        if (capabilities && op != OpCapability) {
            capabilities = false;
            for (const FloatControl& control : controls)
                if (modes & control.mode)
                    put({first_word(OpCapability, 2), std::uint32_t(control.capability)});
            put({first_word(OpExtension, std::uint32_t(extension_words))});
            std::memcpy(out, extension_name, sizeof extension_name);
            out += sizeof extension_name / 4;
        }
        copy(words, length_of(words));
        entered = op == OpEntryPoint;
        if (!entered) continue;
        for (const FloatControl& control : controls) {
            if (modes & control.mode)
                put({first_word(OpExecutionMode, 4), words[2],
                     std::uint32_t(control.execution_mode), control.bits});
        }
    }
    copy(module.words.get() + at, module.count - at);
    result->count = std::size_t(out - result->words.get());
    return result;
}

}  // namespace vkrope
