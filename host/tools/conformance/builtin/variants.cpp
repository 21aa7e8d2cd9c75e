// SPDX-License-Identifier: MIT
// The shader variants of create(): steps of 16 bytes, of words and of single elements, with one
// angle for all pairs of a unit or one for each, from every source, with windows, sections and
// pages, for one tensor or two, mapped for CPUs and for GPUs. A kernel here runs three calls, whose
// strides select how it accesses memory. tests/tools/conformance/variant_coverage.cpp lists the
// variants that are reached.
#include <algorithm>

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

/// Ordered by the row access of a kernel for 16-bit elements: 16 bytes, words, single elements. For
/// f32 the last two are the same.
constexpr NamedArrangement widest_first[] = {{"16 bytes", Arrangement::bshd},
                                             {"words", Arrangement::odd_pairs},
                                             {"elements", Arrangement::odd_offsets}};

/// Runs the trial with each kind of access, out of place and, if allowed, in place.
void run_each_access(DeviceUnderTest& device, Trial trial, Findings& findings) {
    const KernelInfo& info = trial.info;
    const bool in_place = !info.scatter_k &&
                          info.pairing_out.value_or(info.pairing) == info.pairing &&
                          info.q.in == info.q.out;
    for (const NamedArrangement& rows : widest_first) {
        trial.in = trial.out = rows.value;
        trial.in_place = false;
        const Rotated apart = run(device, trial, findings);
        if (in_place) {
            trial.in_place = true;
            const Rotated same_place = run(device, trial, findings);
            findings.hold(apart.q == same_place.q && apart.k == same_place.k,
                          "{} at a time, in place gives different bits", rows.name);
        }
    }
}

/// Q and K alike: one window and `around` additional channels, half of them before it.
Trial two_tensors(Element element, std::uint32_t rotary_dim, std::uint32_t around = 0,
                  Pairing pairing = Pairing::half_split) {
    Trial trial = trial_of(element, rotary_dim + around, 5, pairing);
    trial.info.rotary_dim = rotary_dim;
    trial.info.q.rotary_offset = around / 2;
    trial.info.k = trial.info.q;
    trial.shape = {.batch = 2, .tokens = 5, .groups = 2, .q_per_group = 1};
    trial.first = 3;
    return trial;
}

enum class Turn { interleaved, unaligned, whole_units };

/// Sections of Qwen3-VL; sections that end within a unit; sections of whole units.
Sections sections_for(Turn turn, std::uint32_t pairs) {
    const std::uint32_t third = pairs / 3;
    switch (turn) {
        case Turn::interleaved:
            return {.order = SectionOrder::interleaved,
                    .axes = 3,
                    .pairs = {pairs - 2 * third, third, third}};
        case Turn::unaligned:
            return {.axes = 3, .pairs = {third, third + 3, pairs - 2 * third - 3}};
        case Turn::whole_units: return {.axes = 3, .pairs = {pairs / 4, pairs / 4, pairs / 2}};
    }
    return {};
}

void turn_by_axes(Trial& trial, Turn turn) {
    trial.info.positions = PositionSource::axis_ids;
    trial.info.sections = sections_for(turn, trial.info.rotary_dim / 2);
    const std::int64_t lowest = trial.info.angles == AngleSource::cos_sin_cache
                                    ? 0
                                    : 1 - std::int64_t{trial.table_rows};
    trial.ids = random_positions(std::size_t{3} * trial.shape.rows(), lowest, trial.table_rows - 1,
                                 91);
    trial.ids[trial.shape.rows() + 2] =
        trial.table_rows;  // the third token is out of range on its second axis
}

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
    trial.info.q.rotary_offset = trial.info.k.rotary_offset = 8;
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
            for (const Element element : {Element::f16, Element::bf16}) {
                const std::uint32_t at = i++;
                const AngleSource source = our_sources[(at + at / 4) % 4];
                checks.add(fmt::format("angles_of_pairs_{}_{}_{}_{}", rotary_dim,
                                       turn == Turn::interleaved ? "interleaved" : "unaligned",
                                       name_of(element), name_of(source)),
                           [=](DeviceUnderTest& device, Findings& findings) {
                               Trial trial = number(at, element, rotary_dim);
                               trial.info.angles = source;
                               turn_by_axes(trial, turn);
                               run_each_access(device, trial, findings);
                           });
            }
        }
    }
    for (std::uint32_t at = 0; at < 4; ++at) {
        const AngleSource source = our_sources[at];
        checks.add(fmt::format("angles_of_pairs_f32_{}", name_of(source)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = number(at, Element::f32, 64);
                       trial.info.angles = source;
                       turn_by_axes(trial, at % 2 == 0 ? Turn::unaligned : Turn::interleaved);
                       run_each_access(device, trial, findings);
                   });
    }
}

