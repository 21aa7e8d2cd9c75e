// SPDX-License-Identifier: MIT
// The memory of an operation while pieces are added.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

#include "verify/operation.hpp"

namespace vkrope::verify {

// Pieces of memory separated by guard zones; every byte is random at first.
class Memory {
   public:
    explicit Memory(std::uint64_t seed) : random_(seed) {}

    // Returns a new piece that starts at a multiple of `alignment`, which is one of 16, with guard
    // bytes before and after it.
    VkDescriptorBufferInfo take(std::uint64_t size, std::uint64_t alignment = 16) {
        constexpr std::uint64_t guard = 512;  // more than the alignment of any binding
        const std::uint64_t start = (bytes.size() + guard + alignment - 1) / alignment * alignment,
                            end = (start + size + guard + 15) / 16 * 16;
        std::uint64_t at = bytes.size();  // pieces end at multiples of 16
        bytes.resize(end);
        for (; at < end; at += sizeof(std::uint64_t)) {
            const std::uint64_t word = random_();
            std::memcpy(&bytes[at], &word, sizeof word);
        }
        return {VK_NULL_HANDLE, start, size};
    }

    // Adds at least 4 bytes, so that an empty piece can be bound.
    template <class T>
    VkDescriptorBufferInfo put(const std::vector<T>& content) {
        const auto from = std::as_bytes(std::span(content));
        const VkDescriptorBufferInfo piece = take(std::max<std::size_t>(from.size(), 4));
        std::copy(from.begin(), from.end(), &bytes[piece.offset]);
        return piece;
    }

    VkDescriptorBufferInfo put(const std::vector<std::int64_t>& numbers, bool wide) {
        return wide ? put(numbers) : put(std::vector<std::int32_t>(numbers.begin(), numbers.end()));
    }

    Bytes bytes;

   private:
    std::mt19937_64 random_;
};

}  // namespace vkrope::verify
