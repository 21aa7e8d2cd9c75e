// SPDX-License-Identifier: MIT
// Reads GGUF files that must be refused.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "model/gguf/model.hpp"
#include "support/gguf_builder.hpp"

namespace vkrope::test::gguf_refusals {

inline GgufBuilder plain(const std::string& architecture = "llama") {
    GgufBuilder file(architecture);
    return file.u32("block_count", 12)
        .u32("context_length", 8192)
        .u32("attention.key_length", 128)
        .f32("rope.freq_base", 500000);
}

inline void check_refused(const std::string& bytes, Code code, const std::string& text,
                          const ModelQuery& query = {}) {
    CAPTURE(text);
    const Result<Rotation> result = from_gguf(bytes.data(), bytes.size(), query);
    CHECK_MESSAGE(result.status.code == code, result.status.what);
    CHECK_MESSAGE(std::string(result.status.what).find(text) != std::string::npos,
                  result.status.what, " lacks ", text);
    CHECK(result.value.inv_freq.empty());
    for (const char* c = result.status.what; *c != 0; ++c) {
        CHECK((*c >= ' ' && *c <= '~'));
    }
}

inline void check_refused(const GgufBuilder& file, Code code, const std::string& text,
                          const ModelQuery& query = {}) {
    check_refused(file.file(), code, text, query);
}

}  // namespace vkrope::test::gguf_refusals
