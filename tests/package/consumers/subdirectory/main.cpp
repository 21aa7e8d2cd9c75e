// SPDX-License-Identifier: MIT
// Kernel and frequencies alone, in C++17 without exceptions: first without a device, where what
// needs one says what is missing; then one row is rotated on a device of the application's own.
#include <cmath>
#include <cstdio>
#include <vector>

#include "table.hpp"

namespace {

int failures = 0;

void expect(bool condition, const char* sentence) {
    if (condition) return;
    std::fprintf(stderr, "subdirectory: %s\n", sentence);
    ++failures;
}

bool refused(const vkrope::Status& status) {
    return status.code == VKROPE_ERROR_INVALID_ARGUMENT && status.what[0] != '\0';
}

void without_a_device() {
    const vkrope::RopeParams rotation = engine::plain_rotation(8);
    const auto plan = vkrope::plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, 4, 0);
    expect(bool(plan), "plan_angles failed");
    std::vector<float> table(plan.value.bytes / sizeof(float));
    expect(
        bool(vkrope::fill_angles(rotation, plan.value, table.data(), table.size() * sizeof(float))),
        "fill_angles failed");
    expect(table.size() == 4 * 8 && table[3 * 8] == std::cos(3.0f) &&
               table[3 * 8 + 1] == std::sin(3.0f),
           "the table is wrong");

    expect(refused(vkrope::requirements(VK_NULL_HANDLE, VK_NULL_HANDLE, nullptr).status),
           "requirements took null handles");
    expect(refused(vkrope::create({}, {}).status), "create took a null device");
    expect(refused(vkrope::create_arena(static_cast<const vkrope::Kernel*>(nullptr), 1).status),
           "create_arena took a null kernel");
    expect(refused(vkrope::record(VK_NULL_HANDLE, nullptr, {})), "record took null handles");
    vkrope_kernel_destroy(nullptr);
    vkrope_arena_destroy(nullptr);
    expect(vkrope::boundary().stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
           "boundary names another stage");
}

// A key row at position 7.
void with_a_device() {
    using engine::check;
    constexpr std::uint32_t head_dim = 32, pairs = head_dim / 2;
    constexpr std::int32_t position = 7;
    const engine::Gpu gpu(engine::Enable::extensions);
    const VkCommandPool pool = gpu.make_command_pool();
    const vkrope::RopeParams rotation = engine::plain_rotation(head_dim);
    vkrope::KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    info.rotary_dim = info.tensor[vkrope::K].head_dim = head_dim;
    const auto kernel = vkrope::create(gpu.ref(), info);
    check(kernel.status, "create");
    vkrope::DescriptorArena* arena = nullptr;
    if (!(gpu.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
        const auto made = vkrope::create_arena(kernel.value, 1);
        check(made.status, "create_arena");
        arena = made.value;
    }
    engine::Buffer row = gpu.make_buffer(head_dim * sizeof(float),
                                         VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true);
    auto* x = static_cast<float*>(row.mapped);
    std::vector<double> before(head_dim);
    for (std::uint32_t i = 0; i < head_dim; ++i) before[i] = x[i] = float(i * 13 % 29) / 8 - 1;

    const VkCommandBuffer commands = gpu.begin(pool);
    engine::Table table = engine::upload_table(gpu, commands, rotation, position + 1);
    vkrope::Call call;
    call.tokens = 1;
    call.in[vkrope::K].where = row.whole();
    call.in[vkrope::K].heads = 1;
    call.out[vkrope::K] = call.in[vkrope::K];
    call.positions.first = position;
    call.angles = table.angles();
    check(vkrope::record(commands, kernel.value, call, arena), "record");
    const vkrope::Boundary boundary = vkrope::boundary();
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = boundary.output_access;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, boundary.stage, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                         nullptr, 0, nullptr);
    gpu.submit_and_wait(commands);

    for (std::uint32_t j = 0; j < pairs; ++j) {
        const double x0 = before[j], x1 = before[j + pairs],
                     angle = position * rotation.inv_freq[j];
        const double bound = vkrope_error_bound(table.plan.source, 1) * 0x1p-24 *
                             (std::fabs(x0) + std::fabs(x1));
        expect(std::fabs(x[j] - (x0 * std::cos(angle) - x1 * std::sin(angle))) <= bound,
               "a first channel is wrong");
        expect(std::fabs(x[j + pairs] - (x0 * std::sin(angle) + x1 * std::cos(angle))) <= bound,
               "a second channel is wrong");
    }
    expect(gpu.messages() == 0, "the validation layer had something to say");
    vkrope_arena_destroy(arena);
    vkrope_kernel_destroy(kernel.value);
    gpu.destroy(table.staging);
    gpu.destroy(table.image);
    gpu.destroy(row);
    vkDestroyCommandPool(gpu.device(), pool, nullptr);
}

}  // namespace

int main() {
    without_a_device();
    with_a_device();
    std::printf(
        "subdirectory: kernel and frequencies alone, without a device and with one: %d failures\n",
        failures);
    return failures != 0;
}
