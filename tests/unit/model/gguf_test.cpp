// SPDX-License-Identifier: MIT
// A valid GGUF file gives the RopeParams that the functions of vkrope.h make of the same
// numbers.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

TEST_CASE("GGUF: a plain file") {
    for (const std::uint32_t version : {2u, 3u}) {
        GgufBuilder file = plain();
        file.version = version;
        const RopeParams rotation = rotation_of(file);
        CHECK(rotation.pairing == VKROPE_INTERLEAVED);
        CHECK(rotation.head_dim == 128);
        CHECK(rotation.rotary_dim == 128);
        CHECK(rotation.q_rotary_offset == 0);
        CHECK(rotation.k_rotary_offset == 0);
        CHECK(rotation.max_position == 8192);
        CHECK(rotation.rope_type == "default");
        CHECK(rotation.attention_factor == 1);
        CHECK(rotation.softmax_scale == 1);
        CHECK(!rotation.no_rope);
        CHECK(rotation.sections.axes == 0);
        CHECK(rotation.warnings.empty());
        CHECK(rotation.inv_freq == frequencies(500000, 128));
    }
}

TEST_CASE("GGUF: what is missing is assumed, and said") {
    GgufBuilder file("phi2");
    file.u32("embedding_length", 2560).u32("attention.head_count", 32);
    RopeParams rotation = rotation_of(file);
    CHECK(rotation.head_dim == 80);
    CHECK(rotation.rotary_dim == 80);
    CHECK(rotation.pairing == VKROPE_HALF_SPLIT);
    CHECK(warns(rotation, "phi2.rope.freq_base 10000"));
    CHECK(warns(rotation, "phi2.rope.dimension_count 80"));
    CHECK(rotation.warnings.size() == 2);
    CHECK(rotation.inv_freq == frequencies(10000, 80));

    file.u32("rope.dimension_count", 32).f32("rope.freq_base", 10000).f32("rope.invented", 1);
    rotation = rotation_of(file);
    CHECK(rotation.rotary_dim == 32);
    CHECK(rotation.warnings.size() == 1);
    CHECK(warns(rotation, "phi2.rope.invented"));
}

TEST_CASE("GGUF: each architecture has its pairing, which a query may overrule") {
    struct Row {
        const char* name;
        Pairing pairing;
    };
    // readers_agree_test.cpp has those of other architectures.
    const Row rows[] = {{"deepseek", VKROPE_INTERLEAVED}, {"nomic-bert", VKROPE_HALF_SPLIT}};
    for (const Row& row : rows) {
        CAPTURE(row.name);
        CHECK(rotation_of(plain(row.name)).pairing == row.pairing);
    }
    CHECK(rotation_of(plain(), {.pairing = VKROPE_HALF_SPLIT}).pairing == VKROPE_HALF_SPLIT);
    CHECK(rotation_of(plain("qwen2"), {.pairing = VKROPE_INTERLEAVED}).pairing ==
          VKROPE_INTERLEAVED);

    const RopeParams unknown = rotation_of(plain("nautilus"), {.pairing = VKROPE_HALF_SPLIT});
    CHECK(unknown.pairing == VKROPE_HALF_SPLIT);
    CHECK(warns(unknown, "general.architecture nautilus"));
}

TEST_CASE("GGUF: a whole file that was a part") {
    const auto split = [](GgufBuilder file, const char* key) {
        return file.value_of(key, 2, GgufBuilder::little(0, 2));
    };
    CHECK(warns(rotation_of(split(plain(), "split.no")), "split.count split.no 0"));
    CHECK(
        rotation_of(split(split(plain(), "split.no"), "split.count")).warnings.empty());  // merged
}

