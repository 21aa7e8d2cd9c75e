// SPDX-License-Identifier: MIT
// Checks the verdict on an operation: the bytes of the definition are right, any other is wrong.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "base/meaning.hpp"
#include "verify/compare.hpp"
#include "verify/oracle/quantise.hpp"
#include "verify/oracle/rows.hpp"

using namespace vkrope;
using verify::Bytes, verify::Operation;

namespace {

constexpr std::uint32_t head_dim = 4, heads = 2, tokens = 3;
constexpr std::size_t in_at = 16, out_at = 160, slots_at = 320, scales_at = 352, counter_at = 480;

template <class Number>
void put(Bytes& memory, std::size_t at, const std::vector<Number>& numbers) {
    std::memcpy(&memory[at], numbers.data(), numbers.size() * sizeof(Number));
}

// Returns Q, or K in pages, of one sequence at the positions 0, 1 and one that is not covered.
Operation operation_of(vkrope_tensor_index which, vkrope_element out) {
    Operation operation;
    operation.info.pairing = VKROPE_HALF_SPLIT;
    operation.info.rotary_dim = head_dim;
    operation.info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    operation.info.tensor[which].out = out;
    operation.info.tensor[which].head_dim = head_dim;
    operation.inv_freq = {1, 0.25};
    operation.max_position = 2;
    operation.memory.resize(512, std::byte{0x5a});
    std::vector<float> rows;
    for (std::uint32_t i = 0; i < tokens * heads * head_dim; ++i)
        rows.push_back(1 + float(i % 7) - 0.3f * float(i));
    put(operation.memory, in_at, rows);
    put<std::uint32_t>(operation.memory, counter_at, {7});
    vkrope_call& call = operation.call;
    call.tokens = tokens;
    call.in[which] = {.where = {{}, in_at, rows.size() * sizeof(float)}, .heads = heads};
    call.out[which] = {.where = {{}, out_at, verify::stored_bytes(out, rows.size())},
                       .heads = heads};
    call.positions.batch_stride = VKROPE_BROADCAST;
    call.out_of_range = {{}, counter_at, 4};
    return operation;
}

// Returns the memory after the call, as the oracle computes it. Rows that nothing changes are not
// written.
Bytes done(const Operation& operation, vkrope_tensor_index which) {
    const oracle::Definition of = verify::definition_of(operation, which, false);
    Bytes after = operation.memory;
    oracle::apply_ops(
        of, &operation.memory[operation.call.in[which].where.offset],
        [&](std::uint64_t, std::uint64_t token, std::span<const oracle::Approximate> channels) {
            if (oracle::row_of(of.out, {0, token, 0, 0}) == oracle::nowhere) return;
            for (std::uint32_t head = 0; head < heads; ++head) {
                std::vector<float> row;
                for (const auto& channel : channels.subspan(head * head_dim, head_dim))
                    row.push_back(float(channel.value));
                verify::each_stored_row(operation, which, [&](std::uint64_t at, std::size_t byte) {
                    if (at != token * heads + head) return;
                    if (!of.store) {
                        put(after, byte, row);
                        return;
                    }
                    const std::size_t groups = of.store->groups(head_dim),
                                      group = head_dim / groups,
                                      bytes = verify::scale_bytes(operation, which);
                    for (std::size_t i = 0; i < groups; ++i) {
                        const oracle::MadeRow made = oracle::quantise_made(
                            of.store->type, std::span(row).subspan(i * group, group), 0,
                            of.store->power_of_two);
                        put(after, byte + i * made.codes.size(), made.codes);
                        const std::size_t place = *verify::scale_of(operation, which, of.out, at) +
                                                  i;
                        if (bytes == 4)
                            put<float>(after, scales_at + place * bytes, {made.scale});
                        else
                            put<std::uint8_t>(after, scales_at + place,
                                              {std::uint8_t(std::ilogb(made.scale) + 127)});
                    }
                });
            }
        });
    put<std::uint32_t>(after, counter_at, {7 + verify::tokens_out_of_range(operation)});
    return after;
}

// Returns the memory after a call that stores change(row) for each row.
template <class Change>
Bytes with_rows(const Operation& operation, const Change& change) {
    Bytes after = operation.memory;
    for (std::size_t row = 0; row < tokens * heads; ++row) {
        const std::size_t at = row * head_dim * sizeof(float);
        std::vector<float> x(head_dim);
        std::memcpy(x.data(), &after[in_at + at], head_dim * sizeof(float));
        put(after, out_at + at, change(x));
    }
    put<std::uint32_t>(after, counter_at, {7 + verify::tokens_out_of_range(operation)});
    return after;
}

// Checks that the memory is right after the calls, and that a change of any byte is noticed except
// for those that `may_differ`.
void check_bytes(const Operation& operation, const Bytes& after,
                 std::span<const vkrope_call> calls = {},
                 const std::function<bool(std::size_t)>& may_differ = {}) {
    CHECK(verify::compare(operation, after, false, calls).problem.empty());
    for (std::size_t at = 0; at < after.size(); ++at) {
        Bytes changed = after;
        changed[at] ^= std::byte{0x80};
        CAPTURE(at);
        CHECK(verify::compare(operation, changed, false, calls).problem.empty() ==
              (may_differ && may_differ(at)));
    }
}

}  // namespace

