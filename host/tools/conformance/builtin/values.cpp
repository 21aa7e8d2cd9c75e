// SPDX-License-Identifier: MIT
// Checks V with Q and K: V is moved to its output and never rotated. If its type does not change,
// its bits do not either, including NaNs and subnormals. V shares the dispatch of K if it has the
// same layout, and otherwise has a separate dispatch; neither changes a bit of Q, K or V.
#include "base/meaning.hpp"
#include "conformance/builtin/value_trials.hpp"

namespace vkrope::conformance {
namespace {

// Splits the packed output of a QKV projection into three tensors, and rotates it in place.
void split(Test& test, Trial trial) {
    trial.in = Arrangement::packed_qkv;
    const Rotated apart = run_as(test, trial, Dispatch::of_k);
    trial.in_place.fill(true);
    const Rotated in_place = run_as(test, trial, Dispatch::of_k);
    test.hold(same_bits(apart, in_place), "in place gives different bits");
}

void add_splits(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        for (const Element element : elements) {
            struct Rows {
                const char* name;
                Trial (*make)(Element, Mapping);
                bool quick;
            };
            for (const Rows& rows : {Rows{"packed_qkv", whole_rows, element == VKROPE_F16},
                                     {"partial_rotary", partial_rows, element == VKROPE_F32}}) {
                checks.add(
                    fmt::format("{}_{}_{}", rows.name, device_of(mapping), name_of(element)),
                    [=](Test& test) {
                        const Trial trial = rows.make(element, mapping);
                        split(test, trial);
                        run_each_access(test, trial, Dispatch::of_k);
                    },
                    rows.quick ? Level::quick : Level::full);
            }
        }
    }
    // Windows that prevent 16-byte access but allow access of two words at a time with
    // VKROPE_MAPPING_CPU.
    checks.add("two_words_cpu", [](Test& test) {
        for (Trial trial : {three_tensors(VKROPE_F16, 28, 24, 4, VKROPE_MAPPING_CPU),
                            three_tensors(VKROPE_F32, 14, 12, 2, VKROPE_MAPPING_CPU)}) {
            split(test, trial);
            trial.shape.own_v_heads = 2;
            run_as(test, trial, Dispatch::of_its_own);
        }
    });
}

// Checks V with another shape than K, or without K.
void add_own_dispatches(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        const auto add = [&](const char* name, void (*change)(Trial&)) {
            checks.add(
                fmt::format("{}_{}", name, device_of(mapping)),
                [=](Test& test) {
                    Trial trial = whole_rows(VKROPE_F16, mapping);
                    change(trial);
                    run_each_access(test, trial, Dispatch::of_its_own);
                    trial.in = Arrangement::packed_qkv;
                    trial.out = Arrangement::bshd;
                    run_as(test, trial, Dispatch::of_its_own);
                    if (!trial.absent[Q]) {
                        trial.in_place.fill(true);
                        run_as(test, trial, Dispatch::of_its_own);
                    }
                });
        };
        add(
            "more_heads_than_k", [](Trial& trial) { trial.shape.own_v_heads = 7; });
        add(
            "one_head", [](Trial& trial) { trial.shape.own_v_heads = 1; });
        add("v_alone_in_the_call", [](Trial& trial) { trial.absent = {true, true, false}; });
        checks.add(fmt::format("other_head_dim_{}", device_of(mapping)), [=](Test& test) {
            Trial trial = whole_rows(VKROPE_F16, mapping);
            trial.info.tensor[V].head_dim = mapping == VKROPE_MAPPING_GPU ? 48 : 9;
            run_each_access(test, trial, Dispatch::of_its_own);
            trial.in_place.fill(true);
            trial.in = Arrangement::packed_qkv;
            run_as(test, trial, Dispatch::of_its_own);
        });
        checks.add(fmt::format("elements_of_f32_{}", device_of(mapping)), [=](Test& test) {
            Trial trial = whole_rows(VKROPE_F32, mapping);
            trial.shape.own_v_heads = 2;
            run_each_access(test, trial, Dispatch::of_its_own);
        });
    }
}

// Checks Q, K and V in each arrangement. V has the layout of K except in the arrangement that
// gives K a single row.
void add_arrangements(Checks& checks) {
    for (const NamedArrangement& in : arrangements) {
        if (in.value == Arrangement::gathered) continue;  // Q, K and V have other numbers of parts
        const bool broadcast = in.value == Arrangement::broadcast;
        const Dispatch dispatch = broadcast ? Dispatch::of_its_own : Dispatch::of_k;
        const Arrangement same = broadcast ? Arrangement::bshd : in.value;
        const auto shaped = [](Trial trial, Arrangement from, Arrangement to) {
            trial.in = from;
            trial.out = to;
            // Grouped heads need one dispatch for each sequence.
            const auto one_sequence = [](Arrangement rows) {
                return rows == Arrangement::thd || rows == Arrangement::grouped_qkv ||
                       rows == Arrangement::groups_first;
            };
            if (one_sequence(from) || one_sequence(to)) {
                trial.shape.tokens *= trial.shape.batch;
                trial.shape.batch = 1;
            }
            return trial;
        };
        checks.add(fmt::format("rows_{}", in.name), [=](Test& test) {
            Trial trial = shaped(whole_rows(VKROPE_F16, VKROPE_MAPPING_AUTOMATIC), in.value, same);
            run_as(test, trial, dispatch);
            trial.out = Arrangement::odd_pairs;
            run_as(test, trial, dispatch);
            if (!broadcast) {
                trial.in_place.fill(true);
                run_as(test, trial, dispatch);
            }
        });
    }
}

