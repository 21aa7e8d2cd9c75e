// SPDX-License-Identifier: MIT
// Eight threads record one kernel at the same time, each into command buffers of its own, with push descriptors and with an arena each.
// Their outputs have the same bits. Built with thread sanitizer, which says whether the library shares more than it may.
//
//     threads                 the test
//     threads --shared-arena  breaks the rule on purpose: two threads use one arena. The sanitizer must report it.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <latch>
#include <thread>

#include "table.hpp"

namespace {

using engine::check;

constexpr std::uint32_t thread_count = 8, frames = 3, calls = 48, head_dim = 64, heads = 3, tokens = 37;
constexpr std::size_t values = std::size_t{tokens} * heads * head_dim;
constexpr VkDeviceSize bytes = values * sizeof(float);

// What all threads use. Nothing of it changes while they run, and nothing guards it: a lock would order the threads, and hide from the
// sanitizer what they share.
struct Shared {
    const engine::Gpu& gpu;
    const engine::Table& table;
    const vkrope::Kernel* kernel;
};

// What one thread has for itself.
struct Worker {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    vkrope::DescriptorArena* arena = nullptr;  // null with push descriptors
    engine::Buffer x;
};

vkrope::Call call_on(const engine::Buffer& x, const engine::Table& table, std::uint32_t index) {
    vkrope::Call call;
    call.tokens = tokens;
    call.q_in.where = x.whole();
    call.q_in.heads = heads;
    call.q_out = call.q_in;
    call.positions.first = std::int32_t(index);
    call.direction = index % 3 == 2 ? vkrope::Direction::inverse : vkrope::Direction::forward;
    call.angles = table.angles();
    return call;
}

void wait_for_dispatch(VkCommandBuffer commands, VkPipelineStageFlags stage, VkAccessFlags access) {
    const vkrope::Boundary boundary = vkrope::boundary();
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = boundary.output_access;
    barrier.dstAccessMask = access;
    vkCmdPipelineBarrier(commands, boundary.stage, stage, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// A frame of one thread: rotations in place, one after the other.
void record_frame(const Shared& shared, Worker& worker, std::latch& start) {
    vkrope::reset(worker.arena);  // its last frame has completed
    worker.commands = shared.gpu.begin(worker.pool);
    start.arrive_and_wait();
    const vkrope::Boundary boundary = vkrope::boundary();
    for (std::uint32_t i = 0; i < calls; ++i) {
        if (i != 0) wait_for_dispatch(worker.commands, boundary.stage, boundary.in_place_access);
        check(vkrope::record(worker.commands, shared.kernel, call_on(worker.x, shared.table, i), worker.arena), "record");
    }
    wait_for_dispatch(worker.commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

Worker make_worker(const Shared& shared, bool needs_arena) {
    Worker worker;
    worker.pool = shared.gpu.make_command_pool();
    worker.x = shared.gpu.make_buffer(bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true);
    for (std::size_t i = 0; i < values; ++i) static_cast<float*>(worker.x.mapped)[i] = float(i % 509) / 64 - 4;
    if (needs_arena) {
        const auto made = vkrope::create_arena(shared.kernel, calls);
        check(made.status, "create_arena");
        worker.arena = made.value;
    }
    return worker;
}

void destroy(const engine::Gpu& gpu, Worker& worker) {
    vkrope::destroy(worker.arena);
    gpu.destroy(worker.x);
    vkDestroyCommandPool(gpu.device(), worker.pool, nullptr);
}

// Records each frame in all threads at once, submits it from this one, and returns what every thread computed.
std::vector<float> rotate_in_threads(const Shared& shared, bool needs_arena) {
    std::vector<Worker> workers(thread_count);
    for (Worker& worker : workers) worker = make_worker(shared, needs_arena);
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
        std::latch start(thread_count);
        std::vector<std::thread> threads;
        for (Worker& worker : workers) threads.emplace_back([&] { record_frame(shared, worker, start); });
        for (std::thread& thread : threads) thread.join();
        for (const Worker& worker : workers) shared.gpu.submit_and_wait(worker.commands);
    }
    const auto* first = static_cast<const float*>(workers[0].x.mapped);
    const std::vector<float> output(first, first + values);
    for (Worker& worker : workers) {
        if (std::memcmp(worker.x.mapped, output.data(), bytes) != 0) engine::fail("threads: two threads have other bits");
        destroy(shared.gpu, worker);
    }
    return output;
}

vkrope::Kernel* make_kernel(const vkrope::DeviceRef& device) {
    vkrope::KernelInfo info;
    info.rotary_dim = info.q.head_dim = head_dim;
    const auto made = vkrope::create(device, info);
    check(made.status, "create");
    return made.value;
}

// What the contract forbids. Recorded only: the commands are thrown away.
void share_an_arena(const Shared& shared) {
    Worker one = make_worker(shared, true), two = make_worker(shared, false);
    const auto record = [&](Worker& worker) {
        worker.commands = shared.gpu.begin(worker.pool);
        for (std::uint32_t i = 0; i < calls / 3; ++i) {
            check(vkrope::record(worker.commands, shared.kernel, call_on(worker.x, shared.table, i), one.arena), "record");
        }
    };
    std::thread other([&] { record(two); });
    record(one);
    other.join();
    destroy(shared.gpu, two);
    destroy(shared.gpu, one);
}

}  // namespace

int main(int argc, char** argv) {
    const bool break_the_rule = argc == 2 && std::strcmp(argv[1], "--shared-arena") == 0;
    if (argc > 1 && !break_the_rule) return std::fprintf(stderr, "usage: threads [--shared-arena]\n"), 2;
    engine::Gpu gpu(true);
    vkrope::Rotation rotation;
    rotation.head_dim = rotation.rotary_dim = head_dim;
    rotation.inv_freq = vkrope::default_inv_freq(10000.0, head_dim).value;
    const VkCommandPool pool = gpu.make_command_pool();
    const VkCommandBuffer commands = gpu.begin(pool);
    engine::Table table = engine::upload_table(gpu, commands, rotation, calls + tokens);
    gpu.submit_and_wait(commands);

    // One device for both: an application may well enable push descriptors and not tell vkrope.
    vkrope::DeviceRef without = gpu.ref();
    without.enabled &= ~std::uint32_t{vkrope::push_descriptor};
    vkrope::Kernel* pushing = make_kernel(gpu.ref());
    vkrope::Kernel* setting = make_kernel(without);
    if (break_the_rule) {
        share_an_arena({gpu, table, setting});
    } else {
        const std::vector<float> pushed = rotate_in_threads({gpu, table, pushing}, !(gpu.ref().enabled & vkrope::push_descriptor));
        const std::vector<float> set = rotate_in_threads({gpu, table, setting}, true);
        if (std::memcmp(pushed.data(), set.data(), bytes) != 0) engine::fail("threads: sets and push descriptors have other bits");
        if (std::all_of(set.begin(), set.end(), [](float value) { return value == 0; }))
            engine::fail("threads: nothing was computed");
    }
    vkrope::destroy(setting);
    vkrope::destroy(pushing);
    gpu.destroy(table.staging);
    gpu.destroy(table.image);
    vkDestroyCommandPool(gpu.device(), pool, nullptr);
    std::printf("threads: %u threads, %u frames of %u calls, push descriptors %s, then arenas: same bits\n", thread_count, frames,
                calls, (gpu.ref().enabled & vkrope::push_descriptor) ? "on" : "not offered");
    return gpu.messages() == 0 ? 0 : 1;
}
