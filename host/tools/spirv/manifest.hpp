// SPDX-License-Identifier: MIT
// The modules of kernels, and what a host that does not link this library must know of them.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "spirv/kernel_info_file.hpp"
#include "vkrope/frequencies.hpp"

namespace vkrope::tools {

/// A file to write: a module, or an angle table.
struct ModuleFile {
    std::string name;
    std::string bytes;
};

/// Rotation and largest position of the angle tables to write.
struct TableRequest {
    Rotation rotation;
    std::uint64_t max_position = 0;
};

/// Makes the modules of the kernels. Adds them to `files`, and the kernels' angle tables if
/// `tables` asks for some. Returns the manifest. Throws Failure.
nlohmann::ordered_json make_manifest(const std::vector<NamedInfo>& kernels,
                                     const std::optional<TableRequest>& tables,
                                     std::vector<ModuleFile>& files);

}  // namespace vkrope::tools
