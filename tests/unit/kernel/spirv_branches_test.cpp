// SPDX-License-Identifier: MIT
// Counts costs on a GPU that no output bit shows: separate branches that should be one, and arrays
// that need memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernel_words.hpp"
#include "support/spirv.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t u_min = 38, unroll = 1;

struct Function {
    std::uint32_t id = 0;
    std::vector<Instruction> body;

    std::size_t count(std::uint32_t op) const {
        return std::size_t(std::count_if(
            body.begin(), body.end(), [=](const Instruction& i) { return i.op == op; }));
    }
    std::size_t calls(const std::set<std::uint32_t>& functions) const {
        return std::size_t(std::count_if(
            body.begin(), body.end(),
            [&](const Instruction& i) {
                return i.op == spv::OpFunctionCall && functions.count(i.operands[2]) != 0;
            }));
    }
};

std::vector<Function> functions_of(const std::vector<Instruction>& all) {
    std::vector<Function> functions;
    for (const Instruction& i : all) {
        if (i.op == spv::OpFunction) functions.push_back({i.operands[1], {}});
        if (!functions.empty()) functions.back().body.push_back(i);
    }
    return functions;
}

struct Branches {
    std::size_t selections = 0;
    std::size_t conversions = 0;  // calls, for a unit, of a function that is only OpFConvert
    std::size_t on_subnormals =
        0;  // branches on the result of vkrope_any_between: on the smallest component
};

Branches branches_of(const std::vector<std::uint32_t>& words) {
    Branches found;
    const auto functions = functions_of(instructions(words));
    std::set<std::uint32_t> converting, smallest;
    for (const Function& f : functions) {
        if (f.count(spv::OpFConvert) != 0) converting.insert(f.id);
        const auto is_u_min = [](const Instruction& i) {
            return i.op == spv::OpExtInst && i.operands[3] == u_min;
        };
        if (f.count(spv::OpULessThan) == 1 &&
            std::count_if(f.body.begin(), f.body.end(), is_u_min) == 4)
            smallest.insert(f.id);
    }
    for (const Function& f : functions) {
        found.selections += f.count(spv::OpSelectionMerge);
        found.conversions += f.calls(converting);
        std::set<std::uint32_t> conditions;
        for (const Instruction& i : f.body) {
            if (i.op == spv::OpFunctionCall && smallest.count(i.operands[2]) != 0)
                conditions.insert(i.operands[1]);
            found.on_subnormals += i.op == spv::OpBranchConditional &&
                                   conditions.count(i.operands[0]) != 0;
        }
    }
    return found;
}

// Returns the words of a kernel whose axes have these sections.
std::vector<std::uint32_t> sectioned(std::uint32_t order,
                                     const std::vector<std::uint32_t>& sections,
                                     std::uint32_t access, std::uint32_t unit,
                                     std::uint32_t pairing, bool gpu) {
    std::uint32_t pairs = 0;
    for (const std::uint32_t section : sections) pairs += section;
    shader::Constants values = {.workgroup_size = 64,
                                .chunk_lanes = gpu ? pairs / unit : 1,
                                .head_lanes = gpu ? 2u : 1u,
                                .group_tokens = gpu ? 64 / (pairs / unit * 2) : 64u,
                                .chunks_together = gpu ? 1u : 2u,
                                .units_apart = gpu,
                                .rare_branches = gpu,
                                .access = access,
                                .unit_elements = unit,
                                .copy_access = access,
                                .copy_elements = unit};
    for (const TensorIndex t : {Q, K}) {
        shader::TensorConstants& tensor = values.tensor[t];
        tensor.head_dim = 2 * pairs;
        tensor.element_in = tensor.element_out = shader::element_f16;
        tensor.batch = !gpu ? 0 : t == Q ? 4 : 2;
    }
    values.tensor[V].head_dim = 0;
    values.rotary_dim = values.window_dim_0 = 2 * pairs;
    values.pairing = values.pairing_out = pairing;
    values.angles = shader::angles_factored;
    values.positions = shader::positions_ids;
    values.axes = std::uint32_t(sections.size());
    values.section_order = order;
    std::copy(sections.begin(), sections.end(), &values.section_0);
    std::fill(&values.section_0 + sections.size(), &values.section_0 + shader::max_axes, 0);
    return words_of(kernel_of(values));
}

// Counts how the private arrays of a lane are indexed.
struct Indices {
    std::size_t constant = 0, counter = 0, other = 0;
    std::size_t of_axes = 0,
                of_axes_not_constant = 0;  // the shared array with one component per axis
};

class IndexReader {
   public:
    explicit IndexReader(const std::vector<std::uint32_t>& words) : all_(instructions(words)) {
        bool unrolled = false;  // the next comparison is the condition of a loop with [[unroll]]
        for (const Instruction& i : all_) {
            const auto& o = i.operands;
            if (i.op == spv::OpLoopMerge) unrolled = o[2] == unroll;
            if (i.op == spv::OpConstant) constants_.insert(o[1]);
            if (i.op == spv::OpTypeArray) element_[o[0]] = o[1];
            if (i.op == spv::OpTypeStruct) members_[o[0]] = {o.begin() + 1, o.end()};
            if (i.op == spv::OpTypePointer) pointee_[o[0]] = o[2];
            if (i.op == spv::OpVariable &&
                (o[2] == spv::StorageClassPrivate || o[2] == spv::StorageClassFunction))
                variables_[o[1]] = {o[0], o[2]};
            if (i.op == spv::OpLoad) loads_[o[1]] = o[2];
            if (i.op == spv::OpIAdd) sums_[o[1]] = {o[2], o[3]};
            if (i.op == spv::OpStore) stores_[o[0]].push_back(o[1]);
            if (i.op == spv::OpULessThan && unrolled) bounds_[loaded(o[2])].push_back(o[3]);
            if (i.op == spv::OpULessThan) unrolled = false;
        }
    }

