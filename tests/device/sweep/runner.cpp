// SPDX-License-Identifier: MIT
#include "runner.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

#include "dimensions.hpp"
#include "meaning.hpp"
#include "prepare.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

// Ranges of a few rows, so that all but the smallest calls are cut, but of large calls at most
// about 40 parts per tensor.
DeviceRef with_limits(Device& on, const Numbers& numbers, Limits wanted) {
    const std::uint32_t row = std::max(
        numbers.formats().q_head_dim *
            std::max(element_bytes(numbers.q_in), element_bytes(numbers.q_out)),
        (numbers.formats().k_head_dim + 1) *
            std::max(element_bytes(numbers.k_in), element_bytes(numbers.k_out)));
    // In f32, V's rows are the longest.
    const std::uint32_t longest = numbers.v ? std::max(row, (numbers.formats().k_head_dim + 1) * 4)
                                            : row;
    const std::uint32_t range = longest *
                                    std::max(3 * (numbers.shape.groups + 1),
                                             numbers.shape.rows() * numbers.shape.q_heads() / 40) +
                                600;
    switch (wanted) {
        case Limits::few_buffers:  // too few for Q and K together, or to count
            return reporting(on, {.storage_buffers = numbers.has_ops ? 6u : 4u});
        case Limits::short_ranges:
            return reporting(on, {.storage_range = std::max(
                                      range, std::uint32_t(numbers.parameters.plan.bytes) + 256)});
        default: return on.ref();
    }
}

// ---- One kernel and what it needs ----

KernelInfo info_of(const Numbers& numbers, const KernelChoice& choice) {
    KernelInfo info = info_of(numbers);
    info.angles = choice.source;
    info.mapping = choice.mapping;
    info.conversion = choice.conversion;
    return info;
}

// With the requested conversion if the device supports it.
Kernel* kernel_of(const DeviceRef& on, KernelInfo info) {
    Result<Kernel*> made = create(on, info);
    if (info.conversion == VKROPE_CONVERSION_NATIVE &&
        made.status.code == VKROPE_ERROR_NOT_SUPPORTED) {
        info.conversion = VKROPE_CONVERSION_INTEGER;
        made = create(on, info);
    }
    return must(std::move(made));
}

// The bits of a NaN depend on the device; the oracle checks those that are copied unconverted.
bool same_elements(oracle::Type type, const std::byte* a, const std::byte* b, std::size_t bytes) {
    if (std::memcmp(a, b, bytes) == 0) return true;
    const std::size_t size = oracle::bytes_of(type);
    for (std::size_t at = 0; at < bytes; at += size) {
        std::uint32_t x = 0, y = 0;
        std::memcpy(&x, a + at, size);
        std::memcpy(&y, b + at, size);
        if (x != y && !(std::isnan(oracle::widen(type, x)) && std::isnan(oracle::widen(type, y))))
            return false;
    }
    return true;
}

double seconds_since(std::chrono::steady_clock::time_point& start) {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - start).count();
    start = now;
    return seconds;
}

}  // namespace

const AngleTable& Sweep::table(const Numbers& numbers, const KernelChoice& choice, bool factor) {
    const std::vector<std::uint32_t> key = {choice.push_descriptors, std::uint32_t(choice.source),
                                            numbers.formats().rotary_dim, factor};
    AngleTable& table = tables_[key];
    if (table.layout().rows == 0) {
        table = must(AngleTable::make(device(choice.push_descriptors), rotation_of(numbers, factor),
                                      choice.source, numbers.table_rows));
    }
    return table;
}

void Sweep::fail(const Numbers& numbers, const KernelChoice& choice, const Tuple& tuple,
                 const std::string& what) {
    std::string text = "seed " + std::to_string(seed_) + ": " + what + "; the call:";
    for (const Value& value : values_of(numbers, choice, tuple))
        text += std::string("\n    ") + value.dimension + ": " + value.name();
    failures.push_back(text);
}

