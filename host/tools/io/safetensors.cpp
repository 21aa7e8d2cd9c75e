// SPDX-License-Identifier: MIT
// The header of a safetensors file: its JSON, and the rules for its contents.
#include "io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "io/npy.hpp"
#include "model/import_error.hpp"

namespace vkrope::safetensors {
namespace {

using nlohmann::json;
using npy::shape_text;

struct Dtype {
    std::string_view name;
    std::uint32_t bits;
};
constexpr Dtype dtypes[] = {{"BF16", 16},       {"BOOL", 8},    {"C64", 64},        {"F16", 16},
                            {"F32", 32},        {"F4", 4},      {"F64", 64},        {"F6_E2M3", 6},
                            {"F6_E3M2", 6},     {"F8_E4M3", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2", 8},
                            {"F8_E5M2FNUZ", 8}, {"F8_E8M0", 8}, {"I16", 16},        {"I32", 32},
                            {"I64", 64},        {"I8", 8},      {"U16", 16},        {"U32", 32},
                            {"U64", 64},        {"U8", 8}};

// The number of bytes that state the length of the header, at the beginning of a file.
constexpr std::size_t length_bytes = 8;

std::uint64_t header_length(std::span<const std::byte> start) noexcept {
    std::uint64_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;)
        length = length << 8 | std::to_integer<std::uint64_t>(start[i]);
    return length;
}

// Quotes a name for messages. The end of a name matters too, so only a hostile one is cut.
std::string in_quotes(const std::string& name) {
    constexpr std::size_t longest_shown = 200;
    return "'" + (name.size() > longest_shown ? name.substr(0, longest_shown) + "..." : name) + "'";
}

[[noreturn]] void refuse(const std::string& where, const json& value, const char* rule) {
    throw Error(fmt::format("{} is {}; it must be {}", where, shown(value), rule));
}

std::vector<std::uint64_t> numbers_in(const std::string& where, const json& value) {
    constexpr const char* rule = "an array of whole numbers below 2^64";
    if (!value.is_array()) refuse(where, value, rule);
    std::vector<std::uint64_t> numbers;
    for (const json& number : value) {
        if (!number.is_number_unsigned()) refuse(where, number, rule);
        numbers.push_back(number.get<std::uint64_t>());
    }
    return numbers;
}

void read_field(const std::string& where, const std::string& key, const json& value,
                Tensor& tensor) {
    if (key == "dtype") {
        if (!value.is_string()) refuse(where, value, "a string");
        tensor.dtype = value.get<std::string>();
        if (tensor.dtype.size() > max_dtype_bytes) {
            throw Error(fmt::format("{} has {} bytes; it may have at most {}", where,
                                    tensor.dtype.size(), max_dtype_bytes));
        }
    } else if (key == "shape") {
        tensor.shape = numbers_in(where, value);
        if (tensor.shape.size() > max_rank)
            throw Error(fmt::format("{} has more than {} dimensions", where, max_rank));
    } else if (key == "data_offsets") {
        const std::vector<std::uint64_t> offsets = numbers_in(where, value);
        if (offsets.size() != 2) {
            throw Error(fmt::format("{} has {} numbers; it must have two: begin and end", where,
                                    offsets.size()));
        }
        tensor.begin = offsets[0];
        tensor.end = offsets[1];
    } else {
        throw Error(fmt::format("{}: the keys are dtype, shape and data_offsets", where));
    }
}

Tensor tensor_in(const std::string& name, const json& fields) {
    const std::string where = "tensor " + in_quotes(name);
    if (name.size() > max_name_bytes) {
        throw Error(fmt::format("{} has a name of {} bytes; it may have at most {}", where,
                                name.size(), max_name_bytes));
    }
    if (!fields.is_object()) refuse(where, fields, "an object");
    Tensor tensor = {.name = name, .dtype = {}, .shape = {}};
    for (const auto& [key, value] : fields.items())
        read_field(where + ": " + in_quotes(key), key, value, tensor);
    for (const char* key : {"dtype", "shape", "data_offsets"})
        if (!fields.contains(key)) throw Error(fmt::format("{}: {} is missing", where, key));
    return tensor;
}

void check_metadata(const json& metadata) {
    if (!metadata.is_object()) refuse("__metadata__", metadata, "an object");
    for (const auto& [key, value] : metadata.items())
        if (!value.is_string())
            refuse("__metadata__: the key " + in_quotes(key), value, "a string");
}

json parsed(std::string_view text) {
    try {
        return parse_json(text);
    } catch (const ImportError& problem) {
        throw Error(fmt::format("the header is {}", static_cast<const char*>(problem.status.what)));
    }
}

// Returns the size in bytes of a tensor of a known dtype. The check for overflow counts dimensions
// of zero as one, so that no product of some of the other dimensions can overflow in a caller.
std::uint64_t bytes_of(const Tensor& tensor, std::uint32_t bits) {
    const auto problem = [&](const char* rule) {
        return Error(fmt::format("tensor {}: shape {} of {} {}", in_quotes(tensor.name),
                                 shape_text(tensor.shape), tensor.dtype, rule));
    };
    std::uint64_t all_bits = bits;
    bool empty = false;
    for (const std::uint64_t dimension : tensor.shape) {
        empty = empty || dimension == 0;
        if (dimension > std::numeric_limits<std::uint64_t>::max() / all_bits)
            throw problem("has 2^61 bytes or more");
        all_bits *= std::max<std::uint64_t>(dimension, 1);
    }
    if (!empty && all_bits % 8 != 0) throw problem("does not fill whole bytes");
    return empty ? 0 : all_bits / 8;
}

void check_sizes(const std::vector<Tensor>& tensors) {
    for (const Tensor& tensor : tensors) {
        if (tensor.begin > tensor.end) {
            throw Error(
                fmt::format("tensor {}: data_offsets are [{}, {}]; the end must not be "
                            "before the beginning",
                            in_quotes(tensor.name), tensor.begin, tensor.end));
        }
        const std::optional<std::uint32_t> bits = element_bits(tensor.dtype);
        if (!bits) continue;
        const std::uint64_t bytes = bytes_of(tensor, *bits);
        if (tensor.end - tensor.begin != bytes) {
            throw Error(fmt::format(
                "tensor {}: data_offsets are [{}, {}], {} bytes; shape {} of {} has {}",
                in_quotes(tensor.name), tensor.begin, tensor.end, tensor.end - tensor.begin,
                shape_text(tensor.shape), tensor.dtype, bytes));
        }
    }
}

// Checks that every byte of the data belongs to exactly one tensor.
void check_places(const std::vector<Tensor>& tensors, std::uint64_t data_bytes) {
    std::vector<const Tensor*> by_place;
    for (const Tensor& tensor : tensors) by_place.push_back(&tensor);
    std::sort(by_place.begin(), by_place.end(), [](const Tensor* one, const Tensor* other) {
        return one->begin != other->begin ? one->begin < other->begin : one->end < other->end;
    });
    std::uint64_t end = 0;
    for (const Tensor* tensor : by_place) {
        if (tensor->begin < end) {
            throw Error(
                fmt::format("tensor {} begins at byte {} of the data, where another has "
                            "bytes up to {}; tensors must not overlap",
                            in_quotes(tensor->name), tensor->begin, end));
        }
        if (tensor->begin > end) {
            throw Error(
                fmt::format("tensor {} begins at byte {} of the data, and bytes {} to {} "
                            "belong to no tensor; there must be no hole",
                            in_quotes(tensor->name), tensor->begin, end, tensor->begin));
        }
        end = tensor->end;
    }
    if (end > data_bytes) {
        throw Error(fmt::format("cut off: the tensors have {} bytes, the file has {} of them", end,
                                data_bytes));
    }
    if (end < data_bytes) {
        throw Error(fmt::format("{} extra bytes after the data: the tensors have {} bytes",
                                data_bytes - end, end));
    }
}

}  // namespace

std::optional<std::uint32_t> element_bits(std::string_view dtype) noexcept {
    const auto* found = std::find_if(std::begin(dtypes), std::end(dtypes),
                                     [dtype](const Dtype& row) { return row.name == dtype; });
    return found == std::end(dtypes) ? std::nullopt : std::optional(found->bits);
}

const Tensor* Header::find(std::string_view name) const noexcept {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [name](const Tensor& each) { return each.name == name; });
    return found == tensors.end() ? nullptr : &*found;
}

