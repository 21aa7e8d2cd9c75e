// SPDX-License-Identifier: MIT
// C: ids, grids and XPos are those of the C++ tier.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "c_rotation.hpp"
#include "vkrope/positions.hpp"

using namespace vkrope::test;

TEST_CASE("C: axes of a grid, their ids, and the rotation folded with them") {
    vkrope_grid_axis axes[2] = {};
    REQUIRE(vkrope_resized_axis(4, 1, 16, &axes[0], nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope_interval_axis(3, 2, 5, &axes[1], nullptr) == VKROPE_SUCCESS);
    const vkrope::GridAxis same[] = {vkrope::resized_axis(4, 1, 16).value,
                                     vkrope::interval_axis(3, 2, 5).value};
    for (int a = 0; a < 2; ++a) {
        CHECK(axes[a].count == same[a].count);
        CHECK(axes[a].first == same[a].first);
        CHECK(axes[a].step == same[a].step);
        CHECK(axes[a].unit == same[a].unit);
        CHECK(axes[a].origin == same[a].origin);
    }
    CHECK(vkrope_grid_tokens(axes, 2) == 12);
    CHECK(vkrope_grid_tokens(nullptr, 2) == 0);
    CHECK(vkrope_grid_tokens(axes, 9) == 0);
    std::vector<std::int32_t> ours(24), theirs(24);
    REQUIRE(vkrope_grid_ids(axes, 2, ours.data(), 12, nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope::grid_ids(same, 2, theirs.data(), 12));
    CHECK(ours == theirs);
    vkrope_error error;
    check_refused(vkrope_grid_ids(axes, 9, ours.data(), 12, &error), error, "count 9");
    check_refused(vkrope_frame_axis(5, 24, 0, &axes[0], &error), error, "fps 0");
    check_refused(vkrope_frame_axis(5, 24, 30, nullptr, &error), error, "axis null");

    const auto info = four_channels();
    vkrope_rotation* made = nullptr;
    REQUIRE(vkrope_rotation_create(&info, &made, &error) == VKROPE_SUCCESS);
    const OwnedRotation rotation(made);
    vkrope_grid_axis frames = {};
    REQUIRE(vkrope_frame_axis(5, 24, 12, &frames, nullptr) == VKROPE_SUCCESS);
    vkrope_rotation* result = nullptr;
    REQUIRE_MESSAGE(
        vkrope_rotation_fold_grid(rotation.get(), &frames, 1, &result, &error) == VKROPE_SUCCESS,
        error.what);
    const OwnedRotation folded(result);
    const vkrope_rotation_info before = info_of(rotation), after = info_of(folded);
    REQUIRE(after.inv_freq_count == before.inv_freq_count);
    for (std::size_t j = 0; j < before.inv_freq_count; ++j)
        CHECK(after.inv_freq[j] == 2 * before.inv_freq[j]);
    CHECK(vkrope_rotation_fold_grid(rotation.get(), axes, 2, &result, &error) ==
          VKROPE_ERROR_INVALID_ARGUMENT);
    CHECK(result == nullptr);
    check_refused(vkrope_rotation_fold_grid(nullptr, axes, 2, &result, &error), error,
                  "rotation null");
}

TEST_CASE("C: ids by time, of ragged batches and of dual-chunk attention") {
    std::vector<std::int32_t> ids(4);
    REQUIRE(vkrope_timed_ids(0.5f, 25, ids.data(), 4, nullptr) == VKROPE_SUCCESS);
    CHECK(ids == std::vector<std::int32_t>{0, 12, 25, 37});
    const std::int64_t cu_seqlens[] = {0, 1, 4};
    REQUIRE(vkrope_ragged_ids(cu_seqlens, 2, nullptr, ids.data(), 4, nullptr) == VKROPE_SUCCESS);
    CHECK(ids == std::vector<std::int32_t>{0, 0, 1, 2});
    vkrope_dual_chunk chunk = {};
    chunk.chunk_size = 8, chunk.local_size = 2;
    const std::int32_t positions[] = {0, 5, 6, 11};
    REQUIRE(vkrope_dual_chunk_ids(&chunk, VKROPE_DUAL_CHUNK_QUERY_SUCC, positions, ids.data(), 4,
                                  nullptr) == VKROPE_SUCCESS);
    CHECK(ids == std::vector<std::int32_t>{6, 8, 6, 8});
    vkrope_error error;
    check_refused(
        vkrope_dual_chunk_ids(&chunk, vkrope_dual_chunk_role(6), positions, ids.data(), 4, &error),
        error, "role 6 vkrope_dual_chunk_role");
}

TEST_CASE("C: XPos with the defaults of torchscale, and FoPE's stopped pairs") {
    const auto info = four_channels();
    vkrope_rotation* made = nullptr;
    REQUIRE(vkrope_rotation_create(&info, &made, nullptr) == VKROPE_SUCCESS);
    const OwnedRotation rotation(made);
    vkrope::Rotation same;
    same.head_dim = same.rotary_dim = 4;
    same.inv_freq.assign(info.inv_freq, info.inv_freq + info.inv_freq_count);
    std::vector<float> cos(10), sin(10), cos_of_cpp(10), sin_of_cpp(10);
    REQUIRE(vkrope_xpos_cos_sin(rotation.get(), nullptr, VK_TRUE, 7, 5, cos.data(), sin.data(),
                                nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope::xpos_cos_sin(same, {}, true, 7, 5, cos_of_cpp.data(), sin_of_cpp.data()));
    CHECK(cos == cos_of_cpp);
    CHECK(sin == sin_of_cpp);
    vkrope_xpos_scaling scaling = {};
    scaling.centre = 7;
    REQUIRE(vkrope_xpos_cos_sin(rotation.get(), &scaling, VK_FALSE, 7, 5, cos.data(), sin.data(),
                                nullptr) == VKROPE_SUCCESS);
    REQUIRE(vkrope::xpos_cos_sin(same, {.centre = 7}, false, 7, 5, cos_of_cpp.data(),
                                 sin_of_cpp.data()));
    CHECK(cos == cos_of_cpp);
    std::vector<double> inv_freq = {1, 0.001};
    REQUIRE(vkrope_stop_slow_pairs(inv_freq.data(), 2, 4096, nullptr) == VKROPE_SUCCESS);
    CHECK(inv_freq == std::vector<double>{1, 0});
}
