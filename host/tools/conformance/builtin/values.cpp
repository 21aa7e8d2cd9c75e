// SPDX-License-Identifier: MIT
// V with Q and K: V is moved to its output and never rotated. If its type does not change, neither
// do its bits, including NaNs and subnormals. V shares the dispatch of K if it has the same layout,
// and otherwise has its own; neither choice changes a bit of Q, K or V.
#include "conformance/builtin/value_trials.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {
namespace {

/// Splits the packed output of a QKV projection into three tensors, and rotates it in place.
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
            // With VKROPE_MAPPING_CPU both are the same: V is copied, head by head.
            const bool gpu = mapping == VKROPE_MAPPING_GPU;
            for (const Rows& rows : {Rows{"packed_qkv", whole_rows,
                                          element == VKROPE_F16 || (gpu && element == VKROPE_F32)},
                                     {"partial_rotary", partial_rows,
                                      element == VKROPE_F32 || (gpu && element == VKROPE_F16)}}) {
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
    // Windows that prevent 16-byte access but allow two words, which an invocation with
    // VKROPE_MAPPING_CPU then takes at a time.
    checks.add("two_words_cpu", [](Test& test) {
        for (Trial trial : {three_tensors(VKROPE_F16, 28, 24, 4, VKROPE_MAPPING_CPU),
                            three_tensors(VKROPE_F32, 14, 12, 2, VKROPE_MAPPING_CPU)}) {
            split(test, trial);
            trial.shape.own_v_heads = 2;
            run_as(test, trial, Dispatch::of_its_own);
        }
    });
}

/// V with another shape than K, or without K.
void add_own_dispatches(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        const auto add = [&](const char* name, void (*change)(Trial&)) {
            checks.add(fmt::format("{}_{}", name, device_of(mapping)), [=](Test& test) {
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
        add("more_heads_than_k", [](Trial& trial) { trial.shape.own_v_heads = 7; });
        add("one_head", [](Trial& trial) { trial.shape.own_v_heads = 1; });
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

/// Q, K and V in each arrangement: V has the layout of K except in the arrangement that gives K a
/// single row.
void add_arrangements(Checks& checks) {
    for (const NamedArrangement& in : arrangements) {
        const bool broadcast = in.value == Arrangement::broadcast;
        const Dispatch dispatch = broadcast ? Dispatch::of_its_own : Dispatch::of_k;
        const Arrangement same = broadcast ? Arrangement::bshd : in.value;
        const auto shaped = [](Trial trial, Arrangement from, Arrangement to) {
            trial.in = from;
            trial.out = to;
            // Grouped heads take one dispatch for each sequence.
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
        for (const NamedArrangement& out : arrangements) {
            if (out.value == Arrangement::broadcast) {
                continue;
            }
            checks.add(
                fmt::format("rows_{}_to_{}", in.name, out.name),
                [=](Test& test) {
                    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
                        for (const Element element : elements) {
                            run_as(test, shaped(whole_rows(element, mapping), in.value, out.value),
                                   dispatch);
                            run_as(test,
                                   shaped(partial_rows(element, mapping), in.value, out.value),
                                   dispatch);
                            Trial odd = shaped(three_tensors(element, 9, 4, 1, mapping), in.value,
                                               out.value);
                            run_as(test, odd, dispatch);
                            odd.shape.own_v_heads = 2;
                            run_as(test, odd, Dispatch::of_its_own);
                        }
                    }
                },
                Level::full);
        }
    }
}

/// Scatters K and V of one call into caches; Q out of place or in place. Some slots are -1, some
/// out of range; rows that no token names keep their bits.
void hold_pages(Test& test, Trial trial, bool by_head) {
    trial.info.scatter_kv = true;
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.shape.tokens = 11;
    trial.ids = random_positions(trial.shape.rows(), -70, 70,
                                 32);  // some are out of range: their V is moved all the same
    trial.pages_by_head = by_head;
    const bool joins = trial.info.tensor[V].head_dim == trial.info.tensor[K].head_dim;
    for (const std::uint32_t page_size : {1u, 4u}) {
        if (page_size == 1 && by_head && !joins) {
            continue;  // pages of one row have the stride of packed rows, which both caches share
        }
        trial.call.paged_cache.page_size = page_size;
        trial.call.paged_cache.int64 = page_size == 1;
        for (const Arrangement rows :
             {Arrangement::packed_qkv, Arrangement::odd_pairs, Arrangement::odd_offsets}) {
            trial.in = trial.out = rows;
            trial.in_place.fill(page_size == 1);
            run_as(test, trial, joins ? Dispatch::of_k : Dispatch::of_its_own);
        }
    }
    trial.shape.own_v_heads = 2;  // K has three
    run_as(test, trial, Dispatch::of_its_own);
    trial.absent = {true, true, false};
    run_as(test, trial, Dispatch::of_its_own);
}

void add_pages(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        for (const Element element : elements) {
            for (const bool by_head : {false, true}) {
                const bool gpu = mapping == VKROPE_MAPPING_GPU;
                const auto add = [&](const char* name, bool quick, void (*change)(Trial&),
                                     Trial (*make)(Element, Mapping)) {
                    checks.add(
                        fmt::format("pages{}_{}_{}_{}", by_head ? "_by_head" : "", name,
                                    device_of(mapping), name_of(element)),
                        [=](Test& test) {
                            Trial trial = make(element, mapping);
                            change(trial);
                            hold_pages(test, trial, by_head);
                        },
                        quick ? Level::quick : Level::full);
                };
                const auto as_it_is = [](Trial&) {};
                add("whole", !by_head && gpu && element == VKROPE_F16, as_it_is, whole_rows);
                add("partial", by_head && element == (gpu ? VKROPE_F32 : VKROPE_F16), as_it_is,
                    partial_rows);
                add(
                    "other_head_dim", !by_head && !gpu && element == VKROPE_F16,
                    [](Trial& trial) { trial.info.tensor[V].head_dim = 16; }, whole_rows);
            }
        }
    }
}

/// Converts in the dispatch of K and in a separate one, with integers and, if the device supports
/// it, natively.
void hold_elements(Test& test, Trial trial) {
    for (const Conversion conversion : {VKROPE_CONVERSION_INTEGER, VKROPE_CONVERSION_NATIVE}) {
        const bool half = trial.info.tensor[V].in == VKROPE_F16 ||
                          trial.info.tensor[V].out == VKROPE_F16;
        if (conversion == VKROPE_CONVERSION_NATIVE &&
            !(half && test.device.traits().converts_f16)) {
            continue;  // the check elements/native gives the reason
        }
        trial.info.conversion = conversion;
        trial.shape.own_v_heads = 0;
        run_as(test, trial, Dispatch::of_k);
        trial.shape.own_v_heads = 2;
        run_as(test, trial, Dispatch::of_its_own);
    }
}

void add_conversions(Checks& checks) {
    for (const Element in : elements) {
        for (const Element out : elements) {
            const std::string name = fmt::format("{}_to_{}", name_of(in), name_of(out));
            const auto converting = [=](Trial trial) {
                trial.info.tensor[V].in = in;
                trial.info.tensor[V].out = out;
                return trial;
            };
            // Uses a single kind of access, because compiling each kernel takes time. Q and K keep
            // another type.
            checks.add(name, [=](Test& test) {
                Trial trial = converting(three_tensors(in == VKROPE_F32 ? VKROPE_BF16 : VKROPE_F32,
                                                       9, 4, 1, VKROPE_MAPPING_AUTOMATIC));
                trial.info.tensor[Q] = {};
                trial.shape.tokens = 24;
                hold_elements(test, trial);
            });
            checks.add(
                name + "_each_access",
                [=](Test& test) {
                    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
                        for (const Element beside : elements) {
                            for (const NamedArrangement& rows : widest_first) {
                                for (Trial trial :
                                     {whole_rows(beside, mapping), partial_rows(beside, mapping)}) {
                                    trial.in = trial.out = rows.value;
                                    hold_elements(test, converting(trial));
                                }
                            }
                        }
                    }
                },
                Level::full);
        }
    }
    // All 16-bit values, in units of 16 bytes.
    for (const Element out : elements) {
        for (const Element in : {VKROPE_F16, VKROPE_BF16}) {
            checks.add(
                fmt::format("all_65536_{}_to_{}", name_of(in), name_of(out)),
                [=](Test& test) {
                    Trial trial = whole_rows(in, VKROPE_MAPPING_AUTOMATIC);
                    trial.info.tensor[V].out = out;
                    trial.shape = {
                        .batch = 1, .tokens = (1u << 16) / 32, .groups = 1, .q_per_group = 1};
                    trial.max_position = trial.shape.tokens + 3;
                    trial.rows[V].resize(elements_of(trial, V) * element_bytes(in));
                    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
                        store(in, trial.rows[V], bits, bits);
                    }
                    test.run(trial);
                },
                Level::full);
        }
    }
}

/// Head counts known to the kernel, and enough tokens that a lane has several heads of K together
/// with those of V.
void add_several_heads(Checks& checks) {
    const struct {
        const char* name;
        Trial (*make)(Element, Mapping);
        bool has_q, known;
        std::uint32_t groups;
    } calls[] = {{"of_q_and_k", whole_rows, true, true, 8},
                 {"of_q", whole_rows, true, false, 8},
                 {"of_k", whole_rows, false, true, 7},
                 {"of_k_partial_rotary", partial_rows, false, true, 12}};
    for (const auto& [name, make, has_q, known, groups] : calls) {
        checks.add(fmt::format("several_heads_a_lane_{}", name), [=](Test& test) {
            Trial trial = make(VKROPE_F32, VKROPE_MAPPING_GPU);
            trial.shape = {.batch = 1, .tokens = 1030, .groups = groups, .q_per_group = 2};
            if (!has_q) {
                trial.info.tensor[Q] = {};
            }
            if (known) {
                trial.info.tensor[Q].heads = has_q ? trial.shape.q_heads() : 0;
                trial.info.tensor[K].heads = trial.info.tensor[V].heads = groups;
            }
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
