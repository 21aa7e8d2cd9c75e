// SPDX-License-Identifier: MIT
#include "split_layouts.hpp"

#include <algorithm>

namespace vkrope::test::split {

namespace {

Tensor strided(VkBuffer buffer, std::uint32_t heads, std::int64_t batch, std::int64_t token,
               std::int64_t head, VkDeviceSize offset = 0) {
    return {.where = {buffer, offset, KernelHost::buffer_bytes - offset},
            .heads = heads,
            .token_stride = token,
            .head_stride = head,
            .batch_stride = batch};
}

const AngleTableLayout& plan_for(const KernelInfo& info) {
    static const AngleTableLayout half = {.source = VKROPE_ANGLES_DIRECT_TEXTURE,
                                          .format = VK_FORMAT_R32G32B32A32_SFLOAT,
                                          .extent = {16, 4096},
                                          .bytes = 4096 * 16 * 16,
                                          .pairs = 32,
                                          .rows = 4096,
                                          .fold_log2 = 12,
                                          .row_texels = 16};
    return info.rotary_dim == 64 ? half : angle_plan();
}

}  // namespace

Scenario scenario(const KernelHost& host, Layout layout, ValueRows v, std::uint32_t batch,
                  std::uint32_t tokens, std::mt19937& random) {
    Scenario s;
    Call& c = s.call;
    c.batch = batch;
    c.tokens = tokens;
    c.angles = {.layout = &angle_plan(), .view = host.view};
    c.positions.first = 11;
    c.positions.batch_stride = random() % 2 ? 100 : broadcast;
    const std::int64_t B = batch, S = tokens;
    const auto bshd = [&](VkBuffer buffer, std::uint32_t heads) {
        return strided(buffer, heads, S * heads * D, heads * D, D);
    };
    const auto bhsd = [&](VkBuffer buffer, std::uint32_t heads) {
        return strided(buffer, heads, S * heads * D, D, S * D);
    };
    const auto sbhd = [&](VkBuffer buffer, std::uint32_t heads) {
        return strided(buffer, heads, heads * D, B * heads * D, D);
    };
    c.in[Q] = bshd(host.q, 4);
    c.out[Q] = bshd(host.q_out, 4);
    c.in[K] = bshd(host.k, 2);
    c.out[K] = bshd(host.k_out, 2);
    switch (layout) {
        case Layout::bshd: break;
        case Layout::bhsd:
            c.in[Q] = c.out[Q] = bhsd(host.q, 4), c.in[K] = bhsd(host.k, 2),
            c.out[K] = bhsd(host.k_out, 2);
            break;
        case Layout::sbhd:
            c.in[Q] = sbhd(host.q, 4), c.out[Q] = sbhd(host.q_out, 4),
            c.in[K] = c.out[K] = sbhd(host.k, 2);
            break;
        case Layout::bhsd_to_bshd: c.in[Q] = bhsd(host.q, 4), c.in[K] = bhsd(host.k, 2); break;
        case Layout::packed:
            c.in[Q] = c.out[Q] = strided(host.q, 4, S * 8 * D, 8 * D, D);
            c.in[K] = c.out[K] = strided(host.q, 2, S * 8 * D, 8 * D, D, 4 * row_bytes);
            break;
        case Layout::grouped:  // [S, 2 groups, 2 of Q, K, V]
            c.in[Q] = c.out[Q] = strided(host.q, 4, S * 8 * D, 8 * D, D);
            c.in[K] = c.out[K] = strided(host.q, 2, S * 8 * D, 8 * D, D, 2 * row_bytes);
            for (Tensor* q : {&c.in[Q], &c.out[Q]}) q->heads_per_group = 2, q->group_stride = 4 * D;
            for (Tensor* k : {&c.in[K], &c.out[K]}) k->heads_per_group = 1, k->group_stride = 4 * D;
            break;
        case Layout::uneven:  // groups of 4 to groups of 6: they share pairs of heads, at two
                              // distances
            c.in[Q] = strided(host.q, 12, S * 15 * D, 15 * D, D);
            c.in[Q].heads_per_group = 4, c.in[Q].group_stride = 5 * D;
            c.out[Q] = strided(host.q_out, 12, S * 14 * D, 14 * D, D);
            c.out[Q].heads_per_group = 6, c.out[Q].group_stride = 7 * D;
            break;
        case Layout::broadcast_k:
            c.in[K] = strided(host.k, 4, S * D, D, broadcast);
            c.out[K] = bshd(host.k_out, 4);
            break;
        case Layout::odd:  // rows that begin at odd elements, ids, a counter
            c.in[Q] = c.out[Q] = strided(host.q, 4, (S * 4 * (D + 1) + 3), 4 * (D + 1), D + 1, 6);
            c.in[K] = strided(host.k, 2, S * 2 * D + 5, 2 * D, D, 2);
            break;
        case Layout::paged:
        case Layout::paged_by_head:
        case Layout::paged_groups: {
            const std::uint32_t heads = layout == Layout::paged_groups ? 4 : 2;
            c.paged_cache = {.slot_mapping = {host.words, 68, 0},
                             .int64 = random() % 2 != 0,
                             .page_size = 1 + std::uint32_t(random() % 8)};
            const std::uint32_t page_bytes = c.paged_cache.page_size * heads * row_bytes;
            s.pages = std::uint32_t(KernelHost::buffer_bytes / page_bytes);
            c.out[K] = {.where = {host.k_out, 0, KernelHost::buffer_bytes}, .heads = heads};
            if (layout == Layout::paged_groups) {  // [S, 2 groups of 2 + 3, D] to a cache with the
                                                   // opposite order of groups
                c.in[K] = strided(host.k, 4, S * 10 * D, 10 * D, D);
                c.in[K].heads_per_group = c.out[K].heads_per_group = 2;
                c.in[K].group_stride = 5 * D;
                c.out[K].head_stride = 2 * D;
                c.out[K].group_stride = D;
            }
            if (layout == Layout::paged_by_head) {
                c.out[K].head_stride = c.paged_cache.page_size * D;
                c.paged_cache.row_stride = D;
                c.paged_cache.page_stride = 2 * c.paged_cache.page_size * D;
            }
            c.paged_cache.slot_mapping.range = std::uint64_t{batch} * tokens *
                                               (c.paged_cache.int64 ? 8 : 4);
            std::vector<std::int64_t> free(std::size_t{s.pages} * c.paged_cache.page_size);
            for (std::size_t i = 0; i < free.size(); ++i) free[i] = std::int64_t(i);
            std::shuffle(free.begin(), free.end(), random);
            for (std::uint32_t i = 0; i < batch * tokens; ++i) {
                const std::uint32_t kind = random() % 8;
                s.slot_mapping.push_back(kind == 0   ? -1
                                         : kind == 1 ? std::int64_t(free.size() + random() % 9)
                                         : kind == 2 ? -5
                                                     : free.at(i));
            }
            break;
        }
    }
    switch (v) {
        case ValueRows::absent: break;
        case ValueRows::like_k:
            c.in[V] = c.in[K];
            c.in[V].where.buffer = host.v;
            c.out[V] = c.out[K];
            c.out[V].where.buffer = host.v_out;
            break;
        case ValueRows::apart:  // fewer heads; if pages of one row have K's strides, rows with
                                // larger gaps
            if (layout == Layout::paged_by_head) {
                c.in[V] = strided(host.v, 2, S * 3 * D, 3 * D, D);
                c.out[V] = c.out[K];
                c.out[V].where.buffer = host.v_out;
                break;
            }
            c.in[V] = strided(host.v, 1, S * D, D, D);
            c.out[V] = c.paged_cache.slot_mapping.buffer
                           ? Tensor{.where = {host.v_out, 0, KernelHost::buffer_bytes}, .heads = 1}
                           : strided(host.v_out, 1, S * D, D, D);
            break;
        case ValueRows::in_place:
            c.in[V] = c.out[V] = strided(host.v, 2, S * 2 * D, 2 * D, D);
            break;
    }
    for (std::uint32_t i = 0; i < batch * tokens; ++i) s.outside_table.push_back(random() % 4 == 0);
    // Dispatches that count wait for each other: a counter in every call would hide everything
    // else.
    if (random() % 2) c.out_of_range = {host.words, KernelHost::buffer_bytes / 2 + 20, 4};
    return s;
}

KernelInfo info_for(Layout layout, ValueRows v, Steps steps) {
    KernelInfo info = kernel_info();
    if (v != ValueRows::absent) info.tensor[V] = info.tensor[K];
    if (layout == Layout::odd || layout == Layout::paged) info.positions = VKROPE_POSITIONS_IDS;
    if (layout == Layout::bhsd) {
        info.rotary_dim = 64;
        info.windows[0] = {16, 32};
        info.windows[1] = {64, 32};
    }
    info.scatter_kv = layout == Layout::paged || layout == Layout::paged_by_head ||
                      layout == Layout::paged_groups;
    if (steps == Steps::none) return info;
    const bool four = layout == Layout::broadcast_k || layout == Layout::paged_groups;
    const std::uint32_t k_heads = four ? 4 : 2;
    const bool own_heads = v == ValueRows::apart && layout != Layout::paged_by_head;
    return with_ops(
        info,
        full_ops(VKROPE_NORM_RMS,
                 steps == Steps::of_heads ? VKROPE_NORM_SPAN_HEAD : VKROPE_NORM_SPAN_TOKEN,
                 VKROPE_NORM_PLACE_BEFORE),
        layout == Layout::uneven ? 12 : 4, k_heads,
        own_heads                  ? 1
        : v == ValueRows::in_place ? 2
                                   : k_heads);
}

ValueRows any_v(Layout layout, std::mt19937& random) {
    const ValueRows v = ValueRows(random() % 4);
    const bool cache = layout == Layout::paged || layout == Layout::paged_by_head ||
                       layout == Layout::paged_groups;
    return v == ValueRows::in_place && cache ? ValueRows::absent : v;  // a cache is another buffer
}

Scenario scenario_for(const KernelHost& host, const KernelInfo& info, Layout layout, ValueRows v,
                      std::uint32_t batch, std::uint32_t tokens, std::mt19937& random) {
    Scenario s = scenario(host, layout, v, batch, tokens, random);
    s.call.angles.layout = &plan_for(info);
    if (info.positions == VKROPE_POSITIONS_IDS) {
        s.call.positions = {.ids = {host.words, 131072 + 36, 100000},
                            .batch_stride = random() % 2 ? tokens + 3 : broadcast};
    }
    s.call = with_ops(host, info, s.call);
    return s;
}

bool heads_may_be_cut(Layout layout) {
    return layout == Layout::bhsd || layout == Layout::bhsd_to_bshd ||
           layout == Layout::paged_by_head;
}
bool has_groups(Layout layout) {
    return layout == Layout::grouped || layout == Layout::uneven || layout == Layout::paged_groups;
}

}  // namespace vkrope::test::split
