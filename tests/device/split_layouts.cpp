// SPDX-License-Identifier: MIT
#include "split_layouts.hpp"

#include <algorithm>

namespace vkrope::test {

namespace {

Tensor rows(VkDescriptorBufferInfo where, std::uint32_t heads, std::int64_t batch = 0,
            std::int64_t token = 0, std::int64_t head = 0, VkDeviceSize offset = 0) {
    return {.where = {where.buffer, offset, where.range - offset},
            .heads = heads,
            .token_stride = token,
            .head_stride = head,
            .batch_stride = batch};
}

}  // namespace

std::vector<Scenario> scenarios(Device& on) {
    std::vector<Scenario> all;
    constexpr std::uint32_t B = 2, S = 240, D = 64;
    const auto add = [&](const char* name, Element in, Element out,
                         AngleSource angles = VKROPE_ANGLES_FACTORED_TEXTURE) -> Scenario& {
        Scenario& s = all.emplace_back();
        s.name = name;
        s.info = {.pairing = VKROPE_HALF_SPLIT,
                  .rotary_dim = D,
                  .tensor = {{in, out, D, 0}, {in, out, D, 0}},
                  .angles = angles};
        s.call = {.batch = B, .tokens = S, .positions = {.batch_stride = broadcast}};
        return s;
    };
    const auto complete = [&](Scenario& s, std::uint64_t positions) {
        RopeParams r = rotation(s.info.pairing, s.info.tensor[Q].head_dim, s.info.rotary_dim);
        s.table = must(AngleTable::make(on, r, s.info.angles, positions));
        if (s.info.angles == VKROPE_ANGLES_DIRECT_BUFFER) REQUIRE(s.table.layout().bytes < 65536);
    };
    const auto count_outside = [&](Scenario& s) {
        s.call.out_of_range = s.hold(on, std::vector<std::int32_t>{100});
    };
    const auto ids = [&](Scenario& s, std::uint32_t most) {
        std::vector<std::int32_t> positions(B * S);
        for (std::uint32_t i = 0; i < positions.size(); ++i)
            positions[i] = std::int32_t(i * 7 % most) - 20;
        s.info.positions = VKROPE_POSITIONS_IDS;
        s.call.positions = {.ids = s.hold(on, positions), .batch_stride = S};
    };
    {
        Scenario& s = add(
            "[batch, tokens, heads, D] f32, out of place; some positions are outside the table",
            VKROPE_F32, VKROPE_F32);
        for (Tensor* t : {&s.call.in[Q], &s.call.out[Q]})
            *t = rows(s.elements(on, VKROPE_F32, B * S * 4 * D), 4);
        for (Tensor* t : {&s.call.in[K], &s.call.out[K]})
            *t = rows(s.elements(on, VKROPE_F32, B * S * 2 * D), 2);
        count_outside(s);
        complete(s, 200);
    }
    {
        Scenario& s = add("[batch, heads, tokens, D] f16, in place; ids; angles from a buffer",
                          VKROPE_F16, VKROPE_F16, VKROPE_ANGLES_DIRECT_BUFFER);
        s.call.in[Q] = s.call.out[Q] = rows(s.elements(on, VKROPE_F16, B * 6 * S * D), 6, 6 * S * D,
                                            D, S * D);
        s.call.in[K] = s.call.out[K] = rows(s.elements(on, VKROPE_F16, B * 3 * S * D), 3, 3 * S * D,
                                            D, S * D);
        ids(s, 250);
        count_outside(s);
        complete(s, 200);
    }
    {
        Scenario& s = add("[batch, heads, tokens, D] f16 to [batch, tokens, heads, D] f32",
                          VKROPE_F16, VKROPE_F32);
        s.call.in[Q] = rows(s.elements(on, VKROPE_F16, B * 4 * S * D), 4, 4 * S * D, D, S * D);
        s.call.out[Q] = rows(s.elements(on, VKROPE_F32, B * 4 * S * D), 4);
        complete(s, S);
    }
    {
        Scenario& s = add("packed QKV [batch, tokens, 8, D] bf16, in place", VKROPE_BF16,
                          VKROPE_BF16);
        const auto packed = s.elements(on, VKROPE_BF16, B * S * 8 * D);
        s.call.in[Q] = s.call.out[Q] = rows(packed, 4, S * 8 * D, 8 * D, D);
        s.call.in[K] = s.call.out[K] = rows(packed, 2, S * 8 * D, 8 * D, D, 4 * D * 2);
        complete(s, S);
    }
    {
        Scenario& s = add("grouped QKV [batch, tokens, 3 groups of 2 + 2, D] f16, in place",
                          VKROPE_F16, VKROPE_F16);
        const auto packed = s.elements(on, VKROPE_F16, B * S * 12 * D);
        s.call.in[Q] = rows(packed, 6, S * 12 * D, 12 * D, D);
        s.call.in[K] = rows(packed, 3, S * 12 * D, 12 * D, D, 2 * D * 2);
        s.call.in[Q].heads_per_group = 2, s.call.in[K].heads_per_group = 1;
        s.call.in[Q].group_stride = s.call.in[K].group_stride = 4 * D;
        s.call.out[Q] = s.call.in[Q];
        s.call.out[K] = s.call.in[K];
        s.dispatches = B;  // z counts the groups
        complete(s, S);
    }
    {
        Scenario& s = add("K into pages of 8 rows f16; some slots are -1, some outside the cache",
                          VKROPE_F16, VKROPE_F16);
        s.info.scatter_kv = true;
        constexpr std::uint32_t slots = 1024;
        s.call.in[Q] = s.call.out[Q] = rows(s.elements(on, VKROPE_F16, B * S * 4 * D), 4);
        s.call.in[K] = rows(s.elements(on, VKROPE_F16, B * S * 2 * D), 2);
        s.call.out[K] = rows(s.elements(on, VKROPE_F16, slots * 2 * D), 2);
        std::vector<std::int32_t> where(B * S);
        for (std::uint32_t i = 0; i < where.size(); ++i)
            where[i] = i % 11 == 0 ? -1 : std::int32_t(i * 331 % (slots + 40));
        std::sort(where.begin(),
                  where.begin() + S);  // one sequence in order, one shuffled
        s.call.paged_cache = {.slot_mapping = s.hold(on, where), .page_size = 8};
        count_outside(s);
        complete(s, 200);
    }
    {
        Scenario& s = add("f16 rows of 20 channels that begin at any half word, in place",
                          VKROPE_F16, VKROPE_F16);
        constexpr std::uint32_t odd = 20, token = 5 * odd + 7;
        s.info.rotary_dim = 12;
        s.info.tensor[Q] = {VKROPE_F16, VKROPE_F16, odd, 3};
        s.info.tensor[K] = {};
        s.call.tokens = 600;
        s.call.in[Q] = s.call.out[Q] = rows(s.elements(on, VKROPE_F16, B * 600 * token), 5,
                                            600 * token, token, odd + 1, 2);
        s.call.in[Q].where.range = s.call.out[Q].where.range = (B * 600 * token - 3) * 2;
        s.call.in[Q].buffer_size = s.call.out[Q].buffer_size = B * 600 * token * 2;
        complete(s, 600);
    }
    {
        Scenario& s = add("interleaved, two windows, [tokens, batch 9, heads, D] f16; z is cut",
                          VKROPE_F16, VKROPE_F16);
        s.info.pairing = VKROPE_INTERLEAVED;
        s.info.rotary_dim = 32;
        s.info.windows[0] = {8, 16};
        s.info.windows[1] = {32, 16};
        s.call.batch = 9;
        s.call.tokens = 60;
        for (Tensor* t : {&s.call.in[Q], &s.call.out[Q]})
            *t = rows(s.elements(on, VKROPE_F16, 9 * 60 * 4 * D), 4, 4 * D, 9 * 4 * D, D);
        s.call.in[K] = s.call.out[K] = rows(s.elements(on, VKROPE_F16, 9 * 60 * 2 * D), 2, 2 * D,
                                            9 * 2 * D, D);
        complete(s, 60);
    }
    // Each tensor with a norm, parameters of each head and factors of tokens, none of which begin
    // where their buffer does.
    const auto steps = [&](Scenario& s, const Norm& norm) {
        const Ops each = {
            .bias = VKROPE_PARAMETER_HEAD_CHANNEL, .norm = norm, .clip = 2, .scale_tokens = true};
        const struct {
            const Tensor& tensor;
            Ops& taken;
            std::uint32_t& heads;
            VkDescriptorBufferInfo& factors;
        } tensors[] = {
            {s.call.in[Q], s.info.tensor[Q].ops, s.info.tensor[Q].heads, s.call.scale_tokens[Q]},
            {s.call.in[K], s.info.tensor[K].ops, s.info.tensor[K].heads, s.call.scale_tokens[K]},
            {s.call.in[V], s.info.tensor[V].ops, s.info.tensor[V].heads, s.call.scale_tokens[V]}};
        const std::uint32_t rows_of_call = s.call.batch * s.call.tokens;
        for (const auto& [tensor, taken, heads, factors] : tensors) {
            if (tensor.heads == 0) continue;
            taken = each;
            heads = tensor.heads;
            const auto words = s.elements(on, VKROPE_F32, 3 + rows_of_call);
            factors = {words.buffer, 12, std::uint64_t{rows_of_call} * 4};
        }
        const std::size_t bytes = must(plan_parameters(s.info)).bytes;
        const auto words = s.elements(on, VKROPE_F32, 4 + bytes / 4);
        s.call.parameters = {words.buffer, 16, bytes};
    };
    const Norm of_head = {
        .kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_HEAD_CHANNEL};
    const Norm of_token = {.kind = VKROPE_NORM_LAYER,
                           .span = VKROPE_NORM_SPAN_TOKEN,
                           .place = VKROPE_NORM_PLACE_AFTER,
                           .eps = 1e-5f,
                           .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
                           .bias = VKROPE_PARAMETER_CHANNEL};
    {
        Scenario& s = add("[batch, heads, tokens, D] f16 in place, norms of heads; heads are cut",
                          VKROPE_F16, VKROPE_F16);
        s.call.in[Q] = s.call.out[Q] = rows(s.elements(on, VKROPE_F16, B * 6 * S * D), 6, 6 * S * D,
                                            D, S * D);
        s.call.in[K] = s.call.out[K] = rows(s.elements(on, VKROPE_F16, B * 3 * S * D), 3, 3 * S * D,
                                            D, S * D);
        steps(s, of_head);
        complete(s, S);
    }
    {
        Scenario& s = add(
            "packed QKV [batch, tokens, 8, D] bf16 in place, norms over a token, of V too",
            VKROPE_BF16, VKROPE_BF16);
        s.info.tensor[V] = s.info.tensor[K];
        const auto packed = s.elements(on, VKROPE_BF16, B * S * 8 * D);
        s.call.in[Q] = s.call.out[Q] = rows(packed, 4, S * 8 * D, 8 * D, D);
        s.call.in[K] = s.call.out[K] = rows(packed, 2, S * 8 * D, 8 * D, D, 4 * D * 2);
        s.call.in[V] = s.call.out[V] = rows(packed, 2, S * 8 * D, 8 * D, D, 6 * D * 2);
        steps(s, of_token);
        complete(s, S);
    }
    {
        Scenario& s = add("grouped QKV [batch, tokens, 3 groups of 2 + 2, D] f32, norms of heads",
                          VKROPE_F32, VKROPE_F32);
        const auto packed = s.elements(on, VKROPE_F32, B * S * 12 * D);
        s.call.in[Q] = rows(packed, 6, S * 12 * D, 12 * D, D);
        s.call.in[K] = rows(packed, 3, S * 12 * D, 12 * D, D, 2 * D * 4);
        s.call.in[Q].heads_per_group = 2, s.call.in[K].heads_per_group = 1;
        s.call.in[Q].group_stride = s.call.in[K].group_stride = 4 * D;
        s.call.out[Q] = s.call.in[Q];
        s.call.out[K] = s.call.in[K];
        s.dispatches = B;  // z counts the groups
        steps(s, of_head);
        complete(s, S);
    }
    {
        Scenario& s = add("K and V into pages of 8 rows f16, norms over a token; pages are cut",
                          VKROPE_F16, VKROPE_F16);
        s.info.tensor[V] = s.info.tensor[K];
        s.info.scatter_kv = true;
        constexpr std::uint32_t slots = 1024;
        s.call.in[Q] = s.call.out[Q] = rows(s.elements(on, VKROPE_F16, B * S * 4 * D), 4);
        s.call.in[K] = rows(s.elements(on, VKROPE_F16, B * S * 2 * D), 2);
        s.call.out[K] = rows(s.elements(on, VKROPE_F16, slots * 2 * D), 2);
        s.call.in[V] = rows(s.elements(on, VKROPE_F16, B * S * 2 * D), 2);
        s.call.out[V] = rows(s.elements(on, VKROPE_F16, slots * 2 * D), 2);
        std::vector<std::int32_t> where(B * S);
        for (std::uint32_t i = 0; i < where.size(); ++i)
            where[i] = i % 11 == 0 ? -1 : std::int32_t(i * 331 % (slots + 40));
        s.call.paged_cache = {.slot_mapping = s.hold(on, where), .page_size = 8};
        count_outside(s);
        steps(s, of_token);
        complete(s, 200);
    }
    {
        Scenario& s = add("[tokens, batch 9, heads, D] f16 to f32, norms over a token; z is cut",
                          VKROPE_F16, VKROPE_F32);
        s.call.batch = 9;
        s.call.tokens = 60;
        s.info.tensor[K] = {};
        s.call.in[Q] = rows(s.elements(on, VKROPE_F16, 9 * 60 * 4 * D), 4, 4 * D, 9 * 4 * D, D);
        s.call.out[Q] = rows(s.elements(on, VKROPE_F32, 9 * 60 * 4 * D), 4, 4 * D, 9 * 4 * D, D);
        steps(s, of_token);
        complete(s, 60);
    }
    {
        Scenario& s = add("one row of K for 6 heads (broadcast), f16", VKROPE_F16, VKROPE_F16);
        s.call.in[K] = rows(s.elements(on, VKROPE_F16, B * S * D), 6, S * D, D, broadcast);
        s.call.out[K] = rows(s.elements(on, VKROPE_F16, B * S * 6 * D), 6);
        complete(s, S);
    }
    return all;
}

}  // namespace vkrope::test
