// SPDX-License-Identifier: MIT
// Checks angles that one frequency per pair cannot express: phases, sums over axes, frequencies of
// head groups, and tables with separate angles for the two channels of a pair.
#include "conformance/builtin/variant_trials.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::int32_t rows_covered = 5000;  // positions of a table; more than two coarse rows

// Returns Q with two heads per head of K, a window of 40 of 48 channels, positions of both signs.
Trial turned(Element element, Pairing pairing, AngleSource source, std::uint32_t groups = 2) {
    Trial trial = trial_of(element, 48, 7, pairing);
    trial.info.rotary_dim = 40;
    trial.info.tensor[Q].rotary_offset = 4;
    trial.info.tensor[K] = trial.info.tensor[Q];
    trial.info.angles = source;
    trial.info.positions = VKROPE_POSITIONS_IDS;
    trial.shape = {.batch = 2, .tokens = 7, .groups = groups, .q_per_group = 2};
    trial.max_position = rows_covered;
    trial.ids = random_positions(trial.shape.rows(), 1 - rows_covered, rows_covered - 1, 61);
    trial.attention_factor = 1.1386;
    return trial;
}

// Sets a position on each axis. The positions of computed angles cover the whole range of int32.
void set_axes(Trial& trial, const Sections& sections) {
    const bool far = trial.info.angles == VKROPE_ANGLES_COMPUTED;
    trial.info.positions = VKROPE_POSITIONS_AXIS_IDS;
    trial.info.sections = sections;
    trial.ids = random_positions(std::size_t{sections.axes} * trial.shape.rows(),
                                 far ? INT32_MIN : 1 - rows_covered,
                                 far ? INT32_MAX : rows_covered - 1, 62 + sections.axes);
}

void add_phases_of(Checks& checks, AngleSource source) {
    const std::string name = name_of(source);
    // The channels of each half form units of 8.
    checks.add(fmt::format("phase_{}", name), [=](Test& test) {
        const bool odd = std::size_t(source) % 2 != 0;
        Trial trial = two_tensors(VKROPE_F16, 64, 16, odd ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT);
        trial.info.angles = source;
        trial.info.mapping = odd ? VKROPE_MAPPING_GPU : VKROPE_MAPPING_CPU;
        trial.max_position = rows_covered;
        trial.info.positions = VKROPE_POSITIONS_IDS;
        trial.ids = random_positions(trial.shape.rows(), 1 - rows_covered, rows_covered - 1, 63);
        add_phases(trial, 64);
        run_each_access(test, trial);
    });
    checks.add("phase_" + name + "_special_positions", [=](Test& test) {
        const bool computed = source == VKROPE_ANGLES_COMPUTED;
        std::vector<std::int64_t> ids;
        for (const std::int64_t at : {0, 1, 2047, 2048, 2049, 4095, 4096, 4097, rows_covered - 1})
            ids.insert(ids.end(), {at, -at});
        const std::size_t covered = ids.size() + (computed ? 4 : 0);
        ids.insert(ids.end(), {rows_covered, -rows_covered, INT32_MAX, INT32_MIN});
        Trial trial = turned(VKROPE_F32, VKROPE_HALF_SPLIT, source);
        trial.shape.batch = 1;
        trial.shape.tokens = std::uint32_t(ids.size());
        trial.ids = ids;
        add_phases(trial, 67);
        const Rotated rotated = test.run(trial);
        test.hold(rotated.has_outside(ids.size() - covered),
                  "other tokens than these are counted as outside");
        trial.call.direction = VKROPE_INVERSE;
        trial.call.gain = VKROPE_GAIN_DIVIDE_OUT;
        test.run(trial);
    });
}

