// SPDX-License-Identifier: MIT
// C++17, no exceptions, no Vulkan device, not even a loader: tables are made, and what needs a device says what is missing.
#include <cmath>
#include <cstdio>
#include <vector>

#include "vkrope/frequencies.hpp"
#include "vkrope/kernel.hpp"

namespace {

int failures = 0;

void expect(bool condition, const char* sentence) {
    if (condition) return;
    std::fprintf(stderr, "subdirectory: %s\n", sentence);
    ++failures;
}

bool refused(const vkrope::Status& status) {
    return status.code == vkrope::Code::invalid_argument && status.what[0] != '\0';
}

}  // namespace

int main() {
    vkrope::Rotation rotation;
    rotation.head_dim = rotation.rotary_dim = 8;
    rotation.inv_freq = vkrope::default_inv_freq(10000.0, 8).value;
    const auto plan = vkrope::plan_angles(rotation, vkrope::AngleSource::direct_buffer, 4, 0);
    expect(bool(plan), "plan_angles failed");
    std::vector<float> table(plan.value.bytes / sizeof(float));
    expect(bool(vkrope::fill_angles(rotation, plan.value, table.data(), table.size() * sizeof(float))), "fill_angles failed");
    expect(table.size() == 4 * 8 && table[3 * 8] == std::cos(3.0f) && table[3 * 8 + 1] == std::sin(3.0f), "the table is wrong");

    expect(refused(vkrope::requirements(VK_NULL_HANDLE, VK_NULL_HANDLE, nullptr).status), "requirements took null handles");
    expect(refused(vkrope::create({}, {}).status), "create took a null device");
    expect(refused(vkrope::create_arena(nullptr, 1).status), "create_arena took a null kernel");
    expect(refused(vkrope::record(VK_NULL_HANDLE, nullptr, {})), "record took null handles");
    vkrope::destroy(static_cast<vkrope::Kernel*>(nullptr));
    vkrope::destroy(static_cast<vkrope::DescriptorArena*>(nullptr));
    expect(vkrope::boundary().stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, "boundary names another stage");
    if (failures == 0) std::puts("subdirectory: kernel and frequencies alone, without a device");
    return failures != 0;
}
