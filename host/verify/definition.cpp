// SPDX-License-Identifier: MIT
#include "verify/definition.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::verify {
namespace {

// Returns the stride that `given` means: 0 stands for packed, VKROPE_BROADCAST for 0.
std::uint64_t stride_of(std::int64_t given, std::uint64_t packed) {
    return given == 0 ? packed : given == VKROPE_BROADCAST ? 0 : std::uint64_t(given);
}

std::int64_t integer_at(const Operation& operation, const VkDescriptorBufferInfo& where, bool wide,
                        std::uint64_t index) {
    if (wide) {
        std::int64_t number = 0;
        std::memcpy(&number, &operation.memory[where.offset + index * 8], 8);
        return number;
    }
    std::int32_t number = 0;
    std::memcpy(&number, &operation.memory[where.offset + index * 4], 4);
    return number;
}

// Returns the number in vkrope_call::token_count; without it, the tokens of each sequence.
std::uint32_t token_count_of(const Operation& operation) {
    const VkDescriptorBufferInfo& where = operation.call.token_count;
    return where.range == 0 ? operation.call.tokens
                            : std::uint32_t(integer_at(operation, where, false, 0));
}

// Returns which tokens [batch, tokens] are not among the token_count of their sequence. Empty:
// none.
std::vector<bool> tokens_beyond(const Operation& operation) {
    const std::uint32_t tokens = operation.call.tokens, count = token_count_of(operation);
    std::vector<bool> beyond;
    if (count >= tokens) return beyond;
    for (std::size_t token = 0; token < tokens_of(operation); ++token)
        beyond.push_back(token % tokens >= count);
    return beyond;
}

std::vector<double> doubles(const std::vector<float>& floats) {
    return {floats.begin(), floats.end()};
}

std::uint32_t head_groups_of(const Operation& operation) {
    return std::max(operation.info.head_groups, 1u);
}

// The tensors of one side of a call.
struct Side {
    const Operation& operation;
    bool output;