TEST_CASE("verdict on an operation: a change of any byte is found") {
    const Operation operation = operation_of(VKROPE_Q, VKROPE_F32);
    CHECK(verify::tokens_out_of_range(operation) == 1);
    const Bytes after = done(operation, VKROPE_Q);
    check_bytes(operation, after);
    Operation other = operation;
    other.call.direction = VKROPE_INVERSE;
    CHECK(!verify::compare(other, after, false).problem.empty());
    other = operation;
    other.inv_freq[1] = 0.2501;
    CHECK(!verify::compare(other, after, false).problem.empty());
}

TEST_CASE("verdict on an operation: computed scales, and codes in pages") {
    Operation operation = operation_of(VKROPE_K, VKROPE_INT8);
    operation.info.scatter_kv = true;
    operation.info.tensor[VKROPE_K].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    operation.info.tensor[VKROPE_K].ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
    put<std::int32_t>(operation.memory, slots_at, {3, 4, -1});
    vkrope_call& call = operation.call;
    // There are two pages of two rows, [pages, heads, page_size, head_dim].
    call.out[VKROPE_K].where.range = 2 * 2 * heads * head_dim;
    call.out[VKROPE_K].head_stride = 2 * head_dim;
    call.paged_cache = {.slot_mapping = {{}, slots_at, 12}, .page_size = 2};
    call.paged_cache.page_stride = 2 * heads * head_dim;
    call.paged_cache.row_stride = head_dim;
    call.scales_out[VKROPE_K] = {{}, scales_at, 4 * heads * sizeof(float)};
    // Slot 4 is out of range; the position of the token without a slot is not covered.
    CHECK(verify::tokens_out_of_range(operation) == 2);
    const Bytes after = done(operation, VKROPE_K);
    check_bytes(operation, after);
    const std::vector<float> scales = verify::made_scales(operation, VKROPE_K, after);
    float of_second_head = 0;
    std::memcpy(&of_second_head, &after[scales_at + 7 * sizeof(float)], sizeof of_second_head);
    CHECK(scales == std::vector<float>{scales[0], of_second_head, 0, 0, 0, 0});
}

