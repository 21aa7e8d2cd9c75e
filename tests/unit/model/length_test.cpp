// SPDX-License-Identifier: MIT
// Scalings that depend on the length: the lengths for which frequencies are valid, and when new
// ones are needed.
#include <doctest/doctest.h>

#include <string>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

namespace {

const std::string start =
    R"({"model_type": "llama", "head_dim": 8, "max_position_embeddings": 4096, )";
const std::string dynamic =
    start + R"("rope_theta": 10000, "rope_scaling": {"rope_type": "dynamic", "factor": 2}})";
const std::string longrope = start +
                             R"("original_max_position_embeddings": 1024, "rope_theta": 10000,
       "rope_scaling": {"rope_type": "longrope",)"
                             R"( "short_factor": [1, 1, 1, 1], "long_factor": [1, 2, 3, 4]}})";

RopeParams read(const std::string& config, std::uint64_t seq_len) {
    const Result<RopeParams> rotation = from_hf_config(config, {.seq_len = seq_len});
    REQUIRE_MESSAGE(rotation, rotation.status.what);
    return rotation.value;
}

}  // namespace

TEST_CASE(
    "dynamic NTK: the trained length is served at once, every longer one by its own frequencies") {
    CHECK(read(dynamic, 0).longest_seq_len == 4096);
    CHECK(read(dynamic, 100).longest_seq_len == 4096);
    CHECK(read(dynamic, 4096).longest_seq_len == 4096);
    CHECK(read(dynamic, 4097).longest_seq_len == 4097);
    CHECK(read(dynamic, 100).inv_freq == read(dynamic, 4096).inv_freq);
    CHECK(read(dynamic, 4097).inv_freq != read(dynamic, 4096).inv_freq);
    CHECK(read(dynamic, 9000).inv_freq != read(dynamic, 4097).inv_freq);
}

TEST_CASE("LongRoPE: the short list serves the original length, the long one every other") {
    CHECK(read(longrope, 0).longest_seq_len == 1024);
    CHECK(read(longrope, 1024).longest_seq_len == 1024);
    CHECK(read(longrope, 1025).longest_seq_len == 0);
    CHECK(read(longrope, 1).inv_freq == read(longrope, 1024).inv_freq);
    CHECK(read(longrope, 1025).inv_freq != read(longrope, 1024).inv_freq);
    CHECK(read(longrope, 4000).inv_freq == read(longrope, 1025).inv_freq);
}

TEST_CASE("the first Qwen: new frequencies with every doubling of the trained length") {
    const std::string qwen =
        R"({"model_type": "qwen", "hidden_size": 64, "num_attention_heads": 2, "kv_channels": 32,
           "seq_length": 2048,)"
        R"( "max_position_embeddings": 32768, "rotary_emb_base": 10000, "use_dynamic_ntk": true})";
    for (const auto& [seq_len, longest] :
         {std::pair{0u, 2048u}, {2048u, 2048u}, {2049u, 4096u}, {4096u, 4096u}, {5000u, 8192u}}) {
        CAPTURE(seq_len);
        const RopeParams rotation = read(qwen, seq_len);
        CHECK(rotation.longest_seq_len == longest);
        CHECK(rotation.inv_freq == read(qwen, longest).inv_freq);
        CHECK(rotation.inv_freq != read(qwen, longest + 1).inv_freq);
    }
}

TEST_CASE("nothing behind a byte of value 0 is lost, and a base that no layer has is named") {
    std::string text = start + R"("rope_theta": 10000})";
    text += '\0';
    text += "garbage";
    check_error(from_hf_config(text).status, VKROPE_ERROR_INVALID_DATA, "byte 0");
    const RopeParams local = read(start + R"("rope_theta": 1e6, "rope_local_base_freq": 10000})",
                                  0);
    REQUIRE(local.warnings.size() == 1);
    CHECK(warns(local, "base layer_types"));
}

TEST_CASE("other models serve any length") {
    CHECK(read(start + R"("rope_theta": 10000})", 0).longest_seq_len == 0);
    CHECK(read(start +
                   R"("rope_theta": 10000, "rope_scaling": {"rope_type": "linear", "factor": 2}})",
               9000)
              .longest_seq_len == 0);
}

}  // namespace vkrope::test
