// SPDX-License-Identifier: MIT
// The head of a GGUF file, and the tensors that change frequencies.
#include "fuzz.hpp"

void vkrope::fuzz::parse(Input input) {
    const ModelQuery query = input.query();
    const std::string_view file = input.text();
    require_rules(from_gguf(file.empty() ? "" : file.data(), file.size(), query));
}
