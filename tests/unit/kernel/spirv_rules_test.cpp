// SPDX-License-Identifier: MIT
// Arithmetic rules of the shaders, checked in every module: no operation that a driver may
// contract, none whose result the specification leaves open.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "kernel_words.hpp"
#include "spirv_reader.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t op_ext_inst = 12, op_type_float = 22, op_type_vector = 23, op_function = 54,
                        op_decorate = 71, op_f_convert = 115, op_atomic_load = 227,
                        op_atomic_xor = 242, no_contraction = 42;

// f32 operations that must carry NoContraction.
const std::map<std::uint32_t, const char*> exact = {{127, "OpFNegate"},
                                                    {129, "OpFAdd"},
                                                    {131, "OpFSub"},
                                                    {133, "OpFMul"},
                                                    {142, "OpVectorTimesScalar"}};
// Operations that are not allowed: rounding or range is the driver's choice.
const std::map<std::uint32_t, const char*> banned = {{116, "OpQuantizeToF16"},
                                                     {136, "OpFDiv"},
                                                     {140, "OpFRem"},
                                                     {141, "OpFMod"},
                                                     {143, "OpMatrixTimesScalar"},
                                                     {144, "OpVectorTimesMatrix"},
                                                     {145, "OpMatrixTimesVector"},
                                                     {146, "OpMatrixTimesMatrix"},
                                                     {147, "OpOuterProduct"},
                                                     {148, "OpDot"}};
// GLSL.std.450: the shaders need only the integer minimum and maximum. No Sin, Cos, Pow, Exp2 or
// Fma, nor PackHalf2x16, whose rounding is the driver's choice.
const std::set<std::uint32_t> allowed_extended = {38 /* UMin */, 41 /* UMax */};

// Widths of ids that are floats or vectors of floats.
class Widths {
   public:
    explicit Widths(const std::vector<Instruction>& all) {
        bool in_function = false;
        for (const Instruction& i : all) {
            in_function = in_function || i.op == op_function;
            if (i.op == op_type_float) of_type_[i.operands[0]] = i.operands[1];
            if (i.op == op_type_vector) of_type_[i.operands[0]] = (*this)[i.operands[1]];
            if (in_function && i.operands.size() >= 2 && of_type_.count(i.operands[0]))
                of_type_[i.operands[1]] = (*this)[i.operands[0]];
        }
    }
    std::uint32_t operator[](std::uint32_t id) const {
        const auto found = of_type_.find(id);
        return found == of_type_.end() ? 0 : found->second;
    }

   private:
    std::map<std::uint32_t, std::uint32_t> of_type_;
};

// Atomics here order nothing but themselves: semantics that name a storage class must name an
// order, too, which spirv-val and the validation layers check since 2025
// (VUID-StandaloneSpirv-MemorySemantics-10871). The operand with the id of the semantics depends on
// the operation.
std::size_t semantics_operand(const Instruction& i) {
    return i.op == 228 /* OpAtomicStore */ ? 2 : 4;
}

std::vector<std::string> broken_rules(const std::vector<std::uint32_t>& words) {
    std::set<std::uint32_t> protected_ids;
    std::map<std::uint32_t, std::uint32_t> constants;
    std::vector<std::string> broken;
    const auto all = instructions(words);
    const Widths widths(all);
    for (const Instruction& i : all) {
        if (i.op == op_constant) constants[i.operands[1]] = i.operands[2];
        if (i.op >= op_atomic_load && i.op <= op_atomic_xor) {
            const auto semantics = constants.find(i.operands[semantics_operand(i)]);
            if (semantics == constants.end() || semantics->second != 0)
                broken.push_back("an atomic operation with memory semantics other than None");
        }
        if (i.op == op_decorate && i.operands.size() >= 2 && i.operands[1] == no_contraction)
            protected_ids.insert(i.operands[0]);
    }
    for (const Instruction& i : all) {
        if (const auto found = exact.find(i.op);
            found != exact.end() && !protected_ids.count(i.operands[1])) {
            broken.push_back(std::string(found->second) + " without NoContraction");
        }
        if (exact.count(i.op) && widths[i.operands[1]] != 32)
            broken.push_back("arithmetic that is not of 32 bits");
        // Exact in one direction; the modes of the module define the other.
        if (i.op == op_f_convert && widths[i.operands[1]] + widths[i.operands[2]] != 16 + 32) {
            broken.push_back("OpFConvert other than between 16 and 32 bits");
        }
        if (const auto found = banned.find(i.op); found != banned.end())
            broken.push_back(found->second);
        if (i.op == op_ext_inst && !allowed_extended.count(i.operands[3])) {
            broken.push_back("GLSL.std.450 instruction " + std::to_string(i.operands[3]));
        }
    }
    return broken;
}

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < list.size();) {
        const std::size_t end = std::min(list.find('|', at), list.size());
        parts.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

}  // namespace

TEST_CASE("no module of the library has an operation that a driver may round its own way") {
    const auto modules = split(VKROPE_TEST_SPIRV);
    CHECK(modules.size() >= 2);
    for (const std::string& path : modules) {
        CAPTURE(path);
        const auto words = read_words(path);
        REQUIRE(words.size() > 5);
        REQUIRE(words[0] == 0x07230203);
        std::size_t arithmetic = 0;
        for (const Instruction& i : instructions(words)) arithmetic += exact.count(i.op);
        const bool rotates = path.find("positions") == std::string::npos;  // positions are integers
        CHECK((rotates ? arithmetic >= 12 : arithmetic == 0));  // the rotation of two vectors
        for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
    }
}