TEST_CASE("verdict on an operation: scales of groups in bytes, and two codes a byte in pages") {
    Operation operation = operation_of(VKROPE_K, VKROPE_INT4);
    operation.info.scatter_kv = true;
    vkrope_ops& ops = operation.info.tensor[VKROPE_K].ops;
    ops.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
    ops.store_scale_group = 2;  // the library has only larger groups
    ops.scale_type = VKROPE_SCALE_TYPE_UE8M0;
    put<std::int32_t>(operation.memory, slots_at, {3, 4, -1});
    vkrope_call& call = operation.call;
    call.out[VKROPE_K].where.range = 4 * heads * head_dim / 2;
    call.paged_cache = {.slot_mapping = {{}, slots_at, 12}, .page_size = 2};
    for (const vkrope_scale_layout layout :
         {VKROPE_SCALE_LAYOUT_SLOTS_HEADS, VKROPE_SCALE_LAYOUT_PAGES_HEADS}) {
        ops.scale_layout = layout;
        call.scales_out[VKROPE_K] = {{}, scales_at, 4 * heads * 2};
        const Bytes after = done(operation, VKROPE_K);
        check_bytes(operation, after);
        // Slot 3 is row 1 of page 1; its heads are neighbours, or two rows apart.
        const bool by_page = layout == VKROPE_SCALE_LAYOUT_PAGES_HEADS;
        const std::vector<float> scales = verify::made_scales(operation, VKROPE_K, after);
        for (std::size_t i = 0; i < 4; ++i) {
            const std::size_t at = by_page ? 8 + i / 2 * 4 + 2 + i % 2 : 12 + i;
            CHECK(scales[i] == std::ldexp(1.f, int(after[scales_at + at]) - 127));
        }
    }
}

TEST_CASE("verdict on an operation: calls one after another, each with its own token") {
    Operation operation = operation_of(VKROPE_Q, VKROPE_F32);
    const Bytes after = done(operation, VKROPE_Q);
    constexpr std::size_t bytes = heads * head_dim * sizeof(float);
    std::vector<vkrope_call> calls(tokens, operation.call);
    for (std::uint32_t token = 0; token < tokens; ++token) {
        vkrope_call& call = calls[token];
        call.tokens = 1;
        call.positions.first = std::int32_t(token);
        call.in[VKROPE_Q].where.offset += token * bytes;
        call.out[VKROPE_Q].where.offset += token * bytes;
    }
    check_bytes(operation, after, calls);
    calls.pop_back();  // no call writes the last token
    CHECK(!verify::compare(operation, after, false, calls).problem.empty());
}

TEST_CASE("verdict on an operation: channels that do not rotate, with any cos and sin") {
    Operation operation = operation_of(VKROPE_Q, VKROPE_F32);
    operation.info.rotary_dim = 2;
    operation.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    operation.inv_freq.clear();
    check_bytes(operation, done(operation, VKROPE_Q), {}, [](std::size_t at) {
        // The last token is not covered, so it passes through.
        const bool covered = at >= out_at &&
                             at < out_at + (tokens - 1) * heads * head_dim * sizeof(float);
        return covered && (at - out_at) / sizeof(float) % head_dim < 2;
    });
}

TEST_CASE("verdict on an operation: a clip keeps a NaN") {
    Operation operation = operation_of(VKROPE_Q, VKROPE_F32);
    operation.info.tensor[VKROPE_Q].ops.clip = 2;
    const float nan = std::nanf(""), clipped = 2;
    std::memcpy(&operation.memory[in_at], &nan, sizeof nan);
    Bytes after = done(operation, VKROPE_Q);
    CHECK(verify::compare(operation, after, false).problem.empty());
    std::memcpy(&after[out_at], &clipped, sizeof clipped);
    CHECK(!verify::compare(operation, after, false).problem.empty());
}

TEST_CASE("verdict on an operation: an RMS norm in floats, and its mistakes") {
    const std::vector<float> weight = {0.5f, -0.25f, 2, 0};
    Operation operation = operation_of(VKROPE_V, VKROPE_F32);
    operation.info.tensor[VKROPE_V].ops.norm = {.kind = VKROPE_NORM_RMS,
                                                .eps = 1e-6f,
                                                .weight = VKROPE_PARAMETER_CHANNEL,
                                                .weight_offset = 1};
    operation.parameters[VKROPE_V].weight = weight;
    const auto right = [&](float weight_offset, float eps) {
        const Bytes after = with_rows(operation, [&](std::vector<float> x) {
            const float square = (x[0] * x[0] + x[1] * x[1]) + (x[2] * x[2] + x[3] * x[3]);
            const float root = 1 / std::sqrt(square / 4 + eps);
            for (std::size_t c = 0; c < head_dim; ++c)
                x[c] = x[c] * root * (weight[c] + weight_offset);
            return x;
        });
        return verify::compare(operation, after, false).problem.empty();
    };
    CHECK(right(1, 1e-6f));
    CHECK(!right(0, 1e-6f));
    CHECK(!right(1, 1e-3f));
}