    const vkrope_tensor& tensor(vkrope_tensor_index which) const {
        return output ? operation.call.out[which] : operation.call.in[which];
    }
    vkrope_element element(vkrope_tensor_index which) const {
        const vkrope_tensor_info& info = operation.info.tensor[which];
        return output ? info.out : info.in;
    }
    bool has_slots(vkrope_tensor_index which) const {
        const vkrope_kernel_info& info = operation.info;
        return which != VKROPE_Q && (output ? info.scatter_kv : info.gather_kv) != 0;
    }
};

// Returns the number of pages that fit in the range of a tensor.
std::uint64_t pages_of(const Side& side, vkrope_tensor_index which, const oracle::Tensor& rows,
                       const oracle::Cache& cache) {
    const vkrope_element element = side.element(which);
    const std::uint64_t block = is_quantised(element) ? oracle::block_channels(store_of(element))
                                                      : 1;
    const std::uint64_t channels = side.tensor(which).where.range / stored_bytes(element, block) *
                                   block;
    const std::uint64_t page = (cache.page_size - 1) * cache.row_stride +
                               (rows.heads - 1) * rows.head_stride + rows.head_dim;
    return channels < page ? 0 : (channels - page) / cache.page_stride + 1;
}

// Returns whether V has other slots than K, and so a number of pages of its own.
bool has_slots_of_v(const Operation& operation) {
    const vkrope_paged_cache& paged = operation.call.paged_cache;
    return paged.v_slot_mapping.range != 0 || paged.v_source_mapping.range != 0;
}

const VkDescriptorBufferInfo& mapping_of(const Side& side, vkrope_tensor_index which) {
    const vkrope_paged_cache& paged = side.operation.call.paged_cache;
    const bool reads = !side.output && paged.source_mapping.range != 0;
    const VkDescriptorBufferInfo& own = reads ? paged.v_source_mapping : paged.v_slot_mapping;
    if (which == VKROPE_V && own.range != 0) return own;
    return reads ? paged.source_mapping : paged.slot_mapping;
}

oracle::Cache cache_of(const Side& side, vkrope_tensor_index which, const oracle::Tensor& rows) {
    const Operation& operation = side.operation;
    const vkrope_paged_cache& paged = operation.call.paged_cache;
    oracle::Cache cache;
    cache.page_size = std::max(paged.page_size, 1u);
    cache.row_stride = stride_of(paged.row_stride, rows.heads * rows.head_dim);
    cache.page_stride = stride_of(paged.page_stride, cache.page_size * cache.row_stride);
    const std::uint64_t of_sequence = stride_of(paged.batch_stride, operation.call.tokens);
    const VkDescriptorBufferInfo& mapping = mapping_of(side, which);
    const std::uint32_t count = token_count_of(operation);
    for (std::uint64_t batch = 0; batch < rows.batch; ++batch) {
        for (std::uint64_t token = 0; token < rows.tokens; ++token) {
            cache.slot_mapping.push_back(token < count ? integer_at(operation, mapping, paged.int64,
                                                                    batch * of_sequence + token)
                                                       : -1);
        }
    }
    return cache;
}

oracle::Norm norm_of(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    const Parameters& parameters = operation.parameters[which];
    const vkrope_norm& norm = info.ops.norm;
    const bool is_bound = norm.weight_bound != 0 && has(operation, which);
    oracle::Norm made;
    made.kind = norm.kind == VKROPE_NORM_RMS     ? oracle::NormKind::rms
                : norm.kind == VKROPE_NORM_LAYER ? oracle::NormKind::layer
                                                 : oracle::NormKind::none;
    made.over_token = norm.span == VKROPE_NORM_SPAN_TOKEN;
    made.first_channel = norm.first_channel;
    made.channels = norm.channels;
    made.after = norm.place == VKROPE_NORM_PLACE_AFTER;
    made.eps = double(norm.eps);
    made.weight = doubles(is_bound ? bound_weight(operation, which) : parameters.weight);
    made.weight_offset = norm.weight_offset;
    made.bias = doubles(parameters.norm_bias);
    // All ops are f32 then.
    if (norm.round_between != 0 && info.in != VKROPE_F32 && !is_quantised(info.in))
        made.round_between = type_of(info.in);
    return made;
}

oracle::Ops steps_of(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    const vkrope_ops& ops = info.ops;
    const Parameters& parameters = operation.parameters[which];
    const auto or_1 = [](float factor) { return factor == 0 ? 1.0 : double{factor}; };
    oracle::Ops steps;
    steps.bias = doubles(parameters.bias);
    steps.norm = norm_of(operation, which);
    steps.clip = double(ops.clip);
    steps.scale = or_1(ops.scale) * (ops.scale_call != 0 ? or_1(operation.call.q_scale) : 1);
    if (ops.scale_tokens != 0) {
        std::vector<float> factors(tokens_of(operation));
        std::memcpy(factors.data(), &operation.memory[operation.call.scale_tokens[which].offset],
                    factors.size() * sizeof(float));
        steps.scale_tokens = doubles(factors);
    }
    steps.hadamard_of_input = ops.hadamard_of_input;
    steps.hadamard = ops.hadamard;
    if (operation.info.two_parameter_sets != 0) {
        const Parameters& second = operation.second[which];
        steps.second = {.from_token = operation.call.first_set_tokens,
                        .bias = doubles(second.bias),
                        .weight = doubles(second.weight),
                        .norm_bias = doubles(second.norm_bias)};
    }
    return steps;
}

oracle::QuantisedStore quantised_store(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    oracle::QuantisedStore store;
    store.type = store_of(info.out);
    store.given = operation.parameters[which].store_scale;
    if (operation.info.two_parameter_sets != 0) {
        store.given_second = operation.second[which].store_scale;
        store.second_from = operation.call.first_set_tokens;
    }
    store.made = info.ops.store_scale >= VKROPE_STORE_SCALE_MADE;
    store.group = info.ops.store_scale_group;
    store.floor = info.ops.scale_floor;
    store.power_of_two = info.ops.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
    return store;
}

oracle::QuantisedInput quantised_input(const Operation& operation, vkrope_tensor_index which,
                                       const oracle::Tensor& in) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    oracle::QuantisedInput read = {.type = store_of(info.in), .group = info.ops.store_scale_group};
    if (info.ops.scales_in == 0) return read;
    const std::uint64_t groups = scales_of_row(operation, which);
    read.scales.resize(tokens_of(operation) * in.heads * groups);
    for (std::uint64_t i = 0; i < read.scales.size(); ++i)
        if (const auto at = scale_of(operation, which, in, i / groups))
            read.scales[i] = scale_at(operation, which, operation.memory,
                                      operation.call.scales_in[which].offset, *at + i % groups,
                                      NAN);
    return read;
}

