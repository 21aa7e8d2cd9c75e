// SPDX-License-Identifier: MIT
// HostRotation and AngleTable, on one device of each kind. The conformance suite, which describes
// its calls itself, tests the kernels.
#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr AngleSource sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                                   VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER};

// Rotates random Q and K, and checks both against the contract.
void check(Device& on, const RopeParams& r, const HostShape& shape,
           Direction direction = VKROPE_FORWARD) {
    HostShape whole = shape;  // with the widths that HostRotation derives
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

TEST_CASE("a HostRotation keeps the contract for every layout, type, source and set of positions") {
    struct Case {
        HostShape shape;
        Direction direction = VKROPE_FORWARD;
        std::uint32_t q_offset = 0, k_offset = 0;  // of a window of 16 channels
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
        // Windows at the end of rows that are wider than head_dim, as of latent attention.
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

TEST_CASE("a table grows on demand, and keeps the bits that it has") {
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

}  // namespace vkrope::test