TEST_CASE("an operation's bound weight is read from its buffer, as its type") {
    Operation operation = operation_of(VKROPE_V, VKROPE_F32);
    vkrope_norm& norm = operation.info.tensor[VKROPE_V].ops.norm;
    norm = {.kind = VKROPE_NORM_RMS,
            .eps = 1e-6f,
            .weight = VKROPE_PARAMETER_CHANNEL,
            .channels = 2,
            .weight_bound = VK_TRUE};
    operation.call.norm_weight[VKROPE_V] = {{}, scales_at, 8};
    const auto weight = [&] {
        return verify::definition_of(operation, VKROPE_V, false).ops.norm.weight;
    };
    put<float>(operation.memory, scales_at, {0.75f, -2});
    CHECK(weight() == std::vector<double>{0.75, -2});
    put<std::uint16_t>(operation.memory, scales_at, {0x3c00, 0x0001, 0xbc00, 0x4000});
    norm.weight_type = VKROPE_F16;
    CHECK(weight() == std::vector<double>{1, 0x1p-24});
    norm.weight = VKROPE_PARAMETER_HEAD_CHANNEL;
    CHECK(weight() == std::vector<double>{1, 0x1p-24, -1, 2});
    norm.weight_type = VKROPE_BF16;
    CHECK(weight().back() == 2);
}

TEST_CASE("verdict on an operation: norms of a part of a row leave the other channels alone") {
    constexpr std::uint32_t first = 1, channels = 2;
    const std::vector<float> weight = {0.5f, -0.25f};
    Operation operation = operation_of(VKROPE_V, VKROPE_F32);
    operation.info.tensor[VKROPE_V].ops.norm = {.kind = VKROPE_NORM_RMS,
                                                .eps = 1e-6f,
                                                .weight = VKROPE_PARAMETER_CHANNEL,
                                                .first_channel = first,
                                                .channels = channels};
    operation.parameters[VKROPE_V].weight = weight;
    const auto with_norm = [&](std::uint32_t begin, std::uint32_t end, std::uint32_t together) {
        std::vector<float> all(tokens * heads * head_dim);
        std::memcpy(all.data(), &operation.memory[in_at], all.size() * sizeof(float));
        std::size_t row = 0;
        const Bytes after = with_rows(operation, [&](std::vector<float> x) {
            float square = 0;
            const std::size_t of = row++ / together * together;
            for (std::size_t head = of; head < of + together; ++head)
                for (std::uint32_t c = begin; c < end; ++c)
                    square += all[head * head_dim + c] * all[head * head_dim + c];
            const float root = 1 / std::sqrt(square / float(together * (end - begin)) + 1e-6f);
            for (std::uint32_t c = 0; c < channels; ++c) x[first + c] *= root * weight[c];
            return x;
        });
        return after;
    };
    const Bytes after = with_norm(first, first + channels, 1);
    CHECK(verify::compare(operation, after, false).problem.empty());
    CHECK(!verify::compare(operation, with_norm(0, head_dim, 1), false).problem.empty());
    CHECK(!verify::compare(operation, with_norm(first, head_dim, 1), false).problem.empty());
    Bytes changed = after;
    changed[out_at] ^= std::byte{1};  // the last bit of a channel outside the part
    CHECK(!verify::compare(operation, changed, false).problem.empty());
    // A NaN outside the part does not become part of the sum.
    put<float>(operation.memory, in_at, {std::nanf("")});
    CHECK(verify::compare(operation, with_norm(first, first + channels, 1), false).problem.empty());
    operation.info.tensor[VKROPE_V].ops.norm.span = VKROPE_NORM_SPAN_TOKEN;
    CHECK(verify::compare(operation, with_norm(first, first + channels, heads), false)
              .problem.empty());
    CHECK(
        !verify::compare(operation, with_norm(first, first + channels, 1), false).problem.empty());
}

