// SPDX-License-Identifier: MIT
// How work maps to lanes, on a GPU and on a processor: chunks of a row side by side or one by one,
// one head or several in a lane.
#include "conformance/builtin/variant_trials.hpp"
#include "meaning.hpp"

namespace vkrope::conformance {
namespace {

KernelInfo mapped(Mapping mapping, Element element) {
    Trial trial = two_tensors(element, 32, 32);
    trial.info.mapping = mapping;
    return trial.info;
}

/// Compares one call with four heads per invocation with two calls that are too small for that.
void hold_four_heads(Test& test, Element element, Arrangement rows, std::uint32_t lanes_of_token) {
    constexpr std::uint32_t enough = 1u << 16;  // lanes: see host/kernel/plan.cpp
    const std::uint32_t tokens = enough / lanes_of_token + 2;
    DeviceUnderTest::KernelCall call = {.info = mapped(VKROPE_MAPPING_GPU, element),
                                        .call = {.tokens = tokens}};
    const Shape shape = {.batch = 1, .tokens = tokens, .groups = 1, .q_per_group = 19};
    Piece piece = arrange(rows, shape, call.info.tensor[Q].head_dim, call.info.tensor[K].head_dim);
    piece.q.rows.type = piece.k.rows.type = type_of(element);
    const std::size_t bytes = (piece.elements * element_bytes(element) + 3) / 4 * 4;
    // Repeats a few values with a period that makes nearby rows differ.
    const Bytes poison(bytes, std::byte{0xa5}), values = random_elements(element, 16381, 93);
    Bytes input(bytes);
    for (std::size_t byte = 0; byte < bytes; ++byte) {
        input[byte] = values[byte % values.size()];
    }
    Buffer in = test.device.upload(input.data(), bytes),
           out = test.device.upload(poison.data(), bytes);
    RopeParams rotation;
    rotation.head_dim = rotation.rotary_dim = call.info.rotary_dim;
    rotation.inv_freq.resize(call.info.rotary_dim / 2);
    check(default_inv_freq(10000.0, call.info.rotary_dim, rotation.inv_freq.data()));
    rotation.sections = call.info.sections;
    const AngleTable table = value_of(
        AngleTable::make(test.device.device(), rotation, call.info.angles, tokens));
    call.call.angles = table.angles();
    const auto rotate = [&](std::uint32_t first, std::uint32_t count) {
        const auto from = [&](const Placed& placed, const Buffer& buffer) {
            const std::uint64_t skipped = first * placed.rows.token_stride * element_bytes(element);
            Tensor tensor = tensor_of(placed, buffer.whole(), skipped);
            tensor.where.range -= skipped;
            tensor.token_stride = static_cast<std::int64_t>(placed.rows.token_stride);
            return tensor;
        };
        call.call.in[Q] = from(piece.q, in);
        call.call.out[Q] = from(piece.q, out);
        call.call.in[K] = from(piece.k, in);
        call.call.out[K] = from(piece.k, out);
        call.call.tokens = count;
        call.call.positions.first = static_cast<std::int32_t>(first);
        test.device.rotate(call);
        Bytes result(bytes);
        test.device.download(out, result.data(), bytes);
        return result;
    };
    const Bytes four = rotate(0, tokens);
    check(out.upload(poison.data(), bytes));
    rotate(0, tokens / 2);
    test.hold(four == rotate(tokens / 2, tokens - tokens / 2),
              "several heads a lane give different bits than one");
    test.hold(four != poison, "nothing has been rotated");
}

}  // namespace

void add_mappings(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        for (const Element element : {VKROPE_F16, VKROPE_F32}) {
            const std::string name = fmt::format(
                "{}_{}", mapping == VKROPE_MAPPING_GPU ? "gpu" : "cpu", name_of(element));
            checks.add("mapping_" + name, [=](Test& test) {
                Trial trial = two_tensors(element, 32, 32);
                trial.info = mapped(mapping, element);
                run_each_access(test, trial);
            });
        }
    }
    // Windows that prevent 16-byte access but allow two words, which an invocation with
    // VKROPE_MAPPING_CPU then takes at a time.
    checks.add("mapping_cpu_two_words", [](Test& test) {
        for (const Element element : {VKROPE_F16, VKROPE_F32}) {
            Trial trial = element == VKROPE_F16 ? two_tensors(element, 24, 8)
                                                : two_tensors(element, 12, 4);
            trial.info.mapping = VKROPE_MAPPING_CPU;
            run_each_access(test, trial);
        }
    });
    // Head counts known to the kernel that fill 128 lanes: 16 steps and 8 heads side by side, 4 and
    // 2 heads per lane. If they are unknown, 64 lanes have 4 heads and 1.
    checks.add("mapping_gpu_known_heads", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F32, 32, 32);
        trial.info.mapping = VKROPE_MAPPING_GPU;
        trial.info.tensor[Q].heads = 32;
        trial.info.tensor[K].heads = 16;
        trial.shape = {.batch = 1, .tokens = 515, .groups = 16, .q_per_group = 2};
        trial.in = trial.out = Arrangement::odd_offsets;
        trial.max_position = 2048;
        const Rotated known = test.run(trial);
        trial.info.tensor[Q].heads = trial.info.tensor[K].heads = 0;
        const Rotated open = test.run(trial);
        test.hold(same_bits(known, open), "a kernel that knows its heads gives different bits");
    });
    checks.add("mapping_cpu_one_step", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F32, 2);
        trial.info.mapping = VKROPE_MAPPING_CPU;
        run_each_access(test, trial);
    });
    struct Access {
        const char* name;
        Element element;
        Arrangement rows;
        std::uint32_t lanes_of_token;  // chunks of a row, times heads in parallel, times workgroups
    };
    constexpr Access accesses[] = {
        {"f16_16_bytes", VKROPE_F16, Arrangement::bshd, 2 * 8},
        {"f16_words", VKROPE_F16, Arrangement::odd_pairs, 8 * 8},
        {"f16_elements", VKROPE_F16, Arrangement::odd_offsets, 16 * 4 * 2},
        {"f32_16_bytes", VKROPE_F32, Arrangement::bshd, 4 * 8},
        {"f32_words", VKROPE_F32, Arrangement::odd_offsets, 16 * 4 * 2}};
    for (const Access& access : accesses) {
        checks.add(fmt::format("four_heads_a_lane_{}", access.name), [=](Test& test) {
            hold_four_heads(test, access.element, access.rows, access.lanes_of_token);
        });
    }
    // The units of a chunk are separate for interleaved pairs, and a row may have more chunks than
    // a workgroup has lanes.
    for (const Element element : {VKROPE_F16, VKROPE_F32}) {
        checks.add(fmt::format("mapping_gpu_interleaved_{}", name_of(element)), [=](Test& test) {
            Trial trial = two_tensors(element, 32, 32, VKROPE_INTERLEAVED);
            trial.info.mapping = VKROPE_MAPPING_GPU;
            run_each_access(test, trial);
        });
        // The same with an axis for each pair.
        checks.add(fmt::format("mapping_gpu_interleaved_axes_{}", name_of(element)),
                   [=](Test& test) {
                       Trial trial = two_tensors(element, 64, 32, VKROPE_INTERLEAVED);
                       trial.info.mapping = VKROPE_MAPPING_GPU;
                       turn_by_axes(trial, Turn::interleaved);
                       run_each_access(test, trial);
                   });
        checks.add(fmt::format("mapping_gpu_long_rows_{}", name_of(element)), [=](Test& test) {
            Trial trial = two_tensors(element, 262,
                                      16);  // 131 steps of one element each, in 44 lanes
            trial.info.mapping = VKROPE_MAPPING_GPU;
            run_each_access(test, trial);
        });
    }
}

}  // namespace vkrope::conformance
