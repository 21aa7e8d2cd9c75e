// SPDX-License-Identifier: MIT
// The functions that all targets use: splitting an input, and the rules that results must meet.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fuzz.hpp"

namespace vkrope::fuzz {
namespace {

bool printable(std::string_view text) {
    return std::all_of(
        text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::uint8_t Input::byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
}

ModelQuery Input::query() {
    constexpr std::uint64_t lengths[] = {0,    1,      2048,          4096,
                                         4097, 131072, max_positions, max_positions + 1};
    constexpr const char* types[] = {"",
                                     "full_attention",
                                     "sliding_attention",
                                     "chunked_attention",
                                     "linear_attention",
                                     "none of them"};
    ModelQuery query;
    query.seq_len = lengths[byte() % std::size(lengths)];
    query.layer = byte();
    query.by_layer = query.layer != 0;
    query.layer_type = types[byte() % std::size(types)];
    const std::uint8_t bits = byte();
    query.tower = bits & 1 ? "vision" : "text";
    if (bits & 2) query.pairing = bits & 4 ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT;
    return query;
}

void require(bool holds, const char* rule) {
    if (!holds) {
        std::fprintf(stderr, "broken: %s\n", rule);
        std::abort();
    }
}

bool require_rules(const Result<RopeParams>& result) {
    if (!result) {
        require(result.status.what[0] != '\0' && printable(result.status.what),
                "an error has a printable sentence");
        require(result.value.inv_freq.empty(), "where there is an error there is no value");
        return false;
    }
    const RopeParams& rotation = result.value;
    require(rotation.inv_freq.size() == rotation.rotary_dim / 2,
            "there are as many frequencies as pairs");
    require(rotation.rotary_dim % 2 == 0 && rotation.rotary_dim <= rotation.head_dim,
            "rotary_dim is even, at most head_dim");
    require(!rotation.no_rope == (rotation.rotary_dim != 0), "what rotates has pairs");
    for (const double frequency : rotation.inv_freq)
        require(frequency >= 0 && frequency < 2048, "a frequency is at least 0 and below 2048");
    require(std::isfinite(rotation.attention_factor) && rotation.attention_factor > 0,
            "attention_factor is finite, above 0");
    require(std::isfinite(rotation.softmax_scale) && rotation.softmax_scale > 0,
            "softmax_scale is finite, above 0");
    for (const std::string& warning : rotation.warnings)
        require(printable(warning), "a warning is printable");
    return true;
}

}  // namespace vkrope::fuzz
