// SPDX-License-Identifier: MIT
#include "verify/place.hpp"

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <utility>

#include "base/meaning.hpp"
#include "verify/definition.hpp"
#include "verify/memory.hpp"

namespace vkrope::verify {
namespace {

using Random = std::mt19937_64;

std::uint64_t stride_or(std::int64_t given, std::uint64_t packed) {
    return given == 0 ? packed : given == broadcast ? 0 : std::uint64_t(given);
}

// Returns distinct rows for most tokens, in random order; some slots are -1 or out of range.
std::vector<std::int64_t> random_slots(std::uint64_t count, std::uint32_t tokens, Random& random) {
    const auto rows = std::int64_t(count);
    std::vector<std::int64_t> slots(std::size_t{count});
    for (std::size_t i = 0; i < slots.size(); ++i) slots[i] = std::int64_t(i);
    std::shuffle(slots.begin(), slots.end(), random);
    slots.resize(tokens);
    for (std::size_t i = 0; i < slots.size(); ++i)
        slots[i] = i % 5 == 1 ? -1 : i % 7 == 3 ? rows + std::int64_t(i) : slots[i];
    return slots;
}

// Returns the tensor in a piece of memory that starts at `byte`.
Tensor tensor_at(const Placed& placed, Element element, std::uint64_t byte) {
    Tensor tensor = tensor_of(placed, {}, 0);
    tensor.where = {VK_NULL_HANDLE, byte + stored_bytes(element, placed.first),
                    stored_bytes(element, span_of(placed.rows))};
    tensor.buffer_size = 0;
    return tensor;
}

// Places the inputs or the outputs in one piece if their elements have the same size. Otherwise
// each element size has a piece, in which the space of the other tensors stays unused.
void place(const Unplaced& operation, bool output, Memory& memory, Tensor (&tensors)[3]) {
    const TensorInfo(&info)[3] = operation.info.tensor;
    Piece piece = arrange(output ? operation.out : operation.in, operation.shape,
                          std::max(info[Q].head_dim, 1u), std::max(info[K].head_dim, 1u),
                          info[V].head_dim);
    Placed* const placed[] = {&piece.q, &piece.k, &piece.v};
    // By the bytes and the channels of an element or a block.
    std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> pieces;
    for (const TensorIndex which : every_tensor) {
        if (info[which].head_dim == 0) continue;
        const Element element = output ? info[which].out : info[which].in;
        const auto [found,
                    is_new] = pieces.try_emplace({element_bytes(element), block_channels(element)});
        if (is_new) {
            found->second =
                memory.take(stored_bytes(element, (piece.elements + operation.lead + 31) / 32 * 32))
                    .offset;
        }
        placed[which]->first += std::uint64_t{operation.lead} * block_channels(element);
        tensors[which] = tensor_at(*placed[which], element, found->second);
    }
}

// Places K and V of the inputs or of the outputs in pages.
void place_in_pages(const Unplaced& operation, bool output, Memory& memory, Call& call) {
    const KernelInfo& info = operation.info;
    Tensor(&tensors)[3] = output ? call.out : call.in;
    const std::uint32_t of_both = info.tensor[K].head_dim + info.tensor[V].head_dim;
    const auto pages = [&](TensorIndex which, std::uint64_t heads) {
        return arrange_pages(
            operation.shape, heads, operation.beside ? of_both : info.tensor[which].head_dim,
            call.paged_cache.page_size, operation.pages_by_head, operation.page_gaps);
    };
    std::uint64_t piece = 0;
    const auto take = [&](const Placed& placed, TensorIndex which) {
        const Element element = output ? info.tensor[which].out : info.tensor[which].in;
        const std::uint64_t lead = std::uint64_t{operation.lead} * block_channels(element);
        Placed led = placed;
        led.first += lead;
        if (which == K || !operation.beside)
            piece = memory.take(stored_bytes(element, lead + span_of(placed.rows))).offset;
        if (operation.beside) {
            led.strides_by_rule = false;
            led.rows.head_dim = info.tensor[which].head_dim;
            if (which == V) led.first += info.tensor[K].head_dim;
        }
        tensors[which] = tensor_at(led, element, piece);
    };
    call.paged_cache.page_size = std::max(call.paged_cache.page_size, 1u);
    const Placed k = pages(K, operation.shape.groups);
    const oracle::Cache& cache = *k.rows.cache;
    if (operation.pages_by_head || operation.beside || operation.page_gaps) {
        call.paged_cache.page_stride = std::int64_t(cache.page_stride);
        call.paged_cache.row_stride = std::int64_t(cache.row_stride);
    }
    if (info.tensor[K].head_dim > 0) take(k, K);
    if (info.tensor[V].head_dim > 0) {
        Placed v = pages(V, operation.shape.v_heads());
        if (operation.pages_by_head) {  // both caches share the strides of pages and rows
            v.rows.head_stride = k.rows.head_stride;
            v.rows.cache->page_stride = cache.page_stride;
            v.rows.cache->row_stride = cache.row_stride;
        }
        v.rows.cache->pages = slots_of(operation, V) / cache.page_size;
        take(v, V);
    }
}

// Places slots with the stride of the call. Empty: random slots.
VkDescriptorBufferInfo place_slots(const Unplaced& operation, const PagedCache& cache,
                                   const std::vector<std::int64_t>& given, Memory& memory,
                                   Random& random) {
    const std::uint64_t tokens = operation.shape.tokens;
    const std::vector<std::int64_t> slots = given.empty()
                                                ? random_slots(slots_of(operation, K),
                                                               operation.shape.rows(), random)
                                                : given;
    const std::uint64_t of_sequence = stride_or(cache.batch_stride, tokens);
    std::vector<std::int64_t> stored((operation.shape.batch - 1) * of_sequence + tokens, -1);
    for (std::size_t i = 0; i < slots.size(); ++i)
        stored[i / tokens * of_sequence + i % tokens] = slots[i];
    return memory.put(stored, cache.int64 != 0);
}

// Places ids with the strides of the call; ids that belong to no token are 0.
void place_ids(const Unplaced& operation, Memory& memory, Call& call) {
    Positions& positions = call.positions;
    positions.first = 0;
    const std::uint64_t tokens = operation.shape.tokens, batch = operation.shape.batch;
    const std::uint64_t token = stride_or(positions.token_stride, 1);
    const std::uint64_t of_sequence = stride_or(positions.batch_stride, tokens * token);
    const std::uint64_t all = of_sequence == 0 ? tokens * token : batch * of_sequence;
    const std::uint64_t axis = stride_or(positions.axis_stride, all);
    std::vector<std::int64_t> stored;
    for (std::size_t i = 0; i < operation.ids.size(); ++i) {
        const std::uint64_t at = i / tokens / batch * axis + i / tokens % batch * of_sequence +
                                 i % tokens * token;
        stored.resize(std::max<std::size_t>(stored.size(), at + 1));
        stored[at] = operation.ids[i];
    }
    positions.ids = memory.put(stored, positions.int64 != 0);
}

// Writes packed rows to an input.
void fill(Operation& operation, TensorIndex which, const Bytes& rows) {
    const oracle::Tensor in = rows_of(operation, which, false);
    const std::size_t bytes = stored_bytes(operation.info.tensor[which].in, in.head_dim);
    oracle::each_row(in, [&](std::uint64_t row, std::uint64_t first) {
        const std::uint64_t source = in.head_stride == 0 ? row / in.heads * in.heads
                                                         : row;  // broadcast: head 0
        std::memcpy(&operation.memory[byte_of(operation, which, first, false)],
                    &rows[source * bytes], bytes);
    });
}

// Returns the byte of UE8M0 for a power of two, for 0 or for a NaN.
std::uint8_t ue8m0_of(float scale) {
    return std::isnan(scale) ? 255 : std::uint8_t(std::max(std::ilogb(scale), -127) + 127);
}

// Writes the scales of the rows of an input.
void fill_scales(Operation& operation, TensorIndex which, const std::vector<float>& scales) {
    const oracle::Tensor in = rows_of(operation, which, false);
    const std::uint64_t groups = scales_of_row(operation, which);
    const std::size_t bytes = scale_bytes(operation, which);
    std::byte* const start = &operation.memory[operation.call.scales_in[which].offset];
    for (std::size_t i = 0; i < scales.size(); ++i) {
        const auto at = scale_of(operation, which, in, i / groups);
        if (!at) continue;
        const std::uint8_t ue8m0 = ue8m0_of(scales[i]);
        std::memcpy(start + (*at + i % groups) * bytes,
                    bytes == 1 ? static_cast<const void*>(&ue8m0) : &scales[i], bytes);
    }
}

// Returns powers of two from 2^-6 to 2^-3.
std::vector<float> random_scales(std::size_t count, Random& random) {
    std::vector<float> scales(count);
    for (float& scale : scales) scale = std::ldexp(1.f, -int(3 + random() % 4));
    return scales;
}

// Returns the number of values of a parameter with this number of channels.
std::size_t count_of(vkrope_parameter_shape shape, const TensorInfo& info, std::size_t channels) {
    const std::size_t heads = info.heads;
    switch (shape) {
        case VKROPE_PARAMETER_CHANNEL: return channels;
        case VKROPE_PARAMETER_HEAD_CHANNEL: return heads * channels;
        case VKROPE_PARAMETER_TENSOR: return 1;
        case VKROPE_PARAMETER_HEAD: return heads;
        default: return 0;
    }
}

// Makes some numbers so small that f16 has them as subnormal numbers.
void make_some_subnormal(std::vector<float>& numbers) {
    for (std::size_t i = 3; i < numbers.size(); i += 7) numbers[i] = std::ldexp(numbers[i], -17);
}

// Places a weight, in whole words, at a multiple of every alignment.
VkDescriptorBufferInfo place_weight(Element element, const std::vector<float>& weight,
                                    Memory& memory) {
    Bytes bytes(weight.size() * element_bytes(element));
    for (std::size_t i = 0; i < weight.size(); ++i) set(element, bytes, i, weight[i]);
    const VkDescriptorBufferInfo piece = memory.take((bytes.size() + 3) / 4 * 4, 256);
    std::copy(bytes.begin(), bytes.end(), &memory.bytes[piece.offset]);
    return piece;
}

// Places the weights that the kernel binds; they are no parameters then.
void place_weights(const Unplaced& unplaced, Memory& memory, Operation& operation) {
    for (const TensorIndex which : every_tensor) {
        const Norm& norm = operation.info.tensor[which].ops.norm;
        if (!norm.weight_bound) continue;
        const std::vector<float> weight = std::exchange(operation.parameters[which].weight, {});
        VkDescriptorBufferInfo& place = operation.call.norm_weight[which];
        if (operation.call.in[which].heads == 0) continue;
        for (const TensorIndex other : every_tensor)
            if (unplaced.shares_weight && other < which && has(operation, other) &&
                bound_weights(operation, other) == weight.size() &&
                operation.info.tensor[other].ops.norm.weight_type == norm.weight_type)
                place = operation.call.norm_weight[other];
        if (place.range == 0) place = place_weight(norm.weight_type, weight, memory);
    }
}

// Creates random weights, biases and scales with the shapes that the kernel requires.
void add_parameters(const KernelInfo& info, TensorParameters& set, std::uint32_t seed) {
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = info.tensor[which];
        const Ops& ops = of.ops;
        const auto fill_up = [&](vkrope_parameter_shape shape, std::vector<float>& numbers,
                                 std::size_t channels) {
            const Bytes random = random_elements(VKROPE_F32, count_of(shape, of, channels), ++seed);
            if (numbers.empty()) {
                numbers.resize(random.size() / sizeof(float));
                std::memcpy(numbers.data(), random.data(), random.size());
            }
        };
        const std::size_t normed = ops.norm.channels == 0 ? of.head_dim : ops.norm.channels;
        Parameters& parameters = set[which];
        fill_up(ops.bias, parameters.bias, of.head_dim);
        fill_up(ops.norm.weight, parameters.weight, normed);
        if (ops.norm.weight_bound) make_some_subnormal(parameters.weight);
        fill_up(ops.norm.bias, parameters.norm_bias, normed);
        fill_up(ops.store_scale == VKROPE_STORE_SCALE_GIVEN        ? VKROPE_PARAMETER_TENSOR
                : ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD ? VKROPE_PARAMETER_HEAD
                                                                   : VKROPE_PARAMETER_NONE,
                parameters.store_scale, 1);
    }
}

// Returns a factor for each token; some factors are below 1.
std::vector<float> token_scales(std::uint32_t tokens) {
    std::vector<float> scales;
    for (std::uint32_t i = 0; i < tokens; ++i) scales.push_back(0.75f + 0.125f * float(i));
    return scales;
}

}  // namespace