/// A cos_sin_cache, which is read pair by pair.
void add_callers_tables(Checks& checks) {
    std::uint32_t i = 0;
    for (const Element table : elements) {
        for (const Element element : {Element::f16, Element::f32}) {
            const std::uint32_t at = i++;
            checks.add(fmt::format("callers_table_{}_of_{}", name_of(table), name_of(element)),
                       [=](DeviceUnderTest& device, Findings& findings) {
                           Trial trial = number(at, element, 64);
                           trial.info.angles = AngleSource::cos_sin_cache;
                           if (at % 4 < 2) {
                               turn_by_axes(trial, Turn::interleaved);
                           }
                           add_callers_table(trial, table, trial.info.rotary_dim / 2 + 3, false);
                           run_each_access(device, trial, findings);
                       });
        }
    }
}

/// One angle, or one axis, for all pairs of a unit.
void add_angles_of_units(Checks& checks) {
    for (const AngleSource source : our_sources) {
        checks.add(fmt::format("angles_of_units_{}", name_of(source)), [=](DeviceUnderTest& device,
                                                                           Findings& findings) {
            Trial trial = two_tensors(Element::bf16, 64);
            trial.info.angles = source;
            trial.info.positions = PositionSource::ids;
            trial.ids = random_positions(trial.shape.rows(), -70, 70, 92);  // some are out of range
            run_each_access(device, trial, findings);
        });
    }
    for (const Element element : {Element::f16, Element::f32}) {
        checks.add(fmt::format("sections_of_whole_units_{}", name_of(element)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = two_tensors(element, 64);
                       turn_by_axes(trial, Turn::whole_units);
                       run_each_access(device, trial, findings);
                   });
    }
}

/// Element sizes that differ between Q and K, or between input and output.
void add_mixed_elements(Checks& checks) {
    for (const Pairing pairing : pairings) {
        checks.add(fmt::format("mixed_elements_{}", name_of(pairing)), [=](DeviceUnderTest& device,
                                                                           Findings& findings) {
            const bool half = pairing == Pairing::half_split;
            for (const std::uint32_t rotary_dim : {64u, 56u}) {  // 56: no unit of 8
                Trial trial = two_tensors(half ? Element::f32 : Element::f16, rotary_dim, 64,
                                          pairing);
                trial.info.q.out = trial.info.k.in = half ? Element::f16 : Element::f32;
                trial.info.mapping = rotary_dim == 56 ? Mapping::cpu : Mapping::by_device;
                run_each_access(device, trial, findings);
            }
        });
    }
}

/// If the device converts f16 natively, other types in the same call are still converted with
/// integers.
void add_elements_beside_f16(Checks& checks) {
    for (const Element element : {Element::f32, Element::bf16}) {
        checks.add(fmt::format("{}_beside_f16", name_of(element)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = two_tensors(element, 32, 32);
                       trial.info.k.in = trial.info.k.out = Element::f16;
                       trial.info.conversion = device.traits().converts_f16 ? Conversion::native
                                                                            : Conversion::integer;
                       run_each_access(device, trial, findings);
                   });
    }
}

// ---- Mapping of work to invocations ----

KernelInfo mapped(Mapping mapping, Element element) {
    Trial trial = two_tensors(element, 32, 32);
    trial.info.mapping = mapping;
    return trial.info;
}

