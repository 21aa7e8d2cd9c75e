// SPDX-License-Identifier: MIT
// Four threads record one kernel at the same time, each into its own command buffers, with push
// descriptors or with its own arena. With some kinds of kernels each thread then also makes its own
// kernel and arena on the one device, and records with them. Q and K are f32 or f16, the angles are
// from a table or computed, and f16 is converted by integers or by the device. All outputs of one
// element type and angle source must have the same bits.
// The program is built with thread sanitizer, which reports state that the library must not share.
//
//     threads                 the test
//     threads --shared-arena  breaks the rule on purpose: two threads use one arena, and the
//                             sanitizer must report them.
#include <cstdio>
#include <cstring>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "table.hpp"

namespace {

using engine::check;

// The row of a token has query heads, then key heads.
constexpr std::uint32_t thread_count = 4, frames = 3, calls = 24, head_dim = 64, q_heads = 3,
                        k_heads = 2, tokens = 37;
constexpr std::size_t values = std::size_t{tokens} * (q_heads + k_heads) * head_dim;

// The element type of a rotation, and the way in which it is computed.
struct Kind {
    const char* name;
    vkrope::Element element;
    vkrope::AngleSource angles;
    vkrope::Conversion conversion = VKROPE_CONVERSION_INTEGER;
    bool own = false;  // each thread also makes a kernel, which the driver compiles each time
};
constexpr vkrope::AngleSource factored = VKROPE_ANGLES_FACTORED_TEXTURE,
                              computed = VKROPE_ANGLES_COMPUTED;
constexpr Kind kinds[] = {
    {"f32", VKROPE_F32, factored},
    {"f16", VKROPE_F16, factored, VKROPE_CONVERSION_INTEGER, true},
    {"f16, converted by the device", VKROPE_F16, factored, VKROPE_CONVERSION_NATIVE, true},
    {"f32, computed angles", VKROPE_F32, computed}};

vkrope::KernelInfo info_of(const Kind& kind) {
    vkrope::KernelInfo info{.pairing = VKROPE_HALF_SPLIT};
    info.rotary_dim = head_dim;
    info.tensor[vkrope::Q] = info.tensor[vkrope::K] = {kind.element, kind.element, head_dim, 0};
    info.angles = kind.angles;
    info.conversion = kind.conversion;
    return info;
}

vkrope::DeviceRef device_for(const engine::Gpu& gpu, bool push) {
    vkrope::DeviceRef ref = gpu.ref();
    // One device serves both: an application may enable push descriptors and not tell vkrope.
    if (!push) ref.enabled &= ~std::uint32_t{VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR};
    return ref;
}

// The data that all threads use. It does not change while they run. No lock guards it, because a
// lock would order the threads and hide data races from the sanitizer.
struct Shared {
    const engine::Gpu& gpu;
    const vkrope::Angles& angles;
    const Kind& kind;
    vkrope::DeviceRef device;
    const vkrope::Kernel* kernel;  // if null, each thread makes a kernel

