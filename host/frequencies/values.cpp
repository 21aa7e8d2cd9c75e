// SPDX-License-Identifier: MIT
// Implements the queries of vkrope.h: the version, the names of results, and properties of types
// and fields.
#include "base/defaults.hpp"
#include "base/status.hpp"
#include "vkrope/version.h"

using namespace vkrope;

uint32_t vkrope_version(void) {
    return VKROPE_VERSION;
}

const char* vkrope_status_string(vkrope_result result) {
    switch (result) {
        case VKROPE_SUCCESS: return "success";
        case VKROPE_ERROR_INVALID_ARGUMENT: return "invalid argument";
        case VKROPE_ERROR_NOT_SUPPORTED: return "not supported";
        case VKROPE_ERROR_LIMIT_EXCEEDED: return "limit exceeded";
        case VKROPE_ERROR_INVALID_DATA: return "invalid data";
        case VKROPE_ERROR_NO_DEVICE: return "no device";
        case VKROPE_ERROR_OUT_OF_HOST_MEMORY: return "out of host memory";
        case VKROPE_ERROR_OUT_OF_DEVICE_MEMORY: return "out of device memory";
        case VKROPE_ERROR_DEVICE_LOST: return "device lost";
        case VKROPE_ERROR_TIMEOUT: return "timeout";
        case VKROPE_ERROR_VULKAN: return "Vulkan error";
        case VKROPE_ERROR_INTERNAL: return "internal error";
    }
    return "unknown result";
}

VkBool32 vkrope_is_quantised(vkrope_element element) {
    return is_quantised(element);
}

uint32_t vkrope_block_channels(vkrope_element element) {
    return block_channels(element);
}

uint32_t vkrope_element_bytes(vkrope_element element) {
    return element_bytes(element);
}

uint32_t vkrope_row_channels(const vkrope_rope_params* rotation, uint32_t rotary_offset) {
    if (!rotation) return 0;
    // End of the last window. A layer without RoPE has none: in latent attention the channels from
    // the offset on are head_dim channels.
    std::uint32_t end = rotary_offset + value_or(rotation->rotary_dim, rotation->head_dim);
    for (const Window& window : rotation->windows)
        if (window.rotary_dim != 0) end = rotary_offset + window.offset + window.rotary_dim;
    return end > rotation->head_dim ? rotary_offset + rotation->head_dim : rotation->head_dim;
}

static bool is_valid(const vkrope_sections* sections) {
    return sections && sections->order <= VKROPE_SECTIONS_SUM && sections->axes <= max_axes;
}

uint32_t vkrope_axis_of(const vkrope_sections* sections, uint32_t pair) {
    return is_valid(sections) ? axis_of(*sections, pair) : 0;
}

uint32_t vkrope_summed_axes(const vkrope_sections* sections) {
    return is_valid(sections) ? summed_axes(*sections) : 1;
}