TEST_CASE("verdict on an operation: without a rotation, rows keep their bits at every position") {
    Operation operation = operation_of(VKROPE_Q, VKROPE_F32);
    operation.info.pairing = VKROPE_PAIRING_NONE;
    operation.info.rotary_dim = 0;
    operation.info.angles = VKROPE_ANGLES_AUTOMATIC;
    operation.inv_freq.clear();
    operation.call.positions = {};
    operation.call.out_of_range = {};
    CHECK(verify::tokens_out_of_range(operation) == 0);
    put<float>(operation.memory, in_at, {-0.f, INFINITY});
    check_bytes(operation, with_rows(operation, [](const std::vector<float>& x) { return x; }));
}

TEST_CASE("verdict on an operation: a second destination receives the row of each token") {
    constexpr std::size_t second_at = 768, end = 1024;
    Operation operation = operation_of(VKROPE_K, VKROPE_INT8);
    operation.memory.resize(end, std::byte{0xa5});
    operation.info.scatter_kv = true;
    operation.info.tensor[VKROPE_K].ops.scale = 2;
    operation.info.tensor[VKROPE_K].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    put<std::int32_t>(operation.memory, slots_at, {2, -1, 0});  // the second token has no slot
    vkrope_call& call = operation.call;
    call.out[VKROPE_K].where.range = 3 * heads * head_dim;
    call.paged_cache = {.slot_mapping = {{}, slots_at, 12}};
    call.scales_out[VKROPE_K] = {{}, scales_at, 3 * heads * sizeof(float)};
    const std::size_t bytes = tokens * heads * head_dim * sizeof(float);
    call.second[VKROPE_K] = {{}, second_at, bytes};
    operation.info.tensor[VKROPE_K].second = VKROPE_F32;
    operation.info.tensor[VKROPE_K].heads = heads;
    const Bytes before = done(operation, VKROPE_K);  // all but the second destination

    operation.info.tensor[VKROPE_K].second_of = VKROPE_SECOND_INPUT;
    Bytes after = before;
    std::copy_n(&operation.memory[in_at], bytes, &after[second_at]);
    CHECK(verify::compare(operation, after, false).problem.empty());
    for (std::size_t at = second_at - 4; at < second_at + bytes + 4; ++at) {
        Bytes changed = after;
        changed[at] ^= std::byte{1};
        CAPTURE(at);
        CHECK(!verify::compare(operation, changed, false).problem.empty());
    }
    Bytes changed = after;
    changed[second_at + bytes - 1] ^= std::byte{1};
    CHECK(verify::compare(operation, changed, false).problem.find("second destination of K") !=
          std::string::npos);

    // The result is rotated and scaled; the last token, whose position is not covered, is scaled.
    operation.info.tensor[VKROPE_K].second_of = VKROPE_SECOND_RESULT;
    CHECK(!verify::compare(operation, after, false).problem.empty());
    const oracle::Definition of = verify::second_definition_of(operation, VKROPE_K, false);
    CHECK(!of.store);
    oracle::apply_ops(
        of, &operation.memory[in_at],
        [&](std::uint64_t, std::uint64_t token, std::span<const oracle::Approximate> channels) {
            std::vector<float> row;
            for (const oracle::Approximate& channel : channels) row.push_back(float(channel.value));
            put(after, second_at + token * heads * head_dim * sizeof(float), row);
        });
    float first_of_input = 0, first_of_last = 0;
    const std::size_t last = (tokens - 1) * heads * head_dim * sizeof(float);
    std::memcpy(&first_of_input, &operation.memory[in_at + last], sizeof first_of_input);
    std::memcpy(&first_of_last, &after[second_at + last], sizeof first_of_last);
    CHECK(first_of_last == 2 * first_of_input);
    CHECK(verify::compare(operation, after, false).problem.empty());
}

