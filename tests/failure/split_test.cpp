// SPDX-License-Identifier: MIT
// Calls that need many dispatches on a device with small limits. Together these must handle every
// row of the call once, at its place, as a model of the shader sees it.
#include <algorithm>
#include <memory>
#include <random>

#include "split_layouts.hpp"

namespace vkrope::test::split {

namespace {

// ---- Barriers, from the descriptors themselves ----

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

// ---- A scenario on a device ----

struct Limits {
    std::uint32_t range, workgroups;
};
constexpr Limits small_limits[] = {{1u << 16, 65535}, {1u << 27, 7}, {1u << 16, 7}, {9000, 3}};

struct Outcome {
    std::uint64_t dispatches = 0, barriers = 0;
    bool v_beside_k = false;  ///< in some dispatch
};

Outcome check(const KernelHost& host, const Kernel& kernel, const Scenario& scenario) {
    const Result<std::uint64_t> announced = dispatches(&kernel, scenario.call);
    INFO(announced.status.what);
    REQUIRE(announced);
    const std::size_t before = fake().commands(host.commands).size();
    const bool sets = !(host.ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR);
    const auto arena_of = [&](std::uint64_t calls) {
        return Owned<DescriptorArena>(sets ? create_arena(&kernel, std::uint32_t(calls)).value
                                           : nullptr);
    };
    if (sets && announced.value > 1) {  // one set too few: nothing is recorded, and no set is used
        const auto small = arena_of(announced.value - 1);
        CHECK(record(host.commands, &kernel, scenario.call, small.get()).code ==
              VKROPE_ERROR_LIMIT_EXCEEDED);
        CHECK(fake().commands(host.commands).size() == before);
    }
    const auto arena = arena_of(announced.value);
    const Status status = record(host.commands, &kernel, scenario.call, arena.get());
    INFO(status.what);
    REQUIRE(status);
    const std::size_t after = fake().commands(host.commands).size();
    if (sets) {  // all sets were used
        CHECK(record(host.commands, &kernel, scenario.call, arena.get()).code ==
              VKROPE_ERROR_LIMIT_EXCEEDED);
        CHECK(fake().commands(host.commands).size() == after);
    }

    Model model(scenario, kernel);
    Outcome outcome;
    std::vector<Command> since_barrier;
    VkPipeline pipeline = VK_NULL_HANDLE;
    bool waited = false;
    const std::vector<Command>& commands = fake().commands(host.commands);
    for (std::size_t i = before; i < commands.size(); ++i) {
        const Command& command = commands[i];
        if (command.entry == "vkCmdBindPipeline") pipeline = command.pipeline;
        if (command.entry == "vkCmdPipelineBarrier") {
            CHECK_FALSE(waited);
            waited = true;
            ++outcome.barriers;
        }
        if (command.entry != "vkCmdDispatch") continue;
        bool has_to = false;
        for (const Command& earlier : since_barrier) has_to = has_to || must_wait(command, earlier);
        REQUIRE(waited == has_to);
        if (waited) since_barrier.clear();
        since_barrier.push_back(command);
        waited = false;
        model.run(command, pipeline);
        outcome.v_beside_k = outcome.v_beside_k || (pushed(command).flags & shader::flag_v) != 0;
        ++outcome.dispatches;
    }
    CHECK_FALSE(waited);
    CHECK(outcome.dispatches == announced.value);
    model.check_all();
    check_no_faults();
    return outcome;
}

FakeConfig config_for(const Limits& limits, std::uint32_t storage_buffers, bool push_descriptors,
                      std::mt19937& random) {
    const std::uint32_t most = limits.workgroups;
    return {
        .storage_buffers = storage_buffers,
        .offset_alignment = random() % 2 ? 16u : 256u,
        .storage_range = limits.range,
        .workgroup_count = {most, most, most},
        .type = random() % 2 ? VK_PHYSICAL_DEVICE_TYPE_CPU : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .push_descriptors = push_descriptors,
        .debug_utils = false};
}

}  // namespace

TEST_CASE(
    "split calls: every row once, where it belongs; barriers exactly where bound ranges overlap; a "
    "token counts once") {
    std::mt19937 random(75);
    std::uint64_t many = 0, barriers = 0, without = 0;
    std::uint64_t with_k = 0, without_k = 0;  // calls with V in K's dispatch, and outside it
    for (const Layout layout : layouts) {
        for (const Limits& limits : small_limits) {
            for (const bool apart : {false, true}) {
                for (const bool push_descriptors : {true, false}) {
                    CAPTURE(int(layout));
                    CAPTURE(limits.range);
                    CAPTURE(limits.workgroups);
                    CAPTURE(apart);
                    CAPTURE(push_descriptors);
                    const ValueRows v = any_v(layout, random);
                    CAPTURE(int(v));
                    const KernelInfo info = info_for(layout, v);
                    if (apart && info.scatter_kv) continue;  // needs more buffers: create() says so
                    const KernelHost host(
                        config_for(limits, apart ? 4 : 16, push_descriptors, random));
                    const Owned<Kernel> kernel(create(host.ref, info).value);
                    REQUIRE(kernel);
                    const std::pair<std::uint32_t, std::uint32_t> shapes[] = {
                        {1, 270}, {2, 130}, {20, 9}, {1, 1}};
                    for (const auto& shape : shapes) {
                        const std::uint32_t batch = shape.first, tokens = shape.second;
                        CAPTURE(batch);
                        CAPTURE(tokens);
                        const Scenario s = scenario_for(host, info, layout, v, batch, tokens,
                                                        random);
                        const Outcome outcome = check(host, *kernel, s);
                        if (batch * tokens > 250 && limits.range <= 1u << 16)
                            CHECK(outcome.dispatches > 1);
                        many = std::max(many, outcome.dispatches);
                        barriers += outcome.barriers;
                        without += outcome.dispatches - 1 - outcome.barriers;
                        with_k += outcome.v_beside_k;
                        without_k += v == ValueRows::apart ||
                                     (v == ValueRows::like_k && !outcome.v_beside_k);
                    }
                }
            }
        }
    }
    MESSAGE("up to " << many << " dispatches a call; " << barriers << " of " << barriers + without
                     << " wait for an earlier one");
    CHECK(many > 100);
    CHECK(barriers > 1000);
    CHECK(without > 1000);
    CHECK(with_k > 20);
    CHECK(without_k > 100);
}

TEST_CASE(
    "split calls: every row with its head's parameters and its token's factor; a norm over a token "
    "in one dispatch or not at all") {
    std::mt19937 random(78);
    std::uint64_t many = 0, split[3] = {}, refused = 0, later_heads = 0;
    for (const Layout layout : layouts) {
        for (Limits limits : small_limits) {
            limits.range = std::max(limits.range, 10'240u);  // the parameters of 12 heads
            for (const bool apart : {false, true}) {
                for (const Steps steps : {Steps::of_heads, Steps::of_tokens}) {
                    CAPTURE(int(layout));
                    CAPTURE(limits.range);
                    CAPTURE(limits.workgroups);
                    CAPTURE(apart);
                    CAPTURE(int(steps));
                    const ValueRows v = any_v(layout, random);
                    CAPTURE(int(v));
                    const KernelInfo info = info_for(layout, v, steps);
                    if (apart && info.scatter_kv) continue;
                    const KernelHost host(
                        config_for(limits, apart ? 6 : 16, random() % 2 != 0, random));
                    const Owned<Kernel> kernel(create(host.ref, info).value);
                    REQUIRE(kernel);
                    const std::pair<std::uint32_t, std::uint32_t> shapes[] = {
                        {1, 270}, {2, 130}, {20, 9}};
                    for (const auto& [batch, tokens] : shapes) {
                        CAPTURE(batch);
                        CAPTURE(tokens);
                        const Scenario s = scenario_for(host, info, layout, v, batch, tokens,
                                                        random);
                        const Status possible = dispatches(kernel.get(), s.call).status;
                        INFO(possible.what);
                        if (possible) {
                            const Outcome outcome = check(host, *kernel, s);
                            many = std::max(many, outcome.dispatches);
                            split[int(steps)] += outcome.dispatches > 3;
                            for (const Command& command : dispatches(host))
                                later_heads += pushed(command).flags / shader::flag_first_head != 0;
                            continue;
                        }
                        ++refused;
                        CHECK(steps == Steps::of_tokens);
                        CHECK((has_groups(layout) ||
                               (heads_may_be_cut(layout) && limits.range <= 1u << 16)));
                        check_names(possible.what, "norm token");
                        const std::size_t before = fake().commands(host.commands).size();
                        CHECK(record(host.commands, kernel.get(), s.call).code == possible.code);
                        CHECK(fake().commands(host.commands).size() == before);
                    }
                }
            }
        }
    }
    MESSAGE("up to " << many << " dispatches a call; cut: " << split[1] << " calls with norms of "
                     << "heads, " << split[2] << " of tokens; refused: " << refused << "; "
                     << later_heads << " dispatches begin with a later head");
    CHECK(many > 100);
    CHECK(split[1] > 50);
    CHECK(split[2] > 30);
    CHECK(later_heads > 50);
}

TEST_CASE(
    "split calls: parts that are apart in memory do not wait for each other; packed Q and K share "
    "theirs") {
    const KernelHost host(
        {.offset_alignment = 256, .storage_range = 1u << 16, .debug_utils = false});
    const Owned<Kernel> kernel(create(host.ref, kernel_info()).value);
    std::mt19937 random(76);
    const auto outcome = [&](Layout layout) {
        Scenario s = scenario(host, layout, ValueRows::absent, 1, 400, random);
        s.call.out_of_range = {};  // every dispatch that counts would write it
        return check(host, *kernel, s);
    };
    const Outcome apart = outcome(Layout::bshd), packed = outcome(Layout::packed);
    CHECK(apart.dispatches == 7 + 4);  // 64 KiB minus alignment: 63 tokens of Q, 127 of K
    CHECK(apart.barriers == 0);
    // Rows of the same length are cut at the same tokens, so that no part touches what another one
    // writes.
    CHECK(packed.dispatches == 13);
    CHECK(packed.barriers == 0);
}

TEST_CASE("split calls: sequences that start further on keep their positions in every part") {
    std::mt19937 random(79);
    for (const Layout layout : {Layout::bshd, Layout::grouped}) {
        CAPTURE(int(layout));
        const KernelInfo info = info_for(layout, ValueRows::absent);
        const KernelHost host({.storage_range = 1u << 16, .workgroup_count = {7, 7, 7}});
        const Owned<Kernel> kernel(create(host.ref, info).value);
        Scenario s = scenario_for(host, info, layout, ValueRows::absent, 20, 9, random);
        s.call.positions.batch_stride = 100;
        CHECK(check(host, *kernel, s).dispatches > 4);
    }
}

TEST_CASE(
    "a row that does not fit: limit_exceeded, from dispatches() too, and nothing is recorded") {
    const KernelHost host({.offset_alignment = 16, .storage_range = 256, .debug_utils = false});
    const Owned<Kernel> kernel(create(host.ref, kernel_info()).value);
    std::mt19937 random(77);
    const Scenario s = scenario(host, Layout::bshd, ValueRows::absent, 2, 5, random);
    for (const Status& status :
         {dispatches(kernel.get(), s.call).status, record(host.commands, kernel.get(), s.call)}) {
        check_error(status, VKROPE_ERROR_LIMIT_EXCEEDED, "in[0] 256 256");
    }
    CHECK(fake().commands(host.commands).empty());
}

}  // namespace vkrope::test::split
