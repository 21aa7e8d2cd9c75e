// SPDX-License-Identifier: MIT
// Checks ids by time against PyTorch's float32 product, ids of ragged batches, and ids of
// dual-chunk attention against the position lists of vLLM's DualChunkRotaryEmbedding.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope;
using vkrope::test::check_error;
using vkrope::test::check_invalid;

namespace {

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("ids by time: whole seconds, and products that float32 rounds up to a whole number") {
    Ids ids(6);
    REQUIRE(status_of(vkrope_timed_ids, 1, 25, ids.data(), ids.size()));
    CHECK(ids == Ids{0, 25, 50, 75, 100, 125});
    REQUIRE(status_of(vkrope_timed_ids, 0.5f, 25, ids.data(), ids.size()));
    CHECK(ids == Ids{0, 12, 25, 37, 50, 62});
    // (torch.arange(4) * torch.tensor(0.04) * 25).long(): float32(0.04) is below 0.04, and its
    // product with 25 is below 1, but both round to the next whole number.
    ids.resize(4);
    REQUIRE(status_of(vkrope_timed_ids, 0.04f, 25, ids.data(), ids.size()));
    CHECK(ids == Ids{0, 1, 2, 3});
    REQUIRE(status_of(vkrope_timed_ids, 0, 25, ids.data(), ids.size()));
    CHECK(ids == Ids{0, 0, 0, 0});
    CHECK(status_of(vkrope_timed_ids, 1, 25, nullptr, 0));
    check_invalid(status_of(vkrope_timed_ids, 1, 25, nullptr, 1), "ids null");
    check_invalid(status_of(vkrope_timed_ids, -1, 25, ids.data(), 1), "seconds -1");
    check_invalid(status_of(vkrope_timed_ids, 1, 0, ids.data(), 1), "ids_per_second 0");
    ids.assign(4, 7);
    check_error(status_of(vkrope_timed_ids, 1e9f, 1, ids.data(), 4), VKROPE_ERROR_LIMIT_EXCEEDED,
                "ids[3] 3000000000 int32");
    CHECK(ids == Ids(4, 7));
}

TEST_CASE("ids of a ragged batch start again in each sequence") {
    const std::vector<std::int64_t> cu_seqlens = {0, 3, 3, 5}, offsets = {10, 1000, -1};
    Ids ids(5);
    REQUIRE(status_of(vkrope_ragged_ids, cu_seqlens.data(), 3, nullptr, ids.data(), 5));
    CHECK(ids == Ids{0, 1, 2, 0, 1});
    REQUIRE(status_of(vkrope_ragged_ids, cu_seqlens.data(), 3, offsets.data(), ids.data(), 5));
    CHECK(ids == Ids{10, 11, 12, -1, 0});
    CHECK(status_of(vkrope_ragged_ids, cu_seqlens.data(), 0, nullptr, nullptr, 0));
    ids.assign(5, 7);
    const auto refused = [&](std::vector<std::int64_t> lengths, std::vector<std::int64_t> firsts,
                             ErrorCode code, const char* text) {
        check_error(status_of(vkrope_ragged_ids, lengths.data(), lengths.size() - 1,
                              firsts.empty() ? nullptr : firsts.data(), ids.data(), 5),
                    code, text);
    };
    refused({1, 5}, {}, VKROPE_ERROR_INVALID_ARGUMENT, "cu_seqlens[0] 1");
    refused({0, 4, 3, 5}, {}, VKROPE_ERROR_INVALID_ARGUMENT, "cu_seqlens[2] 3 4");
    refused({0, 4}, {}, VKROPE_ERROR_INVALID_ARGUMENT, "tokens 5 cu_seqlens 4");
    refused({0, 3, 5}, {0, 2147483647}, VKROPE_ERROR_LIMIT_EXCEEDED,
            "cu_seqlens[1].last 2147483648");
    refused({0, 3, 5}, {std::int64_t{-1} << 40, 0}, VKROPE_ERROR_LIMIT_EXCEEDED,
            "offsets[0].first -1099511627776");
    check_invalid(status_of(vkrope_ragged_ids, nullptr, 1, nullptr, ids.data(), 5),
                  "cu_seqlens null");
    check_invalid(status_of(vkrope_ragged_ids, cu_seqlens.data(), 3, nullptr, nullptr, 5),
                  "ids null");
    CHECK(ids == Ids(5, 7));
}

TEST_CASE("ids of dual-chunk attention are those of vLLM's caches") {
    const DualChunk chunk = {.chunk_size = 8, .local_size = 2};
    const std::int32_t n = 6, size = 8;
    Ids positions(40), ids(40);
    for (std::int32_t p = 0; p < 40; ++p) positions[std::size_t(p)] = p;
    // Row i of each list is the position of that cache, as vLLM computes it.
    Ids qc_t, qc_no_clamp_t, q_inter_t;
    for (std::int32_t i = 0; i < n; ++i) {
        qc_t.push_back(std::min(i + n, size));
        qc_no_clamp_t.push_back(i + n);
        q_inter_t.push_back(i + size);
    }
    for (std::uint32_t role = 0; role < 6; ++role) {
        REQUIRE(status_of(vkrope_dual_chunk_ids, &chunk, DualChunkRole(role), positions.data(),
                          ids.data(), 40));
        for (std::size_t p = 0; p < 40; ++p) {
            CAPTURE(role);
            CAPTURE(p);
            const std::size_t row = p % 6;
            const std::int32_t wanted[] = {std::int32_t(row), std::int32_t(row),  qc_t[row],
                                           qc_t[5],           qc_no_clamp_t[row], q_inter_t[row]};
            CHECK(ids[p] == wanted[role]);
        }
    }
    REQUIRE(status_of(vkrope_dual_chunk_ids, &chunk, VKROPE_DUAL_CHUNK_KEY, positions.data(),
                      positions.data(), 40));
    CHECK(positions[39] == 3);
    const auto refused = [&](DualChunk bad, DualChunkRole role, const char* text) {
        check_invalid(status_of(vkrope_dual_chunk_ids, &bad, role, positions.data(), ids.data(), 1),
                      text);
    };
    refused({0, 0}, VKROPE_DUAL_CHUNK_KEY, "chunk.chunk_size 0");
    refused({1u << 31, 0}, VKROPE_DUAL_CHUNK_KEY, "chunk.chunk_size 2147483648");
    refused({8, 8}, VKROPE_DUAL_CHUNK_KEY, "chunk.local_size 8 chunk_size 8");
    refused({8, 2}, DualChunkRole(6), "role 6");
    positions[0] = -1;
    refused({8, 2}, VKROPE_DUAL_CHUNK_KEY, "positions[0] -1");
    check_invalid(
        status_of(vkrope_dual_chunk_ids, &chunk, VKROPE_DUAL_CHUNK_KEY, nullptr, ids.data(), 1),
        "positions null");
    CHECK(status_of(vkrope_dual_chunk_ids, &chunk, VKROPE_DUAL_CHUNK_KEY, nullptr, nullptr, 0));
}