TEST_CASE("verdict on an operation: tokens from token_count on keep their bytes, and none counts") {
    constexpr std::size_t count_at = 496;
    Operation operation = operation_of(VKROPE_Q, VKROPE_F32);
    operation.info.token_count = VK_TRUE;
    operation.call.token_count = {{}, count_at, 4};
    constexpr std::size_t bytes = heads * head_dim * sizeof(float);
    for (const auto& [number, rows, counted] :
         {std::array{0u, 0u, 0u},
          {1u, 1u, 0u},
          {2u, 2u, 0u},
          {3u, 3u, 1u},
          {4u, 3u, 2u},
          {~0u, 3u, 2u}}) {  // the position of token 2 is not covered
        CAPTURE(number);
        put<std::uint32_t>(operation.memory, count_at, {number});
        CHECK(verify::tokens_out_of_range(operation) == counted);
        const Bytes after = done(operation, VKROPE_Q);
        for (std::size_t at = out_at; at < out_at + tokens * bytes; at += 4)
            CHECK((std::memcmp(&after[at], &operation.memory[at], 4) == 0) ==
                  (at >= out_at + rows * bytes));
        check_bytes(operation, after);
    }
    // Each of several sequences has so many.
    vkrope_call& call = operation.call;
    call.batch = 2;
    call.in[VKROPE_Q].heads = call.out[VKROPE_Q].heads = 1;
    put<std::uint32_t>(operation.memory, count_at, {2});
    std::vector<std::uint64_t> stored;
    verify::each_stored_row(operation, VKROPE_Q,
                            [&](std::uint64_t row, std::size_t) { stored.push_back(row); });
    CHECK(stored == std::vector<std::uint64_t>{0, 1, 3, 4});
    put<std::uint32_t>(operation.memory, count_at, {4});
    CHECK(verify::tokens_out_of_range(operation) == 3);  // a position of each, and the number
}

TEST_CASE("verdict on an operation: tokens from token_count on have no slot, scale or second row") {
    constexpr std::size_t count_at = 496, second_at = 768, end = 1024;
    Operation operation = operation_of(VKROPE_K, VKROPE_INT8);
    operation.memory.resize(end, std::byte{0xa5});
    operation.info.scatter_kv = operation.info.token_count = VK_TRUE;
    vkrope_tensor_info& info = operation.info.tensor[VKROPE_K];
    info.ops.store_scale = VKROPE_STORE_SCALE_MADE;
    info.second_of = VKROPE_SECOND_INPUT;
    info.second = VKROPE_F32;
    info.heads = heads;
    vkrope_call& call = operation.call;
    call.out[VKROPE_K].where.range = 3 * heads * head_dim;
    call.paged_cache = {.slot_mapping = {{}, slots_at, 12}};
    call.scales_out[VKROPE_K] = {{}, scales_at, 3 * heads * sizeof(float)};
    constexpr std::size_t bytes = heads * head_dim * sizeof(float);
    call.second[VKROPE_K] = {{}, second_at, tokens * bytes};
    call.token_count = {{}, count_at, 4};
    put<std::uint32_t>(operation.memory, count_at, {2});
    for (const std::int32_t last : {0, 2, -1, 9}) {  // one is the slot of the first token
        put<std::int32_t>(operation.memory, slots_at, {2, 8, last});
        CHECK(verify::tokens_out_of_range(operation) == 1);
        Bytes after = done(operation, VKROPE_K);
        std::copy_n(&operation.memory[in_at], 2 * bytes, &after[second_at]);
        check_bytes(operation, after);
        const std::vector<float> scales = verify::made_scales(operation, VKROPE_K, after);
        CHECK(std::vector<float>(scales.begin() + heads, scales.end()) ==
              std::vector<float>(2 * heads));
        const Bytes second = verify::second_rows(operation, VKROPE_K, after);
        CHECK(std::memcmp(second.data(), &after[second_at], 2 * bytes) == 0);
        CHECK(Bytes(second.begin() + 2 * bytes, second.end()) == Bytes(bytes));
    }
}

