// SPDX-License-Identifier: MIT
// record() into a command buffer: views into larger buffers, guard zones, positions outside the
// table, arenas, several calls.
#include <string>

#include "meaning.hpp"
#include "support/recording.hpp"

namespace vkrope::test {

TEST_CASE("views with offsets and gaps: the rows are rotated, every other byte keeps its bits") {
    // Packed [tokens, 8, D] with Q in heads 1 and 2, K in head 5, at an offset of 3 elements, which
    // no device can bind.
    constexpr std::uint32_t D = 20, tokens = 9, row = 8 * D, lead = 3;
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            const std::uint32_t size = element_bytes(element);
            const std::size_t elements = lead + std::size_t{tokens} * row + 5;
            const Bytes before = random_elements(element, (elements + 1) / 2 * 2, 21);
            const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, 12, 4, 4);
            AngleTable table = must(
                AngleTable::make(device(), r, VKROPE_ANGLES_FACTORED_TEXTURE, tokens));
            const Owned<Kernel> kernel = make_kernel(
                device(), {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = 12,
                           .tensor = {{element, element, D, 4}, {element, element, D, 4}},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                           .mapping = mapping});
            Buffer buffer = upload(device(), before);
            const auto at = [&](std::uint32_t head, std::uint32_t heads) {
                const std::size_t offset = (lead + head * D) * size;
                return Tensor{.where = part(buffer, offset, before.size() - offset),
                              .heads = heads,
                              .token_stride = row,
                              .head_stride = D};
            };
            const Call call{.tokens = tokens,
                            .in = {at(1, 2), at(5, 1)},
                            .out = {at(1, 2), at(5, 1)},
                            .angles = table.angles()};
            Owned<DescriptorArena> arena;
            if (!(device().ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
                arena.reset(must(create_arena(kernel.get(), 1)));
            must(device().submit([&](VkCommandBuffer commands) {
                return record(commands, kernel.get(), call, arena.get());
            }));
            const Bytes after = download(buffer, before.size());

            // The rotated heads, copied out as packed rows, meet the contract; everything else is
            // unchanged.
            Bytes in, out;
            std::size_t changed_outside = 0;
            for (std::size_t e = 0; e < before.size() / size; ++e) {
                const bool inside = e >= lead && e < lead + std::size_t{tokens} * row;
                const std::size_t head = inside ? (e - lead) % row / D : 0;
                if (inside && (head == 1 || head == 2 || head == 5)) {
                    in.insert(in.end(), &before[e * size], &before[e * size] + size);
                    out.insert(out.end(), &after[e * size], &after[e * size] + size);
                } else {
                    changed_outside += stored(element, before, e) != stored(element, after, e);
                }
            }
            CHECK(changed_outside == 0);
            check_contract(r, {.tokens = tokens, .heads = {3}, .element = element}, false, in, out);
            CHECK(in != out);
        }
    }
}

