// SPDX-License-Identifier: MIT
#include "conformance/builtin/trial.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "conformance/builtin/definition.hpp"
#include "conformance/builtin/trial_memory.hpp"
#include "conformance/builtin/trial_oracle.hpp"

namespace vkrope::conformance {
namespace {

using Random = std::mt19937_64;

/// Distinct rows for most tokens, in random order; some slots are -1 or out of range.
std::vector<std::int64_t> random_slots(const reference::Cache& cache, std::uint32_t tokens,
                                       Random& random) {
    const auto rows = static_cast<std::int64_t>(cache.pages * cache.page_size);
    std::vector<std::int64_t> slots(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < slots.size(); ++i) {
        slots[i] = static_cast<std::int64_t>(i);
    }
    std::shuffle(slots.begin(), slots.end(), random);
    slots.resize(tokens);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        slots[i] = i % 5 == 1 ? -1 : i % 7 == 3 ? rows + static_cast<std::int64_t>(i) : slots[i];
    }
    return slots;
}

/// Returns positions [axes, batch, tokens] for any position source.
std::vector<std::int64_t> positions_of(const Trial& trial) {
    if (trial.info.positions != VKROPE_POSITIONS_IMPLICIT) {
        return trial.ids;
    }
    std::vector<std::int64_t> positions;
    for (std::uint32_t i = 0; i < trial.shape.rows(); ++i) {
        positions.push_back(trial.first + i / trial.shape.tokens * trial.batch_step +
                            i % trial.shape.tokens);
    }
    return positions;
}

Rotation rotation_of(const Trial& trial) {
    Rotation rotation;
    rotation.pairing = trial.info.pairing;
    rotation.head_dim = rotation.rotary_dim = trial.info.rotary_dim;
    rotation.inv_freq = inv_freq_of(trial);
    rotation.phase = trial.phase;
    rotation.head_groups = head_groups_of(trial.info);
    rotation.attention_factor = trial.attention_factor;
    rotation.precision = trial.precision;
    rotation.sections = trial.info.sections;
    return rotation;
}

/// The values of fill_angles for a direct table: (cos, sin) pairs, [table_rows, pairs].
std::vector<float> angle_pairs(const Trial& trial) {
    const Rotation rotation = rotation_of(trial);
    const AnglePlan plan = value_of(
        plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, trial.table_rows, 0));
    std::vector<float> pairs(plan.bytes / sizeof(float));
    check(fill_angles(rotation, plan, pairs.data(), plan.bytes));
    return pairs;
}

}  // namespace

std::vector<double> inv_freq_of(const Trial& trial) {
    std::vector<double> inv_freq = trial.inv_freq;
    if (inv_freq.empty()) {
        const std::size_t pairs = trial.info.rotary_dim / 2;
        inv_freq.resize(pairs);
        check(default_inv_freq(10000.0, trial.info.rotary_dim, inv_freq.data()));
        const std::size_t sets = std::size_t{head_groups_of(trial.info)} *
                                 summed_axes(trial.info.sections);
        while (inv_freq.size() < sets * pairs)
            inv_freq.push_back(0.75 * inv_freq[inv_freq.size() - pairs]);
    }
    return inv_freq;
}

bool covers(const Trial& trial, std::int64_t position) {
    switch (trial.info.angles) {
        case VKROPE_ANGLES_COMPUTED: return position == static_cast<std::int32_t>(position);
        case VKROPE_ANGLES_COS_SIN_CACHE: return position >= 0 && position < trial.table_rows;
        default: return position < trial.table_rows && position > -std::int64_t{trial.table_rows};
    }
}

reference::CosSin float32_cos_sin(std::int64_t position, double inv_freq) {
    const float angle = static_cast<float>(position) * static_cast<float>(inv_freq);
    const auto wide = static_cast<long double>(angle);
    return {std::cos(wide), std::sin(wide)};
}

