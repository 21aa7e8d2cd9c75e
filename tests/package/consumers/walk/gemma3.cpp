// SPDX-License-Identifier: MIT
// Runs the blocks of gemma3.md in a sliding and in a full layer: a ragged prefill, then a decode
// step. Compares Q and the caches with loops that use nothing of the library.
#include <algorithm>

#include "../guide/my.hpp"
#include "halves.hpp"

vkrope::Status gemma3_1();
vkrope::Status gemma3_2();

namespace walk {

namespace {

using Lengths = std::int32_t[3];  // of each sequence

constexpr std::uint32_t head_dim = 256, heads[] = {8, 4, 4}, page_size = 16, rows = 4 * page_size;
constexpr Lengths none = {}, prompts = {3, 20, 5}, all = {4, 21, 6};
constexpr Half unwritten = 0x5a5a;  // 203: larger than every result

std::size_t slot_of(std::size_t sequence, std::int32_t position) {
    constexpr std::size_t pages[3][2] = {{3}, {0, 2}, {1}};
    return pages[sequence][position / page_size] * page_size + position % page_size;
}

// A head row of a token.
struct Row {
    std::uint32_t tensor, layer, sequence = 0, head = 0;
    std::int32_t position = 0;

    Half given(std::uint32_t channel) const {
        std::uint32_t bits = tensor;
        for (std::uint32_t part : {layer, sequence, std::uint32_t(position), head, channel})
            bits = (bits + part + 1) * 2654435761u ^ bits >> 15;
        return Half((bits >> 8 & 0x83ff) | (12 + (bits >> 24) % 6) << 10);
    }
    float weight(std::uint32_t channel) const {
        return float((37 * channel + 11 * tensor + 5 * layer) % 64) / 64 - 0.5f;
    }
};

// Calls `with` for the rows at the positions from `first` to `end`, with the index of the token.
template <class With>
void for_rows(Row row, const Lengths& first, const Lengths& end, const With& with) {
    std::size_t token = 0;
    for (row.sequence = 0; row.sequence < 3; ++row.sequence)
        for (row.position = first[row.sequence]; row.position < end[row.sequence]; ++row.position) {
            for (row.head = 0; row.head < heads[row.tensor]; ++row.head) with(row, token);
            ++token;
        }
}

// The contract allows 11 u for the norm of each channel of a pair, and 6 u for the rotation.
bool is_near(Half half, double exact, double size) {
    const double got = value(half), ulp = std::ldexp(1, std::max(std::ilogb(got), -14) - 10);
    return std::abs(got - exact) <= 18 * 0x1p-24 * size + ulp / 2;
}

bool is_right(const Row& row, const Half* got) {
    double squares = 0;
    for (std::uint32_t c = 0; c < head_dim; ++c)
        squares += value(row.given(c)) * value(row.given(c));
    const auto normed = [&](std::uint32_t c) {
        return value(row.given(c)) * (1.0 + row.weight(c)) / std::sqrt(squares / head_dim + 1e-6);
    };
    const double base = row.layer == 0 ? 1e4 : 1e6, slower = row.layer == 0 ? 1 : 8;
    for (std::uint32_t j = 0, i = head_dim / 2; i < head_dim; ++j, ++i) {
        if (row.tensor == vkrope::V && got[j] == row.given(j) && got[i] == row.given(i)) continue;
        const double x0 = normed(j), x1 = normed(i), size = std::abs(x0) + std::abs(x1),
                     angle = row.position / slower * std::pow(base, -2.0 * j / head_dim),
                     c = std::cos(angle), s = std::sin(angle);
        if (row.tensor == vkrope::V || !is_near(got[j], x0 * c - x1 * s, size) ||
            !is_near(got[i], x0 * s + x1 * c, size))
            return false;
    }
    return true;
}

// Compares the rows of a tensor at the positions from `first` to `end`.
vkrope::Status values(const Gpu& gpu, const Row& of, const Lengths& first, const Lengths& end) {
    const my::Layer& layer = my::model[of.layer];
    const VkDescriptorBufferInfo where[] = {layer.q, layer.k_cache, layer.v_cache};
    const std::vector<Half> got = numbers_of<Half>(gpu.download(where[of.tensor]));
    std::size_t written = 0, wrong_rows = 0;
    for_rows(of, first, end, [&](const Row& row, std::size_t token) {
        if (row.tensor != vkrope::Q) token = slot_of(row.sequence, row.position);
        wrong_rows += !is_right(row, &got[(token * heads[row.tensor] + row.head) * head_dim]);
        written += head_dim;
    });
    if (wrong_rows != 0) return wrong(std::to_string(wrong_rows) + " rows are wrong");
    const auto kept = std::count(got.begin(), got.end(), unwritten);
    return std::size_t(kept) == got.size() - written ? vkrope::Status() : wrong("others changed");
}

vkrope::Status load(const Gpu& gpu) {
    const auto plan = vkrope::plan_parameters(my::info);
    if (!plan) return plan.status;
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
        std::vector<float> weights[2];
        vkrope::ParameterSources sources;
        for (std::uint32_t tensor : {vkrope::Q, vkrope::K}) {
            for (std::uint32_t c = 0; c < head_dim; ++c)
                weights[tensor].push_back(Row{tensor, layer}.weight(c));
            sources.tensor[tensor].weight = {weights[tensor].data(), VKROPE_F32, head_dim};
        }
        std::vector<float> set(plan->bytes / sizeof(float));
        if (auto s = vkrope::fill_parameters(plan.value, sources, set.data(), plan->bytes); !s)
            return s;
        const std::vector<Half> cache(rows * heads[vkrope::K] * head_dim, unwritten);
        my::model.push_back(
            {{}, {}, {}, upload(gpu, cache), upload(gpu, cache), upload(gpu, set), layer == 1});
    }
    return {};
}

// Takes each sequence from position `first` to `end`.
vkrope::Status step(const Gpu& gpu, const Lengths& first, const Lengths& end) {
    std::vector<std::int32_t> cu_seqlens = {0}, slots;
    for (std::size_t s = 0; s < 3; ++s) {
        for (std::int32_t p = first[s]; p < end[s]; ++p)
            slots.push_back(std::int32_t(slot_of(s, p)));
        cu_seqlens.push_back(std::int32_t(slots.size()));
    }
    for (std::uint32_t layer = 0; layer < 2; ++layer)
        for (std::uint32_t tensor : {vkrope::Q, vkrope::K, vkrope::V}) {
            std::vector<Half> halves;
            for_rows({tensor, layer}, first, end, [&](const Row& row, std::size_t) {
                for (std::uint32_t c = 0; c < head_dim; ++c) halves.push_back(row.given(c));
            });
            my::Layer& of = my::model[layer];
            (tensor == vkrope::Q ? of.q : tensor == vkrope::K ? of.k : of.v) = upload(gpu, halves);
        }
    my::tokens = std::uint32_t(slots.size());
    my::sequences = 3;
    my::offsets = upload(gpu, std::vector<std::int32_t>(first, first + 3)).buffer;
    my::cu_seqlens = upload(gpu, cu_seqlens).buffer;
    my::slot_mapping = upload(gpu, slots).buffer;
    my::ids = upload(gpu, slots).buffer;  // any content
    return gpu.submit([](VkCommandBuffer commands) {
        my::commands = commands;
        return gemma3_2();
    });
}

}  // namespace

