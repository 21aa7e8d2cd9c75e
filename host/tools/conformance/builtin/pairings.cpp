// SPDX-License-Identifier: MIT
// Channels of a pair: both pairings, conversion between them, parts of a head, offsets, several
// windows; separate formats for Q and K.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t tokens = 5;

Trial two_tensors(Element element, Pairing pairing, std::uint32_t head_dim,
                  std::uint32_t rotary_dim, std::uint32_t offset) {
    Trial trial = trial_of(element, head_dim, tokens, pairing);
    trial.info.rotary_dim = rotary_dim;
    trial.info.tensor[Q].rotary_offset = offset;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.shape = {.batch = 2, .tokens = tokens, .groups = 2, .q_per_group = 3};
    trial.call.positions.first = 3;
    return trial;
}

void add_window(Checks& checks, std::uint32_t head_dim, std::uint32_t rotary_dim,
                std::uint32_t offset) {
    for (const Pairing pairing : pairings) {
        const std::string name = fmt::format("{}_{}_of_{}_at_{}", name_of(pairing), rotary_dim,
                                             head_dim, offset);
        const auto check_types = [=](std::initializer_list<Element> types,
                                     std::initializer_list<Mapping> mappings) {
            return [=, types = std::vector(types), mappings = std::vector(mappings)](Test& test) {
                for (const Element element : types) {
                    std::optional<Rotated> first;
                    for (const Mapping mapping : mappings) {
                        Trial trial = two_tensors(element, pairing, head_dim, rotary_dim, offset);
                        trial.info.mapping = mapping;
                        const Rotated rotated = test.run(trial);
                        test.hold(!first || same_bits(*first, rotated),
                                  "the other mapping of the work gives different bits");
                        first = rotated;
                    }
                }
            };
        };
        checks.add(name, check_types({pairing == VKROPE_HALF_SPLIT ? VKROPE_F32 : VKROPE_F16},
                                     {VKROPE_MAPPING_AUTOMATIC}));
        checks.add(name + "_every_type_and_mapping",
                   check_types({VKROPE_F32, VKROPE_F16, VKROPE_BF16},
                               {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}),
                   Level::full);
    }
}

}  // namespace

