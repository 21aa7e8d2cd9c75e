// SPDX-License-Identifier: MIT
// Checks LTX-Video and LTX-2, channel by channel, against the tables of their classes in diffusers:
// frequencies of all axes in turn, padded at the beginning of a row of all heads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/meaning.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

RopeParams imported(const std::string& json, const ModelQuery& query = {}) {
    const Result<RopeParams> result = from_hf_config(json, query);
    REQUIRE_MESSAGE(result, result.status.what, " in ", json);
    return result.value;
}

constexpr long double pi = 3.141592653589793238462643383279502884L;

// Returns the angles of a row of `channels` / 2 pairs for a token with coordinates in [0, 1].
std::vector<long double> row_of(std::size_t channels, const std::vector<long double>& grid) {
    const std::size_t steps = channels / (2 * grid.size());
    std::vector<long double> freqs;
    for (std::size_t f = 0; f < steps; ++f)
        for (const long double x : grid)
            freqs.push_back(std::pow(1e4L, f / (long double)(steps - 1)) * pi / 2 * (x * 2 - 1));
    std::vector<long double> row(channels / 2 - freqs.size(), 0);
    row.insert(row.end(), freqs.begin(), freqs.end());
    return row;
}

// Returns the angle of a pair of a head for a token with these ids, as RopeParams defines it.
long double angle_of(const RopeParams& rotation, std::size_t head, std::size_t pair,
                     const std::vector<std::int32_t>& ids) {
    const std::size_t pairs = rotation.rotary_dim / 2;
    const bool sum = rotation.sections.axes != 0 && rotation.sections.order == VKROPE_SECTIONS_SUM;
    const std::size_t rows = sum ? rotation.sections.axes : 1;
    long double angle = rotation.phase[head * pairs + pair];
    for (std::size_t a = 0; a < rows; ++a) {
        const std::size_t axis = sum ? a : axis_of(rotation.sections, std::uint32_t(pair));
        angle += ids[axis] * (long double)rotation.inv_freq[(head * rows + a) * pairs + pair];
    }
    return angle;
}

void check_row(const RopeParams& rotation, const std::vector<std::int32_t>& ids,
               const std::vector<long double>& row) {
    const std::size_t pairs = rotation.rotary_dim / 2;
    REQUIRE(rotation.phase.size() == rotation.head_groups * pairs);
    REQUIRE(row.size() == rotation.head_groups * pairs);
    for (std::size_t at = 0; at < row.size(); ++at) {
        CAPTURE(at);
        const long double difference = angle_of(rotation, at / pairs, at % pairs, ids) - row[at];
        // Phases are numbers of up to 15708 radians in double, less whole turns.
        CHECK(std::fabs(std::remainder(difference, 2 * pi)) < 1e-10L);
    }
}

std::string ltx2(const std::string& fields) {
    return R"({"_class_name": "LTX2VideoTransformer3DModel", "num_attention_heads": 32,
        "attention_head_dim": 128, "audio_num_attention_heads": 32,
        "audio_attention_head_dim": 64, "audio_cross_attention_dim": 2048,
        "pos_embed_max_pos": 20, "audio_pos_embed_max_pos": 20, "base_height": 2048,
        "base_width": 2048, "vae_scale_factors": [8, 32, 32], "patch_size": 1,
        "audio_sampling_rate": 16000, "audio_hop_length": 160, "rope_theta": 10000.0, )" +
           fields + "}";
}

// The coordinates of diffusers' prepare_video_coords and prepare_audio_coords, and the ids that
// the importer names.
struct Frame {
    long double start, end;
    std::int32_t id() const { return std::int32_t(start + end); }
};
Frame frame_of(int index, int factor) {
    const auto at = [&](int i) { return std::max(0, i * factor + 1 - factor); };
    return {(long double)at(index), (long double)at(index + 1)};
}

}  // namespace

TEST_CASE("LTX-Video: phases, axes in turn, and two channels that do not turn") {
    const RopeParams rotation = imported(
        R"({"_class_name": "LTXVideoTransformer3DModel", "num_attention_heads": 32,
            "attention_head_dim": 64, "patch_size": 1, "patch_size_t": 1})");
    CHECK(rotation.pairing == VKROPE_INTERLEAVED);
    CHECK(rotation.head_dim == 2048);
    CHECK(rotation.head_groups == 1);
    CHECK(rotation.inv_freq[0] == 0);
    CHECK(rotation.phase[0] == 0);
    CHECK(warns(rotation, "column frame row"));
    CHECK(warns(rotation, "heads Q K"));
    CHECK(!warns(rotation, "missing"));
    for (const int frame : {0, 1, 7}) {
        for (const int line : {0, 15}) {
            const int column = 23 - line;
            check_row(
                rotation, {column, frame, line},
                row_of(2048, {frame * 8 / 25.0L / 20, line * 32 / 2048.0L, column * 32 / 2048.0L}));
        }
    }
    CHECK(imported(R"({"_class_name": "LTXVideoTransformer3DModel"})").phase == rotation.phase);
}

TEST_CASE("LTX-2: middles of patches, in rows or in heads that have their own frequencies") {
    for (const char* type : {"interleaved", "split"}) {
        CAPTURE(std::string(type));
        const std::string json = ltx2(R"("rope_type": ")" + std::string(type) + "\"");
        const bool split = std::string(type) == "split";
        const RopeParams rotation = imported(json);
        CHECK(warns(rotation, "video_attention"));
        CHECK(rotation.pairing == (split ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED));
        CHECK(rotation.head_dim == (split ? 128 : 4096));
        CHECK(rotation.head_groups == (split ? 32 : 1));
        CHECK(warns(rotation, split ? "frame row column" : "row column frame"));
        for (const int index : {0, 1, 5}) {
            const Frame frame = frame_of(index, 8);
            const std::int32_t line = 2 * index + 3, column = 2 * 11 + 1;
            const long double middle = (frame.start + frame.end) / 2 / 24;
            const std::vector<long double> row = row_of(
                4096, {middle / 20, line * 16 / 2048.0L, column * 16 / 2048.0L});
            check_row(rotation,
                      split ? std::vector<std::int32_t>{frame.id(), line, column}
                            : std::vector<std::int32_t>{line, column, frame.id()},
                      row);
            const RopeParams cross = imported(json, {.layer_type = "video_cross_attention"});
            CHECK(cross.sections.axes == 0);
            check_row(cross, {frame.id()}, row_of(2048, {middle / 20}));
            const Frame heard = frame_of(index, 4);
            const long double time = (heard.start + heard.end) / 2 * 160 / 16000;
            for (const char* kind : {"audio_attention", "audio_cross_attention"}) {
                const RopeParams sound = imported(json, {.layer_type = kind});
                CHECK(sound.head_groups == (split ? 32 : 1));
                CHECK(sound.head_dim == (split ? 64 : 2048));
                check_row(sound, {heard.id()}, row_of(2048, {time / 20}));
            }
        }
    }
    CHECK(frame_of(3, 8).id() == 42);
    CHECK(frame_of(3, 4).id() == 22);
}
