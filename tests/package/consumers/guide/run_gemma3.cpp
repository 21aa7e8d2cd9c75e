// SPDX-License-Identifier: MIT
// Runs the blocks of gemma3.md in a sliding and in a full layer: a ragged prefill, then a decode
// step. Compares Q and the caches with loops that use nothing of the library.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../engine/table.hpp"
#include "my.hpp"

vkrope::Status gemma3_1();
vkrope::Status gemma3_2();

namespace {

using Half = std::uint16_t;
using Lengths = std::int32_t[3];  // of each sequence

constexpr std::uint32_t head_dim = 256, pairs = 128, heads[] = {8, 4, 4}, page = 16;
constexpr Lengths none = {}, prompts = {3, 20, 5}, all = {4, 21, 6};
constexpr Half unwritten = 0x5a5a;  // 203: larger than every result

struct Row {
    std::uint32_t tensor, layer, sequence = 0, head = 0;
    std::int32_t position = 0;

    std::uint32_t slot() const {
        constexpr std::uint32_t pages[3][2] = {{3}, {0, 2}, {1}};
        return pages[sequence][position / page] * page + position % page;
    }
    bool is_negative(std::uint32_t pair) const { return (pair + 5 * sequence + 3 * head) % 8 > 3; }
    float weight(std::uint32_t c) const {
        return float((37 * c + 11 * tensor + 5 * layer) % 64) / 64 - 0.5f;
    }
    // Each pair of Q and K is the point (1, 0) or (-1, 0), and V has other bits in each row.
    Half given(std::uint32_t c) const {
        if (tensor == vkrope::V) return Half(slot() << 8 | head << 5 | layer << 4 | c % 8);
        return c >= pairs ? 0 : is_negative(c) ? 0xbc00 : 0x3c00;
    }
    double exact(std::uint32_t c) const {
        const std::uint32_t pair = c % pairs;
        const double root = std::sqrt(0.5 + 1e-6), length = (1.0 + weight(pair)) / root,
                     angle = layer == 0 ? position * std::pow(1e4, -2.0 * pair / head_dim)
                                        : position / 8.0 * std::pow(1e6, -2.0 * pair / head_dim);
        const double turned = c < pairs ? std::cos(angle) : std::sin(angle);
        return (is_negative(pair) ? -1 : 1) * length * turned;
    }
    // The contract allows 11 u for the norm, and 6 u for the rotation.
    bool has(std::uint32_t c, Half half) const {
        if (tensor == vkrope::V) return half == given(c);
        const int exponent = half >> 10 & 31, unit = std::max(exponent, 1) - 25;
        const double size = std::ldexp((exponent ? 1024 : 0) + (half & 1023), unit),
                     got = half >> 15 ? -size : size;
        return std::abs(got - exact(c)) <= 18 * 0x1p-24 * 2.2 + std::ldexp(0.5, unit);
    }
};

// Calls `with` for the channels at the positions from `first` to `end`, with the index of the
// token.
template <class With>
void for_channels(Row row, const Lengths& first, const Lengths& end, const With& with) {
    std::uint32_t token = 0;
    for (row.sequence = 0; row.sequence < 3; ++row.sequence)
        for (row.position = first[row.sequence]; row.position < end[row.sequence]; ++row.position)
            for (row.head = 0, ++token; row.head < heads[row.tensor]; ++row.head)
                for (std::uint32_t c = 0; c < head_dim; ++c) with(row, token - 1, c);
}

}  // namespace

