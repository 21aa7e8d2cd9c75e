// SPDX-License-Identifier: MIT
// Layouts of engines: a rank's share of the heads, and a decode step that writes into a paged
// cache.
#include <algorithm>
#include <memory>

#include "support/recording.hpp"

namespace vkrope::test {

namespace {

Buffer upload_from(Device& on, const void* content, std::size_t bytes) {
    Buffer buffer = must(Buffer::make(on, bytes));
    must(buffer.upload(content, bytes));
    return buffer;
}

void run(Device& on, const KernelInfo& info, const std::vector<Call>& calls) {
    const Owned<Kernel> kernel(must(create(on.ref(), info)));
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled & push_descriptor)) {
        std::uint64_t sets = 0;
        for (const Call& call : calls) sets += must(dispatches(kernel.get(), call));
        arena.reset(must(create_arena(kernel.get(), std::uint32_t(sets))));
    }
    must(on.submit([&](VkCommandBuffer commands) {
        Status status;
        for (const Call& call : calls) {
            if (status) status = record(commands, kernel.get(), call, arena.get());
        }
        return status;
    }));
}

}  // namespace

TEST_CASE("every slice of the heads gets the bits of the whole, and touches no other head") {
    constexpr std::uint32_t heads = 6, batch = 2, tokens = 3, rows = batch * tokens;
    struct Slice {
        std::uint32_t first, end;
    };
    std::vector<Slice> slices = {{0, heads}};  // first the whole
    for (std::uint32_t first = 0; first < heads; ++first) {
        for (std::uint32_t end = first + 1; end <= heads; ++end) slices.push_back({first, end});
    }
    for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
        for (const std::uint32_t D : {32u, 7u}) {
            for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
                CAPTURE(int(element));
                CAPTURE(D);
                CAPTURE(int(mapping));
                Device& on = device();
                const std::uint32_t size = element_bytes(element), R = D == 7 ? 6 : 24;
                // In place within [batch, tokens, heads, D], and out of place to [batch, tokens,
                // slice, D]. Each slice has its own copy of the whole and its own output rows, with
                // gaps between them.
                const std::size_t whole = std::size_t{rows} * heads * D * size,
                                  stride = (whole + 1023) / 256 * 256;
                const Bytes x = random_elements(element, whole / size, 71);
                Bytes before = random_elements(element, 2 * slices.size() * stride / size, 72);
                for (std::size_t i = 0; i < slices.size(); ++i)
                    std::memcpy(&before[i * stride], x.data(), whole);
                Buffer memory = upload_from(on, before.data(), before.size()),
                       source = upload_from(on, x.data(), x.size());
                const AngleTable table = must(AngleTable::make(
                    on, rotation(Pairing::interleaved, D, R), AngleSource::factored_texture, 9));
                std::vector<Call> calls;
                for (std::size_t i = 0; i < slices.size(); ++i) {
                    const std::uint32_t first = slices[i].first, end = slices[i].end;
                    const auto slice_of = [&](const Buffer& buffer, std::size_t at) {
                        const std::size_t from = at + first * D * size,
                                          range = whole - first * D * size;
                        return Tensor{.where = {buffer.handle(), from, range},
                                      .heads = end - first,
                                      .token_stride = heads * D,
                                      .buffer_size = buffer.whole().range};
                    };
                    const std::size_t apart = (slices.size() + i) * stride;
                    const Tensor own{.where = {memory.handle(), apart,
                                               std::size_t{rows} * (end - first) * D * size},
                                     .heads = end - first,
                                     .buffer_size = before.size()};
                    const Call call{.batch = batch,
                                    .tokens = tokens,
                                    .positions = {.first = 5},
                                    .angles = table.angles()};
                    calls.insert(calls.end(), {call, call});
                    Call &in_place = calls[2 * i], &out_of_place = calls[2 * i + 1];
                    in_place.q_in = in_place.q_out = slice_of(memory, i * stride);
                    out_of_place.q_in = slice_of(source, 0);
                    out_of_place.q_out = own;
                }
                run(on,
                    {.pairing = Pairing::interleaved,
                     .rotary_dim = R,
                     .q = {element, element, D, 1},
                     .mapping = mapping},
                    calls);
                const Bytes after = download(memory, before.size());

                Bytes expected = before;
                const Bytes rotated(after.begin(), after.begin() + std::ptrdiff_t(whole));
                CHECK(rotated != x);
                for (std::size_t i = 0; i < slices.size(); ++i) {
                    const auto [first, end] = slices[i];
                    const std::size_t bytes = (end - first) * D * size;
                    for (std::size_t row = 0; row < rows; ++row) {
                        const std::byte* from = &rotated[(row * heads + first) * D * size];
                        std::memcpy(&expected[i * stride + (row * heads + first) * D * size], from,
                                    bytes);
                        std::memcpy(&expected[(slices.size() + i) * stride + row * bytes], from,
                                    bytes);
                    }
                }
                CHECK(after == expected);
                const HostShape shape{.batch = batch,
                                      .tokens = tokens,
                                      .q_heads = heads,
                                      .element = element,
                                      .first_position = 5};
                check_contract(rotation(Pairing::interleaved, D, R, 1), shape, false, x, rotated);
            }
        }
    }
}

