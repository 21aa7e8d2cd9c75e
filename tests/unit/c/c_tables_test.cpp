// SPDX-License-Identifier: MIT
// Images and uploads of angle tables through the C interface.
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
#include "vkrope/vkrope.h"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;

TEST_CASE("C: the image of a plan, and an upload that is refused before anything is recorded") {
    const vkrope_rope_params rotation = four_channels();
    vkrope_angle_table_layout plan = {};
    REQUIRE(vkrope_plan_angles(&rotation, VKROPE_ANGLES_DIRECT_TEXTURE, 5, 16, &plan, nullptr) ==
            VKROPE_SUCCESS);
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
    refuses("layout.source 5");
}
