// SPDX-License-Identifier: MIT
#include "io/array_file.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "cli/failure.hpp"
#include "io/safetensors.hpp"

namespace vkrope::tools {
namespace {

struct StoredType {
    const char* dtype;
    npy::Type type;
};
constexpr StoredType stored_types[] = {
    {"F32", npy::Type::f4}, {"F16", npy::Type::f2}, {"BF16", npy::Type::u2}, {"I32", npy::Type::i4},
    {"I64", npy::Type::i8}, {"F64", npy::Type::f8}, {"U8", npy::Type::u1}};

// The path of a safetensors file and, after a colon, the name of a tensor, which may be empty.
struct TensorPath {
    std::string file, tensor;
};

std::optional<TensorPath> tensor_path(const std::string& path) {
    constexpr std::string_view extension = ".safetensors";
    for (std::size_t at = path.find(extension); at != path.npos;
         at = path.find(extension, at + 1)) {
        const std::size_t end = at + extension.size();
        if (end == path.size()) return TensorPath{path, ""};
        if (path[end] == ':') return TensorPath{path.substr(0, end), path.substr(end + 1)};
    }
    return std::nullopt;
}

const safetensors::Tensor& tensor_of(const safetensors::Header& header, const TensorPath& path) {
    if (!path.tensor.empty()) {
        const safetensors::Tensor* found = header.find(path.tensor);
        if (found == nullptr) {
            throw safetensors::Error(
                fmt::format("none of its {} tensors has that name", header.tensors.size()));
        }
        return *found;
    }
    if (header.tensors.size() != 1) {
        throw safetensors::Error(fmt::format(
            "has {} tensors; name one of them: FILE.safetensors:NAME", header.tensors.size()));
    }
    return header.tensors.front();
}

npy::Array read_safetensors(const TensorPath& path) {
    const RegularFile file(path.file);
    const safetensors::Header header = safetensors::read_header(file);
    const safetensors::Tensor& tensor = tensor_of(header, path);
    const auto* stored = std::find_if(
        std::begin(stored_types), std::end(stored_types),
        [&tensor](const StoredType& row) { return row.dtype == tensor.dtype; });
    if (stored == std::end(stored_types)) {
        throw safetensors::Error(
            fmt::format("dtype {} is not supported: it must be F32, F16, BF16, F64, I32, I64 or U8",
                        tensor.dtype));
    }
    npy::Array array = {.header = {.type = stored->type,
                                   .shape = tensor.shape,
                                   .data_offset = header.data_offset + tensor.begin,
                                   .data_bytes = tensor.end - tensor.begin},
                        .data = {}};
    array.data.resize(std::size_t(array.header.data_bytes));
    file.read(array.header.data_offset, array.data);
    return array;
}

}  // namespace

npy::Array read_array(const std::string& option, const std::string& path) {
    try {
        const std::optional<TensorPath> tensor = tensor_path(path);
        return tensor ? read_safetensors(*tensor) : npy::read(path);
    } catch (const FileError& error) {
        fail(ExitCode::bad_file, "{}: '{}': {}", option, path, error.what());
    }
}

std::vector<float> read_floats(const std::string& option, const std::string& path,
                               const std::vector<ArrayShape>& shapes, const std::string& tensor,
                               const char* each) {
    const npy::Array array = read_array(option, path);
    std::string needed;
    bool fits = false;
    for (const ArrayShape& shape : shapes) {
        needed += (needed.empty() ? "" : " or ") + npy::shape_text(shape);
        fits = fits || array.header.shape == shape;
    }
    if (array.header.type != npy::Type::f4 || !fits) {
        fail(ExitCode::bad_file, "{}: '{}' has shape {} of {}; {} needs {} of <f4, one for each {}",
             option, path, npy::shape_text(array.header.shape), npy::name(array.header.type),
             tensor, needed, each);
    }
    std::vector<float> numbers(array.data.size() / sizeof(float));
    if (!numbers.empty()) std::memcpy(numbers.data(), array.data.data(), array.data.size());
    return numbers;
}

std::string file_of(const std::string& path) {
    const std::optional<TensorPath> tensor = tensor_path(path);
    return tensor ? tensor->file : path;
}

}  // namespace vkrope::tools