TEST_CASE(
    "a position outside the table leaves its rows unrotated, and counts once for each token") {
    constexpr std::uint32_t D = 16, tokens = 6;
    const std::int32_t ids[] = {1, 40, -40, 39, -39, 2147483647};  // the table ends before 40
    for (const AngleSource source : {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER}) {
        for (const bool in_place : {false, true}) {
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                const RopeParams r = rotation(VKROPE_INTERLEAVED, D, 8, 4, 4);
                AngleTable table = must(AngleTable::make(device(), r, source, 40));
                const TensorInfo width{VKROPE_F16, VKROPE_F16, D, 4};
                const Owned<Kernel> kernel = make_kernel(device(),
                                                         {.pairing = VKROPE_INTERLEAVED,
                                                          .rotary_dim = 8,
                                                          .tensor = {width, width},
                                                          .angles = source,
                                                          .positions = VKROPE_POSITIONS_IDS,
                                                          .mapping = mapping});
                const Bytes q = random_elements(VKROPE_F16, tokens * 5 * D, 31),
                            k = random_elements(VKROPE_F16, tokens * D, 32);
                Buffer q_in = upload(device(), q), k_in = upload(device(), k);
                Buffer q_apart = upload(device(), Bytes(q.size())),
                       k_apart = upload(device(), Bytes(k.size()));
                Buffer& q_out = in_place ? q_in : q_apart;
                Buffer& k_out = in_place ? k_in : k_apart;
                Bytes id_bytes(sizeof ids);
                std::memcpy(id_bytes.data(), ids, sizeof ids);
                Buffer positions = upload(device(), id_bytes);
                const std::uint32_t start[] = {7, 100};
                Bytes counter_bytes(sizeof start);
                std::memcpy(counter_bytes.data(), start, sizeof start);
                Buffer counter = upload(device(), counter_bytes);
                const Call call{.tokens = tokens,
                                .in = {{.where = q_in.whole(), .heads = 5},
                                       {.where = k_in.whole(), .heads = 1}},
                                .out = {{.where = q_out.whole(), .heads = 5},
                                        {.where = k_out.whole(), .heads = 1}},
                                .positions = {.ids = positions.whole()},
                                .angles = table.angles(),
                                .out_of_range = part(counter, 4, 4)};
                Owned<DescriptorArena> arena;
                if (!(device().ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
                    arena.reset(must(create_arena(kernel.get(), 1)));
                must(device().submit([&](VkCommandBuffer commands) {
                    return record(commands, kernel.get(), call, arena.get());
                }));
                const Bytes counts = download(counter, 8);
                CHECK(stored(VKROPE_F32, counts, 0) == 7);
                CHECK(stored(VKROPE_F32, counts, 1) == 103);
                const Bytes q_after = download(q_out, q.size()),
                            k_after = download(k_out, k.size());
                for (std::uint32_t t = 0; t < tokens; ++t) {
                    const bool outside = t == 1 || t == 2 || t == 5;
                    CHECK((std::memcmp(&q[t * 5 * D * 2], &q_after[t * 5 * D * 2], 5 * D * 2) ==
                           0) == outside);
                    CHECK((std::memcmp(&k[t * D * 2], &k_after[t * D * 2], D * 2) == 0) == outside);
                }
            }
        }
    }
}

TEST_CASE("a token whose heads take several workgroups counts once") {
    constexpr std::uint32_t D = 16, heads = 300, tokens = 4;
    const std::vector<std::int32_t> ids = {1, 40, -40, 39};  // the table ends before 40
    const AngleTable table = must(AngleTable::make(device(), rotation(VKROPE_HALF_SPLIT, D, D),
                                                   VKROPE_ANGLES_FACTORED_TEXTURE, 40));
    for (const NormKind norm : {VKROPE_NORM_NONE, VKROPE_NORM_RMS}) {
        CAPTURE(int(norm));
        KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                           .rotary_dim = D,
                           .tensor = {{VKROPE_F32, VKROPE_F32, D, 0}},
                           .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                           .positions = VKROPE_POSITIONS_IDS,
                           .mapping = VKROPE_MAPPING_GPU};
        if (norm != VKROPE_NORM_NONE) info.tensor[Q].ops.norm = {.kind = norm, .eps = 1e-6f};
        Buffer x = upload(device(), random_elements(VKROPE_F32, tokens * heads * D, 35)),
               positions = upload(device(), bytes_of(ids)), counter = upload(device(), Bytes(4));
        Call call{.tokens = tokens,
                  .positions = {.ids = positions.whole()},
                  .angles = table.angles(),
                  .out_of_range = counter.whole()};
        call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
        run(device(), make_kernel(device(), info), call);
        CHECK(stored(VKROPE_F32, download(counter, 4), 0) == 2);
    }
}

