// SPDX-License-Identifier: MIT
// Tier "frequencies": the ids of grids, videos and ragged batches, and what older methods do by
// position. The library turns by whole positions. A grid whose patches stand at rational
// coordinates has whole ids all the same: the step from one id to the next is folded into the
// frequencies, and a start between two ids becomes a phase.
//
// Functions are thread-safe and do not throw; those that write ids or tables do not allocate. On
// error they write nothing.
#pragma once

#include "vkrope/frequencies.hpp"

namespace vkrope {

using GridAxis = vkrope_grid_axis;

/// Frames of a video of `fps` frames per second, counted in frames of base_fps: ids 0, 1, 2, ...,
/// base_fps / fps apart. base_fps is 24 in CosmosRotaryPosEmbed of diffusers'
/// transformer_cosmos.py.
///
/// base_fps, fps  finite and above 0
Result<GridAxis> frame_axis(std::uint32_t frames, double base_fps, double fps) noexcept;

/// A grid of `patches` that is stretched to the `reference` patches that the model was trained
/// with: patch i is at (first + i) * reference / patches. EVA-02; ref_feat_shape of timm's
/// build_fourier_pos_embed.
///
/// first      0, or 1 in the Perception Encoder
/// reference  finite and above 0
Result<GridAxis> resized_axis(std::uint32_t patches, std::int64_t first, double reference) noexcept;

/// The centres of `patches` equal parts of the interval from `low` to `high`: from -1 to 1 in
/// DINOv3's DINOv3ViTRopePositionEmbedding, from 0 to the width in pixels in LTX-2. Ids are odd, or
/// even around 0 for an odd number of patches; with any `low` but 0 and -high there is an origin.
///
/// low, high  finite; low below high
Result<GridAxis> interval_axis(std::uint32_t patches, double low, double high) noexcept;

/// Folds the axes of a grid into a rotation: multiplies the frequencies of each axis by its unit,
/// and adds origin times frequency to Rotation::phase, less whole turns. Rotation::base becomes 0
/// unless all units are 1.
///
/// axes, count  one for each axis of the rotation: sections.axes, or 1 without sections
Status fold_grid(const GridAxis* axes, std::uint32_t count, Rotation& rotation);

/// Elements of a grid, the product of the counts; 0 if it exceeds 2^64 - 1.
std::uint64_t grid_tokens(const GridAxis* axes, std::uint32_t count) noexcept;

/// Writes the ids of a grid for Positions::ids: [axes, tokens], tokens row by row, the last axis
/// fastest. An id that leaves int32 is VKROPE_ERROR_LIMIT_EXCEEDED.
///
/// count   axes: 1 to 8
/// ids     receives [count, tokens]
/// tokens  must be grid_tokens()
Status grid_ids(const GridAxis* axes, std::uint32_t count, std::int32_t* ids,
                std::size_t tokens) noexcept;

/// Writes ids by time, as Qwen2.5-Omni and Qwen2.5-VL count the frames of a video (TM-RoPE): the
/// float32 product index * seconds * ids_per_second, rounded down. get_rope_index of Hugging Face's
/// modeling_qwen2_5_omni.py. Qwen3-Omni does not round: its ids are not whole.
///
/// seconds         from one index to the next: finite, at least 0
/// ids_per_second  finite and above 0: position_id_per_seconds, 25 in Qwen2.5-Omni
/// ids             receives [count]; one that leaves int32 is VKROPE_ERROR_LIMIT_EXCEEDED
Status timed_ids(float seconds, float ids_per_second, std::int32_t* ids,
                 std::size_t count) noexcept;

/// Writes the ids of a ragged batch: in each sequence from its offset on. The kernel
/// record_positions (kernel.hpp) does the same on the device.
///
/// cu_seqlens  [sequences + 1] ascending from 0, the last is the number of tokens
/// offsets     optional, [sequences]: position of the first token of each sequence; null: 0
/// ids         receives [tokens]; one that leaves int32 is VKROPE_ERROR_LIMIT_EXCEEDED
/// tokens      must be cu_seqlens[sequences]
Status ragged_ids(const std::int64_t* cu_seqlens, std::size_t sequences,
                  const std::int64_t* offsets, std::int32_t* ids, std::size_t tokens) noexcept;

using DualChunkRole = vkrope_dual_chunk_role;

using DualChunk = vkrope_dual_chunk;

/// Writes the ids with which dual-chunk attention rotates, n = chunk_size - local_size: p mod n for
/// the key and the query; min(p mod n + n, chunk_size) and min(2n - 1, chunk_size) for query_succ
/// and query_inter; p mod n + n and p mod n + chunk_size for the critical ones.
/// DualChunkRotaryEmbedding of vLLM's rotary_embedding/dual_chunk_rope.py. Every role is a call of
/// its own; the frequencies are the model's.
///
/// positions  [count], at least 0
/// ids        receives [count]; may be `positions`
Status dual_chunk_ids(const DualChunk& chunk, DualChunkRole role, const std::int32_t* positions,
                      std::int32_t* ids, std::size_t count) noexcept;

using XposScaling = vkrope_xpos_scaling;

/// Writes rows of a cos_sin_cache (plan_cos_sin_cache) with XPos: [rows, rotary_dim / 2] each, cos
/// and sin of position * inv_freq, exact and rounded once after the product with the attention
/// factor and the scale. Queries and keys need a cache and a call each.
///
/// rotation  one position a token, no phase, one head group
/// keys      true: the inverse scale, for K
/// first     position of the first row, of magnitude up to 2^31
/// cos, sin  a factor that leaves the normal range of float is VKROPE_ERROR_LIMIT_EXCEEDED
Status xpos_cos_sin(const Rotation& rotation, const XposScaling& scaling, bool keys,
                    std::int64_t first, std::size_t rows, float* cos, float* sin) noexcept;

}  // namespace vkrope
