// SPDX-License-Identifier: MIT
#include "conformance/cases/folder.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "conformance/suite.hpp"
#include "io/regular_file.hpp"
#include "verify/oracle/oracle.hpp"

namespace vkrope::conformance {
namespace {

template <class T>
T stored(const npy::Array& array, std::size_t index) noexcept {
    T value = {};
    std::memcpy(&value, array.data.data() + index * sizeof value, sizeof value);
    return value;
}

}  // namespace

std::filesystem::path CaseFolder::checked(const std::string& file, std::uint64_t max_bytes) const {
    std::error_code problem;
    const std::filesystem::path path = std::filesystem::canonical(folder_ / file, problem);
    if (problem) {
        wrong_file("{}: cannot be read: {}", file, problem.message());
    }
    // Compares the path by components, so that /cases2 is not below /cases.
    if (std::mismatch(root_.begin(), root_.end(), path.begin(), path.end()).first != root_.end()) {
        wrong_file("{}: a symbolic link leads out of the cases folder", file);
    }
    const bool regular = std::filesystem::is_regular_file(path, problem);
    if (problem || !regular) {
        wrong_file("{}: is not a regular file", file);
    }
    if (const std::uint64_t bytes = std::filesystem::file_size(path, problem);
        !problem && bytes > max_bytes) {
        unsupported("{}: has {} bytes, more than {}", file, bytes, max_bytes);
    }
    return path;
}

std::string CaseFolder::document() const {
    const std::string path = checked("case.json", max_document_bytes).string();
    try {
        const std::vector<std::byte> text = tools::RegularFile(path).start(max_document_bytes);
        return {reinterpret_cast<const char*>(text.data()), text.size()};
    } catch (const tools::FileError& problem) {
        wrong_file("case.json: {}", problem.what());
    }
}

npy::Array CaseFolder::array(const std::string& file, std::uint64_t max_bytes) const {
    const std::string path = checked(file, max_bytes).string();
    try {
        return npy::read(path);
    } catch (const npy::UnknownType& problem) {
        unsupported("{}: {}", file, problem.what());
    } catch (const npy::Error& problem) {
        wrong_file("{}: {}", file, problem.what());
    }
}

CaseFolder::IntegerList CaseFolder::integers(const Integers& integers) const {
    IntegerList list;
    if (const auto* values = std::get_if<std::vector<std::int64_t>>(&integers)) {
        list.shape = {values->size()};
        list.values = *values;
        const auto bytes = std::as_bytes(std::span(*values));
        list.bytes.assign(bytes.begin(), bytes.end());
        return list;
    }
    const std::string& file = std::get<std::string>(integers);
    npy::Array array = this->array(file);
    const npy::Type type = array.header.type;
    if (type != npy::Type::i4 && type != npy::Type::i8) {
        unsupported("{}: has data of type {}; positions must be <i4 or <i8", file, npy::name(type));
    }
    list.shape = array.header.shape;
    list.wide = type == npy::Type::i8;
    const std::size_t count = count_of(array);
    list.values.reserve(count);
    for (std::size_t index = 0; index < count; ++index) {
        list.values.push_back(list.wide ? stored<std::int64_t>(array, index)
                                        : stored<std::int32_t>(array, index));
    }
    list.bytes = std::move(array.data);
    return list;
}

std::size_t count_of(const npy::Array& array) noexcept {
    return array.data.size() / npy::item_bytes(array.header.type);
}

double value_at(const npy::Array& array, std::size_t index) noexcept {
    switch (array.header.type) {
        case npy::Type::f4: return stored<float>(array, index);
        case npy::Type::f8: return stored<double>(array, index);
        case npy::Type::f2:
            return oracle::widen(oracle::Type::f16, stored<std::uint16_t>(array, index));
        case npy::Type::u2:
            return oracle::widen(oracle::Type::bf16, stored<std::uint16_t>(array, index));
        case npy::Type::i4: return stored<std::int32_t>(array, index);
        case npy::Type::u1: return stored<std::uint8_t>(array, index);
        case npy::Type::i8: break;
    }
    return static_cast<double>(stored<std::int64_t>(array, index));
}

}  // namespace vkrope::conformance
