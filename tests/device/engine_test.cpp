// SPDX-License-Identifier: MIT
// What an engine does around record(): a kernel from a model, one arena for several kernels,
// positions that change in each step, library calls inside a submission.
#include "meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t D = 32, tokens = 7, heads = 3;

// Rotates with a kernel and a call that depend only on kernel_info().
Bytes rotate_by_info(Device& on, const RopeParams& r, const AngleTable& table, Element element,
                     bool key, const Bytes& in, const Positions& positions,
                     const Owned<DescriptorArena>& arena) {
    const auto absent = std::optional<Element>();
    const KernelInfo info = must(key ? kernel_info(r, table.layout(), absent, element)
                                     : kernel_info(r, table.layout(), element, absent));
    const Owned<Kernel> kernel = make_kernel(on, info);
    Buffer from = upload(on, in), to = upload(on, Bytes(in.size()));
    Call call{.tokens = tokens};
    const Tensor input{.where = from.whole(), .heads = heads},
        output{.where = to.whole(), .heads = heads};
    (key ? call.in[K] : call.in[Q]) = input;
    (key ? call.out[K] : call.out[Q]) = output;
    call.positions = positions;
    call.angles = table.angles();
    must(on.submit([&](VkCommandBuffer commands) {
        return record(commands, kernel.get(), call, arena.get());
    }));
    return download(to, in.size());
}

}  // namespace

TEST_CASE(
    "kernel_info: rows of latent attention turn where they should, through one arena for all "
    "kernels") {
    for (const bool push : {true, false}) {
        Device& on = device(push);
        // Windows at the end of rows: 48 + 32 channels of q, 96 + 32 of k; and whole rows of 32.
        const RopeParams latent = rotation(VKROPE_INTERLEAVED, D, D, 48, 96),
                         plain = rotation(VKROPE_HALF_SPLIT, D, D);
        const AngleTable table = must(
            AngleTable::make(on, latent, VKROPE_ANGLES_FACTORED_TEXTURE, 100));
        const AngleTable numbers = must(AngleTable::make(on, plain, VKROPE_ANGLES_COMPUTED, 100));
        Owned<DescriptorArena> arena;
        const Owned<Kernel> first = make_kernel(
            on, must(kernel_info(plain, table.layout(), VKROPE_F32, {})));
        if (!(on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
            arena = make_arena(on, first, 3);
        for (const bool key : {false, true}) {
            const std::uint32_t width = vkrope_row_channels(
                &latent, key ? latent.k_rotary_offset : latent.q_rotary_offset);
            CHECK(width == (key ? 128 : 80));
            const HostShape shape{.tokens = tokens,
                                  .heads = {heads, heads},
                                  .head_dim = {width, width},
                                  .element = VKROPE_F16,
                                  .first_position = 5};
            const Bytes in = random_elements(VKROPE_F16, tokens * heads * width, 7 + key);
            const Bytes out = rotate_by_info(on, latent, table, VKROPE_F16, key, in, {.first = 5},
                                             arena);
            CHECK(out != in);
            check_contract(latent, shape, key, in, out);
            // HostRotation derives the same widths.
            HostShape by_itself{.tokens = tokens,
                                .element = VKROPE_F16,
                                .first_position = 5,
                                .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
            by_itself.heads[key ? K : Q] = heads;
            const Rotated rotated = rotate(on, latent, by_itself, key ? Bytes{} : in,
                                           key ? in : Bytes{});
            CHECK((key ? rotated.k : rotated.q) == out);
        }
        const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 9);
        const Bytes out = rotate_by_info(on, plain, numbers, VKROPE_F32, false, in, {.first = 5},
                                         arena);
        check_contract(plain, {.tokens = tokens, .heads = {heads}, .first_position = 5}, false, in,
                       out);
    }
}

TEST_CASE(
    "kernel_info: a model with sections takes a position on each axis, and record refuses a kernel "
    "that dropped them") {
    Device& on = device();
    RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
    r.sections = {.axes = 3, .pairs = {4, 6, 6}};
    const AngleTable table = must(AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, 100));
    const std::vector<std::int32_t> ids = {1,  2,  3,  4,  5,  6,  7,  20, 21, 22, 23,
                                           24, 25, 26, 90, 80, 70, 60, 50, 40, 30};
    Buffer positions = upload(on, bytes_of(ids));
    const Bytes in = random_elements(VKROPE_F32, tokens * heads * D, 11);
    Positions where{.ids = positions.whole()};
    where.axis_stride = tokens;
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled &
          VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))  // the arena outlives its kernel
        arena = make_arena(
            on, make_kernel(on, must(kernel_info(r, table.layout(), VKROPE_F32, {}))), 1);
    const Bytes out = rotate_by_info(on, r, table, VKROPE_F32, false, in, where, arena);
    // Each pair is rotated as if all pairs had its axis.
    for (std::uint32_t axis = 0; axis < 3; ++axis) {
        RopeParams one = r;
        one.sections = {};
        const HostShape shape{.tokens = tokens,
                              .heads = {heads},
                              .positions = ids.data() + axis * tokens,
                              .position_count = tokens,
                              .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
        const Bytes alone = rotate(on, one, shape, in, {}).q;
        for (std::uint32_t row = 0; row < tokens * heads; ++row) {
            for (std::uint32_t pair = 0; pair < D / 2; ++pair) {
                if (axis_of(r.sections, pair) != axis) continue;
                for (const std::uint32_t channel : {pair, pair + D / 2}) {
                    const std::size_t at = std::size_t{row} * D + channel;
                    CHECK(stored(VKROPE_F32, out, at) == stored(VKROPE_F32, alone, at));
                }
            }
        }
    }

    KernelInfo dropped = must(kernel_info(r, table.layout(), VKROPE_F32, {}));
    dropped.sections = {};
    dropped.positions = VKROPE_POSITIONS_IDS;
    const Owned<Kernel> kernel = make_kernel(on, dropped);
    Buffer q = upload(on, in);
    Call call{.tokens = tokens};
    call.in[Q] = call.out[Q] = {.where = q.whole(), .heads = heads};
    call.positions.ids = positions.whole();
    call.angles = table.angles();
    const auto told = dispatches(kernel.get(), call);
    CHECK(told.status.code == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(std::strstr(told.status.what, "sections.axes is 3"));
}

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