// Returns the positions that the angles cover.
oracle::Range covered_by(const Operation& operation) {
    if (operation.info.rotary_dim == 0) return {};
    const std::int64_t end = operation.max_position;
    switch (operation.info.angles) {
        case VKROPE_ANGLES_COMPUTED: return {INT32_MIN, INT32_MAX};
        case VKROPE_ANGLES_COS_SIN_CACHE: return {0, end - 1};
        default: return {1 - end, end - 1};
    }
}

oracle::Operation rotation_of(const Operation& operation, vkrope_tensor_index which, bool flushes) {
    const vkrope_kernel_info& info = operation.info;
    oracle::Operation rotation;
    const std::vector<std::int64_t> positions = positions_of(operation);
    const auto tokens = std::ptrdiff_t(tokens_of(operation));
    rotation.positions.assign(positions.begin(), positions.begin() + tokens);
    for (auto axis = positions.begin() + tokens; axis != positions.end(); axis += tokens)
        rotation.further.positions.emplace_back(axis, axis + tokens);
    rotation.covered = covered_by(operation);
    if (which != VKROPE_V) {
        rotation.attention_factor = operation.attention_factor;
        rotation.gain = oracle::Gain(operation.call.gain);
    }
    if (flushes) rotation.absolute_allowance = oracle::flushing_allowance(rotation);
    if (which == VKROPE_V) return rotation;
    rotation.interleaved = info.pairing == VKROPE_INTERLEAVED;
    if (info.pairing_out != VKROPE_PAIRING_NONE)
        rotation.interleaved_out = info.pairing_out == VKROPE_INTERLEAVED;
    rotation.inverse = operation.call.direction == VKROPE_INVERSE;
    rotation.rotary_offset = info.tensor[which].rotary_offset;
    for (const vkrope_window& window : info.windows)
        if (window.rotary_dim > 0)
            rotation.windows.push_back({window.offset, window.rotary_dim / 2});
    const std::uint32_t pairs = info.rotary_dim / 2;
    for (std::uint32_t pair = 0; info.sections.axes != 0 && pair < pairs; ++pair)
        rotation.further.axes.push_back(axis_of(info.sections, pair));
    rotation.head_groups = head_groups_of(operation);
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {  // the angles are arbitrary and not compared
        rotation.inv_freq.resize(rotation.head_groups * pairs);
        rotation.cos_sin = [](std::int64_t, std::size_t) { return oracle::CosSin{}; };
        return rotation;
    }
    rotation.inv_freq = operation.inv_freq;
    if (info.sections.order == VKROPE_SECTIONS_SUM) {
        rotation.further.summed = operation.inv_freq;
        rotation.inv_freq.resize(rotation.head_groups * pairs);  // only the size is used
    }
    if (info.phase != 0) rotation.phase = operation.phase;
    rotation.float32_angles = operation.precision == VKROPE_ANGLE_PRECISION_FLOAT32;
    return rotation;
}

// Returns whether neither the type nor an op changes the rows of a tensor that do not rotate.
bool keeps_rows(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& of = operation.info.tensor[which];
    oracle::Ops steps = steps_of(operation, which);
    if (steps.hadamard == steps.hadamard_of_input) steps.hadamard = steps.hadamard_of_input = 0;
    const bool makes = of.ops.store_scale >= VKROPE_STORE_SCALE_MADE;
    return of.in == of.out && !oracle::has_steps(steps) && makes == (of.ops.scales_in != 0) &&
           (of.ops.store_scale == VKROPE_STORE_SCALE_NONE || makes);
}

// Returns whether the rows of a tensor are in place, and no call of the kernel changes them.
bool stays(const Operation& operation, vkrope_tensor_index which) {
    const bool turns = which != VKROPE_V && operation.info.rotary_dim != 0;
    return !turns && operation.call.paged_cache.source_mapping.range == 0 &&
           operation.call.in[which].where.offset == operation.call.out[which].where.offset &&
           keeps_rows(operation, which) && !has_second(operation, which);
}

// Returns the tokens of which a slot of a tensor is outside its cache, and none is -1.
std::vector<bool> tokens_outside(const Operation& operation, vkrope_tensor_index which) {
    std::vector<bool> outside(tokens_of(operation)), skipped = outside;
    for (const bool output : {false, true}) {
        const std::optional<oracle::Cache> cache = rows_of(operation, which, output).cache;
        for (std::size_t token = 0; cache && token < outside.size(); ++token) {
            const std::int64_t slot = cache->slot_mapping[token];
            skipped[token] = skipped[token] || slot == -1;
            outside[token] = outside[token] || !oracle::has_row(*cache, slot);
        }
    }
    for (std::size_t token = 0; token < outside.size(); ++token)
        outside[token] = outside[token] && !skipped[token];
    return outside;
}

}  // namespace

