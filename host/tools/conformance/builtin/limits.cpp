// SPDX-License-Identifier: MIT
// Checks that calls that exceed what a device binds or dispatches at once are split without a
// change of bits. Uses reported limits so low that small calls exceed them, and the limits of the
// device.
#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {
namespace {

struct Layout {
    const char* name;
    Arrangement in, out;
    bool in_place;
    Element element;
    AngleSource source = VKROPE_ANGLES_DIRECT_TEXTURE;
};

constexpr Layout layouts[] = {
    {"bshd", Arrangement::bshd, Arrangement::bshd, false, VKROPE_F32},
    {"bhsd_in_place", Arrangement::bhsd, Arrangement::bhsd, true, VKROPE_F16,
     VKROPE_ANGLES_DIRECT_BUFFER},
    {"bhsd_to_bshd", Arrangement::bhsd, Arrangement::bshd, false, VKROPE_BF16},
    {"packed_qkv_in_place", Arrangement::packed_qkv, Arrangement::packed_qkv, true, VKROPE_BF16},
    {"grouped_qkv_in_place", Arrangement::grouped_qkv, Arrangement::grouped_qkv, true, VKROPE_F16},
    {"odd_offsets_in_place", Arrangement::odd_offsets, Arrangement::odd_offsets, true, VKROPE_F16},
    {"broadcast", Arrangement::broadcast, Arrangement::bshd, false, VKROPE_F16},
};

Trial of_layout(const Layout& layout) {
    Trial trial = trial_of(layout.element, 64, 160);
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.info.angles = layout.source;
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.shape = {.batch = 2, .tokens = 160, .groups = 2, .q_per_group = 2};
    trial.in = layout.in;
    trial.out = layout.out;
    trial.in_place.fill(layout.in_place);
    trial.ids = random_positions(320, -70, 70, 51);  // some are out of range
    return trial;
}

}  // namespace

void add_limits(Checks& checks) {
    struct Forced {
        const char* name;
        ReportedLimits limits;
        Mapping mapping;
    };
    // Two workgroups along y, since calls of this size would not have to be split with 7.
    const Forced forced[] = {
        {"range_of_64_KiB", {.storage_range = 1u << 16}, VKROPE_MAPPING_CPU},
        {"7_workgroups",
         {.workgroups_x = 7, .workgroups_y = 2, .workgroups_z = 7},
         VKROPE_MAPPING_GPU},
        {"range_of_64_KiB_and_7_workgroups",
         {.storage_range = 1u << 16, .workgroups_x = 7, .workgroups_y = 2, .workgroups_z = 7},
         VKROPE_MAPPING_GPU},
    };
    for (std::size_t i = 0; i < std::size(layouts); ++i) {
        for (std::size_t j = 0; j < std::size(forced); ++j) {
            const Layout& layout = layouts[i];
            const Forced& limits = forced[j];
            // A limit of 7 workgroups splits one of these calls only if an invocation processes few
            // elements.
            checks.add(
                fmt::format("{}_{}", limits.name, layout.name),
                [=](Test& test) {
                    Trial trial = of_layout(layout);
                    const Rotated whole = test.run(trial);
                    const bool right = !test.wrong();
                    trial.info.mapping = limits.mapping;
                    trial.limits = limits.limits;
                    const Rotated cut = test.run(trial);
                    test.hold(
                        cut.dispatches > whole.dispatches,
                        "the call took {} dispatches, but it had to be cut, and whole takes {}",
                        cut.dispatches, whole.dispatches);
                    test.hold(same_bits(cut, whole),
                              "cut into {} dispatches, the call gives different bits",
                              cut.dispatches);
                    if (right && test.wrong()) {
                        test.explain_instead(
                            "a dispatch got the push constants or descriptors of another one, as "
                            "one "
                            "dispatch for the whole call was right");
                    }
                },
                i == 0 || i % 3 == j ? Level::quick : Level::full);
        }
    }
    checks.add(
        "4_storage_buffers",
        [](Test& test) {
            for (const std::uint32_t head_dim : {32u, 9u}) {
                Trial trial = trial_of(VKROPE_F16, head_dim, 20);
                trial.info.rotary_dim = 8;
                trial.info.tensor[K] = trial.info.tensor[Q];
                trial.in = trial.out = Arrangement::packed_qkv;
                trial.in_place.fill(true);
                const Rotated whole = test.run(trial);
                trial.limits = {.storage_buffers = 4};
                const Rotated apart = test.run(trial);
                test.hold(
                    apart.dispatches == 2,
                    "Q and K took {} dispatches, but with 4 storage buffers each needs its own",
                    apart.dispatches);
                test.hold(same_bits(whole, apart),
                          "Q and K apart from each other have different bits");
            }
        });
    checks.add(
        "range_of_the_device",
        [](Test& test) {
            constexpr std::uint64_t most = 256u << 20;
            const std::uint64_t range = test.device.info().limits->maxStorageBufferRange,
                                row = 32 * 128 * 4;
            if (range > most) {
                unsupported(
                    "maxStorageBufferRange is {} bytes; this check fills a tensor beyond it, of {} "
                    "bytes at most",
                    range, most);
            }
            Trial trial = trial_of(VKROPE_F32, 128, std::uint32_t(range / row + 100));
            trial.shape.q_per_group = 32;
            trial.max_position = 1 << 14;
            trial.in_place.fill(true);
            const Rotated cut = test.run(trial);
            test.hold(cut.dispatches > 1, "one dispatch took more than the device binds");
        },
        Level::full);
}

}  // namespace vkrope::conformance
