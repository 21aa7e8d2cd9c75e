// SPDX-License-Identifier: MIT
// Compares the answers of disjoint() with sets of bytes. For disjoint rows disjoint() may return
// false, meaning unknown, but for rows that share a byte it never returns true. For the nested
// layouts of engines disjoint() is exact.
#include "kernel/geometry/overlap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bitset>
#include <random>

namespace vkrope {

namespace {

constexpr std::size_t max_bytes = 1 << 14;
using ByteSet = std::bitset<max_bytes>;

const auto the_buffer = reinterpret_cast<VkBuffer>(std::uintptr_t{1});

// A tensor after validation, in which strides along a direction of one step are 0.
struct Placed {
    Tensor tensor;
    View view;
    std::uint32_t batch = 1, tokens = 1, pages = 1;

    TensorRows rows() {
        if (view.heads_per_group == 1) view.head = 0;
        if (view.heads == view.heads_per_group) view.group = 0;
        if (view.page_size == 0 && tokens == 1) view.token = 0;
        if (view.page_size == 0 && batch == 1) view.batch = 0;
        if (view.page_size == 1) view.token = 0;
        if (view.page_size != 0 && pages == 1) view.batch = 0;
        tensor.where = {the_buffer, view.first_byte, 0};
        return {.name = "rows",
                .tensor = tensor,
                .batch = batch,
                .tokens = tokens,
                .view = view,
                .pages = pages,
                .span = span()};
    }

    std::uint64_t span() const {
        const std::uint64_t slow = view.page_size ? pages : batch,
                            fast = view.page_size ? view.page_size : tokens;
        return (slow - 1) * view.batch + (fast - 1) * view.token +
               (view.heads / view.heads_per_group - 1) * view.group +
               (view.heads_per_group - 1) * view.head + view.head_dim;
    }

