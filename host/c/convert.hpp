// SPDX-License-Identifier: MIT
// Conversions that several tiers of the C interface need: rotations, plans and device references.
#pragma once

#include <memory>
#include <vector>

#include "c/guard.hpp"
#include "c/structs.hpp"
#include "vkrope/frequencies.hpp"
#include "vkrope/kernel.hpp"

struct vkrope_rotation {
    vkrope::Rotation of;
    std::vector<const char*> warnings;  // of.warnings, in the form of vkrope_rotation_info
    VkBool32 rotates = VK_TRUE;         // of.rotates, in the form of vkrope_rotation_info
    vkrope_sections sections = {};      // of.sections, in the form of vkrope_rotation_info
    // of.finish, in the form of vkrope_model_finish.
    struct Finished {
        vkrope_norm norm = {};
        vkrope_finish finish = {};
    } q_finish, k_finish, v_finish;
    vkrope_query_scale query_scale = {};
};

namespace vkrope::c {

inline DescriptorArena* unwrap(vkrope_arena* arena) {
    return reinterpret_cast<DescriptorArena*>(arena);
}

/// Creates a handle for `rotation`.
std::unique_ptr<vkrope_rotation> wrap(Rotation&& rotation);

/// Reads the sections at `from`; null means none. `name` is the parameter name in error messages.
Status read_sections(const vkrope_sections* from, const char* name, Sections& sections);

/// Reads the plan at `from`. `name` is the parameter name in error messages.
Status read_plan(const vkrope_angle_plan* from, const char* name, AnglePlan& plan) noexcept;

/// Reads the finish at `from`; null means none. `name` is the parameter name in error messages.
Status read_finish(const vkrope_finish* from, const char* name, Finish& finish) noexcept;

/// Writes the finish of a model to its handle.
void set_finish(vkrope_rotation& rotation) noexcept;

/// Reads the device at `from`.
Status read_device(const vkrope_device_ref* from, DeviceRef& device);

/// Reads the kernel properties at `from`.
Status read_info(const vkrope_kernel_info* from, KernelInfo& info);

/// The result has struct_size set.
vkrope_angle_plan to_c(const AnglePlan& plan) noexcept;

inline Window window_of(const vkrope_window& window) noexcept {
    return {window.offset, window.rotary_dim};
}

inline vkrope_window window_of(const Window& window) noexcept {
    return {window.offset, window.rotary_dim};
}

/// 0 asks for the default.
inline double value_or(double value, double otherwise) {
    return value == 0 ? otherwise : value;
}

inline double or_one(double value) {
    return value_or(value, 1);
}

}  // namespace vkrope::c
