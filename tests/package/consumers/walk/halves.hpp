// SPDX-License-Identifier: MIT
// Helpers of the programs that check their results: packed rows of f16, values of f16, and errors.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "walk.hpp"

namespace walk {

using Half = std::uint16_t;

/// Packed rows [tokens, q_heads + 2 kv_heads, head_dim] of f16, the output of one matrix product.
struct Packed {
    std::uint32_t head_dim, q_heads, kv_heads;

    constexpr std::uint32_t heads() const { return q_heads + 2 * kv_heads; }
    constexpr std::size_t row() const { return std::size_t{heads()} * head_dim; }
    /// The number of channels of K, or of V, in one token.
    constexpr std::size_t kv_row() const { return std::size_t{kv_heads} * head_dim; }

    /// Returns a tensor of `count` heads of the rows, from `first_head` on.
    vkrope::Tensor slice(VkDescriptorBufferInfo packed, std::uint32_t first_head,
                         std::uint32_t count) const {
        packed.offset += VkDeviceSize{first_head} * head_dim * sizeof(Half);
        packed.range -= VkDeviceSize{first_head} * head_dim * sizeof(Half);
        return {.where = packed, .heads = count, .token_stride = std::int64_t(row())};
    }
    vkrope::Tensor q(const VkDescriptorBufferInfo& packed) const {
        return slice(packed, 0, q_heads);
    }
    vkrope::Tensor k(const VkDescriptorBufferInfo& packed) const {
        return slice(packed, q_heads, kv_heads);
    }
    vkrope::Tensor v(const VkDescriptorBufferInfo& packed) const {
        return slice(packed, q_heads + kv_heads, kv_heads);
    }
};

inline vkrope::Status wrong(const std::string& sentence) {
    vkrope::Status status;
    status.code = VKROPE_ERROR_INVALID_DATA;
    std::snprintf(status.what, sizeof status.what, "%s", sentence.c_str());
    return status;
}

inline vkrope::Status is_one_dispatch(const Made& made, const vkrope::Call& call) {
    const auto count = vkrope::dispatches(made.kernel, call);
    if (!count || count.value == 1) return count.status;
    return wrong("the call takes " + std::to_string(count.value) + " dispatches");
}

inline double value(Half half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return NAN;  // compares as near to no value
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24)
                                           : std::ldexp(1024 + mantissa, exponent - 25);
    return half >> 15 ? -magnitude : magnitude;
}

template <class T>
std::vector<T> numbers_of(const std::vector<std::byte>& bytes) {
    std::vector<T> numbers(bytes.size() / sizeof(T));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
}

template <class T>
VkDescriptorBufferInfo upload(const Gpu& gpu, const std::vector<T>& numbers) {
    std::vector<std::byte> bytes(numbers.size() * sizeof(T));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return gpu.upload_buffer(VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, bytes);
}

}  // namespace walk
