// SPDX-License-Identifier: MIT
// Checks that no bytes make the reader of GGUF files crash, and that it trusts no size in them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "gguf_reading.hpp"
#include "model/gguf/model.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("GGUF: counts and lengths beyond the file") {
    const std::string little8 = GgufBuilder::little(~std::uint64_t{0}, 8);
    for (const std::uint64_t count : {std::uint64_t{17000}, ~std::uint64_t{0} - 10}) {
        GgufBuilder file = plain();
        file.extra_values = count;
        check_refused(file, VKROPE_ERROR_INVALID_DATA, "keys 16384");
    }
    for (const std::uint64_t count : {std::uint64_t{1000}, ~std::uint64_t{0} - 10}) {
        GgufBuilder file = plain();
        file.extra_tensors = count;
        check_refused(file, VKROPE_ERROR_INVALID_DATA, "tensors");
    }
    check_refused(plain().value_of("s", 8, little8), VKROPE_ERROR_INVALID_DATA, "s");
    check_refused(plain().value_of("s", 13, ""), VKROPE_ERROR_INVALID_DATA, "s 13");
    check_refused(plain().value_of("s", 8, GgufBuilder::little(200, 8)), VKROPE_ERROR_INVALID_DATA,
                  "s");
    for (const std::uint32_t element : {0u, 6u, 8u, 9u, 12u}) {  // a list with a huge count
        check_refused(plain().value_of("s", 9, GgufBuilder::little(element, 4) + little8),
                      VKROPE_ERROR_INVALID_DATA, "s");
    }
    check_refused(plain().value_of("s", 9, GgufBuilder::little(99, 4) + GgufBuilder::little(0, 8)),
                  VKROPE_ERROR_INVALID_DATA, "s 99");
    std::string deep;
    for (int i = 0; i < 100000; ++i) deep += GgufBuilder::little(9, 4) + GgufBuilder::little(1, 8);
    check_refused(plain().value_of("s", 9, deep), VKROPE_ERROR_INVALID_DATA, "s 8");
    check_refused(plain().value_of(std::string(70000, 'k'), 0, "a"), VKROPE_ERROR_INVALID_DATA,
                  "70000");
    GgufBuilder many;
    for (int i = 0; i < 20; ++i) many.value_of(std::string(60000, char('a' + i)), 0, "a");
    check_refused(many, VKROPE_ERROR_INVALID_DATA, "keys 1048576");
}

namespace {

// A file of `bytes` bytes that begins with `head` and continues with zeros, like a sparse file. If
// the reader asks for more than a head may have, reading fails.
class Holed {
   public:
    Holed(std::string head, std::uint64_t bytes) : head_(std::move(head)), bytes_(bytes) {}

    Result<RopeParams> rotation() {
        return from_gguf(
            bytes_,
            [this](std::uint64_t offset, void* to, std::size_t count) -> std::size_t {
                read_ += count;
                if (read_ > most) return 0;
                std::memset(to, 0, count);
                if (offset < head_.size())
                    std::memcpy(to, head_.data() + offset,
                                std::min<std::uint64_t>(count, head_.size() - offset));
                return count;
            });
    }

    void check_refused(const std::string& words) {
        check_error(rotation().status, VKROPE_ERROR_INVALID_DATA, words);
    }

    void check_accepted() {
        const Result<RopeParams> result = rotation();
        CHECK_MESSAGE(result, result.status.what);
    }

   private:
    static constexpr std::uint64_t most = std::uint64_t{260} << 20;

    const std::string head_;
    const std::uint64_t bytes_;
    std::uint64_t read_ = 0;
};

GgufBuilder with_list(std::uint32_t element, std::uint64_t count) {
    return plain().value_of("list", 9,
                            GgufBuilder::little(element, 4) + GgufBuilder::little(count, 8));
}

}  // namespace

