// SPDX-License-Identifier: MIT
// Checks the variants of the shader: steps of 16 bytes, of words and of single elements, with one
// angle for all pairs of a unit or one for each pair, with windows, sections and pages, for one
// tensor or two, mapped for CPUs and for GPUs. Each kernel runs three calls, whose strides select
// how memory is accessed.
#include <algorithm>

#include "conformance/builtin/variant_trials.hpp"

namespace vkrope::conformance {
namespace {

// Splits the window into `count` windows of at least 16 channels, with gaps of 16 or 0 channels.
void cut_into_windows(Trial& trial, std::uint32_t count) {
    constexpr std::uint32_t gaps[] = {0, 16, 0, 16};
    const std::uint32_t share = trial.info.rotary_dim / 64 * 16;  // channels in a quarter
    std::uint32_t at = 0, left = trial.info.rotary_dim;
    for (std::uint32_t i = 0; count > 1 && i < count; ++i) {
        at += gaps[i];
        const std::uint32_t rotary_dim = i + 1 < count ? share : left;
        trial.info.windows[i] = {.offset = at, .rotary_dim = rotary_dim};
        at += rotary_dim;
        left -= rotary_dim;
    }
    trial.info.tensor[Q].rotary_offset = trial.info.tensor[K].rotary_offset = 8;
}

// Returns trial `i`. Four consecutive trials cover all pairings in and out and window counts.
Trial number(std::uint32_t i, Element element, std::uint32_t rotary_dim) {
    Trial trial = two_tensors(element, rotary_dim, 48, pairings[i % 2]);
    trial.info.pairing_out = pairings[(i % 2 + i / 2) % 2];
    cut_into_windows(trial, 1 + (i + i / 4) % 4);
    return trial;
}

// Checks one angle for each pair of a unit, which mixes several axes.
void add_angles_of_pairs(Checks& checks) {
    std::uint32_t i = 0;
    for (const Turn turn : {Turn::interleaved, Turn::unaligned}) {
        for (const Element element : {VKROPE_F16, VKROPE_BF16}) {
            const std::uint32_t at = i++;
            const AngleSource source = our_sources[at];
            checks.add(fmt::format("angles_of_pairs_64_{}_{}_{}",
                                   turn == Turn::interleaved ? "interleaved" : "unaligned",
                                   name_of(element), name_of(source)),
                       [=](Test& test) {
                           Trial trial = number(at, element, 64);
                           trial.info.angles = source;
                           turn_by_axes(trial, turn);
                           run_each_access(test, trial);
                       });
        }
    }
}

// Checks a cos_sin_cache, which is read pair by pair.
void add_cos_sin_caches(Checks& checks) {
    for (const Element table : elements) {
        const auto at = std::uint32_t(table);
        const Element element = table == VKROPE_F32 ? VKROPE_F32 : VKROPE_F16;
        checks.add(fmt::format("cos_sin_cache_{}_of_{}", name_of(table), name_of(element)),
                   [=](Test& test) {
                       Trial trial = number(at, element, 64);
                       trial.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
                       if (at < 2) turn_by_axes(trial, Turn::interleaved);
                       add_cos_sin_cache(trial, table, trial.info.rotary_dim / 2 + 3, false);
                       run_each_access(test, trial);
                   });
    }
}

// Checks one angle, or one axis, for all pairs of a unit.
void add_angles_of_units(Checks& checks) {
    for (const AngleSource source : {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED}) {
        checks.add(
            fmt::format("angles_of_units_{}", name_of(source)),
            [=](Test& test) {
                Trial trial = two_tensors(VKROPE_BF16, 64);
                trial.info.angles = source;
                trial.info.positions = VKROPE_POSITIONS_IDS;
                trial.ids = random_positions(trial.shape.rows(), -70, 70,
                                             92);  // some are out of range
                run_each_access(test, trial);
            });
    }
    checks.add("sections_of_whole_units", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F16, 64);
        turn_by_axes(trial, Turn::whole_units);
        run_each_access(test, trial);
    });
}

// Checks element sizes that differ between Q and K, or between input and output.
void add_mixed_elements(Checks& checks) {
    checks.add(
        "mixed_elements",
        [](Test& test) {
            for (const std::uint32_t rotary_dim : {64u, 56u}) {  // 56: no unit of 8
                Trial trial = two_tensors(VKROPE_F32, rotary_dim, 64);
                trial.info.tensor[Q].out = trial.info.tensor[K].in = VKROPE_F16;
                trial.info.mapping = rotary_dim == 56 ? VKROPE_MAPPING_CPU
                                                      : VKROPE_MAPPING_AUTOMATIC;
                run_each_access(test, trial);
            }
        });
}

// Checks that other types in a call are still converted with integers if the device converts f16
// natively.
void add_elements_beside_f16(Checks& checks) {
    checks.add(
        "bf16_beside_f16",
        [](Test& test) {
            Trial trial = two_tensors(VKROPE_BF16, 32, 32);
            trial.info.tensor[K].in = trial.info.tensor[K].out = VKROPE_F16;
            trial.info.conversion = test.device.traits().converts_f16 ? VKROPE_CONVERSION_NATIVE
                                                                      : VKROPE_CONVERSION_INTEGER;
            run_each_access(test, trial);
        });
}

void add_pages(Checks& checks) {
    for (const bool by_head : {false, true}) {
        checks.add(
            by_head ? "pages_by_head" : "pages",
            [=](Test& test) {
                for (const std::uint32_t rotary_dim : {64u, 56u}) {  // 56: no unit of 8
                    Trial trial = two_tensors(VKROPE_F16, rotary_dim, 16);
                    trial.info.mapping = rotary_dim == 56 ? VKROPE_MAPPING_CPU
                                                          : VKROPE_MAPPING_AUTOMATIC;
                    trial.info.scatter_kv = true;
                    trial.info.positions = VKROPE_POSITIONS_IDS;
                    trial.ids = random_positions(trial.shape.rows(), -70, 70, 94);
                    trial.call.paged_cache.page_size = 4;
                    trial.pages_by_head = by_head;
                    trial.call.paged_cache.int64 = by_head;
                    run_each_access(test, trial);
                }
            });
    }
}

void add_lean(Checks& checks) {
    // With a table in a buffer, the table is the fourth storage buffer, and none is left for the
    // counter.
    for (const AngleSource source : {VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_BUFFER}) {
        checks.add(
            fmt::format("one_tensor_a_dispatch_{}", name_of(source)),
            [=](Test& test) {
                Trial trial = two_tensors(
                    source == VKROPE_ANGLES_COMPUTED ? VKROPE_F32 : VKROPE_F16, 32, 32);
                trial.info.angles = source;
                trial.info.positions = VKROPE_POSITIONS_IDS;
                trial.ids = random_positions(trial.shape.rows(), -70, 70, 95);
                trial.limits = {.storage_buffers = 4};
                run_each_access(test, trial);
            });
    }
}

}  // namespace

void add_variants(Checks& checks) {
    add_angles_of_units(checks);
    add_angles_of_pairs(checks);
    add_cos_sin_caches(checks);
    add_mixed_elements(checks);
    add_elements_beside_f16(checks);
    add_mappings(checks);
    add_pages(checks);
    add_lean(checks);
}

}  // namespace vkrope::conformance