// Scatters K and V of one call into caches, with Q out of place or in place. Some slots are -1,
// others are out of range. Rows that belong to no token keep their bits.
void hold_pages(Test& test, Trial trial, bool by_head) {
    trial.info.scatter_kv = true;
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.shape.tokens = 11;
    trial.ids = random_positions(trial.shape.rows(), -70, 70,
                                 32);  // some are out of range: their V is moved nevertheless
    trial.pages_by_head = by_head;
    for (const std::uint32_t page_size : {1u, 4u}) {
        trial.call.paged_cache.page_size = page_size;
        trial.call.paged_cache.int64 = page_size == 1;
        for (const Arrangement rows :
             {Arrangement::packed_qkv, Arrangement::odd_pairs, Arrangement::odd_offsets}) {
            trial.in = trial.out = rows;
            trial.in_place.fill(page_size == 1);
            run_as(test, trial, Dispatch::of_k);
        }
    }
    trial.shape.own_v_heads = 2;  // K has three heads
    run_as(test, trial, Dispatch::of_its_own);
    trial.absent = {true, true, false};
    run_as(test, trial, Dispatch::of_its_own);
}

void add_pages(Checks& checks) {
    checks.add(
        "pages_whole_gpu_f16",
        [](Test& test) { hold_pages(test, whole_rows(VKROPE_F16, VKROPE_MAPPING_GPU), false); });
    checks.add("pages_by_head_partial_cpu_f16", [](Test& test) {
        hold_pages(test, partial_rows(VKROPE_F16, VKROPE_MAPPING_CPU), true);
    });
}

// Checks conversions with integers and, if the device supports them, native conversions.
void add_conversions(Checks& checks) {
    for (const Element in : elements) {
        for (const Element out : elements) {
            // K keeps another type. Only one kind of access is tested, because each kernel takes
            // time to compile.
            checks.add(fmt::format("{}_to_{}", name_of(in), name_of(out)), [=](Test& test) {
                Trial trial = three_tensors(in == VKROPE_F32 ? VKROPE_BF16 : VKROPE_F32, 9, 4, 1,
                                            VKROPE_MAPPING_AUTOMATIC);
                trial.info.tensor[V].in = in;
                trial.info.tensor[V].out = out;
                trial.info.tensor[Q] = {};
                trial.shape.tokens = 24;
                const bool half = in == VKROPE_F16 || out == VKROPE_F16;
                trial.info.conversion = VKROPE_CONVERSION_INTEGER;
                run_as(test, trial, Dispatch::of_k);
                if (half && test.device.traits().converts_f16) {  // elements/native has the reason
                    trial.info.conversion = VKROPE_CONVERSION_NATIVE;
                    run_as(test, trial, Dispatch::of_k);
                }
            });
        }
    }
}

// Checks head counts known to the kernel, with enough tokens that a lane has several heads of K
// together with those of V.
void add_several_heads(Checks& checks) {
    for (const bool has_q : {true, false}) {
        checks.add(
            has_q ? "several_heads_a_lane_of_q_and_k" : "several_heads_a_lane_of_k",
            [=](Test& test) {
                const std::uint32_t groups = has_q ? 8 : 12;
                Trial trial = (has_q ? whole_rows : partial_rows)(VKROPE_F32, VKROPE_MAPPING_GPU);
                trial.shape = {.batch = 1, .tokens = 1030, .groups = groups, .q_per_group = 2};
                if (!has_q) trial.info.tensor[Q] = {};
                trial.info.tensor[Q].heads = has_q ? trial.shape.q_heads() : 0;
                trial.info.tensor[K].heads = trial.info.tensor[V].heads = groups;
                trial.in = trial.out = Arrangement::odd_offsets;
                trial.max_position = 2048;
                run_as(test, trial, Dispatch::of_k);
            });
    }
}

}  // namespace

void add_values(Checks& checks) {
    add_splits(checks);
    add_own_dispatches(checks);
    add_arrangements(checks);
    add_pages(checks);
    add_conversions(checks);
    add_few_storage_buffers(checks);
    add_cuts(checks);
    add_several_heads(checks);
}

}  // namespace vkrope::conformance
