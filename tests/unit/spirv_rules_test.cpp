// SPDX-License-Identifier: MIT
// What the shader rules promise of the arithmetic, read from every module: no operation that a driver may contract, none whose result
// the specification leaves open.
#include <doctest/doctest.h>

#include <map>
#include <set>

#include "spirv_reader.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t op_ext_inst = 12, op_decorate = 71, no_contraction = 42;

// f32 operations that must carry NoContraction.
const std::map<std::uint32_t, const char*> exact = {
    {127, "OpFNegate"}, {129, "OpFAdd"}, {131, "OpFSub"}, {133, "OpFMul"}, {142, "OpVectorTimesScalar"}};
// Operations without a place here: rounding or range is the driver's choice.
const std::map<std::uint32_t, const char*> banned = {{136, "OpFDiv"},
                                                     {140, "OpFRem"},
                                                     {141, "OpFMod"},
                                                     {143, "OpMatrixTimesScalar"},
                                                     {144, "OpVectorTimesMatrix"},
                                                     {145, "OpMatrixTimesVector"},
                                                     {146, "OpMatrixTimesMatrix"},
                                                     {147, "OpOuterProduct"},
                                                     {148, "OpDot"}};
// GLSL.std.450: the integer minimum and maximum are all that the shaders need.
const std::set<std::uint32_t> allowed_extended = {38 /* UMin */, 41 /* UMax */};

std::vector<std::string> broken_rules(const std::vector<std::uint32_t>& words) {
    std::set<std::uint32_t> protected_ids;
    std::vector<std::string> broken;
    const auto all = instructions(words);
    for (const Instruction& i : all) {
        if (i.op == op_decorate && i.operands.size() >= 2 && i.operands[1] == no_contraction) protected_ids.insert(i.operands[0]);
    }
    for (const Instruction& i : all) {
        if (const auto found = exact.find(i.op); found != exact.end() && !protected_ids.count(i.operands[1])) {
            broken.push_back(std::string(found->second) + " without NoContraction");
        }
        if (const auto found = banned.find(i.op); found != banned.end()) broken.push_back(found->second);
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
        CHECK((rotates ? arithmetic >= 12 : arithmetic == 0));             // the rotation of two vectors
        for (const std::string& rule : broken_rules(words)) FAIL_CHECK(rule);
    }
}

TEST_CASE("the check sees a shader that breaks the rules") {
    const auto broken = broken_rules(read_words(VKROPE_TEST_CONTRACTING));
    const std::set<std::string> rules(broken.begin(), broken.end());
    CHECK(rules.count("OpFMul without NoContraction"));
    CHECK(rules.count("OpFSub without NoContraction"));
    CHECK(rules.count("OpFDiv"));
    CHECK(rules.count("OpDot"));
    CHECK(rules.count("GLSL.std.450 instruction 13"));  // Sin
}

}  // namespace vkrope::test