std::uint32_t slots_of(const Unplaced& operation, vkrope_tensor_index which) {
    const std::uint32_t page_size = std::max(operation.call.paged_cache.page_size, 1u),
                        pages = 1 + 4 * operation.shape.rows() / page_size;
    const bool own = which == V && !(operation.v_slots.empty() && operation.v_sources.empty());
    return (own && !operation.beside ? pages + 1 : pages) * page_size;
}

std::size_t elements_of(const Unplaced& operation, vkrope_tensor_index which) {
    const Shape& shape = operation.shape;
    const std::uint32_t heads[] = {shape.q_heads(), shape.groups, shape.v_heads()};
    return std::size_t{shape.rows()} * heads[which] * operation.info.tensor[which].head_dim;
}

std::vector<double> inv_freq_of(const Unplaced& operation) {
    std::vector<double> inv_freq = operation.inv_freq;
    if (inv_freq.empty()) {
        const KernelInfo& info = operation.info;
        const std::size_t pairs = info.rotary_dim / 2;
        const std::size_t sets = std::size_t{vkrope::head_groups_of(info)} *
                                 summed_axes(info.sections);
        for (std::size_t j = 0; j < pairs; ++j)
            inv_freq.push_back(std::pow(10000.0, -2.0 * double(j) / info.rotary_dim));
        while (inv_freq.size() < sets * pairs)
            inv_freq.push_back(0.75 * inv_freq[inv_freq.size() - pairs]);
    }
    return inv_freq;
}

