// SPDX-License-Identifier: MIT
// The shader variants of create(): steps of 16 bytes, of words and of single elements, with one
// angle for all pairs of a unit or one for each, from every source, with windows, sections and
// pages, for one tensor or two, mapped for CPUs and for GPUs. A kernel here runs three calls, whose
// strides select how it accesses memory.
#include <algorithm>

#include "conformance/builtin/variant_trials.hpp"

namespace vkrope::conformance {
namespace {

/// Splits the window into `count` windows of at least 16 channels, with gaps of 16 or 0 channels.
void cut_into_windows(Trial& trial, std::uint32_t count) {
    constexpr std::uint32_t gaps[] = {0, 16, 0, 16};
    const std::uint32_t share = trial.info.rotary_dim / 64 * 16;  // channels of a quarter
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

/// Pairings in and out and window count of trial `i`: four consecutive numbers cover all of them.
Trial number(std::uint32_t i, Element element, std::uint32_t rotary_dim) {
    Trial trial = two_tensors(element, rotary_dim, 48, pairings[i % 2]);
    trial.info.pairing_out = pairings[(i % 2 + i / 2) % 2];
    cut_into_windows(trial, 1 + (i + i / 4) % 4);
    return trial;
}

/// One angle for each pair of a unit: each unit mixes several axes.
void add_angles_of_pairs(Checks& checks) {
    std::uint32_t i = 0;
    for (const std::uint32_t rotary_dim : {64u, 128u}) {
        for (const Turn turn : {Turn::interleaved, Turn::unaligned}) {
            for (const Element element : {VKROPE_F16, VKROPE_BF16}) {
                const std::uint32_t at = i++;
                const AngleSource source = our_sources[(at + at / 4) % 4];
                checks.add(
                    fmt::format("angles_of_pairs_{}_{}_{}_{}", rotary_dim,
                                turn == Turn::interleaved ? "interleaved" : "unaligned",
                                name_of(element), name_of(source)),
                    [=](Test& test) {
                        Trial trial = number(at, element, rotary_dim);
                        trial.info.angles = source;
                        turn_by_axes(trial, turn);
                        run_each_access(test, trial);
                    },
                    rotary_dim == 64 || turn == Turn::interleaved ? Level::quick : Level::full);
            }
        }
    }
    for (std::uint32_t at = 0; at < 4; ++at) {
        const AngleSource source = our_sources[at];
        checks.add(fmt::format("angles_of_pairs_f32_{}", name_of(source)), [=](Test& test) {
            Trial trial = number(at, VKROPE_F32, 64);
            trial.info.angles = source;
            turn_by_axes(trial, at % 2 == 0 ? Turn::unaligned : Turn::interleaved);
            run_each_access(test, trial);
        });
    }
}

/// A cos_sin_cache, which is read pair by pair.
void add_cos_sin_caches(Checks& checks) {
    std::uint32_t i = 0;
    for (const Element table : elements) {
        for (const Element element : {VKROPE_F16, VKROPE_F32}) {
            const std::uint32_t at = i++;
            checks.add(fmt::format("cos_sin_cache_{}_of_{}", name_of(table), name_of(element)),
                       [=](Test& test) {
                           Trial trial = number(at, element, 64);
                           trial.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
                           if (at % 4 < 2) {
                               turn_by_axes(trial, Turn::interleaved);
                           }
                           add_cos_sin_cache(trial, table, trial.info.rotary_dim / 2 + 3, false);
                           run_each_access(test, trial);
                       });
        }
    }
}

/// One angle, or one axis, for all pairs of a unit.
void add_angles_of_units(Checks& checks) {
    for (const AngleSource source : our_sources) {
        checks.add(fmt::format("angles_of_units_{}", name_of(source)), [=](Test& test) {
            Trial trial = two_tensors(VKROPE_BF16, 64);
            trial.info.angles = source;
            trial.info.positions = VKROPE_POSITIONS_IDS;
            trial.ids = random_positions(trial.shape.rows(), -70, 70, 92);  // some are out of range
            run_each_access(test, trial);
        });
    }
    for (const Element element : {VKROPE_F16, VKROPE_F32}) {
        checks.add(fmt::format("sections_of_whole_units_{}", name_of(element)), [=](Test& test) {
            Trial trial = two_tensors(element, 64);
            turn_by_axes(trial, Turn::whole_units);
            run_each_access(test, trial);
        });
    }
}

/// Element sizes that differ between Q and K, or between input and output.
void add_mixed_elements(Checks& checks) {
    for (const Pairing pairing : pairings) {
        checks.add(fmt::format("mixed_elements_{}", name_of(pairing)), [=](Test& test) {
            const bool half = pairing == VKROPE_HALF_SPLIT;
            for (const std::uint32_t rotary_dim : {64u, 56u}) {  // 56: no unit of 8
                Trial trial = two_tensors(half ? VKROPE_F32 : VKROPE_F16, rotary_dim, 64, pairing);
                trial.info.tensor[Q].out = trial.info.tensor[K].in = half ? VKROPE_F16 : VKROPE_F32;
                trial.info.mapping = rotary_dim == 56 ? VKROPE_MAPPING_CPU
                                                      : VKROPE_MAPPING_AUTOMATIC;
                run_each_access(test, trial);
            }
        });
    }
}

/// If the device converts f16 natively, other types in the same call are still converted with
/// integers.
void add_elements_beside_f16(Checks& checks) {
    for (const Element element : {VKROPE_F32, VKROPE_BF16}) {
        checks.add(fmt::format("{}_beside_f16", name_of(element)), [=](Test& test) {
            Trial trial = two_tensors(element, 32, 32);
            trial.info.tensor[K].in = trial.info.tensor[K].out = VKROPE_F16;
            trial.info.conversion = test.device.traits().converts_f16 ? VKROPE_CONVERSION_NATIVE
                                                                      : VKROPE_CONVERSION_INTEGER;
            run_each_access(test, trial);
        });
    }
}

void add_pages(Checks& checks) {
    for (const Element element : {VKROPE_F16, VKROPE_F32}) {
        for (const bool by_head : {false, true}) {
            checks.add(fmt::format("pages{}_{}", by_head ? "_by_head" : "", name_of(element)),
                       [=](Test& test) {
                           for (const std::uint32_t rotary_dim : {64u, 56u}) {  // 56: no unit of 8
                               Trial trial = two_tensors(element, rotary_dim, 16);
                               trial.info.mapping = rotary_dim == 56 ? VKROPE_MAPPING_CPU
                                                                     : VKROPE_MAPPING_AUTOMATIC;
                               trial.info.scatter_kv = true;
                               trial.info.positions = element == VKROPE_F16
                                                          ? VKROPE_POSITIONS_IDS
                                                          : VKROPE_POSITIONS_IMPLICIT;
                               trial.ids = random_positions(trial.shape.rows(), -70, 70, 94);
                               trial.call.paged_cache.page_size = 4;
                               trial.pages_by_head = by_head;
                               trial.call.paged_cache.int64 = by_head;
                               run_each_access(test, trial);
                           }
                       });
        }
    }
}

void add_lean(Checks& checks) {
    for (const AngleSource source : our_sources) {
        checks.add(fmt::format("one_tensor_a_dispatch_{}", name_of(source)), [=](Test& test) {
            // With a table in a buffer, the table is the fourth storage buffer, and none
            // is left for the counter.
            const bool buffer = source == VKROPE_ANGLES_DIRECT_BUFFER;
            for (const PositionSource positions :
                 {VKROPE_POSITIONS_IMPLICIT, VKROPE_POSITIONS_IDS}) {
                if (!buffer &&
                    (positions == VKROPE_POSITIONS_IDS) != (source == VKROPE_ANGLES_COMPUTED)) {
                    continue;
                }
                Trial trial = two_tensors(
                    source == VKROPE_ANGLES_COMPUTED ? VKROPE_F32 : VKROPE_F16, 32, 32);
                trial.info.angles = source;
                trial.info.positions = positions;
                trial.ids = random_positions(trial.shape.rows(), -70, 70, 95);
                trial.limits = {.storage_buffers = 4};
                run_each_access(test, trial);
            }
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