/// Compares one call with four heads per invocation with two calls that are too small for that.
void hold_four_heads(DeviceUnderTest& device, Element element, Arrangement rows,
                     std::uint32_t lanes_of_token, Findings& findings) {
    constexpr std::uint32_t enough = 1u << 16;  // lanes: see host/kernel/plan.cpp
    const std::uint32_t tokens = enough / lanes_of_token + 2;
    DeviceUnderTest::KernelCall call = {.info = mapped(Mapping::gpu, element),
                                        .call = {.tokens = tokens}};
    const Shape shape = {.batch = 1, .tokens = tokens, .groups = 1, .q_per_group = 19};
    Piece piece = arrange(rows, shape, call.info.q.head_dim, call.info.k.head_dim);
    piece.q.rows.type = piece.k.rows.type = type_of(element);
    const std::size_t bytes = (piece.elements * element_bytes(element) + 3) / 4 * 4;
    // Repeats a few values with a period that makes nearby rows differ.
    const Bytes poison(bytes, std::byte{0xa5}), values = random_elements(element, 16381, 93);
    Bytes input(bytes);
    for (std::size_t byte = 0; byte < bytes; ++byte) {
        input[byte] = values[byte % values.size()];
    }
    Buffer in = device.upload(input.data(), bytes), out = device.upload(poison.data(), bytes);
    Rotation rotation;
    rotation.head_dim = rotation.rotary_dim = call.info.rotary_dim;
    rotation.inv_freq.resize(call.info.rotary_dim / 2);
    check(default_inv_freq(10000.0, call.info.rotary_dim, rotation.inv_freq.data()));
    rotation.sections = call.info.sections;
    const AngleTable table = value_of(
        AngleTable::make(device.device(), rotation, call.info.angles, tokens));
    call.call.angles = table.angles();
    const auto rotate = [&](std::uint32_t first, std::uint32_t count) {
        const auto from = [&](const Placed& placed, const Buffer& buffer) {
            const std::uint64_t skipped = first * placed.rows.token_stride * element_bytes(element);
            Tensor tensor = tensor_of(placed, buffer.whole(), skipped);
            tensor.where.range -= skipped;
            tensor.token_stride = static_cast<std::int64_t>(placed.rows.token_stride);
            return tensor;
        };
        call.call.q_in = from(piece.q, in);
        call.call.q_out = from(piece.q, out);
        call.call.k_in = from(piece.k, in);
        call.call.k_out = from(piece.k, out);
        call.call.tokens = count;
        call.call.positions.first = static_cast<std::int32_t>(first);
        device.rotate(call);
        Bytes result(bytes);
        device.download(out, result.data(), bytes);
        return result;
    };
    const Bytes four = rotate(0, tokens);
    check(out.upload(poison.data(), bytes));
    rotate(0, tokens / 2);
    findings.hold(four == rotate(tokens / 2, tokens - tokens / 2),
                  "several heads a lane give different bits than one");
    findings.hold(four != poison, "nothing has been rotated");
}

void add_mappings(Checks& checks) {
    for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
        for (const Element element : {Element::f16, Element::f32}) {
            const std::string name = fmt::format("{}_{}", mapping == Mapping::gpu ? "gpu" : "cpu",
                                                 name_of(element));
            checks.add("mapping_" + name, [=](DeviceUnderTest& device, Findings& findings) {
                Trial trial = two_tensors(element, 32, 32);
                trial.info = mapped(mapping, element);
                run_each_access(device, trial, findings);
            });
        }
    }
    // Windows that prevent 16-byte access but allow two words, which an invocation with
    // Mapping::cpu then takes at a time.
    checks.add("mapping_cpu_two_words", [](DeviceUnderTest& device, Findings& findings) {
        for (const Element element : {Element::f16, Element::f32}) {
            Trial trial = element == Element::f16 ? two_tensors(element, 24, 8)
                                                  : two_tensors(element, 12, 4);
            trial.info.mapping = Mapping::cpu;
            run_each_access(device, trial, findings);
        }
    });
    // Head counts known to the kernel that fill every lane: 16 steps and 4 heads side by side, 4
    // and 2 heads per lane.
    checks.add("mapping_gpu_known_heads", [](DeviceUnderTest& device, Findings& findings) {
        Trial trial = two_tensors(Element::f32, 32, 32);
        trial.info.mapping = Mapping::gpu;
        trial.info.q_heads = 16;
        trial.info.k_heads = 8;
        trial.shape = {.batch = 1, .tokens = 1030, .groups = 8, .q_per_group = 2};
        trial.in = trial.out = Arrangement::odd_offsets;
        trial.table_rows = 2048;
        const Rotated known = run(device, trial, findings);
        trial.info.q_heads = trial.info.k_heads = 0;
        const Rotated open = run(device, trial, findings);
        findings.hold(known.q == open.q && known.k == open.k,
                      "a kernel that knows its heads gives different bits");
    });
    checks.add("mapping_cpu_one_step", [](DeviceUnderTest& device, Findings& findings) {
        Trial trial = two_tensors(Element::f32, 2);
        trial.info.mapping = Mapping::cpu;
        run_each_access(device, trial, findings);
    });
    struct Access {
        const char* name;
        Element element;
        Arrangement rows;
        std::uint32_t lanes_of_token;  // steps of a row, times heads in parallel, times workgroups
    };
    constexpr Access accesses[] = {
        {"f16_16_bytes", Element::f16, Arrangement::bshd, 2 * 8},
        {"f16_words", Element::f16, Arrangement::odd_pairs, 8 * 8},
        {"f16_elements", Element::f16, Arrangement::odd_offsets, 16 * 4 * 2},
        {"f32_16_bytes", Element::f32, Arrangement::bshd, 4 * 8},
        {"f32_words", Element::f32, Arrangement::odd_offsets, 16 * 4 * 2}};
    for (const Access& access : accesses) {
        checks.add(fmt::format("four_heads_a_lane_{}", access.name), [=](DeviceUnderTest& device,
                                                                         Findings& findings) {
            hold_four_heads(device, access.element, access.rows, access.lanes_of_token, findings);
        });
    }
    // The units of a step are separate for interleaved pairs, and a row may have more steps than a
    // workgroup has lanes.
    for (const Element element : {Element::f16, Element::f32}) {
        checks.add(fmt::format("mapping_gpu_interleaved_{}", name_of(element)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = two_tensors(element, 32, 32, Pairing::interleaved);
                       trial.info.mapping = Mapping::gpu;
                       run_each_access(device, trial, findings);
                   });
        // The same with an axis for each pair.
        checks.add(fmt::format("mapping_gpu_interleaved_axes_{}", name_of(element)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = two_tensors(element, 64, 32, Pairing::interleaved);
                       trial.info.mapping = Mapping::gpu;
                       turn_by_axes(trial, Turn::interleaved);
                       run_each_access(device, trial, findings);
                   });
        checks.add(fmt::format("mapping_gpu_long_rows_{}", name_of(element)),
                   [=](DeviceUnderTest& device, Findings& findings) {
                       Trial trial = two_tensors(element, 262,
                                                 16);  // 131 steps of one element each, in 44 lanes
                       trial.info.mapping = Mapping::gpu;
                       run_each_access(device, trial, findings);
                   });
    }
}