void add_pairings(Checks& checks) {
    // Whole heads; parts as in GPT-NeoX and StableLM; at an offset as in MLA; halves that end
    // within a word or a vector.
    constexpr std::uint32_t windows[][3] = {
        {128, 128, 0}, {64, 64, 0},    {80, 80, 0}, {96, 24, 0}, {80, 20, 0},
        {64, 16, 48},  {192, 64, 128}, {6, 6, 0},   {2, 2, 0},   {10, 4, 3},
        {7, 6, 1},     {9, 2, 5},      {34, 30, 2}};
    for (const auto& [head_dim, rotary_dim, offset] : windows) {
        add_window(checks, head_dim, rotary_dim, offset);
    }
    for (const Pairing pairing : pairings) {
        const Pairing other = pairing == VKROPE_HALF_SPLIT ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT;
        checks.add(fmt::format("{}_to_{}", name_of(pairing), name_of(other)), [=](Test& test) {
            // A quantised Q gives K a kernel with ops.
            const struct {
                Element element, q_out;
                Mapping mapping;
            } kernels[] = {{VKROPE_F32, VKROPE_F32, VKROPE_MAPPING_AUTOMATIC},
                           {VKROPE_BF16, VKROPE_BF16, VKROPE_MAPPING_GPU},
                           {VKROPE_F16, VKROPE_F16, VKROPE_MAPPING_GPU},
                           {VKROPE_F16, VKROPE_F16, VKROPE_MAPPING_CPU},
                           {VKROPE_F16, VKROPE_E5M2, VKROPE_MAPPING_GPU}};
            for (const auto& [element, q_out, mapping] : kernels) {
                Trial trial = two_tensors(element, pairing, 40, 24, 4);
                trial.info.pairing_out = other;
                trial.info.tensor[Q].out = q_out;
                trial.info.mapping = mapping;
                trial.max_position = 6;  // positions 3 to 7: the last two are out of range, but
                                         // still written in the other pairing, with all bits
                trial.rows[K] = random_bits(element, elements_of(trial, K), 7);
                test.run(trial);
            }
        });
        checks.add(fmt::format("windows_{}", name_of(pairing)), [=](Test& test) {
            const std::vector<std::vector<Window>> sets = {{{0, 24}, {24, 24}},
                                                           {{0, 8}, {12, 4}, {20, 12}},
                                                           {{0, 2}, {3, 4}, {8, 6}, {16, 2}}};
            for (const std::vector<Window>& set : sets) {
                Trial trial = two_tensors(VKROPE_F16, pairing, 52, 0, 2);
                for (std::size_t i = 0; i < set.size(); ++i) {
                    trial.info.windows[i] = set[i];
                    trial.info.rotary_dim += set[i].rotary_dim;
                }
                test.run(trial);
            }
        });
        checks.add(fmt::format("latent_attention_{}", name_of(pairing)), [=](Test& test) {
            Trial trial = two_tensors(VKROPE_BF16, pairing, 192, 64, 128);
            trial.info.tensor[K].head_dim = 576;
            trial.info.tensor[K].rotary_offset = 512;
            test.run(trial);
        });
    }
    checks.add("head_counts", [](Test& test) {
        constexpr std::uint32_t counts[][2] = {
            {8, 1}, {8, 4}, {1, 71}, {1, 1}, {5, 1}};  // groups, Q heads per group
        for (const auto& [groups, q_per_group] : counts) {
            Trial trial = two_tensors(VKROPE_F16, VKROPE_HALF_SPLIT, 64, 64, 0);
            trial.shape.groups = groups;
            trial.shape.q_per_group = q_per_group;
            test.run(trial);
        }
    });
    for (const bool key : {false, true}) {
        checks.add(key ? "k_alone" : "q_alone", [=](Test& test) {
            Trial trial = two_tensors(VKROPE_F16, VKROPE_INTERLEAVED, 64, 64, 0);
            (key ? trial.info.tensor[Q] : trial.info.tensor[K]) = {};
            test.run(trial);
        });
    }
    checks.add(
        "token_counts_1_to_300",
        [](Test& test) {
            for (std::uint32_t count = 1; count <= 300; ++count) {
                Trial trial = two_tensors(VKROPE_F16, VKROPE_HALF_SPLIT, 32, 32, 0);
                trial.shape.tokens = count;
                trial.max_position = 512;
                test.run(trial);
            }
        },
        Level::full);
    // If at least 2^16 lanes remain, each takes four heads; odd head counts leave incomplete
    // groups.
    checks.add("four_heads_a_lane", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F16, VKROPE_HALF_SPLIT, 64, 64, 0);
        trial.shape = {.batch = 1, .tokens = 1030, .groups = 1, .q_per_group = 7};
        trial.in = trial.out = Arrangement::odd_offsets;  // one element at a time
        trial.in_place.fill(true);
        trial.max_position = 4096;
        trial.info.mapping = VKROPE_MAPPING_GPU;
        test.run(trial);
    });
    checks.add(
        "four_heads_a_lane_16_bytes_each",
        [](Test& test) {
            Trial trial = two_tensors(VKROPE_F16, VKROPE_HALF_SPLIT, 64, 32, 16);
            trial.shape = {.batch = 1, .tokens = 4100, .groups = 1, .q_per_group = 19};
            trial.max_position = 1 << 13;
            trial.info.mapping = VKROPE_MAPPING_GPU;
            const Rotated four = test.run(trial);
            trial.info.mapping = VKROPE_MAPPING_CPU;
            const Rotated all = test.run(trial);
            test.hold(same_bits(four, all), "the other mapping of the work gives different bits");
        },
        Level::full);
}

}  // namespace vkrope::conformance
