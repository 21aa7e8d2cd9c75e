// SPDX-License-Identifier: MIT
#include "io/tensor_file.hpp"

#include <algorithm>
#include <limits>

#include "base/meaning.hpp"
#include "cli/failure.hpp"
#include "cli/words.hpp"
#include "io/array_file.hpp"
#include "io/element_type.hpp"

namespace vkrope::tools {
namespace {

// The dimension of the array for each axis, slowest first; -1: the layout has no such axis.
struct Axes {
    int batch, tokens, heads;
};

Axes axes_of(Layout layout) noexcept {
    switch (layout) {
        case VKROPE_LAYOUT_BSHD: return {0, 1, 2};
        case VKROPE_LAYOUT_BHSD: return {0, 2, 1};
        case VKROPE_LAYOUT_SBHD: return {1, 0, 2};
        case VKROPE_LAYOUT_THD: break;
    }
    return {-1, 0, 1};
}

Element checked_element(const TensorFile& tensor, std::optional<Element> dtype) {
    const npy::Type type = tensor.array.header.type;
    const std::optional<Element> element = dtype && npy_type(*dtype) == type ? dtype
                                                                             : element_of(type);
    if (!element) {
        fail(ExitCode::bad_file,
             "{}: '{}' has data of type {}; it must be <f4 (f32), <f2 (f16) or <u2 (bf16){}",
             tensor.option, tensor.path, npy::name(type),
             type == npy::Type::u1 ? ", or keys whose type vkrope rotate --dtype names" : "");
    }
    if (dtype && *dtype != *element) {
        fail(ExitCode::bad_file, "{}: '{}' has type {} ({}), and --dtype says {}", tensor.option,
             tensor.path, npy::name(type), word_for(elements, *element),
             word_for(stored_elements, *dtype));
    }
    return *element;
}

void check_shape(const TensorFile& tensor, Layout layout) {
    const std::vector<std::uint64_t>& shape = tensor.array.header.shape;
    const std::size_t rank = layout == VKROPE_LAYOUT_THD ? 3 : 4;
    if (shape.size() != rank) {
        fail(ExitCode::bad_file, "{}: '{}' has shape {}; layout {} has {} dimensions",
             tensor.option, tensor.path, npy::shape_text(shape), word_for(layouts, layout), rank);
    }
    const std::uint64_t largest = *std::max_element(shape.begin(), shape.end());
    if (largest > std::numeric_limits<std::uint32_t>::max()) {
        fail(ExitCode::bad_file, "{}: '{}' has a dimension of {}; it must be below 2^32",
             tensor.option, tensor.path, largest);
    }
    const std::uint64_t bytes = element_bytes(tensor.element);
    if (is_quantised(tensor.element) && shape.back() % bytes != 0) {
        fail(ExitCode::bad_file,
             "{}: '{}' has rows of {} bytes; {} has {} bytes for each {} channels", tensor.option,
             tensor.path, shape.back(), word_for(stored_elements, tensor.element), bytes,
             block_channels(tensor.element));
    }
}

oracle::Tensor view_of(const TensorFile& tensor, Layout layout) {
    std::vector<std::uint64_t> shape = tensor.array.header.shape;
    if (is_quantised(tensor.element))
        shape.back() = shape.back() / element_bytes(tensor.element) *
                       block_channels(tensor.element);
    std::vector<std::uint64_t> strides(shape.size(), 1);
    for (std::size_t dimension = shape.size() - 1; dimension > 0; --dimension)
        strides[dimension - 1] = strides[dimension] * shape[dimension];
    const Axes axes = axes_of(layout);
    const auto at = [](const std::vector<std::uint64_t>& values, int axis, std::uint64_t absent) {
        return axis < 0 ? absent : values[std::size_t(axis)];
    };
    return {.type = verify::type_of(tensor.element),
            .batch = at(shape, axes.batch, 1),
            .tokens = at(shape, axes.tokens, 1),
            .heads = at(shape, axes.heads, 1),
            .head_dim = shape.back(),
            .batch_stride = at(strides, axes.batch, 0),
            .token_stride = at(strides, axes.tokens, 0),
            .head_stride = at(strides, axes.heads, 0)};
}

}  // namespace

TensorFile read_tensor(const std::string& option, const std::string& path, Layout layout,
                       std::optional<Element> dtype) {
    TensorFile tensor;
    tensor.option = option;
    tensor.path = path;
    tensor.array = read_array(option, path);
    tensor.element = checked_element(tensor, dtype);
    check_shape(tensor, layout);
    tensor.view = view_of(tensor, layout);
    return tensor;
}

}  // namespace vkrope::tools