int main() {
    using engine::check;
    engine::Gpu gpu(engine::Enable::extensions);
    const VkCommandPool pool = gpu.make_command_pool();
    std::vector<engine::Table> tables;
    std::vector<engine::Buffer> buffers;
    const auto upload = [&](const auto& numbers) {
        const std::size_t bytes = numbers.size() * sizeof numbers[0];
        buffers.push_back(gpu.make_buffer(bytes, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true));
        std::memcpy(buffers.back().mapped, numbers.data(), bytes);
        return buffers.back().whole();
    };
    my::ref = gpu.ref();
    my::config_json = R"({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text",
        "hidden_size": 2560, "num_hidden_layers": 34, "sliding_window": 1024,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}})";
    my::properties = gpu.properties();
    my::q_heads = heads[vkrope::Q];
    my::k_heads = heads[vkrope::K];
    my::arenas.resize(1);
    my::make_table = [&](const vkrope::RopeParams& rope, const vkrope::AngleTableLayout& plan) {
        my::commands = gpu.begin(pool);
        tables.push_back(engine::upload_table(gpu, my::commands, plan, [&](void* texels) {
            check(vkrope::fill_angles(rope, plan, texels, plan.bytes), "fill_angles");
        }));
        gpu.submit_and_wait(my::commands);
        return tables.back().image.view;
    };
    my::barrier = [](VkAccessFlags from, VkAccessFlags to) {
        const VkMemoryBarrier memory = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, from, to};
        const VkPipelineStageFlags stage = vkrope::boundary().stage,
                                   host = VK_PIPELINE_STAGE_HOST_BIT;
        vkCmdPipelineBarrier(my::commands, stage, to == VK_ACCESS_HOST_READ_BIT ? host : stage, 0,
                             1, &memory, 0, nullptr, 0, nullptr);
    };
    check(gemma3_1(), "the first block");

    const auto plan = vkrope::plan_parameters(my::info);
    check(plan.status, "plan_parameters");
    for (std::uint32_t layer : {0, 1}) {
        std::vector<float> weights[2], set(plan->bytes / sizeof(float));
        vkrope::ParameterSources sources;
        for (std::uint32_t t : {vkrope::Q, vkrope::K}) {
            for (std::uint32_t c = 0; c < head_dim; ++c)
                weights[t].push_back(Row{t, layer}.weight(c));
            sources.tensor[t].weight = {weights[t].data(), VKROPE_F32, head_dim};
        }
        check(vkrope::fill_parameters(plan.value, sources, set.data(), plan->bytes), "parameters");
        const std::vector<Half> cache(4 * page * heads[vkrope::K] * head_dim, unwritten);
        my::model.push_back({{}, {}, {}, upload(cache), upload(cache), upload(set), layer == 1});
    }

    std::size_t wrong = 0;
    const auto step = [&](const Lengths& first, const Lengths& end) {
        std::vector<std::int32_t> cu_seqlens = {0}, slots;
        for (Row row = {}; row.sequence < 3; ++row.sequence) {
            for (row.position = first[row.sequence]; row.position < end[row.sequence];
                 ++row.position)
                slots.push_back(std::int32_t(row.slot()));
            cu_seqlens.push_back(std::int32_t(slots.size()));
        }
        my::tokens = std::uint32_t(slots.size());
        my::sequences = 3;
        my::offsets = upload(std::vector<std::int32_t>(first, first + 3)).buffer;
        my::cu_seqlens = upload(cu_seqlens).buffer;
        my::slot_mapping = upload(slots).buffer;
        my::ids = upload(slots).buffer;  // any content
        for (my::Layer& layer : my::model)
            for (std::uint32_t t : {vkrope::Q, vkrope::K, vkrope::V}) {
                std::vector<Half> halves;
                for_channels({t, layer.full}, first, end,
                             [&](const Row& row, auto, auto c) { halves.push_back(row.given(c)); });
                (t == vkrope::Q ? layer.q : t == vkrope::K ? layer.k : layer.v) = upload(halves);
            }
        my::commands = gpu.begin(pool);
        check(gemma3_2(), "the second block");
        my::barrier(vkrope::boundary().output_access, VK_ACCESS_HOST_READ_BIT);
        gpu.submit_and_wait(my::commands);
        for (const my::Layer& layer : my::model)
            for (std::uint32_t t : {vkrope::Q, vkrope::K, vkrope::V}) {
                const VkBuffer out[] = {layer.q.buffer, layer.k_cache.buffer, layer.v_cache.buffer};
                const auto at = std::find_if(buffers.begin(), buffers.end(),
                                             [&](const auto& b) { return b.handle == out[t]; });
                const auto* got = static_cast<const Half*>(at->mapped);
                std::size_t written = 0;
                for_channels({t, layer.full}, t == vkrope::Q ? first : none, end,
                             [&](const Row& row, std::uint32_t token, std::uint32_t c) {
                                 const std::size_t index = t == vkrope::Q ? token : row.slot();
                                 const std::size_t head = index * heads[t] + row.head;
                                 wrong += !row.has(c, got[head * head_dim + c]);
                                 ++written;
                             });
                const std::size_t size = at->bytes / sizeof(Half);
                wrong += size - written - std::size_t(std::count(got, got + size, unwritten));
            }
    };
    step(none, prompts);
    step(prompts, all);

    my::kernel.reset();
    my::position_kernel.reset();
    for (engine::Table& table : tables) gpu.destroy(table.staging), gpu.destroy(table.image);
    for (engine::Buffer& buffer : buffers) gpu.destroy(buffer);
    vkDestroyCommandPool(gpu.device(), pool, nullptr);
    std::printf("gemma3: %zu values wrong, %u validation messages\n", wrong, gpu.messages());
    return wrong != 0 || gpu.messages() != 0;
}
