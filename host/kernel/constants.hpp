// SPDX-License-Identifier: MIT
// The specialisation constants of a pipeline: VKROPE_CONSTANTS of shaders/interface.h, by name.
#pragma once

#include "kernel/kernel_object.hpp"

namespace vkrope {

/// `counts`: whether the kernel counts tokens that are out of range, if a call asks for it.
shader::Constants constants_of(const Kernel& kernel, const Part& part, const Geometry& geometry,
                               bool counts);

}  // namespace vkrope
