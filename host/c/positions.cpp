// SPDX-License-Identifier: MIT
// Ids of grids and batches, and what depends on the position, for C.
#include "vkrope/positions.hpp"

#include <memory>
#include <utility>

#include "c/handles.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

vkrope_result write_axis(vkrope_grid_axis* axis, vkrope_error* error,
                         const Result<GridAxis>& made) noexcept {
    return guarded(error, [&] { return hand_out(made, axis, "axis"); });
}

}  // namespace

vkrope_result vkrope_frame_axis(uint32_t frames, double base_fps, double fps,
                                vkrope_grid_axis* axis, vkrope_error* error) {
    return write_axis(axis, error, frame_axis(frames, base_fps, fps));
}

vkrope_result vkrope_resized_axis(uint32_t patches, int64_t first, double reference,
                                  vkrope_grid_axis* axis, vkrope_error* error) {
    return write_axis(axis, error, resized_axis(patches, first, reference));
}

vkrope_result vkrope_interval_axis(uint32_t patches, double low, double high,
                                   vkrope_grid_axis* axis, vkrope_error* error) {
    return write_axis(axis, error, interval_axis(patches, low, high));
}

vkrope_result vkrope_rotation_fold_grid(const vkrope_rotation* rotation,
                                        const vkrope_grid_axis* axes, uint32_t count,
                                        vkrope_rotation** folded, vkrope_error* error) {
    return making(folded, "folded", error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        Rotation copy = rotation->of;
        if (Status s = fold_grid(axes, count, copy); !s) return s;
        *folded = wrap(std::move(copy)).release();
        return {};
    });
}

uint64_t vkrope_grid_tokens(const vkrope_grid_axis* axes, uint32_t count) {
    return count > max_axes ? 0 : grid_tokens(axes, count);
}

vkrope_result vkrope_grid_ids(const vkrope_grid_axis* axes, uint32_t count, int32_t* ids,
                              size_t tokens, vkrope_error* error) {
    return guarded(error, [&] { return grid_ids(axes, count, ids, tokens); });
}

vkrope_result vkrope_timed_ids(float seconds, float ids_per_second, int32_t* ids, size_t count,
                               vkrope_error* error) {
    return guarded(error, [&] { return timed_ids(seconds, ids_per_second, ids, count); });
}

vkrope_result vkrope_ragged_ids(const int64_t* cu_seqlens, size_t sequences, const int64_t* offsets,
                                int32_t* ids, size_t tokens, vkrope_error* error) {
    return guarded(error, [&] { return ragged_ids(cu_seqlens, sequences, offsets, ids, tokens); });
}

vkrope_result vkrope_dual_chunk_ids(const vkrope_dual_chunk* chunk, vkrope_dual_chunk_role role,
                                    const int32_t* positions, int32_t* ids, size_t count,
                                    vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(chunk, "chunk"); !s) return s;
        return dual_chunk_ids(*chunk, role, positions, ids, count);
    });
}

vkrope_result vkrope_xpos_cos_sin(const vkrope_rotation* rotation,
                                  const vkrope_xpos_scaling* scaling, VkBool32 keys, int64_t first,
                                  size_t rows, float* cos, float* sin, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        return xpos_cos_sin(rotation->of, scaling ? *scaling : XposScaling{}, keys != VK_FALSE,
                            first, rows, cos, sin);
    });
}
