// SPDX-License-Identifier: MIT
#include "split_model.hpp"

#include <algorithm>

#include "kernel/geometry/ops.hpp"

namespace vkrope::test::split {

namespace {

std::uint64_t or_packed(std::int64_t given, std::uint64_t packed) {
    return given == 0 ? packed : std::uint64_t(given);
}

std::uint64_t head_elements(const Tensor& tensor, std::uint32_t head) {
    if (tensor.head_stride == broadcast) return 0;
    const std::uint64_t stride = or_packed(tensor.head_stride, D);
    if (tensor.heads_per_group == 0) return head * stride;
    return head / tensor.heads_per_group *
               or_packed(tensor.group_stride, tensor.heads_per_group * stride) +
           head % tensor.heads_per_group * stride;
}

/// Where a row of a tensor is, unless a cache has it.
Byte place(const Tensor& tensor, std::uint32_t tokens, const Row& row) {
    const std::uint64_t token = or_packed(tensor.token_stride, std::uint64_t{tensor.heads} * D);
    const std::uint64_t elements = row.batch * or_packed(tensor.batch_stride, tokens * token) +
                                   row.token * token;
    return {tensor.where.buffer,
            tensor.where.offset + (elements + head_elements(tensor, row.head)) * 2};
}

Byte place_in_cache(const Call& call, const Tensor& out, std::int64_t slot, std::uint32_t head) {
    const PagedCache& rows = call.paged_cache;
    const std::uint64_t line = or_packed(rows.row_stride, std::uint64_t{out.heads} * D);
    const std::uint64_t page = or_packed(rows.page_stride, rows.page_size * line);
    const std::uint64_t index = std::uint64_t(slot);
    const std::uint64_t elements = index / rows.page_size * page + index % rows.page_size * line;
    return {out.where.buffer, out.where.offset + (elements + head_elements(out, head)) * 2};
}

/// The destination of every row, except for those of an in-place V without ops, which stay
/// there; rows with slot -1 or a slot outside the cache have none.
std::map<Byte, Row> destinations(const Scenario& scenario, const KernelInfo& info) {
    const Call& call = scenario.call;
    std::map<Byte, Row> rows;
    for (const TensorIndex t : {Q, K, V}) {
        const Tensor& out = call.out[t];
        const bool in_place = out.where.buffer == call.in[t].where.buffer &&
                              out.where.offset == call.in[t].where.offset;
        if (t == V && in_place && !has_ops(info.tensor[V].ops)) continue;
        for (Row row{.tensor = t}; row.batch < call.batch; ++row.batch) {
            for (row.token = 0; row.token < call.tokens; ++row.token) {
                for (row.head = 0; row.head < out.heads; ++row.head) {
                    Byte at = place(out, call.tokens, row);
                    if (t != Q && !scenario.slot_mapping.empty()) {
                        const std::int64_t slot = scenario.slot_mapping[scenario.at(row)];
                        if (slot < 0 ||
                            slot >= std::int64_t{scenario.pages} * call.paged_cache.page_size)
                            continue;
                        at = place_in_cache(call, out, slot, row.head);
                    }
                    REQUIRE(rows.emplace(at, row).second);
                }
            }
        }
    }
    return rows;
}

}  // namespace

Model::Model(const Scenario& scenario, const Kernel& kernel)
    : scenario_(scenario), kernel_(kernel), rows_(destinations(scenario, kernel.info)),
      counts_(std::size_t{scenario.call.batch} * scenario.call.tokens) {}

void Model::run(const Command& dispatch, VkPipeline pipeline) {
    push_ = pushed(dispatch);
    dispatch_ = &dispatch;
    check_shape(pipeline);
    const std::uint32_t q_heads = push_.heads & 0xffff, k_heads = push_.heads >> 16;
    for (std::uint32_t z = 0; z < dispatch.groups[2]; ++z) {
        for (std::uint32_t index = 0; index < push_.tokens; ++index) {
            Row token;
            bool known = false, slot_outside = false, stored = true;
            std::uint32_t slot = 0;
            if (!scenario_.slot_mapping.empty() && k_heads != 0) {
                token = token_of_slot(z, index);
                known = true;
                const std::int64_t value = scenario_.slot_mapping[scenario_.at(token)];
                stored = value >= push_.slot_first &&
                         value < std::int64_t{push_.slot_first} + push_.slot_rows;
                slot_outside = value != -1 &&
                               (value < 0 ||
                                value >= std::int64_t{push_.slot_first} + push_.slot_rows);
                slot = std::uint32_t(value) - push_.slot_first;
            }
            for (std::uint32_t head = 0; head < q_heads; ++head) {
                const std::uint32_t from = at(offset(shader::offset_q_in), push_.q_in, z, index,
                                              head),
                                    to = at(offset(shader::offset_q_out), push_.q_out, z, index,
                                            head);
                visit(shader::binding_q_in, from, shader::binding_q_out, to, z, index, token,
                      known);
                check_ops(to, shader::binding_q_out, shader::binding_q_scales,
                          shader::offset_q_scales, z, index, head, q_heads);
            }
            for (std::uint32_t head = 0; head < (stored ? k_heads : 0); ++head) {
                const std::uint32_t from = at(offset(shader::offset_k_in), push_.k_in, z, index,
                                              head);
                const std::uint32_t start = offset(shader::offset_k_out);
                const std::uint32_t to = scenario_.slot_mapping.empty()
                                             ? at(start, push_.k_out, z, index, head)
                                             : at(start, push_.k_out, slot / push_.page_size,
                                                  slot % push_.page_size, head);
                visit(shader::binding_k_in, from, shader::binding_k_out, to, z, index, token,
                      known);
                check_ops(to, shader::binding_k_out, shader::binding_k_scales,
                          shader::offset_k_scales, z, index, head, k_heads);
                if ((push_.flags & shader::flag_v) == 0) continue;
                // V has K's strides.
                visit(shader::binding_v_in,
                      from - offset(shader::offset_k_in) + offset(shader::offset_v_in),
                      shader::binding_v_out, to - start + offset(shader::offset_v_out), z, index,
                      token, known);
                check_ops(to - start + offset(shader::offset_v_out), shader::binding_v_out,
                          shader::binding_v_scales, shader::offset_v_scales, z, index, head,
                          k_heads);
            }
            REQUIRE(known);
            count(token, z, slot_outside);
        }
    }
}

void Model::check_all() const {
    CHECK(visited_.size() == rows_.size());  // visit() refuses repeated rows
    for (std::uint32_t i = 0; i < counts_.size(); ++i) {
        const std::uint32_t b = i / scenario_.call.tokens, t = i % scenario_.call.tokens;
        bool outside = scenario_.outside_table[i];
        if (!scenario_.slot_mapping.empty()) {
            const std::int64_t slot = scenario_.slot_mapping[i];
            outside = outside || slot < -1 ||
                      slot >= std::int64_t{scenario_.pages} * scenario_.call.paged_cache.page_size;
        }
        CAPTURE(b);
        CAPTURE(t);
        REQUIRE(counts_[i] == (scenario_.call.out_of_range.buffer && outside));
    }
}

Byte Model::byte(std::uint32_t binding, std::uint64_t offset, std::uint64_t bytes) const {
    const VkDescriptorBufferInfo& where = bound(binding);
    REQUIRE(offset + bytes <= where.range);
    return {where.buffer, where.offset + offset};
}

void Model::check_shape(VkPipeline pipeline) const {
    const auto used = std::find_if(std::begin(kernel_.pipelines), std::end(kernel_.pipelines),
                                   [&](const Pipeline& one) { return one.handle == pipeline; });
    REQUIRE(used != std::end(kernel_.pipelines));
    const Work work{.z = dispatch_->groups[2],
                    .tokens = push_.tokens,
                    .q_heads = push_.heads & 0xffff,
                    .k_heads = push_.heads >> 16};
    const DispatchShape shape = shape_of(used->geometry, work);
    for (int i = 0; i < 3; ++i) CHECK(dispatch_->groups[i] == shape.groups[i]);
    for (int i = 0; i < 3; ++i)
        CHECK(dispatch_->groups[i] <= kernel_.dispatch_limits.workgroup_count[i]);
}

Row Model::token_of_slot(std::uint32_t z, std::uint32_t index) const {
    const PagedCache& rows = scenario_.call.paged_cache;
    const std::uint32_t words = rows.int64 ? 2 : 1;
    const std::uint64_t word = offset(shader::offset_slots) + std::uint64_t{z} * push_.slot_z +
                               index * words;
    const Byte at = byte(shader::binding_slot_mapping, word * 4, words * 4);
    REQUIRE(at.first == rows.slot_mapping.buffer);
    const std::uint64_t number = (at.second - rows.slot_mapping.offset) / (4 * words);
    const std::uint64_t step = or_packed(rows.batch_stride, scenario_.call.tokens);
    return {.batch = std::uint32_t(number / step), .token = std::uint32_t(number % step)};
}

void Model::visit(std::uint32_t in, std::uint64_t from, std::uint32_t out, std::uint64_t to,
                  std::uint32_t z, std::uint32_t index, Row& token, bool& known) {
    const Call& call = scenario_.call;
    const auto found = rows_.find(byte(out, to * 2, row_bytes));
    REQUIRE(found != rows_.end());
    const Row& row = found->second;
    REQUIRE(visited_.insert(found->first).second);
    if (known) {
        REQUIRE(row.batch == token.batch);
        REQUIRE(row.token == token.token);
    }
    token = {.batch = row.batch, .token = row.token};
    known = true;
    REQUIRE(byte(in, from * 2, row_bytes) == place(call.in[row.tensor], call.tokens, row));
    const std::int64_t batch_stride = call.positions.batch_stride == broadcast
                                          ? 0
                                          : call.positions.batch_stride;
    if (kernel_.info.positions == VKROPE_POSITIONS_IDS) {
        const std::uint64_t word = offset(shader::offset_ids) + std::uint64_t{z} * push_.index_z +
                                   index;
        const std::uint64_t expected = call.positions.ids.offset +
                                       (row.batch * std::uint64_t(batch_stride) + row.token) * 4;
        REQUIRE(byte(shader::binding_ids, word * 4, 4) ==
                Byte{call.positions.ids.buffer, expected});
    } else {
        REQUIRE(std::int32_t(push_.first_position + z * push_.index_z + index) ==
                call.positions.first + std::int32_t(row.token) +
                    std::int32_t(row.batch) * std::int32_t(batch_stride));
    }
}

void Model::check_ops(std::uint64_t to, std::uint32_t out, std::uint32_t scales,
                      std::uint32_t scales_offset, std::uint32_t z, std::uint32_t index,
                      std::uint32_t head, std::uint32_t heads) const {
    const Row& row = rows_.at(byte(out, to * 2, row_bytes));
    const Ops& ops = kernel_.info.tensor[row.tensor].ops;
    const Call& call = scenario_.call;
    const bool z_is_group = (push_.flags & shader::flag_z_is_group) != 0;
    if (ops.norm.span == VKROPE_NORM_SPAN_TOKEN) REQUIRE(heads == call.out[row.tensor].heads);
    if (ops.norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL) {
        REQUIRE(push_.flags / shader::flag_first_head + (z_is_group ? z * heads : 0) + head ==
                row.head);
    }
    if (ops.norm.weight != VKROPE_PARAMETER_NONE) {
        const Byte first = byte(shader::binding_parameters, offset(shader::offset_parameters) * 4,
                                call.parameters.range);
        REQUIRE(first == Byte{call.parameters.buffer, call.parameters.offset});
    }
    if (!ops.scale_tokens) return;
    const std::uint64_t word = offset(scales_offset) + index + (z_is_group ? 0 : z * push_.tokens);
    const VkDescriptorBufferInfo& where = call.scale_tokens[row.tensor];
    REQUIRE(byte(scales, word * 4, 4) == Byte{where.buffer, where.offset + scenario_.at(row) * 4});
}

void Model::count(const Row& token, std::uint32_t z, bool slot_outside) {
    const bool positions = (push_.flags & shader::flag_count_positions) != 0,
               slots = (push_.flags & shader::flag_count_slots) != 0;
    if ((push_.flags & shader::flag_z_is_group) != 0 && z != 0) return;
    const bool position_outside = scenario_.outside_table[scenario_.at(token)];
    if (!(positions && position_outside) &&
        !(slots && slot_outside && (positions || !position_outside)))
        return;
    const Byte counter = byte(shader::binding_out_of_range, offset(shader::offset_out_of_range) * 4,
                              4);
    REQUIRE(counter ==
            Byte{scenario_.call.out_of_range.buffer, scenario_.call.out_of_range.offset});
    ++counts_[scenario_.at(token)];
}

}  // namespace vkrope::test::split
