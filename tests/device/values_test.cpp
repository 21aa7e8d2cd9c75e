// SPDX-License-Identifier: MIT
// V together with Q and K: its rows arrive bit for bit, or converted, where the caller says, and Q
// and K are the same as without it.
#include <algorithm>
#include <array>
#include <set>

#include "support/recording.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t tokens = 21, pages = 5, page_size = 6;  // 30 slots for 21 tokens

/// Layout of the rows of K and V.
enum class Place { apart, packed, packed_in_place, heads_first, paged };

struct Shape {
    std::uint32_t head_dim = 64, rotary_dim = 64, v_dim = 64, q_heads = 4, k_heads = 2, v_heads = 2;
    bool heads_known = false;
};

/// Three tensors in host memory, in the order [tokens, heads, head_dim].
struct Rows {
    Bytes q, k, v;
};

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

void move(Bytes& to, std::size_t to_at, const Bytes& from, std::size_t from_at, std::size_t bytes) {
    REQUIRE(from_at + bytes <= from.size());
    REQUIRE(to_at + bytes <= to.size());
    std::memcpy(to.data() + to_at, from.data() + from_at, bytes);
}

/// A tensor on the device with any layout, and the layout for the host.
struct Field {
    Tensor tensor;
    std::size_t row_bytes = 0, first = 0, token_step = 0, head_step = 0;  // bytes
};

Field field(const Buffer& buffer, Element element, std::uint32_t head_dim, std::uint32_t heads,
            std::size_t first_element, std::size_t token_step, std::size_t head_step,
            std::size_t end_element) {
    const std::size_t size = element_bytes(element);
    Field of;
    of.tensor = {.where = part(buffer, first_element * size, (end_element - first_element) * size),
                 .heads = heads,
                 .token_stride = std::int64_t(token_step),
                 .head_stride = std::int64_t(head_step),
                 .buffer_size = buffer.whole().range};
    of.row_bytes = head_dim * size;
    of.first = first_element * size;
    of.token_step = token_step * size;
    of.head_step = head_step * size;
    return of;
}

constexpr std::size_t nowhere = SIZE_MAX;

/// [tokens, heads, head_dim] to and from rows that start at these bytes; zeros for rows that are
/// nowhere.
Bytes gathered(const Field& of, std::uint32_t heads, const Bytes& memory,
               const std::vector<std::size_t>& rows_at) {
    Bytes out(rows_at.size() * heads * of.row_bytes);
    for (std::size_t t = 0; t < rows_at.size(); ++t) {
        if (rows_at[t] == nowhere) continue;
        for (std::uint32_t h = 0; h < heads; ++h)
            move(out, (t * heads + h) * of.row_bytes, memory, rows_at[t] + h * of.head_step,
                 of.row_bytes);
    }
    return out;
}
void scattered(const Field& of, std::uint32_t heads, Bytes& memory, const Bytes& rows) {
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::uint32_t h = 0; h < heads; ++h)
            move(memory, of.first + t * of.token_step + h * of.head_step, rows,
                 (t * heads + h) * of.row_bytes, of.row_bytes);
    }
}

struct Outcome {
    Rows rows;
    Bytes k_memory, v_memory;  // the whole buffers of their outputs
    std::uint64_t dispatches = 0;
    std::uint32_t outside = 0;
};

struct Trial {
    Shape shape;
    Element in = Element::f32, v_in = Element::f32, out = Element::f32, v_out = Element::f32;
    Place place = Place::apart;
    Mapping mapping = Mapping::by_device;
    ReportedLimits limits = {};
    bool with_v = true;
    bool q_called = true, k_called = true, v_called = true;  // in the call: the kernel has them
    std::uint32_t k_pages = pages, v_pages = pages;          // of the caches
};

/// Start of each token's rows, in bytes.
std::vector<std::size_t> packed_rows(const Field& of) {
    std::vector<std::size_t> at(tokens);
    for (std::size_t t = 0; t < tokens; ++t) at[t] = of.first + t * of.token_step;
    return at;
}

std::int32_t slot_of(std::uint32_t token) {
    return std::int32_t(token * 7 % (pages * page_size));
}

