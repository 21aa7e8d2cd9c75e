// SPDX-License-Identifier: MIT
// The folder of a case. Its files are untrusted, so each file is checked before it is used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "conformance/cases/description.hpp"
#include "io/npy.hpp"

namespace vkrope::conformance {

class CaseFolder {
   public:
    static constexpr std::uint64_t max_document_bytes = std::uint64_t{4} << 20,
                                   max_array_bytes = std::uint64_t{1} << 30;

    /// `root` is the folder given to --cases. Not even a symbolic link may lead out of it.
    CaseFolder(std::filesystem::path root, std::filesystem::path folder)
        : root_(std::move(root)), folder_(std::move(folder)) {}

    std::string document() const;
    npy::Array array(const std::string& file, std::uint64_t max_bytes = max_array_bytes) const;

    /// Integers from the document, or from a file of int32 or int64, read as in array(). `wide` is
    /// true for int64.
    struct IntegerList {
        std::vector<std::uint64_t> shape;
        std::vector<std::int64_t> values;
        bool wide = true;
        std::vector<std::byte> bytes;  // the values as int32, or as int64 if wide
    };
    IntegerList integers(const Integers& integers) const;

   private:
    std::filesystem::path checked(const std::string& file, std::uint64_t max_bytes) const;

    std::filesystem::path root_, folder_;
};

/// Returns element `index` of a file of floats, or of bf16 stored as <u2.
double value_at(const npy::Array& array, std::size_t index) noexcept;
std::size_t count_of(const npy::Array& array) noexcept;

}  // namespace vkrope::conformance