void add_sums(Checks& checks) {
    for (const std::uint32_t axes : {2u, 3u, 8u}) {
        checks.add(
            fmt::format("sum_of_{}_axes", axes),
            [=](Test& test) {
                const Element element = axes == 8 ? VKROPE_F32 : VKROPE_BF16;
                Trial trial = turned(element, pairings[axes % 2], VKROPE_ANGLES_COMPUTED);
                set_axes(trial, {.order = VKROPE_SECTIONS_SUM, .axes = axes});
                if (axes == 8) add_phases(trial, 69);
                trial.call.direction = axes == 2 ? VKROPE_INVERSE : VKROPE_FORWARD;
                trial.info.mapping = axes == 3 ? VKROPE_MAPPING_GPU : VKROPE_MAPPING_AUTOMATIC;
                test.run(trial);
            });
    }
    checks.add("sum_in_units_of_8", [](Test& test) {
        Trial trial = two_tensors(VKROPE_F16, 64, 16, VKROPE_INTERLEAVED);
        trial.info.angles = VKROPE_ANGLES_COMPUTED;
        trial.info.mapping = VKROPE_MAPPING_GPU;
        set_axes(trial, {.order = VKROPE_SECTIONS_SUM, .axes = 2});
        add_phases(trial, 70);
        run_each_access(test, trial);
    });
    checks.add("sum_with_one_axis_moving_has_the_bits_of_one_axis", [](Test& test) {
        Trial trial = turned(VKROPE_F32, VKROPE_HALF_SPLIT, VKROPE_ANGLES_COMPUTED);
        for (std::int64_t& position : trial.ids) position = std::abs(position);
        const std::vector<std::int64_t> ids = trial.ids;
        const Rotated one = test.run(trial);
        std::vector<double> frequencies = inv_freq_of(trial);
        const std::size_t pairs = frequencies.size();
        set_axes(trial, {.order = VKROPE_SECTIONS_SUM, .axes = 3});
        trial.ids.assign(trial.ids.size(), 0);
        std::copy(ids.begin(), ids.end(), trial.ids.begin() + std::ptrdiff_t(ids.size()));
        trial.inv_freq.assign(3 * pairs, 0.3);
        std::copy(frequencies.begin(), frequencies.end(),
                  trial.inv_freq.begin() + std::ptrdiff_t(pairs));
        const Rotated sum = test.run(trial);
        test.hold(same_bits(one, sum),
                  "a sum in which one axis moves gives different bits from that axis alone");
    });
    checks.add("sum_with_one_axis_outside", [](Test& test) {
        Trial trial = turned(VKROPE_F16, VKROPE_HALF_SPLIT, VKROPE_ANGLES_COMPUTED);
        set_axes(trial, {.order = VKROPE_SECTIONS_SUM, .axes = 3});
        trial.call.positions.int64 = true;
        trial.ids[2 * trial.shape.rows() + 4] = std::int64_t{1} << 32;
        trial.ids[1] = -(std::int64_t{1} << 31) - 1;
        const Rotated rotated = test.run(trial);
        test.hold(rotated.has_outside(2), "other tokens than these are counted as outside");
    });
}

// Returns K with four heads and Q with eight heads, divided into `head_groups`.
Trial grouped(Element element, Pairing pairing, std::uint32_t head_groups) {
    Trial trial = turned(element, pairing, VKROPE_ANGLES_COMPUTED, 4);
    trial.info.head_groups = head_groups;
    return trial;
}

