// SPDX-License-Identifier: MIT
// Tests calls that need many dispatches on a device with small limits: dispatches() announces the
// number of dispatches, the fake refuses a dispatch beyond the limits, and a barrier is exactly
// where a dispatch must wait. The random operations on devices compare the results of such calls.
#include "recorder.hpp"

namespace vkrope::test::split {

namespace {

constexpr std::uint32_t D = 128;

struct Layout {
    const char* name;
    void (*change)(const KernelHost& host, KernelInfo& info, Call& call);
};

// Places Q and K side by side in rows of 15 heads.
void pack(const KernelHost& host, KernelInfo&, Call& call) {
    const auto plane = [&](std::uint32_t first, std::uint32_t heads) {
        const VkDeviceSize start = VkDeviceSize{first} * D * 2;
        return Tensor{.where = {host.q, start, KernelHost::buffer_bytes - start},
                      .heads = heads,
                      .token_stride = 15 * D};
    };
    call.in[Q] = call.out[Q] = plane(0, 8);
    call.in[K] = call.out[K] = plane(8, 2);
}

void page(const KernelHost& host, KernelInfo& info, Call& call) {
    info = with_v(info);
    call = with_v(host, call);
    info.scatter_kv = true;
    const VkDeviceSize slots = VkDeviceSize{call.batch} * call.tokens;
    call.paged_cache = {.slot_mapping = {host.words, 68, slots * 4}, .page_size = 5};
    for (const TensorIndex t : {K, V}) call.out[t].where.range = KernelHost::buffer_bytes;
}

constexpr Layout layouts[] = {
    {"separate", [](const KernelHost&, KernelInfo&, Call&) {}},
    {"packed", pack},
    {"heads before tokens, in place",
     [](const KernelHost&, KernelInfo&, Call& call) {
         for (const TensorIndex t : {Q, K}) {
             call.in[t].token_stride = D;
             call.in[t].head_stride = std::int64_t{call.tokens} * D;
             call.in[t].batch_stride = call.in[t].heads * call.in[t].head_stride;
             call.out[t] = call.in[t];
         }
     }},
    // The outputs share no byte. The inputs overlap, but nothing writes to them.
    {"side by side in one buffer",
     [](const KernelHost& host, KernelInfo&, Call& call) {
         call.in[K].where.buffer = host.q;
         call.out[K].where.buffer = host.q_out;
         call.out[K].where.offset = call.out[Q].where.range;
     }},
    // The binding of the output begins at a multiple of the alignment, inside the ids.
    {"ids before an output",
     [](const KernelHost& host, KernelInfo& info, Call& call) {
         info.positions = VKROPE_POSITIONS_IDS;
         const VkDeviceSize stride = call.tokens + 3,
                            bytes = ((call.batch - 1) * stride + call.tokens) * 4;
         call.positions = {.ids = {host.k_out, 0, bytes}, .batch_stride = std::int64_t(stride)};
         call.out[K].where.offset = (bytes + 15) / 16 * 16;
     }},
    {"groups of heads",
     [](const KernelHost& host, KernelInfo&, Call& call) {
         call.in[Q].where = {host.q, 0, KernelHost::buffer_bytes};
         call.in[Q].token_stride = 10 * D;
         call.in[Q].heads_per_group = 4;
         call.in[Q].group_stride = 5 * D;
     }},
    {"V of fewer heads",
     [](const KernelHost& host, KernelInfo& info, Call& call) {
         info = with_v(info);
         call = with_v(host, call);
         call.in[V].heads = call.out[V].heads = 1;
     }},
    {"V in place",
     [](const KernelHost& host, KernelInfo& info, Call& call) {
         info = with_v(info);
         call = with_v(host, call);
         call.out[V] = call.in[V];
     }},
    {"pages", page},
    {"pages by head",
     [](const KernelHost& host, KernelInfo& info, Call& call) {
         page(host, info, call);
         call.paged_cache.row_stride = D;
         call.paged_cache.page_stride = 2 * 5 * D;
         for (const TensorIndex t : {K, V}) call.out[t].head_stride = 5 * D;
     }},
    // Groups of 4 heads to groups of 6: they share pairs of heads, at two distances.
    {"uneven groups of heads",
     [](const KernelHost& host, KernelInfo&, Call& call) {
         const auto groups_of = [](VkBuffer buffer, std::uint32_t heads, std::int64_t token) {
             return Tensor{.where = {buffer, 0, KernelHost::buffer_bytes},
                           .heads = 12,
                           .token_stride = token * D,
                           .heads_per_group = heads,
                           .group_stride = std::int64_t{heads + 1} * D};
         };
         call.in[Q] = groups_of(host.q, 4, 15);
         call.out[Q] = groups_of(host.q_out, 6, 14);
     }},
    {"tokens before sequences",
     [](const KernelHost&, KernelInfo&, Call& call) {
         for (const TensorIndex t : {Q, K}) {
             call.in[t].batch_stride = call.in[t].heads * D;
             call.in[t].token_stride = call.batch * call.in[t].batch_stride;
             call.out[t].batch_stride = call.in[t].batch_stride;
             call.out[t].token_stride = call.in[t].token_stride;
         }
     }},
};

Call call_of(const KernelHost& host, std::uint32_t batch, std::uint32_t tokens) {
    Call call = kernel_call(host, batch * tokens);
    call.batch = batch;
    call.tokens = tokens;
    call.positions.batch_stride = 100;
    return call;
}

bool writes(std::uint32_t binding) {
    return binding == shader::binding_q_out || binding == shader::binding_k_out ||
           binding == shader::binding_v_out || binding == shader::binding_out_of_range;
}

bool must_wait(const Command& later, const Command& earlier) {
    for (const auto& [i, a] : earlier.descriptors) {
        for (const auto& [j, b] : later.descriptors) {
            if (a.type != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || b.type != a.type ||
                !(writes(i) || writes(j)))
                continue;
            if (a.buffer.buffer == b.buffer.buffer &&
                a.buffer.offset < b.buffer.offset + b.buffer.range &&
                b.buffer.offset < a.buffer.offset + a.buffer.range)
                return true;
        }
    }
    return false;
}

struct Outcome {
    std::uint64_t dispatches = 0, barriers = 0;
};

// Checks that the dispatch after each recorded barrier needs the barrier, and that none is missing.
Outcome check_barriers(const std::vector<Command>& commands) {
    Outcome outcome;
    std::vector<Command> since_barrier;
    bool waited = false;
    for (const Command& command : commands) {
        if (command.entry == "vkCmdPipelineBarrier") {
            CHECK_FALSE(waited);
            waited = true;
            ++outcome.barriers;
            CHECK(command.stages[0] == boundary().stage);
            CHECK(command.stages[1] == boundary().stage);
            REQUIRE(command.memory_barriers.size() == 1);
            CHECK(command.memory_barriers[0].srcAccessMask == VK_ACCESS_SHADER_WRITE_BIT);
            CHECK(command.memory_barriers[0].dstAccessMask ==
                  (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
        }
        if (command.entry != "vkCmdDispatch") continue;
        bool has_to = false;
        for (const Command& earlier : since_barrier) has_to = has_to || must_wait(command, earlier);
        REQUIRE(waited == has_to);
        if (waited) since_barrier.clear();
        since_barrier.push_back(command);
        waited = false;
        ++outcome.dispatches;
    }
    CHECK_FALSE(waited);
    return outcome;
}

// Records a call with as many sets as dispatches() announces. Checks that with one set less the
// call is refused and nothing is recorded.
Outcome check(const KernelHost& host, const Kernel& kernel, const Call& call) {
    const Result<std::uint64_t> announced = dispatches(&kernel, call);
    REQUIRE_MESSAGE(announced, announced.status.what);
    Owned<DescriptorArena> arena;
    if (!(host.ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
        if (announced.value > 1) {
            arena.reset(create_arena(&kernel, std::uint32_t(announced.value - 1)).value);
            CHECK(record(host.commands, &kernel, call, arena.get()).code ==
                  VKROPE_ERROR_LIMIT_EXCEEDED);
            CHECK(recorded(host).empty());
        }
        arena.reset(create_arena(&kernel, std::uint32_t(announced.value)).value);
    }
    const Status status = record(host.commands, &kernel, call, arena.get());
    REQUIRE_MESSAGE(status, status.what);
    const Outcome outcome = check_barriers(fake().commands(host.commands));
    CHECK(outcome.dispatches == announced.value);
    check_no_faults();
    return outcome;
}

}  // namespace

TEST_CASE(
    "split calls: as many dispatches as announced, and barriers exactly where bound ranges "
    "overlap") {
    struct Limits {
        std::uint32_t range, workgroups;
    };
    struct Shape {
        std::uint32_t batch, tokens;
    };
    struct Setting {
        bool cpu, push_descriptors, counts, aligned;
    };
    // Any three of the fields take every combination of values.
    std::vector<Setting> settings;
    for (const bool cpu : {false, true}) {
        for (const bool push_descriptors : {false, true}) {
            for (const bool counts : {false, true}) {
                const bool aligned = (cpu != push_descriptors) != counts;
                settings.push_back({cpu, push_descriptors, counts, aligned});
            }
        }
    }
    std::uint64_t many = 0, barriers = 0, without = 0;
    const auto split = [&](const Layout& layout, const Limits& limits, const Shape& shape,
                           const Setting& setting, std::uint32_t storage_buffers) {
        CAPTURE(std::string(layout.name));
        CAPTURE(limits.range);
        CAPTURE(limits.workgroups);
        CAPTURE(shape.batch);
        CAPTURE(setting.cpu);
        CAPTURE(setting.push_descriptors);
        CAPTURE(setting.counts);
        CAPTURE(setting.aligned);
        CAPTURE(storage_buffers);
        const std::uint32_t most = limits.workgroups;
        const KernelHost host({.storage_buffers = storage_buffers,
                               .offset_alignment = setting.aligned ? 256u : 16u,
                               .storage_range = limits.range,
                               .workgroup_count = {most, most, most},
                               .type = setting.cpu ? VK_PHYSICAL_DEVICE_TYPE_CPU
                                                   : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                               .push_descriptors = setting.push_descriptors,
                               .debug_utils = false});
        KernelInfo info = kernel_info();
        Call call = call_of(host, shape.batch, shape.tokens);
        layout.change(host, info, call);
        if (info.scatter_kv && storage_buffers < 8) return;  // create() refuses
        if (setting.counts) call.out_of_range = {host.words, 20, 4};
        const Owned<Kernel> kernel(create(host.ref, info).value);
        REQUIRE(kernel);
        const Outcome outcome = check(host, *kernel, call);
        // A CPU's workgroup has several tokens.
        CHECK((outcome.dispatches > 1 || (setting.cpu && limits.range == 1u << 27)));
        many = std::max(many, outcome.dispatches);
        barriers += outcome.barriers;
        without += outcome.dispatches - 1 - outcome.barriers;
    };
    for (const Layout& layout : layouts) {
        for (const Limits& limits :
             {Limits{1u << 16, 65535}, Limits{1u << 27, 7}, Limits{1u << 16, 7}, Limits{9000, 3}}) {
            for (const Shape& shape : {Shape{1, 250}, Shape{2, 130}, Shape{20, 9}}) {
                for (const Setting& setting : settings) {
                    for (const std::uint32_t storage_buffers : {4u, 16u})
                        split(layout, limits, shape, setting, storage_buffers);
                }
            }
        }
    }
    CHECK(many > 100);
    CHECK(barriers > 1000);
    CHECK(without > 1000);
}

TEST_CASE(
    "split calls: parts that are apart in memory do not wait for each other; packed Q and K are "
    "split at the same tokens") {
    for (const auto& [layout, dispatches] : {std::pair{layouts[0], 9 + 2}, {layouts[1], 15}}) {
        CAPTURE(std::string(layout.name));
        const KernelHost host(
            {.offset_alignment = 256, .storage_range = 1u << 16, .debug_utils = false});
        KernelInfo info = kernel_info();
        Call call = call_of(host, 1, 250);
        layout.change(host, info, call);
        const Owned<Kernel> kernel(create(host.ref, info).value);
        const Outcome outcome = check(host, *kernel, call);
        CHECK(outcome.dispatches == dispatches);
        CHECK(outcome.barriers == 0);
    }
}

TEST_CASE("split calls: a tensor of 16 GiB is read and written to its last byte") {
    constexpr std::uint32_t all = 1u << 23, row = 8 * D * 2;  // the tokens, and the bytes of each
    const KernelHost host({.debug_utils = false});
    for (const VkBuffer buffer : {host.q, host.q_out})
        fake().find(VK_OBJECT_TYPE_BUFFER, buffer, "test")->bytes = VkDeviceSize{all} * row;
    Call call = kernel_call(host, all, VKROPE_ANGLES_COMPUTED);  // a table covers fewer positions
    call.in[K] = call.out[K] = {};
    const Owned<Kernel> kernel(create(host.ref, kernel_info(VKROPE_ANGLES_COMPUTED)).value);
    REQUIRE(kernel);
    CHECK(check(host, *kernel, call).dispatches > 100);
    VkDeviceSize done = 0;
    for (const Command& dispatch : dispatches(host)) {
        const shader::Push push = pushed(dispatch);
        for (const auto& [binding, which] : {std::pair{shader::binding_q_in, shader::offset_q_in},
                                             {shader::binding_q_out, shader::offset_q_out}}) {
            const VkDescriptorBufferInfo& bound = dispatch.descriptors.at(binding).buffer;
            CHECK(bound.offset + offset_of(push, which) * 2 == done);
            CHECK(bound.offset + bound.range == done + VkDeviceSize{push.tokens} * row);
        }
        done += VkDeviceSize{push.tokens} * row;
    }
    CHECK(done == VkDeviceSize{all} * row);
}

TEST_CASE("split calls: a call that cannot be split is refused, and nothing is recorded") {
    struct Row {
        std::uint32_t range;
        Layout layout;
        bool norms;  // whether the tensors have norms over a token
        ErrorCode code;
        const char* words;
    };
    const Row rows[] = {
        {256, layouts[0], false, VKROPE_ERROR_LIMIT_EXCEEDED, "in[0] 256 256"},
        {1u << 16, layouts[2], true, VKROPE_ERROR_LIMIT_EXCEEDED, "norm token"},
        {1u << 27, layouts[5], true, VKROPE_ERROR_NOT_SUPPORTED, "groups norm token"}};
    for (const Row& row : rows) {
        CAPTURE(std::string(row.layout.name));
        const KernelHost host({.storage_range = row.range, .debug_utils = false});
        KernelInfo info = kernel_info();
        Call call = call_of(host, 1, 250);
        row.layout.change(host, info, call);
        if (row.norms) {
            info = with_ops(
                info, full_ops(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_TOKEN, VKROPE_NORM_PLACE_BEFORE));
            call = with_ops(host, info, call);
        }
        const Owned<Kernel> kernel(create(host.ref, info).value);
        REQUIRE(kernel);
        const Status announced = dispatches(kernel.get(), call).status,
                     status = record(host.commands, kernel.get(), call);
        CHECK(announced.code == status.code);
        check_error(status, row.code, row.words);
        CHECK(fake().commands(host.commands).empty());
    }
}

}  // namespace vkrope::test::split
