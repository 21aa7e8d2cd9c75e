// SPDX-License-Identifier: MIT
// The C interface, with every call and every allocation failing in turn. Linked with the shared
// library. Without the model tier; plan_failure_test.cpp gives the reason.
#include "c_scenarios.hpp"
#include "tolerances.hpp"

namespace vkrope::test {

TEST_CASE("C: every call fails with every result that it may have") {
    fail_every_call(plan_scenarios_in_c());
    fail_every_call(kernel_scenarios_in_c(), kernel_tolerances());
    fail_every_call(runtime_scenarios_in_c(), runtime_tolerances());
}

TEST_CASE("C: every host allocation fails") {
    fail_every_allocation(plan_scenarios_in_c());
    fail_every_allocation(kernel_scenarios_in_c());
    fail_every_allocation(runtime_scenarios_in_c());
}

}  // namespace vkrope::test
