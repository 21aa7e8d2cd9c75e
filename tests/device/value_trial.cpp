// SPDX-License-Identifier: MIT
#include "value_trial.hpp"

#include "meaning.hpp"

namespace vkrope::test {

void move(Bytes& to, std::size_t to_at, const Bytes& from, std::size_t from_at, std::size_t bytes) {
    REQUIRE(from_at + bytes <= from.size());
    REQUIRE(to_at + bytes <= to.size());
    std::memcpy(to.data() + to_at, from.data() + from_at, bytes);
}

namespace {

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

/// Start of each token's rows, in bytes.
std::vector<std::size_t> packed_rows(const Field& of) {
    std::vector<std::size_t> at(tokens);
    for (std::size_t t = 0; t < tokens; ++t) at[t] = of.first + t * of.token_step;
    return at;
}

}  // namespace

Owned<Kernel> kernel_for(Device& on, const Trial& trial) {
    const Shape& shape = trial.shape;
    const KernelInfo info{
        .pairing = VKROPE_HALF_SPLIT,
        .rotary_dim = shape.rotary_dim,
        .tensor = {{.in = trial.in,
                    .out = trial.out,
                    .head_dim = shape.head_dim,
                    .heads = shape.heads_known ? shape.q_heads : 0},
                   {.in = trial.in,
                    .out = trial.out,
                    .head_dim = shape.head_dim,
                    .heads = shape.heads_known ? shape.k_heads : 0},
                   trial.with_v ? TensorInfo{trial.v_in, trial.v_out, shape.v_dim, 0,
                                             shape.heads_known ? shape.v_heads : 0}
                                : TensorInfo{}},
        .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
        .mapping = trial.mapping,
        .scatter_kv = trial.place == Place::paged};
    return Owned<Kernel>(must(create(reporting(on, trial.limits), info)));
}

Outcome tried(Device& on, const Owned<Kernel>& kernel, const Trial& trial, const AngleTable& table,
              const Rows& given) {
    const Shape& shape = trial.shape;
    const bool paged = trial.place == Place::paged;
    const std::uint32_t D = shape.head_dim, Dv = shape.v_dim, Hq = shape.q_heads,
                        Hk = shape.k_heads, H = shape.v_heads;
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
        const std::size_t row = std::size_t{Hq + Hk} * D + std::size_t{H} * Dv,
                          size = element_bytes(trial.in);
        Bytes all((tokens * row * size + 3) / 4 * 4);
        Buffer& buffer = make(all);
        q_in = field(buffer, trial.in, D, Hq, 0, row, D, tokens * row);
        k_in = field(buffer, trial.in, D, Hk, std::size_t{Hq} * D, row, D, tokens * row);
        v_in = field(buffer, trial.in, Dv, H, std::size_t{Hq + Hk} * D, row, Dv, tokens * row);
        scattered(q_in, Hq, all, given.q);
        scattered(k_in, Hk, all, given.k);
        scattered(v_in, H, all, given.v);
        must(buffer.upload(all.data(), all.size()));
    } else {
        q_in = separate(trial.in, D, Hq, given.q, q_at);
        k_in = separate(trial.in, D, Hk, given.k, k_at);
        v_in = separate(trial.v_in, Dv, H, given.v, v_at);
    }

    // Outputs.
    Field q_out = q_in, k_out = k_in, v_out = v_in;
    const auto empty = [&](Element element, std::size_t elements) -> Buffer& {
        return make(Bytes((elements * element_bytes(element) + 3) / 4 * 4, std::byte{0x5a}));
    };
    if (trial.place != Place::packed_in_place) {
        q_at = buffers.size();
        q_out = field(empty(trial.out, std::size_t{tokens} * Hq * D), trial.out, D, Hq, 0,
                      std::size_t{Hq} * D, D, std::size_t{tokens} * Hq * D);
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
        k_out = cache(trial.out, D, Hk, trial.k_pages);
        v_at = buffers.size();
        v_out = cache(trial.v_out, Dv, H, trial.v_pages);
    }
    std::vector<std::size_t> paged_cache = packed_rows(k_out), v_rows = packed_rows(v_out);
    Call call{.tokens = tokens,
              .in = {q_in.tensor, k_in.tensor},
              .out = {q_out.tensor, k_out.tensor},
              .angles = table.angles()};
    if (!trial.q_called) call.in[Q] = call.out[Q] = {};
    if (!trial.k_called) call.in[K] = call.out[K] = {};
    if (trial.with_v && trial.v_called) {
        call.in[V] = v_in.tensor;
        call.out[V] = v_out.tensor;
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
        call.out[K].token_stride = call.out[V].token_stride = 0;
    }
    Outcome outcome;
    outcome.dispatches = must(dispatches(kernel.get(), call));
    test::run(on, kernel, call);
    const auto content = [&](std::size_t at) {
        return download(buffers[at], buffers[at].whole().range);
    };
    outcome.rows.q = gathered(q_out, Hq, content(q_at), packed_rows(q_out));
    outcome.k_memory = content(k_at);
    outcome.v_memory = content(v_at);
    outcome.rows.k = gathered(k_out, Hk, outcome.k_memory, paged_cache);
    outcome.rows.v = gathered(v_out, H, outcome.v_memory, v_rows);
    must(counter.download(&outcome.outside, 4));
    return outcome;
}

}  // namespace vkrope::test
