// SPDX-License-Identifier: MIT
#include <array>

#include "c_scenarios.hpp"

namespace vkrope::test {

namespace {

const std::array<double, 4> frequencies = {1.0, 0.1, 0.01, 0.001};

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

namespace {

Status scale(void*) {
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

}  // namespace

std::vector<Scenario> plan_scenarios_in_c() {
    return {
        {.name = "scale frequencies, from C", .act = scale, .calls = 0},
        {.name = "create and destroy a rotation, from C", .act = create_rotation, .calls = 0},
        {.name = "plan and fill a texture, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_DIRECT_TEXTURE>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill a buffer, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_DIRECT_BUFFER>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill a factored texture, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_FACTORED_TEXTURE>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill the numbers of computed angles, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_COMPUTED>,
         .calls = 0,
         .allocations = 0},
    };
}

}  // namespace vkrope::test
