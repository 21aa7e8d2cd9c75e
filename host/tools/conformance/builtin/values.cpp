// SPDX-License-Identifier: MIT
// V with Q and K: V is moved to its output and never rotated. If its type does not change, neither
// do its bits, including NaNs and subnormals. V shares the dispatch of K if it has the same layout,
// and otherwise has its own; neither choice changes a bit of Q, K or V.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t storage_buffers_to_join = 8;  // Q, K and V, in and out, ids and the counter

/// Ordered by the row access of a kernel for 16-bit elements: 16 bytes, words, single elements. For
/// f32 the last two are the same.
constexpr Arrangement widest_first[] = {Arrangement::bshd, Arrangement::odd_pairs,
                                        Arrangement::odd_offsets};

/// Random bits, including values that a conversion to a number might change: zeros of either sign,
/// subnormals, infinities, quiet and signalling NaNs with a payload.
Bytes values_of(Element element, std::size_t count, std::uint32_t seed) {
    const std::uint32_t sign = element == Element::f32 ? 0x80000000u : 0x8000u;
    const std::uint32_t infinity = element == Element::f32   ? 0x7f800000u
                                   : element == Element::f16 ? 0x7c00u
                                                             : 0x7f80u;
    const std::uint32_t quiet = element == Element::f32   ? 0x400000u
                                : element == Element::f16 ? 0x200u
                                                          : 0x40u;
    const std::uint32_t least_normal = infinity & ~(infinity << 1);
    const std::uint32_t special[] = {
        0, 1, least_normal - 1, least_normal - 3, infinity, infinity | 5, infinity | quiet | 9};
    Bytes bytes = random_bits(element, count, seed);
    for (std::size_t i = 0; i < count; i += 3) {
        store(element, bytes, i, special[i / 3 % std::size(special)] | (i % 2 == 0 ? sign : 0));
    }
    return bytes;
}

/// Q and K with `head_dim` channels, `rotary_dim` of them rotated from channel `offset` on, and V
/// with the same head_dim.
Trial three_tensors(Element element, std::uint32_t head_dim, std::uint32_t rotary_dim,
                    std::uint32_t offset, Mapping mapping) {
    Trial trial = trial_of(element, head_dim, 5);
    trial.info.rotary_dim = rotary_dim;
    trial.info.q.rotary_offset = offset;
    trial.info.k = trial.info.q;
    trial.info.v = {.in = element, .out = element, .head_dim = head_dim};
    trial.info.mapping = mapping;
    trial.shape = {.batch = 2, .tokens = 5, .groups = 3, .q_per_group = 2};
    trial.first = 3;
    return trial;
}

/// Every channel is rotated: on a GPU each lane that has a step of K also has one of V.
Trial whole_rows(Element element, Mapping mapping) {
    return three_tensors(element, 32, 32, 0, mapping);
}

/// V has more steps than the rotated ones of K, and an odd number of 16-byte units.
Trial partial_rows(Element element, Mapping mapping) {
    return three_tensors(element, 56, 16, 8, mapping);
}

enum class Dispatch { of_k, of_its_own };

/// Runs the trial with values_of() as V, and checks which dispatch moves V.
Rotated run_as(DeviceUnderTest& device, Trial trial, Dispatch dispatch, Findings& findings) {
    trial.v = values_of(trial.info.v.in, v_elements(trial), 31);
    const Rotated rotated = run(device, trial, findings);
    const bool own = dispatch == Dispatch::of_its_own && (!trial.in_place || trial.info.scatter_k);
    const std::uint64_t others = trial.only_v ? 0 : 1;
    if (device.info().limits.maxPerStageDescriptorStorageBuffers >
        storage_buffers_to_join) {  // slots need one more
        findings.hold(rotated.dispatches == others + (own ? 1 : 0),
                      "{} dispatches where V takes {}", rotated.dispatches,
                      own ? "one of its own" : "that of K");
    }
    return rotated;
}

void run_each_access(DeviceUnderTest& device, Trial trial, Dispatch dispatch, Findings& findings) {
    for (const Arrangement rows : widest_first) {
        trial.in = trial.out = rows;
        run_as(device, trial, dispatch, findings);
    }
}

/// Splits the packed output of a QKV projection into three tensors, and rotates it in place.
void split(DeviceUnderTest& device, Trial trial, Findings& findings) {
    trial.in = Arrangement::packed_qkv;
    const Rotated apart = run_as(device, trial, Dispatch::of_k, findings);
    trial.in_place = true;
    const Rotated in_place = run_as(device, trial, Dispatch::of_k, findings);
    findings.hold(apart.q == in_place.q && apart.k == in_place.k && apart.v == in_place.v,
                  "in place gives different bits");
}

const char* device_of(Mapping mapping) {
    return mapping == Mapping::gpu ? "gpu" : "cpu";
}

