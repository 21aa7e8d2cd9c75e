// SPDX-License-Identifier: MIT
#include "conformance/builtin/every_way.hpp"

#include <cstring>

#include "base/meaning.hpp"
#include "verify/definition.hpp"
#include "verify/oracle/quantise.hpp"
#include "verify/place.hpp"

namespace vkrope::conformance {
namespace {

// The result of storing the rows of one tensor as a quantised type.
struct Quantised {
    Bytes codes;
    std::vector<float> scales;  // only scales that the kernel computes
};

// given  the scales from the caller; empty: none
// rows   f32 values before the store
Quantised quantised(const TensorInfo& info, const std::vector<float>& given, std::uint32_t heads,
                    const Bytes& rows) {
    const oracle::Store store = verify::store_of(info.out);
    Quantised all;
    std::vector<float> row(info.head_dim);
    const std::size_t row_bytes = row.size() * sizeof(float);
    for (std::size_t i = 0; i < rows.size() / row_bytes; ++i) {
        std::memcpy(row.data(), &rows[i * row_bytes], row_bytes);
        std::vector<std::uint8_t> codes;
        if (block_channels(info.out) != 1) {
            codes = oracle::quantise_blocks(store, row);
        } else if (is_made(info.ops.store_scale)) {
            oracle::MadeRow made = oracle::quantise_made(
                store, row, info.ops.scale_floor,
                info.ops.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
            codes = std::move(made.codes);
            all.scales.push_back(made.scale);
        } else {
            const float factor = given.empty() ? 1 : given[i % heads % given.size()];
            codes = oracle::quantise_given(store, row, factor);
        }
        const Bytes stored = bytes_of(codes);
        all.codes.insert(all.codes.end(), stored.begin(), stored.end());
    }
    return all;
}

void hold_codes(Test& test, const Trial& trial, const Rotated& stored) {
    Trial plain = trial;
    for (TensorInfo& info : plain.info.tensor) {
        info.out = VKROPE_F32;
        info.ops.store_scale = VKROPE_STORE_SCALE_NONE;
        info.ops.scale_floor = 0;
    }
    const Rotated floats = test.run(plain);
    const verify::Operation operation = verify::placed(trial);
    for (const TensorIndex which : every_tensor) {
        const Quantised expected = quantised(operation.info.tensor[which],
                                             operation.parameters[which].store_scale,
                                             operation.call.in[which].heads, floats.rows[which]);
        const Bytes& codes = stored.rows[which];
        std::size_t differing = 0;
        for (std::size_t at = 0; at < std::min(codes.size(), expected.codes.size()); ++at)
            differing += codes[at] != expected.codes[at];
        test.hold(codes.size() == expected.codes.size() && differing == 0,
                  "{}: {} of {} bytes differ from the definition", "QKV"[which], differing,
                  codes.size());
        test.hold(stored.scales[which] == expected.scales,
                  "{}: a scale is not the one of the definition", "QKV"[which]);
    }
}

}  // namespace

Trial three_alike(Element in, Element out, std::uint32_t head_dim, std::uint32_t rotary_dim,
                  std::uint32_t rotary_offset, Pairing pairing) {
    Trial trial = trial_of(in, head_dim, 5, pairing);
    trial.info.rotary_dim = rotary_dim;
    trial.info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    trial.shape = {.batch = 2, .tokens = 5, .groups = 2, .own_q_heads = 3};
    for (TensorInfo& info : trial.info.tensor) {
        info = {in, out, head_dim, rotary_offset};
        info.heads = trial.shape.groups;
    }
    trial.info.tensor[V].rotary_offset = 0;
    trial.info.tensor[Q].heads = trial.shape.own_q_heads;
    trial.call.positions.first = 9;
    trial.max_position = 14;
    return trial;
}

void run_every_way(Test& test, Trial trial) {
    const bool quantised = is_quantised(trial.info.tensor[Q].out);
    trial.info.mapping = VKROPE_MAPPING_CPU;
    const Rotated first = test.run(trial);
    if (quantised) hold_codes(test, trial, first);
    const auto same = [&](const char* what, const auto& change) {
        Trial way = trial;
        change(way);
        test.hold(same_bits(test.run(way), first), "{} gives different bits", what);
    };
    const bool usual = trial.info.tensor[Q].head_dim == usual_head_dim;
    same("the mapping of GPUs", [=](Trial& way) {
        way.info.mapping = VKROPE_MAPPING_GPU;
        way.lead = usual ? 2 : 0;  // narrower accesses than those of the first run
    });
    if (usual) {
        same(
            "a cache",
            [](Trial& way) {
                way.info.mapping = VKROPE_MAPPING_GPU;
                way.info.scatter_kv = true;
                for (std::int64_t row = way.shape.rows(); row-- > 0;) way.slots.push_back(row);
            });
    }
    if (trial.info.tensor[Q].in == trial.info.tensor[Q].out)
        same("in place", [](Trial& way) { way.in_place.fill(true); });
}

}  // namespace vkrope::conformance
