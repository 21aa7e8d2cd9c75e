// SPDX-License-Identifier: MIT
// Uses a model of two layer types from its config.json, with one kernel and two tables. It skips
// layers without RoPE, and shifts a cache without the attention factor.
#include <array>
#include <cstdio>

#include "walk.hpp"

namespace walk {

namespace {

struct Layer {
    bool rotates = true;
    std::size_t type = 0;
};

struct Model {
    std::array<vkrope::RopeParams, 2> rope;  // of full attention and of sliding attention
    std::vector<Layer> layers;
};

using Tables = std::array<Table, 2>;

vkrope::Status read(std::string_view config_json, Model& model) {
    const char* types[2] = {"full_attention", "sliding_attention"};
    for (std::size_t i = 0; i < 2; ++i) {
        auto rope = vkrope::from_hf_config(config_json,
                                           {.layer_type = types[i], .seq_len = 131072});
        if (!rope) return rope.status;
        for (const std::string& warning : rope->warnings)
            std::fprintf(stderr, "warning: %s\n", warning.c_str());
        model.rope[i] = std::move(rope.value);
    }
    for (std::size_t n = 0; n < model.layers.size(); ++n) {
        const auto one = vkrope::from_hf_config(config_json,
                                                {.by_layer = true, .layer = std::uint32_t(n)});
        if (!one) return one.status;
        model.layers[n] = {!one->no_rope, one->base == model.rope[0].base ? 0u : 1u};
    }
    return {};
}

vkrope::Status make_tables(const Gpu& gpu, const Model& model, vkrope::AngleSource source,
                           std::uint64_t max_position, Tables& tables) {
    for (std::size_t i = 0; i < tables.size(); ++i) {
        const auto made = make_table(gpu, model.rope[i], source, max_position);
        if (!made) return made.status;
        tables[i] = made.value;
    }
    return {};
}

// Only this call multiplies by the attention factor.
vkrope::Call rotation(const Table& table, const Buffers& buffers, std::uint32_t tokens) {
    const vkrope::Tensor q{.where = buffers.q, .heads = 4}, k{.where = buffers.k, .heads = 2};
    return {.tokens = tokens,
            .in = {q, k},
            .out = {q, k},
            .positions = {.ids = buffers.ids},
            .angles = table.angles()};
}

// Moves keys to other positions without the attention factor, since they are scaled already.
vkrope::Call shift_of_cache(const Table& table, const Buffers& buffers, std::uint32_t cells) {
    const vkrope::Tensor cache{.where = buffers.cache, .heads = 2};
    return {.tokens = cells,
            .in = {{}, cache},
            .out = {{}, cache},
            .positions = {.ids = buffers.ids},
            .angles = table.angles(),
            .gain = VKROPE_GAIN_OMIT};
}

}  // namespace

std::vector<Step> layer_types(const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    Model model;
    model.layers.resize(2);
    taken.push_back({"model", read(config_json, model)});
    Tables tables;
    taken.push_back(
        {"tables", make_tables(gpu, model, VKROPE_ANGLES_FACTORED_TEXTURE, 131072, tables)});
    const Made made(gpu.ref, {.pairing = VKROPE_HALF_SPLIT,
                              .rotary_dim = model.rope[0].rotary_dim,
                              .tensor = {{.head_dim = model.rope[0].head_dim},
                                         {.head_dim = model.rope[0].head_dim}},
                              .angles = tables[0].plan.source,
                              .positions = VKROPE_POSITIONS_IDS});
    taken.push_back({"kernel", made.status});
    for (const Layer& layer : model.layers) {
        if (!layer.rotates) continue;
        const Table& table = tables[layer.type];
        taken.push_back({"rotate", gpu.rotate(made, rotation(table, gpu.buffers, 8))});
    }
    taken.push_back({"shift", gpu.rotate(made, shift_of_cache(tables[0], gpu.buffers, 8))});
    return taken;
}

}  // namespace walk
