// SPDX-License-Identifier: MIT
// Tests ids, slots, factors and the number of tokens of random steps against a plain loop on the
// host.
#include <algorithm>
#include <bit>
#include <optional>

#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::int64_t most_sum = 0xffffffff;
constexpr std::uint32_t guard = 0x5a5a5a5a;

// The numbers in the buffers of a call, and the outputs that it makes.
struct Step {
    PositionCall call;  // without buffers
    std::vector<std::int64_t> ids, offsets, sums;
    std::vector<std::int32_t> query_lens, seq_lens, table;
    std::optional<QueryScaleLayout> factors;
    bool makes_ids = false, makes_slots = false, makes_count = false;

    bool ragged() const { return call.sequences != 0; }
    std::uint32_t sequences() const { return ragged() ? call.sequences : call.batch; }
    std::uint32_t total() const { return call.batch * call.tokens; }
};

// The outputs of a step, and what they count; those that the step does not make are empty.
struct Made {
    std::vector<std::uint32_t> ids, slots, factors, token_count;
    std::uint32_t out_of_range = 0;
    bool operator==(const Made&) const = default;
};

// Numbers of what happened in all steps.
struct Seen {
    std::uint32_t ids = 0, negative_ids = 0, no_positions = 0, slots = 0, absent = 0, no_slots = 0,
                  factors = 0, no_factors = 0, idle = 0, ended_sums = 0, large_sums = 0;
};

float factor_at(const QueryScale& scale, std::int32_t position) {
    float factor = 0;
    must(status_of(vkrope_query_scales, &scale, &position, 1, &factor));
    return factor;
}

// Returns the sums of a ragged batch up to the one at which they end.
std::vector<std::int64_t> risen(const Step& step) {
    std::vector<std::int64_t> sums;
    for (std::size_t i = 0; i <= step.call.sequences; ++i) {
        std::int64_t next = 0;
        if (!step.sums.empty())
            next = step.sums[i];
        else if (i > 0)
            next = sums.back() + step.query_lens[i - 1];
        next = std::min(next, most_sum);
        const std::int64_t chunks = step.call.cp_size == 1 ? 1 : 2 * step.call.cp_size;
        if (next < (sums.empty() ? 0 : sums.back()) || next % chunks != 0) break;
        sums.push_back(next);
    }
    for (std::int64_t& sum : sums) sum /= step.call.cp_size;
    return sums;
}

Made made_on_host(const Step& step, Seen& seen) {
    const PositionCall& call = step.call;
    const bool counts = step.makes_ids || step.makes_slots || step.factors;
    Made made;
    std::vector<std::int64_t> sums;
    std::int64_t after = call.tokens;  // the token after the last one
    if (step.ragged()) {
        sums = risen(step);
        after = sums.empty() ? 0 : sums.back();
        if (step.makes_count) {
            const bool ended = sums.size() <= call.sequences, large = after > call.tokens;
            seen.ended_sums += ended, seen.large_sums += large;
            made.out_of_range += ended || large;
            made.token_count = {std::uint32_t(std::min<std::int64_t>(after, call.tokens))};
        }
    }
    for (std::uint32_t index = 0; index < step.total() && counts; ++index) {
        std::int64_t sequence = index / call.tokens, token = index % call.tokens,
                     length = call.tokens;
        bool idle = false, member = true;
        if (step.ragged()) {
            sequence = std::upper_bound(sums.begin(), sums.end(), std::int64_t{index}) -
                       sums.begin() - 1;
            member = sequence >= 0 && sequence + 1 < std::int64_t(sums.size());
            idle = index >= after && step.makes_count;
            token = member ? index - sums[std::size_t(sequence)] : 0;
            length = member ? sums[std::size_t(sequence) + 1] - sums[std::size_t(sequence)] : 0;
        }
        if (call.cp_size > 1) {
            const std::int64_t chunk = length / 2, rank = call.cp_rank, ranks = call.cp_size;
            token += token < chunk ? rank * chunk : (2 * ranks - 2 - rank) * chunk;
        }
        std::int64_t place = token, position = INT64_MAX;
        if (member) {
            const auto at = std::size_t(sequence);
            if (!step.seq_lens.empty()) {
                place = step.seq_lens[at] - length + token;
                idle = idle || (!step.ragged() && step.seq_lens[at] == 0);
            }
            position = place + call.first + (step.offsets.empty() ? 0 : step.offsets[at]);
            if (!step.ids.empty()) position = step.ids[index];
            if (step.seq_lens.empty())
                place = position;
            else if (place < 0)
                position = INT64_MAX;
        }
        std::uint32_t id = 0, slot = ~0u;
        float factor = 1;
        const bool has_position = position >= INT32_MIN && position <= INT32_MAX;
        seen.idle += idle;
        if (!idle) {
            id = has_position ? std::uint32_t(position) : 0x80000000u;
            ++(!has_position ? seen.no_positions : position < 0 ? seen.negative_ids : seen.ids);
            made.out_of_range += !has_position;
        }
        if (!idle && has_position && step.makes_slots) {
            const std::int64_t page = place / std::int64_t{call.page_size};
            std::int64_t number = -2;  // outside the table, or the cache
            if (place >= 0 && page < call.pages)
                number = step.table[std::size_t(sequence * call.block_table_stride + page)];
            if (number >= 0 && number < call.cache_pages)
                slot = std::uint32_t(number * call.page_size + place % call.page_size),
                ++seen.slots;
            else if (number == -1)
                ++seen.absent;
            else
                ++made.out_of_range, ++seen.no_slots;
        }
        if (!idle && has_position && step.factors) {
            const QueryScaleLayout& table = *step.factors;
            if (position >= 0 &&
                (position + table.shift) / table.positions_per_row < std::int64_t{table.rows})
                factor = factor_at(table.scale, std::int32_t(position)), ++seen.factors;
            else
                ++made.out_of_range, ++seen.no_factors;
        }
        if (step.makes_ids) made.ids.push_back(id);
        if (step.makes_slots) made.slots.push_back(slot);
        if (step.factors) made.factors.push_back(std::bit_cast<std::uint32_t>(factor));
    }
    return made;
}

