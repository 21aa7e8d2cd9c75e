// SPDX-License-Identifier: MIT
#include "conformance/cases/tensor.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "base/meaning.hpp"
#include "conformance/cases/fields.hpp"
#include "conformance/suite.hpp"
#include "io/element_type.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint64_t max_elements = std::uint64_t{1} << 29, max_steps = std::uint64_t{1} << 31;

/// Returns the product of the shape. A view may repeat elements, so the size of the file limits the
/// product only through hold_elements().
std::uint64_t elements_of(const CaseTensor& tensor) {
    std::uint64_t count = 1;
    for (const std::uint64_t dimension : tensor.shape) {
        if (dimension > max_steps) {
            wrong_file("tensors.{}: shape {} has a dimension above 2^31", tensor.name,
                       npy::shape_text(tensor.shape));
        }
        if (dimension != 0 && count > max_elements / dimension) {
            unsupported("tensors.{}: shape {} has more than {} elements", tensor.name,
                        npy::shape_text(tensor.shape), max_elements);
        }
        count *= dimension;
    }
    return count;
}

std::vector<std::int64_t> contiguous(const std::vector<std::uint64_t>& shape) {
    std::vector<std::int64_t> strides(shape.size(), 1);
    for (std::size_t axis = shape.size(); axis-- > 1;) {
        strides[axis - 1] = strides[axis] *
                            static_cast<std::int64_t>(std::max<std::uint64_t>(shape[axis], 1));
    }
    return strides;
}

/// Checks that the lowest and the highest element of a view are in the buffer. Cannot overflow.
void check_view(const CaseTensor& tensor) {
    __extension__ using Wide = __int128;
    Wide lowest = tensor.in.offset, highest = tensor.in.offset;
    for (std::size_t axis = 0; axis < tensor.shape.size() && tensor.count > 0; ++axis) {
        const Wide reach = Wide{tensor.strides[axis]} * static_cast<Wide>(tensor.shape[axis] - 1);
        (reach < 0 ? lowest : highest) += reach;
    }
    if (tensor.count > 0 && (lowest < 0 || highest >= static_cast<Wide>(count_of(tensor.parent)))) {
        wrong_file("tensors.{}.view reaches outside the {} elements of its file", tensor.name,
                   count_of(tensor.parent));
    }
}

void place_input(CaseTensor& tensor, const TensorCase& described) {
    if (!described.view) {
        if (tensor.parent.header.shape != tensor.shape) {
            wrong_file("{}: has shape {}; tensors.{}.shape is {}", described.file,
                       npy::shape_text(tensor.parent.header.shape), tensor.name,
                       npy::shape_text(tensor.shape));
        }
        tensor.strides = contiguous(tensor.shape);
        return;
    }
    tensor.in.offset = described.view->offset;
    tensor.strides = described.view->strides;
    if (tensor.strides.size() != tensor.shape.size()) {
        wrong_file("tensors.{}.view.strides has {} numbers; the shape has {}", tensor.name,
                   tensor.strides.size(), tensor.shape.size());
    }
    check_view(tensor);
    const std::vector<std::int64_t> packed = contiguous(tensor.shape);
    for (std::size_t axis = 0; axis < packed.size(); ++axis) {
        if (tensor.count == 0 || tensor.shape[axis] == 1) {
            tensor.strides[axis] = packed[axis];  // the stride of the case is never used
        }
    }
}

/// Returns the axis of the shape for a letter of the layout, or -1 if there is none.
int axis_of(const std::string& layout, char letter) noexcept {
    const std::size_t at = layout.find(letter);
    return at == std::string::npos ? -1 : static_cast<int>(at);
}

void check_layout(const std::string& layout, std::size_t rank) {
    const auto has = [&layout](char letter) { return axis_of(layout, letter) >= 0; };
    for (std::size_t at = 0; at < layout.size(); ++at) {
        if (std::string("BSHDTPE").find(layout[at]) == std::string::npos ||
            layout.find(layout[at], at + 1) != std::string::npos) {
            unsupported("layout '{}'", shown_text(layout));
        }
    }
    if (layout.size() != rank) {
        wrong_file("layout '{}' names {} axes; the shape has {}", shown_text(layout), layout.size(),
                   rank);
    }
    if (has('D') == has('E') || (has('E') && has('H')) || (has('T') && (has('S') || has('B')))) {
        unsupported("layout '{}'", shown_text(layout));
    }
    if (layout.back() != 'D' && layout.back() != 'E') {
        unsupported("layout '{}': channels must come last", shown_text(layout));
    }
}

struct Axis {
    std::uint32_t steps = 1;
    std::int64_t in = 0, out = 0;
};

}  // namespace