namespace {

// Returns K of int8 with scales in one cache of 5 slots. Token 0 moves from slot 4 to 2 at position
// 0, token 1 turns in slot 1, and token 2, whose position is not covered, has slot 3.
Operation keys_that_move() {
    Operation operation = operation_of(VKROPE_K, VKROPE_INT8);
    operation.info.scatter_kv = operation.info.gather_kv = true;
    vkrope_tensor_info& info = operation.info.tensor[VKROPE_K];
    info.in = VKROPE_INT8;
    info.ops.store_scale = VKROPE_STORE_SCALE_MADE;
    info.ops.scales_in = true;
    put<std::int32_t>(operation.memory, slots_at, {2, 1, 3});
    put<std::int32_t>(operation.memory, slots_at + 12, {4, 1, 3});
    for (std::size_t i = 0; i < 5 * heads; ++i) {
        put<float>(operation.memory, scales_at + 4 * i, {0.25f + float(i)});
        put<std::int8_t>(operation.memory, out_at + head_dim * i, {127, -3, std::int8_t(i), 40});
    }
    vkrope_call& call = operation.call;
    call.out[VKROPE_K].where.range = 5 * heads * head_dim;
    call.in[VKROPE_K] = call.out[VKROPE_K];
    call.paged_cache = {.slot_mapping = {{}, slots_at, 12},
                        .source_mapping = {{}, slots_at + 12, 12}};
    call.scales_in[VKROPE_K] = call.scales_out[VKROPE_K] = {{}, scales_at, 5 * heads * 4};
    return operation;
}

// Copies a row and its scales from slot 4 to slot 2.
void copy_row(const Bytes& from, Bytes& to) {
    std::copy_n(&from[out_at + 4 * heads * head_dim], heads * head_dim,
                &to[out_at + 2 * heads * head_dim]);
    std::copy_n(&from[scales_at + 4 * heads * 4], heads * 4, &to[scales_at + 2 * heads * 4]);
}

}  // namespace

TEST_CASE("verdict on an operation: keys that move, of which two keep their bytes") {
    Operation operation = keys_that_move();
    CHECK(verify::kept_tokens(operation, VKROPE_K) == std::vector<bool>{true, false, true});
    const Bytes turned = done(operation, VKROPE_K);
    CHECK(!verify::compare(operation, turned, false).problem.empty());
    Bytes after = turned;
    copy_row(operation.memory, after);
    check_bytes(operation, after);
    CHECK(after[out_at + heads * head_dim] != operation.memory[out_at + heads * head_dim]);
    // With a factor, the row at position 0 changes unless the gain is omitted.
    operation.attention_factor = 2;
    CHECK(verify::kept_tokens(operation, VKROPE_K) == std::vector<bool>{false, false, true});
    CHECK(!verify::compare(operation, after, false).problem.empty());
    check_bytes(operation, done(operation, VKROPE_K));
    operation.call.gain = VKROPE_GAIN_OMIT;
    CHECK(verify::compare(operation, after, false).problem.empty());
    // An op, or scales of only one side, change every row.
    operation.info.tensor[VKROPE_K].ops.scale = 2;
    CHECK(verify::kept_tokens(operation, VKROPE_K).empty());
    operation.info.tensor[VKROPE_K].ops.scale = 0;
    operation.info.tensor[VKROPE_K].ops.scales_in = false;
    CHECK(verify::kept_tokens(operation, VKROPE_K).empty());
    CHECK(verify::kept_tokens(operation, VKROPE_V).empty());  // which the call does not have
}

TEST_CASE("verdict on an operation: slots of V's own, in a cache with more pages") {
    constexpr std::size_t v_in_at = 512, v_out_at = 640, v_slots_at = 832;
    constexpr std::size_t row = heads * head_dim * sizeof(float), v_pages = 5;
    Operation operation = operation_of(VKROPE_K, VKROPE_F32);
    operation.memory.resize(1024, std::byte{0xa5});
    std::memcpy(&operation.memory[v_in_at], &operation.memory[in_at], tokens * row);
    operation.info.scatter_kv = true;
    operation.info.tensor[VKROPE_V] = operation.info.tensor[VKROPE_K];
    vkrope_call& call = operation.call;
    call.in[VKROPE_V] = {.where = {{}, v_in_at, tokens * row}, .heads = heads};
    call.out[VKROPE_V] = {.where = {{}, v_out_at, v_pages * row}, .heads = heads};
    call.paged_cache.slot_mapping = {{}, slots_at, 4 * tokens};
    call.paged_cache.v_slot_mapping = {{}, v_slots_at, 4 * tokens};
    put<std::int32_t>(operation.memory, slots_at, {2, 3, 0});  // K has 3 pages
    put<std::int32_t>(operation.memory, v_slots_at, {4, -1, 3});
    CHECK(verify::tokens_out_of_range(operation) == 2);  // one has no position in the table
    const auto both = [&](const Operation& of) {
        Bytes after = done(of, VKROPE_K);
        const Bytes v = done(of, VKROPE_V);
        std::memcpy(&after[v_out_at], &v[v_out_at], v_pages * row);
        return after;
    };
    check_bytes(operation, both(operation));
    Operation shared = operation;
    shared.call.paged_cache.v_slot_mapping = {};
    CHECK(!verify::compare(operation, both(shared), false).problem.empty());
    put<std::int32_t>(operation.memory, v_slots_at, {4, 7, 5});
    CHECK(verify::tokens_out_of_range(operation) == 3);  // the position counts, not its slot too
    check_bytes(operation, both(operation));
    call.paged_cache.v_slot_mapping = {};  // K and V have 3 pages then
    put<std::int32_t>(operation.memory, slots_at, {2, 3, 4});
    CHECK(verify::tokens_out_of_range(operation) == 2);
}

