// SPDX-License-Identifier: MIT
// A query, key or value tensor in a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/npy.hpp"
#include "verify/oracle/oracle.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

struct TensorFile {
    std::string option;  // "--q", "--k" or "--v"
    std::string path;
    npy::Array array;
    Element element = VKROPE_F32;
    oracle::Tensor view;  // batch, tokens, heads, head_dim and strides in channels, in any layout
};

inline std::uint64_t elements_of(const TensorFile& tensor) noexcept {
    const oracle::Tensor& view = tensor.view;
    return view.batch * view.tokens * view.heads * view.head_dim;
}

// Reads the file and checks it against the layout and, if given, the element type. Only `dtype`
// can name a quantised type, of which the file has bytes. Throws Failure.
TensorFile read_tensor(const std::string& option, const std::string& path, Layout layout,
                       std::optional<Element> dtype);

}  // namespace vkrope::tools
