// SPDX-License-Identifier: MIT
#include "io/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace vkrope::npy {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t shortest_preamble = 10;  // magic, version, 16-bit header length

struct TypeRow {
    Type type;
    const char* name;
    std::size_t bytes;
};
constexpr TypeRow types[] = {{Type::f4, "<f4", 4}, {Type::f2, "<f2", 2}, {Type::u2, "<u2", 2},
                             {Type::i4, "<i4", 4}, {Type::i8, "<i8", 8}, {Type::f8, "<f8", 8},
                             {Type::u1, "|u1", 1}};

const TypeRow& row(Type type) noexcept {
    return *std::find_if(
        std::begin(types), std::end(types),
        [type](const TypeRow& candidate) { return candidate.type == type; });
}

Type parse_type(const std::string& descr) {
    for (const TypeRow& candidate : types)
        if (descr == candidate.name) return candidate.type;
    if (descr.starts_with('>'))
        throw Error(fmt::format("descr '{}' is big-endian; it must be little-endian", descr));
    throw Error(fmt::format(
        "descr '{}' is not supported: it must be <f4, <f2, <u2, <i4, <i8, <f8 or |u1", descr));
}

std::uint64_t little_endian(std::span<const std::byte> bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
        value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
}

struct Preamble {
    std::size_t bytes = 0;         // number of bytes before the dict
    std::size_t header_bytes = 0;  // number of bytes of the dict
};

Preamble parse_preamble(std::span<const std::byte> start) {
    const std::size_t compared = std::min(start.size(), magic.size());
    if (compared == 0 || std::memcmp(start.data(), magic.data(), compared) != 0)
        throw Error("not a .npy file: it does not start with \\x93NUMPY");
    if (start.size() < shortest_preamble) {
        throw Error(
            fmt::format("cut off: {} bytes, but the shortest .npy header has more", start.size()));
    }
    const int major = std::to_integer<int>(start[6]), minor = std::to_integer<int>(start[7]);
    if (major < 1 || major > 3 || minor != 0) {
        throw Error(
            fmt::format(".npy format version {}.{}; it must be 1.0, 2.0 or 3.0", major, minor));
    }
    const std::size_t length_bytes = major == 1 ? 2 : 4;
    const std::size_t bytes = 8 + length_bytes;
    if (start.size() < bytes) throw Error("cut off in the header's length");
    const std::uint64_t header_bytes = little_endian(start.subspan(8, length_bytes));
    if (bytes + header_bytes > max_header_bytes)
        throw Error(fmt::format("header length {}; it may be at most 65536", header_bytes));
    return {.bytes = bytes, .header_bytes = std::size_t(header_bytes)};
}

}  // namespace

std::size_t item_bytes(Type type) noexcept {
    return row(type).bytes;
}

const char* name(Type type) noexcept {
    return row(type).name;
}

std::string shape_text(std::span<const std::uint64_t> shape) {
    return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "),
                       shape.size() == 1 ? "," : "");
}

std::uint64_t data_bytes(Type type, std::span<const std::uint64_t> shape) {
    // Zero dimensions count as one here, so that a product of some of the other dimensions cannot
    // overflow in a caller.
    std::uint64_t bytes = item_bytes(type);
    bool empty = false;
    for (const std::uint64_t dimension : shape) {
        empty = empty || dimension == 0;
        if (dimension > std::uint64_t(std::numeric_limits<std::int64_t>::max()) / bytes) {
            throw Error(fmt::format("shape {} of {} has 2^63 bytes or more", shape_text(shape),
                                    name(type)));
        }
        bytes *= std::max<std::uint64_t>(dimension, 1);
    }
    return empty ? 0 : bytes;
}

Header parse_header(std::span<const std::byte> start, std::uint64_t file_bytes) {
    const Preamble preamble = parse_preamble(start);
    if (start.size() - preamble.bytes < preamble.header_bytes) {
        throw Error(fmt::format("cut off in the header: {} bytes of {}",
                                start.size() - preamble.bytes, preamble.header_bytes));
    }
    const auto text = start.subspan(preamble.bytes, preamble.header_bytes);
    Dict dict = parse_dict({reinterpret_cast<const char*>(text.data()), text.size()});
    Header header = {.type = parse_type(dict.descr),
                     .shape = std::move(dict.shape),
                     .data_offset = preamble.bytes + preamble.header_bytes};
    if (dict.fortran_order) {
        throw Error(
            "fortran_order is True; it must be False (numpy.ascontiguousarray makes it so)");
    }
    header.data_bytes = data_bytes(header.type, header.shape);
    const std::uint64_t present = file_bytes - header.data_offset;
    if (present < header.data_bytes) {
        throw Error(fmt::format("cut off: shape {} of {} has {} bytes, the file has {} of them",
                                shape_text(header.shape), name(header.type), header.data_bytes,
                                present));
    }
    if (present > header.data_bytes) {
        throw Error(fmt::format("{} extra bytes after the data: shape {} of {} has {} bytes",
                                present - header.data_bytes, shape_text(header.shape),
                                name(header.type), header.data_bytes));
    }
    return header;
}

Array parse(std::span<const std::byte> file) {
    Array array = {.header = parse_header(file, file.size()), .data = {}};
    const auto data = file.subspan(std::size_t(array.header.data_offset));
    array.data.assign(data.begin(), data.end());
    return array;
}

Array read(const std::string& path) {
    const tools::RegularFile file(path);
    Array array = {.header = parse_header(file.start(max_header_bytes), file.bytes()), .data = {}};
    array.data.resize(std::size_t(array.header.data_bytes));
    file.read(array.header.data_offset, array.data);
    return array;
}

std::string make_header(Type type, std::span<const std::uint64_t> shape) {
    std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}",
                                   name(type), shape_text(shape));
    constexpr std::size_t alignment =
        64;  // alignment of the data, so that a file can be mapped into memory
    const std::size_t unpadded = shortest_preamble + dict.size() + 1;
    dict.append((alignment - unpadded % alignment) % alignment, ' ').push_back('\n');
    std::string header(magic);
    header += {'\1', '\0', char(dict.size() & 0xff), char(dict.size() >> 8)};
    return header + dict;
}

}  // namespace vkrope::npy