std::vector<Step> gemma3(const Gpu& gpu, std::string_view config_json) {
    my::ref = gpu.ref;
    my::config_json = config_json;
    my::properties.limits.maxImageDimension2D = 4096;
    my::q_heads = heads[vkrope::Q];
    my::k_heads = heads[vkrope::K];
    my::make_table = [&](const vkrope::RopeParams& rope, const vkrope::AngleTableLayout& plan) {
        return make_table(gpu, rope, plan.source, my::max_position)->view;
    };
    my::barrier = [](VkAccessFlags from, VkAccessFlags to) {
        const VkMemoryBarrier memory = {VK_STRUCTURE_TYPE_MEMORY_BARRIER, nullptr, from, to};
        const VkPipelineStageFlags stage = vkrope::boundary().stage;
        vkCmdPipelineBarrier(my::commands, stage, stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
    };
    std::vector<Step> taken = {{"the first block", gemma3_1()}, {"layers", load(gpu)}};
    if (!taken[0].status || !taken[1].status) return taken;
    my::arenas.resize(1);
    taken.push_back({"prefill", step(gpu, none, prompts)});
    for (std::uint32_t layer : {0, 1})
        taken.push_back({"Q", values(gpu, {vkrope::Q, layer}, none, prompts)});
    taken.push_back({"decode", step(gpu, prompts, all)});
    for (std::uint32_t layer : {0, 1}) {
        taken.push_back({"Q of the decode step", values(gpu, {vkrope::Q, layer}, prompts, all)});
        taken.push_back({"cache of K", values(gpu, {vkrope::K, layer}, none, all)});
        taken.push_back({"cache of V", values(gpu, {vkrope::V, layer}, none, all)});
    }
    my::kernel.reset();
    my::position_kernel.reset();
    return taken;
}

}  // namespace walk