TEST_CASE(
    "a table in a buffer, wherever it begins: the bits are those of one at a multiple of 16 "
    "bytes") {
    constexpr std::uint32_t D = 32, tokens = 5, heads = 2, room = 64;
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
            if (gpu_assisted() && (element == VKROPE_F32 || pairing == VKROPE_INTERLEAVED))
                continue;
            const RopeParams r = rotation(pairing, D, D);
            const AngleTableLayout plan = must(
                plan_angles(r, VKROPE_ANGLES_DIRECT_BUFFER, tokens + 2, 0));
            Bytes table(plan.bytes);
            must(fill_angles(r, plan, table.data(), table.size()));
            const Bytes in = random_elements(element, tokens * heads * D, 41);
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                const Owned<Kernel> kernel = make_kernel(device(),
                                                         {.pairing = pairing,
                                                          .rotary_dim = D,
                                                          .tensor = {{element, element, D, 0}},
                                                          .angles = VKROPE_ANGLES_DIRECT_BUFFER,
                                                          .mapping = mapping});
                Bytes expected;
                for (const std::size_t offset : {0u, 4u, 8u, 12u, 16u, 20u}) {
                    CAPTURE(int(element));
                    CAPTURE(int(pairing));
                    CAPTURE(int(mapping));
                    CAPTURE(offset);
                    Bytes around(table.size() + room, std::byte{0x3f});  // 0.747 as f32
                    std::memcpy(around.data() + offset, table.data(), table.size());
                    Buffer angles = upload(device(), around), x = upload(device(), in);
                    Call call{.tokens = tokens, .positions = {.first = 2}};
                    call.in[Q] = call.out[Q] = {.where = x.whole(), .heads = heads};
                    call.angles = {.layout = &plan, .buffer = part(angles, offset, table.size())};
                    run(device(), kernel, call);
                    const Bytes got = download(x, in.size());
                    if (offset == 0) {
                        expected = got;
                        const HostShape shape{.tokens = tokens,
                                              .heads = {heads},
                                              .element = element,
                                              .first_position = 2};
                        check_contract(r, shape, false, in, got);
                    }
                    CHECK(got == expected);
                }
            }
        }
    }
}

TEST_CASE("an input of one type, an output of another") {
    constexpr std::uint32_t D = 32, tokens = 5, offset = 8;
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, 16, offset, offset);
    AngleTable table = must(AngleTable::make(device(), r, VKROPE_ANGLES_FACTORED_TEXTURE, tokens));
    for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
        // f32 Q stays f32; f32 K goes to an f16 cache, with the bits of an f32 rotation that is
        // then rounded.
        const Owned<Kernel> kernel = make_kernel(
            device(),
            {.pairing = VKROPE_HALF_SPLIT,
             .rotary_dim = 16,
             .tensor = {{VKROPE_F32, VKROPE_F32, D, offset}, {VKROPE_F32, VKROPE_F16, D, offset}},
             .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
             .mapping = mapping});
        const Bytes x = random_elements(VKROPE_F32, tokens * D, 41);
        Buffer q = upload(device(), x), k = upload(device(), x),
               k_cache = upload(device(), Bytes(tokens * D * 2));
        const Call call{
            .tokens = tokens,
            .in = {{.where = q.whole(), .heads = 1}, {.where = k.whole(), .heads = 1}},
            .out = {{.where = q.whole(), .heads = 1}, {.where = k_cache.whole(), .heads = 1}},
            .angles = table.angles()};
        Owned<DescriptorArena> arena;
        if (!(device().ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
            arena.reset(must(create_arena(kernel.get(), 1)));
        must(device().submit([&](VkCommandBuffer commands) {
            return record(commands, kernel.get(), call, arena.get());
        }));
        const Bytes q_after = download(q, x.size()), k_after = download(k_cache, tokens * D * 2);
        check_contract(r, {.tokens = tokens, .heads = {1}}, false, x, q_after);
        for (std::uint32_t i = 0; i < tokens * D; ++i) {
            CHECK(stored(VKROPE_F16, k_after, i) ==
                  reference::narrow(reference::Type::f16,
                                    static_cast<long double>(value(VKROPE_F32, q_after, i))));
        }
    }
}

