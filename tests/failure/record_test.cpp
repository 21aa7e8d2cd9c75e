// SPDX-License-Identifier: MIT
// record(): the exact calls and numbers.
#include <memory>

#include "support/fake_vulkan/host_memory.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

namespace {

using Names = std::vector<std::string>;

// A kernel on a host, with an arena if there are no push descriptors.
struct Recorder {
    explicit Recorder(const FakeConfig& config, const KernelInfo& info = kernel_info(),
                      std::uint32_t calls = 8)
        : host(config) {
        kernel.reset(create(host.ref, info).value);
        REQUIRE(kernel);
        if (!config.push_descriptors) arena.reset(create_arena(kernel.get(), calls).value);
        fake().forget_calls();
    }
    ~Recorder() { check_no_faults(); }

    Status operator()(const Call& call) {
        fake().forget_calls();
        observe_host_memory();
        const Status status = record(host.commands, kernel.get(), call, arena.get());
        CHECK(observed_allocations() == 0);
        return status;
    }

    KernelHost host;
    Owned<Kernel> kernel;
    Owned<DescriptorArena> arena;
};

void check_side(const shader::RowLayout& side, std::uint32_t z, std::uint32_t token,
                std::uint32_t head) {
    CHECK(side.z == z);
    CHECK(side.token == token);
    CHECK(side.head == head);
}

void check_bound(const Command& dispatch, std::uint32_t binding, VkBuffer buffer,
                 VkDeviceSize offset, VkDeviceSize range) {
    CAPTURE(binding);
    REQUIRE(dispatch.descriptors.contains(binding));
    const VkDescriptorBufferInfo& at = dispatch.descriptors.at(binding).buffer;
    CHECK(at.buffer == buffer);
    CHECK(at.offset == offset);
    CHECK(at.range == range);
}

const Names pushes = {"vkCmdPushDescriptorSetKHR", "vkCmdBindPipeline", "vkCmdPushConstants",
                      "vkCmdDispatch"};
const Names sets = {"vkUpdateDescriptorSets", "vkCmdBindDescriptorSets", "vkCmdBindPipeline",
                    "vkCmdPushConstants", "vkCmdDispatch"};

Names operator+(Names a, const Names& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

}  // namespace

TEST_CASE(
    "record: 4 calls with push descriptors, 5 with an arena, 2 more for a label; no host "
    "allocation") {
    for (const bool labels : {true, false}) {
        const auto labelled = [&](const Names& names) {
            return labels ? Names{"vkCmdBeginDebugUtilsLabelEXT"} + names +
                                Names{"vkCmdEndDebugUtilsLabelEXT"}
                          : names;
        };
        for (const AngleSource angles : {AngleSource::factored_texture, AngleSource::computed,
                                         AngleSource::direct_texture, AngleSource::direct_buffer}) {
            for (const bool apart : {false, true}) {
                for (const bool push_descriptors : {true, false}) {
                    CAPTURE(apart);
                    const Names& one = push_descriptors ? pushes : sets;
                    Recorder recorder({.storage_buffers = apart ? 4u : 16u,
                                       .push_descriptors = push_descriptors,
                                       .debug_utils = labels},
                                      kernel_info(angles));
                    Call call = kernel_call(recorder.host, 7, angles);
                    CHECK(recorder(call));
                    // Apart: Q and K take one dispatch each, and need no barrier unless they
                    // overlap.
                    CHECK(fake().calls() == labelled(apart ? one + one : one));
                    call.q_in = call.q_out = {};
                    CHECK(recorder(call));
                    CHECK(fake().calls() == labelled(one));
                }
            }
        }
    }
}

TEST_CASE(
    "record: the boundary names what the compute stage does to each kind of memory, and no more") {
    const Boundary at = boundary();
    CHECK(at.stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    CHECK(at.input_access == (VK_ACCESS_SHADER_READ_BIT |
                              VK_ACCESS_UNIFORM_READ_BIT));  // computed angles are uniforms
    CHECK(at.texture_access == VK_ACCESS_SHADER_READ_BIT);
    CHECK(at.output_access == VK_ACCESS_SHADER_WRITE_BIT);
    CHECK(at.in_place_access == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
}

TEST_CASE(
    "record: apart dispatches have a barrier between them exactly where their bound ranges "
    "overlap") {
    Recorder recorder({.storage_buffers = 4, .debug_utils = false});
    // [tokens, 8 + 2 + 2 heads, 128] in one buffer: rows are disjoint, ranges are not.
    Call packed = kernel_call(recorder.host);
    const auto plane = [&](std::uint32_t first, std::uint32_t heads) {
        const VkDeviceSize start = first * 256, bytes = 7 * 12 * 256;
        return Tensor{.where = {recorder.host.q, start, bytes - start},
                      .heads = heads,
                      .token_stride = 12 * 128};
    };
    packed.q_in = packed.q_out = plane(0, 8);
    packed.k_in = packed.k_out = plane(8, 2);
    CHECK(recorder(packed));
    CHECK(fake().calls() == pushes + Names{"vkCmdPipelineBarrier"} + pushes);
    const Command& barrier = fake().commands(recorder.host.commands)[4];
    CHECK(barrier.stages[0] == boundary().stage);
    CHECK(barrier.stages[1] == boundary().stage);
    REQUIRE(barrier.memory_barriers.size() == 1);
    CHECK(barrier.memory_barriers[0].srcAccessMask == VK_ACCESS_SHADER_WRITE_BIT);
    CHECK(barrier.memory_barriers[0].dstAccessMask ==
          (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
    // Adjacent in one buffer: the ranges share no byte.
    Call beside = kernel_call(recorder.host);
    beside.k_out.where.buffer = beside.q_out.where.buffer;
    beside.k_out.where.offset = beside.q_out.where.range;
    CHECK(recorder(beside));
    CHECK(fake().calls() == pushes + pushes);
    // Only the inputs overlap, and nothing writes them.
    Call shared = kernel_call(recorder.host);
    shared.k_in.where = {shared.q_in.where.buffer, 0, shared.k_in.where.range};
    CHECK(recorder(shared));
    CHECK(fake().calls() == pushes + pushes);
}

TEST_CASE(
    "record: apart dispatches also wait where a lowered binding of one reaches into the ids of the "
    "other") {
    KernelInfo info = kernel_info();
    info.positions = PositionSource::ids;
    Recorder recorder({.storage_buffers = 4, .offset_alignment = 256, .debug_utils = false}, info);
    // The ids are before one of the tensors, in its buffer: the tensor's binding starts at the ids.
    const auto calls = [&](Tensor Call::*tensor) {
        Call call = kernel_call(recorder.host, 5);
        (call.*tensor).where.offset = 64;
        call.positions.ids = {(call.*tensor).where.buffer, 0, 20};
        CHECK(recorder(call));
        return fake().calls();
    };
    CHECK(calls(&Call::q_out) == pushes + Names{"vkCmdPipelineBarrier"} + pushes);
    CHECK(calls(&Call::k_out) == pushes + Names{"vkCmdPipelineBarrier"} + pushes);
    CHECK(calls(&Call::q_in) == pushes + pushes);
    CHECK(calls(&Call::k_in) == pushes + pushes);
}

TEST_CASE(
    "record: the push constants and descriptors of a call with offsets, strides, ids and a "
    "counter") {
    for (const VkDeviceSize alignment : {4u, 16u, 64u, 256u}) {
        CAPTURE(alignment);
        KernelInfo info = kernel_info();
        info.positions = PositionSource::ids;
        Recorder recorder({.offset_alignment = alignment, .debug_utils = false}, info);
        const KernelHost& host = recorder.host;
        Call call = kernel_call(host, 5);
        call.batch = 2;
        call.direction = Direction::inverse;
        // Q in place, in rows of 10 heads, 100 elements into the buffer: 200 bytes.
        call.q_in = {
            .where = {host.q, 200, 65536}, .heads = 8, .token_stride = 1280, .batch_stride = 12800};
        call.q_out = call.q_in;
        call.k_in.where.range = call.k_out.where.range = 2 * 5 * 2 * 256;
        call.positions.ids = {host.words, 1036, 4 * 15};
        call.positions.batch_stride = 10;
        call.out_of_range = {host.words, 2052, 4};
        CHECK(recorder(call));
        const Command dispatch = dispatches(host).at(0);
        // Offsets are rounded down to the alignment of the device, at least 16 bytes.
        const VkDeviceSize least = alignment < 16 ? 16 : alignment;
        const auto lowered = [&](VkDeviceSize offset) { return offset / least * least; };
        const VkDeviceSize q_at = lowered(200), ids_at = lowered(1036), status_at = lowered(2052);
        const VkDeviceSize q_bytes = (12800 + 4 * 1280 + 8 * 128) * 2, k_bytes = 2 * 5 * 2 * 256;
        check_bound(dispatch, shader::binding_q_in, host.q, q_at, 200 + q_bytes - q_at);
        check_bound(dispatch, shader::binding_q_out, host.q, q_at, 200 + q_bytes - q_at);
        check_bound(dispatch, shader::binding_k_in, host.k, 0, k_bytes);
        check_bound(dispatch, shader::binding_k_out, host.k_out, 0, k_bytes);
        check_bound(dispatch, shader::binding_ids, host.words, ids_at, 1036 + 4 * 15 - ids_at);
        check_bound(dispatch, shader::binding_status, host.words, status_at, 2056 - status_at);
        const VkDescriptorImageInfo& image = dispatch.descriptors.at(shader::binding_texture).image;
        CHECK(image.imageView == host.view);
        CHECK(image.imageLayout == VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
        CHECK(dispatch.descriptors.size() == 7);

        const shader::Push push = pushed(dispatch);
        check_side(push.q_in, 12800, 1280, 128);
        check_side(push.q_out, 12800, 1280, 128);
        check_side(push.k_in, 5 * 2 * 128, 2 * 128, 128);
        check_side(push.k_out, 5 * 2 * 128, 2 * 128, 128);
        CHECK(push.tokens == 5);
        CHECK(push.heads == (8 | 2 << 16));
        CHECK(push.flags ==
              (shader::flag_inverse | shader::flag_q_in_place | shader::flag_count_positions));
        std::map<std::uint32_t, std::uint32_t> offsets = {
            {shader::offset_q_in, (200 - q_at) / 2},
            {shader::offset_q_out, (200 - q_at) / 2},
            {shader::offset_ids, (1036 - ids_at) / 4},
            {shader::offset_status, (2052 - status_at) / 4}};
        for (std::uint32_t which = 0; which < 16; ++which)
            CHECK(offset_of(push, which) == offsets[which]);
        CHECK(push.index_z == 10);
        CHECK(push.table_rows == 4096);
        CHECK(push.table_stride == 12);
        CHECK(push.table_texels == 32);
    }
}

TEST_CASE(
    "record: a table in a buffer is read in 16 bytes where it begins at a multiple of them, and in "
    "words elsewhere") {
    const auto access_at = [](AngleSource angles, VkDeviceSize offset) {
        Recorder recorder({}, kernel_info(angles));
        Call call = kernel_call(recorder.host, 7, angles);
        call.angles.buffer.offset += offset;
        if (angles == AngleSource::cos_sin_cache) call.angles.sin = call.angles.buffer;
        CHECK(recorder(call));
        const Command dispatch = dispatches(recorder.host).at(0);
        CHECK(offset_of(pushed(dispatch), shader::offset_table) ==
              offset / 4 % 4);  // in words after a multiple of 16 bytes
        return fake().find(VK_OBJECT_TYPE_PIPELINE, dispatch.pipeline, "test")->name;
    };
    for (const VkDeviceSize offset : {0u, 16u, 32u})
        CHECK(access_at(AngleSource::direct_buffer, offset) == "vkrope, 16-byte access");
    for (const VkDeviceSize offset : {4u, 8u, 12u, 20u, 24u}) {
        CAPTURE(offset);
        CHECK(access_at(AngleSource::direct_buffer, offset) == "vkrope, word access");
    }
}

TEST_CASE(
    "record: a binding that the call leaves unused gets a buffer that the call uses the same way") {
    KernelInfo info = kernel_info(AngleSource::direct_buffer);
    info.scatter_k = true;
    Recorder recorder({.debug_utils = false}, info);
    const KernelHost& host = recorder.host;
    Call call = kernel_call(host, 7, AngleSource::direct_buffer);
    call.positions.first = -3;
    call.k_in = call.k_out = {};
    CHECK(recorder(call));
    const Command dispatch = dispatches(host).at(0);
    const VkDeviceSize bytes = 7 * 8 * 256;
    for (const auto read :
         {shader::binding_q_in, shader::binding_k_in, shader::binding_slot_mapping})
        check_bound(dispatch, read, host.q, 0, bytes);
    for (const auto written :
         {shader::binding_q_out, shader::binding_k_out, shader::binding_status})
        check_bound(dispatch, written, host.q_out, 0, bytes);
    check_bound(dispatch, shader::binding_table, host.words, 4096,
                angle_plan(AngleSource::direct_buffer).bytes);
    const shader::Push push = pushed(dispatch);
    CHECK(push.heads == 8);
    CHECK(push.flags == 0);
    CHECK(push.first_position == std::uint32_t(-3));
    for (const std::uint32_t word : push.offsets) CHECK(word == 0);
    CHECK(push.table_stride == 128);
    CHECK(push.table_rows == 512);
}

TEST_CASE("record: a factored table is bound and described as a direct one is") {
    for (const std::uint32_t storage_buffers : {4u, 16u}) {
        Recorder recorder({.storage_buffers = storage_buffers, .debug_utils = false},
                          kernel_info(AngleSource::factored_texture));
        Call call = kernel_call(recorder.host, 7, AngleSource::factored_texture);
        call.out_of_range = {recorder.host.words, 0, 4};
        CHECK(recorder(call));
        for (const Command& dispatch : dispatches(recorder.host)) {
            CHECK(dispatch.descriptors.at(shader::binding_texture).image.imageView ==
                  recorder.host.view);
            CHECK(pushed(dispatch).table_rows == 4096);
            CHECK(pushed(dispatch).table_stride == 12);
            CHECK(pushed(dispatch).table_texels == 32);
        }
        CHECK(dispatches(recorder.host).size() == (storage_buffers == 4 ? 2 : 1));
    }
}

TEST_CASE(
    "record: the numbers of computed angles are a uniform buffer, at an offset at which the device "
    "binds one") {
    for (const std::uint32_t storage_buffers : {4u, 16u}) {
        for (const bool push_descriptors : {true, false}) {
            Recorder recorder({.storage_buffers = storage_buffers,
                               .uniform_alignment = 64,
                               .push_descriptors = push_descriptors,
                               .debug_utils = false},
                              kernel_info(AngleSource::computed));
            Call call = kernel_call(recorder.host, 7, AngleSource::computed);
            call.angles.buffer = {recorder.host.words, 4096 + 64, 600};
            call.out_of_range = {recorder.host.words, 0, 4};
            CHECK(recorder(call));
            CHECK(dispatches(recorder.host).size() == (storage_buffers == 4 ? 2 : 1));
            for (const Command& dispatch : dispatches(recorder.host)) {
                check_bound(dispatch, shader::binding_turns, recorder.host.words, 4096 + 64, 544);
                CHECK(dispatch.descriptors.at(shader::binding_turns).type ==
                      VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
                CHECK(pushed(dispatch).table_rows == 0x80000001);  // -2^31 too
                CHECK(offset_of(pushed(dispatch), shader::offset_table) == 0);
            }
            const auto refused = [&](VkDeviceSize offset, VkDeviceSize range, const char* text) {
                call.angles.buffer.offset = offset;
                call.angles.buffer.range = range;
                const Status status = recorder(call);
                INFO(status.what);
                CHECK(status.code == Code::invalid_argument);
                CHECK(std::string(status.what).find(text) == 0);
                CHECK(fake().calls().empty());
            };
            refused(
                4096 + 16, 600,
                "angles.buffer.offset is 4112: for computed angles it must be a multiple of 64");
            refused(4096, 540, "angles.buffer.range is 540");
        }
    }
}

TEST_CASE(
    "record: apart, a dispatch sees its tensor as Q; the counter goes with the first dispatch") {
    Recorder recorder({.storage_buffers = 4, .debug_utils = false});
    const KernelHost& host = recorder.host;
    Call call = kernel_call(host);
    call.out_of_range = {host.words, 0, 4};
    CHECK(recorder(call));
    const auto two = dispatches(host);
    REQUIRE(two.size() == 2);
    check_bound(two[0], shader::binding_q_in, host.q, 0, 7 * 8 * 256);
    check_bound(two[0], shader::binding_q_out, host.q_out, 0, 7 * 8 * 256);
    check_bound(two[0], shader::binding_status, host.words, 0, 4);
    check_bound(two[1], shader::binding_q_in, host.k, 0, 7 * 2 * 256);
    check_bound(two[1], shader::binding_q_out, host.k_out, 0, 7 * 2 * 256);
    check_bound(two[1], shader::binding_status, host.k_out, 0, 7 * 2 * 256);
    CHECK(pushed(two[0]).heads == 8);
    CHECK(pushed(two[1]).heads == 2);
    CHECK(pushed(two[0]).flags == shader::flag_count_positions);
    CHECK(pushed(two[1]).flags == 0);
    check_side(pushed(two[1]).q_in, 0, 2 * 128, 128);
}

TEST_CASE("record: what too few storage buffers cannot do is limit_exceeded, with both numbers") {
    // Q and K with ids, a table and a counter bind 7 buffers; one of them, 5.
    for (const std::uint32_t storage_buffers : {4u, 5u, 6u, 7u}) {
        KernelInfo info = kernel_info(AngleSource::direct_buffer);
        info.positions = PositionSource::ids;
        Recorder recorder({.storage_buffers = storage_buffers, .debug_utils = false}, info);
        Call counted = kernel_call(recorder.host, 7, AngleSource::direct_buffer);
        counted.positions.ids = {recorder.host.words, 0, 28};
        counted.out_of_range = {recorder.host.words, 256, 4};
        const Status status = recorder(counted);
        INFO(status.what);
        if (storage_buffers > 4) {
            CHECK(status);
            CHECK(dispatches(recorder.host).size() == (storage_buffers < 7 ? 2 : 1));
            continue;
        }
        CHECK(status.code == Code::limit_exceeded);
        CHECK(std::string(status.what).find("binds 5 storage buffers, but the device allows 4 ") !=
              std::string::npos);
        CHECK(fake().calls().empty());
    }
}

TEST_CASE(
    "record: V goes with K; apart where it lies otherwise, or the device binds too few storage "
    "buffers") {
    const auto recorded_on = [](const FakeConfig& config, const auto& change) {
        fake().restart();
        const KernelHost host(config);
        const Owned<Kernel> kernel(create(host.ref, with_v(kernel_info())).value);
        REQUIRE(kernel);
        Call call = with_v(host, kernel_call(host));
        change(call);
        const Owned<DescriptorArena> arena(
            config.push_descriptors ? nullptr : create_arena(kernel.get(), 3).value);
        const Status status = record(host.commands, kernel.get(), call, arena.get());
        INFO(status.what);
        REQUIRE(status);
        std::vector<std::vector<VkBuffer>>
            buffers;  // of each dispatch: tensors that it reads and writes
        for (const Command& dispatch : dispatches(host)) {
            std::vector<VkBuffer>& bound = buffers.emplace_back();
            const bool with_k = (pushed(dispatch).flags & shader::flag_v) != 0;
            const std::uint32_t heads = pushed(dispatch).heads;
            const auto add = [&](std::uint32_t binding) {
                bound.push_back(dispatch.descriptors.at(binding).buffer.buffer);
            };
            if ((heads & 0xffff) != 0) add(shader::binding_q_in), add(shader::binding_q_out);
            if (heads >> 16 != 0) add(shader::binding_k_in), add(shader::binding_k_out);
            if (with_k) add(shader::binding_v_in), add(shader::binding_v_out);
        }
        check_no_faults();
        using Named = std::vector<std::vector<std::string>>;
        Named named;
        for (const auto& bound : buffers) {
            auto& names = named.emplace_back();
            for (const VkBuffer buffer : bound) {
                names.push_back(buffer == host.q       ? "q"
                                : buffer == host.q_out ? "q_out"
                                : buffer == host.k     ? "k"
                                : buffer == host.k_out ? "k_out"
                                : buffer == host.v     ? "v"
                                : buffer == host.v_out ? "v_out"
                                                       : "other");
            }
        }
        return named;
    };
    using Named = std::vector<std::vector<std::string>>;
    const auto as_it_is = [](Call&) {};
    const Named one = {{"q", "q_out", "k", "k_out", "v", "v_out"}},
                two = {{"q", "q_out", "k", "k_out"}, {"v", "v_out"}};
    CHECK(recorded_on({}, as_it_is) == one);
    CHECK(recorded_on({.push_descriptors = false}, as_it_is) == one);
    CHECK(recorded_on({}, [](Call& call) {
              call.v_in.token_stride = 3 * 128, call.v_in.where.range = 7 * 3 * 128 * 2;
          }) == two);
    CHECK(recorded_on({}, [](Call& call) { call.v_in.heads = call.v_out.heads = 1; }) == two);
    CHECK(recorded_on({}, [](Call& call) { call.v_in = call.v_out; }) ==
          Named{{"q", "q_out", "k", "k_out"}});
    CHECK(recorded_on({}, [](Call& call) { call.q_in = call.q_out = {}; }) ==
          Named{{"k", "k_out", "v", "v_out"}});
    CHECK(recorded_on({}, [](Call& call) { call.k_in = call.k_out = {}; }) ==
          Named{{"q", "q_out"}, {"v", "v_out"}});
    CHECK(recorded_on({}, [](Call& call) {
              call.q_in = call.q_out = call.k_in = call.k_out = {};
          }) == Named{{"v", "v_out"}});
    CHECK(recorded_on({}, [](Call& call) { call.v_in = call.v_out = {}; }) ==
          Named{{"q", "q_out", "k", "k_out"}});
    // Q, K, V and the counter bind 7; Q, K and the counter 5.
    CHECK(recorded_on({.storage_buffers = 7}, as_it_is) == one);
    CHECK(recorded_on({.storage_buffers = 6}, as_it_is) == two);
    CHECK(recorded_on({.storage_buffers = 4}, as_it_is) ==
          Named{{"q", "q_out"}, {"k", "k_out"}, {"v", "v_out"}});
    CHECK(recorded_on({.storage_buffers = 4, .push_descriptors = false}, as_it_is) ==
          Named{{"q", "q_out"}, {"k", "k_out"}, {"v", "v_out"}});
}

TEST_CASE("record: workgroups along x are tokens, along y groups of heads, along z sequences") {
    // 16 bytes of f16 are 8 channels, and a step has two such units: a row of 128 has 8 steps, for
    // 8 heads of a token on a GPU.
    const auto groups_of = [](const FakeConfig& config, std::uint32_t batch, std::uint32_t tokens) {
        Recorder recorder(config);
        Call call = kernel_call(recorder.host, tokens);
        call.batch = batch;
        for (Tensor* tensor : {&call.q_in, &call.q_out, &call.k_in, &call.k_out})
            tensor->where.range *= batch;
        CHECK(recorder(call));
        const Command dispatch = dispatches(recorder.host).at(0);
        return std::vector<std::uint32_t>(dispatch.groups, dispatch.groups + 3);
    };
    using Groups = std::vector<std::uint32_t>;
    CHECK(groups_of({}, 1, 7) == Groups{7, 1, 1});
    CHECK(groups_of({}, 3, 7) == Groups{7, 1, 3});
    CHECK(groups_of({.workgroup_count = {4, 4, 4}}, 1, 7) == Groups{4, 1, 1});
    CHECK(fake().count("vkCmdDispatch") == 2);  // Q and K stay together
    // On a CPU a lane has 64 bytes, 32 channels, in all heads: 64 tokens per workgroup.
    CHECK(groups_of({.type = VK_PHYSICAL_DEVICE_TYPE_CPU}, 1, 100) == Groups{2, 1, 1});
}

TEST_CASE("record: nothing to do records nothing, and so does every error") {
    for (const bool push_descriptors : {true, false}) {
        for (const std::uint32_t storage_buffers : {4u, 16u}) {
            Recorder recorder({.storage_buffers = storage_buffers,
                               .storage_range = 1u << 16,
                               .workgroup_count = {8, 2, 4},
                               .push_descriptors = push_descriptors},
                              kernel_info(), 3);
            const KernelHost& host = recorder.host;
            const auto refused = [&](const Call& call, Code code) {
                const Status status = recorder(call);
                INFO(status.what);
                CHECK(status.code == code);
                CHECK(fake().calls().empty());
            };
            refused(Call{}, Code::ok);
            Call call = kernel_call(host, 0);
            refused(call, Code::ok);
            call = kernel_call(host);
            call.batch = 0;
            refused(call, Code::ok);
            call = kernel_call(host);
            call.q_in.where.buffer = VK_NULL_HANDLE;
            refused(call, Code::invalid_argument);
            call = kernel_call(host);
            call.angles.view = VK_NULL_HANDLE;
            refused(call, Code::invalid_argument);
            if (push_descriptors) continue;
            // Three sets are enough for three calls of one dispatch, but only one of two.
            const int fits = storage_buffers == 4 ? 1 : 3;
            for (int i = 0; i < fits; ++i) CHECK(recorder(kernel_call(host)));
            refused(kernel_call(host), Code::limit_exceeded);
            reset(recorder.arena.get());
            CHECK(recorder(kernel_call(host)));
        }
    }
}

TEST_CASE("record: an error of the finish records nothing, not even the dispatches before it") {
    const auto refused = [](Recorder& by, const Call& call, Code code, const char* text) {
        const Status status = by(call);
        INFO(status.what);
        CHECK(status.code == code);
        CHECK(std::string(status.what).find(text) == 0);
        CHECK(fake().calls().empty());
    };
    // A workgroup has 16 heads of a token, and there is one along y.
    for (const std::uint32_t v_heads : {16u, 17u}) {
        for (const bool push_descriptors : {true, false}) {
            const KernelInfo info = with_finish(
                with_v(kernel_info()),
                full_finish(NormKind::rms, NormSpan::token, NormPlace::before), 8, 2, v_heads);
            // V takes a dispatch of its own, after that of Q and K.
            Recorder recorder({.storage_buffers = 8,
                               .workgroup_count = {65535, 1, 65535},
                               .push_descriptors = push_descriptors},
                              info, 2);
            Call good = with_v(recorder.host, kernel_call(recorder.host));
            for (Tensor* v : {&good.v_in, &good.v_out}) {
                v->heads = v_heads;
                v->where.range = VkDeviceSize{7} * v_heads * 128 * 2;
            }
            good = with_finish(recorder.host, info, good);
            Call call = good;
            call.v_scale_tokens = {};
            refused(recorder, call, Code::invalid_argument, "v_scale_tokens.buffer is null");
            call = good;
            call.parameters.range -= 4;
            refused(recorder, call, Code::invalid_argument, "parameters.range is ");
            call = good;
            call.parameters.offset += 4;
            refused(recorder, call, Code::invalid_argument, "parameters.offset is ");
            if (v_heads == 17) {
                refused(recorder, good, Code::limit_exceeded,
                        "v_in has 17 heads: a norm over a token needs all in one dispatch, which "
                        "has 16 ");
                continue;
            }
            CHECK(recorder(good));
            CHECK(dispatches(recorder.host).size() == 2);
            if (!push_descriptors)  // both of its sets are used
                refused(recorder, good, Code::limit_exceeded, "");
        }
    }
}

}  // namespace vkrope::test
