// SPDX-License-Identifier: MIT
#include "conformance/builtin/value_trials.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t storage_buffers_to_join = 8;  // in and out of Q, K, V; ids; the counter

}  // namespace

Bytes values_of(Element element, std::size_t count, std::uint32_t seed) {
    const std::uint32_t sign = element == VKROPE_F32 ? 0x80000000u : 0x8000u;
    const std::uint32_t infinity = element == VKROPE_F32   ? 0x7f800000u
                                   : element == VKROPE_F16 ? 0x7c00u
                                                           : 0x7f80u;
    const std::uint32_t quiet = element == VKROPE_F32   ? 0x400000u
                                : element == VKROPE_F16 ? 0x200u
                                                        : 0x40u;
    const std::uint32_t least_normal = infinity & ~(infinity << 1);
    const std::uint32_t special[] = {
        0, 1, least_normal - 1, least_normal - 3, infinity, infinity | 5, infinity | quiet | 9};
    Bytes bytes = random_bits(element, count, seed);
    for (std::size_t i = 0; i < count; i += 3)
        store(element, bytes, i, special[i / 3 % std::size(special)] | (i % 2 == 0 ? sign : 0));
    return bytes;
}

Trial three_tensors(Element element, std::uint32_t head_dim, std::uint32_t rotary_dim,
                    std::uint32_t offset, Mapping mapping) {
    Trial trial = trial_of(element, head_dim, 5);
    trial.info.rotary_dim = rotary_dim;
    trial.info.tensor[Q].rotary_offset = offset;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.info.tensor[V] = {.in = element, .out = element, .head_dim = head_dim};
    trial.info.mapping = mapping;
    trial.shape = {.batch = 2, .tokens = 5, .groups = 3, .q_per_group = 2};
    trial.call.positions.first = 3;
    return trial;
}

Trial whole_rows(Element element, Mapping mapping) {
    return three_tensors(element, 32, 32, 0, mapping);
}

Trial partial_rows(Element element, Mapping mapping) {
    return three_tensors(element, 56, 16, 8, mapping);
}

Rotated run_as(Test& test, Trial trial, Dispatch dispatch) {
    trial.rows[V] = values_of(trial.info.tensor[V].in, elements_of(trial, V), 31);
    const Rotated rotated = test.run(trial);
    const bool own = dispatch == Dispatch::of_its_own &&
                     (!trial.in_place[V] || trial.info.scatter_kv);
    const std::uint64_t others = trial.absent[Q] ? 0 : 1;
    if (test.device.info().limits->maxPerStageDescriptorStorageBuffers >
        storage_buffers_to_join) {  // slots need one more buffer
        test.hold(rotated.dispatches == others + (own ? 1 : 0),
                  "the call took {} dispatches, but V needs {}", rotated.dispatches,
                  own ? "one of its own" : "none beside K's");
    }
    return rotated;
}

void run_each_access(Test& test, Trial trial, Dispatch dispatch) {
    for (const NamedArrangement& rows : widest_first) {
        trial.in = trial.out = rows.value;
        run_as(test, trial, dispatch);
    }
}

const char* device_of(Mapping mapping) {
    return mapping == VKROPE_MAPPING_GPU ? "gpu" : "cpu";
}

}  // namespace vkrope::conformance
