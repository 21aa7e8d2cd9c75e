// SPDX-License-Identifier: MIT
// Fuzzes .npy files. Files that were read are written and read again.
#include "io/npy.hpp"

#include "fuzz.hpp"

bool vkrope::fuzz::parse_npy(Input input) {
    try {
        const npy::Array array = npy::parse(std::as_bytes(input.rest()));
        require(array.data.size() == array.header.data_bytes,
                "an array has the bytes that its header says");
        const std::string again = npy::make_header(array.header.type, array.header.shape);
        const npy::Header header = npy::parse_header(std::as_bytes(std::span(again)),
                                                     again.size() + array.data.size());
        require(header.type == array.header.type && header.shape == array.header.shape,
                "a header that is written reads as it was");
        return true;
    } catch (const npy::Error&) {
        return false;  // thrown for invalid files
    }
}