void add_phases(Trial& trial, std::uint32_t seed) {
    Random random(seed);
    trial.info.phase = true;
    trial.phase.resize(std::size_t{head_groups_of(trial.info)} * trial.info.rotary_dim / 2);
    for (double& phase : trial.phase)
        phase = static_cast<double>(static_cast<std::int64_t>(random() >> 11)) * 0x1p-48 - 16;
}

void add_cos_sin_cache(Trial& trial, Element table, std::uint32_t row_stride, bool ours) {
    const std::uint32_t pairs = trial.info.rotary_dim / 2,
                        columns = trial.info.channel_angles ? 2 * pairs : pairs,
                        count = (trial.table_rows * row_stride + 1) / 2 * 2;
    const std::vector<float> angles = angle_pairs(trial);
    trial.info.table = table;
    trial.row_stride = row_stride;
    trial.cos = ours ? Bytes(count * element_bytes(table), std::byte{0xff})
                     : random_elements(table, count, 41);
    trial.sin = ours ? trial.cos : random_elements(table, count, 42);
    for (std::uint32_t i = 0; ours && i < trial.table_rows * columns; ++i) {
        const std::uint32_t row = i / columns, column = i % columns;
        const bool by_two = columns != pairs && trial.info.pairing == VKROPE_INTERLEAVED;
        const std::uint32_t pair = row * pairs + (by_two ? column / 2 : column % pairs);
        set(table, trial.cos, row * row_stride + column, angles[2 * pair]);
        set(table, trial.sin, row * row_stride + column, angles[2 * pair + 1]);
    }
}