void Sweep::run(std::uint32_t index, const Numbers& numbers, const KernelChoice& choice,
                const std::vector<Tuple>& tuples) {
    auto clock = std::chrono::steady_clock::now();
    Device& on = device(choice.push_descriptors);
    const Owned<Kernel> kernel(
        kernel_of(with_limits(on, numbers, choice.limits), info_of(numbers, choice)));
    const AngleTable* tables[] = {&table(numbers, choice, false), &table(numbers, choice, true)};
    create_seconds += seconds_since(clock);

    Random random(seed_ + index);
    Memory memory(random());
    std::vector<PreparedCall> prepared;
    for (const Tuple& tuple : tuples) prepared.push_back(prepare(numbers, tuple, memory, random));
    check_seconds += seconds_since(clock);

    Buffer buffer = must(Buffer::make(on, memory.before.size()));
    must(buffer.upload(memory.before.data(), memory.before.size()));
    std::vector<Call> calls;
    std::uint32_t sets = 0;
    for (const PreparedCall& call : prepared) {
        calls.push_back(call_of(numbers, call, buffer.whole(), *tables[call.tuple.factor]));
        const Result<std::uint64_t> count = vkrope::dispatches(kernel.get(), calls.back());
        if (!count) fail(numbers, choice, call.tuple, count.status.what);
        sets += std::uint32_t(count.value);
        cut_calls += count.value > 2 ? 1 : 0;
    }
    dispatches += sets;
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        arena.reset(must(create_arena(kernel.get(), sets)));
    must(on.submit([&](VkCommandBuffer commands) {
        for (std::size_t i = 0; i < calls.size(); ++i) {
            const Status status = record(commands, kernel.get(), calls[i], arena.get());
            if (!status) fail(numbers, choice, prepared[i].tuple, status.what);
        }
        return Status{};
    }));
    memory.after.resize(memory.before.size());
    must(buffer.download(memory.after.data(), memory.after.size()));
    device_seconds += seconds_since(clock);
    for (const PreparedCall& call : prepared) check(index, numbers, choice, memory, call);
    check_seconds += seconds_since(clock);
}

void Sweep::check(std::uint32_t index, const Numbers& numbers, const KernelChoice& choice,
                  const Memory& memory, const PreparedCall& prepared) {
    const Tuple& tuple = prepared.tuple;
    for (std::uint64_t byte = prepared.first_byte; byte < prepared.end_byte; ++byte) {
        if (memory.before[byte] == memory.after[byte] || memory.may_change[byte]) continue;
        fail(numbers, choice, tuple,
             "byte " + std::to_string(byte - prepared.first_byte) +
                 " of its memory changed, which is nobody's");
        break;
    }
    std::uint64_t outside = 0;  // K, or V, also knows the slots
    if (tuple.q) outside = check_tensor(index, numbers, choice, memory, prepared, false);
    if (tuple.k) outside = check_tensor(index, numbers, choice, memory, prepared, true);
    if (tuple.v != PlaceOfV::absent) outside = check_v(numbers, choice, memory, prepared);
    if (!tuple.counts) return;
    std::uint32_t before = 0, after = 0;
    std::memcpy(&before, &memory.before[prepared.counter_byte], sizeof before);
    std::memcpy(&after, &memory.after[prepared.counter_byte], sizeof after);
    if (after - before != outside) {
        fail(numbers, choice, tuple,
             "the counter grew by " + std::to_string(after - before) + ", not by " +
                 std::to_string(outside));
    }
}

// Compares a tensor that has ops. Returns the tokens out of range.
std::uint64_t Sweep::check_ops(const Numbers& numbers, const KernelChoice& choice,
                               const Memory& memory, const PreparedCall& prepared,
                               const PreparedTensor& tensor, const char* name,
                               const oracle::Operation& operation, double bound) {
    const bool is_q = name[0] == 'Q', is_k = name[0] == 'K';
    const Ops& ops = is_q ? numbers.q_ops : is_k ? numbers.k_ops : numbers.v_ops;
    const oracle::Ops steps = oracle_of(ops,
                                        is_q   ? numbers.q_in
                                        : is_k ? numbers.k_in
                                               : numbers.v_in,
                                        numbers.parameters.of + (is_q   ? 0
                                                                 : is_k ? 3
                                                                        : 6),
                                        is_q ? numbers.q_scale : 1, numbers.factors);
    const auto size_of = [](const oracle::Tensor& rows) {
        return rows.type == oracle::Type::f32 ? 4u : 2u;
    };
    const oracle::OpsVerdict verdict = oracle::compare(
        tensor.in.rows, tensor.out.rows, operation, steps, bound,
        &memory.before[tensor.in_byte + tensor.in.first * size_of(tensor.in.rows)],
        &memory.after[tensor.out_byte + tensor.out.first * size_of(tensor.out.rows)]);
    elements += verdict.elements;
    if (!verdict.right()) {
        fail(numbers, choice, prepared.tuple,
             std::string(name) + ": not what its steps give (" +
                 std::to_string(verdict.largest_share) +
                 " of the allowed error): " + verdict.worst);
    }
    return verdict.out_of_range;
}

