// SPDX-License-Identifier: MIT
// KernelInfo in JSON: its fields by their names, its enumerators by theirs.
#pragma once

#include <string>
#include <vector>

#include "vkrope/types.hpp"

namespace vkrope::tools {

struct NamedInfo {
    std::string name;  ///< of its files: letters, digits, '_', '-' and '.'
    KernelInfo info;
};

/// The kernels of a file: one object, or an array of them. "-" is the standard input. Throws
/// Failure, which names the field, its value and the rule; create() checks what depends on more
/// than one field.
std::vector<NamedInfo> read_kernel_infos(const std::string& path);

}  // namespace vkrope::tools
