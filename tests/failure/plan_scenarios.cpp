// SPDX-License-Identifier: MIT
// Scenarios from a model's parameters to an angle table. None calls Vulkan, and functions that
// write into the caller's memory allocate none.
//
// Reading a model's file is not included, because both formats are read into nlohmann::json, which
// ends the program if one of its allocations fails in a destructor.
#include <array>

#include "scenarios.hpp"

namespace vkrope::test {

namespace {

const std::array<double, 4> frequencies = {1.0, 0.1, 0.01, 0.001};

Status scale_in_c(void*) {
    std::array<double, 4> scaled = {};
    if (Status s = answer(vkrope_default_inv_freq, 10000.0, 8, scaled.data()); !s) return s;
    vkrope_llama3_scaling llama3 = {};
    llama3.factor = 8;
    llama3.low_freq_factor = 1;
    llama3.high_freq_factor = 4;
    llama3.original_max_position_embeddings = 8192;
    const std::array<double, 4> before = scaled;
    const Status status = answer(vkrope_scale_llama3, scaled.data(), 4, &llama3);
    if (!status) CHECK(scaled == before);
    if (!status) return status;
    return answer(vkrope_scale_linear, scaled.data(), 4, 2);
}

struct Planned {
    std::array<float, 17 * 8> memory = {};
};

std::shared_ptr<void> prepare_plan() {
    return std::make_shared<Planned>();
}

template <vkrope_angle_source source>
Status plan_and_fill(void* prepared) {
    auto& planned = *static_cast<Planned*>(prepared);
    const vkrope_rope_params rotation = eight_channels();
    vkrope_angle_table_layout plan = {};
    if (Status s = answer(vkrope_plan_angles, &rotation, source, 16, 4096, &plan); !s) return s;
    return answer(vkrope_fill_angles, &rotation, &plan, planned.memory.data(),
                  sizeof planned.memory);
}

}  // namespace

vkrope_rope_params eight_channels() {
    vkrope_rope_params rotation = {};
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = 8;
    rotation.inv_freq = frequencies.data();
    rotation.inv_freq_count = frequencies.size();
    return rotation;
}

std::vector<Scenario> plan_scenarios() {
    std::vector<Scenario> all = {
        {.name = "scale frequencies", .act = scale_in_c, .calls = 0, .allocations = 0}};
    const std::pair<const char*, Status (*)(void*)> tables[] = {
        {"plan and fill a texture", plan_and_fill<VKROPE_ANGLES_DIRECT_TEXTURE>},
        {"plan and fill a buffer", plan_and_fill<VKROPE_ANGLES_DIRECT_BUFFER>},
        {"plan and fill a factored texture", plan_and_fill<VKROPE_ANGLES_FACTORED_TEXTURE>},
        {"plan and fill the numbers of computed angles", plan_and_fill<VKROPE_ANGLES_COMPUTED>}};
    for (const auto& [name, act] : tables) {
        all.push_back(
            {.name = name, .prepare = prepare_plan, .act = act, .calls = 0, .allocations = 0});
    }
    return all;
}

}  // namespace vkrope::test
