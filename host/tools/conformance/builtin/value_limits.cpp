// SPDX-License-Identifier: MIT
// Checks V on devices with low limits: few storage buffers, short ranges, few workgroups.
#include "conformance/builtin/value_trials.hpp"

namespace vkrope::conformance {

void add_few_storage_buffers(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        const bool gpu = mapping == VKROPE_MAPPING_GPU;
        checks.add(fmt::format("few_storage_buffers_{}", device_of(mapping)), [=](Test& test) {
            const std::uint32_t storage_buffers = gpu ? 4 : 6, most = gpu ? 3 : 2;
            for (const NamedArrangement& rows : widest_first) {
                Trial trial = whole_rows(VKROPE_F16, mapping);
                trial.rows[V] = values_of(VKROPE_F16, elements_of(trial, V), 33);
                trial.in = trial.out = rows.value;
                const Rotated whole = test.run(trial);
                trial.limits = {.storage_buffers = storage_buffers};
                const Rotated apart = test.run(trial);
                test.hold(apart.dispatches == most,
                          "the call took {} dispatches, but with {} storage buffers it needs {}",
                          apart.dispatches, storage_buffers, most);
                test.hold(same_bits(apart, whole),
                          "with {} storage buffers, the call gives different bits",
                          storage_buffers);
                trial.absent = {true, true, false};
                test.hold(test.run(trial).rows[V] == whole.rows[V],
                          "V alone in the call has different bits");
            }
        });
    }
}

void add_cuts(Checks& checks) {
    const struct {
        const char* name;
        ReportedLimits limits;
        Mapping mapping;
        bool paged;
    } forced[] = {{"range_of_64_KiB", {.storage_range = 1u << 16}, VKROPE_MAPPING_CPU, false},
                  {"7_workgroups_pages",
                   {.workgroups_x = 7, .workgroups_y = 2, .workgroups_z = 7},
                   VKROPE_MAPPING_GPU,
                   true}};
    for (const auto& [name, limits, mapping, paged] : forced) {
        checks.add(
            name,
            [=](Test& test) {
                Trial trial = whole_rows(VKROPE_F16, mapping);
                trial.info.positions = paged ? VKROPE_POSITIONS_IDS : VKROPE_POSITIONS_IMPLICIT;
                trial.info.scatter_kv = paged;
                trial.shape.tokens = 160;
                trial.max_position = 200;
                trial.call.positions.first = -70;
                trial.ids = random_positions(trial.shape.rows(), -205, 205,
                                             34);  // some are out of range
                trial.in = Arrangement::packed_qkv;
                trial.call.paged_cache.page_size = paged ? 16 : 0;
                for (const std::uint32_t v_heads : {0u, 5u}) {
                    trial.shape.own_v_heads = v_heads;
                    trial.rows[V] = values_of(VKROPE_F16, elements_of(trial, V), 35);
                    trial.limits = {};
                    const Rotated whole = test.run(trial);
                    trial.limits = limits;
                    const Rotated cut = test.run(trial);
                    test.hold(
                        cut.dispatches > whole.dispatches,
                        "the call took {} dispatches, but it had to be cut, and whole takes {}",
                        cut.dispatches, whole.dispatches);
                    test.hold(same_bits(cut, whole),
                              "cut into {} dispatches, the call gives different bits",
                              cut.dispatches);
                }
            });
    }
}

}  // namespace vkrope::conformance