// ---- Pages, and one tensor per dispatch ----

void add_pages(Checks& checks) {
    for (const Element element : {Element::f16, Element::f32}) {
        for (const bool by_head : {false, true}) {
            checks.add(
                fmt::format("pages{}_{}", by_head ? "_by_head" : "", name_of(element)),
                [=](DeviceUnderTest& device, Findings& findings) {
                    for (const std::uint32_t rotary_dim : {64u, 56u}) {  // 56: no unit of 8
                        Trial trial = two_tensors(element, rotary_dim, 16);
                        trial.info.mapping = rotary_dim == 56 ? Mapping::cpu : Mapping::by_device;
                        trial.info.scatter_k = true;
                        trial.info.positions = element == Element::f16 ? PositionSource::ids
                                                                       : PositionSource::implicit;
                        trial.ids = random_positions(trial.shape.rows(), -70, 70, 94);
                        trial.page_size = 4;
                        trial.pages_by_head = trial.slots_64 = by_head;
                        run_each_access(device, trial, findings);
                    }
                });
        }
    }
}

void add_lean(Checks& checks) {
    for (const AngleSource source : our_sources) {
        checks.add(fmt::format("one_tensor_a_dispatch_{}", name_of(source)), [=](DeviceUnderTest&
                                                                                     device,
                                                                                 Findings&
                                                                                     findings) {
            // With a table in a buffer, the table is the fourth storage buffer, and none is left
            // for the counter.
            const bool buffer = source == AngleSource::direct_buffer;
            for (const PositionSource positions : {PositionSource::implicit, PositionSource::ids}) {
                if (!buffer &&
                    (positions == PositionSource::ids) != (source == AngleSource::computed)) {
                    continue;
                }
                Trial trial = two_tensors(
                    source == AngleSource::computed ? Element::f32 : Element::f16, 32, 32);
                trial.info.angles = source;
                trial.info.positions = positions;
                trial.ids = random_positions(trial.shape.rows(), -70, 70, 95);
                trial.limits = {.storage_buffers = 4};
                run_each_access(device, trial, findings);
            }
        });
    }
}

}  // namespace

void add_variants(Checks& checks) {
    add_angles_of_units(checks);
    add_angles_of_pairs(checks);
    add_callers_tables(checks);
    add_mixed_elements(checks);
    add_elements_beside_f16(checks);
    add_mappings(checks);
    add_pages(checks);
    add_lean(checks);
}

}  // namespace vkrope::conformance