Rotated run(DeviceUnderTest& device, const Trial& trial, Findings& findings) {
    const KernelInfo& info = trial.info;
    const bool callers = info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    const Shape& shape = trial.shape;
    Random random(trial.seed);
    Memory memory(random());
    TensorRows q, k, v;
    place(trial, trial.in, false, memory, q, k, v);
    if (trial.in_place) {
        q.out = q.in, q.out_byte = q.in_byte;
        k.out = k.in, k.out_byte = k.in_byte;
        v.out = v.in, v.out_byte = v.in_byte;
    } else {
        place(trial, trial.out, true, memory, q, k, v);
    }
    std::uint64_t slots_byte = 0;
    if (info.scatter_kv) {
        k.out = arrange_pages(shape, shape.groups, info.tensor[K].head_dim, trial.page_size,
                              trial.pages_by_head);
        k.out.rows.type = type_of(info.tensor[K].out);
        reference::Cache& cache = *k.out.rows.cache;
        cache.slot_mapping = random_slots(cache, shape.rows(), random);
        k.out_byte = memory.take(span_of(k.out.rows) * TensorRows::size(k.out));
        if (info.tensor[V].head_dim > 0) {
            v.out = arrange_pages(shape, shape.v_heads(), info.tensor[V].head_dim, trial.page_size,
                                  trial.pages_by_head);
            v.out.rows.type = type_of(info.tensor[V].out);
            v.out.rows.cache->slot_mapping = cache.slot_mapping;
            if (trial.pages_by_head) {  // both caches share the strides of pages and rows
                v.out.rows.head_stride = k.out.rows.head_stride;
                v.out.rows.cache->page_stride = cache.page_stride;
                v.out.rows.cache->row_stride = cache.row_stride;
            }
            v.out_byte = memory.take(span_of(v.out.rows) * TensorRows::size(v.out));
        }
        slots_byte = trial.slots_64 ? memory.put<std::int64_t>(cache.slot_mapping)
                                    : memory.put<std::int32_t>(cache.slot_mapping);
    }
    const std::vector<std::int64_t> positions = positions_of(trial);
    const bool implicit = info.positions == VKROPE_POSITIONS_IMPLICIT;
    const std::uint64_t ids_byte = implicit       ? 0
                                   : trial.ids_64 ? memory.put<std::int64_t>(positions)
                                                  : memory.put<std::int32_t>(positions);
    const bool counts = has_counter(device, info, trial.limits);
    const std::uint64_t counter_byte = memory.take(4);

    const auto seed = static_cast<std::uint32_t>(random());
    const bool has_q = info.tensor[Q].head_dim > 0 && !trial.only_v,
               has_k = info.tensor[K].head_dim > 0 && !trial.only_v;
    const bool has_v = info.tensor[V].head_dim > 0;
    if (has_q) {
        fill(q,
             trial.q.empty()
                 ? random_elements(
                       info.tensor[Q].in,
                       std::size_t{shape.rows()} * shape.q_heads() * info.tensor[Q].head_dim, seed)
                 : trial.q,
             memory);
        let_change(q, memory);
    }
    if (has_k) {
        fill(k,
             trial.k.empty()
                 ? random_elements(
                       info.tensor[K].in,
                       std::size_t{shape.rows()} * shape.groups * info.tensor[K].head_dim, seed + 1)
                 : trial.k,
             memory);
        let_change(k, memory);
    }
    if (has_v) {
        fill(v,
             trial.v.empty() ? random_elements(info.tensor[V].in, v_elements(trial), seed + 2)
                             : trial.v,
             memory);
        if (!trial.in_place || info.scatter_kv) {  // in place the data stays where it is
            let_change(v, memory);
        }
    }
    if (counts) {
        memory.let_change(counter_byte, 4);
    }

    // The call.
    Buffer buffer = device.upload(memory.before.data(), memory.before.size()), cos_buffer,
           sin_buffer;
    const VkDescriptorBufferInfo whole = buffer.whole();
    const auto part = [&](std::uint64_t byte, std::uint64_t bytes) {
        return VkDescriptorBufferInfo{whole.buffer, byte, bytes};
    };
    DeviceUnderTest::KernelCall call = {.info = info, .call = {}, .limits = trial.limits};
    call.call.batch = shape.batch;
    call.call.tokens = shape.tokens;
    call.call.direction = trial.direction;
    call.call.gain = trial.gain;
    if (has_q) {
        call.call.in[Q] = tensor_of(q.in, whole, q.in_byte);
        call.call.out[Q] = tensor_of(q.out, whole, q.out_byte);
    }
    if (has_k) {
        call.call.in[K] = tensor_of(k.in, whole, k.in_byte);
        call.call.out[K] = tensor_of(k.out, whole, k.out_byte);
    }
    if (has_v) {
        call.call.in[V] = tensor_of(v.in, whole, v.in_byte);
        call.call.out[V] = tensor_of(v.out, whole, v.out_byte);
    }
    Positions& where = call.call.positions;
    if (implicit) {
        where.first = static_cast<std::int32_t>(trial.first);
        where.batch_stride = trial.batch_step == 0 ? broadcast : trial.batch_step;
    } else {
        where.ids = part(ids_byte, positions.size() * (trial.ids_64 ? 8 : 4));
        where.int64 = trial.ids_64;
    }
    if (info.scatter_kv) {
        const reference::Cache& cache = *k.out.rows.cache;
        call.call.paged_cache = {
            .slot_mapping = part(slots_byte, cache.slot_mapping.size() * (trial.slots_64 ? 8 : 4)),
            .int64 = trial.slots_64,
            .page_size = trial.page_size};
        if (trial.pages_by_head) {
            call.call.paged_cache.page_stride = static_cast<std::int64_t>(cache.page_stride);
            call.call.paged_cache.row_stride = static_cast<std::int64_t>(cache.row_stride);
        }
    }
    if (counts) {
        call.call.out_of_range = part(counter_byte, 4);
    }
    AngleTable table;
    AnglePlan callers_plan;
    if (callers) {
        callers_plan = value_of(plan_cos_sin_cache(info.rotary_dim / 2, trial.table_rows,
                                                   trial.row_stride, info.table,
                                                   info.channel_angles));
        cos_buffer = device.upload(trial.cos.data(), trial.cos.size());
        sin_buffer = device.upload(trial.sin.data(), trial.sin.size());
        call.call.angles = {
            .plan = &callers_plan, .buffer = cos_buffer.whole(), .sin = sin_buffer.whole()};
        call.call.angles.buffer.range = call.call.angles.sin.range = callers_plan.bytes;
    } else {
        table = value_of(
            AngleTable::make(device.device(), rotation_of(trial), info.angles, trial.table_rows));
        call.call.angles = table.angles();
    }
    Rotated rotated;
    rotated.dispatches = device.rotate(call);
    memory.after.resize(memory.before.size());
    device.download(buffer, memory.after.data(), memory.after.size());

    std::uint64_t stray = memory.before.size();
    for (std::uint64_t byte = 0; byte < memory.before.size(); ++byte) {
        if (memory.before[byte] != memory.after[byte] && !memory.may_change[byte]) {
            stray = byte;
            break;
        }
    }
    findings.hold(stray == memory.before.size(),
                  "byte {} of the buffer has changed, which belongs to no row of the output",
                  stray);
    const bool flushes = device.traits().flushes_subnormals;
    std::uint64_t outside = 0;
    const Definition definition(trial, positions, flushes);
    const auto hold = [&](const TensorRows& tensor, const reference::Operation& operation,
                          char name) {
        outside = 0;  // K and V also check the slots
        if (!callers) {
            hold_against_oracle(trial, operation, positions, tensor, memory, name, findings,
                                outside);
        }
        const std::uint64_t uncovered = definition.hold(
            operation, tensor.in.rows, tensor.out.rows, &memory.before[tensor.first_in()],
            &memory.before[tensor.first_out()], &memory.after[tensor.first_out()], name, findings);
        outside = callers ? uncovered : outside;
        return packed_rows(tensor, memory.after);
    };
    if (has_q) {
        rotated.q = hold(q, operation_of(trial, info.tensor[Q], flushes), 'Q');
    }
    if (has_k) {
        rotated.k = hold(k, operation_of(trial, info.tensor[K], flushes), 'K');
    }
    if (has_v) {
        rotated.v = hold(v, move_of(trial), 'V');
    }
    if (counts) {
        std::uint32_t before = 0, after = 0;
        std::memcpy(&before, &memory.before[counter_byte], sizeof before);
        std::memcpy(&after, &memory.after[counter_byte], sizeof after);
        rotated.outside = after - before;
        findings.hold(rotated.outside == outside,
                      "the counter has grown by {} where {} tokens are outside", rotated.outside,
                      outside);
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

bool has_counter(const DeviceUnderTest& device, const KernelInfo& info,
                 const ReportedLimits& limits) {
    if (info.angles == VKROPE_ANGLES_COMPUTED && info.positions == VKROPE_POSITIONS_IMPLICIT &&
        !info.scatter_kv) {
        return false;  // nothing can be outside
    }
    const std::uint32_t of_device = device.info().limits.maxPerStageDescriptorStorageBuffers;
    return (limits.storage_buffers != 0 ? limits.storage_buffers : of_device) >= 8 ||
           (info.angles < VKROPE_ANGLES_DIRECT_BUFFER && !info.scatter_kv);
}

std::vector<std::int64_t> random_positions(std::size_t count, std::int64_t lowest,
                                           std::int64_t highest, std::uint32_t seed) {
    Random random(seed);
    std::vector<std::int64_t> positions(count);
    for (std::int64_t& position : positions) {
        position = lowest + static_cast<std::int64_t>(
                                random() % static_cast<std::uint64_t>(highest - lowest + 1));
    }
    return positions;
}

std::size_t q_elements(const Trial& trial) {
    return std::size_t{trial.shape.rows()} * trial.shape.q_heads() * trial.info.tensor[Q].head_dim;
}

std::size_t v_elements(const Trial& trial) {
    return std::size_t{trial.shape.rows()} * trial.shape.v_heads() * trial.info.tensor[V].head_dim;
}

}  // namespace vkrope::conformance
