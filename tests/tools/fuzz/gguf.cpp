// SPDX-License-Identifier: MIT
// Fuzzes the header of a GGUF file, and the tensors that change frequencies.
#include "fuzz.hpp"

bool vkrope::fuzz::parse_gguf(Input input) {
    const ModelQuery query = input.query();
    const std::string_view file = input.text();
    return require_rules(from_gguf(file.empty() ? "" : file.data(), file.size(), query));
}
