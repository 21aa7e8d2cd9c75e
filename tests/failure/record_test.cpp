// SPDX-License-Identifier: MIT
// Tests the exact Vulkan calls of record() and their numbers.
#include <algorithm>
#include <map>
#include <set>

#include "recorder.hpp"

namespace vkrope::test {

TEST_CASE(
    "record: makes 4 calls with push descriptors, 5 with an arena, 2 more for a label, and no host "
    "allocation") {
    for (const bool labels : {true, false}) {
        const auto labelled = [&](const Names& names) {
            return labels ? Names{"vkCmdBeginDebugUtilsLabelEXT"} + names +
                                Names{"vkCmdEndDebugUtilsLabelEXT"}
                          : names;
        };
        for (const AngleSource angles :
             {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_TEXTURE,
              VKROPE_ANGLES_DIRECT_BUFFER}) {
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
                    // With `apart`, Q and K take one dispatch each, without a barrier, since they
                    // do not overlap.
                    CHECK(fake().calls() == labelled(apart ? one + one : one));
                    call.in[Q] = call.out[Q] = {};
                    CHECK(recorder(call));
                    CHECK(fake().calls() == labelled(one));
                }
            }
        }
    }
}

TEST_CASE("record: the boundary has exactly the compute stage's accesses to each kind of memory") {
    const Boundary at = boundary();
    CHECK(at.stage == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT);
    CHECK(at.input_access == (VK_ACCESS_SHADER_READ_BIT |
                              VK_ACCESS_UNIFORM_READ_BIT));  // computed angles are uniforms
    CHECK(at.texture_access == VK_ACCESS_SHADER_READ_BIT);
    CHECK(at.output_access ==
          (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));  // atomics read, too
    CHECK(at.in_place_access == (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
}

TEST_CASE(
    "record: the push constants and descriptors of a call with offsets, strides, ids and a "
    "counter") {
    for (const VkDeviceSize alignment : {4u, 16u, 64u, 256u}) {
        CAPTURE(alignment);
        KernelInfo info = kernel_info();
        info.positions = VKROPE_POSITIONS_IDS;
        Recorder recorder({.offset_alignment = alignment, .debug_utils = false}, info);
        const KernelHost& host = recorder.host;
        Call call = kernel_call(host, 5);
        call.batch = 2;
        call.direction = VKROPE_INVERSE;
        // Q is rotated in place, in rows of 10 heads; its offset is 100 elements or 200 bytes.
        call.in[Q] = {
            .where = {host.q, 200, 65536}, .heads = 8, .token_stride = 1280, .batch_stride = 12800};
        call.out[Q] = call.in[Q];
        call.in[K].where.range = call.out[K].where.range = 2 * 5 * 2 * 256;
        call.positions.ids = {host.words, 1036, 4 * 15};
        call.positions.batch_stride = 10;
        call.out_of_range = {host.words, 2052, 4};
        CHECK(recorder(call));
        const Command dispatch = dispatches(host).at(0);
        // record() rounds offsets down to multiples of the device's alignment, or of 16 if greater.
        const VkDeviceSize least = alignment < 16 ? 16 : alignment;
        const auto lowered = [&](VkDeviceSize offset) { return offset / least * least; };
        const VkDeviceSize q_at = lowered(200), ids_at = lowered(1036), status_at = lowered(2052);
        const VkDeviceSize q_bytes = (12800 + 4 * 1280 + 8 * 128) * 2, k_bytes = 2 * 5 * 2 * 256;
        check_bound(dispatch, shader::binding_q_in, host.q, q_at, 200 + q_bytes - q_at);
        check_bound(dispatch, shader::binding_q_out, host.q, q_at, 200 + q_bytes - q_at);
        check_bound(dispatch, shader::binding_k_in, host.k, 0, k_bytes);
        check_bound(dispatch, shader::binding_k_out, host.k_out, 0, k_bytes);
        check_bound(dispatch, shader::binding_ids, host.words, ids_at, 1036 + 4 * 15 - ids_at);
        check_bound(dispatch, shader::binding_out_of_range, host.words, status_at,
                    2056 - status_at);
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
            {shader::offset_out_of_range, (2052 - status_at) / 4}};
        for (std::uint32_t which = 0; which < 16; ++which)
            CHECK(offset_of(push, which) == offsets[which]);
        CHECK(push.ids_z == 10);
        CHECK(push.table_rows == 4096);
        CHECK(push.texture_fold_log2 == 12);
        CHECK(push.texture_row_texels == 32);
    }
}

TEST_CASE(
    "record: a binding that the call leaves unused gets a buffer that the call uses the same way") {
    KernelInfo info = kernel_info(VKROPE_ANGLES_DIRECT_BUFFER);
    info.scatter_kv = true;
    Recorder recorder({.debug_utils = false}, info);
    const KernelHost& host = recorder.host;
    Call call = kernel_call(host, 7, VKROPE_ANGLES_DIRECT_BUFFER);
    call.positions.first = -3;
    call.in[K] = call.out[K] = {};
    CHECK(recorder(call));
    const Command dispatch = dispatches(host).at(0);
    const VkDeviceSize bytes = 7 * 8 * 256;
    for (const auto read :
         {shader::binding_q_in, shader::binding_k_in, shader::binding_slot_mapping})
        check_bound(dispatch, read, host.q, 0, bytes);
    for (const auto written :
         {shader::binding_q_out, shader::binding_k_out, shader::binding_out_of_range})
        check_bound(dispatch, written, host.q_out, 0, bytes);
    check_bound(dispatch, shader::binding_table, host.words, 4096,
                angle_plan(VKROPE_ANGLES_DIRECT_BUFFER).bytes);
    const shader::Push push = pushed(dispatch);
    CHECK(push.heads == 8);
    CHECK(push.flags == 0);
    CHECK(push.first_position == std::uint32_t(-3));
    for (const std::uint32_t word : push.offsets) CHECK(word == 0);
    CHECK(push.table_stride == 128);
    CHECK(push.table_rows == 512);
}

TEST_CASE("record: workgroups along x are tokens, along y groups of heads, along z sequences") {
    struct Row {
        VkPhysicalDeviceType type;
        std::uint32_t tokens, groups;
    };
    // A row of 128 has 8 steps, for 8 heads of a token on a GPU. On a CPU a lane has 64 bytes of
    // all heads, and a workgroup 64 tokens.
    for (const Row& row : {Row{VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, 7, 7},
                           Row{VK_PHYSICAL_DEVICE_TYPE_CPU, 100, 2}}) {
        Recorder recorder({.type = row.type});
        Call call = kernel_call(recorder.host, 3 * row.tokens);
        call.batch = 3;
        call.tokens = row.tokens;
        call.positions.batch_stride = broadcast;
        CHECK(recorder(call));
        const Command dispatch = dispatches(recorder.host).at(0);
        CHECK(dispatch.groups[0] == row.groups);
        CHECK(dispatch.groups[1] == 1);
        CHECK(dispatch.groups[2] == 3);
    }
}

TEST_CASE("record: computed angles are a uniform buffer, at an offset that the device binds") {
    Recorder recorder({.uniform_alignment = 64}, kernel_info(VKROPE_ANGLES_COMPUTED));
    Call call = kernel_call(recorder.host, 7, VKROPE_ANGLES_COMPUTED);
    call.angles.buffer = {recorder.host.words, 4096 + 64, 600};
    CHECK(recorder(call));
    const Command dispatch = dispatches(recorder.host).at(0);
    check_bound(dispatch, shader::binding_turns, recorder.host.words, 4096 + 64, 544);
    CHECK(dispatch.descriptors.at(shader::binding_turns).type == VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
    CHECK(pushed(dispatch).table_rows == 0x80000001);  // -2^31 too
}

TEST_CASE(
    "record: a table in a buffer is read 16 bytes at a time, and so are tensors, if its offset is "
    "a "
    "multiple of 16; otherwise tensors are accessed 8 bytes at a time") {
    const auto access_at = [](AngleSource angles, VkDeviceSize offset) {
        Recorder recorder({}, kernel_info(angles));
        Call call = kernel_call(recorder.host, 7, angles);
        call.angles.buffer.offset += offset;
        CHECK(recorder(call));
        const Command dispatch = dispatches(recorder.host).at(0);
        CHECK(offset_of(pushed(dispatch), shader::offset_table) ==
              offset / 4 % 4);  // the distance in words from a multiple of 16 bytes
        return fake().find(VK_OBJECT_TYPE_PIPELINE, dispatch.pipeline, "test")->name;
    };
    for (const VkDeviceSize offset : {0u, 16u, 32u})
        CHECK(access_at(VKROPE_ANGLES_DIRECT_BUFFER, offset) == "vkrope, 16-byte access");
    for (const VkDeviceSize offset : {4u, 8u, 12u, 20u, 24u}) {
        CAPTURE(offset);
        CHECK(access_at(VKROPE_ANGLES_DIRECT_BUFFER, offset) == "vkrope, 8-byte access");
    }
}

namespace {

// Records a call, and returns its dispatches.
std::vector<Command> dispatches_of(Recorder& recorder, const Call& call) {
    const std::size_t before = dispatches(recorder.host).size();
    CHECK(recorder(call));
    std::vector<Command> all = dispatches(recorder.host);
    return {all.begin() + std::ptrdiff_t(before), all.end()};
}

}  // namespace

TEST_CASE("record: every stride of a tensor limits the access") {
    Recorder recorder({}, kernel_info());
    const auto access_with = [&](std::int64_t Tensor::*stride, std::int64_t more = 2) {
        Call call = kernel_call(recorder.host);
        call.batch = 2;
        call.positions.batch_stride = 7;
        call.in[Q] = {.where = {recorder.host.q, 0, KernelHost::buffer_bytes},
                      .heads = 8,
                      .token_stride = 1200,
                      .head_stride = 136,
                      .batch_stride = 9600,
                      .heads_per_group = 4,
                      .group_stride = 560};
        call.out[Q].where.range *= 2;
        call.in[K].where.range *= 2;
        call.out[K].where.range *= 2;
        if (stride) call.in[Q].*stride += more;
        const Command dispatch = dispatches_of(recorder, call).at(0);
        return fake().find(VK_OBJECT_TYPE_PIPELINE, dispatch.pipeline, "test")->name;
    };
    CHECK(access_with(nullptr) == "vkrope, 16-byte access");
    for (const auto stride : {&Tensor::token_stride, &Tensor::head_stride, &Tensor::batch_stride,
                              &Tensor::group_stride}) {
        CHECK(access_with(stride) == "vkrope, word access");
        CHECK(access_with(stride, 4) == "vkrope, 8-byte access");
    }
}

TEST_CASE("record: V shares a dispatch with K if its rows lie as K's do") {
    Recorder recorder({}, with_v(kernel_info()));
    Call call = with_v(recorder.host, kernel_call(recorder.host));
    call.batch = 2;
    call.positions.batch_stride = 7;
    call.in[Q].where.range *= 2;
    call.out[Q].where.range *= 2;
    for (const TensorIndex t : {K, V}) {
        for (Tensor* tensor : {&call.in[t], &call.out[t]}) {
            tensor->where.range = KernelHost::buffer_bytes;
            tensor->head_stride = 256;
            tensor->token_stride = 1024;
            tensor->batch_stride = 8192;
        }
    }
    CHECK(dispatches_of(recorder, call).size() == 1);
    for (Tensor* tensor : {&call.in[V], &call.out[V]}) {
        for (const auto stride :
             {&Tensor::head_stride, &Tensor::token_stride, &Tensor::batch_stride}) {
            const Tensor before = *tensor;
            tensor->*stride += 64;
            CHECK(dispatches_of(recorder, call).size() == 2);
            *tensor = before;
        }
    }
    call.batch = 1;
    for (const TensorIndex t : {K, V}) {
        for (Tensor* tensor : {&call.in[t], &call.out[t]}) {
            tensor->heads = 4;
            tensor->heads_per_group = 2;
            tensor->group_stride = 640;
            tensor->token_stride = 2048;
        }
    }
    CHECK(dispatches_of(recorder, call).size() == 1);
    for (Tensor* tensor : {&call.in[V], &call.out[V]}) {
        const Tensor before = *tensor;
        tensor->group_stride += 64;
        CHECK(dispatches_of(recorder, call).size() == 2);
        *tensor = before;
    }
}

TEST_CASE("record: norms, transforms and quantised caches of Q, K and V take one dispatch") {
    KernelInfo info = with_ops(
        with_v(kernel_info()),
        {.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL},
         .scale_call = true,
         .hadamard = 128},
        8, 2, 2);
    info.tensor[V].ops = {.hadamard = 64};
    info.tensor[K].out = info.tensor[V].out = VKROPE_Q8_0;
    info.scatter_kv = true;
    Recorder recorder({}, info);
    const KernelHost& host = recorder.host;
    Call call = with_ops(host, info, with_v(host, kernel_call(host)));
    call.paged_cache.slot_mapping = {host.words, 256, 7 * 4};
    CHECK(dispatches_of(recorder, call).size() == 1);
}

TEST_CASE("record: a kernel without rotation binds only what its ops use, and no texture") {
    for (const Mapping mapping : {VKROPE_MAPPING_GPU, VKROPE_MAPPING_CPU}) {
        for (const NormPlace place : {VKROPE_NORM_PLACE_BEFORE, VKROPE_NORM_PLACE_AFTER}) {
            for (const Element out : {VKROPE_F16, VKROPE_Q8_0}) {
                for (const bool normed : {true, false}) {
                    KernelInfo info = with_v(kernel_info());
                    info.pairing = VKROPE_PAIRING_NONE;
                    info.rotary_dim = 0;
                    info.angles = VKROPE_ANGLES_AUTOMATIC;
                    info.mapping = mapping;
                    info.tensor[K].out = info.tensor[V].out = out;
                    if (normed)
                        info.tensor[Q].ops.norm = info.tensor[K].ops.norm = {
                            .kind = VKROPE_NORM_LAYER, .place = place, .eps = 1e-6f};
                    Recorder recorder({}, info);
                    Call call = with_v(recorder.host, kernel_call(recorder.host));
                    call.angles = {};
                    const std::vector<Command> all = dispatches_of(recorder, call);
                    REQUIRE(all.size() == 1);
                    std::set<std::uint32_t> bound;
                    for (const auto& [binding, of] : all[0].descriptors) bound.insert(binding);
                    CHECK(bound ==
                          std::set<std::uint32_t>{shader::binding_q_in, shader::binding_k_in,
                                                  shader::binding_v_in, shader::binding_q_out,
                                                  shader::binding_k_out, shader::binding_v_out});
                    // In place, only what an op changes is recorded.
                    for (const TensorIndex t : every_tensor) call.out[t] = call.in[t];
                    if (out == VKROPE_F16)
                        CHECK(dispatches_of(recorder, call).size() == (normed ? 1 : 0));
                }
            }
        }
    }
}

TEST_CASE("record: a second destination takes no dispatch, or one of its own, before the first") {
    KernelInfo info = with_v(kernel_info());
    info.positions = VKROPE_POSITIONS_IDS;
    for (const TensorIndex t : {K, V}) {
        info.tensor[t].heads = 2;
        info.tensor[t].second_of = t == K ? VKROPE_SECOND_INPUT : VKROPE_SECOND_RESULT;
        info.tensor[t].second = VKROPE_F32;
    }
    // Q, K and V with ids, a counter and second destinations bind 10 buffers.
    for (const std::uint32_t storage_buffers : {10u, 9u, 7u, 6u, 4u}) {
        CAPTURE(storage_buffers);
        Recorder recorder({.storage_buffers = storage_buffers}, info);
        const KernelHost& host = recorder.host;
        Call call = with_v(host, kernel_call(host));
        call.positions.ids = {host.words, 0, 28};
        for (const TensorIndex t : {K, V}) {
            call.out[t] = call.in[t];
            call.second[t] = {host.words, t == K ? 0x10000u : 0x20000u, 7 * 2 * 128 * 4};
        }
        const std::vector<Command> all = dispatches_of(recorder, call);
        // With 9 buffers V is apart, with 6 both second destinations are, with 4 every tensor. V
        // is in place and unchanged, so that it has no other dispatch then.
        const std::map<std::uint32_t, std::size_t> expected = {
            {10, 1}, {9, 2}, {7, 2}, {6, 3}, {4, 4}};
        CHECK(all.size() == expected.at(storage_buffers));
        std::size_t k_stored = 0, v_stored = 0;
        bool k_changed = false;
        for (const Command& command : all) {
            bool of_k = false, of_v = false;
            for (const auto& [binding, of] : command.descriptors) {
                const bool second = of.buffer.buffer == host.words && of.buffer.offset >= 0x10000;
                of_k = of_k || (second && of.buffer.offset == 0x10000);
                of_v = of_v || (second && of.buffer.offset == 0x20000);
            }
            CHECK_FALSE((k_changed && of_k));
            k_stored += of_k;
            v_stored += of_v;
            for (const auto& [binding, of] : command.descriptors)
                k_changed = k_changed ||
                            (binding == shader::binding_k_out && of.buffer.buffer == host.k);
        }
        CHECK(k_stored == 1);
        CHECK(v_stored == 1);
    }
}

TEST_CASE("record: dispatches of second destinations hide no barrier of the others") {
    KernelInfo info = with_v(kernel_info());
    info.scatter_kv = true;
    info.tensor[K].heads = 2;
    info.tensor[K].second_of = VKROPE_SECOND_RESULT;
    Recorder recorder({.storage_buffers = 6}, info);  // the second destination and V are apart
    const KernelHost& host = recorder.host;
    Call call = with_v(host, kernel_call(host));
    call.second[K] = {host.words, 0x10000, 7 * 2 * 128 * 4};
    // K and V side by side in one buffer, [slots, K and V, heads, head_dim].
    call.paged_cache = {
        .slot_mapping = {host.words, 256, 7 * 4}, .page_stride = 1024, .row_stride = 1024};
    for (const TensorIndex t : {K, V})
        call.out[t].where = {host.k_out, t == V ? 1024u : 0u, 32768 - 1024};
    CHECK(dispatches_of(recorder, call).size() == 3);
    const Names& calls = fake().calls();
    CHECK(std::count(calls.begin(), calls.end(), "vkCmdPipelineBarrier") == 1);
}

TEST_CASE("record: each bound weight has a binding in the dispatch of its tensor") {
    KernelInfo info = with_v(kernel_info());
    info.positions = VKROPE_POSITIONS_IDS;
    const Element types[] = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
    for (const TensorIndex t : every_tensor)
        info.tensor[t].ops.norm = {.kind = VKROPE_NORM_RMS,
                                   .eps = 1e-6f,
                                   .weight = VKROPE_PARAMETER_CHANNEL,
                                   .weight_bound = true,
                                   .weight_type = types[t]};
    // Q, K and V with weights, ids and a counter bind 11 buffers, Q and K bind 8, and Q binds 5.
    const std::pair<std::uint32_t, std::size_t> rows[] = {{11, 1}, {10, 2}, {8, 2}, {7, 3}, {4, 3}};
    for (const auto& [buffers, expected] : rows) {
        const std::uint32_t storage_buffers = buffers;
        CAPTURE(storage_buffers);
        Recorder recorder({.storage_buffers = storage_buffers}, info);
        const KernelHost& host = recorder.host;
        Call call = with_v(host, kernel_call(host));
        call.positions.ids = {host.words, 0, 28};
        for (const TensorIndex t : every_tensor)
            call.norm_weight[t] = {host.words, (t + 1) << 12, 4096};
        const std::vector<Command> all = dispatches_of(recorder, call);
        CHECK(all.size() == expected);
        std::set<std::uint32_t> bound;
        for (const Command& command : all) {
            const shader::Push push = pushed(command);
            const bool has[] = {(push.heads & 0xffff) != 0, (push.heads >> 16) != 0,
                                (push.flags & shader::flag_v) != 0};
            for (const TensorIndex as : every_tensor) {  // V alone is bound like K, or Q
                if (!has[as]) continue;
                const VkBuffer in = command.descriptors.at(shader::binding_q_in + as).buffer.buffer;
                const TensorIndex t = in == host.q ? Q : in == host.k ? K : V;
                CAPTURE(int(t));
                CHECK(bound.insert(t).second);
                check_bound(command, shader::binding_q_weight + as, host.words, (t + 1) << 12,
                            t == Q ? 128 * 4 : 128 * 2);
            }
        }
        CHECK(bound.size() == 3);
    }
    const KernelHost host({.storage_buffers = 4});
    info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    check_error(create(host.ref, info).status, VKROPE_ERROR_LIMIT_EXCEEDED,
                "tensor[0].ops.norm.weight_bound 5 4");
}

TEST_CASE("record: V with slots of its own has its own dispatch, pages and count") {
    KernelInfo info = with_v(kernel_info());
    info.scatter_kv = true;
    Recorder recorder({}, info);
    const KernelHost& host = recorder.host;
    Call call = with_v(host, kernel_call(host));
    call.out_of_range = {host.words, 2052, 4};
    call.paged_cache.slot_mapping = {host.words, 256, 7 * 4};
    call.out[V].where.range = 9 * 2 * 128 * 2;
    std::vector<Command> all = dispatches_of(recorder, call);
    REQUIRE(all.size() == 1);
    CHECK(pushed(all[0]).slot_rows == 7);  // of the smaller cache
    call.paged_cache.v_slot_mapping = {host.words, 512, 7 * 4};
    all = dispatches_of(recorder, call);
    REQUIRE(all.size() == 2);
    const std::uint32_t rows[] = {7, 9},
                        flags[] = {shader::flag_count_positions | shader::flag_count_slots,
                                   shader::flag_count_slots};
    for (std::size_t i = 0; i < 2; ++i) {
        CAPTURE(i);
        CHECK(pushed(all[i]).slot_rows == rows[i]);
        CHECK((pushed(all[i]).flags & (shader::flag_count_positions | shader::flag_count_slots)) ==
              flags[i]);
        check_bound(all[i], shader::binding_slot_mapping, host.words, i == 0 ? 256 : 512, 7 * 4);
        check_bound(all[i], shader::binding_k_out, i == 0 ? host.k_out : host.v_out, 0,
                    VkDeviceSize{rows[i]} * 2 * 128 * 2);
    }
    // Both dispatches write the counter.
    const Names& calls = fake().calls();
    CHECK(std::count(calls.begin(), calls.end(), "vkCmdPipelineBarrier") == 1);
}

TEST_CASE("record: one dispatch of a call counts tokens, and one counts slots") {
    constexpr std::uint32_t counts = shader::flag_count_positions | shader::flag_count_slots;
    KernelInfo info = with_v(kernel_info());
    info.scatter_kv = true;
    Recorder recorder({}, info);
    const KernelHost& host = recorder.host;
    Call call = with_v(host, kernel_call(host));
    call.out_of_range = {host.words, 2052, 4};
    call.paged_cache.slot_mapping = {host.words, 256, 7 * 4};
    const auto check_counts = [&](std::size_t expected) {
        const std::vector<Command> all = dispatches_of(recorder, call);
        CHECK(all.size() == expected);
        std::uint32_t flags = 0;
        for (const Command& dispatch : all) {
            CHECK((flags & pushed(dispatch).flags & counts) == 0);
            flags |= pushed(dispatch).flags & counts;
        }
        CHECK(flags == counts);
    };
    check_counts(1);
    call.in[V].where.range = KernelHost::buffer_bytes;
    call.in[V].token_stride = 512;  // V's layout differs from K's
    check_counts(2);
    call.in[K] = call.out[K] = {};
    check_counts(2);
}

}  // namespace vkrope::test
