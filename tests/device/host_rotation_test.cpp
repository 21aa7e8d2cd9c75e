// SPDX-License-Identifier: MIT
// Tests HostRotation, AngleTable and submit(). The conformance suite, which records its own calls,
// tests the kernels.
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr AngleSource sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                                   VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER};

// Rotates random Q and K, and checks that both results are within the error bound of the contract.
void check(Device& on, const RopeParams& r, const HostShape& shape,
           Direction direction = VKROPE_FORWARD) {
    HostShape whole = shape;  // `shape` with the head_dim that HostRotation derives
    if (whole.head_dim[Q] == 0) whole.head_dim[Q] = vkrope_row_channels(&r, r.q_rotary_offset);
    if (whole.head_dim[K] == 0) whole.head_dim[K] = vkrope_row_channels(&r, r.k_rotary_offset);
    const auto random = [&](TensorIndex t, std::uint32_t seed) {
        const std::size_t rows = std::size_t{std::max(shape.batch, 1u)} * shape.tokens *
                                 shape.heads[t];
        return random_elements(shape.element, rows * whole.head_dim[t], seed);
    };
    const Bytes q = random(Q, 1), k = random(K, 2);
    const Rotated out = rotate(on, r, shape, q, k, direction);
    if (!q.empty()) check_contract(r, whole, false, q, out.q, direction);
    if (!k.empty()) check_contract(r, whole, true, k, out.k, direction);
}

}  // namespace

TEST_CASE("a HostRotation meets the contract for all layouts, types, angle sources and positions") {
    struct Case {
        HostShape shape;
        Direction direction = VKROPE_FORWARD;
        std::uint32_t q_offset = 0, k_offset = 0;  // the offsets of a window of 16 channels
        double factor = 1;
    };
    constexpr std::int32_t ids[] = {7, 0, -3, 4096, 1, 2, 3, 65535};
    const Case cases[] = {
        {{.batch = 3, .heads = {4, 2}, .first_position = 70000}},
        {{.batch = 3, .heads = {4, 2}, .in_place = true}, VKROPE_INVERSE, 4, 0, 1.25},
        {{.batch = 2,
          .heads = {3, 1},
          .element = VKROPE_F16,
          .layout = VKROPE_LAYOUT_BHSD,
          .positions = ids,
          .position_count = 4},
         VKROPE_FORWARD,
         0,
         16},
        {{.batch = 2,
          .heads = {5},
          .element = VKROPE_BF16,
          .layout = VKROPE_LAYOUT_SBHD,
          .positions = ids,
          .position_count = 8,
          .in_place = true}},
        {{.heads = {0, 3},
          .element = VKROPE_F16,
          .layout = VKROPE_LAYOUT_THD,
          .first_position = -2}},
        {{.heads = {2, 1}, .head_dim = {0, 48}, .mapping = VKROPE_MAPPING_GPU},
         VKROPE_INVERSE,
         8,
         32},
        // Windows at the end of rows that are wider than head_dim, as in latent attention.
        {{.heads = {3, 1}, .element = VKROPE_F16}, VKROPE_FORWARD, 48, 96},
    };
    std::size_t number = 0;
    for (const Case& of : cases) {
        for (const AngleSource source : sources) {
            CAPTURE(&of - cases);
            CAPTURE(int(source));
            HostShape shape = of.shape;
            shape.tokens = 4;
            shape.angles = source;
            const Pairing pairing = ++number % 2 ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED;
            check(device(number % 3 != 0),
                  rotation(pairing, 32, 16, of.q_offset, of.k_offset, of.factor), shape,
                  of.direction);
        }
    }
}

TEST_CASE("a table grows on demand, and its old entries keep their bits") {
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, 8, 8);
    for (const AngleSource source : sources) {
        AngleTable table = must(AngleTable::make(device(), r, source, 100));
        const std::uint32_t before = table.layout().rows;
        must(table.reach(r, 100));
        CHECK(table.layout().rows == before);
        must(table.reach(r, 101));
        CHECK(table.layout().rows == (source == VKROPE_ANGLES_COMPUTED ? before : 200));
        must(table.reach(r, 5000));
        CHECK(table.layout().rows == (source == VKROPE_ANGLES_COMPUTED ? before : 5000));
        if (source == VKROPE_ANGLES_COMPUTED) continue;
        CHECK_FALSE(table.reach(r, (std::uint64_t{1} << 31) + 7));
        CHECK(table.layout().rows == 5000);  // unchanged
        const Owned<Kernel> kernel = make_kernel(device(), {.pairing = VKROPE_HALF_SPLIT,
                                                            .rotary_dim = 8,
                                                            .tensor = {{.head_dim = 8}},
                                                            .angles = source});
        const Bytes q = random_elements(VKROPE_F32, 4 * 8, 5);
        Buffer rows = must(Buffer::make(device(), q.size()));
        must(rows.upload(q.data(), q.size()));
        const Tensor tensor{.where = rows.whole(), .heads = 1};
        const Call call{.tokens = 4,
                        .in = {tensor},
                        .out = {tensor},
                        .positions = {.first = 96},
                        .angles = table.angles()};
        run(device(), kernel, call);
        Bytes grown(q.size());
        must(rows.download(grown.data(), grown.size()));
        HostShape shape{.tokens = 4, .heads = {1}, .first_position = 96, .angles = source};
        CHECK(grown == rotate(device(), r, shape, q, {}).q);
    }
}

TEST_CASE("a HostRotation runs at new positions in each step, and its table grows") {
    constexpr std::uint32_t D = 32, tokens = 7, heads = 3;
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
        // The table grows to the size of the largest factored table; its angle source is unchanged.
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
    "functions that submit are refused in the callback of a submit, and commands recorded before "
    "stay") {
    constexpr std::uint32_t D = 32, tokens = 7, heads = 3;
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