// Puts numbers into one buffer, some words apart.
class Packed {
   public:
    explicit Packed(std::mt19937& random) : random_(random) {}

    // Where numbers are, without the buffer.
    template <class Number>
    VkDescriptorBufferInfo add(const std::vector<Number>& numbers) {
        words_.resize(words_.size() + 1 + random_() % 70, guard);
        const std::size_t at = words_.size(), bytes = numbers.size() * sizeof(Number);
        words_.resize(at + bytes / 4);
        if (bytes != 0) std::memcpy(&words_[at], numbers.data(), bytes);
        return {VK_NULL_HANDLE, at * 4, bytes};
    }
    Buffer upload_to(Device& on) {
        words_.resize(words_.size() + 1, guard);
        return upload(on, bytes_of(words_));
    }
    std::vector<std::uint32_t>& words() { return words_; }

   private:
    std::mt19937& random_;
    std::vector<std::uint32_t> words_;
};

// Returns the outputs of a step on the device. Words around them must keep their values.
Made made_on_device(Device& on, const PositionKernel* kernel, DescriptorArena* arena, Step step,
                    bool counts, std::mt19937& random) {
    PositionCall& call = step.call;
    Packed read(random), written(random);
    std::vector<std::pair<VkDescriptorBufferInfo*, VkDescriptorBufferInfo>> reads, writes;
    const auto give = [&](VkDescriptorBufferInfo& to, const auto& numbers) {
        if (!numbers.empty()) reads.emplace_back(&to, read.add(numbers));
    };
    const auto give_integers = [&](VkDescriptorBufferInfo& to, const auto& numbers, bool wide) {
        if (wide) return give(to, numbers);
        give(to, std::vector<std::int32_t>(numbers.begin(), numbers.end()));
    };
    give(call.ids, step.ids);
    give_integers(call.offsets, step.offsets, call.offsets_int64);
    give_integers(call.cu_seqlens, step.sums, call.cu_seqlens_int64);
    give(call.query_lens, step.query_lens);
    give(call.seq_lens, step.seq_lens);
    if (step.makes_slots) give(call.block_table, step.table);
    std::vector<float> factors(step.factors ? step.factors->rows : 0);
    if (step.factors) {
        must(fill_query_scales(*step.factors, factors.data(), factors.size() * 4));
        call.query_scale_layout = &*step.factors;
    }
    give(call.query_scales, factors);
    const auto make = [&](VkDescriptorBufferInfo& to, bool wanted, std::size_t count) {
        if (wanted) writes.emplace_back(&to, written.add(std::vector<std::uint32_t>(count, guard)));
    };
    make(call.out, step.makes_ids, step.total());
    make(call.slot_mapping, step.makes_slots, step.total());
    make(call.scale_tokens, step.factors.has_value(), step.total());
    make(call.token_count, step.makes_count, 1);
    if (counts) writes.emplace_back(&call.out_of_range, written.add(std::vector<std::uint32_t>{0}));
    const Buffer source = read.upload_to(on);
    Buffer target = written.upload_to(on);
    for (auto& [to, where] : reads) *to = part(source, where.offset, where.range);
    for (auto& [to, where] : writes) *to = part(target, where.offset, where.range);
    must(on.submit(
        [&](VkCommandBuffer commands) { return record_positions(commands, kernel, call, arena); }));
    const Bytes bytes = download(target, written.words().size() * 4);
    std::vector<std::uint32_t> after(written.words().size());
    std::memcpy(after.data(), bytes.data(), bytes.size());
    Made made;
    const auto take = [&](const VkDescriptorBufferInfo& where) {
        if (!where.buffer) return std::vector<std::uint32_t>();
        const auto first = after.begin() + std::ptrdiff_t(where.offset / 4);
        std::vector<std::uint32_t> numbers(first, first + std::ptrdiff_t(where.range / 4));
        std::fill_n(first, numbers.size(), guard);
        return numbers;
    };
    made.ids = take(call.out), made.slots = take(call.slot_mapping);
    made.factors = take(call.scale_tokens), made.token_count = take(call.token_count);
    if (counts) made.out_of_range = take(call.out_of_range)[0];
    CHECK(after == std::vector<std::uint32_t>(after.size(), guard));
    return made;
}