std::size_t stored_bytes(vkrope_element element, std::size_t channels) {
    if (!is_quantised(element)) return channels * oracle::bytes_of(type_of(element));
    const oracle::Store store = store_of(element);
    return channels / oracle::block_channels(store) * oracle::block_bytes(store);
}

std::size_t bound_weights(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    const vkrope_norm& norm = info.ops.norm;
    const std::size_t channels = norm.channels == 0 ? info.head_dim : norm.channels;
    return norm.weight == VKROPE_PARAMETER_CHANNEL ? channels
                                                   : operation.call.in[which].heads * channels;
}

std::vector<float> bound_weight(const Operation& operation, vkrope_tensor_index which) {
    const oracle::Type type = type_of(operation.info.tensor[which].ops.norm.weight_type);
    const std::byte* const first = &operation.memory[operation.call.norm_weight[which].offset];
    std::vector<float> weight(bound_weights(operation, which));
    for (std::size_t i = 0; i < weight.size(); ++i)
        weight[i] = oracle::widen(type, oracle::load(first, oracle::bytes_of(type), i));
    return weight;
}

bool has_steps(const Operation& operation, vkrope_tensor_index which) {
    return oracle::has_steps(steps_of(operation, which));
}

std::vector<std::int64_t> positions_of(const Operation& operation) {
    const vkrope_positions& where = operation.call.positions;
    const bool implicit = operation.info.positions == VKROPE_POSITIONS_IMPLICIT;
    const std::uint64_t batch = batch_of(operation), tokens = operation.call.tokens;
    const std::uint64_t axes = std::max(operation.info.sections.axes, 1u);
    const std::uint64_t of_token = stride_of(where.token_stride, 1),
                        of_sequence = stride_of(where.batch_stride,
                                                implicit ? 0 : tokens * of_token),
                        all = of_sequence == 0 ? tokens * of_token : batch * of_sequence,
                        of_axis = stride_of(where.axis_stride, all);
    std::vector<std::int64_t> positions;
    for (std::uint64_t axis = 0; axis < axes; ++axis) {
        for (std::uint64_t row = 0; row < batch; ++row) {
            for (std::uint64_t token = 0; token < tokens; ++token) {
                positions.push_back(
                    implicit ? where.first + std::int64_t(row * of_sequence + token)
                             : integer_at(operation, where.ids, where.int64 != 0,
                                          axis * of_axis + row * of_sequence + token * of_token));
            }
        }
    }
    return positions;
}

std::uint32_t axis_of(const vkrope_sections& sections, std::uint32_t pair) {
    std::uint32_t sum = 0;
    for (const std::uint32_t pairs : sections.pairs) sum += pairs;
    if (sections.axes == 0 || sections.order == VKROPE_SECTIONS_SUM) return 0;
    std::uint32_t m = pair % sum;
    if (sections.order == VKROPE_SECTIONS_INTERLEAVED)
        return m < 3 * sections.pairs[m % 3] ? m % 3 : sections.leftover_axis;
    std::uint32_t axis = 0;
    for (; m >= sections.pairs[axis]; ++axis) m -= sections.pairs[axis];
    return axis;
}

double bound_of(const Operation& operation) {
    const bool factor = operation.attention_factor != 1;
    const double of_source = operation.info.angles == VKROPE_ANGLES_FACTORED_TEXTURE ? 6
                             : operation.info.angles == VKROPE_ANGLES_COMPUTED       ? 4.5
                             : factor                                                ? 3
                                                                                     : 2.5;
    return of_source + (factor && operation.precision == VKROPE_ANGLE_PRECISION_FLOAT32 ? 1.5 : 0) +
           (factor && operation.call.gain != VKROPE_GAIN_APPLY ? 2 : 0);
}