TEST_CASE("a decode step with a paged cache: rows go to their pages, padding tokens go nowhere") {
    // Eight sequences of one token each, two of them padding. A block table names the pages of each
    // sequence.
    constexpr std::uint32_t batch = 8, q_heads = 4, k_heads = 2, D = 64, page_size = 16, pages = 24,
                            pages_each = 3;
    const std::int32_t context[batch] = {0, 15, 16, 0, 31, 33, 0, 47};
    const bool padding[batch] = {false, false, false, true, false, false, true, false};
    for (const bool by_head : {false, true}) {
        for (const bool wide : {false, true}) {
            for (const Element element : {Element::f16, Element::bf16}) {
                CAPTURE(by_head);
                CAPTURE(wide);
                Device& on = device();
                std::vector<std::int32_t> block_table(batch *
                                                      pages_each);  // physical pages, shuffled
                for (std::uint32_t i = 0; i < block_table.size(); ++i)
                    block_table[i] = std::int32_t(i * 7 % pages);
                std::vector<std::int64_t> slots;
                for (std::uint32_t b = 0; b < batch; ++b) {
                    const std::int32_t page =
                        block_table[b * pages_each + std::uint32_t(context[b]) / page_size];
                    slots.push_back(padding[b] ? -1
                                               : page * std::int64_t{page_size} +
                                                     context[b] % std::int64_t{page_size});
                }
                const std::vector<std::int32_t> narrow_slots(slots.begin(), slots.end());

                // New rows are packed QKV, [batch, q_heads + 2 k_heads, D]. Q is rotated in place.
                constexpr std::uint32_t token = (q_heads + 2 * k_heads) * D;
                const Bytes qkv = random_elements(element, batch * token, 81);
                const Bytes cache = random_elements(element, pages * page_size * k_heads * D, 82);
                Buffer rows = upload_from(on, qkv.data(), qkv.size()),
                       paged = upload_from(on, cache.data(), cache.size());
                Buffer ids = upload_from(on, context, sizeof context),
                       counter = upload_from(on, "\7\0\0", 4);
                Buffer slot_buffer = wide ? upload_from(on, slots.data(), slots.size() * 8)
                                          : upload_from(on, narrow_slots.data(), batch * 4);
                const Rotation r = rotation(Pairing::half_split, D, D);
                const AngleTable table = must(
                    AngleTable::make(on, r, AngleSource::factored_texture, 48));
                const VkDeviceSize k_at = q_heads * D * element_bytes(element);
                Call call{.batch = batch, .tokens = 1, .angles = table.angles()};
                call.q_in = call.q_out = {.where = {rows.handle(), 0, qkv.size()},
                                          .heads = q_heads,
                                          .batch_stride = token};
                call.k_in = {.where = {rows.handle(), k_at, qkv.size() - k_at},
                             .heads = k_heads,
                             .batch_stride = token};
                call.k_out = {.where = paged.whole(), .heads = k_heads};
                call.paged_cache = {
                    .slot_mapping = slot_buffer.whole(), .int64 = wide, .page_size = page_size};
                if (by_head) {
                    call.k_out.head_stride = page_size * D;
                    call.paged_cache.row_stride = D;
                    call.paged_cache.page_stride = k_heads * page_size * D;
                }
                call.positions = {.ids = ids.whole(), .batch_stride = 1};
                call.out_of_range = counter.whole();
                const HeadFormat width{element, element, D, 0};
                run(on,
                    {.rotary_dim = D,
                     .q = width,
                     .k = width,
                     .positions = PositionSource::ids,
                     .scatter_k = true},
                    {call});
                const Bytes rows_after = download(rows, qkv.size()),
                            cache_after = download(paged, cache.size());

                reference::Operation operation;
                operation.inv_freq = r.inv_freq;
                operation.positions.assign(std::begin(context), std::end(context));
                operation.absolute_allowance = 0x1p-148 + 0x1p-123;
                reference::Tensor q{.type = type_of(element),
                                    .batch = batch,
                                    .tokens = 1,
                                    .heads = q_heads,
                                    .head_dim = D};
                q.batch_stride = q.token_stride = token;
                q.head_stride = D;
                reference::Tensor k = q, k_out = q;
                k.heads = k_out.heads = k_heads;
                k_out.head_stride = by_head ? page_size * D : D;
                k_out.cache = reference::Cache{.slot_mapping = slots,
                                               .pages = pages,
                                               .page_size = page_size,
                                               .page_stride = k_heads * page_size * D,
                                               .row_stride = by_head ? D : k_heads * D};
                const reference::Verdict q_verdict = reference::compare(q, operation, qkv.data(),
                                                                        rows_after.data());
                const reference::Verdict k_verdict = reference::compare(
                    k, k_out, operation, &qkv[k_at], cache_after.data());
                for (const reference::Verdict& verdict : {q_verdict, k_verdict}) {
                    INFO(verdict.worst);
                    CHECK(verdict.largest_error_u <= error_bound(table.plan().source, 1));
                    CHECK_FALSE(verdict.nan_mismatch);
                }
                CHECK(q_verdict.elements == batch * q_heads * D);
                CHECK(k_verdict.elements == 6 * k_heads * D);

                // Everything else is unchanged: K and V of the packed rows, and all rows of the
                // cache that no slot names.
                Bytes rows_expected = qkv, cache_expected = cache;
                const std::size_t bytes = D * element_bytes(element);
                reference::each_row(q, [&](std::uint64_t, std::uint64_t first) {
                    const std::size_t at = first * element_bytes(element);
                    std::memcpy(&rows_expected[at], &rows_after[at], bytes);
                });
                reference::each_row(k_out, [&](std::uint64_t, std::uint64_t first) {
                    const std::size_t at = first * element_bytes(element);
                    std::memcpy(&cache_expected[at], &cache_after[at], bytes);
                });
                CHECK(rows_after == rows_expected);
                CHECK(cache_after == cache_expected);
                CHECK(cache_after != cache);
                std::uint32_t outside = 0;
                must(counter.download(&outside, 4));
                CHECK(outside == 7);  // as before: padding is not counted
            }
        }
    }
}

