// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cinttypes>
#include <utility>

#include "base/no_throw.hpp"
#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

namespace {

Status create_view(DeviceState& device, const AngleTableLayout& plan, VkImage image,
                   VkImageView& view) {
    const Result<VkImageViewCreateInfo> info = angle_view_info(plan, image);
    if (!info) return info.status;
    const VkResult result = device.vk.vkCreateImageView(device.ref.device, &info.value, nullptr,
                                                        &view);
    return created(result, view, "vkCreateImageView");
}

// Fills staging memory with as many lines as fit and copies them to the image or buffer, until the
// table is complete.
Status upload(DeviceState& device, const vkrope_rope_params& rotation, const AngleTableLayout& plan,
              VkImage image, const VkDescriptorBufferInfo& buffer) {
    const AngleLines all = angle_lines(plan);
    if (Status s = prepare_staging(device, plan.bytes); !s) return s;
    const auto at_once = std::uint32_t(
        std::min<std::size_t>(device.staging.bytes / all.bytes, all.count));
    AngleUpload part{.staging = {device.staging.buffer, 0, device.staging.bytes},
                     .image = image,
                     .buffer = buffer};
    for (; part.first_line < all.count; part.first_line += at_once) {
        part.lines = std::min(at_once, all.count - part.first_line);
        if (Status s = status_of(vkrope_fill_angle_lines, &rotation, &plan, part.first_line,
                                 part.lines, device.staging.mapped, device.staging.bytes);
            !s)
            return s;
        if (Status s = flush_staging(device, part.lines * all.bytes); !s) return s;
        const auto copied = device.submit([&](VkCommandBuffer commands) {
            return record_angle_upload(commands, device.ref, plan, part);
        });
        if (!copied) return copied.status;
    }
    return {};
}

// Checks the size of a table before it is allocated, because it grows with the largest position and
// may exceed the device's memory.
Status check_memory(const DeviceState& device, const AngleTableLayout& plan) {
    const std::uint64_t memory = device.candidate.memory_bytes;
    const std::uint64_t largest = device.candidate.largest_allocation
                                      ? device.candidate.largest_allocation
                                      : memory;
    if (plan.bytes <= memory && plan.bytes <= largest) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "max_position is %u: its angle table has %zu bytes, but the device allocates at "
                 "most %" PRIu64,
                 plan.rows, plan.bytes, std::min(memory, largest));
}

}  // namespace

Result<Owned<vkrope_angle_table>> make_angle_table(DeviceState& device,
                                                   const vkrope_rope_params& rotation,
                                                   AngleSource source, std::uint64_t max_position) {
    Owned<vkrope_angle_table> made(new vkrope_angle_table(device));
    AngleTableLayout& layout = made->layout;
    const std::uint32_t side = device.candidate.limits.maxImageDimension2D;
    if (Status s = status_of(vkrope_plan_angles, &rotation, source, max_position, side, &layout);
        !s)
        return {s, {}};
    if (Status s = check_memory(device, layout); !s) return {s, {}};
    if (layout.source == VKROPE_ANGLES_DIRECT_BUFFER || layout.source == VKROPE_ANGLES_COMPUTED) {
        auto buffer = make_buffer(device, layout.bytes);
        if (!buffer) return {buffer.status, {}};
        made->buffer = std::move(buffer.value);
    } else {
        const Result<VkImageCreateInfo> image = angle_image_info(layout);
        if (!image) return {image.status, {}};
        if (Status s = make_image(device, image.value, made->image, made->allocation); !s)
            return {s, {}};
    }
    if (Status s = upload(device, rotation, layout, made->image,
                          vkrope_buffer_whole(made->buffer.get()));
        !s)
        return {s, {}};
    if (made->image) {
        if (Status s = create_view(device, layout, made->image, made->view); !s) return {s, {}};
    }
    made->refer();
    return {{}, std::move(made)};
}

}  // namespace vkrope

using namespace vkrope;

vkrope_angle_table::~vkrope_angle_table() {
    if (device->pending) {
        device->abandon({.image = image, .view = view, .allocation = allocation});
    } else {
        if (view) device->vk.vkDestroyImageView(device->ref.device, view, nullptr);
        free_image(*device, image, allocation);
    }
}

Status vkrope_angle_table::reach(const vkrope_rope_params& rotation, std::uint64_t max_position) {
    if (max_position <= layout.rows) return {};
    const std::uint64_t most = layout.source == VKROPE_ANGLES_FACTORED_TEXTURE
                                   ? max_factored_positions
                                   : max_positions;
    const std::uint64_t doubled = std::min(2 * std::uint64_t{layout.rows}, most);
    auto grown = make_angle_table(*device, rotation, layout.source,
                                  std::max(max_position, doubled));
    if (!grown) grown = make_angle_table(*device, rotation, layout.source, max_position);
    if (!grown) return grown.status;
    std::swap(layout, grown.value->layout);
    std::swap(image, grown.value->image);
    std::swap(allocation, grown.value->allocation);
    std::swap(view, grown.value->view);
    std::swap(buffer, grown.value->buffer);
    refer();
    return {};
}

vkrope_result vkrope_angle_table_create(vkrope_device* device, const vkrope_rope_params* rotation,
                                        vkrope_angle_source source, uint64_t max_position,
                                        vkrope_angle_table** table, vkrope_error* failure) {
    return make_all(
        table, "table", failure,
        [&]() -> Result<Owned<vkrope_angle_table>> {
            if (Status s = not_null(device, "device"); !s) return {s, {}};
            if (Status s = not_null(rotation, "rotation"); !s) return {s, {}};
            return make_angle_table(*device, *rotation, source, max_position);
        });
}

const vkrope_angles* vkrope_angle_table_get(const vkrope_angle_table* table) {
    return table ? &table->angles : nullptr;
}

vkrope_result vkrope_angle_table_reach(vkrope_angle_table* table,
                                       const vkrope_rope_params* rotation, uint64_t max_position,
                                       vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(table, "table"); !s) return s;
            if (Status s = not_null(rotation, "rotation"); !s) return s;
            AngleTableLayout planned;  // checks the rotation even if the table is large enough
            if (Status s = status_of(vkrope_plan_angles, rotation, table->layout.source,
                                     std::max(max_position, std::uint64_t{1}),
                                     table->device->candidate.limits.maxImageDimension2D, &planned);
                !s)
                return s;
            return table->reach(*rotation, max_position);
        });
}

void vkrope_angle_table_destroy(vkrope_angle_table* table) {
    delete table;
}