oracle::Tensor rows_of(const Operation& operation, vkrope_tensor_index which, bool output) {
    const Side side = {operation, output};
    const vkrope_tensor_info& info = operation.info.tensor[which];
    const vkrope_tensor& tensor = side.tensor(which);
    oracle::Tensor rows;
    rows.type = is_quantised(side.element(which)) ? oracle::Type::f32
                                                  : type_of(side.element(which));
    rows.batch = batch_of(operation);
    rows.tokens = operation.call.tokens;
    rows.heads = tensor.heads;
    rows.head_dim = info.head_dim;
    rows.head_stride = stride_of(tensor.head_stride, info.head_dim);
    rows.heads_per_group = tensor.heads_per_group;
    rows.group_stride = stride_of(tensor.group_stride, tensor.heads_per_group * rows.head_stride);
    if (output && Side{operation, false}.has_slots(which)) {
        const oracle::Tensor from = rows_of(operation, which, false);
        for (const std::int64_t slot : from.cache->slot_mapping)
            rows.left_out.push_back(!oracle::has_row(*from.cache, slot));
    } else {
        rows.left_out = tokens_beyond(operation);
    }
    if (side.has_slots(which)) {
        rows.cache = cache_of(side, which, rows);
        rows.cache->pages = pages_of(side, which, rows, *rows.cache);
        const vkrope_tensor_index other = which == VKROPE_K ? VKROPE_V : VKROPE_K;
        if (has(operation, other) && !has_slots_of_v(operation)) {
            oracle::Tensor of_other = rows;
            of_other.heads = side.tensor(other).heads;
            of_other.head_dim = operation.info.tensor[other].head_dim;
            of_other.head_stride = stride_of(side.tensor(other).head_stride, of_other.head_dim);
            rows.cache->pages = std::min(
                rows.cache->pages,
                pages_of(side, other, of_other, cache_of(side, other, of_other)));
        }
        return rows;
    }
    rows.token_stride = stride_of(tensor.token_stride, rows.heads * rows.head_dim);
    rows.batch_stride = stride_of(tensor.batch_stride, rows.tokens * rows.token_stride);
    return rows;
}

oracle::Definition definition_of(const Operation& operation, vkrope_tensor_index which,
                                 bool flushes) {
    oracle::Definition definition;
    definition.in = rows_of(operation, which, false);
    definition.out = rows_of(operation, which, true);
    std::vector<bool>& left_out = definition.out.left_out;
    const std::vector<bool> kept = kept_tokens(operation, which);
    left_out.resize(std::max(left_out.size(), kept.size()));
    for (std::size_t token = 0; token < kept.size(); ++token)
        left_out[token] = left_out[token] || kept[token];
    if (is_quantised(operation.info.tensor[which].in))
        definition.read = quantised_input(operation, which, definition.in);
    definition.operation = rotation_of(operation, which, flushes);
    definition.ops = steps_of(operation, which);
    if (is_quantised(operation.info.tensor[which].out))
        definition.store = quantised_store(operation, which);
    definition.bound_u = bound_of(operation);
    definition.any_angles = operation.info.angles == VKROPE_ANGLES_COS_SIN_CACHE &&
                            which != VKROPE_V;
    return definition;
}

bool is_read_from_cache(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    return which != VKROPE_Q && has(operation, which) &&
           (operation.info.gather_kv != 0 || is_quantised(info.in) ||
            info.ops.hadamard_of_input != 0);
}

std::vector<bool> kept_tokens(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_kernel_info& info = operation.info;
    if (!is_read_from_cache(operation, which) || !keeps_rows(operation, which)) return {};
    std::vector<bool> kept(tokens_of(operation), true);
    if (which == VKROPE_V || info.rotary_dim == 0) return kept;
    const bool rearranges = info.pairing_out != VKROPE_PAIRING_NONE &&
                            info.pairing_out != info.pairing;
    if (rearranges || info.phase != 0 || info.angles == VKROPE_ANGLES_COS_SIN_CACHE) return {};
    const bool by_1 = operation.call.gain == VKROPE_GAIN_OMIT || operation.attention_factor == 1;
    const oracle::Operation rotation = rotation_of(operation, which, false);
    for (std::size_t token = 0; token < kept.size(); ++token) {
        bool still = rotation.positions[token] == 0;
        for (const std::vector<std::int64_t>& axis : rotation.further.positions)
            still = still && axis[token] == 0;
        kept[token] = !oracle::is_covered(rotation, token) || (still && by_1);
    }
    return kept;
}

bool has_second(const Operation& operation, vkrope_tensor_index which) {
    return has(operation, which) && operation.info.tensor[which].second_of != VKROPE_SECOND_NONE;
}

