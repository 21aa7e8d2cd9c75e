// SPDX-License-Identifier: MIT
// Tests the errors of record(), and that a call with an error records nothing.
#include "recorder.hpp"

namespace vkrope::test {

TEST_CASE("record: a call that needs more storage buffers is limit_exceeded, with both numbers") {
    // Q and K with ids, a table and a counter bind 7 buffers; Q or K alone binds 5.
    for (const std::uint32_t storage_buffers : {4u, 5u, 6u, 7u}) {
        KernelInfo info = kernel_info(VKROPE_ANGLES_DIRECT_BUFFER);
        info.positions = VKROPE_POSITIONS_IDS;
        Recorder recorder({.storage_buffers = storage_buffers, .debug_utils = false}, info);
        Call counted = kernel_call(recorder.host, 7, VKROPE_ANGLES_DIRECT_BUFFER);
        counted.positions.ids = {recorder.host.words, 0, 28};
        counted.out_of_range = {recorder.host.words, 256, 4};
        const Status status = recorder(counted);
        INFO(status.what);
        if (storage_buffers > 4) {
            CHECK(status);
            CHECK(dispatches(recorder.host).size() == (storage_buffers < 7 ? 2 : 1));
            continue;
        }
        check_error(status, VKROPE_ERROR_LIMIT_EXCEEDED, "5 storage buffers 4");
        CHECK(fake().calls().empty());
    }
}

TEST_CASE("record: an empty call records nothing, and neither does a call with an error") {
    for (const bool push_descriptors : {true, false}) {
        for (const std::uint32_t storage_buffers : {4u, 16u}) {
            Recorder recorder({.storage_buffers = storage_buffers,
                               .storage_range = 1u << 16,
                               .workgroup_count = {8, 2, 4},
                               .push_descriptors = push_descriptors},
                              kernel_info(), 3);
            const KernelHost& host = recorder.host;
            const auto refused = [&](const Call& call, ErrorCode code) {
                const Status status = recorder(call);
                INFO(status.what);
                CHECK(status.code == code);
                CHECK(fake().calls().empty());
            };
            refused(Call{}, VKROPE_SUCCESS);
            Call call = kernel_call(host, 0);
            refused(call, VKROPE_SUCCESS);
            call = kernel_call(host);
            call.in[Q].where.buffer = VK_NULL_HANDLE;
            refused(call, VKROPE_ERROR_INVALID_ARGUMENT);
            call = kernel_call(host);
            call.angles.view = VK_NULL_HANDLE;
            refused(call, VKROPE_ERROR_INVALID_ARGUMENT);
            if (push_descriptors) continue;
            // Three sets suffice for three calls of one dispatch or for one call of two dispatches.
            const int fits = storage_buffers == 4 ? 1 : 3;
            for (int i = 0; i < fits; ++i) CHECK(recorder(kernel_call(host)));
            refused(kernel_call(host), VKROPE_ERROR_LIMIT_EXCEEDED);
            vkrope_arena_reset(recorder.arena.get());
            CHECK(recorder(kernel_call(host)));
        }
    }
}

TEST_CASE("record: a call with an error in its ops records not even the dispatches before it") {
    const auto refused = [](Recorder& by, const Call& call, ErrorCode code, const char* words) {
        check_error(by(call), code, words);
        CHECK(fake().calls().empty());
    };
    // A workgroup covers 16 heads of a token, and the device allows one workgroup along y, so that
    // 17 heads are too many.
    for (const std::uint32_t v_heads : {16u, 17u}) {
        for (const bool push_descriptors : {true, false}) {
            const KernelInfo info = with_ops(
                with_v(kernel_info()),
                full_ops(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_TOKEN, VKROPE_NORM_PLACE_BEFORE), 8, 2,
                v_heads);
            // V has a separate dispatch, after the dispatch of Q and K.
            Recorder recorder({.storage_buffers = 8,
                               .workgroup_count = {65535, 1, 65535},
                               .push_descriptors = push_descriptors},
                              info, 2);
            Call good = with_v(recorder.host, kernel_call(recorder.host));
            for (Tensor* v : {&good.in[V], &good.out[V]}) {
                v->heads = v_heads;
                v->where.range = VkDeviceSize{7} * v_heads * 128 * 2;
            }
            good = with_ops(recorder.host, info, good);
            Call call = good;
            call.scale_tokens[V] = {};
            refused(recorder, call, VKROPE_ERROR_INVALID_ARGUMENT, "scale_tokens[2].buffer null");
            call = good;
            call.parameters.range -= 4;
            refused(recorder, call, VKROPE_ERROR_INVALID_ARGUMENT, "parameters.range");
            call = good;
            call.parameters.offset += 4;
            refused(recorder, call, VKROPE_ERROR_INVALID_ARGUMENT, "parameters.offset");
            if (v_heads == 17) {
                refused(recorder, good, VKROPE_ERROR_LIMIT_EXCEEDED, "in[2] 17 16");
                continue;
            }
            CHECK(recorder(good));
            CHECK(dispatches(recorder.host).size() == 2);
            if (!push_descriptors)  // both sets of the arena are used
                refused(recorder, good, VKROPE_ERROR_LIMIT_EXCEEDED, "");
        }
    }
}

}  // namespace vkrope::test
