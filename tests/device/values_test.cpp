// SPDX-License-Identifier: MIT
// V together with Q and K: its rows arrive bit for bit, or converted, where the caller says, and Q
// and K are the same as without it.
#include <algorithm>
#include <array>
#include <set>

#include "meaning.hpp"
#include "value_trial.hpp"

namespace vkrope::test {

namespace {

Bytes narrowed(Element to, Element from, const Bytes& rows) {
    if (to == from) return rows;
    const std::size_t count = rows.size() / element_bytes(from);
    Bytes out(count * element_bytes(to));
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits = reference::narrow(type_of(to), value(from, rows, i));
        std::memcpy(out.data() + i * element_bytes(to), &bits, element_bytes(to));
    }
    return out;
}

/// One value of each dimension: push, shape, elements, place, mapping, buffers.
using Choice = std::array<std::uint32_t, 6>;

/// A subset of `all` with every pair of values of two dimensions that occurs in `all`.
std::vector<Choice> of_every_pair(const std::vector<Choice>& all) {
    const auto each_pair = [](const Choice& choice, const auto& visit) {
        for (std::uint32_t a = 0; a < choice.size(); ++a) {
            for (std::uint32_t b = a + 1; b < choice.size(); ++b)
                visit(std::array{a, choice[a], b, choice[b]});
        }
    };
    std::set<std::array<std::uint32_t, 4>> missing;
    for (const Choice& choice : all)
        each_pair(choice, [&](const auto& pair) { missing.insert(pair); });
    std::vector<Choice> some;
    while (!missing.empty()) {
        const Choice* best = nullptr;
        std::size_t most = 0;
        for (const Choice& choice : all) {
            std::size_t count = 0;
            each_pair(choice, [&](const auto& pair) { count += missing.count(pair); });
            if (count > most) most = count, best = &choice;
        }
        REQUIRE(best);
        each_pair(*best, [&](const auto& pair) { missing.erase(pair); });
        some.push_back(*best);
    }
    return some;
}

Rows random_rows(const Shape& shape, Element in, Element v_in) {
    return {random_elements(in, std::size_t{tokens} * shape.q_heads * shape.head_dim, 1),
            random_elements(in, std::size_t{tokens} * shape.k_heads * shape.head_dim, 2),
            random_elements(v_in, std::size_t{tokens} * shape.v_heads * shape.v_dim, 3)};
}

AngleTable table_for(Device& on, const Shape& shape) {
    return must(AngleTable::make(on, rotation(VKROPE_HALF_SPLIT, shape.head_dim, shape.rotary_dim),
                                 VKROPE_ANGLES_FACTORED_TEXTURE, tokens - 1));
}

}  // namespace

TEST_CASE("V arrives as it is, or converted, beside Q and K that are as without it") {
    const Shape shapes[] = {
        {.rotary_dim = 32},
        {.head_dim = 80, .rotary_dim = 80, .v_dim = 80, .heads_known = true},
        {.head_dim = 96, .rotary_dim = 48, .v_dim = 32},
        {.head_dim = 32, .rotary_dim = 32, .v_dim = 72, .v_heads = 6, .heads_known = true},
        {.k_heads = 4, .v_heads = 1},
        {.head_dim = 20,
         .rotary_dim = 10,
         .v_dim = 20,
         .q_heads = 12,
         .k_heads = 12,
         .v_heads = 12,
         .heads_known = true},
        {.head_dim = 9, .rotary_dim = 8, .v_dim = 9, .q_heads = 3, .k_heads = 1, .v_heads = 1}};
    const struct {
        Element in, v_in, out, v_out;
    } elements[] = {{VKROPE_F32, VKROPE_F32, VKROPE_F32, VKROPE_F32},
                    {VKROPE_F16, VKROPE_F16, VKROPE_F16, VKROPE_F16},
                    {VKROPE_F32, VKROPE_F32, VKROPE_F16, VKROPE_BF16},
                    {VKROPE_BF16, VKROPE_F32, VKROPE_BF16, VKROPE_F16},
                    {VKROPE_F16, VKROPE_BF16, VKROPE_F32, VKROPE_BF16}};
    constexpr Place places[] = {Place::apart, Place::packed, Place::packed_in_place,
                                Place::heads_first, Place::paged};
    constexpr Mapping mappings[] = {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU};
    constexpr std::uint32_t limits[] = {0, 8, 5};
    std::vector<Choice> all;
    for (std::uint32_t push = 0; push < 2; ++push) {
        for (std::uint32_t shape = 0; shape < std::size(shapes); ++shape) {
            for (std::uint32_t element = 0; element < std::size(elements); ++element) {
                for (std::uint32_t place = 0; place < std::size(places); ++place) {
                    const auto& [in, v_in, out, v_out] = elements[element];
                    const bool one_type = in == out && v_in == v_out && in == v_in;
                    if ((places[place] == Place::packed && in != v_in) ||
                        (places[place] == Place::packed_in_place && !one_type))
                        continue;
                    for (std::uint32_t mapping = 0; mapping < std::size(mappings); ++mapping) {
                        for (std::uint32_t limit = 0; limit < std::size(limits); ++limit) {
                            if (limits[limit] == 5 && places[place] == Place::paged)
                                continue;  // slots need the shared dispatch of Q and K
                            all.push_back({push, shape, element, place, mapping, limit});
                        }
                    }
                }
            }
        }
    }
    // Creating pipelines is slow. The sweep and the conformance checks cover other combinations.
    const std::vector<Choice> some = of_every_pair(all);
    std::set<std::uint32_t> shapes_seen, elements_seen;
    std::uint64_t joined = 0, alone = 0;
    for (std::size_t i = 0; i < some.size(); i += sweep_share()) {
        const auto& [push, shape_index, element, place, mapping, limit] = some[i];
        Device& on = device(push == 0);
        const Shape& shape = shapes[shape_index];
        const auto& [in, v_in, out, v_out] = elements[element];
        CAPTURE(push);
        CAPTURE(shape_index);
        CAPTURE(element);
        CAPTURE(place);
        CAPTURE(mapping);
        CAPTURE(limits[limit]);
        const Rows given = random_rows(shape, in, v_in);
        const AngleTable table = table_for(on, shape);
        Trial trial{.shape = shape,
                    .in = in,
                    .v_in = v_in,
                    .out = out,
                    .v_out = v_out,
                    .place = places[place],
                    .mapping = mappings[mapping],
                    .limits = {.storage_buffers = limits[limit]}};
        const Owned<Kernel> kernel = kernel_for(on, trial);
        const Outcome with = tried(on, kernel, trial, table, given);
        // The call without V; and once per shape and per set of elements, a kernel without V.
        trial.v_called = false;
        const Outcome without = tried(on, kernel, trial, table, given);
        CHECK(with.rows.q == without.rows.q);
        CHECK(with.rows.k == without.rows.k);
        CHECK(without.outside == 1);  // the last token's position, once
        const bool new_shape = shapes_seen.insert(shape_index).second,
                   new_elements = elements_seen.insert(element).second;
        if (new_shape || new_elements) {
            trial.with_v = false;
            const Outcome plain = tried(on, kernel_for(on, trial), trial, table, given);
            CHECK(with.rows.q == plain.rows.q);
            CHECK(with.rows.k == plain.rows.k);
            CHECK(plain.dispatches == without.dispatches);
        }
        CHECK(with.rows.v == narrowed(v_out, v_in, given.v));
        CHECK(with.outside == 1);
        CHECK(without.rows.q != narrowed(out, in, given.q));
        const bool like_k = shape.v_dim == shape.head_dim && shape.v_heads == shape.k_heads;
        // Q, K, V, slots and the counter are 8 buffers.
        const bool joins = trial.place == Place::packed_in_place || (like_k && limits[limit] != 5);
        CHECK(with.dispatches == without.dispatches + (joins ? 0 : 1));
        ++(joins ? joined : alone);
    }
    const std::uint64_t tried_of_all = joined + alone;
    MESSAGE(tried_of_all << " of " << all.size() << " combinations: " << joined
                         << " calls with V beside K, " << alone
                         << " with V in a dispatch of its own");
    CHECK(joined > 0);
    CHECK(alone > 0);
}