void add_head_groups(Checks& checks) {
    for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
        const bool gpu = mapping == VKROPE_MAPPING_GPU;
        checks.add(gpu ? "head_groups_half_split_gpu" : "head_groups_interleaved_cpu",
                   [=](Test& test) {
                       Trial trial = grouped(gpu ? VKROPE_F32 : VKROPE_BF16,
                                             gpu ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED, 4);
                       trial.info.mapping = mapping;
                       add_phases(trial, 71);
                       test.run(trial);
                   });
    }
    checks.add("head_groups_grouped_qkv", [](Test& test) {
        Trial trial = grouped(VKROPE_F16, VKROPE_HALF_SPLIT, 4);
        trial.in = trial.out = Arrangement::grouped_qkv;
        trial.in_place.fill(true);
        trial.info.tensor[Q].heads = 8;
        trial.info.tensor[K].heads = 4;
        test.run(trial);
    });
    checks.add("head_groups_to_pages_gpu", [](Test& test) {
        Trial trial = grouped(VKROPE_F16, VKROPE_INTERLEAVED, 2);
        trial.info.mapping = VKROPE_MAPPING_GPU;
        trial.info.scatter_kv = true;
        trial.info.tensor[V] = {.in = VKROPE_F16, .out = VKROPE_F16, .head_dim = 48};
        trial.call.paged_cache.page_size = 4;
        trial.pages_by_head = true;
        test.run(trial);
    });
    // The z axis of the grid counts sequences if there are more sequences than head groups.
    checks.add("head_groups_of_many_sequences", [](Test& test) {
        Trial trial = grouped(VKROPE_F32, VKROPE_HALF_SPLIT, 2);
        trial.shape.batch = 5;
        trial.ids = random_positions(trial.shape.rows(), INT32_MIN, INT32_MAX, 73);
        test.run(trial);
    });
    checks.add("head_groups_in_parts", [](Test& test) {
        Trial trial = grouped(VKROPE_F32, VKROPE_HALF_SPLIT, 4);
        const Rotated whole = test.run(trial);
        trial.limits = {.workgroups_x = 3, .workgroups_y = 1, .workgroups_z = 3};
        const Rotated parts = test.run(trial);
        test.hold(parts.dispatches > whole.dispatches, "the call was not split");
        test.hold(same_bits(parts, whole), "a call in parts gives different bits");
    });
    checks.add("head_groups_alike_have_the_bits_of_one", [](Test& test) {
        Trial trial = grouped(VKROPE_F32, VKROPE_HALF_SPLIT, 1);
        for (std::int64_t& position : trial.ids) position = std::abs(position);
        const Rotated one = test.run(trial);
        const std::vector<double> inv_freq = inv_freq_of(trial);
        trial.info.head_groups = 4;
        for (int i = 0; i < 4; ++i)
            trial.inv_freq.insert(trial.inv_freq.end(), inv_freq.begin(), inv_freq.end());
        const Rotated four = test.run(trial);
        test.hold(same_bits(one, four),
                  "four head groups with one set of frequencies give different bits");
    });
}

void add_channels(Checks& checks) {
    const auto channels = [](Element element, Pairing pairing, std::uint32_t rotary_dim) {
        Trial trial = two_tensors(element, rotary_dim, 16, pairing);
        trial.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
        trial.info.channel_angles = true;
        trial.info.positions = VKROPE_POSITIONS_IDS;
        trial.ids = random_positions(trial.shape.rows(), -2, trial.max_position + 1, 75);
        return trial;
    };
    for (const Element table : elements) {
        const Pairing pairing = pairings[std::size_t(table) % 2];
        checks.add(fmt::format("channels_{}_{}", name_of(table), name_of(pairing)),
                   [=](Test& test) {
                       for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
                           Trial trial = channels(table, pairing, 24);
                           trial.call.direction = direction;
                           add_cos_sin_cache(trial, table, 24, false);
                           test.run(trial);
                           trial = channels(VKROPE_F16, pairing, 64);
                           trial.call.direction = direction;
                           trial.info.mapping = table == VKROPE_F16 ? VKROPE_MAPPING_GPU
                                                                    : VKROPE_MAPPING_CPU;
                           add_cos_sin_cache(trial, table, 67, false);
                           run_each_access(test, trial);
                       }
                   });
    }
    checks.add("channels_alike_have_the_bits_of_pairs", [=](Test& test) {
        for (const Direction direction : {VKROPE_FORWARD, VKROPE_INVERSE}) {
            Trial trial = channels(VKROPE_F32, VKROPE_INTERLEAVED, 40);
            trial.call.direction = direction;
            add_cos_sin_cache(trial, VKROPE_F32, 40, true);
            const Rotated of_channels = test.run(trial);
            trial.info.channel_angles = false;
            add_cos_sin_cache(trial, VKROPE_F32, 20, true);
            const Rotated of_pairs = test.run(trial);
            test.hold(same_bits(of_channels, of_pairs),
                      "a table of channels with our values gives different bits");
        }
    });
}

}  // namespace

void add_turns(Checks& checks) {
    for (const AngleSource source : our_sources) add_phases_of(checks, source);
    add_sums(checks);
    add_head_groups(checks);
    add_channels(checks);
}

}  // namespace vkrope::conformance