oracle::Tensor second_rows_of(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    oracle::Tensor rows = {.type = type_of(info.second),
                           .batch = batch_of(operation),
                           .tokens = operation.call.tokens,
                           .heads = operation.call.in[which].heads,
                           .head_dim = info.head_dim};
    rows.head_stride = rows.head_dim;
    rows.token_stride = rows.heads * rows.head_stride;
    rows.batch_stride = rows.tokens * rows.token_stride;
    rows.left_out = tokens_beyond(operation);
    return rows;
}

oracle::Definition second_definition_of(const Operation& operation, vkrope_tensor_index which,
                                        bool flushes) {
    oracle::Definition definition = definition_of(operation, which, flushes);
    definition.out = second_rows_of(operation, which);
    definition.store.reset();
    if (operation.info.tensor[which].second_of == VKROPE_SECOND_INPUT) {
        definition.ops = {};
        definition.any_angles = false;
        definition.operation = {.inv_freq = {},
                                .positions = definition.operation.positions,
                                .absolute_allowance = definition.operation.absolute_allowance};
    }
    return definition;
}

std::size_t byte_of(const Operation& operation, vkrope_tensor_index which, std::uint64_t first,
                    bool output) {
    const Side side = {operation, output};
    return side.tensor(which).where.offset + stored_bytes(side.element(which), first);
}

std::optional<std::uint64_t> scale_of(const Operation& operation, vkrope_tensor_index which,
                                      const oracle::Tensor& rows, std::uint64_t row) {
    const std::uint64_t groups = scales_of_row(operation, which), token = row / rows.heads;
    if (oracle::row_of(rows, {token / rows.tokens, token % rows.tokens, 0, 0}) == oracle::nowhere)
        return std::nullopt;
    if (!rows.cache) return row * groups;
    const oracle::Cache& cache = *rows.cache;
    const auto at = std::uint64_t(cache.slot_mapping[token]);
    const std::uint64_t head = row % rows.heads;
    const bool by_page = operation.info.tensor[which].ops.scale_layout ==
                         VKROPE_SCALE_LAYOUT_PAGES_HEADS;
    return groups * (by_page ? (at / cache.page_size * rows.heads + head) * cache.page_size +
                                   at % cache.page_size
                             : at * rows.heads + head);
}

std::uint64_t scales_of_row(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    return oracle::QuantisedStore{.group = info.ops.store_scale_group}.groups(info.head_dim);
}

std::size_t scale_bytes(const Operation& operation, vkrope_tensor_index which) {
    return operation.info.tensor[which].ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 ? 1 : 4;
}

float scale_at(const Operation& operation, vkrope_tensor_index which, const Bytes& memory,
               std::uint64_t first, std::uint64_t index, float last) {
    float scale = 0;
    if (scale_bytes(operation, which) == 4) {
        std::memcpy(&scale, &memory[first + 4 * index], sizeof scale);
        return scale;
    }
    const auto exponent = int(memory[first + index]);
    return exponent == 255 ? last : std::ldexp(1.f, exponent - 127);
}

std::uint32_t tokens_out_of_range(const Operation& operation) {
    const oracle::Operation rotation = rotation_of(operation, VKROPE_V, false);
    const vkrope_tensor_index cached = has(operation, VKROPE_K) ? VKROPE_K : VKROPE_V;
    bool all_stay = has(operation, VKROPE_K) || has(operation, VKROPE_V);
    for (const vkrope_tensor_index which : {VKROPE_Q, VKROPE_K, VKROPE_V})
        all_stay = all_stay && (!has(operation, which) || stays(operation, which));
    if (all_stay) return 0;
    const bool apart = has_slots_of_v(operation);
    std::vector<bool> outside(tokens_of(operation)), of_v = outside;
    if (has(operation, cached) && !(apart && stays(operation, VKROPE_K)))
        outside = tokens_outside(operation, cached);
    if (apart && !stays(operation, VKROPE_V)) of_v = tokens_outside(operation, VKROPE_V);
    const std::vector<bool> beyond = tokens_beyond(operation);
    std::uint32_t count = token_count_of(operation) > operation.call.tokens ? 1 : 0;
    for (std::size_t token = 0; token < outside.size(); ++token) {
        if (!beyond.empty() && beyond[token]) continue;
        const bool covered = oracle::is_covered(rotation, token);
        count += outside[token] || !covered ? 1 : 0;
        count += of_v[token] && covered ? 1 : 0;
    }
    return count;
}

}  // namespace vkrope::verify
