// SPDX-License-Identifier: MIT
// Plans of angle tables and their content through the C interface.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "c_rotation.hpp"
#include "support/c_numbers.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/frequencies.hpp"
#include "vkrope/vkrope.h"

using namespace vkrope::test;

TEST_CASE("C: plan and content of a table equal the C++ tier's") {
    const OwnedRotation rotation = rotation_of(four_channels());
    vkrope::Rotation same;
    same.head_dim = same.rotary_dim = 4;
    same.inv_freq = frequencies;
    for (const auto source :
         {VKROPE_ANGLES_AUTOMATIC, VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
          VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER}) {
        const auto expected = vkrope::plan_angles(same, source, 100, 64);
        REQUIRE(expected);
        vkrope_angle_plan plan = {};
        REQUIRE(vkrope_plan_angles(rotation.get(), vkrope_angle_source(source), 100, 64, &plan,
                                   nullptr) == VKROPE_SUCCESS);
        CHECK(int(plan.source) == int(expected->source));
        CHECK(plan.format == expected->format);
        CHECK(plan.extent.width == expected->extent.width);
        CHECK(plan.extent.height == expected->extent.height);
        CHECK(plan.usage == expected->usage);
        CHECK(plan.pairs == expected->pairs);
        CHECK(plan.rows == expected->rows);
        CHECK(plan.fold_log2 == expected->fold_log2);
        CHECK(plan.row_texels == expected->row_texels);
        REQUIRE(plan.bytes == expected->bytes);

        std::vector<float> theirs(expected->bytes / 4), ours(expected->bytes / 4);
        REQUIRE(vkrope::fill_angles(same, expected.value, theirs.data(), expected->bytes));
        REQUIRE(vkrope_fill_angles(rotation.get(), &plan, ours.data(), expected->bytes, nullptr) ==
                VKROPE_SUCCESS);
        CHECK(ours == theirs);

        // The same table in two parts.
        vkrope_angle_lines lines = {};
        REQUIRE(vkrope_get_angle_lines(&plan, &lines, nullptr) == VKROPE_SUCCESS);
        REQUIRE(lines.count * lines.bytes == plan.bytes);
        std::vector<float> parts(expected->bytes / 4);
        const auto half = std::uint32_t(lines.count / 2), rest = std::uint32_t(lines.count - half);
        const std::size_t half_bytes = half * lines.bytes;
        CHECK(vkrope_fill_angle_lines(rotation.get(), &plan, 0, half, parts.data(), half_bytes,
                                      nullptr) == VKROPE_SUCCESS);
        CHECK(vkrope_fill_angle_lines(rotation.get(), &plan, half, rest,
                                      parts.data() + half_bytes / 4, plan.bytes - half_bytes,
                                      nullptr) == VKROPE_SUCCESS);
        CHECK(parts == theirs);

        vkrope_error error;
        check_refused(
            vkrope_fill_angles(rotation.get(), &plan, ours.data(), expected->bytes - 1, &error),
            error, "bytes");
    }
    vkrope_error error;
    vkrope_angle_plan plan = {};
    check_refused(
        vkrope_plan_angles(rotation.get(), vkrope_angle_source(99), 100, 64, &plan, &error), error,
        "source 99");
    // The meaning of a zero argument.
    static_assert(VKROPE_ANGLES_AUTOMATIC == 0 && VKROPE_ANGLE_PRECISION_EXACT == 0 &&
                  VKROPE_CONVERSION_AUTOMATIC == 0);
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_AUTOMATIC, 1u << 22, 4096, &plan,
                               nullptr) == VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_FACTORED_TEXTURE);
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_AUTOMATIC, (1u << 22) + 1, 0, &plan,
                               nullptr) == VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_COMPUTED);
    CHECK(plan.usage == VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT);
    plan.source = VKROPE_ANGLES_AUTOMATIC;
    float numbers[12] = {};
    check_refused(vkrope_fill_angles(rotation.get(), &plan, numbers, sizeof numbers, &error), error,
                  "plan.source 0");
}

