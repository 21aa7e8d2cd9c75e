// SPDX-License-Identifier: MIT
#include "prepare.hpp"

#include <algorithm>

#include "meaning.hpp"

namespace vkrope::test {

std::uint64_t Memory::take(std::uint64_t bytes) {
    constexpr std::uint64_t guard = 512;  // a binding never starts that much early
    const std::uint64_t start = (before.size() + guard + 15) / 16 * 16;
    before.reserve(start + bytes + guard + 16);
    while (before.size() < (start + bytes + guard + 15) / 16 * 16) {
        const std::uint64_t word = random_();
        const auto* first = reinterpret_cast<const std::byte*>(&word);
        before.insert(before.end(), first, first + sizeof word);
    }
    may_change.resize(before.size());
    return start;
}

namespace {

std::uint64_t size_of(const oracle::Tensor& rows) {
    return oracle::bytes_of(rows.type);
}

std::uint64_t byte_of(const Placed& placed, std::uint64_t piece, std::uint64_t element) {
    return piece + (placed.first + element) * size_of(placed.rows);
}

// Places both tensors in one piece if their elements have one size, else each in its own piece with
// the place of the other left free.
void place(Arrangement arrangement, const Numbers& numbers, bool output, Memory& memory,
           PreparedCall& prepared) {
    const Element q_type = output ? numbers.q_out : numbers.q_in,
                  k_type = output ? numbers.k_out : numbers.k_in;
    if (arrangement == cache_of_k) arrangement = Arrangement::bshd;  // used for an absent Q
    Piece piece = arrange(arrangement, prepared.shape, numbers.formats().q_head_dim,
                          numbers.formats().k_head_dim);
    piece.q.rows.type = type_of(q_type);
    piece.k.rows.type = type_of(k_type);
    const std::uint64_t q_byte = memory.take(piece.elements * element_bytes(q_type));
    const bool shared = element_bytes(q_type) == element_bytes(k_type);
    const std::uint64_t k_byte = shared ? q_byte
                                        : memory.take(piece.elements * element_bytes(k_type));
    (output ? prepared.q.out : prepared.q.in) = piece.q;
    (output ? prepared.q.out_byte : prepared.q.in_byte) = q_byte;
    (output ? prepared.k.out : prepared.k.in) = piece.k;
    (output ? prepared.k.out_byte : prepared.k.in_byte) = k_byte;
}

void fill(const PreparedTensor& tensor, const Bytes& rows, Memory& memory) {
    const oracle::Tensor& in = tensor.in.rows;
    const std::uint64_t bytes = in.head_dim * size_of(in);
    oracle::each_row(in, [&](std::uint64_t row, std::uint64_t first) {
        const std::uint64_t source = in.head_stride == 0 ? row / in.heads * in.heads
                                                         : row;  // broadcast: head 0
        std::memcpy(&memory.before[byte_of(tensor.in, tensor.in_byte, first)],
                    &rows[source * bytes], bytes);
    });
}

void let_change(const PreparedTensor& tensor, Memory& memory) {
    const std::uint64_t bytes = tensor.out.rows.head_dim * size_of(tensor.out.rows);
    oracle::each_row(tensor.out.rows, [&](std::uint64_t, std::uint64_t first) {
        const auto at = memory.may_change.begin() +
                        std::ptrdiff_t(byte_of(tensor.out, tensor.out_byte, first));
        std::fill(at, at + std::ptrdiff_t(bytes), true);
    });
}

// Different rows for most tokens, shuffled; some tokens have none.
std::vector<std::int64_t> random_slots(const oracle::Cache& cache, std::uint32_t tokens, bool wide,
                                       Random& random) {
    const auto rows = std::int64_t(cache.pages * cache.page_size);
    std::vector<std::int64_t> free(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) free[std::size_t(i)] = i;
    std::shuffle(free.begin(), free.end(), random);
    const std::int64_t outside[] = {rows,
                                    -2,
                                    INT32_MIN,
                                    INT32_MAX,
                                    (std::int64_t{1} << 32) + 1,
                                    INT64_MIN,
                                    0xffffffff,
                                    -(std::int64_t{1} << 32)};
    std::vector<std::int64_t> slots;
    for (std::uint32_t i = 0; i < tokens; ++i) {
        const std::uint32_t kind = below(random, 8);
        slots.push_back(kind == 0   ? -1
                        : kind == 1 ? outside[below(random, wide ? 8 : 4)]
                                    : free[i]);
    }
    return slots;
}

// Places V in separate pieces.
void place_v(const Numbers& numbers, const Tuple& tuple, Memory& memory, PreparedCall& prepared) {
    PreparedTensor& v = prepared.v;
    const auto take = [&](Element element, const Placed& placed, std::uint64_t& byte) {
        const std::uint64_t spare = 2 *
                                    placed.rows.head_dim;  // so that the last word is in the buffer
        byte = memory.take((placed.first + span_of(placed.rows) + spare) * element_bytes(element));
    };
    v.in = prepared.k.in;
    v.out = tuple.v == PlaceOfV::in_place ? v.in : prepared.k.out;
    if (tuple.v == PlaceOfV::apart) {
        const Arrangement other = tuple.in == Arrangement::gaps ? Arrangement::bshd
                                                                : Arrangement::gaps;
        v.in = arrange(other, prepared.shape, numbers.formats().q_head_dim,
                       numbers.formats().k_head_dim)
                   .k;
    }
    v.in.rows.type = type_of(numbers.v_in);
    v.out.rows.type = type_of(numbers.v_out);
    take(numbers.v_in, v.in, v.in_byte);
    if (tuple.v == PlaceOfV::in_place)
        v.out_byte = v.in_byte;
    else
        take(numbers.v_out, v.out, v.out_byte);
}

// `count` rows of `tokens` numbers, `stride` numbers apart.
template <class Number, class Source>
std::uint64_t write_rows(const std::vector<Source>& numbers, std::uint32_t count,
                         std::uint32_t tokens, std::uint32_t stride, Memory& memory) {
    const std::uint64_t start =
        memory.take((std::uint64_t{count - 1} * stride + tokens) * sizeof(Number)) + 4;
    for (std::uint32_t b = 0; b < count; ++b) {
        for (std::uint32_t t = 0; t < tokens; ++t) {
            const auto number = Number(numbers[b * tokens + t]);
            std::memcpy(&memory.before[start + (std::uint64_t{b} * stride + t) * sizeof number],
                        &number, sizeof number);
        }
    }
    return start;
}

}  // namespace

PreparedCall prepare(const Numbers& numbers, const Tuple& tuple, Memory& memory, Random& random) {
    PreparedCall prepared{
        .tuple = tuple, .first_byte = memory.before.size(), .shape = numbers.shape};
    Shape& shape = prepared.shape;
    prepared.flat = tuple.in == Arrangement::thd || tuple.out == Arrangement::thd;
    if (prepared.flat) {
        shape.tokens *= shape.batch;
        shape.batch = 1;
    }
    place(tuple.in, numbers, false, memory, prepared);
    if (tuple.in_place) {
        prepared.q.out = prepared.q.in;
        prepared.q.out_byte = prepared.q.in_byte;
        prepared.k.out = prepared.k.in;
        prepared.k.out_byte = prepared.k.in_byte;
    } else {
        place(tuple.out, numbers, true, memory, prepared);
    }
    if (has_slots(numbers, tuple)) {  // V's cache has as many rows as K's, which may be absent
        prepared.k.out = arrange_pages(shape, shape.groups, numbers.formats().k_head_dim,
                                       tuple.page_size, tuple.pages_by_head, tuple.odd_pages);
        oracle::Tensor& rows = prepared.k.out.rows;
        rows.type = type_of(numbers.k_out);
        rows.cache->slot_mapping = random_slots(*rows.cache, shape.rows(), tuple.wide_slots,
                                                random);
        prepared.k.out_byte = memory.take((prepared.k.out.first + span_of(rows)) * size_of(rows));
        prepared.slots_stride = shape.tokens + (below(random, 2) == 1 ? 2 : 0);
        prepared.slots_byte = tuple.wide_slots
                                  ? write_rows<std::int64_t>(rows.cache->slot_mapping, shape.batch,
                                                             shape.tokens, prepared.slots_stride,
                                                             memory)
                                  : write_rows<std::int32_t>(rows.cache->slot_mapping, shape.batch,
                                                             shape.tokens, prepared.slots_stride,
                                                             memory);
    }
    if (tuple.v != PlaceOfV::absent) place_v(numbers, tuple, memory, prepared);
    for (std::uint32_t i = 0; i < shape.rows(); ++i) {
        prepared.positions.push_back(numbers.ids()
                                         ? numbers.id[i]
                                         : numbers.first_position + std::int64_t{i % shape.tokens});
    }
    if (numbers.ids()) {
        // Sequences share their ids by a stride of 0, or by equal rows.
        const bool one_row = shape.batch == 1 ||
                             (numbers.positions == Positions::shared_ids && below(random, 2) == 1);
        prepared.ids_stride = one_row ? 0 : shape.tokens + below(random, 3);
        prepared.ids_byte = write_rows<std::int32_t>(prepared.positions, one_row ? 1 : shape.batch,
                                                     shape.tokens, prepared.ids_stride, memory);
    }
    if (tuple.counts) prepared.counter_byte = memory.take(4);
    if (numbers.has_ops) {
        const Bytes& filled = numbers.parameters.filled;
        prepared.parameters_byte = memory.take(filled.size());
        std::copy(filled.begin(), filled.end(),
                  memory.before.begin() + std::ptrdiff_t(prepared.parameters_byte));
        prepared.factors_byte = write_rows<float>(numbers.factors, shape.batch, shape.tokens,
                                                  shape.tokens, memory);
    }
    if (tuple.q) fill(prepared.q, numbers.q, memory);
    if (tuple.k) fill(prepared.k, numbers.k, memory);
    if (tuple.v != PlaceOfV::absent) fill(prepared.v, numbers.values, memory);
    if (tuple.v != PlaceOfV::absent && (tuple.v != PlaceOfV::in_place || numbers.has_ops))
        let_change(prepared.v, memory);
    if (tuple.q) let_change(prepared.q, memory);
    if (tuple.k) let_change(prepared.k, memory);
    if (tuple.counts)
        std::fill_n(memory.may_change.begin() + std::ptrdiff_t(prepared.counter_byte), 4, true);
    prepared.end_byte = memory.before.size();
    return prepared;
}

Call call_of(const Numbers& numbers, const PreparedCall& prepared,
             const VkDescriptorBufferInfo& buffer, const AngleTable& table) {
    const Shape& shape = prepared.shape;
    const Tuple& tuple = prepared.tuple;
    Call call{.batch = shape.batch,
              .tokens = shape.tokens,
              .angles = table.angles(),
              .direction = tuple.direction,
              .gain = tuple.gain};
    if (tuple.q) {
        call.in[Q] = tensor_of(prepared.q.in, buffer, prepared.q.in_byte);
        call.out[Q] = tensor_of(prepared.q.out, buffer, prepared.q.out_byte);
    }
    if (tuple.k) {
        call.in[K] = tensor_of(prepared.k.in, buffer, prepared.k.in_byte);
        call.out[K] = tensor_of(prepared.k.out, buffer, prepared.k.out_byte);
    }
    if (tuple.v != PlaceOfV::absent) {
        call.in[V] = tensor_of(prepared.v.in, buffer, prepared.v.in_byte);
        call.out[V] = tensor_of(prepared.v.out, buffer, prepared.v.out_byte);
    }
    const auto part = [&](std::uint64_t byte, std::uint64_t bytes) {
        return VkDescriptorBufferInfo{buffer.buffer, byte, bytes};
    };
    if (!numbers.ids()) {
        call.positions = {.first = numbers.first_position, .batch_stride = broadcast};
    } else {
        call.positions.ids = part(
            prepared.ids_byte,
            (std::uint64_t{shape.batch - 1} * prepared.ids_stride + shape.tokens) *
                sizeof(std::int32_t));
        call.positions.batch_stride = prepared.ids_stride == 0 ? broadcast : prepared.ids_stride;
    }
    if (has_slots(numbers, tuple)) {
        const oracle::Cache& cache = *prepared.k.out.rows.cache;
        const std::uint64_t count = std::uint64_t{shape.batch - 1} * prepared.slots_stride +
                                    shape.tokens;
        call.paged_cache = {
            .slot_mapping = part(prepared.slots_byte, count * (tuple.wide_slots ? 8 : 4)),
            .int64 = tuple.wide_slots,
            .page_size = tuple.page_size,
            .batch_stride = prepared.slots_stride == shape.tokens ? 0 : prepared.slots_stride};
        if (!prepared.k.out.strides_by_rule) {
            call.paged_cache.page_stride = std::int64_t(cache.page_stride);
            call.paged_cache.row_stride = std::int64_t(cache.row_stride);
        }
    }
    if (tuple.counts) call.out_of_range = part(prepared.counter_byte, 4);
    if (numbers.has_ops) {
        if (!numbers.parameters.filled.empty())
            call.parameters = part(prepared.parameters_byte, numbers.parameters.filled.size());
        const auto factors = part(prepared.factors_byte, std::uint64_t{shape.rows()} * 4);
        const bool v = tuple.v != PlaceOfV::absent;
        if (tuple.q && numbers.q_ops.scale_tokens) call.scale_tokens[Q] = factors;
        if (tuple.k && numbers.k_ops.scale_tokens) call.scale_tokens[K] = factors;
        if (v && numbers.v_ops.scale_tokens) call.scale_tokens[V] = factors;
        if (tuple.q) call.q_scale = numbers.q_scale;
    }
    return call;
}

RopeParams rotation_of(const Numbers& numbers, bool factor) {
    const std::uint32_t rotary_dim = numbers.formats().rotary_dim;
    return rotation(numbers.pairing, rotary_dim, rotary_dim, 0, 0, factor ? some_factor : 1.0);
}

oracle::Operation operation_of(const Numbers& numbers, const PreparedCall& prepared,
                               const AngleTableLayout& plan, bool key) {
    oracle::Operation operation;
    operation.interleaved = numbers.pairing == VKROPE_INTERLEAVED;
    operation.interleaved_out = numbers.pairing_out == VKROPE_INTERLEAVED;
    operation.inverse = prepared.tuple.direction == VKROPE_INVERSE;
    operation.rotary_offset = key ? numbers.formats().k_offset : numbers.formats().q_offset;
    for (const Window& window : numbers.formats().windows)
        operation.windows.push_back({window.offset, window.rotary_dim / 2});
    const RopeParams rotation = rotation_of(numbers, prepared.tuple.factor);
    operation.inv_freq = rotation.inv_freq;
    operation.attention_factor = rotation.attention_factor;
    operation.gain = oracle::Gain(std::uint32_t(prepared.tuple.gain));
    operation.positions = prepared.positions;
    operation.absolute_allowance = flushed_allowance;
    operation.covered = plan.rows;
    return operation;
}

}  // namespace vkrope::test
