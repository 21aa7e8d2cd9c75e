// SPDX-License-Identifier: MIT
// record(): how a table, a texture or the numbers of computed angles are bound.
#include "recorder.hpp"

namespace vkrope::test {

TEST_CASE(
    "record: a table in a buffer is read in 16 bytes where it begins at a multiple of them, and in "
    "words elsewhere") {
    const auto access_at = [](AngleSource angles, VkDeviceSize offset) {
        Recorder recorder({}, kernel_info(angles));
        Call call = kernel_call(recorder.host, 7, angles);
        call.angles.buffer.offset += offset;
        CHECK(recorder(call));
        const Command dispatch = dispatches(recorder.host).at(0);
        CHECK(offset_of(pushed(dispatch), shader::offset_table) ==
              offset / 4 % 4);  // in words after a multiple of 16 bytes
        return fake().find(VK_OBJECT_TYPE_PIPELINE, dispatch.pipeline, "test")->name;
    };
    for (const VkDeviceSize offset : {0u, 16u, 32u})
        CHECK(access_at(VKROPE_ANGLES_DIRECT_BUFFER, offset) == "vkrope, 16-byte access");
    for (const VkDeviceSize offset : {4u, 8u, 12u, 20u, 24u}) {
        CAPTURE(offset);
        CHECK(access_at(VKROPE_ANGLES_DIRECT_BUFFER, offset) == "vkrope, word access");
    }
}

TEST_CASE("record: a cos_sin_cache is read from the words at which its two tables begin") {
    Recorder recorder({}, kernel_info(VKROPE_ANGLES_COS_SIN_CACHE));
    const AngleTableLayout cache = {.source = VKROPE_ANGLES_COS_SIN_CACHE,
                                    .bytes = 512 * 64 * 4,
                                    .pairs = 64,
                                    .rows = 512,
                                    .row_stride = 64};
    for (const VkDeviceSize offset : {0u, 4u, 8u, 20u}) {
        CAPTURE(offset);
        Call call = kernel_call(recorder.host, 7, VKROPE_ANGLES_COS_SIN_CACHE);
        call.angles = {.layout = &cache,
                       .buffer = {recorder.host.words, 4096 + offset, cache.bytes},
                       .sin = {recorder.host.words, 4096 + offset + 4, cache.bytes}};
        const Status status = recorder(call);
        INFO(status.what);
        REQUIRE(status);
        const shader::Push push = pushed(dispatches(recorder.host).back());
        CHECK(offset_of(push, shader::offset_table) == offset / 4 % 4);
        CHECK(push.table_texels == (offset / 4 + 1) % 4);
    }
}

TEST_CASE("record: a factored table is bound and described as a direct one is") {
    for (const std::uint32_t storage_buffers : {4u, 16u}) {
        Recorder recorder({.storage_buffers = storage_buffers, .debug_utils = false},
                          kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE));
        Call call = kernel_call(recorder.host, 7, VKROPE_ANGLES_FACTORED_TEXTURE);
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
                              kernel_info(VKROPE_ANGLES_COMPUTED));
            Call call = kernel_call(recorder.host, 7, VKROPE_ANGLES_COMPUTED);
            call.angles.buffer = {recorder.host.words, 4096 + 64, 600};
            CHECK(recorder(call));
            CHECK(dispatches(recorder.host).size() == (storage_buffers == 4 ? 2 : 1));
            for (const Command& dispatch : dispatches(recorder.host)) {
                check_bound(dispatch, shader::binding_turns, recorder.host.words, 4096 + 64, 544);
                CHECK(dispatch.descriptors.at(shader::binding_turns).type ==
                      VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER);
                CHECK(pushed(dispatch).table_rows == 0x80000001);  // -2^31 too
                CHECK(offset_of(pushed(dispatch), shader::offset_table) == 0);
            }
            const auto refused = [&](VkDeviceSize offset, VkDeviceSize range, const char* words) {
                call.angles.buffer.offset = offset;
                call.angles.buffer.range = range;
                check_error(recorder(call), VKROPE_ERROR_INVALID_ARGUMENT, words);
                CHECK(fake().calls().empty());
            };
            refused(4096 + 16, 600, "angles.buffer.offset 4112 64");
            refused(4096, 540, "angles.buffer.range 540");
        }
    }
}

}  // namespace vkrope::test