TEST_CASE(
    "caches of K and V of two lengths, and V without K: what one cache lacks is outside for both, "
    "and stored nowhere") {
    Device& on = device();
    const struct {
        Shape shape;
        Element element;
    } kinds[] = {{{.head_dim = 32, .rotary_dim = 32, .v_dim = 32}, VKROPE_F16},
                 {{.head_dim = 32, .rotary_dim = 16, .v_dim = 48, .v_heads = 1}, VKROPE_F32}};
    for (const auto& [shape, element] : kinds) {
        const AngleTable table = table_for(on, shape);
        const Rows given = random_rows(shape, element, element);
        Trial trial{.shape = shape,
                    .in = element,
                    .v_in = element,
                    .out = element,
                    .v_out = element,
                    .with_v = false};
        trial.mapping = VKROPE_MAPPING_CPU;
        const Rows rotated = tried(on, kernel_for(on, trial), trial, table, given).rows;
        trial.with_v = true;
        trial.place = Place::paged;
        const struct {
            std::uint32_t k_pages, v_pages;
            bool q, k;
        } calls[] = {{5, 3, true, true},  {2, 5, true, true},  {5, 3, false, true},
                     {2, 5, false, true}, {5, 3, true, false}, {1, 5, true, false},
                     {1, 4, false, false}};
        for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
            trial.mapping = mapping;
            const Owned<Kernel> kernel = kernel_for(on, trial);
            for (const auto& [k_pages, v_pages, q, k] : calls) {
                CAPTURE(shape.v_dim);
                CAPTURE(int(mapping));
                CAPTURE(k_pages);
                CAPTURE(v_pages);
                CAPTURE(q);
                CAPTURE(k);
                trial.q_called = q;
                trial.k_called = k;
                trial.k_pages = k_pages;
                trial.v_pages = v_pages;
                const Outcome got = tried(on, kernel, trial, table, given);
                const std::uint32_t held = (k ? std::min(k_pages, v_pages) : v_pages) * page_size;
                Bytes k_memory(got.k_memory.size(), std::byte{0x5a}),
                    v_memory(got.v_memory.size(), std::byte{0x5a});
                const std::size_t k_row = rotated.k.size() / tokens,
                                  v_row = given.v.size() / tokens;
                std::uint32_t outside = 0;
                for (std::uint32_t t = 0; t < tokens; ++t) {
                    const auto slot = std::uint32_t(slot_of(t));
                    outside += slot >= held ||
                               t == tokens - 1;  // whose position is outside the table
                    if (slot >= held) continue;
                    if (k) move(k_memory, slot * k_row, rotated.k, t * k_row, k_row);
                    move(v_memory, slot * v_row, given.v, t * v_row, v_row);
                }
                CHECK(got.k_memory == k_memory);
                CHECK(got.v_memory == v_memory);
                CHECK(got.outside == outside);
                if (q) CHECK(got.rows.q == rotated.q);
            }
        }
    }
}

}  // namespace vkrope::test