void add_splits(Checks& checks) {
    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
        for (const Element element : elements) {
            struct Rows {
                const char* name;
                Trial (*make)(Element, Mapping);
                bool quick;
            };
            // With Mapping::cpu both are the same: V is copied, head by head.
            const bool gpu = mapping == Mapping::gpu;
            for (const Rows& rows :
                 {Rows{"packed_qkv", whole_rows,
                       element == Element::f16 || (gpu && element == Element::f32)},
                  {"partial_rotary", partial_rows,
                   element == Element::f32 || (gpu && element == Element::f16)}}) {
                checks.add(
                    fmt::format("{}_{}_{}", rows.name, device_of(mapping), name_of(element)),
                    [=](DeviceUnderTest& device, Findings& findings) {
                        const Trial trial = rows.make(element, mapping);
                        split(device, trial, findings);
                        run_each_access(device, trial, Dispatch::of_k, findings);
                    },
                    rows.quick ? Level::quick : Level::full);
            }
        }
    }
    // Windows that prevent 16-byte access but allow two words, which an invocation with
    // Mapping::cpu then takes at a time.
    checks.add("two_words_cpu", [](DeviceUnderTest& device, Findings& findings) {
        for (Trial trial : {three_tensors(Element::f16, 28, 24, 4, Mapping::cpu),
                            three_tensors(Element::f32, 14, 12, 2, Mapping::cpu)}) {
            split(device, trial, findings);
            trial.shape.own_v_heads = 2;
            run_as(device, trial, Dispatch::of_its_own, findings);
        }
    });
}

/// V with another shape than K, or without K.
void add_own_dispatches(Checks& checks) {
    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
        const auto add = [&](const char* name, void (*change)(Trial&)) {
            checks.add(fmt::format("{}_{}", name, device_of(mapping)),
                       [=](DeviceUnderTest& device, Findings& findings) {
                           Trial trial = whole_rows(Element::f16, mapping);
                           change(trial);
                           run_each_access(device, trial, Dispatch::of_its_own, findings);
                           trial.in = Arrangement::packed_qkv;
                           trial.out = Arrangement::bshd;
                           run_as(device, trial, Dispatch::of_its_own, findings);
                           if (!trial.only_v) {
                               trial.in_place = true;
                               run_as(device, trial, Dispatch::of_its_own, findings);
                           }
                       });
        };
        add("more_heads_than_k", [](Trial& trial) { trial.shape.own_v_heads = 7; });
        add("one_head", [](Trial& trial) { trial.shape.own_v_heads = 1; });
        add("v_alone_in_the_call", [](Trial& trial) { trial.only_v = true; });
        checks.add(fmt::format("other_head_dim_{}", device_of(mapping)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = whole_rows(Element::f16, mapping);
                       trial.info.v.head_dim = mapping == Mapping::gpu ? 48 : 9;
                       run_each_access(device, trial, Dispatch::of_its_own, findings);
                       trial.in_place = true;
                       trial.in = Arrangement::packed_qkv;
                       run_as(device, trial, Dispatch::of_its_own, findings);
                   });
        checks.add(fmt::format("elements_of_f32_{}", device_of(mapping)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = whole_rows(Element::f32, mapping);
                       trial.shape.own_v_heads = 2;
                       run_each_access(device, trial, Dispatch::of_its_own, findings);
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
        checks.add(
            fmt::format("rows_{}", in.name), [=](DeviceUnderTest& device, Findings& findings) {
                Trial trial = shaped(whole_rows(Element::f16, Mapping::by_device), in.value, same);
                run_as(device, trial, dispatch, findings);
                trial.out = Arrangement::odd_pairs;
                run_as(device, trial, dispatch, findings);
                if (!broadcast) {
                    trial.in_place = true;
                    run_as(device, trial, dispatch, findings);
                }
            });
        for (const NamedArrangement& out : arrangements) {
            if (out.value == Arrangement::broadcast) {
                continue;
            }
            checks.add(
                fmt::format("rows_{}_to_{}", in.name, out.name),
                [=](DeviceUnderTest& device, Findings& findings) {
                    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
                        for (const Element element : elements) {
                            run_as(device,
                                   shaped(whole_rows(element, mapping), in.value, out.value),
                                   dispatch, findings);
                            run_as(device,
                                   shaped(partial_rows(element, mapping), in.value, out.value),
                                   dispatch, findings);
                            Trial odd = shaped(three_tensors(element, 9, 4, 1, mapping), in.value,
                                               out.value);
                            run_as(device, odd, dispatch, findings);
                            odd.shape.own_v_heads = 2;
                            run_as(device, odd, Dispatch::of_its_own, findings);
                        }
                    }
                },
                Level::full);
        }
    }
}

