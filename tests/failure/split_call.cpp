// SPDX-License-Identifier: MIT
#include "split_call.hpp"

#include "kernel/geometry/finish.hpp"

namespace vkrope::test::split {

std::uint64_t or_packed(std::int64_t given, std::uint64_t packed) {
    return given == 0 ? packed : std::uint64_t(given);
}

namespace {

std::uint64_t head_elements(const Tensor& tensor, std::uint32_t head) {
    if (tensor.head_stride == broadcast) return 0;
    const std::uint64_t stride = or_packed(tensor.head_stride, D);
    if (tensor.heads_per_group == 0) return head * stride;
    return head / tensor.heads_per_group *
               or_packed(tensor.group_stride, tensor.heads_per_group * stride) +
           head % tensor.heads_per_group * stride;
}

}  // namespace

Byte place(const Tensor& tensor, std::uint32_t tokens, const Row& row) {
    const std::uint64_t token = or_packed(tensor.token_stride, std::uint64_t{tensor.heads} * D);
    const std::uint64_t elements = row.batch * or_packed(tensor.batch_stride, tokens * token) +
                                   row.token * token;
    return {tensor.where.buffer,
            tensor.where.offset + (elements + head_elements(tensor, row.head)) * 2};
}

namespace {

Byte place_in_cache(const Call& call, const Tensor& out, std::int64_t slot, std::uint32_t head) {
    const PagedCache& rows = call.paged_cache;
    const std::uint64_t line = or_packed(rows.row_stride, std::uint64_t{out.heads} * D);
    const std::uint64_t page = or_packed(rows.page_stride, rows.page_size * line);
    const std::uint64_t index = std::uint64_t(slot);
    const std::uint64_t elements = index / rows.page_size * page + index % rows.page_size * line;
    return {out.where.buffer, out.where.offset + (elements + head_elements(out, head)) * 2};
}

}  // namespace

const Tensor& input(const Call& call, Which which) {
    return which == Which::q ? call.in[Q] : which == Which::k ? call.in[K] : call.in[V];
}
const Tensor& output(const Call& call, Which which) {
    return which == Which::q ? call.out[Q] : which == Which::k ? call.out[K] : call.out[V];
}
const Finish& finish_of(const KernelInfo& info, Which which) {
    return which == Which::q   ? info.tensor[Q].ops
           : which == Which::k ? info.tensor[K].ops
                               : info.tensor[V].ops;
}
const VkDescriptorBufferInfo& factors(const Call& call, Which which) {
    return which == Which::q   ? call.scale_tokens[Q]
           : which == Which::k ? call.scale_tokens[K]
                               : call.scale_tokens[V];
}

std::map<Byte, Row> destinations(const Scenario& scenario, const KernelInfo& info) {
    const Call& call = scenario.call;
    std::map<Byte, Row> rows;
    for (const Which which : {Which::q, Which::k, Which::v}) {
        const Tensor& out = output(call, which);
        const bool in_place = out.where.buffer == input(call, which).where.buffer &&
                              out.where.offset == input(call, which).where.offset;
        if (which == Which::v && in_place && !has_finish(info.tensor[V].ops)) continue;
        for (Row row{.which = which}; row.batch < call.batch; ++row.batch) {
            for (row.token = 0; row.token < call.tokens; ++row.token) {
                for (row.head = 0; row.head < out.heads; ++row.head) {
                    Byte at = place(out, call.tokens, row);
                    if (which != Which::q && !scenario.slot_mapping.empty()) {
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

}  // namespace vkrope::test::split
