// SPDX-License-Identifier: MIT
#include "verify/oracle/rows.hpp"

#include <algorithm>
#include <stdexcept>

namespace vkrope::oracle {

void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

bool has_row(const Cache& cache, std::int64_t slot) {
    return slot >= 0 && std::uint64_t(slot) < cache.pages * cache.page_size;
}

std::uint64_t row_of(const Tensor& tensor, const Place& place) {
    const std::uint64_t group = tensor.heads_per_group == 0 ? tensor.heads : tensor.heads_per_group;
    const std::uint64_t head = place.head / group * tensor.group_stride +
                               place.head % group * tensor.head_stride;
    const std::uint64_t token = place.batch * tensor.tokens + place.token;
    if (!tensor.left_out.empty() && tensor.left_out[token]) return nowhere;
    if (!tensor.cache)
        return place.batch * tensor.batch_stride + place.token * tensor.token_stride + head;
    const Cache& cache = *tensor.cache;
    const std::int64_t slot = cache.slot_mapping[token];
    if (!has_row(cache, slot)) return nowhere;
    return std::uint64_t(slot) / cache.page_size * cache.page_stride +
           std::uint64_t(slot) % cache.page_size * cache.row_stride + head;
}

const ElementTable& table_of(Type type) {
    if (type == Type::f32) {
        static const ElementTable f32(Type::f32);
        return f32;
    }
    if (type == Type::f16) {
        static const ElementTable f16(Type::f16);
        return f16;
    }
    static const ElementTable bf16(Type::bf16);
    return bf16;
}

void each_row(const Tensor& tensor,
              const std::function<void(std::uint64_t row, std::uint64_t first)>& visit) {
    for (std::uint64_t row = 0; row < tensor.batch * tensor.tokens * tensor.heads; ++row) {
        const std::uint64_t token = row / tensor.heads;
        const std::uint64_t first = row_of(
            tensor, {token / tensor.tokens, token % tensor.tokens, row % tensor.heads, 0});
        if (first != nowhere) visit(row, first);
    }
}

void check_tensors(const Tensor& in, const Tensor& out) {
    require(in.batch == out.batch && in.tokens == out.tokens && in.heads == out.heads &&
                in.head_dim == out.head_dim,
            "oracle: input and output must have one shape");
    if (!out.cache) return;
    std::vector<std::int64_t> slots = out.cache->slot_mapping;
    require(slots.size() == out.batch * out.tokens,
            "oracle: slots must have batch * tokens elements");
    slots.erase(std::remove_if(slots.begin(), slots.end(),
                               [&](std::int64_t slot) { return !has_row(*out.cache, slot); }),
                slots.end());
    std::sort(slots.begin(), slots.end());
    require(std::adjacent_find(slots.begin(), slots.end()) == slots.end(),
            "oracle: no two tokens may name one row");
}

}  // namespace vkrope::oracle
