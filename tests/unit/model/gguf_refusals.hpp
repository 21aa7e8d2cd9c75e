// SPDX-License-Identifier: MIT
// Reads GGUF files that must be refused.
#pragma once

#include <doctest/doctest.h>

#include "model/gguf/model.hpp"
#include "support/gguf_builder.hpp"
#include "support/names.hpp"

namespace vkrope::test::gguf_refusals {

inline GgufBuilder plain(const std::string& architecture = "llama") {
    GgufBuilder file(architecture);
    return file.u32("block_count", 12)
        .u32("context_length", 8192)
        .u32("attention.key_length", 128)
        .f32("rope.freq_base", 500000);
}

inline void check_refused(const std::string& bytes, ErrorCode code, const std::string& words,
                          const ModelQuery& query = {}) {
    CAPTURE(words);
    const Result<RopeParams> result = from_gguf(bytes.data(), bytes.size(), query);
    check_error(result.status, code, words);
    CHECK(result.value.inv_freq.empty());
}

inline void check_refused(const GgufBuilder& file, ErrorCode code, const std::string& words,
                          const ModelQuery& query = {}) {
    check_refused(file.file(), code, words, query);
}

}  // namespace vkrope::test::gguf_refusals
