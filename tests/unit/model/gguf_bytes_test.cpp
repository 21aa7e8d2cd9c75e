// SPDX-License-Identifier: MIT
// Reads GGUF files in which bytes matter, not the values of keys: kinds and versions of files,
// types of values, tensors of divisors, and files in parts.
#include <doctest/doctest.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "gguf_reading.hpp"

using namespace vkrope;
using namespace vkrope::test;

TEST_CASE("GGUF: files of another kind are named") {
    check_refused(std::string(), VKROPE_ERROR_INVALID_DATA, "47 47 55 46");
    check_refused(std::string("PK\3\4zip"), VKROPE_ERROR_INVALID_DATA, "PK?? 50 4b 03 04");
    check_refused(std::string("ve"), VKROPE_ERROR_INVALID_DATA, "ve 76 65");
    check_refused(std::string("{\"model_type\": \"llama\"}"), VKROPE_ERROR_INVALID_DATA, "GGUF");
    GgufBuilder file = plain();
    file.version = 1;
    check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "version 1");
    file.version = 4;
    check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "version 4");
    file.version = 0;
    check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "version 0");
    for (const std::uint32_t version : {2u, 3u}) {
        file.version = version << 24;
        check_refused(file, VKROPE_ERROR_NOT_SUPPORTED, "big-endian");
    }
    check_refused(plain().value_of("split.count", 2, GgufBuilder::little(3, 2)),
                  VKROPE_ERROR_NOT_SUPPORTED, "split.count 3");
    check_refused(plain().text_of("split.count", "3"), VKROPE_ERROR_INVALID_DATA, "split.count 3");
    const auto part = [](int bytes) {
        return plain().value_of("split.no", 2, GgufBuilder::little(std::uint64_t(bytes), 2));
    };
    check_refused(part(2), VKROPE_ERROR_NOT_SUPPORTED, "split.no 2 split.count");
    check_refused(part(2).value_of("split.count", 2, GgufBuilder::little(0, 2)),
                  VKROPE_ERROR_NOT_SUPPORTED, "split.count 0");
    const GgufBuilder whole = plain().value_of("split.count", 2, GgufBuilder::little(1, 2));
    CHECK(from_gguf(whole.file().data(), whole.file().size()));
}

TEST_CASE("GGUF: values that no case of tests/data can have") {
    const float infinite = std::numeric_limits<float>::infinity();
    GgufBuilder none;
    check_refused(none.value_of("llama.attention.key_length", 4, GgufBuilder::little(64, 4)),
                  VKROPE_ERROR_INVALID_DATA, "general.architecture");
    GgufBuilder base("llama");
    check_refused(base.u32("attention.key_length", 128).f32("rope.freq_base", infinite),
                  VKROPE_ERROR_INVALID_DATA, "llama.rope.freq_base inf");
    check_refused(plain().boolean("context_length2", 2), VKROPE_ERROR_INVALID_DATA,
                  "llama.context_length2 2");
    GgufBuilder older = plain();
    older.version = 2;
    CHECK(rotation_of(older).inv_freq == frequencies(500000, 128));
}

TEST_CASE("GGUF: tensors of divisors that are not what they should be") {
    const auto bad = [](const GgufBuilder& file, const std::string& words) {
        check_refused(file, VKROPE_ERROR_INVALID_DATA, words);
    };
    bad(plain().tensor("rope_freqs.weight", std::vector<float>(64, 1), 1), "rope_freqs.weight 1");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, 4), "general.alignment");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, 32), "rope_freqs.weight");
    bad(plain().tensor_of("rope_freqs.weight", {64}, 0, ~std::uint64_t{31}), "rope_freqs.weight");
    bad(plain().tensor_of("any", {1, 1, 1, 1, 1}, 0, 0), "any 5");
    bad(plain()
            .tensor("rope_freqs.weight", std::vector<float>(64, 1))
            .tensor("rope_freqs.weight", std::vector<float>(64, 1)),
        "rope_freqs.weight");
    bad(plain().value_of("general.alignment", 4, GgufBuilder::little(0, 4)),
        "general.alignment 0 uint32");
    bad(plain().value_of("general.alignment", 4, GgufBuilder::little(48, 4)),
        "general.alignment 48 uint32");
    bad(plain().text_of("general.alignment", "32"), "general.alignment");
}

TEST_CASE("GGUF: a key that is given twice") {
    check_refused(plain().u32("block_count", 12), VKROPE_ERROR_INVALID_DATA, "llama.block_count");
    check_refused(plain().text_of("general.architecture", "llama"), VKROPE_ERROR_INVALID_DATA,
                  "general.architecture");
    GgufBuilder norm = plain("qwen3").f32("attention.layer_norm_rms_epsilon", 1e-5f);
    for (int i = 0; i < 2; ++i) norm.tensor_of("blk.0.attn_q_norm.weight", {128}, 0, 0);
    check_refused(norm, VKROPE_ERROR_INVALID_DATA, "blk.0.attn_q_norm.weight");
}

