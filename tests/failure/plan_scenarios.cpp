// SPDX-License-Identifier: MIT
// From a model's numbers to a table: nothing calls Vulkan, and what writes into the caller's memory
// allocates none.
//
// Reading a model's file is not included: nlohmann::json, which holds what either format says, ends
// the program where an allocation of its own fails in a destructor.
#include <array>

#include "scenarios.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope::test {

namespace {

const std::array<double, 4> frequencies = {1.0, 0.1, 0.01, 0.001};

Status scale_in_c(void*) {
    std::array<double, 4> scaled = {};
    if (Status s = answer(
            [&](auto* error) { return vkrope_default_inv_freq(10000.0, 8, scaled.data(), error); });
        !s)
        return s;
    vkrope_llama3_scaling llama3 = {};
    llama3.factor = 8;
    llama3.low_freq_factor = 1;
    llama3.high_freq_factor = 4;
    llama3.original_max_position_embeddings = 8192;
    const std::array<double, 4> before = scaled;
    const Status status = answer(
        [&](auto* error) { return vkrope_scale_llama3(scaled.data(), 4, &llama3, error); });
    if (!status) CHECK(scaled == before);
    if (!status) return status;
    return answer([&](auto* error) { return vkrope_scale_linear(scaled.data(), 4, 2, error); });
}

Status create_rotation(void*) {
    OwnedRotation rotation;
    return make_rotation(rotation);
}

struct Planned {
    OwnedRotation rotation;
    Rotation in_cpp{.head_dim = 8, .rotary_dim = 8, .inv_freq = std::vector<double>(4)};
    std::array<float, 17 * 8> memory = {};
};

std::shared_ptr<void> prepare_plan() {
    auto planned = std::make_shared<Planned>();
    REQUIRE(make_rotation(planned->rotation));
    return planned;
}

template <vkrope_angle_source source>
Status plan_and_fill(void* prepared) {
    auto& planned = *static_cast<Planned*>(prepared);
    const vkrope_rotation* rotation = planned.rotation.get();
    vkrope_angle_plan plan = {};
    if (Status s = answer([&](auto* error) {
            return vkrope_plan_angles(rotation, source, 16, 4096, &plan, error);
        });
        !s)
        return s;
    return answer([&](auto* error) {
        return vkrope_fill_angles(rotation, &plan, planned.memory.data(), sizeof planned.memory,
                                  error);
    });
}

Status plan_and_fill_in_cpp(void* prepared) {
    auto& [in_c, rotation, memory] = *static_cast<Planned*>(prepared);
    if (Status s = default_inv_freq(500000.0, 8, rotation.inv_freq.data()); !s) return s;
    if (Status s = scale_llama3(rotation.inv_freq, {8, 1, 4, 8192}); !s) return s;
    if (Status s = scale_linear(rotation.inv_freq, 2); !s) return s;
    const Result<AnglePlan> plan = plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, 16, 4096);
    if (!plan) return plan.status;
    return fill_angles(rotation, plan.value, memory.data(), sizeof memory);
}

}  // namespace

Status make_rotation(OwnedRotation& rotation) {
    const char* const warnings[] = {"a warning that is too long to be kept without memory",
                                    "another one, which is just as long"};
    vkrope_rotation_info info = {};
    info.pairing = VKROPE_HALF_SPLIT;
    info.head_dim = info.rotary_dim = 8;
    info.inv_freq = frequencies.data();
    info.inv_freq_count = frequencies.size();
    info.rope_type = "a name that is too long to be kept without memory";
    info.warnings = warnings;
    info.warning_count = 2;
    return make(rotation, [&](auto** made, auto* error) {
        return vkrope_rotation_create(&info, made, error);
    });
}

std::vector<Scenario> plan_scenarios() {
    std::vector<Scenario> all = {
        {.name = "scale frequencies", .act = scale_in_c, .calls = 0},
        {.name = "create and destroy a rotation", .act = create_rotation, .calls = 0}};
    const std::pair<const char*, Status (*)(void*)> tables[] = {
        {"plan and fill a texture", plan_and_fill<VKROPE_ANGLES_DIRECT_TEXTURE>},
        {"plan and fill a buffer", plan_and_fill<VKROPE_ANGLES_DIRECT_BUFFER>},
        {"plan and fill a factored texture", plan_and_fill<VKROPE_ANGLES_FACTORED_TEXTURE>},
        {"plan and fill the numbers of computed angles", plan_and_fill<VKROPE_ANGLES_COMPUTED>},
        {"scale, plan and fill in C++", plan_and_fill_in_cpp}};
    for (const auto& [name, act] : tables) {
        all.push_back(
            {.name = name, .prepare = prepare_plan, .act = act, .calls = 0, .allocations = 0});
    }
    return all;
}

}  // namespace vkrope::test