TEST_CASE("GGUF: what a head may ask for is bounded, however long the file is") {
    constexpr std::uint64_t huge = std::uint64_t{1} << 60;
    const auto tensors = [](std::uint64_t count) {
        GgufBuilder file = plain();
        file.extra_tensors = count;
        return file.head();
    };
    Holed(tensors(131072), huge).check_accepted();
    Holed(tensors(131073), huge).check_refused("131073 tensors 131072");
    Holed(tensors(huge / 32), huge).check_refused("tensors 131072");
    GgufBuilder keys = plain();
    keys.extra_values = 16384;
    Holed(keys.head(), huge).check_refused("keys 16384");
    for (const std::uint32_t element : {8u, 9u}) {
        CAPTURE(element);
        Holed(with_list(element, 4194304).head(), huge).check_accepted();
        Holed(with_list(element, 4194305).head(), huge).check_refused("list 4194305 4194304");
        Holed(with_list(element, huge / 32).head(), huge).check_refused("list 4194304");
    }
    // The limit applies to all lists together, including nested lists.
    const std::string inner = GgufBuilder::little(8, 4) + GgufBuilder::little(4000000, 8) +
                              std::string(32000000, '\0');
    Holed(plain()
              .value_of("list", 9,
                        GgufBuilder::little(9, 4) + GgufBuilder::little(2, 8) + inner + inner)
              .head(),
          huge)
        .check_refused("list 4000000");
    // Lists of numbers are skipped in one step, but the head must still end within its limit.
    Holed(with_list(0, 250000000).head(), huge).check_accepted();
    Holed(with_list(12, huge / 32).head(), huge).check_refused("metadata 268435456");
    const std::string text = GgufBuilder::little(huge / 2, 8);
    Holed(plain().value_of("text", 8, text).head(), huge).check_refused("text 576460752303423488");
}

TEST_CASE("GGUF: at most 100 warnings, and the number of others") {
    GgufBuilder file = plain();
    for (int i = 0; i < 1000; ++i) file.u32("attention.qk_norm" + std::to_string(i), 1);
    const std::string bytes = file.file();
    const Result<RopeParams> result = from_gguf(bytes.data(), bytes.size());
    REQUIRE(result);
    REQUIRE(result->warnings.size() == 101);
    CHECK(names(result->warnings.back(), "900"));
}

TEST_CASE("GGUF: a file that is asked for several RoPEs is parsed once") {
    GgufBuilder file = plain();
    file.text_list_of("tokenizer.ggml.tokens", std::vector<std::string>(10000, "token"));
    file.tensor("rope_freqs.weight", std::vector<float>(64, 2));
    const std::string bytes = file.file();
    std::uint64_t read = 0;
    const GgufModel model(bytes.size(), [&](std::uint64_t offset, void* to, std::size_t count) {
        std::memcpy(to, bytes.data() + offset, count);
        read += count;
        return count;
    });
    CHECK(read > 100000);
    read = 0;
    for (const std::uint64_t length : {0, 1, 8192}) CHECK(model.rotation({.seq_len = length}));
    CHECK(read == 3 * 64 * sizeof(float));
}

TEST_CASE(
    "GGUF: every beginning of a file is an error, or if only weights are missing, equals the "
    "whole") {
    GgufBuilder file = plain();
    file.text_list_of("tokenizer.ggml.tokens", {"a", "", "ccc"})
        .boolean_list("flags", {true, false});
    file.value_of("nested", 9,
                  GgufBuilder::little(9, 4) + GgufBuilder::little(1, 8) +
                      GgufBuilder::little(1, 4) + GgufBuilder::little(2, 8) + "ab");
    file.tensor("rope_freqs.weight", std::vector<float>(64, 2))
        .tensor("output.weight", std::vector<float>(64));
    const std::string bytes = file.file();
    const std::size_t needed = (file.head().size() + 31) / 32 * 32 + 64 * 4;
    REQUIRE(bytes.size() > needed);
    for (std::size_t length = 0; length <= bytes.size(); ++length) {
        CAPTURE(length);
        const std::string beginning = bytes.substr(
            0, length);  // a separate allocation: a sanitizer detects reads beyond it
        const Result<RopeParams> result = from_gguf(beginning.data(), beginning.size());
        CHECK(bool(result) == (length >= needed));
        CHECK(result.status.code ==
              (length >= needed ? VKROPE_SUCCESS : VKROPE_ERROR_INVALID_DATA));
    }
}

TEST_CASE("GGUF: every byte of a file, changed, is an error or a rotation that keeps its rules") {
    GgufBuilder file = plain("qwen3vl");
    file.i32_list("rope.dimension_sections", {24, 20, 20, 0})
        .text("rope.scaling.type", "yarn")
        .f32("rope.scaling.factor", 4);
    file.tensor("rope_freqs.weight", std::vector<float>(64, 2));
    const std::string bytes = file.file();
    REQUIRE(from_gguf(bytes.data(), bytes.size()));
    std::size_t accepted = 0;
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        for (const int flip : {0x01, 0x80, 0xff}) {
            std::string changed = bytes;
            changed[at] = char(changed[at] ^ flip);
            const Result<RopeParams> result = from_gguf(changed.data(), changed.size());
            CAPTURE(at);
            if (result) {
                ++accepted;
                CHECK(result->rotary_dim <= result->head_dim);
                CHECK(result->inv_freq.size() == result->rotary_dim / 2);
            } else {
                CHECK(result.status.what[0] != '\0');
            }
        }
    }
    CHECK(accepted > 100);  // changes in names of other keys, and in digits of factors
}