    bool push() const { return device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR; }
    VkDeviceSize bytes() const { return values * vkrope_element_bytes(kind.element); }
};

// The objects of one thread.
struct Worker {
    VkCommandPool pool = VK_NULL_HANDLE;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    vkrope::Kernel* own_kernel = nullptr;
    vkrope::DescriptorArena* arena = nullptr;  // null with push descriptors
    engine::Buffer x;
};

vkrope::Call call_on(const Shared& shared, const engine::Buffer& x, std::uint32_t index) {
    const VkDeviceSize keys = VkDeviceSize{q_heads} * head_dim *
                              vkrope_element_bytes(shared.kind.element);
    vkrope::Call call;
    call.tokens = tokens;
    call.in[vkrope::Q].where = x.whole();
    call.in[vkrope::Q].heads = q_heads;
    call.in[vkrope::K].where = {x.handle, keys, x.bytes - keys};
    call.in[vkrope::K].heads = k_heads;
    call.in[vkrope::Q].token_stride = call.in[vkrope::K].token_stride = (q_heads + k_heads) *
                                                                        head_dim;
    call.out[vkrope::Q] = call.in[vkrope::Q];
    call.out[vkrope::K] = call.in[vkrope::K];
    call.positions.first = std::int32_t(index);
    call.direction = index % 3 == 2 ? VKROPE_INVERSE : VKROPE_FORWARD;
    call.angles = shared.angles;
    return call;
}

vkrope::Kernel* make_kernel(const vkrope::DeviceRef& device, const Kind& kind) {
    const auto made = vkrope::create(device, info_of(kind));
    check(made.status, "create");
    return made.value;
}

vkrope::DescriptorArena* make_arena(const vkrope::Kernel* kernel) {
    const auto made = vkrope::create_arena(kernel, 2 * calls);
    check(made.status, "create_arena");
    return made.value;
}

void wait_for_dispatch(VkCommandBuffer commands, VkPipelineStageFlags stage, VkAccessFlags access) {
    const vkrope::Boundary boundary = vkrope::boundary();
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = boundary.output_access;
    barrier.dstAccessMask = access;
    vkCmdPipelineBarrier(commands, boundary.stage, stage, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

// Records a frame of one thread: rotations in place, one after the other. In the first frame the
// function also makes the kernel and the arena of the thread.
void record_frame(const Shared& shared, Worker& worker, std::latch& start) {
    worker.commands = shared.gpu.begin(worker.pool);
    start.arrive_and_wait();
    if (!shared.kernel && !worker.own_kernel)
        worker.own_kernel = make_kernel(shared.device, shared.kind);
    const vkrope::Kernel* kernel = shared.kernel ? shared.kernel : worker.own_kernel;
    if (!shared.push() && !worker.arena) worker.arena = make_arena(kernel);
    vkrope_arena_reset(worker.arena);  // the last frame of the thread has completed
    const vkrope::Boundary boundary = vkrope::boundary();
    for (std::uint32_t i = 0; i < calls; ++i) {
        if (i != 0) wait_for_dispatch(worker.commands, boundary.stage, boundary.in_place_access);
        check(vkrope::record(worker.commands, kernel, call_on(shared, worker.x, i), worker.arena),
              "record");
    }
    wait_for_dispatch(worker.commands, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
}

// Fills `x` with multiples of 1/512 between 1 and 2 of both signs, which are exact in both types.
void fill(void* x, vkrope::Element element) {
    for (std::size_t i = 0; i < values; ++i) {
        const std::uint32_t sign = i * 7 % 3 == 0, fraction = std::uint32_t(i * 131 % 512);
        if (element == VKROPE_F32) {
            static_cast<std::uint32_t*>(x)[i] = sign << 31 | 127u << 23 | fraction << 14;
        } else {
            static_cast<std::uint16_t*>(x)[i] = std::uint16_t(sign << 15 | 15u << 10 |
                                                              fraction << 1);
        }
    }
}

Worker make_worker(const Shared& shared) {
    Worker worker;
    worker.pool = shared.gpu.make_command_pool();
    worker.x = shared.gpu.make_buffer(shared.bytes(), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true);
    fill(worker.x.mapped, shared.kind.element);
    return worker;
}

void destroy(const engine::Gpu& gpu, Worker& worker) {
    vkrope_arena_destroy(worker.arena);
    vkrope_kernel_destroy(worker.own_kernel);
    gpu.destroy(worker.x);
    vkDestroyCommandPool(gpu.device(), worker.pool, nullptr);
}

using Bytes = std::vector<std::byte>;

// Records each frame in all threads at once, submits it from the calling thread, and returns the
// output, which all threads must have in common.
Bytes rotate_in_threads(const Shared& shared) {
    std::vector<Worker> workers(thread_count);
    for (Worker& worker : workers) worker = make_worker(shared);
    const auto* x = static_cast<const std::byte*>(workers[0].x.mapped);
    const Bytes input(x, x + shared.bytes());
    for (std::uint32_t frame = 0; frame < frames; ++frame) {
        std::latch start(thread_count);
        std::vector<std::thread> threads;
        for (Worker& worker : workers)
            threads.emplace_back([&] { record_frame(shared, worker, start); });
        for (std::thread& thread : threads) thread.join();
        for (const Worker& worker : workers) shared.gpu.submit_and_wait(worker.commands);
    }
    const Bytes output(x, x + shared.bytes());
    const std::string kind = shared.kind.name;
    if (output == input) engine::fail("threads: " + kind + ": nothing was computed");
    for (const Worker& worker : workers)
        if (std::memcmp(worker.x.mapped, output.data(), output.size()) != 0)
            engine::fail("threads: " + kind + ": two threads have different bits");
    for (Worker& worker : workers) destroy(shared.gpu, worker);
    return output;
}

// Rotates with one kernel for all threads, with push descriptors and with arenas; then, if the kind
// says so, with a kernel and an arena for each thread.
Bytes rotate_in_all_ways(const engine::Gpu& gpu, const vkrope::Angles& angles, const Kind& kind) {
    Bytes first;
    for (const bool push : {true, false}) {
        const vkrope::DeviceRef device = device_for(gpu, push);
        vkrope::Kernel* kernel = make_kernel(device, kind);
        std::vector<const vkrope::Kernel*> shared_kernels = {kernel};
        if (!push && kind.own) shared_kernels.push_back(nullptr);
        for (const vkrope::Kernel* shared_kernel : shared_kernels) {
            const Bytes output = rotate_in_threads({gpu, angles, kind, device, shared_kernel});
            if (first.empty()) first = output;
            if (output != first)
                engine::fail(std::string("threads: ") + kind.name +
                             ": two ways to record have different bits");
        }
        vkrope_kernel_destroy(kernel);
    }
    return first;
}

// Returns whether the device can convert f16 natively; if not, prints the reason.
bool converts_natively(const engine::Gpu& gpu, const Kind& kind) {
    const auto made = vkrope::create(gpu.ref(), info_of(kind));
    vkrope_kernel_destroy(made.value);
    if (made.status.code == VKROPE_ERROR_NOT_SUPPORTED) {
        std::printf("threads: %s: left out: %s\n", kind.name, made.status.what);
        return false;
    }
    check(made.status, "create");
    return true;
}

// Does what the contract forbids. The commands are only recorded and never submitted.
void share_an_arena(const engine::Gpu& gpu, const vkrope::Angles& angles) {
    const vkrope::DeviceRef device = device_for(gpu, false);
    vkrope::Kernel* kernel = make_kernel(device, kinds[0]);
    const Shared shared{gpu, angles, kinds[0], device, kernel};
    Worker one = make_worker(shared), two = make_worker(shared);
    one.arena = make_arena(kernel);
    const auto record = [&](Worker& worker) {
        worker.commands = gpu.begin(worker.pool);
        for (std::uint32_t i = 0; i < calls / 2; ++i)
            check(vkrope::record(worker.commands, kernel, call_on(shared, worker.x, i), one.arena),
                  "record");
    };
    std::thread other([&] { record(two); });
    record(one);
    other.join();
    destroy(gpu, two);
    destroy(gpu, one);
    vkrope_kernel_destroy(kernel);
}

}  // namespace

int main(int argc, char** argv) {
    const bool break_the_rule = argc == 2 && std::strcmp(argv[1], "--shared-arena") == 0;
    if (argc > 1 && !break_the_rule)
        return std::fprintf(stderr, "usage: threads [--shared-arena]\n"), 2;
    engine::Gpu gpu(engine::Enable::extensions);
    if (!(gpu.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        engine::fail("threads: the device offers no push descriptors");
    const vkrope::RopeParams rotation = engine::plain_rotation(head_dim);
    const VkCommandPool pool = gpu.make_command_pool();
    const VkCommandBuffer commands = gpu.begin(pool);
    engine::Table table = engine::upload_table(gpu, commands, rotation, calls + tokens);
    gpu.submit_and_wait(commands);
    const auto turns = vkrope::plan_angles(rotation, computed, 1, 0);
    check(turns.status, "plan_angles");
    engine::Buffer numbers = gpu.make_buffer(turns.value.bytes, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT,
                                             true);
    check(vkrope::fill_angles(rotation, turns.value, numbers.mapped, turns.value.bytes),
          "fill_angles");
    const vkrope::Angles of_table = table.angles(),
                         of_numbers = {&turns.value, VK_NULL_HANDLE, numbers.whole()};

    if (break_the_rule) {
        share_an_arena(gpu, of_table);
    } else {
        std::map<std::pair<vkrope::Element, vkrope::AngleSource>, Bytes> outputs;
        for (const Kind& kind : kinds) {
            if (kind.conversion == VKROPE_CONVERSION_NATIVE && !converts_natively(gpu, kind))
                continue;
            const Bytes output = rotate_in_all_ways(
                gpu, kind.angles == computed ? of_numbers : of_table, kind);
            const auto [same, is_new] = outputs.emplace(std::pair(kind.element, kind.angles),
                                                        output);
            if (!is_new && same->second != output)
                engine::fail(std::string("threads: ") + kind.name + ": different bits than before");
            std::printf(
                "threads: %s: %u threads, %u frames of %u calls; one kernel%s, push descriptors "
                "and arenas: same bits\n",
                kind.name, thread_count, frames, calls, kind.own ? " and a kernel each" : "");
        }
    }
    gpu.destroy(numbers);
    gpu.destroy(table.staging);
    gpu.destroy(table.image);
    vkDestroyCommandPool(gpu.device(), pool, nullptr);
    return gpu.messages() == 0 ? 0 : 1;
}
