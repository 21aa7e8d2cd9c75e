// SPDX-License-Identifier: MIT
#include "conformance/builtin/trial.hpp"

#include <cstring>
#include <random>

#include "base/meaning.hpp"
#include "conformance/builtin/shader_bits.hpp"
#include "verify/compare.hpp"
#include "verify/on_device.hpp"
#include "verify/place.hpp"

namespace vkrope::conformance {
namespace {

using Random = std::mt19937_64;

// Returns the values of fill_angles for a direct table: (cos, sin) pairs, [max_position, pairs].
std::vector<float> angle_pairs(const Trial& trial) {
    RopeParams rotation = verify::rotation_of(trial);
    rotation.inv_freq = inv_freq_of(trial);
    const AngleTableLayout plan = value_of(
        plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, trial.max_position, 0));
    std::vector<float> pairs(plan.bytes / sizeof(float));
    check(fill_angles(rotation, plan, pairs.data(), plan.bytes));
    return pairs;
}

// Returns true if the kernel has a binding left for the counter on this device.
bool has_counter(const DeviceUnderTest& device, const Trial& trial) {
    const std::uint32_t of_device = device.info().limits->maxPerStageDescriptorStorageBuffers;
    return (trial.limits.storage_buffers != 0 ? trial.limits.storage_buffers : of_device) >= 8 ||
           (trial.info.angles < VKROPE_ANGLES_DIRECT_BUFFER && !trial.info.scatter_kv &&
            !trial.info.gather_kv);
}

}  // namespace

void add_cos_sin_cache(Trial& trial, Element table, std::uint32_t row_stride, bool ours) {
    const std::uint32_t pairs = trial.info.rotary_dim / 2,
                        count = (trial.max_position * row_stride + 1) / 2 * 2;
    const std::vector<float> angles = angle_pairs(trial);
    trial.info.table = table;
    trial.row_stride = row_stride;
    trial.cos = ours ? Bytes(count * element_bytes(table), std::byte{0xff})
                     : random_elements(table, count, 41);
    trial.sin = ours ? trial.cos : random_elements(table, count, 42);
    for (std::uint32_t i = 0; ours && i < trial.max_position * pairs; ++i) {
        set(table, trial.cos, i / pairs * row_stride + i % pairs, angles[2 * i]);
        set(table, trial.sin, i / pairs * row_stride + i % pairs, angles[2 * i + 1]);
    }
}

Rotated Test::run(const Trial& trial) {
    Trial counted = trial;
    counted.counts = trial.counts && has_counter(device, trial);
    if (verify::must_count(trial) && !has_counter(device, trial)) {
        counted.call.positions.first = 0;  // within the table
        counted.call.positions.batch_stride = broadcast;
        if (trial.info.angles != VKROPE_ANGLES_COS_SIN_CACHE)
            counted.max_position = std::max(trial.max_position, trial.shape.tokens);
    }
    const verify::Operation operation = verify::placed(counted);
    verify::OnDevice there = value_of(verify::OnDevice::make(device.device(), operation));
    Rotated rotated;
    rotated.dispatches = device.rotate({operation.info, there.call(operation.call), trial.limits});
    Bytes after(operation.memory.size());
    device.download(there.memory(), after.data(), after.size());

    const bool flushes = device.traits().flushes_subnormals;
    const verify::Verdict verdict = verify::compare(operation, after, flushes);
    expect(verdict.problem.empty(), "{}", verdict.problem);
    if (verdict.largest_error_u) measure_u(*verdict.largest_error_u);
    const ShaderBits bits(operation, flushes);
    for (const TensorIndex which : every_tensor) {
        bits.compare(which, after, *this);
        rotated.rows[which] = verify::packed_rows(operation, which, after);
        rotated.second[which] = verify::second_rows(operation, which, after);
        rotated.scales[which] = verify::made_scales(operation, which, after);
    }
    if (const VkDescriptorBufferInfo& counter = operation.call.out_of_range; counter.range != 0) {
        std::uint32_t count[2] = {};
        std::memcpy(&count[0], &operation.memory[counter.offset], sizeof count[0]);
        std::memcpy(&count[1], &after[counter.offset], sizeof count[1]);
        rotated.outside = count[1] - count[0];
    }
    return rotated;
}

Trial trial_of(Element element, std::uint32_t head_dim, std::uint32_t tokens, Pairing pairing) {
    Trial trial;
    trial.info.pairing = pairing;
    trial.info.rotary_dim = head_dim;
    trial.info.tensor[Q] = {
        .in = element, .out = element, .head_dim = head_dim, .rotary_offset = 0};
    trial.shape.tokens = tokens;
    return trial;
}

std::vector<std::int64_t> random_positions(std::size_t count, std::int64_t lowest,
                                           std::int64_t highest, std::uint32_t seed) {
    Random random(seed);
    std::vector<std::int64_t> positions(count);
    for (std::int64_t& position : positions)
        position = lowest + std::int64_t(random() % std::uint64_t(highest - lowest + 1));
    return positions;
}

}  // namespace vkrope::conformance