/// The kernel of a trial, and of all trials with the same shape, elements, mapping and limits, if
/// both or neither write to a cache.
Owned<Kernel> kernel_for(Device& on, const Trial& trial) {
    const Shape& shape = trial.shape;
    const KernelInfo info{
        .rotary_dim = shape.rotary_dim,
        .q = {trial.in, trial.out, shape.head_dim, 0},
        .k = {trial.in, trial.out, shape.head_dim, 0},
        .v = trial.with_v ? HeadFormat{trial.v_in, trial.v_out, shape.v_dim, 0} : HeadFormat{},
        .mapping = trial.mapping,
        .scatter_k = trial.place == Place::paged,
        .q_heads = shape.heads_known ? shape.q_heads : 0,
        .k_heads = shape.heads_known ? shape.k_heads : 0,
        .v_heads = shape.heads_known && trial.with_v ? shape.v_heads : 0};
    return Owned<Kernel>(must(create(reporting(on, trial.limits), info)));
}

Outcome tried(Device& on, const Owned<Kernel>& kernel, const Trial& trial, const AngleTable& table,
              const Rows& given) {
    const Shape& shape = trial.shape;
    const bool paged = trial.place == Place::paged;
    const std::uint32_t D = shape.head_dim, V = shape.v_dim, Q = shape.q_heads, K = shape.k_heads,
                        H = shape.v_heads;
    const bool packed = trial.place == Place::packed || trial.place == Place::packed_in_place;

    // Inputs: one buffer of [tokens, Q + K + V heads, head_dim], or three.
    Field q_in, k_in, v_in;
    std::vector<Buffer> buffers;
    buffers.reserve(8);
    const auto make = [&](const Bytes& content) -> Buffer& {
        buffers.push_back(upload(on, content));
        return buffers.back();
    };
    const auto separate = [&](Element element, std::uint32_t head_dim, std::uint32_t heads,
                              const Bytes& rows, std::size_t& index) {
        const std::size_t row = std::size_t{heads} * head_dim;
        index = buffers.size();
        Bytes words = rows;
        words.resize((words.size() + 3) / 4 * 4);
        Buffer& buffer = make(words);
        return field(buffer, element, head_dim, heads, 0, row, head_dim, tokens * row);
    };
    std::size_t q_at = 0, k_at = 0, v_at = 0;
    if (packed) {
        const std::size_t row = std::size_t{Q + K} * D + std::size_t{H} * V,
                          size = element_bytes(trial.in);
        Bytes all((tokens * row * size + 3) / 4 * 4);
        Buffer& buffer = make(all);
        q_in = field(buffer, trial.in, D, Q, 0, row, D, tokens * row);
        k_in = field(buffer, trial.in, D, K, std::size_t{Q} * D, row, D, tokens * row);
        v_in = field(buffer, trial.in, V, H, std::size_t{Q + K} * D, row, V, tokens * row);
        scattered(q_in, Q, all, given.q);
        scattered(k_in, K, all, given.k);
        scattered(v_in, H, all, given.v);
        must(buffer.upload(all.data(), all.size()));
    } else {
        q_in = separate(trial.in, D, Q, given.q, q_at);
        k_in = separate(trial.in, D, K, given.k, k_at);
        v_in = separate(trial.v_in, V, H, given.v, v_at);
    }

    // Outputs.
    Field q_out = q_in, k_out = k_in, v_out = v_in;
    const auto empty = [&](Element element, std::size_t elements) -> Buffer& {
        return make(Bytes((elements * element_bytes(element) + 3) / 4 * 4, std::byte{0x5a}));
    };
    if (trial.place != Place::packed_in_place) {
        q_at = buffers.size();
        q_out = field(empty(trial.out, std::size_t{tokens} * Q * D), trial.out, D, Q, 0,
                      std::size_t{Q} * D, D, std::size_t{tokens} * Q * D);
        k_at = buffers.size();
        const auto cache = [&](Element element, std::uint32_t head_dim, std::uint32_t heads,
                               std::uint32_t cache_pages) {
            const bool by_head = trial.place == Place::heads_first;
            const std::size_t held = paged ? cache_pages * page_size : tokens;
            const std::size_t end = held * heads * head_dim;
            return field(empty(element, end), element, head_dim, heads, 0,
                         by_head ? head_dim : std::size_t{heads} * head_dim,
                         by_head ? held * head_dim : head_dim, end);
        };
        k_out = cache(trial.out, D, K, trial.k_pages);
        v_at = buffers.size();
        v_out = cache(trial.v_out, V, H, trial.v_pages);
    }
    std::vector<std::size_t> paged_cache = packed_rows(k_out), v_rows = packed_rows(v_out);
    Call call{.tokens = tokens,
              .q_in = q_in.tensor,
              .q_out = q_out.tensor,
              .k_in = k_in.tensor,
              .k_out = k_out.tensor,
              .angles = table.angles()};
    if (!trial.q_called) call.q_in = call.q_out = {};
    if (!trial.k_called) call.k_in = call.k_out = {};
    if (trial.with_v && trial.v_called) {
        call.v_in = v_in.tensor;
        call.v_out = v_out.tensor;
    }
    Buffer counter = upload(on, Bytes(4));
    call.out_of_range = counter.whole();
    Buffer slots = upload(on, Bytes(tokens * 4));
    if (paged) {
        std::vector<std::int32_t> numbers(tokens);
        for (std::uint32_t t = 0; t < tokens; ++t) {
            numbers[t] = slot_of(t);
            const auto at = std::size_t(numbers[t]);
            paged_cache[t] = at < trial.k_pages * page_size ? at * k_out.token_step : nowhere;
            v_rows[t] = at < trial.v_pages * page_size ? at * v_out.token_step : nowhere;
        }
        must(slots.upload(numbers.data(), tokens * 4));
        call.paged_cache = {.slot_mapping = slots.whole(), .page_size = page_size};
        call.k_out.token_stride = call.v_out.token_stride = 0;
    }
    Outcome outcome;
    outcome.dispatches = must(dispatches(kernel.get(), call));
    test::run(on, kernel, call);
    const auto content = [&](std::size_t at) {
        return download(buffers[at], buffers[at].whole().range);
    };
    outcome.rows.q = gathered(q_out, Q, content(q_at), packed_rows(q_out));
    outcome.k_memory = content(k_at);
    outcome.v_memory = content(v_at);
    outcome.rows.k = gathered(k_out, K, outcome.k_memory, paged_cache);
    outcome.rows.v = gathered(v_out, H, outcome.v_memory, v_rows);
    must(counter.download(&outcome.outside, 4));
    return outcome;
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
    return must(AngleTable::make(on,
                                 rotation(Pairing::half_split, shape.head_dim, shape.rotary_dim),
                                 AngleSource::factored_texture, tokens - 1));
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
    } elements[] = {{Element::f32, Element::f32, Element::f32, Element::f32},
                    {Element::f16, Element::f16, Element::f16, Element::f16},
                    {Element::f32, Element::f32, Element::f16, Element::bf16},
                    {Element::bf16, Element::f32, Element::bf16, Element::f16},
                    {Element::f16, Element::bf16, Element::f32, Element::bf16}};
    constexpr Place places[] = {Place::apart, Place::packed, Place::packed_in_place,
                                Place::heads_first, Place::paged};
    constexpr Mapping mappings[] = {Mapping::gpu, Mapping::cpu};
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
    } kinds[] = {{{.head_dim = 32, .rotary_dim = 32, .v_dim = 32}, Element::f16},
                 {{.head_dim = 32, .rotary_dim = 16, .v_dim = 48, .v_heads = 1}, Element::f32}};
    for (const auto& [shape, element] : kinds) {
        const AngleTable table = table_for(on, shape);
        const Rows given = random_rows(shape, element, element);
        Trial trial{.shape = shape,
                    .in = element,
                    .v_in = element,
                    .out = element,
                    .v_out = element,
                    .with_v = false};
        trial.mapping = Mapping::cpu;
        const Rows rotated = tried(on, kernel_for(on, trial), trial, table, given).rows;
        trial.with_v = true;
        trial.place = Place::paged;
        const struct {
            std::uint32_t k_pages, v_pages;
            bool q, k;
        } calls[] = {{5, 3, true, true},  {2, 5, true, true},  {5, 3, false, true},
                     {2, 5, false, true}, {5, 3, true, false}, {1, 5, true, false},
                     {1, 4, false, false}};
        for (const Mapping mapping : {Mapping::gpu, Mapping::cpu}) {
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
