// SPDX-License-Identifier: MIT
// An engine with its own Vulkan device rotates the Q and K of packed QKV rows in place, in its own
// command buffer between two copies, and compares every value with cos and sin. The engine is built
// with the loader, with volk (ENGINE_VOLK), with no features enabled (ENGINE_NO_PUSH), without
// extensions on Vulkan 1.2 (ENGINE_VULKAN_1_2), and in C++17 with the library's sources. Then it
// runs the layers of layers.hpp, and moves.hpp.
//
//     engine                      the test
//     engine --without-a-barrier  breaks the rule on purpose: reads Q and K back too early, which
//                                 the validation layer must report.
#include <cmath>
#include <cstdio>
#include <cstring>

#include "layers.hpp"
#include "moves.hpp"

namespace {

#if defined(ENGINE_NO_PUSH)
constexpr engine::Enable enable = engine::Enable::nothing;
#elif defined(ENGINE_VULKAN_1_2)
constexpr engine::Enable enable = engine::Enable::vulkan_1_2;
#else
constexpr engine::Enable enable = engine::Enable::extensions;
#endif

// The row of a token has query heads, then key heads, then value heads.
constexpr std::uint32_t head_dim = 64, q_heads = 4, k_heads = 2, row_heads = q_heads + 2 * k_heads,
                        tokens = 19;
constexpr std::size_t values = std::size_t{tokens} * row_heads * head_dim;
constexpr VkDeviceSize bytes = values * sizeof(float);
constexpr std::int32_t first_positions[] = {5, 40};  // the first position of each frame
constexpr std::uint32_t frames = 2;

float input(std::size_t i) {
    return float(int(i * 2654435761u >> 8 & 0xffff) - 0x8000) / 8192.0f;
}

// Returns the heads of Q or of K as a view into the packed rows.
vkrope::Tensor heads_of(const engine::Buffer& qkv, std::uint32_t first, std::uint32_t count) {
    vkrope::Tensor tensor;
    const VkDeviceSize offset = VkDeviceSize{first} * head_dim * sizeof(float);
    tensor.where = {qkv.handle, offset, bytes - offset};
    tensor.heads = count;
    tensor.token_stride = row_heads * head_dim;
    return tensor;
}

vkrope::Call frame_call(const engine::Buffer& qkv, const engine::Table& table,
                        std::int32_t first_position) {
    vkrope::Call call;
    call.tokens = tokens;
    call.in[vkrope::Q] = call.out[vkrope::Q] = heads_of(qkv, 0, q_heads);
    call.in[vkrope::K] = call.out[vkrope::K] = heads_of(qkv, q_heads, k_heads);
    call.positions.first = first_position;
    call.angles = table.angles();
    return call;
}

// Counts the values that differ from the definition by more than the contract allows, and the
// values that changed though they should not.
unsigned wrong_values(const vkrope::RopeParams& rotation, vkrope::AngleSource source,
                      std::int32_t first_position, const float* rotated) {
    const double u = vkrope_error_bound(source, rotation.attention_factor) * 0x1p-24;
    unsigned wrong = 0;
    for (std::uint32_t row = 0; row < tokens * row_heads; ++row) {
        const std::size_t at = std::size_t{row} * head_dim;
        const bool turns = row % row_heads < q_heads + k_heads;
        const double position = first_position + std::int32_t(row / row_heads);
        for (std::uint32_t j = 0; j < head_dim / 2; ++j) {
            const double x0 = input(at + j), x1 = input(at + j + head_dim / 2);
            const double angle = turns ? position * rotation.inv_freq[j] : 0.0;
            const double bound = turns ? u * (std::fabs(x0) + std::fabs(x1)) : 0.0;
            const double y0 = x0 * std::cos(angle) - x1 * std::sin(angle),
                         y1 = x0 * std::sin(angle) + x1 * std::cos(angle);
            wrong += !(std::fabs(rotated[at + j] - y0) <= bound);
            wrong += !(std::fabs(rotated[at + j + head_dim / 2] - y1) <= bound);
        }
    }
    return wrong;
}

}  // namespace

