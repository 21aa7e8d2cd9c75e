// SPDX-License-Identifier: MIT
// What an engine does around record(): positions that change in each step, library calls inside a
// submission.
#include "meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t D = 32, tokens = 7, heads = 3;

}  // namespace

TEST_CASE("a HostRotation runs with other positions from step to step, and its table grows") {
    for (const bool push : {true, false}) {
        Device& on = device(push);
        const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
        const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 13);
        const auto alone = [&](HostShape shape) {
            shape.tokens = tokens, shape.heads[Q] = heads,
            shape.angles = VKROPE_ANGLES_FACTORED_TEXTURE;
            return rotate(on, r, shape, in, {}).q;
        };
        HostRotation implicit = must(
            HostRotation::make(on, r, {.tokens = tokens, .heads = {heads}, .first_position = 3}));
        must(implicit.upload(in.data(), nullptr));
        Bytes out(in.size());
        const auto after = [&](HostRotation& work, const HostRun& run) {
            must(work.run(run));
            must(work.download(out.data(), nullptr));
            return out;
        };
        CHECK(after(implicit, {}) == alone({.first_position = 3}));
        CHECK(after(implicit, {.moves = true, .first_position = 5000}) ==
              alone({.first_position = 5000}));
        CHECK(after(implicit, {}) == alone({.first_position = 5000}));  // unchanged
        CHECK(after(implicit, {.direction = VKROPE_INVERSE, .moves = true, .first_position = 3}) !=
              alone({.first_position = 3}));
        // The table grows up to the largest factored table; the angle source does not change.
        CHECK(after(implicit,
                    {.moves = true, .first_position = (1 << 22) - 1 - std::int32_t(tokens)}) ==
              alone({.first_position = (1 << 22) - 1 - std::int32_t(tokens)}));
        CHECK(implicit.run(HostRun{.moves = true, .first_position = 1 << 22}).status.code ==
              VKROPE_ERROR_LIMIT_EXCEEDED);
        CHECK(after(implicit, {.moves = true, .first_position = 3}) ==
              alone({.first_position = 3}));

        const std::vector<std::int32_t> a = {1, 2, 3, 4, 5, 6, 7}, b = {9, -8, 700, 0, 1, 1, 2};
        HostRotation explicit_ids = must(HostRotation::make(
            on, r,
            {.tokens = tokens, .heads = {heads}, .positions = a.data(), .position_count = tokens}));
        must(explicit_ids.upload(in.data(), nullptr));
        CHECK(after(explicit_ids, {}) == alone({.positions = a.data(), .position_count = tokens}));
        CHECK(after(explicit_ids, {.positions = b.data(), .position_count = tokens}) ==
              alone({.positions = b.data(), .position_count = tokens}));
        CHECK(after(explicit_ids, {}) == alone({.positions = b.data(), .position_count = tokens}));

        const auto refuses = [](const auto& result, const char* words) {
            CHECK(result.status.code == VKROPE_ERROR_INVALID_ARGUMENT);
            CHECK(std::strstr(result.status.what, words));
        };
        refuses(explicit_ids.run(HostRun{.positions = a.data(), .position_count = 2}),
                "run.position_count is 2: there must be as many as the shape has, 7");
        refuses(explicit_ids.run(HostRun{.moves = true, .first_position = 1}),
                "run.first_position is 1: the shape has a position for each token");
        refuses(implicit.run(HostRun{.first_position = 9}), "run.first_position is 9");
        refuses(implicit.run(HostRun{.positions = a.data(), .position_count = 7}),
                "run.position_count is 7");
        refuses(implicit.run(HostRun{.moves = true, .first_position = INT32_MAX - 1}),
                "run.first_position is 2147483646: with 7 tokens");
        refuses(
            implicit.run(HostRun{.direction = Direction(5), .moves = true, .first_position = 9}),
            "run.direction is 5");
        CHECK(after(implicit, {}) ==
              alone({.first_position = 3}));  // a run that fails changes nothing
    }
}

TEST_CASE(
    "what submits during the callback of a submit is refused, and what was recorded before it "
    "stays") {
    Device& on = device();
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
    const AngleTable table = must(AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, 100));
    const Owned<Kernel> kernel = make_kernel(on,
                                             must(kernel_info(r, table.layout(), VKROPE_F32, {})));
    const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 17);
    Buffer q = upload(on, in), other = upload(on, Bytes(16));
    const Owned<DescriptorArena> arena = make_arena(on, kernel, 1);
    Call call{.tokens = tokens};
    call.in[Q] = call.out[Q] = {.where = q.whole(), .heads = heads};
    call.positions.first = 2;
    call.angles = table.angles();
    HostRotation work = must(
        HostRotation::make(on, r, {.tokens = tokens, .heads = {heads}, .first_position = 2}));
    std::vector<Status> seen;
    must(on.submit([&](VkCommandBuffer commands) {
        if (Status s = record(commands, kernel.get(), call, arena.get()); !s) return s;
        Bytes sixteen(16);
        seen.push_back(other.upload(sixteen.data(), 16));
        seen.push_back(other.download(sixteen.data(), 16));
        seen.push_back(on.submit([](VkCommandBuffer) { return Status{}; }).status);
        seen.push_back(work.upload(in.data(), nullptr));
        seen.push_back(work.run(HostRun{.moves = true, .first_position = 5}).status);
        seen.push_back(AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, 10).status);
        return Status{};
    }));
    CHECK(seen.size() == 6);
    for (const Status& status : seen) {
        CHECK(status.code == VKROPE_ERROR_INVALID_ARGUMENT);
        CHECK(std::strstr(status.what, "from the callback of another submit"));
    }
    const Bytes out = download(q, in.size());
    CHECK(out != in);
    check_contract(r, {.tokens = tokens, .heads = {heads}, .first_position = 2}, false, in, out);
    must(work.upload(in.data(), nullptr));  // the failed run did not change its positions
    must(work.run());
    Bytes again(in.size());
    must(work.download(again.data(), nullptr));
    CHECK(again == out);
    // A failing callback leaves the device usable.
    CHECK(on.submit([&](VkCommandBuffer) { return other.upload(in.data(), 16); }).status.code ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    must(other.upload(in.data(), 16));
}

}  // namespace vkrope::test