TEST_CASE("C: angles have the rotation's precision, and the table equals the C++ tier's") {
    auto info = four_channels();
    info.attention_factor = 1.25;
    CHECK(info_of(rotation_of(info)).precision == VKROPE_ANGLE_PRECISION_EXACT);
    info.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    const OwnedRotation rotation = rotation_of(info);
    CHECK(info_of(rotation).precision == VKROPE_ANGLE_PRECISION_FLOAT32);
    vkrope_angle_plan plan = {};
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_AUTOMATIC, 4000, 4096, &plan,
                               nullptr) == VKROPE_SUCCESS);
    CHECK(plan.source == VKROPE_ANGLES_DIRECT_TEXTURE);
    std::vector<float> ours(plan.bytes / 4), theirs(plan.bytes / 4), exact(plan.bytes / 4);
    REQUIRE(vkrope_fill_angles(rotation.get(), &plan, ours.data(), plan.bytes, nullptr) ==
            VKROPE_SUCCESS);
    vkrope::Rotation same;
    same.head_dim = same.rotary_dim = 4;
    same.inv_freq = frequencies;
    same.attention_factor = 1.25;
    const auto planned = vkrope::plan_angles(same, VKROPE_ANGLES_DIRECT_TEXTURE, 4000, 4096);
    REQUIRE(vkrope::fill_angles(same, planned.value, exact.data(), plan.bytes));
    same.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    REQUIRE(vkrope::fill_angles(same, planned.value, theirs.data(), plan.bytes));
    CHECK(ours == theirs);
    CHECK(ours != exact);
    vkrope_error error;
    check_refused(
        vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_COMPUTED, 4000, 4096, &plan, &error),
        error, "rotation.precision VKROPE_ANGLE_PRECISION_FLOAT32");
}

TEST_CASE("C: the image of a plan, and an upload that is refused before anything is recorded") {
    const OwnedRotation rotation = rotation_of(four_channels());
    vkrope_angle_plan plan = {};
    REQUIRE(vkrope_plan_angles(rotation.get(), VKROPE_ANGLES_DIRECT_TEXTURE, 5, 16, &plan,
                               nullptr) == VKROPE_SUCCESS);
    VkImageCreateInfo image;
    vkrope_error error;
    REQUIRE_MESSAGE(vkrope_get_angle_image_info(&plan, &image, &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(image.format == plan.format);
    CHECK(image.extent.width == plan.extent.width);
    CHECK(image.usage == (VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT));
    VkImageViewCreateInfo view;
    const auto handle = (VkImage)std::uintptr_t{5};
    REQUIRE_MESSAGE(vkrope_get_angle_view_info(&plan, handle, &view, &error) == VKROPE_SUCCESS,
                    error.what);
    CHECK(view.image == handle);
    vkrope_device_ref device = {};
    device.device = reinterpret_cast<VkDevice>(std::uintptr_t{1});
    device.get_instance_proc_addr = no_functions;
    vkrope_angle_upload upload = {};
    const auto commands = reinterpret_cast<VkCommandBuffer>(std::uintptr_t{1});
    const auto refuses = [&](const char* words) {
        check_refused(vkrope_record_angle_upload(commands, &device, &plan, &upload, &error), error,
                      words);
    };
    refuses("upload.staging null");
    upload.staging = (VkBuffer)std::uintptr_t{1};
    refuses("upload.image null");
    upload.image = handle;
    upload.staging_offset = 8;
    refuses("upload.staging_offset 8");
    upload.staging_offset = 16;
    upload.first_line = plan.extent.height;
    refuses("upload.lines 0 upload.first_line 5 5");
    upload.first_line = 0;
    upload.buffer_offset = 4;
    refuses("upload.buffer_offset");
    upload.buffer_offset = 0;
    upload.buffer = upload.staging;
    refuses("upload.buffer");
    upload.buffer = VK_NULL_HANDLE;
    refuses("get_instance_proc_addr");
    VkBuffer buffer = VK_NULL_HANDLE;
    plan.source = VKROPE_ANGLES_COS_SIN_CACHE;
    upload.buffer = buffer;
    refuses("plan.source 5");
}
