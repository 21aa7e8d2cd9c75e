// SPDX-License-Identifier: MIT
// Checks the channels of a pair: both pairings, conversion between them, parts of a head, offsets,
// several windows.
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
        checks.add(
            fmt::format("{}_{}_of_{}_at_{}", name_of(pairing), rotary_dim, head_dim, offset),
            [=](Test& test) {
                test.run(two_tensors(pairing == VKROPE_HALF_SPLIT ? VKROPE_F32 : VKROPE_F16,
                                     pairing, head_dim, rotary_dim, offset));
            });
    }
}

}  // namespace

void add_pairings(Checks& checks) {
    // Whole heads; parts of heads as in GPT-NeoX and StableLM; at an offset as in MLA; windows
    // whose halves end within a word or a vector.
    constexpr std::uint32_t windows[][3] = {{128, 128, 0}, {96, 24, 0}, {64, 16, 48}, {2, 2, 0},
                                            {10, 4, 3},    {7, 6, 1},   {34, 30, 2}};
    for (const auto& [head_dim, rotary_dim, offset] : windows)
        add_window(checks, head_dim, rotary_dim, offset);
    for (const Pairing pairing : pairings) {
        const Pairing other = pairing == VKROPE_HALF_SPLIT ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT;
        checks.add(fmt::format("{}_to_{}", name_of(pairing), name_of(other)), [=](Test& test) {
            // If Q is quantised, K also runs in a kernel with ops.
            const struct {
                Element element, q_out;
                Mapping mapping;
            } kernels[] = {{VKROPE_F32, VKROPE_F32, VKROPE_MAPPING_GPU},
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
    }
    checks.add("latent_attention", [](Test& test) {
        Trial trial = two_tensors(VKROPE_BF16, VKROPE_INTERLEAVED, 192, 64, 128);
        trial.info.tensor[K].head_dim = 576;
        trial.info.tensor[K].rotary_offset = 512;
        test.run(trial);
    });
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
}

}  // namespace vkrope::conformance
