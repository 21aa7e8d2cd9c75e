// SPDX-License-Identifier: MIT
// Tier "frequencies": the ids of grids, videos and ragged batches, and what older methods do by
// position. The library turns by whole positions. A grid whose patches stand at rational
// coordinates has whole ids all the same: the step from one id to the next is folded into the
// frequencies, and a start between two ids becomes a phase.
//
// Functions are thread-safe and do not throw; those that write ids or tables do not allocate. On
// error they write nothing. vkrope.h documents each function under the name in the
// comment above it.
#pragma once

#include "vkrope/frequencies.hpp"

namespace vkrope {

using GridAxis = vkrope_grid_axis;

/// vkrope_frame_axis.
Result<GridAxis> frame_axis(std::uint32_t frames, double base_fps, double fps) noexcept;

/// vkrope_resized_axis.
Result<GridAxis> resized_axis(std::uint32_t patches, std::int64_t first, double reference) noexcept;

/// vkrope_interval_axis.
Result<GridAxis> interval_axis(std::uint32_t patches, double low, double high) noexcept;

/// vkrope_rotation_fold_grid.
Status fold_grid(const GridAxis* axes, std::uint32_t count, Rotation& rotation);

/// vkrope_grid_tokens.
std::uint64_t grid_tokens(const GridAxis* axes, std::uint32_t count) noexcept;

/// vkrope_grid_ids.
Status grid_ids(const GridAxis* axes, std::uint32_t count, std::int32_t* ids,
                std::size_t tokens) noexcept;

/// vkrope_timed_ids.
Status timed_ids(float seconds, float ids_per_second, std::int32_t* ids,
                 std::size_t count) noexcept;

/// vkrope_ragged_ids.
Status ragged_ids(const std::int64_t* cu_seqlens, std::size_t sequences,
                  const std::int64_t* offsets, std::int32_t* ids, std::size_t tokens) noexcept;

using DualChunkRole = vkrope_dual_chunk_role;
using DualChunk = vkrope_dual_chunk;

/// vkrope_dual_chunk_ids.
Status dual_chunk_ids(const DualChunk& chunk, DualChunkRole role, const std::int32_t* positions,
                      std::int32_t* ids, std::size_t count) noexcept;

using XposScaling = vkrope_xpos_scaling;

/// vkrope_xpos_cos_sin.
Status xpos_cos_sin(const Rotation& rotation, const XposScaling& scaling, bool keys,
                    std::int64_t first, std::size_t rows, float* cos, float* sin) noexcept;

}  // namespace vkrope