/// Scatters K and V of one call into caches; Q out of place or in place. Some slots are -1, some
/// out of range; rows that no token names keep their bits.
void hold_pages(DeviceUnderTest& device, Trial trial, bool by_head, Findings& findings) {
    trial.info.scatter_k = true;
    trial.info.positions = PositionSource::ids;
    trial.shape.tokens = 11;
    trial.ids = random_positions(trial.shape.rows(), -70, 70,
                                 32);  // some are out of range: their V is moved all the same
    trial.pages_by_head = by_head;
    const bool joins = trial.info.v.head_dim == trial.info.k.head_dim;
    for (const std::uint32_t page_size : {1u, 4u}) {
        if (page_size == 1 && by_head && !joins) {
            continue;  // pages of one row have the stride of packed rows, which both caches share
        }
        trial.page_size = page_size;
        trial.slots_64 = page_size == 1;
        for (const Arrangement rows :
             {Arrangement::packed_qkv, Arrangement::odd_pairs, Arrangement::odd_offsets}) {
            trial.in = trial.out = rows;
            trial.in_place = page_size == 1;
            run_as(device, trial, joins ? Dispatch::of_k : Dispatch::of_its_own, findings);
        }
    }
    trial.shape.own_v_heads = 2;  // K has three
    run_as(device, trial, Dispatch::of_its_own, findings);
    trial.only_v = true;
    run_as(device, trial, Dispatch::of_its_own, findings);
}

void add_pages(Checks& checks) {
    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
        for (const Element element : elements) {
            for (const bool by_head : {false, true}) {
                const bool gpu = mapping == Mapping::gpu;
                const auto add = [&](const char* name, bool quick, void (*change)(Trial&),
                                     Trial (*make)(Element, Mapping)) {
                    checks.add(
                        fmt::format("pages{}_{}_{}_{}", by_head ? "_by_head" : "", name,
                                    device_of(mapping), name_of(element)),
                        [=](DeviceUnderTest& device, Findings& findings) {
                            Trial trial = make(element, mapping);
                            change(trial);
                            hold_pages(device, trial, by_head, findings);
                        },
                        quick ? Level::quick : Level::full);
                };
                const auto as_it_is = [](Trial&) {};
                add("whole", !by_head && gpu && element == Element::f16, as_it_is, whole_rows);
                add("partial", by_head && element == (gpu ? Element::f32 : Element::f16), as_it_is,
                    partial_rows);
                add(
                    "other_head_dim", !by_head && !gpu && element == Element::f16,
                    [](Trial& trial) { trial.info.v.head_dim = 16; }, whole_rows);
            }
        }
    }
}

/// Converts in the dispatch of K and in a separate one, with integers and, if the device supports
/// it, natively.
void hold_elements(DeviceUnderTest& device, Trial trial, Findings& findings) {
    for (const Conversion conversion : {Conversion::integer, Conversion::native}) {
        const bool half = trial.info.v.in == Element::f16 || trial.info.v.out == Element::f16;
        if (conversion == Conversion::native && !(half && device.traits().converts_f16)) {
            continue;  // the check elements/native gives the reason
        }
        trial.info.conversion = conversion;
        trial.shape.own_v_heads = 0;
        run_as(device, trial, Dispatch::of_k, findings);
        trial.shape.own_v_heads = 2;
        run_as(device, trial, Dispatch::of_its_own, findings);
    }
}