TEST_CASE("GGUF: what is large and does not matter is passed over") {
    GgufBuilder file;
    file.text_list_of("tokenizer.ggml.tokens", std::vector<std::string>(100000, "token"));
    file.text_of("tokenizer.chat_template", std::string(100000, 'x'));
    file.value_of(
        "tokenizer.ggml.scores", 9,
        GgufBuilder::little(6, 4) + GgufBuilder::little(100000, 8) + std::string(400000, '\1'));
    // A list of lists: of two numbers, and of no string.
    file.value_of("nested", 9,
                  GgufBuilder::little(9, 4) + GgufBuilder::little(2, 8) +
                      GgufBuilder::little(0, 4) + GgufBuilder::little(2, 8) + "ab" +
                      GgufBuilder::little(8, 4) + GgufBuilder::little(0, 8));
    // The architecture may come last.
    file.value_of("llama.attention.key_length", 4, GgufBuilder::little(64, 4));
    file.text_of("general.architecture", "llama");
    CHECK(rotation_of(file).head_dim == 64);
}

TEST_CASE("GGUF: numbers of every type") {
    struct Number {
        std::uint32_t type;
        std::string bytes;
    };
    const Number numbers[] = {{0, GgufBuilder::little(64, 1)},
                              {1, GgufBuilder::little(64, 1)},
                              {2, GgufBuilder::little(64, 2)},
                              {3, GgufBuilder::little(64, 2)},
                              {4, GgufBuilder::little(64, 4)},
                              {5, GgufBuilder::little(64, 4)},
                              {6, GgufBuilder::little(std::bit_cast<std::uint32_t>(64.0f), 4)},
                              {10, GgufBuilder::little(64, 8)},
                              {11, GgufBuilder::little(64, 8)},
                              {12, GgufBuilder::little(std::bit_cast<std::uint64_t>(64.0), 8)}};
    for (const Number& number : numbers) {
        CAPTURE(number.type);
        GgufBuilder file("llama");
        CHECK(rotation_of(file.value_of("llama.attention.key_length", number.type, number.bytes))
                  .head_dim == 64);
    }
}

TEST_CASE("GGUF: from a file, through a function, and no weights") {
    GgufBuilder file = plain();
    file.tensor("token_embd.weight", std::vector<float>(1 << 16))
        .tensor("rope_freqs.weight", std::vector<float>(64, 2.0f));
    const std::string bytes = file.file();
    const RopeParams expected = rotation_of(file);

    const std::string path = std::string(VKROPE_TEST_SCRATCH) + "/plain.gguf";
    std::ofstream(path, std::ios::binary) << bytes;
    const Result<RopeParams> from_file = from_gguf_file(path);
    REQUIRE_MESSAGE(from_file, from_file.status.what);
    CHECK(from_file.value.inv_freq == expected.inv_freq);
    CHECK(from_gguf_file(path + ".missing").status.code == VKROPE_ERROR_INVALID_DATA);
    CHECK(from_gguf_file(VKROPE_TEST_SCRATCH).status.code == VKROPE_ERROR_INVALID_DATA);

    std::size_t read_bytes = 0;
    const auto read_at = [&](std::uint64_t offset, void* to, std::size_t count) {
        REQUIRE(offset + count <= bytes.size());
        std::memcpy(to, bytes.data() + offset, count);
        read_bytes += count;
        return count;
    };
    const Result<RopeParams> through = from_gguf(bytes.size(), read_at);
    REQUIRE_MESSAGE(through, through.status.what);
    CHECK(through.value.inv_freq == expected.inv_freq);
    CHECK(read_bytes < 40000);  // of 262 144 bytes of weights

    CHECK(from_gguf(nullptr, 100).status.code == VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(from_gguf(std::uint64_t{1} << 63, read_at).status.code == VKROPE_ERROR_INVALID_ARGUMENT);
    const auto fails = [](std::uint64_t, void*, std::size_t) { return std::size_t{0}; };
    CHECK(from_gguf(bytes.size(), fails).status.code == VKROPE_ERROR_INVALID_DATA);
    const auto throws = [](std::uint64_t, void*, std::size_t) -> std::size_t {
        throw std::runtime_error("torn tape");
    };
    CHECK(names(from_gguf(bytes.size(), throws).status.what, "torn tape"));
}