// V is not rotated: each row is its input, converted.
std::uint64_t Sweep::check_v(const Numbers& numbers, const KernelChoice& choice,
                             const Memory& memory, const PreparedCall& prepared) {
    const PreparedTensor& v = prepared.v;
    const auto size_of = [](const oracle::Tensor& rows) {
        return rows.type == oracle::Type::f32 ? 4u : 2u;
    };
    oracle::Operation operation;
    operation.positions = prepared.positions;
    operation.covered = table(numbers, choice, prepared.tuple.factor).layout().rows;
    operation.absolute_allowance = flushed_allowance;
    if (numbers.has_ops) return check_ops(numbers, choice, memory, prepared, v, "V", operation, 0);
    const oracle::Verdict verdict = oracle::compare(
        v.in.rows, v.out.rows, operation,
        &memory.before[v.in_byte + v.in.first * size_of(v.in.rows)],
        &memory.after[v.out_byte + v.out.first * size_of(v.out.rows)]);
    elements += verdict.elements;
    if (verdict.nan_mismatch || verdict.bits_changed)
        fail(numbers, choice, prepared.tuple, "V: its rows are not what came in: " + verdict.worst);
    return verdict.out_of_range;
}

std::uint64_t Sweep::check_tensor(std::uint32_t index, const Numbers& numbers,
                                  const KernelChoice& choice, const Memory& memory,
                                  const PreparedCall& prepared, bool key) {
    const Tuple& tuple = prepared.tuple;
    const PreparedTensor& tensor = key ? prepared.k : prepared.q;
    const oracle::Tensor &in = tensor.in.rows, &out = tensor.out.rows;
    const std::uint64_t in_size = oracle::bytes_of(in.type), out_size = oracle::bytes_of(out.type);
    const std::byte* output = &memory.after[tensor.out_byte + tensor.out.first * out_size];
    const AngleTableLayout& plan = table(numbers, choice, tuple.factor).layout();
    const oracle::Operation operation = operation_of(numbers, prepared, plan, key);
    const double bound = error_bound(plan.source, plan.attention_factor) +
                         (tuple.factor && tuple.gain != VKROPE_GAIN_APPLY ? 2.0 : 0.0);
    std::uint64_t outside = 0;
    if (numbers.has_ops) {
        outside = check_ops(numbers, choice, memory, prepared, tensor, key ? "K" : "Q", operation,
                            bound);
    } else {
        const oracle::Verdict verdict = oracle::compare(
            in, out, operation, &memory.before[tensor.in_byte + tensor.in.first * in_size], output);
        elements += verdict.elements;
        outside = verdict.out_of_range;
        const char* wrong = verdict.nan_mismatch
                                ? "NaN but the exact value is not NaN, or the reverse"
                            : verdict.bits_changed ? "a channel that is not rotated changed"
                            : !(verdict.largest_error_u <= bound) ? "too far from the exact value"
                                                                  : nullptr;
        if (wrong) {
            fail(numbers, choice, tuple,
                 std::string(key ? "K: " : "Q: ") + wrong + " (" +
                     std::to_string(verdict.largest_error_u) + " u, allowed " +
                     std::to_string(bound) + " u): " + verdict.worst);
        }
    }

    // The bits of a row equal those of the first call that rotated it in the same way, whatever the
    // layouts, the kernel and its device. Only the angle source may change them.
    const bool direct = plan.source == VKROPE_ANGLES_DIRECT_TEXTURE ||
                        plan.source == VKROPE_ANGLES_DIRECT_BUFFER;  // both have the same bits
    // All heads of a broadcast K are one, unless the ops differs by head or makes it a row.
    const bool one_row = in.head_stride == 0 && !numbers.has_ops;
    Canonical& canonical =
        canonical_[{index, key, in.head_stride == 0 && !one_row,
                    direct ? 0 : std::uint32_t(plan.source), std::uint32_t(tuple.direction),
                    std::uint32_t(tuple.gain), tuple.factor, prepared.flat && !numbers.ids()}];
    canonical.resize(out.batch * out.tokens * out.heads);
    bool same = true;
    oracle::each_row(out, [&](std::uint64_t row, std::uint64_t first) {
        const std::byte* got = output + first * out_size;
        const std::uint64_t source = one_row ? row / out.heads * out.heads : row;
        Bytes& bits = canonical[source];
        if (bits.empty())
            bits.assign(got, got + out.head_dim * out_size);
        else
            same = same && same_elements(out.type, bits.data(), got, bits.size());
    });
    if (!same)
        fail(numbers, choice, tuple,
             std::string(key ? "K" : "Q") + ": different bits than an equal rotation before it");
    return outside;
}

}  // namespace vkrope::test