void add_conversions(Checks& checks) {
    for (const Element in : elements) {
        for (const Element out : elements) {
            const std::string name = fmt::format("{}_to_{}", name_of(in), name_of(out));
            const auto converting = [=](Trial trial) {
                trial.info.v.in = in;
                trial.info.v.out = out;
                return trial;
            };
            // Uses a single kind of access, because compiling each kernel takes time. Q and K keep
            // another type.
            checks.add(name, [=](DeviceUnderTest& device, Findings& findings) {
                Trial trial = converting(
                    three_tensors(in == Element::f32 ? Element::bf16 : Element::f32, 9, 4, 1,
                                  Mapping::by_device));
                trial.info.q = {};
                trial.shape.tokens = 24;
                hold_elements(device, trial, findings);
            });
            checks.add(
                name + "_each_access",
                [=](DeviceUnderTest& device, Findings& findings) {
                    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
                        for (const Element beside : elements) {
                            for (const Arrangement rows : widest_first) {
                                for (Trial trial :
                                     {whole_rows(beside, mapping), partial_rows(beside, mapping)}) {
                                    trial.in = trial.out = rows;
                                    hold_elements(device, converting(trial), findings);
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
        for (const Element in : {Element::f16, Element::bf16}) {
            checks.add(
                fmt::format("all_65536_{}_to_{}", name_of(in), name_of(out)),
                [=](DeviceUnderTest& device, Findings& findings) {
                    Trial trial = whole_rows(in, Mapping::by_device);
                    trial.info.v.out = out;
                    trial.shape = {
                        .batch = 1, .tokens = (1u << 16) / 32, .groups = 1, .q_per_group = 1};
                    trial.table_rows = trial.shape.tokens + 3;
                    trial.v.resize(v_elements(trial) * element_bytes(in));
                    for (std::uint32_t bits = 0; bits < 1u << 16; ++bits) {
                        store(in, trial.v, bits, bits);
                    }
                    run(device, trial, findings);
                },
                Level::full);
        }
    }
}

/// If the device binds few storage buffers, V has its own dispatch; with still fewer, Q and K have
/// separate ones too.
void add_few_storage_buffers(Checks& checks) {
    for (const Element element : elements) {
        for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
            const bool quick = element == Element::f16;
            checks.add(
                fmt::format("few_storage_buffers_{}_{}", device_of(mapping), name_of(element)),
                [=](DeviceUnderTest& device, Findings& findings) {
                    for (const auto& [storage_buffers, most] : {std::pair{6u, 2u}, {4u, 3u}}) {
                        if (quick && mapping == Mapping::gpu && storage_buffers == 6) {
                            continue;  // other checks cover these dispatches
                        }
                        for (const Arrangement rows : widest_first) {
                            Trial trial = whole_rows(element, mapping);
                            trial.v = values_of(element, v_elements(trial), 33);
                            trial.in = trial.out = rows;
                            const Rotated whole = run(device, trial, findings);
                            trial.limits = {.storage_buffers = storage_buffers};
                            const Rotated apart = run(device, trial, findings);
                            findings.hold(apart.dispatches == most,
                                          "{} dispatches where {} storage buffers make {}",
                                          apart.dispatches, storage_buffers, most);
                            findings.hold(
                                apart.q == whole.q && apart.k == whole.k && apart.v == whole.v,
                                "with {} storage buffers the bits are others", storage_buffers);
                            trial.only_v = true;
                            findings.hold(run(device, trial, findings).v == whole.v,
                                          "V alone in the call has different bits");
                        }
                    }
                },
                quick ? Level::quick : Level::full);
        }
    }
}

/// Calls that the device can only run in parts.
void add_cuts(Checks& checks) {
    const struct {
        const char* name;
        ReportedLimits limits;
        Mapping mapping;
    } forced[] = {
        {"range_of_64_KiB", {.storage_range = 1u << 16}, Mapping::cpu},
        {"7_workgroups", {.workgroups_x = 7, .workgroups_y = 2, .workgroups_z = 7}, Mapping::gpu}};
    for (const auto& [name, limits, mapping] : forced) {
        for (const bool paged : {false, true}) {
            checks.add(
                fmt::format("{}{}", name, paged ? "_pages" : ""),
                [=](DeviceUnderTest& device, Findings& findings) {
                    Trial trial = whole_rows(Element::f16, mapping);
                    trial.info.positions = paged ? PositionSource::ids : PositionSource::implicit;
                    trial.info.scatter_k = paged;
                    trial.shape.tokens = 160;
                    trial.table_rows = 200;
                    trial.first = -70;
                    trial.ids = random_positions(trial.shape.rows(), -205, 205,
                                                 34);  // some are outside
                    trial.in = Arrangement::packed_qkv;
                    trial.page_size = 16;
                    for (const std::uint32_t v_heads : {0u, 5u}) {
                        trial.shape.own_v_heads = v_heads;
                        trial.v = values_of(Element::f16, v_elements(trial), 35);
                        trial.limits = {};
                        const Rotated whole = run(device, trial, findings);
                        trial.limits = limits;
                        const Rotated cut = run(device, trial, findings);
                        findings.hold(cut.dispatches > whole.dispatches,
                                      "{} dispatches where {} had to be cut", cut.dispatches,
                                      whole.dispatches);
                        findings.hold(cut.q == whole.q && cut.k == whole.k && cut.v == whole.v,
                                      "cut into {} dispatches the bits are others", cut.dispatches);
                    }
                });
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
        checks.add(fmt::format("several_heads_a_lane_{}", name), [=](DeviceUnderTest& device,
                                                                     Findings& findings) {
            Trial trial = make(Element::f32, Mapping::gpu);
            trial.shape = {.batch = 1, .tokens = 1030, .groups = groups, .q_per_group = 2};
            if (!has_q) {
                trial.info.q = {};
            }
            if (known) {
                trial.info.q_heads = has_q ? trial.shape.q_heads() : 0;
                trial.info.k_heads = trial.info.v_heads = groups;
            }
            trial.in = trial.out = Arrangement::odd_offsets;
            trial.table_rows = 2048;
            run_as(device, trial, Dispatch::of_k, findings);
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
