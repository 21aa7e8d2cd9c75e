// SPDX-License-Identifier: MIT
// Where cos and sin come from: our tables in a texture and in a buffer, with the same bits, and tables of the caller's own.
#include "trial.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t tokens = 24, head_dim = 40, rotary_dim = 28;

Trial from_source(AngleSource source, Element element, Pairing pairing = Pairing::half_split) {
    Trial trial = trial_of(element, head_dim, tokens, pairing);
    trial.info.rotary_dim = rotary_dim;
    trial.info.q.rotary_offset = 6;
    trial.info.k = trial.info.q;
    trial.info.angles = source;
    trial.shape.q_per_group = 3;
    return trial;
}

/// Tables [table_rows, row_stride] with columns behind the pairs that nobody may read.
void add_callers_table(Trial& trial, Element table, std::uint32_t row_stride, bool ours) {
    const std::uint32_t pairs = trial.info.rotary_dim / 2, count = (trial.table_rows * row_stride + 1) / 2 * 2;
    const std::vector<float> angles = angle_pairs(trial);
    trial.info.table = table;
    trial.row_stride = row_stride;
    trial.cos = ours ? Bytes(count * element_bytes(table), std::byte{0xff}) : random_elements(table, count, 41);
    trial.sin = ours ? trial.cos : random_elements(table, count, 42);
    for (std::uint32_t i = 0; ours && i < trial.table_rows * pairs; ++i) {
        set(table, trial.cos, i / pairs * row_stride + i % pairs, angles[2 * i]);
        set(table, trial.sin, i / pairs * row_stride + i % pairs, angles[2 * i + 1]);
    }
}

void add_not_there_yet(Checks& checks, const char* name, AngleSource source) {
    checks.add(name, [=](DeviceUnderTest& device, Findings& findings) {
        run(device, from_source(source, Element::f32), findings);  // whose refusal says why
    });
}

}  // namespace

void add_angles(Checks& checks) {
    for (const Pairing pairing : pairings) {
        checks.add(fmt::format("texture_and_buffer_{}", name_of(pairing)), [=](DeviceUnderTest& device, Findings& findings) {
            for (const Element element : elements) {
                const Rotated texture = run(device, from_source(AngleSource::direct_texture, element, pairing), findings);
                const Rotated buffer = run(device, from_source(AngleSource::direct_buffer, element, pairing), findings);
                findings.hold(texture.q == buffer.q && texture.k == buffer.k,
                              "angles from a buffer give other bits than from a texture");
            }
        });
    }
    checks.add("texture_that_folds", [](DeviceUnderTest& device, Findings& findings) {
        Trial trial = from_source(AngleSource::direct_texture, Element::f32);
        trial.info.positions = PositionSource::ids;
        trial.table_rows = 3 * device.info().limits.maxImageDimension2D + 5;
        trial.ids = random_positions(tokens, -std::int64_t{trial.table_rows} - 9, trial.table_rows + 9, 43);
        const Rotated texture = run(device, trial, findings);
        trial.info.angles = AngleSource::direct_buffer;
        const Rotated buffer = run(device, trial, findings);
        findings.hold(texture.q == buffer.q && texture.k == buffer.k, "angles from a buffer give other bits than from a texture");
    });
    checks.add("callers_table_with_our_values", [](DeviceUnderTest& device, Findings& findings) {
        const Rotated ours = run(device, from_source(AngleSource::direct_buffer, Element::f32), findings);
        Trial trial = from_source(AngleSource::caller_buffer, Element::f32);
        add_callers_table(trial, Element::f32, rotary_dim / 2, true);
        const Rotated callers = run(device, trial, findings);
        findings.hold(ours.q == callers.q && ours.k == callers.k, "a caller's table with our values gives other bits");
    });
    for (const Element table : elements) {
        for (const std::uint32_t stride : {rotary_dim / 2, rotary_dim / 2 + 3, rotary_dim}) {
            checks.add(fmt::format("callers_table_{}_rows_of_{}", name_of(table), stride),
                       [=](DeviceUnderTest& device, Findings& findings) {
                           for (const Direction direction : {Direction::forward, Direction::inverse}) {
                               Trial trial = from_source(AngleSource::caller_buffer, Element::f32, Pairing::interleaved);
                               trial.info.positions = PositionSource::ids;
                               trial.ids = random_positions(tokens, -9, 72, 44);  // some are outside
                               trial.direction = direction;
                               add_callers_table(trial, table, stride, false);
                               run(device, trial, findings);
                           }
                       });
        }
    }
    add_not_there_yet(checks, "factored_texture", AngleSource::factored_texture);
    add_not_there_yet(checks, "computed", AngleSource::computed);
}

}  // namespace vkrope::conformance