    Indices indices() const {
        Indices found;
        for (const Instruction& i : all_) {
            if (i.op != spv::OpAccessChain) continue;
            const auto variable = variables_.find(i.operands[2]);
            if (variable == variables_.end()) continue;
            std::uint32_t type = pointee_.at(variable->second.first);
            for (std::size_t n = 3; n < i.operands.size(); ++n) {
                const std::uint32_t index = i.operands[n];
                if (const auto array = element_.find(type); array != element_.end()) {
                    const bool axes = variable->second.second == spv::StorageClassPrivate;
                    const bool constant = constants_.count(index) != 0;
                    ++(constant ? found.constant : is_counter(index) ? found.counter : found.other);
                    found.of_axes += axes;
                    found.of_axes_not_constant += axes && !constant;
                    type = array->second;
                } else if (const auto members = members_.find(type); members != members_.end()) {
                    type = members->second.at(0);  // arrays only, of one type
                    for (const std::uint32_t member : members->second)
                        if (element_.count(member) != 0 && member != type)
                            FAIL_CHECK("a structure with arrays of two types");
                } else {
                    type = 0;
                }
            }
        }
        return found;
    }

   private:
    std::uint32_t loaded(std::uint32_t value) const {
        const auto found = loads_.find(value);
        return found == loads_.end() ? 0 : found->second;
    }

    // Returns whether `index` is the counter of a loop that every compiler unrolls: a variable that
    // starts at a constant, is incremented by a constant, and is compared with a constant in the
    // condition of a loop with [[unroll]].
    bool is_counter(std::uint32_t index) const {
        const std::uint32_t variable = loaded(index);
        const auto stores = stores_.find(variable);
        const auto bounds = bounds_.find(variable);
        if (variable == 0 || stores == stores_.end() || bounds == bounds_.end()) return false;
        bool steps = false;
        for (const std::uint32_t value : stores->second) {
            const auto sum = sums_.find(value);
            const bool step = sum != sums_.end() && loaded(sum->second.first) == variable &&
                              constants_.count(sum->second.second) != 0;
            if (!step && constants_.count(value) == 0) return false;
            steps = steps || step;
        }
        const auto is_constant = [&](std::uint32_t bound) { return constants_.count(bound) != 0; };
        return steps && std::any_of(bounds->second.begin(), bounds->second.end(), is_constant);
    }

    std::vector<Instruction> all_;
    std::set<std::uint32_t> constants_;
    std::map<std::uint32_t, std::uint32_t> element_, pointee_, loads_;
    std::map<std::uint32_t, std::vector<std::uint32_t>> members_, stores_, bounds_;
    std::map<std::uint32_t, std::pair<std::uint32_t, std::uint32_t>> variables_,
        sums_;  // variables: type, storage
};

}  // namespace

TEST_CASE(
    "where the device converts but for subnormals, each conversion of a unit has one more branch, "
    "on any of the unit's elements") {
    for (const KernelKind& kind : kernel_kinds()) {
        for (const KernelVariation& v : kernel_variations) {
            CAPTURE(std::string(kind.name));
            CAPTURE(v.access);
            const Branches native = branches_of(
                words_of(kernel_module(kind, v, shader::conversion_native)));
            const Branches normals = branches_of(
                words_of(kernel_module(kind, v, shader::conversion_normals)));
            CHECK(native.conversions ==
                  (kind.turns ? 2u : 0u));  // decode and encode, shared by Q, K and V
            CHECK(native.on_subnormals == 0);
            CHECK(normals.conversions == native.conversions);
            CHECK(normals.on_subnormals == normals.conversions);
            CHECK(normals.selections == native.selections + normals.conversions);
        }
    }
}

TEST_CASE(
    "of several axes, a constant indexes the array of a token's angles, and a constant or the "
    "counter of an unrolled loop every other array of a lane") {
    const std::vector<std::vector<std::uint32_t>> sections = {
        {16, 8, 8}, {11, 11, 10}, {4, 4, 4, 4, 4, 4, 4, 4}, {16, 16}};
    for (const std::uint32_t order : {shader::sections_sequential, shader::sections_interleaved}) {
        for (const auto& pairs : sections) {
            if (order == shader::sections_interleaved && pairs.size() != 3) continue;
            for (const auto& [access, unit] : {std::pair{shader::access_wide, 8u},
                                               {shader::access_word, 2u},
                                               {shader::access_narrow, 1u}}) {
                for (const std::uint32_t pairing :
                     {shader::pairing_half_split, shader::pairing_interleaved}) {
                    for (const bool gpu : {true, false}) {
                        CAPTURE(order);
                        CAPTURE(pairs[0]);
                        CAPTURE(pairs.size());
                        CAPTURE(unit);
                        CAPTURE(pairing);
                        CAPTURE(gpu);
                        const Indices found = IndexReader(sectioned(order, pairs, access, unit,
                                                                    pairing, gpu))
                                                  .indices();
                        CHECK(found.of_axes >= 2 * pairs.size());  // each is written and read
                        CHECK(found.of_axes_not_constant == 0);
                        CHECK(found.other == 0);
                    }
                }
            }
        }
    }
}

}  // namespace vkrope::test