TEST_CASE("verdict on an operation: sources that are skipped or outside") {
    Operation operation = keys_that_move();
    put<std::int32_t>(operation.memory, slots_at, {2, 1, -1});
    put<std::int32_t>(operation.memory, slots_at + 12, {5, -1, 9});
    // The source of the first token is outside, and the position of the last is not covered.
    CHECK(verify::tokens_out_of_range(operation) == 2);
    check_bytes(operation, done(operation, VKROPE_K));
    operation.call.paged_cache.source_mapping = {};  // the rows stay in slots 2 and 1
    CHECK(verify::tokens_out_of_range(operation) == 1);
    check_bytes(operation, done(operation, VKROPE_K));
}

TEST_CASE("verdict on an operation: rows of a cache that are gathered as f32") {
    Operation operation = keys_that_move();
    operation.info.scatter_kv = false;
    operation.info.tensor[VKROPE_K].out = VKROPE_F32;
    operation.info.tensor[VKROPE_K].ops.store_scale = VKROPE_STORE_SCALE_NONE;
    put<std::int32_t>(operation.memory, slots_at + 12, {4, -1, 3});
    vkrope_call& call = operation.call;
    call.out[VKROPE_K].where = {{}, in_at, tokens * heads * head_dim * 4};
    call.paged_cache.slot_mapping = {};
    call.scales_out[VKROPE_K] = {};
    const Bytes after = done(operation, VKROPE_K);
    check_bytes(operation, after);
    std::vector<float> first(head_dim);
    std::memcpy(first.data(), &after[in_at], head_dim * sizeof(float));
    const float scale = 0.25f + 4 * heads;  // of slot 4
    CHECK(first == std::vector<float>{127 * scale, -3 * scale, 8 * scale, 40 * scale});
}

TEST_CASE("verdict on an operation: a Hadamard transform of 4 channels, in Sylvester's order") {
    Operation operation = operation_of(VKROPE_V, VKROPE_F32);
    operation.info.tensor[VKROPE_V].ops.hadamard = 4;
    const auto right = [&](std::size_t second, std::size_t third) {
        const Bytes after = with_rows(operation, [&](const std::vector<float>& x) {
            std::vector<float> y(4);
            y[0] = (x[0] + x[1] + x[2] + x[3]) / 2;
            y[second] = (x[0] - x[1] + x[2] - x[3]) / 2;
            y[third] = (x[0] + x[1] - x[2] - x[3]) / 2;
            y[3] = (x[0] - x[1] - x[2] + x[3]) / 2;
            return y;
        });
        return verify::compare(operation, after, false).problem.empty();
    };
    CHECK(right(1, 2));
    CHECK(!right(2, 1));
    // That of the input is undone by the same sums.
    vkrope_ops& ops = operation.info.tensor[VKROPE_V].ops;
    std::swap(ops.hadamard_of_input, ops.hadamard);
    CHECK(right(1, 2));
    CHECK(!right(2, 1));
    // If both are the same, rows keep their bytes, as no other op changes them.
    ops.hadamard = ops.hadamard_of_input;
    CHECK(!right(1, 2));
    check_bytes(operation, with_rows(operation, [](const std::vector<float>& x) { return x; }));
}