bool must_count(const Unplaced& operation) {
    const KernelInfo& info = operation.info;
    const auto rotates = [&](TensorIndex which) {
        return info.tensor[which].head_dim != 0 && !operation.absent[which];
    };
    if (info.rotary_dim == 0 || info.positions != VKROPE_POSITIONS_IMPLICIT ||
        info.angles == VKROPE_ANGLES_COMPUTED || !(rotates(Q) || rotates(K)))
        return false;
    const Positions& positions = operation.call.positions;
    const std::int64_t stride = std::max<std::int64_t>(positions.batch_stride, 0),  // or broadcast
        first = positions.first,
                       last = first + operation.shape.tokens - 1 +
                              (std::int64_t{operation.shape.batch} - 1) * stride;
    const std::int64_t rows = operation.max_position;
    return first < (info.angles == VKROPE_ANGLES_COS_SIN_CACHE ? 0 : 1 - rows) || last >= rows;
}

Operation placed(const Unplaced& unplaced) {
    Operation operation = unplaced;
    const KernelInfo& info = operation.info;
    Call& call = operation.call;
    const Shape& shape = unplaced.shape;
    call.batch = shape.batch;
    call.tokens = shape.tokens;
    operation.inv_freq = inv_freq_of(unplaced);
    add_parameters(info, operation.parameters, 700);
    if (info.two_parameter_sets) add_parameters(info, operation.second, 800);
    const auto is_in_call = [&](TensorIndex which) {
        return info.tensor[which].head_dim != 0 && !unplaced.absent[which];
    };
    Random random(unplaced.seed);
    Memory memory(random());
    place(unplaced, false, memory, call.in);
    if (unplaced.in_place != std::array{true, true, true}) place(unplaced, true, memory, call.out);
    const bool has_kv = is_in_call(K) || is_in_call(V), scatters = info.scatter_kv && has_kv,
               gathers = info.gather_kv && has_kv, slots = scatters || gathers;
    if (!slots) call.paged_cache = {};
    PagedCache& cache = call.paged_cache;
    const auto slots_at = [&](const std::vector<std::int64_t>& given) {
        return place_slots(unplaced, cache, given, memory, random);
    };
    const bool has_both = is_in_call(K) && is_in_call(V);
    if (gathers) {
        place_in_pages(unplaced, false, memory, call);
        const bool own = !scatters || !unplaced.sources.empty();
        if (own) cache.source_mapping = slots_at(unplaced.sources);
        if (own && has_both && !unplaced.v_sources.empty())
            cache.v_source_mapping = slots_at(unplaced.v_sources);
    }
    if (scatters) {
        place_in_pages(unplaced, true, memory, call);
        cache.slot_mapping = slots_at(unplaced.slots);
        if (has_both && !unplaced.v_slots.empty())
            cache.v_slot_mapping = slots_at(unplaced.v_slots);
    }
    for (const TensorIndex which : every_tensor)
        if (unplaced.in_place[which]) call.out[which] = call.in[which];
    if (info.positions != VKROPE_POSITIONS_IMPLICIT)
        place_ids(unplaced, memory, call);
    else if (call.positions.batch_stride == 0 && info.rotary_dim != 0)
        call.positions.batch_stride = broadcast;
    const bool rotates = info.rotary_dim != 0 && (is_in_call(Q) || is_in_call(K)),
               can_count = (rotates &&
                            (info.angles != VKROPE_ANGLES_COMPUTED || call.positions.int64)) ||
                           slots || info.token_count;
    if (can_count && (must_count(unplaced) || unplaced.counts))
        call.out_of_range = memory.take(sizeof(std::uint32_t));
    if (!unplaced.cos.empty()) {
        call.angles.buffer = memory.put(unplaced.cos);
        call.angles.sin = memory.put(unplaced.sin);
    }
    for (const TensorIndex which : every_tensor) {
        const Ops& ops = info.tensor[which].ops;
        if (!is_in_call(which)) {
            call.in[which] = call.out[which] = {};
            continue;
        }
        if (ops.scale_tokens) call.scale_tokens[which] = memory.put(token_scales(shape.rows()));
        if (info.tensor[which].second_of != VKROPE_SECOND_NONE) {
            const std::uint64_t bytes = stored_bytes(info.tensor[which].second,
                                                     elements_of(unplaced, which));
            call.second[which] = memory.take((bytes + 3) / 4 * 4, 256);
        }
        const auto take_scales = [&](bool paged) {
            const std::uint64_t rows = paged ? slots_of(unplaced, which) : shape.rows();
            const std::uint64_t bytes = rows * call.in[which].heads *
                                        scales_of_row(operation, which) *
                                        scale_bytes(operation, which);
            return memory.take((bytes + 3) / 4 * 4);
        };
        if (ops.scales_in) call.scales_in[which] = take_scales(info.gather_kv && which != Q);
        if (is_made(ops.store_scale))
            call.scales_out[which] = ops.scales_in && unplaced.in_place[which]
                                         ? call.scales_in[which]
                                         : take_scales(info.scatter_kv && which != Q);
    }
    place_weights(unplaced, memory, operation);
    if (info.token_count) {
        call.token_count = memory.take(sizeof unplaced.token_count, 256);
        std::memcpy(&memory.bytes[call.token_count.offset], &unplaced.token_count,
                    sizeof unplaced.token_count);
    }
    operation.memory = std::move(memory.bytes);
    auto seed = std::uint32_t(random());
    for (const TensorIndex which : every_tensor) {
        if (is_in_call(which)) {
            const Bytes& rows = unplaced.rows[which];
            fill(operation, which,
                 rows.empty()
                     ? random_elements(info.tensor[which].in, elements_of(unplaced, which), seed)
                     : rows);
            const std::size_t scales = elements_of(unplaced, which) / info.tensor[which].head_dim *
                                       scales_of_row(operation, which);
            if (info.tensor[which].ops.scales_in)
                fill_scales(operation, which,
                            unplaced.scales[which].empty() ? random_scales(scales, random)
                                                           : unplaced.scales[which]);
        }
        ++seed;
    }
    return operation;
}

void pack_weights(Unplaced& operation) {
    const Operation bound = placed(operation);
    for (const TensorIndex which : every_tensor) {
        Norm& norm = operation.info.tensor[which].ops.norm;
        if (norm.weight_bound && has(bound, which))
            operation.parameters[which].weight = bound_weight(bound, which);
        norm.weight_bound = VK_FALSE;
        norm.weight_type = VKROPE_F32;
    }
}

}  // namespace vkrope::verify
