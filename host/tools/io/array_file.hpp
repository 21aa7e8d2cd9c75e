// SPDX-License-Identifier: MIT
// Reads the array that an option names: a .npy file, or one tensor of a .safetensors file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/npy.hpp"

namespace vkrope::tools {

// Reads FILE.npy, FILE.safetensors:NAME, or FILE.safetensors if the file has one tensor. Converts
// the dtypes F32, F16, BF16, F64, I32, I64 and U8 to the types that .npy files use for them.
// Throws Failure, which names the option.
npy::Array read_array(const std::string& option, const std::string& path);

using ArrayShape = std::vector<std::uint64_t>;

// Reads the f32 numbers that a tensor needs, in one of these shapes. Throws Failure, which names
// the option, the tensor, and `each`.
//
// tensor  "--k 'k.npy'"
// each    the unit that needs one number, "row"
std::vector<float> read_floats(const std::string& option, const std::string& path,
                               const std::vector<ArrayShape>& shapes, const std::string& tensor,
                               const char* each);

// Returns the file in such a path, without the name of a tensor.
std::string file_of(const std::string& path);

}  // namespace vkrope::tools