CaseTensor read_tensor(const CaseFolder& folder, const std::string& name,
                       const TensorCase& described, Element dtype) {
    CaseTensor tensor;
    tensor.name = name;
    tensor.shape = described.shape;
    check_layout(described.layout, tensor.shape.size());
    tensor.count = elements_of(tensor);
    tensor.parent = folder.array(described.file);
    if (tensor.parent.header.type != tools::npy_type(dtype)) {
        wrong_file("{}: has data of type {}; dtype needs {}", described.file,
                   npy::name(tensor.parent.header.type), npy::name(tools::npy_type(dtype)));
    }
    place_input(tensor, described);

    const std::vector<std::int64_t> packed = contiguous(tensor.shape);
    const auto axis = [&](char letter) {
        const int at = axis_of(described.layout, letter);
        if (at < 0) {
            return Axis{};
        }
        const auto index = static_cast<std::size_t>(at);
        return Axis{static_cast<std::uint32_t>(tensor.shape[index]), tensor.strides[index],
                    packed[index]};
    };
    Axis channels = axis('D'), heads = axis('H');
    if (described.layout.back() == 'E') {
        channels = axis('E');
        const std::uint64_t count = described.num_heads.value_or(0);
        if (count == 0 || channels.steps % count != 0) {
            wrong_file(
                "tensors.{}: layout '{}' has {} channels in all and needs a num_heads that divides "
                "them",
                name, described.layout, channels.steps);
        }
        const auto head_dim = static_cast<std::uint32_t>(channels.steps / count);
        heads = {static_cast<std::uint32_t>(count), std::int64_t{head_dim} * channels.in, head_dim};
        channels.steps = head_dim;
    }
    if (channels.in != 1 && channels.steps > 1) {
        unsupported("tensors.{}: channels are {} elements apart; the library needs neighbours",
                    name, channels.in);
    }
    const char token_letter = axis_of(described.layout, 'T') >= 0 ? 'T' : 'S';
    const Axis batch = axis('B'), tokens = axis(token_letter), planes = axis('P');
    tensor.batch = batch.steps;
    tensor.tokens = tokens.steps;
    tensor.heads = heads.steps;
    tensor.head_dim = channels.steps;
    tensor.planes = planes.steps;
    tensor.has_batch = axis_of(described.layout, 'B') >= 0;
    tensor.has_tokens = axis_of(described.layout, token_letter) >= 0;
    tensor.has_planes = axis_of(described.layout, 'P') >= 0;
    const std::int64_t offset = tensor.in.offset;
    tensor.in = {.offset = offset,
                 .batch = batch.in,
                 .token = tokens.in,
                 .head = heads.in,
                 .plane = planes.in};
    tensor.out = {.offset = 0,
                  .batch = batch.out,
                  .token = tokens.out,
                  .head = heads.out,
                  .plane = planes.out};
    hold_elements(tensor, 1);
    return tensor;
}

void hold_elements(const CaseTensor& tensor, std::uint64_t passes) {
    constexpr std::uint64_t times = 64, beside = std::uint64_t{1} << 24;
    const std::uint64_t in_file = count_of(tensor.parent), most = times * in_file + beside;
    if (tensor.count > most / passes) {
        unsupported(
            "tensors.{}: shape {}{} is {} elements to write; a file of {} elements allows {}, {} "
            "times its own and 2^24",
            tensor.name, npy::shape_text(tensor.shape),
            passes > 1 ? fmt::format(", {} windows one after another,", passes) : "",
            tensor.count * passes, in_file, most, times);
    }
    // Tokens have positions even if the tensor has no channels.
    const std::uint64_t rows = std::uint64_t{tensor.batch} * tensor.tokens;
    if (rows > most) {
        unsupported(
            "tensors.{}: shape {} has {} tokens; a file of {} elements allows {}, {} times its own "
            "and 2^24",
            tensor.name, npy::shape_text(tensor.shape), rows, in_file, most, times);
    }
}

std::string place_text(const std::string& name, const std::vector<std::uint64_t>& shape,
                       std::uint64_t index) {
    std::vector<std::uint64_t> at(shape.size());
    for (std::size_t axis = at.size(); axis-- > 0;) {
        at[axis] = index % shape[axis];
        index /= shape[axis];
    }
    return fmt::format("{}[{}]", name, fmt::join(at, ", "));
}

std::uint64_t plane_of(const CaseTensor& tensor, std::uint64_t index) noexcept {
    return tensor.has_planes ? index / static_cast<std::uint64_t>(tensor.out.plane) % tensor.planes
                             : 0;
}

}  // namespace vkrope::conformance