    // Adds the bytes of all rows; returns false if two rows share a byte.
    bool bytes(ByteSet& set) const {
        bool once = true;
        const std::uint32_t slow = view.page_size ? pages : batch,
                            fast = view.page_size ? view.page_size : tokens;
        for (std::uint64_t s = 0; s < slow; ++s) {
            for (std::uint64_t f = 0; f < fast; ++f) {
                for (std::uint64_t h = 0; h < view.heads; ++h) {
                    const std::uint64_t row = s * view.batch + f * view.token +
                                              h / view.heads_per_group * view.group +
                                              h % view.heads_per_group * view.head;
                    for (std::uint64_t i = 0; i < std::uint64_t{view.head_dim} * view.element_bytes;
                         ++i) {
                        const std::uint64_t byte = view.first_byte + row * view.element_bytes + i;
                        REQUIRE(byte < max_bytes);
                        once = once && !set[byte];
                        set[byte] = true;
                    }
                }
            }
        }
        return once;
    }
};

struct Random {
    std::mt19937 bits;
    std::uint32_t below(std::uint32_t bound) { return std::uint32_t(bits() % bound); }
    std::uint32_t one_to(std::uint32_t most) { return 1 + below(most); }
};

// Returns random strides, often nested, so that both answers occur.
Placed any_rows(Random& random) {
    Placed r;
    r.view.element_bytes = random.below(2) ? 2 : 4;
    r.view.head_dim = random.one_to(4);
    r.view.heads_per_group = random.one_to(3);
    r.view.heads = r.view.heads_per_group * random.one_to(2);
    r.batch = random.one_to(3);
    r.tokens = random.one_to(4);
    if (random.below(5) == 0) {
        r.view.page_size = random.one_to(3);
        r.pages = random.one_to(3);
    }
    std::uint64_t* order[] = {&r.view.head, &r.view.group, &r.view.token, &r.view.batch};
    std::shuffle(std::begin(order), std::end(order), random.bits);
    std::uint64_t covered = r.view.head_dim;
    for (std::uint64_t* stride : order) {
        *stride = random.below(8) == 0 ? random.below(24)
                                       : covered + (random.below(2) ? 0 : random.below(12));
        covered = *stride * random.one_to(3);
        if (covered > 90) covered = random.one_to(90);
    }
    r.view.first_byte = random.below(150) * r.view.element_bytes;
    return r;
}

}  // namespace

TEST_CASE("disjoint() is never true for rows that share a byte: 100 000 random pairs") {
    Random random{std::mt19937(72)};
    std::uint32_t apart = 0, unknown = 0, shared = 0;
    for (int round = 0; round < 100'000; ++round) {
        Placed a = any_rows(random), b = any_rows(random);
        if (random.below(4) == 0) {  // the same strides, shifted: like planes and packed heads
            const std::uint64_t first = b.view.first_byte / b.view.element_bytes;
            b = a;
            b.view.first_byte = first * b.view.element_bytes;
        }
        const TensorRows rows_a = a.rows(), rows_b = b.rows();
        ByteSet set_a, set_b;
        a.bytes(set_a);
        b.bytes(set_b);
        const bool share = (set_a & set_b).any(), says_disjoint = disjoint(rows_a, rows_b);
        REQUIRE(says_disjoint == disjoint(rows_b, rows_a));
        REQUIRE_FALSE((says_disjoint && share));
        (share ? shared : says_disjoint ? apart : unknown)++;
    }
    MESSAGE(apart << " told apart, " << unknown << " apart without being told so, " << shared
                  << " share bytes");
    CHECK(apart > 20'000);
    CHECK(shared > 20'000);
}

TEST_CASE("rows in two buffers are disjoint") {
    Placed a, b;
    a.view.head_dim = b.view.head_dim = 8;
    CHECK_FALSE(disjoint(a.rows(), b.rows()));
    TensorRows rows_b = b.rows();
    b.tensor.where.buffer = reinterpret_cast<VkBuffer>(std::uintptr_t{2});
    CHECK(disjoint(a.rows(), rows_b));
}

TEST_CASE("check_no_self_overlap refuses all rows that share a byte: 100 000 random tensors") {
    Random random{std::mt19937(73)};
    std::uint32_t passed = 0, refused = 0, refused_in_vain = 0;
    for (int round = 0; round < 100'000; ++round) {
        Placed r = any_rows(random);
        const TensorRows rows = r.rows();
        ByteSet set;
        const bool once = r.bytes(set), passes = bool(check_no_self_overlap(rows));
        REQUIRE_FALSE((passes && !once));
        (passes ? passed : once ? refused_in_vain : refused)++;
    }
    MESSAGE(passed << " passed, " << refused << " refused, " << refused_in_vain
                   << " refused though no row overlaps another");
    CHECK(passed > 20'000);
    CHECK(refused > 20'000);
}

// ---- Layouts of engines: disjoint() is exact for all of these ----

namespace {

// Heads [first, first + heads) of all heads of a layout.
enum class Nested { bshd, bhsd, sbhd, planes_bshd, planes_bhsd, grouped };

Placed part_of(Nested layout, std::uint32_t B, std::uint32_t S, std::uint32_t H, std::uint32_t D,
               std::uint32_t first, std::uint32_t heads, std::uint64_t gap) {
    Placed r;
    r.batch = B;
    r.tokens = S;
    View& v = r.view;
    v.head_dim = D;
    v.element_bytes = 2;
    v.heads = v.heads_per_group = heads;
    std::uint64_t offset = 0;
    switch (layout) {
        case Nested::bshd:
            v.head = D, v.token = H * D + gap, v.batch = S * v.token, offset = first * v.head;
            break;
        case Nested::bhsd:
            v.token = D, v.head = S * D + gap, v.batch = H * v.head, offset = first * v.head;
            break;
        case Nested::sbhd:
            v.head = D, v.batch = H * D + gap, v.token = B * v.batch, offset = first * v.head;
            break;
        // [3, B, S, H, D] and [3, B, H, S, D]: `first` is the plane here.
        case Nested::planes_bshd:
            v.head = D, v.token = H * D, v.batch = S * v.token,
            offset = first * (B * v.batch + gap);
            break;
        case Nested::planes_bhsd:
            v.token = D, v.head = S * D, v.batch = H * v.head, offset = first * (B * v.batch + gap);
            break;
        // [B, S, groups of H, D]: `heads` of each group, from `first` on; 2 groups.
        case Nested::grouped:
            v.heads = 2 * heads;
            v.head = D, v.group = H * D + gap, v.token = 2 * v.group, v.batch = S * v.token,
            offset = first * v.head;
            break;
    }
    v.first_byte = 64 + offset * 2;
    return r;
}

}  // namespace

TEST_CASE(
    "disjoint() is exact for packed QKV, planes, groups, and the heads of bshd, bhsd and sbhd "
    "tensors") {
    constexpr std::uint32_t H = 6, token_counts[] = {1, 2, 5}, widths[] = {2, 3, 8},
                            gaps[] = {0, 1, 7}, head_counts[] = {1, 2, 4};
    std::uint32_t pairs = 0, share_bytes = 0;
    for (std::uint32_t i = 0; i < 6 * 2 * 3 * 3 * 3 * H * H * 3; ++i) {
        std::uint32_t rest = i;
        const auto one_of = [&](std::uint32_t count) {
            const std::uint32_t digit = rest % count;
            rest /= count;
            return digit;
        };
        const auto layout = Nested(one_of(6));
        const std::uint32_t B = 1 + one_of(2), S = token_counts[one_of(3)], D = widths[one_of(3)],
                            gap = gaps[one_of(3)], a_first = one_of(H), b_first = one_of(H),
                            some = head_counts[one_of(3)];
        const bool planes = layout == Nested::planes_bshd || layout == Nested::planes_bhsd;
        const std::uint32_t a_heads = planes ? H : some, b_heads = planes ? H : 2;
        if (planes ? a_first > 2 || b_first > 2 || some > 1
                   : a_first + a_heads > H || b_first + b_heads > H)
            continue;
        Placed a = part_of(layout, B, S, H, D, a_first, a_heads, gap);
        Placed b = part_of(layout, B, S, H, D, b_first, b_heads, gap);
        const TensorRows rows_a = a.rows(), rows_b = b.rows();
        ByteSet set_a, set_b;
        REQUIRE(a.bytes(set_a));
        REQUIRE(b.bytes(set_b));
        const bool share = (set_a & set_b).any();
        CAPTURE(int(layout));
        CAPTURE(B);
        CAPTURE(S);
        CAPTURE(D);
        CAPTURE(gap);
        CAPTURE(a_first);
        CAPTURE(b_first);
        CAPTURE(a_heads);
        REQUIRE(disjoint(rows_a, rows_b) == !share);
        REQUIRE(check_no_self_overlap(rows_a));
        ++pairs;
        share_bytes += share;
    }
    CHECK(pairs > 10'000);
    CHECK(share_bytes > pairs / 5);
    CHECK(share_bytes < pairs * 4 / 5);
}

TEST_CASE(
    "disjoint() is exact for pages of K and of V: [pages, 2, page_size, heads, D], and keys beside "
    "the new tokens that fill them") {
    for (const std::uint32_t page_size : {1u, 4u}) {
        for (const std::uint32_t heads : {1u, 3u}) {
            constexpr std::uint32_t D = 4, pages = 3;
            Placed k, v;
            for (Placed* r : {&k, &v}) {
                r->view = {.first_byte = 128,
                           .element_bytes = 2,
                           .head_dim = D,
                           .heads = heads,
                           .heads_per_group = heads};
                r->view.head = D;
                r->view.token = heads * D;
                r->view.batch = 2 * page_size * heads * D;
                r->view.page_size = page_size;
                r->pages = pages;
            }
            v.view.first_byte += page_size * heads * D * 2;
            CHECK(disjoint(k.rows(), v.rows()));
            v.view.first_byte -= 2;
            CHECK_FALSE(disjoint(k.rows(), v.rows()));
            Placed fresh;
            fresh.view = {.first_byte = 128 + k.span() * 2, .element_bytes = 2, .head_dim = D};
            CHECK(disjoint(k.rows(), fresh.rows()));
            fresh.view.first_byte -= 2;
            CHECK_FALSE(disjoint(k.rows(), fresh.rows()));
        }
    }
}

}  // namespace vkrope