TEST_CASE(
    "many heads, wide rows: all invocations of a token are there, and none ends a loop early") {
    struct Side {
        std::uint32_t heads, head_dim;  // 0 heads: the kernel has the tensor, the call does not
        std::uint32_t offset = 0;       // of the window
        bool in_place = false;
    };
    struct Case {
        Side q, k;
        std::uint32_t tokens, rotary_dim;
        Element element;
        bool cut;  // too many heads for one invocation to loop over: several dispatches
    };
    const Case cases[] = {
        // llvmpipe ends a shader after 65 535 iterations of all its loops. 2100 heads of 32 narrow
        // steps exceed that, as do 1100 + 1100 heads, and 70 001 heads of one step.
        {{2100, 129, 0, true}, {0, 129}, 1, 128, Element::f16, true},
        {{1100, 129, 0, true}, {1100, 129, 0, true}, 1, 128, Element::f16, true},
        {{70001, 2, 0, true}, {0, 2}, 1, 2, Element::f32, true},
        // Out of place, an invocation also copies 64 steps outside the window, so that 1100 heads
        // exceed it, too. A tensor that is absent from a call takes no invocations, however wide it
        // is.
        {{260, 1032, 512}, {0, 65532}, 2, 8, Element::f32, true},
        {{0, 65532}, {1100, 1032, 512}, 2, 8, Element::f32, true},
        // One step rotates and thousands copy: the tensor with more copies decides how many
        // invocations there are.
        {{1, 65534}, {1, 65533, 1}, 1, 2, Element::f16, false},
        {{2, 65532, 0, true}, {2, 65532}, 2, 8, Element::f32, false},
        {{2, 65532}, {2, 65532, 0, true}, 2, 8, Element::f32, false},
        // 65 invocations per token, 130 for two tokens in workgroups of 128: one less per token
        // would fail.
        {{2, 32784}, {0, 32784}, 2, 8, Element::f32, false},
        // Access by words of two halves, since the window rules out 16 bytes: one invocation has
        // all steps of 300 heads.
        {{300, 96}, {0, 96}, 2, 24, Element::f16, false},
        {{0, 96}, {300, 96}, 2, 24, Element::f16, false},
    };
    for (const Case& of : cases) {
        CAPTURE(&of - cases);
        const Side sides[2] = {of.q, of.k};
        const Rotation r = rotation(Pairing::half_split, of.q.head_dim, of.rotary_dim, of.q.offset,
                                    of.k.offset);
        const AngleTable table = must(
            AngleTable::make(device(), r, AngleSource::factored_texture, 16));
        Bytes in[2], before[2], after[2][2];  // after[mapping]
        std::size_t bytes[2];
        for (const int key : {0, 1}) {
            const std::size_t elements = std::size_t{of.tokens} * sides[key].heads *
                                         sides[key].head_dim;
            bytes[key] = elements * element_bytes(of.element);
            in[key] = random_elements(of.element, elements / 2 * 2 + 4,
                                      61 + key);  // whole words, and some bytes beyond the rows
            before[key] = sides[key].in_place
                              ? in[key]
                              : random_elements(of.element, elements / 2 * 2 + 4, 63 + key);
        }
        for (const Mapping mapping : {Mapping::cpu, Mapping::gpu}) {
            const auto width = [&](const Side& side) {
                return HeadFormat{of.element, of.element, side.head_dim, side.offset};
            };
            const Owned<Kernel> kernel = make_kernel(device(), {.rotary_dim = of.rotary_dim,
                                                                .q = width(of.q),
                                                                .k = width(of.k),
                                                                .mapping = mapping});
            Buffer inputs[2], outputs[2];
            Tensor from[2], to[2];
            for (const int key : {0, 1}) {
                outputs[key] = upload(device(), before[key]);
                to[key] = {.where = part(outputs[key], 0, bytes[key]),
                           .heads = sides[key].heads,
                           .buffer_size = before[key].size()};
                from[key] = to[key];
                if (sides[key].in_place) continue;
                inputs[key] = upload(device(), in[key]);
                from[key].where.buffer = inputs[key].handle();
            }
            Call call{.tokens = of.tokens, .positions = {.first = 7}, .angles = table.angles()};
            if (of.q.heads != 0) call.q_in = from[0], call.q_out = to[0];
            if (of.k.heads != 0) call.k_in = from[1], call.k_out = to[1];
            if (mapping == Mapping::cpu)
                CHECK((must(dispatches(kernel.get(), call)) > 1) == of.cut);
            run(device(), kernel, call);
            for (const int key : {0, 1})
                after[mapping == Mapping::gpu][key] = download(outputs[key], before[key].size());
        }
        const HostShape shape{.tokens = of.tokens,
                              .q_heads = of.q.heads,
                              .k_heads = of.k.heads,
                              .k_head_dim = of.k.head_dim,
                              .element = of.element,
                              .first_position = 7,
                              .angles = AngleSource::factored_texture};
        for (const bool key : {false, true}) {
            CAPTURE(key);
            // Every head is rotated; channels outside its window are copied; bytes after the last
            // row are unchanged.
            check_contract(r, shape, key, in[key], after[0][key]);
            CHECK(std::equal(before[key].begin() + std::ptrdiff_t(bytes[key]), before[key].end(),
                             after[0][key].begin() + std::ptrdiff_t(bytes[key])));
            CHECK((after[0][key] == after[1][key]));
        }
    }
}

