// SPDX-License-Identifier: MIT
// Hugging Face config.json, queried for every layer type, length and tower.
#include "fuzz.hpp"

void vkrope::fuzz::parse(Input input) {
    const ModelQuery query = input.query();
    require_rules(from_hf_config(input.text(), query));
}