TEST_CASE("the library unpacks the words that the compiler of GLSL wrote") {
    for (const std::string& path : split(VKROPE_TEST_SPIRV)) {
        const bool rope = path.find("/rope.spv") != std::string::npos;
        if (!rope && path.find("/positions.spv") == std::string::npos) continue;
        const PackedModule& module = rope ? rope_module : position_module;
        const auto unpacked = unpack(module.bytes, module.size);
        REQUIRE(unpacked.status);
        CHECK(words_of(unpacked.value) == read_words(path));
    }
}

TEST_CASE(
    "no kernel has one, whatever it is specialised to, and floats are converted where the device "
    "is to do it") {
    constexpr std::uint32_t angle_sources = 5;
    std::set<std::uint32_t> seen;
    for (const KernelKind& kind : kernel_kinds()) {
        seen.insert(std::min(kind.angles, shader::angles_cos_sin_cache));
        for (const std::uint32_t conversion : conversions) {
            for (KernelVariation v : kernel_variations) {
                for (const std::uint32_t element :
                     {shader::element_f32, shader::element_f16, shader::element_bf16}) {
                    if (element == shader::element_f32 && v.access == shader::access_word)
                        v.unit = 1;
                    if (element == shader::element_f32 && v.access == shader::access_wide)
                        v.unit = 4;
                    v.element = element;
                    CAPTURE(std::string(kind.name));
                    CAPTURE(conversion);
                    CAPTURE(element);
                    CAPTURE(v.access);
                    const auto words = words_of(kernel_module(kind, v, conversion));
                    for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
                    std::size_t arithmetic = 0, converted = 0;
                    for (const Instruction& i : instructions(words)) {
                        arithmetic += exact.count(i.op);
                        converted += i.op == op_f_convert;
                    }
                    CHECK((kind.turns ? arithmetic >= 6
                                      : arithmetic == 0));  // one rotation of vectors
                    CHECK((kind.turns && conversion != shader::conversion_integer
                               ? converted >= 2
                               : converted == 0));
                }
            }
        }
    }
    CHECK(seen.size() == angle_sources);
}

TEST_CASE(
    "kernels with norms break no rule, and lanes that share no row take one barrier at most") {
    constexpr std::uint32_t op_variable = 59, op_control_barrier = 224, workgroup = 4;
    const KernelKind& kind = kernel_kinds().front();
    for (const std::uint32_t ops : {shader::ops_none, shader::ops_owned, shader::ops_shared}) {
        for (const KernelVariation& v : kernel_variations) {
            if (ops == shader::ops_owned && v.batch != 0) continue;  // a processor's
            CAPTURE(ops);
            CAPTURE(v.access);
            const auto words = words_of(
                kernel_module(kind, v, shader::conversion_integer, true, ops));
            for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
            std::size_t barriers = 0, shared = 0;
            for (const Instruction& i : instructions(words)) {
                barriers += i.op == op_control_barrier;
                shared += i.op == op_variable && i.operands[2] == workgroup;
            }
            // One before K, whose rows are longer than Q's, if a lane has a row for itself.
            const bool several_lanes = v.batch != 0 && 16 * v.windows != 2 * v.unit;
            if (ops == shader::ops_shared)
                CHECK((several_lanes ? barriers > 1 : barriers == 1));
            else
                CHECK(barriers == 0);
            CHECK(shared == (ops == shader::ops_shared ? 1 : 0));
        }
    }
}

TEST_CASE("quantised stores break no rule, and divide by constants only") {
    constexpr std::uint32_t op_u_div = 134, op_u_mod = 137, op_s_div = 135;
    const auto words = read_words(VKROPE_TEST_QUANTISING);
    for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
    std::set<std::uint32_t> constants;
    std::size_t arithmetic = 0, divisions = 0;
    for (const Instruction& i : instructions(words)) {
        if (i.op == op_constant) constants.insert(i.operands[1]);
        arithmetic += exact.count(i.op);
        if (i.op == op_u_div) {
            ++divisions;
            CHECK(constants.count(i.operands[3]));
        }
        CHECK(i.op != op_u_mod);
        CHECK(i.op != op_s_div);
    }
    CHECK(arithmetic >= 30);
    CHECK(divisions == 4);  // by 127, 15, 31 and 7
}

TEST_CASE("the check sees a shader that breaks the rules") {
    const auto broken = broken_rules(read_words(VKROPE_TEST_CONTRACTING));
    const std::set<std::string> rules(broken.begin(), broken.end());
    CHECK(rules.count("OpFMul without NoContraction"));
    CHECK(rules.count("OpFSub without NoContraction"));
    CHECK(rules.count("OpFDiv"));
    CHECK(rules.count("OpDot"));
    CHECK(rules.count("OpFConvert other than between 16 and 32 bits"));
    CHECK(rules.count("an atomic operation with memory semantics other than None"));
    // Sin, Cos, Pow, Exp2, Fma, PackHalf2x16, UnpackHalf2x16
    for (const int banned_too : {13, 14, 26, 29, 50, 58, 62}) {
        CHECK(rules.count("GLSL.std.450 instruction " + std::to_string(banned_too)));
    }
}

}  // namespace vkrope::test
