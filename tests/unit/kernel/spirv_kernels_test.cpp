// SPDX-License-Identifier: MIT
// Checks every module and every kernel that is made from a module. No operation may be contracted
// by a driver or have a result that the specification leaves open. A kernel is valid, binds and
// reads what its constants ask for, and has only the modes and capabilities that were asked for.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "kernel_words.hpp"
#include "support/spirv.hpp"

namespace vkrope::test {

namespace {

// The f32 operations that must carry NoContraction.
const std::map<std::uint32_t, const char*> exact = {{127, "OpFNegate"},
                                                    {129, "OpFAdd"},
                                                    {131, "OpFSub"},
                                                    {133, "OpFMul"},
                                                    {142, "OpVectorTimesScalar"}};
// The operations that are not allowed, because the driver chooses their rounding or range.
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
// The shaders need only the integer minima and maxima of GLSL.std.450. They have no Sin, Cos,
// Pow, Exp2 or Fma, nor PackHalf2x16, whose rounding is the driver's choice.
const std::set<std::uint32_t> allowed_extended = {38 /* UMin */, 39 /* SMin */, 41 /* UMax */,
                                                  42 /* SMax */};

// The widths of ids that are floats or vectors of floats.
class Widths {
   public:
    explicit Widths(const std::vector<Instruction>& all) {
        bool in_function = false;
        for (const Instruction& i : all) {
            in_function = in_function || i.op == spv::OpFunction;
            if (i.op == spv::OpTypeFloat) of_type_[i.operands[0]] = i.operands[1];
            if (i.op == spv::OpTypeVector) of_type_[i.operands[0]] = (*this)[i.operands[1]];
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

// The atomics here order nothing but themselves. Semantics that name a storage class must name an
// order, too, which spirv-val and the validation layers check since 2025
// (VUID-StandaloneSpirv-MemorySemantics-10871). The index of the semantics operand depends on the
// operation.
std::size_t semantics_operand(const Instruction& i) {
    return i.op == spv::OpAtomicStore ? 2 : 4;
}

std::vector<std::string> broken_rules(const std::vector<std::uint32_t>& words) {
    std::set<std::uint32_t> protected_ids;
    std::map<std::uint32_t, std::uint32_t> constants;
    std::vector<std::string> broken;
    const auto all = instructions(words);
    const Widths widths(all);
    for (const Instruction& i : all) {
        if (i.op == spv::OpConstant) constants[i.operands[1]] = i.operands[2];
        if (i.op >= spv::OpAtomicLoad && i.op <= spv::OpAtomicXor) {
            const auto semantics = constants.find(i.operands[semantics_operand(i)]);
            if (semantics == constants.end() || semantics->second != 0)
                broken.push_back("an atomic operation with memory semantics other than None");
        }
        if (i.op == spv::OpDecorate && i.operands.size() >= 2 &&
            i.operands[1] == spv::DecorationNoContraction)
            protected_ids.insert(i.operands[0]);
    }
    for (const Instruction& i : all) {
        if (const auto found = exact.find(i.op);
            found != exact.end() && !protected_ids.count(i.operands[1]))
            broken.push_back(std::string(found->second) + " without NoContraction");
        if (exact.count(i.op) && widths[i.operands[1]] != 32)
            broken.push_back("arithmetic that is not of 32 bits");
        // Widening is exact. The modes of the module define how narrowing rounds.
        if (i.op == spv::OpFConvert && widths[i.operands[1]] + widths[i.operands[2]] != 16 + 32)
            broken.push_back("OpFConvert other than between 16 and 32 bits");
        if (const auto found = banned.find(i.op); found != banned.end())
            broken.push_back(found->second);
        if (i.op == spv::OpExtInst && !allowed_extended.count(i.operands[3]))
            broken.push_back("GLSL.std.450 instruction " + std::to_string(i.operands[3]));
    }
    return broken;
}

struct Divisions {
    std::size_t all = 0, open = 0;  // open: by a number that is not a constant
};

Divisions divisions_of(const std::vector<std::uint32_t>& words) {
    Divisions divisions;
    std::set<std::uint32_t> constants;
    for (const Instruction& i : instructions(words)) {
        if (i.op == spv::OpConstant) constants.insert(i.operands[1]);
        if (i.op != spv::OpUDiv &&
            (i.op < spv::OpSDiv || i.op > spv::OpSMod || i.op == spv::OpFDiv))
            continue;
        ++divisions.all;
        divisions.open += constants.count(i.operands[3]) == 0;
    }
    return divisions;
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

std::string text_of(const std::vector<std::uint32_t>& words) {
    std::string text;
    for (const std::uint32_t word : words)
        for (std::uint32_t shift = 0; shift < 32; shift += 8) text += char(word >> shift & 0xff);
    return text.c_str();  // up to the terminating zero
}

std::vector<std::uint32_t> read_words(const std::string& path) {
    std::vector<std::uint32_t> words(std::filesystem::file_size(path) / 4);
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(words.data()), std::streamsize(words.size() * 4));
    return words;
}

bool is_valid(const std::vector<std::uint32_t>& words) {
#ifdef VKROPE_TEST_SPIRV_VAL
    // Other cases may run at the same time, in another process.
    const std::string file = VKROPE_TEST_SCRATCH "/kernel." + std::to_string(::getpid()) + ".spv";
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(words.data()), std::streamsize(words.size() * 4));
    // The paths are environment variables so that the shell does not interpret them.
    ::setenv("VKROPE_TEST_VALIDATOR", VKROPE_TEST_SPIRV_VAL, 1);
    ::setenv("VKROPE_TEST_FILE", file.c_str(), 1);
    const bool valid =
        std::system("\"$VKROPE_TEST_VALIDATOR\" --target-env vulkan1.1 \"$VKROPE_TEST_FILE\"") == 0;
    std::filesystem::remove(file);
    return valid;
#else
    return words.size() > 5;
#endif
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

// The element type of a tensor is selected inside functions that Q and K share, so the pruner
// cannot see it. Therefore create() requests no conversion by the device if no tensor is f16.
//
// A division by a number that is not a constant costs a GPU twenty instructions, and makes each
// lane compute the token that all lanes of its workgroup share.
TEST_CASE("every kernel keeps the rules, and has only what its constants ask for") {
    constexpr std::uint32_t angle_sources = 5, sides = 4;
    std::set<std::uint32_t> sources, sizes;
    each_kernel([&](const KernelKind& kind, KernelVariation v, std::uint32_t conversion) {
        sources.insert(std::min(kind.angles, shader::angles_cos_sin_cache));
        for (const std::uint32_t element :
             {shader::element_f32, shader::element_f16, shader::element_bf16}) {
            if (element == shader::element_f32 && v.access == shader::access_word) v.unit = 1;
            if (element == shader::element_f32 && v.access == shader::access_wide) v.unit = 4;
            v.element = element;
            CAPTURE(element);
            const auto words = words_of(kernel_module(kind, v, conversion));
            sizes.insert(std::uint32_t(words.size()));
            for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);

            std::map<std::uint32_t, std::uint32_t> constants;
            // The variables of the module, those that a function names, and the members of Push
            // that are strides: of Q in and out, and of K in and out.
            std::set<std::uint32_t> declared, named, strides;
            std::size_t arithmetic = 0, capabilities = 0, types = 0, converted = 0;
            std::uint32_t push = 0;
            bool in_function = false;
            for (const Instruction& i : instructions(words)) {
                const auto& o = i.operands;
                CHECK_FALSE((i.op >= spv::OpSpecConstantTrue && i.op <= spv::OpSpecConstantOp));
                CHECK_FALSE((i.op == spv::OpDecorate && o[1] == spv::DecorationSpecId));
                in_function = in_function || i.op == spv::OpFunction;
                arithmetic += exact.count(i.op);
                capabilities += i.op == spv::OpCapability && o[0] == spv::CapabilityFloat16;
                types += i.op == spv::OpTypeFloat && o[1] == 16;
                converted += i.op == spv::OpFConvert;
                if (i.op == spv::OpConstant) constants[o[1]] = o[2];
                if (i.op == spv::OpVariable && !in_function) declared.insert(o[1]);
                if (i.op == spv::OpVariable && o[2] == spv::StorageClassPushConstant) push = o[1];
                if (in_function && (i.op == spv::OpAccessChain || i.op == spv::OpLoad))
                    named.insert(o[2]);
                if (in_function && i.op == spv::OpStore) named.insert(o[0]);
                if (i.op != spv::OpAccessChain || o[2] != push) continue;
                REQUIRE(o.size() > 4);
                REQUIRE(constants.count(o[4]) == 1);
                if (constants[o[4]] < sides) strides.insert(constants[o[4]]);
            }
            CHECK(std::includes(named.begin(), named.end(), declared.begin(), declared.end()));
            // One rotation of vectors takes six operations.
            CHECK((kind.turns ? arithmetic >= 6 : arithmetic == 0));
            const bool by_device = kind.turns && conversion != shader::conversion_integer;
            CHECK(capabilities == std::size_t(by_device));
            CHECK(types == std::size_t(by_device));
            CHECK((by_device ? converted >= 2 : converted == 0));
            // Two divisions give the page of a slot and its row.
            CHECK(divisions_of(words).open == (kind.has_k && v.scatter != 0 ? 2u : 0u));
            CHECK(divisions_of(words).all > 0);
            std::set<std::uint32_t> expected_strides;
            if (kind.turns) expected_strides = {0, 1};
            if (kind.has_k) expected_strides.insert({2, 3});
            CHECK(strides == expected_strides);
        }
    });
    CHECK(sources.size() == angle_sources);
    CHECK(sizes.size() > 4);
}

// Divisors are the lanes of a row and of a block, which reach functions in structs. A driver's
// compiler sees that they are constants. A further division is one that a lane computes.
TEST_CASE("a kernel with quantised outputs keeps the rules, and divides no more than it must") {
    constexpr std::size_t open_divisions[] = {7, 7, 16, 9, 14, 16};
    for (std::size_t i = 0; i < kernel_variations.size(); ++i) {
        KernelVariation v = kernel_variations[i];
        CAPTURE(v.access);
        v.quantised = shader::element_q8_0;
        const auto words = words_of(kernel_module(
            kernel_kinds().front(), v, shader::conversion_integer, true, shader::ops_shared));
        for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
        CHECK(divisions_of(words).open == open_divisions[i]);
    }
}

TEST_CASE("the rules notice a kernel without NoContraction") {
    auto words = words_of(
        kernel_module(kernel_kinds().front(), kernel_variations[0], shader::conversion_integer));
    for (std::size_t at = 5; at < words.size(); at += words[at] >> 16)
        if ((words[at] & 0xffff) == spv::OpDecorate &&
            words[at + 2] == spv::DecorationNoContraction)
            words[at + 2] = 0;  // RelaxedPrecision
    const auto broken = broken_rules(words);
    for (const char* name : {"OpFMul", "OpFAdd", "OpFSub"})
        CHECK(
            std::count(broken.begin(), broken.end(), name + std::string(" without NoContraction")));
}

// Checks only the size if there is no spirv-val.
TEST_CASE("what a kernel makes of the module is valid") {
    each_kernel([](const KernelKind& kind, const KernelVariation& v, std::uint32_t conversion) {
        CHECK(is_valid(words_of(kernel_module(kind, v, conversion))));
    });
}

TEST_CASE("a kernel binds what its constants ask for") {
    for (const KernelKind& kind : kernel_kinds()) {
        for (const KernelVariation& v : kernel_variations) {
            for (const bool counts : {true, false}) {
                CAPTURE(std::string(kind.name));
                CAPTURE(v.access);
                CAPTURE(counts);
                const BindingList list =
                    kernel_module(kind, v, shader::conversion_integer, counts).binds;
                std::map<std::uint32_t, VkDescriptorType> expected;
                const auto expect = [&](bool wanted, std::uint32_t number,
                                        VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) {
                    if (wanted) expected[number] = type;
                };
                const bool turns = kind.turns && kind.angles == shader::angles_computed;
                const bool textured = kind.turns && (kind.angles == shader::angles_texture ||
                                                     kind.angles == shader::angles_factored);
                expect(kind.turns, shader::binding_q_in);
                expect(kind.turns, shader::binding_q_out);
                expect(kind.has_k, shader::binding_k_in);
                expect(kind.has_k, shader::binding_k_out);
                expect(kind.has_v, shader::binding_v_in);
                expect(kind.has_v, shader::binding_v_out);
                expect(v.positions != shader::positions_implicit && (kind.turns || counts),
                       shader::binding_ids);
                expect(kind.has_k && v.scatter != 0, shader::binding_slot_mapping);
                expect(kind.turns && !turns && !textured, shader::binding_table);
                expect(kind.angles >= shader::angles_cos_sin_cache, shader::binding_table_sin);
                expect(counts, shader::binding_out_of_range);
                expect(turns, shader::binding_turns, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
                expect(textured, shader::binding_texture, VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE);
                std::map<std::uint32_t, VkDescriptorType> found;
                for (const Binding& binding : list) found[binding.number] = binding.type;
                CHECK(found == expected);
                CHECK(list.storage_buffers() == expected.size() - turns - textured);
            }
        }
    }
}

// Rows come from a cache if they have slots or are quantised. There is no Q.
TEST_CASE("a kernel that moves keys keeps the rules, and binds slots and scales that are read") {
    enum class Reads { numbers, blocks, codes_and_scales };
    const auto check = [](const KernelKind& kind, const KernelVariation& v, bool gathers,
                          Reads reads) {
        CAPTURE(std::string(kind.name));
        CAPTURE(v.access);
        CAPTURE(gathers);
        CAPTURE(int(reads));
        const bool scales = reads == Reads::codes_and_scales;
        const auto change = [&](shader::Constants& values) {
            values.tensor[0].head_dim = 0;
            values.few_registers = 0;
            values.gather = gathers;
            for (shader::TensorConstants& of : values.tensor) {
                of.ops = 0;
                if (of.head_dim == 0 || reads == Reads::numbers) continue;
                of.element_in = shader::element_f32;
                of.element_read = scales ? shader::element_int4 : shader::element_iq4_nl;
                of.scales_read = scales;
            }
        };
        const KernelWords module = kernel_module(kind, v, shader::conversion_integer, true,
                                                 shader::ops_shared, false, change);
        const auto words = words_of(module);
        CHECK(is_valid(words));
        for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
        const std::pair<std::uint32_t, bool> expected[] = {
            {shader::binding_k_in, true},
            {shader::binding_k_out, true},
            {shader::binding_v_in, kind.has_v},
            {shader::binding_v_out, kind.has_v},
            {shader::binding_source_mapping, gathers},
            {shader::binding_slot_mapping, v.scatter != 0},
            {shader::binding_k_scales_in, scales},
            {shader::binding_v_scales_in, scales && kind.has_v},
            {shader::binding_q_out, false},
            {shader::binding_k_scales_out, false},
            {shader::binding_parameters, false}};
        for (const auto& [binding, bound] : expected) {
            CAPTURE(binding);
            CHECK(module.binds.has(binding) == bound);
        }
    };
    for (const KernelKind& kind : kernel_kinds()) {
        if (kind.angles != shader::angles_factored || !kind.has_k) continue;
        for (const KernelVariation& v : kernel_variations) {
            for (const Reads reads : {Reads::numbers, Reads::blocks, Reads::codes_and_scales}) {
                check(kind, v, true, reads);
                if (reads != Reads::numbers) check(kind, v, false, reads);
            }
        }
    }
}

// Another invocation may be merging its half of the same word.
TEST_CASE("16-bit rows that share words with others are read and written by atomics alone") {
    const std::set<std::uint32_t> rows = {shader::binding_q_in,  shader::binding_k_in,
                                          shader::binding_v_in,  shader::binding_q_out,
                                          shader::binding_k_out, shader::binding_v_out};
    for (const KernelKind& kind : kernel_kinds()) {
        for (KernelVariation v : kernel_variations) {
            if (v.access != shader::access_narrow) continue;
            for (const std::uint32_t element : {shader::element_f16, shader::element_bf16}) {
                for (const std::uint32_t ops : {shader::ops_none, shader::ops_shared}) {
                    CAPTURE(std::string(kind.name));
                    CAPTURE(element);
                    CAPTURE(ops);
                    v.element = element;
                    std::set<std::uint32_t>
                        of_rows;  // ids of these variables, and of pointers to them
                    std::size_t plain = 0, loads = 0, merges = 0;
                    for (const Instruction& i : instructions(words_of(
                             kernel_module(kind, v, shader::conversion_integer, true, ops)))) {
                        const auto to_row = [&](std::size_t operand) {
                            return of_rows.count(i.operands[operand]) != 0;
                        };
                        if (i.op == spv::OpDecorate && i.operands[1] == spv::DecorationBinding &&
                            rows.count(i.operands[2]))
                            of_rows.insert(i.operands[0]);
                        if (i.op == spv::OpAccessChain && to_row(2)) of_rows.insert(i.operands[1]);
                        plain += (i.op == spv::OpLoad && to_row(2)) ||
                                 (i.op == spv::OpStore && to_row(0));
                        loads += i.op == spv::OpAtomicLoad && to_row(2);
                        merges += (i.op == spv::OpAtomicAnd || i.op == spv::OpAtomicOr) &&
                                  to_row(2);
                    }
                    CHECK(plain == 0);
                    CHECK(loads > 0);
                    CHECK(merges > 0);
                }
            }
        }
    }
}

TEST_CASE(
    "kernels with norms break no rule, lanes that share no row take no barrier, and parameters are "
    "bound where there are some") {
    const KernelKind& kind = kernel_kinds().front();
    for (const std::uint32_t ops : {shader::ops_none, shader::ops_owned, shader::ops_shared}) {
        for (const KernelVariation& v : kernel_variations) {
            if (ops == shader::ops_owned && v.batch != 0) continue;  // only on processors
            CAPTURE(ops);
            CAPTURE(v.access);
            const auto words = words_of(
                kernel_module(kind, v, shader::conversion_integer, true, ops));
            for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
            std::size_t barriers = 0, shared = 0;
            for (const Instruction& i : instructions(words)) {
                barriers += i.op == spv::OpControlBarrier;
                shared += i.op == spv::OpVariable && i.operands[2] == spv::StorageClassWorkgroup;
            }
            const bool several_lanes = v.batch != 0 && 16 * v.windows != 2 * v.unit;
            if (ops == shader::ops_shared && several_lanes)
                CHECK(barriers > 1);
            else
                CHECK(barriers == 0);
            CHECK(shared == (ops == shader::ops_shared ? 1 : 0));
            for (const bool weights : {false, true}) {
                const BindingList bound =
                    kernel_module(kind, v, shader::conversion_integer, true, ops, weights).binds;
                CHECK(bound.has(shader::binding_parameters) ==
                      (ops != shader::ops_none && weights));
                CHECK(!bound.has(shader::binding_q_weight));
            }
        }
    }
}

TEST_CASE("weights of norms that are no parameters have a binding of their own") {
    for (const KernelVariation& v : kernel_variations) {
        for (const std::uint32_t element :
             {shader::element_f32, shader::element_f16, shader::element_bf16}) {
            CAPTURE(v.access);
            CAPTURE(element);
            const auto change = [&](shader::Constants& values) {
                for (const TensorIndex t : {Q, K}) {
                    values.tensor[t].weight_bound = 1;
                    values.tensor[t].element_weight = element;
                    values.tensor[t].weight_added = t;
                }
                values.tensor[K].norm_bias = shader::shape_none;
            };
            const KernelWords module = kernel_module(kernel_kinds().front(), v,
                                                     shader::conversion_integer, true,
                                                     shader::ops_shared, true, change);
            for (const std::string& rule : broken_rules(words_of(module))) FAIL_CHECK(rule);
            const BindingList& bound = module.binds;
            CHECK(bound.has(shader::binding_q_weight));
            CHECK(bound.has(shader::binding_k_weight));
            CHECK(!bound.has(shader::binding_v_weight));
            CHECK(!bound.has(shader::binding_parameters));
        }
    }
}

TEST_CASE(
    "the modes of a module are those that were asked for, each once, and nothing else changes") {
    struct Mode {
        std::uint32_t bit, capability, execution_mode, width;
    };
    // SPV_KHR_float_controls: RoundingModeRTE, DenormPreserve, SignedZeroInfNanPreserve.
    const Mode modes[] = {
        {round_to_even_16, 4467, 4462, 16},     {round_to_even_32, 4467, 4462, 32},
        {denorm_preserve_16, 4464, 4459, 16},   {denorm_preserve_32, 4464, 4459, 32},
        {keep_zero_inf_nan_16, 4466, 4461, 16}, {keep_zero_inf_nan_32, 4466, 4461, 32}};
    const KernelWords native = kernel_module(kernel_kinds()[0], kernel_variations[0],
                                             shader::conversion_native);
    const KernelWords integer = kernel_module(kernel_kinds()[0], kernel_variations[1],
                                              shader::conversion_integer);
    for (const KernelWords* module : {&native, &integer}) {
        const auto before = instructions(words_of(*module));
        for (std::uint32_t asked = 0; asked < 64; ++asked) {
            CAPTURE(asked);
            const auto words = words_of(kernel_of(module->values, asked));
            std::multiset<std::uint32_t> capabilities, expected_capabilities;
            std::multiset<std::vector<std::uint32_t>> declared, expected;
            std::size_t extensions = 0;
            std::uint32_t entry_point = 0;
            auto rest = instructions(words);
            std::erase_if(rest, [&](const Instruction& i) {
                if (i.op == spv::OpEntryPoint) entry_point = i.operands[1];
                const bool capability = i.op == spv::OpCapability && i.operands[0] >= 4464 &&
                                        i.operands[0] <= 4468;
                const bool mode = i.op == spv::OpExecutionMode && i.operands[1] >= 4459 &&
                                  i.operands[1] <= 4463;
                const bool extension = i.op == spv::OpExtension &&
                                       text_of(i.operands) == "SPV_KHR_float_controls";
                if (capability) capabilities.insert(i.operands[0]);
                if (mode) declared.insert(i.operands);
                extensions += extension;
                return capability || mode || extension;
            });
            for (const Mode& mode : modes) {
                if (!(asked & mode.bit)) continue;
                expected.insert({entry_point, mode.execution_mode, mode.width});
                expected_capabilities.insert(mode.capability);
            }
            CHECK(declared == expected);
            CHECK(std::set(capabilities.begin(), capabilities.end()) ==
                  std::set(expected_capabilities.begin(), expected_capabilities.end()));
            CHECK(extensions == (asked != 0));
            CHECK(std::equal(rest.begin(), rest.end(), before.begin(), before.end(),
                             [](const Instruction& a, const Instruction& b) {
                                 return a.op == b.op && a.operands == b.operands;
                             }));
            CHECK(is_valid(words));
        }
    }
}

}  // namespace vkrope::test