TEST_CASE(
    "128 heads: a GPU's lanes have all of them, in workgroups side by side, with the bits of the "
    "CPU mapping") {
    constexpr std::uint32_t D = 64, q_heads = 128, many = 513;
    constexpr Element element = Element::f16;
    const auto kernel_for = [](Mapping mapping, std::uint32_t q, std::uint32_t k) {
        const HeadFormat width{element, element, D, 0};
        return make_kernel(device(), {.rotary_dim = D,
                                      .q = width,
                                      .k = width,
                                      .mapping = mapping,
                                      .q_heads = q,
                                      .k_heads = k});
    };
    const Rotation r = rotation(Pairing::half_split, D, D);
    const AngleTable table = must(
        AngleTable::make(device(), r, AngleSource::factored_texture, many + 3));
    const Owned<Kernel> cpu = kernel_for(Mapping::cpu, 0, 0), gpu = kernel_for(Mapping::gpu, 0, 0);
    for (const std::uint32_t k_heads : {8u, 128u}) {
        const Owned<Kernel> told = kernel_for(Mapping::gpu, q_heads, k_heads);
        for (const std::uint32_t tokens :
             {2u, many}) {  // one head per lane; several, with 2^16 lanes or more
            const Bytes q = random_elements(element, std::size_t{tokens} * q_heads * D, 81),
                        k = random_elements(element, std::size_t{tokens} * k_heads * D, 82);
            Bytes expected[2];
            for (const Owned<Kernel>* kernel : {&cpu, &gpu, &told}) {
                CAPTURE(k_heads);
                CAPTURE(tokens);
                CAPTURE((kernel == &told));
                Buffer q_buffer = upload(device(), q), k_buffer = upload(device(), k);
                Call call{.tokens = tokens, .positions = {.first = 3}, .angles = table.angles()};
                call.q_in = call.q_out = {.where = q_buffer.whole(), .heads = q_heads};
                call.k_in = call.k_out = {.where = k_buffer.whole(), .heads = k_heads};
                CHECK(must(dispatches(kernel->get(), call)) == 1);
                test::run(device(), *kernel, call);
                const Bytes after[2] = {download(q_buffer, q.size()), download(k_buffer, k.size())};
                if (kernel == &cpu) {
                    std::copy(after, after + 2, expected);
                    if (tokens == many) continue;
                    const HostShape shape{.tokens = tokens,
                                          .q_heads = q_heads,
                                          .k_heads = k_heads,
                                          .element = element,
                                          .first_position = 3,
                                          .angles = AngleSource::factored_texture};
                    check_contract(r, shape, false, q, after[0]);
                    check_contract(r, shape, true, k, after[1]);
                }
                CHECK((after[0] == expected[0]));
                CHECK((after[1] == expected[1]));
            }
        }
    }
}

}  // namespace vkrope::test
