// SPDX-License-Identifier: MIT
// Fuzzes the header of a .safetensors file.
#include "io/safetensors.hpp"

#include <algorithm>

#include "fuzz.hpp"

bool vkrope::fuzz::parse_safetensors(Input input) {
    const std::span<const std::byte> file = std::as_bytes(input.rest());
    try {
        const safetensors::Header header = safetensors::parse_header(file, file.size());
        require(header.data_offset <= file.size(), "the data begins in the file");
        std::uint64_t bytes = 0;
        for (const safetensors::Tensor& tensor : header.tensors) {
            require(tensor.begin <= tensor.end, "a tensor does not end before it begins");
            require(tensor.end <= file.size() - header.data_offset, "a tensor is in the file");
            bytes += tensor.end - tensor.begin;
            require(header.find(tensor.name) == &tensor, "a name belongs to one tensor");
            if (const auto bits = safetensors::element_bits(tensor.dtype)) {
                std::uint64_t all_bits = *bits;
                for (const std::uint64_t dimension : tensor.shape) all_bits *= dimension;
                require(all_bits == 8 * (tensor.end - tensor.begin),
                        "a tensor has the bytes of its shape");
            }
        }
        require(bytes == file.size() - header.data_offset,
                "each byte of the data is in one tensor");
        // The header is the same with and without the data.
        const auto start = file.first(std::size_t(header.data_offset));
        require(
            safetensors::parse_header(start, file.size()).tensors.size() == header.tensors.size(),
            "the bytes before the data are enough");
        return true;
    } catch (const safetensors::Error& error) {
        require(error.what()[0] != '\0', "an error has a sentence");
        return false;
    }
}
