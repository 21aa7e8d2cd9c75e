// SPDX-License-Identifier: MIT
// Checks how work is mapped to lanes, on a GPU and on a CPU: chunks of a row in neighbouring lanes
// or one after another, and one head or several heads per lane.
#include "base/meaning.hpp"
#include "conformance/builtin/variant_trials.hpp"
#include "verify/definition.hpp"
#include "verify/on_device.hpp"
#include "verify/place.hpp"

namespace vkrope::conformance {
namespace {

// Compares one call with four heads per lane with two calls that are too small for four heads.
void hold_four_heads(Test& test, Element element, Arrangement rows, std::uint32_t lanes_of_token) {
    constexpr std::uint32_t enough = 1u << 16;  // in lanes; see host/kernel/plan.cpp
    Trial trial = two_tensors(element, 32, 32);
    trial.info.mapping = VKROPE_MAPPING_GPU;
    trial.shape = {
        .batch = 1, .tokens = enough / lanes_of_token + 2, .groups = 1, .q_per_group = 19};
    trial.in = trial.out = rows;
    trial.max_position = trial.shape.tokens;
    // Repeats a few values with a period that makes nearby rows differ.
    fill_rows(trial, random_elements(element, 16381, 93));
    const verify::Operation operation = verify::placed(trial);
    const Bytes& before = operation.memory;
    verify::OnDevice there = value_of(verify::OnDevice::make(test.device.device(), operation));
    const auto rotate = [&](std::uint32_t first, std::uint32_t count) {
        Call call = operation.call;
        call.tokens = count;
        call.positions.first += std::int32_t(first);
        for (const TensorIndex which : {Q, K}) {
            for (Tensor* tensor : {&call.in[which], &call.out[which]}) {
                const std::uint64_t skipped =
                    first * element_bytes(element) *
                    verify::rows_of(operation, which, tensor == &call.out[which]).token_stride;
                tensor->where.offset += skipped;
                tensor->where.range -= skipped;
            }
        }
        test.device.rotate({operation.info, there.call(call)});
        Bytes result(before.size());
        test.device.download(there.memory(), result.data(), result.size());
        return result;
    };
    const std::uint32_t tokens = trial.shape.tokens;
    const Bytes four = rotate(0, tokens);
    check(there.memory().upload(before.data(), before.size()));
    rotate(0, tokens / 2);
    test.hold(four == rotate(tokens / 2, tokens - tokens / 2),
              "several heads a lane give different bits than one");
    test.hold(four != before, "nothing has been rotated");
}

}  // namespace

void add_mappings(Checks& checks) {
    // Windows that prevent 16-byte access but allow access of two words at a time with
    // VKROPE_MAPPING_CPU.
    checks.add("mapping_cpu_two_words", [](Test& test) {
        for (const Element element : {VKROPE_F16, VKROPE_F32}) {
            Trial trial = element == VKROPE_F16 ? two_tensors(element, 24, 8)
                                                : two_tensors(element, 12, 4);
            trial.info.mapping = VKROPE_MAPPING_CPU;
            run_each_access(test, trial);
        }
    });
    checks.add("mapping_cpu_one_chunk", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F32, 2);
        trial.info.mapping = VKROPE_MAPPING_CPU;
        run_each_access(test, trial);
    });
    struct Access {
        const char* name;
        Element element;
        Arrangement rows;
        std::uint32_t lanes_of_token;  // chunks of a row * heads in parallel * workgroups
    };
    constexpr Access accesses[] = {
        {"f16_elements", VKROPE_F16, Arrangement::odd_offsets, 16 * 4 * 2},
        {"f32_16_bytes", VKROPE_F32, Arrangement::bshd, 4 * 8}};
    for (const Access& access : accesses) {
        checks.add(
            fmt::format("four_heads_a_lane_{}", access.name),
            [=](Test& test) {
                hold_four_heads(test, access.element, access.rows, access.lanes_of_token);
            });
    }
    // For interleaved pairs the units of a chunk are not adjacent, and a row may have more chunks
    // than a workgroup has lanes.
    checks.add("mapping_gpu_interleaved", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F16, 32, 32, VKROPE_INTERLEAVED);
        trial.info.mapping = VKROPE_MAPPING_GPU;
        run_each_access(test, trial);
    });
    checks.add("mapping_gpu_long_rows", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F32, 262, 16);  // 131 chunks of one element, in 44 lanes
        trial.info.mapping = VKROPE_MAPPING_GPU;
        run_each_access(test, trial);
    });
}

}  // namespace vkrope::conformance
