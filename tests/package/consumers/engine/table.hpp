// SPDX-License-Identifier: MIT
// An angle table in a texture that the engine makes.
#pragma once

#include "gpu.hpp"
#include "vkrope/vkrope.hpp"

namespace engine {

struct Table {
    vkrope::AngleTableLayout plan;
    Image image;
    Buffer staging;  ///< may be freed once the commands have completed

    vkrope::Angles angles() const { return {&plan, image.view, {}}; }
};

/// Returns the RoPE of whole head rows with base 10 000.
inline vkrope::RopeParams plain_rotation(std::uint32_t head_dim) {
    vkrope::RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = head_dim;
    rotation.inv_freq.resize(head_dim / 2);
    check(vkrope::default_inv_freq(10000.0, head_dim, rotation.inv_freq.data()),
          "default_inv_freq");
    return rotation;
}

/// Makes the texture of `plan` and records its upload. Later commands may read the texture in the
/// stages in which vkrope reads it.
///
/// fill  writes plan.bytes bytes
template <class Fill>
Table upload_table(const Gpu& gpu, VkCommandBuffer commands, const vkrope::AngleTableLayout& plan,
                   const Fill& fill) {
    Table table;
    table.plan = plan;
    table.staging = gpu.make_buffer(table.plan.bytes, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, true);
    fill(table.staging.mapped);
    table.image = gpu.make_image(vkrope::angle_image_info(plan).value,
                                 vkrope::angle_view_info(plan, VK_NULL_HANDLE).value);
    vkrope::AngleUpload upload;
    upload.staging = {table.staging.handle, 0, plan.bytes};
    upload.image = table.image.handle;
    check(vkrope::record_angle_upload(commands, gpu.ref(), plan, upload), "record_angle_upload");
    return table;
}

/// Uploads the table that a kernel reads by default, for positions below `max_position`.
inline Table upload_table(const Gpu& gpu, VkCommandBuffer commands,
                          const vkrope::RopeParams& rotation, std::uint64_t max_position) {
    const auto plan = vkrope::plan_angles(rotation, VKROPE_ANGLES_FACTORED_TEXTURE, max_position,
                                          gpu.properties().limits.maxImageDimension2D);
    check(plan.status, "plan_angles");
    return upload_table(gpu, commands, plan.value, [&](void* texels) {
        check(vkrope::fill_angles(rotation, plan.value, texels, plan.value.bytes), "fill_angles");
    });
}

}  // namespace engine