TEST_CASE(
    "an arena serves as many calls as it was made for, then says so, and starts again after a "
    "reset") {
    constexpr std::uint32_t D = 8;
    Device& on = device(false);
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
    AngleTable table = must(AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, 16));
    const Owned<Kernel> kernel = make_kernel(on, {.pairing = VKROPE_HALF_SPLIT,
                                                  .rotary_dim = D,
                                                  .tensor = {{VKROPE_F32, VKROPE_F32, D, 0}},
                                                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE});
    const Owned<DescriptorArena> arena(must(create_arena(kernel.get(), 2)));
    const Bytes x = random_elements(VKROPE_F32, 4 * D, 51);
    Buffer a = upload(on, x), b = upload(on, x);
    const auto call = [&](const Buffer& buffer) {
        const Tensor tensor{.where = buffer.whole(), .heads = 1};
        return Call{.tokens = 4, .in = {tensor}, .out = {tensor}, .angles = table.angles()};
    };
    for (int round = 0; round < 2; ++round) {
        Status third;
        must(on.submit([&](VkCommandBuffer commands) {
            if (Status s = record(commands, kernel.get(), call(a), arena.get()); !s) return s;
            if (Status s = record(commands, kernel.get(), call(b), arena.get()); !s) return s;
            third = record(commands, kernel.get(), call(b), arena.get());
            return Status{};
        }));
        CHECK(third.code == VKROPE_ERROR_LIMIT_EXCEEDED);
        vkrope_arena_reset(arena.get());
    }
    CHECK(download(a, x.size()) == download(b, x.size()));
    CHECK(download(a, x.size()) != x);
    const Status none = record(VkCommandBuffer(1), kernel.get(), call(a), nullptr);
    CHECK(none.code == VKROPE_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("the validation layer is on: a copy that does not wait for a rotation is reported") {
    constexpr std::uint32_t D = 64;
    std::size_t reports = 0;
    DeviceOptions options{.select = device().info().uuid, .validation = true};
    options.user_data = &reports;
    options.on_message = [](void* counter, VkBool32, const char* id, const char*) {
        *static_cast<std::size_t*>(counter) += std::strstr(id, "SYNC-HAZARD") != nullptr;
    };
    Device on = must(Device::open(options));
    const RopeParams r = rotation(VKROPE_HALF_SPLIT, D, D);
    AngleTable table = must(AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, 16));
    const Owned<Kernel> kernel = make_kernel(on, {.pairing = VKROPE_HALF_SPLIT,
                                                  .rotary_dim = D,
                                                  .tensor = {{VKROPE_F32, VKROPE_F32, D, 0}},
                                                  .angles = VKROPE_ANGLES_FACTORED_TEXTURE});
    Owned<DescriptorArena> arena;
    if (!(on.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        arena.reset(must(create_arena(kernel.get(), 1)));
    Buffer from = must(Buffer::make(on, 16 * D * 4)), to = must(Buffer::make(on, 16 * D * 4));
    const auto get = [&](const char* name) {
        return on.ref().get_instance_proc_addr(on.ref().instance, name);
    };
    const auto copy = reinterpret_cast<PFN_vkCmdCopyBuffer>(get("vkCmdCopyBuffer"));
    const auto barrier = reinterpret_cast<PFN_vkCmdPipelineBarrier>(get("vkCmdPipelineBarrier"));
    for (const bool waits : {true, false}) {
        must(on.submit([&](VkCommandBuffer commands) {
            vkrope_arena_reset(arena.get());
            const Tensor tensor{.where = from.whole(), .heads = 1};
            if (Status s = record(
                    commands, kernel.get(),
                    {.tokens = 16, .in = {tensor}, .out = {tensor}, .angles = table.angles()},
                    arena.get());
                !s)
                return s;
            VkMemoryBarrier memory = {};
            memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
            memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
            memory.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
            if (waits)
                barrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                        VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
            const VkBufferCopy region = {0, 0, 16 * D * 4};
            copy(commands, from.handle(), to.handle(), 1, &region);
            return Status{};
        }));
        CHECK((reports != 0) == !waits);
    }
}

TEST_CASE("no tokens: nothing is recorded, and nothing is asked for") {
    const Owned<Kernel> kernel = make_kernel(device(), {.pairing = VKROPE_HALF_SPLIT,
                                                        .rotary_dim = 8,
                                                        .tensor = {{VKROPE_F32, VKROPE_F32, 8, 0}},
                                                        .angles = VKROPE_ANGLES_FACTORED_TEXTURE});
    Owned<DescriptorArena> arena;
    if (!(device().ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        arena.reset(must(create_arena(kernel.get(), 1)));
    must(device().submit([&](VkCommandBuffer commands) {
        return record(commands, kernel.get(), Call{}, arena.get());
    }));
}

}  // namespace vkrope::test
