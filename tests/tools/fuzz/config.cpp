// SPDX-License-Identifier: MIT
// Fuzzes Hugging Face's config.json, queried for every layer type, length and tower.
#include "fuzz.hpp"

bool vkrope::fuzz::parse_config(Input input) {
    const ModelQuery query = input.query();
    return require_rules(from_hf_config(input.text(), query));
}