Header parse_header(std::span<const std::byte> start, std::uint64_t file_bytes) {
    if (start.size() < length_bytes) {
        throw Error(fmt::format("cut off: {} bytes, but the header's length alone has {}",
                                start.size(), length_bytes));
    }
    const std::uint64_t header_bytes = header_length(start);
    if (header_bytes > max_header_bytes) {
        throw Error(
            fmt::format("not a safetensors file: the header's length is {}; it may be at "
                        "most {}",
                        header_bytes, max_header_bytes));
    }
    if (header_bytes > file_bytes - length_bytes) {
        throw Error(fmt::format("cut off in the header: its length is {}, and {} bytes follow",
                                header_bytes, file_bytes - length_bytes));
    }
    const auto first = reinterpret_cast<const char*>(start.data()) + length_bytes;
    // If only the beginning is present, its first character decides whether to read the rest.
    const std::string_view text(first,
                                std::min<std::size_t>(start.size() - length_bytes, header_bytes));
    if (!text.starts_with('{'))
        throw Error("not a safetensors file: the header does not begin with {");
    // A zero byte ends the reading, so that a hole of a sparse file is not read to its end.
    if (const std::size_t zero = text.find('\0'); zero != text.npos)
        throw Error(fmt::format("the header has a byte of value 0 at {}", zero));
    if (text.size() < header_bytes) {
        throw Error(
            fmt::format("cut off in the header: {} bytes of {}", text.size(), header_bytes));
    }
    Header header = {.data_offset = length_bytes + header_bytes, .tensors = {}};
    const json document = parsed(text);
    for (const auto& [name, fields] : document.items())
        if (name == "__metadata__")
            check_metadata(fields);
        else
            header.tensors.push_back(tensor_in(name, fields));
    check_sizes(header.tensors);
    check_places(header.tensors, file_bytes - header.data_offset);
    return header;
}

Header read_header(const tools::RegularFile& file) {
    std::vector<std::byte> start = file.start(4096);
    if (start.size() > length_bytes) {
        const std::uint64_t length = header_length(start);
        // Rejects a wrong header by its first bytes, before trusting the size that the file claims.
        if (length <= std::min(max_header_bytes, file.bytes() - length_bytes) &&
            start[length_bytes] == std::byte{'{'})
            start = file.start(length_bytes + length);
    }
    return parse_header(start, file.bytes());
}

}  // namespace vkrope::safetensors