// Draws a step: numbers that fit together, or with `wild` any that a buffer may have.
Step random_step(std::mt19937& random, bool wild) {
    const auto below = [&](std::uint32_t end) { return std::uint32_t(random() % end); };
    const auto one_in = [&](std::uint32_t n) { return below(n) == 0; };
    const auto any = [&] { return std::int32_t(random()) >> below(32); };
    Step step;
    PositionCall& call = step.call;
    const bool ragged = one_in(2), ids = !ragged && one_in(4), sharded = !ids && one_in(6);
    call.batch = ragged ? 1 : 1 + below(4);
    call.tokens = 2 * (1 + below(40));
    call.cp_size = sharded ? 2 + below(3) : 1;
    call.cp_rank = below(call.cp_size);
    call.sequences = ragged ? 1 + below(12) : 0;
    const std::uint32_t count = step.sequences(), chunks = sharded ? 2 * call.cp_size : 1;
    if (!ids) call.first = one_in(2) ? 0 : wild ? any() : std::int32_t(below(20)) - 5;
    for (std::uint32_t i = 0; i < step.total() && ids; ++i)
        step.ids.push_back(wild ? std::int64_t{any()} << below(8) : below(200));
    if (!ids && one_in(2)) {
        call.offsets_int64 = one_in(2);
        for (std::uint32_t i = 0; i < count; ++i)
            step.offsets.push_back(wild ? std::int64_t{any()} << (call.offsets_int64 ? below(8) : 0)
                                        : std::int64_t{below(60)});
    }
    std::vector<std::int32_t> lengths;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t usual = one_in(4) ? 0 : chunks * below(10);
        lengths.push_back(wild && one_in(4) ? any() : std::int32_t(usual));
    }
    if (ragged && one_in(2)) {
        step.query_lens = lengths;
    } else if (ragged) {
        call.cu_seqlens_int64 = one_in(2);
        step.sums = {wild && one_in(4) ? any() % 20 : 0};
        for (const std::int32_t length : lengths) step.sums.push_back(step.sums.back() + length);
        for (std::int64_t& sum : step.sums)
            if (!call.cu_seqlens_int64) sum = std::int32_t(sum);
    }
    if (!ids && !sharded && one_in(2)) {
        for (std::uint32_t i = 0; i < count; ++i) {
            const std::uint32_t length = ragged ? std::uint32_t(lengths[i]) : call.tokens;
            const std::uint32_t usual = !ragged && one_in(4) ? 0 : length + below(90);
            step.seq_lens.push_back(wild && one_in(2) ? any() : std::int32_t(usual));
        }
    }
    step.makes_slots = !sharded && one_in(2);
    if (step.makes_slots) {
        call.page_size = 1 + below(20);
        call.pages = 1 + below(12);
        call.block_table_stride = call.pages + below(3);
        call.cache_pages = 1 + below(50);
        for (std::uint32_t i = 0; i < count * call.block_table_stride; ++i)
            step.table.push_back(one_in(4) ? -1
                                 : wild    ? any()
                                           : std::int32_t(below(call.cache_pages)));
    }
    if (one_in(2)) {
        const QueryScale scales[] = {{VKROPE_QUERY_SCALING_LOGN, 32, 0},
                                     {VKROPE_QUERY_SCALING_LLAMA4, 16, 0.1},
                                     {VKROPE_QUERY_SCALING_MINISTRAL3, 16, 0.1},
                                     {VKROPE_QUERY_SCALING_LLAMA4, 10.5, 0.25}};
        step.factors = must(plan_query_scales(scales[below(4)], 1 + below(200)));
    }
    step.makes_count = ragged && one_in(2);
    const bool alone = !step.makes_slots && !step.factors && !step.makes_count;
    step.makes_ids = alone || one_in(2);
    if (step.makes_count && !step.makes_ids && !step.makes_slots && !step.factors)
        call.first = 0, call.cp_rank = 0, step.offsets = {}, step.seq_lens = {},
        call.offsets_int64 = false;
    return step;
}

}  // namespace

