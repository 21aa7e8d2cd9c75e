// SPDX-License-Identifier: MIT
// Layouts of engines: a rank's share of the heads, a decode step that writes into a paged cache,
// and caches that have K and V in one row.
#include <algorithm>
#include <memory>

#include "meaning.hpp"
#include "ops_scene.hpp"
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
    if (!(on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
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
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const std::uint32_t D : {32u, 7u}) {
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
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
                    on, rotation(VKROPE_INTERLEAVED, D, R), VKROPE_ANGLES_FACTORED_TEXTURE, 9));
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
                                    .positions = {.first = 5, .batch_stride = broadcast},
                                    .angles = table.angles()};
                    calls.insert(calls.end(), {call, call});
                    Call &in_place = calls[2 * i], &out_of_place = calls[2 * i + 1];
                    in_place.in[Q] = in_place.out[Q] = slice_of(memory, i * stride);
                    out_of_place.in[Q] = slice_of(source, 0);
                    out_of_place.out[Q] = own;
                }
                run(on,
                    {.pairing = VKROPE_INTERLEAVED,
                     .rotary_dim = R,
                     .tensor = {{element, element, D, 1}},
                     .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
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
                                      .heads = {heads},
                                      .element = element,
                                      .first_position = 5};
                check_contract(rotation(VKROPE_INTERLEAVED, D, R, 1), shape, false, x, rotated);
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
            for (const Element element : {VKROPE_F16, VKROPE_BF16}) {
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
                // Its low word is that of -1; it lies outside the cache, so it is counted.
                if (wide) slots[3] = 0xffffffff;

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
                const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
                const AngleTable table = must(
                    AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, 48));
                const VkDeviceSize k_at = q_heads * D * element_bytes(element);
                Call call{.batch = batch, .tokens = 1, .angles = table.angles()};
                call.in[Q] = call.out[Q] = {.where = {rows.handle(), 0, qkv.size()},
                                            .heads = q_heads,
                                            .batch_stride = token};
                call.in[K] = {.where = {rows.handle(), k_at, qkv.size() - k_at},
                              .heads = k_heads,
                              .batch_stride = token};
                call.out[K] = {.where = paged.whole(), .heads = k_heads};
                call.paged_cache = {
                    .slot_mapping = slot_buffer.whole(), .int64 = wide, .page_size = page_size};
                if (by_head) {
                    call.out[K].head_stride = page_size * D;
                    call.paged_cache.row_stride = D;
                    call.paged_cache.page_stride = k_heads * page_size * D;
                }
                call.positions = {.ids = ids.whole(), .batch_stride = 1};
                call.out_of_range = counter.whole();
                const TensorInfo width{element, element, D, 0};
                run(on,
                    {.pairing = VKROPE_HALF_SPLIT,
                     .rotary_dim = D,
                     .tensor = {width, width},
                     .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                     .positions = VKROPE_POSITIONS_IDS,
                     .scatter_kv = true},
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
                    CHECK(verdict.largest_error_u <= error_bound(table.layout().source, 1));
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
                CHECK(outside == (wide ? 8 : 7));  // padding is not counted
            }
        }
    }
}

TEST_CASE("K and V of a token side by side in one row of a cache") {
    const auto scene_of = [](Element in, Element out, std::uint32_t k_dim, std::uint32_t v_dim) {
        return Scene{.info = {.pairing = VKROPE_HALF_SPLIT,
                              .rotary_dim = 2,
                              .tensor = {{.in = in, .out = in, .head_dim = k_dim, .heads = 4},
                                         {.in = in, .out = out, .head_dim = k_dim, .heads = 3},
                                         {.in = in, .out = out, .head_dim = v_dim, .heads = 3}},
                              .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                     .batch = 2,
                     .tokens = 37,
                     .q_heads = 4,
                     .k_heads = 3,
                     .v_heads = 3};
    };
    const Norm rms = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
    std::vector<Scene> scenes = {
        scene_of(VKROPE_F16, VKROPE_F16, 64, 64), scene_of(VKROPE_BF16, VKROPE_F32, 64, 32),
        // Rows of 10 bytes: K and V of a token share a word.
        scene_of(VKROPE_F16, VKROPE_BF16, 5, 5), scene_of(VKROPE_F16, VKROPE_E4M3FN, 64, 64),
        scene_of(VKROPE_F32, VKROPE_INT8, 3, 3), scene_of(VKROPE_F16, VKROPE_Q8_0, 64, 64),
        scene_of(VKROPE_BF16, VKROPE_Q5_0, 32, 64)};
    scenes[1].info.tensor[K].ops = {.norm = rms, .scale = 0.5f};
    for (const std::size_t made : {3, 4})
        scenes[made].info.tensor[K].ops = scenes[made].info.tensor[V].ops = {
            .store_scale = VKROPE_STORE_SCALE_MADE};
    scenes[5].info.tensor[K].ops = {.norm = rms, .hadamard = 64};
    scenes[5].info.tensor[V].ops = {.hadamard = 64};
    const auto beside = [](Mapping mapping, std::uint32_t lead, std::uint32_t page_rows) {
        return Way{.mapping = mapping,
                   .lead = lead,
                   .slots = true,
                   .page_rows = page_rows,
                   .beside = true};
    };
    std::vector<Way> ways = {beside(VKROPE_MAPPING_GPU, 0, 16), beside(VKROPE_MAPPING_CPU, 0, 16),
                             beside(VKROPE_MAPPING_GPU, 1, 4),  beside(VKROPE_MAPPING_CPU, 3, 0),
                             beside(VKROPE_MAPPING_GPU, 0, 16), beside(VKROPE_MAPPING_GPU, 2, 4)};
    ways[4].range = 1u << 14;
    for (std::size_t i = 0; i < scenes.size(); ++i) {
        CAPTURE(i);
        const Results usual = carry_out(scenes[i], {});
        // Too few for V beside K.
        ways[5].storage_buffers = is_made(scenes[i].info.tensor[K].ops.store_scale) ? 8 : 7;
        for (std::size_t w = 0; w < ways.size(); w += sweep_share()) {
            CAPTURE(w);
            if (i != 0 && w % 3 != i % 3) continue;  // each way with some types is enough
            if (ways[w].range != 0 && scenes[i].info.tensor[K].head_dim < 64) continue;  // it fits
            const Results results = carry_out(scenes[i], ways[w]);
            CHECK(results.q == usual.q);
            CHECK(results.k == usual.k);
            CHECK(results.v == usual.v);
            CHECK(results.k_scales == usual.k_scales);
            CHECK(results.v_scales == usual.v_scales);
        }
    }
}

}  // namespace vkrope::test