int main(int argc, char** argv) {
    using engine::check;
    using engine::memory_barrier;
    const bool break_the_rule = argc == 2 && std::strcmp(argv[1], "--without-a-barrier") == 0;
    if (argc > 1 && !break_the_rule)
        return std::fprintf(stderr, "usage: engine [--without-a-barrier]\n"), 2;
    engine::Gpu gpu(enable);
    const VkCommandPool pool = gpu.make_command_pool();

    const vkrope::RopeParams rotation = engine::plain_rotation(head_dim);
    VkCommandBuffer commands = gpu.begin(pool);
    engine::Table table = engine::upload_table(gpu, commands, rotation, 64);
    gpu.submit_and_wait(commands);
    gpu.destroy(table.staging);

    const auto info = vkrope::kernel_info(rotation, table.plan, VKROPE_F32, VKROPE_F32);
    check(info.status, "kernel_info");
    const auto kernel = vkrope::own(vkrope::create(gpu.ref(), info.value));
    check(kernel.status, "create");
    vkrope::Owned<vkrope::DescriptorArena> arena;  // has two sets, as a frame may need two
    if (!(gpu.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
        auto made = vkrope::own(vkrope::create_arena(kernel.value.get(), 2));
        check(made.status, "create_arena");
        arena = std::move(made.value);
    }
    // The modules of this kernel declare float controls and 16-bit floats, whether these were
    // enabled as extensions or as part of Vulkan 1.2.
    if (gpu.ref().enabled & VKROPE_DEVICE_FEATURE_SHADER_FLOAT16) {
        auto half = info.value;
        half.tensor[vkrope::Q].in = half.tensor[vkrope::Q].out = half.tensor[vkrope::K].in =
            half.tensor[vkrope::K].out = VKROPE_F16;
        half.conversion = VKROPE_CONVERSION_NATIVE;
        check(vkrope::own(vkrope::create(gpu.ref(), half)).status, "create, native f16");
    }

    engine::Buffer upload = gpu.make_buffer(bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, true);
    engine::Buffer qkv = gpu.make_buffer(bytes,
                                         VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                             VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                             VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                         false);
    engine::Buffer readback = gpu.make_buffer(bytes, VK_BUFFER_USAGE_TRANSFER_DST_BIT, true);
    for (std::size_t i = 0; i < values; ++i) static_cast<float*>(upload.mapped)[i] = input(i);

    unsigned wrong = 0;
    std::uint64_t bits = 0;  // a hash of all results, for comparing builds
    const vkrope::Boundary boundary = vkrope::boundary();
    for (const std::int32_t first_position : first_positions) {
        vkrope_arena_reset(arena.get());  // the previous frame has completed
        commands = gpu.begin(pool);
        const VkBufferCopy whole = {0, 0, bytes};
        vkCmdCopyBuffer(commands, upload.handle, qkv.handle, 1, &whole);
        memory_barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                       boundary.stage, boundary.in_place_access);
        check(vkrope::record(commands, kernel.value.get(), frame_call(qkv, table, first_position),
                             arena.get()),
              "record");
        if (!break_the_rule) {
            memory_barrier(commands, boundary.stage, boundary.output_access,
                           VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
        }
        vkCmdCopyBuffer(commands, qkv.handle, readback.handle, 1, &whole);
        memory_barrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
                       VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
        gpu.submit_and_wait(commands);
        for (std::size_t i = 0; i < values; ++i) {
            std::uint32_t word;
            std::memcpy(&word, static_cast<const float*>(readback.mapped) + i, sizeof word);
            bits = (bits ^ word) * 0x100000001b3;
        }
        wrong += wrong_values(rotation, table.plan.source, first_position,
                              static_cast<const float*>(readback.mapped));
    }

    const engine::Layers layers(gpu, pool, rotation, table);
    const engine::Moves moves(gpu, pool);
    wrong += layers.wrong() + moves.wrong();

    gpu.destroy(table.image);
    for (engine::Buffer* buffer : {&upload, &qkv, &readback}) gpu.destroy(*buffer);
    vkDestroyCommandPool(gpu.device(), pool, nullptr);

    std::printf(
        "%s: %s, %s: %u frames, %u of %zu values wrong, %u validation messages, "
        "bits %llx\n",
        ENGINE_NAME, gpu.properties().deviceName, arena ? "descriptor arena" : "push descriptors",
        frames, wrong, frames * values + layers.values() + moves.values(), gpu.messages(),
        static_cast<unsigned long long>(bits));
    if (enable != engine::Enable::extensions && !arena)
        engine::fail("push descriptors were enabled");
    return wrong == 0 && gpu.messages() == 0 ? 0 : 1;
}
