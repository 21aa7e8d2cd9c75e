// SPDX-License-Identifier: MIT
// Computes the ids of videos by time, of ragged batches and of dual-chunk attention.
#include <algorithm>
#include <cmath>

#include "frequencies/id_range.hpp"

namespace vkrope {
namespace {

using ull = unsigned long long;  // the type of %llu on every platform

constexpr std::uint32_t max_chunk = std::uint32_t{1} << 30;

float time_of(std::size_t index, float seconds, float ids_per_second) noexcept {
    const float at = float(index) * seconds;  // rounded, as in the model's code
    return at * ids_per_second;
}

Status check_offsets(const std::int64_t* cu_seqlens, std::size_t sequences,
                     const std::int64_t* offsets) noexcept {
    for (std::size_t s = 0; s < sequences; ++s) {
        const std::int64_t length = cu_seqlens[s + 1] - cu_seqlens[s],
                           first = offsets == nullptr ? 0 : offsets[s];
        if (length == 0) continue;
        if (!fits_id(first)) return id_out_of_range("offsets", s, "first token", first);
        if (length - 1 > std::numeric_limits<std::int32_t>::max() - first)
            return id_out_of_range("cu_seqlens", s, "last token", first + (length - 1));
    }
    return {};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_timed_ids(float seconds, float ids_per_second, int32_t* ids, size_t count,
                               vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (!(std::isfinite(seconds) && seconds >= 0))
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "seconds is %g: it must be finite and at least 0", double(seconds));
            if (!(std::isfinite(ids_per_second) && ids_per_second > 0))
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "ids_per_second is %g: it must be finite and above 0",
                             double(ids_per_second));
            if (count == 0) return {};
            if (ids == nullptr) return error(VKROPE_ERROR_INVALID_ARGUMENT, "ids is null");
            // Ids ascend, so the last id is the largest. 2^31 is a float, but the largest int32 is
            // not.
            const float last = time_of(count - 1, seconds, ids_per_second);
            if (!(last < 0x1p31f)) return id_out_of_range(ull{count - 1}, double(last));
            for (std::size_t i = 0; i < count; ++i)
                ids[i] = std::int32_t(time_of(i, seconds, ids_per_second));
            return {};
        });
}

vkrope_result vkrope_ragged_ids(const int64_t* cu_seqlens, size_t sequences, const int64_t* offsets,
                                int32_t* ids, size_t tokens, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (cu_seqlens == nullptr)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "cu_seqlens is null");
            if (cu_seqlens[0] != 0)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "cu_seqlens[0] is %lld: it must be 0",
                             static_cast<long long>(cu_seqlens[0]));
            for (std::size_t s = 0; s < sequences; ++s)
                if (cu_seqlens[s + 1] < cu_seqlens[s])
                    return error(
                        VKROPE_ERROR_INVALID_ARGUMENT,
                        "cu_seqlens[%llu] is %lld: it must be at least the one before, %lld",
                        ull{s + 1}, static_cast<long long>(cu_seqlens[s + 1]),
                        static_cast<long long>(cu_seqlens[s]));
            if (std::uint64_t(cu_seqlens[sequences]) != tokens)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "tokens is %llu: it must be the last of cu_seqlens, %lld", ull{tokens},
                             static_cast<long long>(cu_seqlens[sequences]));
            if (Status s = check_offsets(cu_seqlens, sequences, offsets); !s) return s;
            if (tokens == 0) return {};
            if (ids == nullptr) return error(VKROPE_ERROR_INVALID_ARGUMENT, "ids is null");
            for (std::size_t s = 0; s < sequences; ++s) {
                const std::int64_t first = offsets == nullptr ? 0 : offsets[s];
                for (std::int64_t token = cu_seqlens[s]; token < cu_seqlens[s + 1]; ++token)
                    ids[token] = std::int32_t(first + (token - cu_seqlens[s]));
            }
            return {};
        });
}

vkrope_result vkrope_dual_chunk_ids(const vkrope_dual_chunk* given, vkrope_dual_chunk_role role,
                                    const int32_t* positions, int32_t* ids, size_t count,
                                    vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "chunk"); !s) return s;
            const DualChunk& chunk = *given;
            if (chunk.chunk_size == 0 || chunk.chunk_size > max_chunk)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "chunk.chunk_size is %u: it must be 1 to %u", chunk.chunk_size,
                             max_chunk);
            if (chunk.local_size >= chunk.chunk_size)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "chunk.local_size is %u: it must be below chunk_size, %u",
                             chunk.local_size, chunk.chunk_size);
            if (role > VKROPE_DUAL_CHUNK_QUERY_INTER_CRITICAL)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "role is %u: it must be a vkrope_dual_chunk_role", unsigned(role));
            if (count == 0) return {};
            if (positions == nullptr || ids == nullptr)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null",
                             positions == nullptr ? "positions" : "ids");
            for (std::size_t i = 0; i < count; ++i)
                if (positions[i] < 0)
                    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                                 "positions[%llu] is %d: it must be at least 0", ull{i},
                                 positions[i]);
            const auto size = std::int32_t(chunk.chunk_size),
                       length = std::int32_t(chunk.chunk_size - chunk.local_size);
            for (std::size_t i = 0; i < count; ++i) {
                const std::int32_t within = positions[i] % length;
                switch (role) {
                    case VKROPE_DUAL_CHUNK_QUERY_SUCC:
                        ids[i] = std::min(within + length, size);
                        break;
                    case VKROPE_DUAL_CHUNK_QUERY_INTER:
                        ids[i] = std::min(2 * length - 1, size);
                        break;
                    case VKROPE_DUAL_CHUNK_QUERY_SUCC_CRITICAL: ids[i] = within + length; break;
                    case VKROPE_DUAL_CHUNK_QUERY_INTER_CRITICAL: ids[i] = within + size; break;
                    default: ids[i] = within;
                }
            }
            return {};
        });
}
