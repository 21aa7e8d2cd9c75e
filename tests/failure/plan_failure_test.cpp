// SPDX-License-Identifier: MIT
// From a model's numbers to a table: nothing calls Vulkan, and nothing allocates memory.
//
// Reading the numbers from a file is not included. The destructor of nlohmann::json allocates, and
// ends the program if that fails, so allocations of the model tier cannot be failed.
#include <doctest/doctest.h>

#include "injection.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope::test {

namespace {

// The memory that the frequencies tier writes to belongs to the caller.
struct Prepared {
    Rotation rotation{.head_dim = 128, .rotary_dim = 128, .inv_freq = std::vector<double>(64)};
    std::vector<float> memory = std::vector<float>(17 * 128);
};

template <AngleSource source>
Status plan_and_fill(void* prepared) {
    auto& [rotation, memory] = *static_cast<Prepared*>(prepared);
    if (Status s = default_inv_freq(500000.0, 128, rotation.inv_freq.data()); !s) return s;
    if (Status s = scale_llama3(rotation.inv_freq, {8, 1, 4, 8192}); !s) return s;
    if (Status s = scale_linear(rotation.inv_freq, 2); !s) return s;
    const Result<AnglePlan> plan = plan_angles(rotation, source, 16, 4096);
    if (!plan) return plan.status;
    return fill_angles(rotation, plan.value, memory.data(), memory.size() * sizeof(float));
}

std::vector<Scenario> scenarios() {
    const auto prepare = [] { return std::make_shared<Prepared>(); };
    return {
        {.name = "plan and fill a texture",
         .prepare = prepare,
         .act = plan_and_fill<VKROPE_ANGLES_DIRECT_TEXTURE>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill a buffer",
         .prepare = prepare,
         .act = plan_and_fill<VKROPE_ANGLES_DIRECT_BUFFER>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill a factored texture",
         .prepare = prepare,
         .act = plan_and_fill<VKROPE_ANGLES_FACTORED_TEXTURE>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill the numbers of computed angles",
         .prepare = prepare,
         .act = plan_and_fill<VKROPE_ANGLES_COMPUTED>,
         .calls = 0,
         .allocations = 0},
    };
}

}  // namespace

TEST_CASE("frequencies tier: no call can fail") {
    fail_every_call(scenarios());
}

TEST_CASE("frequencies tier: there is no host allocation to fail") {
    fail_every_allocation(scenarios());
}

}  // namespace vkrope::test