TEST_CASE("GGUF: a whole file that was merged from parts") {
    const auto split = [](GgufBuilder file, const char* key) {
        return file.value_of(key, 2, GgufBuilder::little(0, 2));
    };
    CHECK(warns(rotation_of(split(plain(), "split.no")), "split.count split.no 0"));
    CHECK(
        rotation_of(split(split(plain(), "split.no"), "split.count")).warnings.empty());  // merged
}

TEST_CASE("GGUF: large values that do not matter are skipped") {
    GgufBuilder file;
    file.text_list_of("tokenizer.ggml.tokens", std::vector<std::string>(100000, "token"));
    file.text_of("tokenizer.chat_template", std::string(100000, 'x'));
    file.value_of(
        "tokenizer.ggml.scores", 9,
        GgufBuilder::little(6, 4) + GgufBuilder::little(100000, 8) + std::string(400000, '\1'));
    // This list has two lists: one of two numbers, and an empty list of strings.
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
    check_error(from_gguf_file(path + ".missing").status, VKROPE_ERROR_INVALID_DATA,
                path + ".missing");
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

namespace {

GgufBuilder part(int number, int count, bool metadata) {
    const auto two = [](int value) { return GgufBuilder::little(std::uint64_t(value), 2); };
    GgufBuilder file = metadata ? plain() : GgufBuilder();
    return file.value_of("split.no", 2, two(number)).value_of("split.count", 2, two(count));
}

// Writes the parts of a split file to a new folder and returns the name of the first part.
std::string written(const std::string& folder, const std::vector<GgufBuilder>& parts) {
    const std::filesystem::path path = std::filesystem::path(VKROPE_TEST_SCRATCH) / folder;
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::string name = "m-0000" + std::to_string(i + 1) + "-of-0000" +
                                 std::to_string(parts.size()) + ".gguf";
        const std::string bytes = parts[i].file();
        std::ofstream(path / name, std::ios::binary) << bytes;
    }
    return (path / ("m-00001-of-0000" + std::to_string(parts.size()) + ".gguf")).string();
}

}  // namespace

TEST_CASE("GGUF: a split file is read from its first part and the parts in the same folder") {
    const std::vector<float> divisors(64, 2);
    GgufBuilder third = part(2, 3, false);
    third.tensor("rope_freqs.weight", divisors);
    third.tensor_of("blk.0.attn_q_norm.weight", {128}, 0, 512);
    const std::string first = written(
        "split", {part(0, 3, true).f32("attention.layer_norm_rms_epsilon", 1e-5f),
                  part(1, 3, false), third});
    const Result<RopeParams> whole = from_gguf_file(first);
    REQUIRE_MESSAGE(whole, whole.status.what);
    CHECK(whole.value.rope_type == "rope_freqs");
    CHECK(whole.value.inv_freq[0] == 0.5);
    CHECK(whole.value.ops.tensor[Q].norm.kind == VKROPE_NORM_RMS);
    CHECK(!warns(whole.value, "split.count"));
    // Another part has no metadata; the first part alone has no tensors.
    std::string second = first;
    second.replace(second.find("00001"), 5, "00002");
    const Result<RopeParams> other = from_gguf_file(second);
    CHECK(!other);
    const std::string alone = part(0, 3, true).file();
    check_error(from_gguf(alone.data(), alone.size()).status, VKROPE_ERROR_NOT_SUPPORTED,
                "split.count 3");
    // If the first part has tensors, that part is read, and the missing parts are named.
    GgufBuilder full = part(0, 3, true);
    full.tensor("rope_freqs.weight", divisors);
    const RopeParams warned = rotation_of(full);
    CHECK(warned.inv_freq[0] == 0.5);
    CHECK(warns(warned, "split.count 3 1"));
    check_error(read(part(1, 3, true)).status, VKROPE_ERROR_NOT_SUPPORTED,
                "split.no 1 split.count 3 first");
}

TEST_CASE("GGUF: parts of different models are refused") {
    GgufBuilder twice = part(1, 2, false);
    twice.tensor("rope_freqs.weight", std::vector<float>(64, 1));
    GgufBuilder first = part(0, 2, true);
    first.tensor("rope_freqs.weight", std::vector<float>(64, 1));
    check_error(from_gguf_file(written("split_twice", {first, twice})).status,
                VKROPE_ERROR_INVALID_DATA, "rope_freqs.weight twice");
    check_error(from_gguf_file(written("split_number", {first, part(0, 2, false)})).status,
                VKROPE_ERROR_INVALID_DATA, "split.no 0 split.count 2");
    check_error(from_gguf_file(written("split_count", {first, part(1, 3, false)})).status,
                VKROPE_ERROR_INVALID_DATA, "split.no 1 split.count 3");
}