TEST_CASE(
    "record_positions: random steps have the ids, slots, factors and counts of a plain loop") {
    std::mt19937 random(61);
    Seen seen;
    for (const ReportedLimits& limits :
         {ReportedLimits{}, ReportedLimits{.storage_buffers = 6, .no_push_descriptors = true},
          ReportedLimits{.workgroups_x = 1}}) {
        const Owned<PositionKernel> kernel(must(create_positions(reporting(device(), limits))));
        const bool pushes = !limits.no_push_descriptors &&
                            (device().ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR);
        const Owned<DescriptorArena> arena(pushes ? nullptr : must(create_arena(kernel.get(), 4)));
        for (int round = 0; round < 150; ++round) {
            CAPTURE(round);
            const Step step = random_step(random, round % 3 == 2);
            const bool counts = round % 8 != 7;
            Made expected = made_on_host(step, seen);
            if (!counts) expected.out_of_range = 0;
            vkrope_arena_reset(arena.get());
            const Made made = made_on_device(device(), kernel.get(), arena.get(), step, counts,
                                             random);
            CHECK(made.ids == expected.ids);
            CHECK(made.slots == expected.slots);
            CHECK(made.factors == expected.factors);
            CHECK(made.token_count == expected.token_count);
            CHECK(made.out_of_range == expected.out_of_range);
        }
    }
    // Each rule has decided something.
    CHECK(seen.ids > 1000);
    CHECK(seen.negative_ids > 100);
    CHECK(seen.no_positions > 100);
    CHECK(seen.slots > 1000);
    CHECK(seen.absent > 100);
    CHECK(seen.no_slots > 100);
    CHECK(seen.factors > 1000);
    CHECK(seen.no_factors > 100);
    CHECK(seen.idle > 100);
    CHECK(seen.ended_sums > 10);
    CHECK(seen.large_sums > 10);
}

TEST_CASE(
    "record_positions: a device that binds 4 storage buffers has ids without seq_lens alone") {
    const ReportedLimits limits{.storage_buffers = 4};
    const Owned<PositionKernel> kernel(must(create_positions(reporting(device(), limits))));
    const Owned<DescriptorArena> arena = make_arena(device(), kernel, 1);
    std::mt19937 random(4);
    Step step;
    step.call = {.batch = 1, .tokens = 40, .first = -3, .sequences = 3, .cp_size = 1};
    step.query_lens = {7, 0, 30};
    step.makes_ids = true;
    Seen seen;
    CHECK(made_on_device(device(), kernel.get(), arena.get(), step, true, random) ==
          made_on_host(step, seen));
    Buffer buffer = upload(device(), Bytes(4096));
    const VkDescriptorBufferInfo numbers = part(buffer, 0, 12), made = part(buffer, 256, 160);
    const QueryScaleLayout layout = must(
        plan_query_scales({VKROPE_QUERY_SCALING_LLAMA4, 16, 0.1}, 32));
    const auto exceeds = [&](auto change, const char* field) {
        PositionCall call = step.call;
        call.query_lens = numbers;
        call.out = made;
        change(call);
        const Status status = record_positions(VkCommandBuffer(1), kernel.get(), call, arena.get());
        INFO(status.what);
        CHECK(status.code == VKROPE_ERROR_LIMIT_EXCEEDED);
        CHECK(std::string(status.what).find(field) == 0);
        CHECK(std::string(status.what).find("6 storage buffers") != std::string::npos);
    };
    exceeds([&](PositionCall& c) { c.seq_lens = numbers; }, "seq_lens is given");
    exceeds([&](PositionCall& c) { c.token_count = part(buffer, 512, 4); }, "token_count is given");
    exceeds(
        [&](PositionCall& c) {
            c.block_table = numbers, c.pages = c.cache_pages = 1;
            c.slot_mapping = part(buffer, 512, 160);
        },
        "slot_mapping is given");
    exceeds(
        [&](PositionCall& c) {
            c.query_scales = part(buffer, 0, layout.bytes), c.query_scale_layout = &layout;
            c.scale_tokens = part(buffer, 512, 160);
        },
        "scale_tokens is given");
}

}  // namespace vkrope::test
