// SPDX-License-Identifier: MIT
// The memory of a trial's call: its rows, among bytes that must not change.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include "conformance/builtin/trial.hpp"

namespace vkrope::conformance {

/// One buffer before and after the call: pieces separated by guard zones, initially random bytes.
class Memory {
   public:
    explicit Memory(std::uint64_t seed) : random_(seed) {}

    /// Returns the start of a new piece: a multiple of 16, with guard bytes before and after it.
    std::uint64_t take(std::uint64_t bytes) {
        constexpr std::uint64_t guard = 512;  // more than any binding is aligned down
        const std::uint64_t start = (before.size() + guard + 15) / 16 * 16,
                            end = (start + bytes + guard + 15) / 16 * 16;
        const std::uint64_t old = before.size();
        before.resize(end);
        for (std::uint64_t at = old; at < end;
             at += sizeof(std::uint64_t)) {  // ends are multiples of 16
            const std::uint64_t word = random_();
            std::memcpy(&before[at], &word, sizeof word);
        }
        may_change.resize(end);
        return start;
    }

    template <class Number>
    std::uint64_t put(const std::vector<std::int64_t>& numbers) {
        const std::uint64_t start = take(numbers.size() * sizeof(Number));
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            const auto number = static_cast<Number>(numbers[i]);
            std::memcpy(&before[start + i * sizeof number], &number, sizeof number);
        }
        return start;
    }

    void let_change(std::uint64_t start, std::uint64_t bytes) {
        const auto first = may_change.begin() + static_cast<std::ptrdiff_t>(start);
        std::fill(first, first + static_cast<std::ptrdiff_t>(bytes), true);
    }

    Bytes before, after;
    std::vector<bool> may_change;

   private:
    std::mt19937_64 random_;
};

/// The rows of Q, K or V of the call, in its memory.
struct TensorRows {
    Placed in = {}, out = {};
    std::uint64_t in_byte = 0, out_byte = 0;  // start of their pieces

    std::uint64_t first_in() const { return in_byte + in.first * size(in); }
    std::uint64_t first_out() const { return out_byte + out.first * size(out); }
    static std::uint64_t size(const Placed& placed) {
        return reference::bytes_of(placed.rows.type);
    }
};

/// Places all tensors in one piece if their elements have the same size, else one piece per element
/// size with the places of the others left free.
void place(const Trial& trial, Arrangement arrangement, bool output, Memory& memory, TensorRows& q,
           TensorRows& k, TensorRows& v);

/// Writes packed rows to the input.
void fill(const TensorRows& tensor, const Bytes& rows, Memory& memory);

void let_change(const TensorRows& tensor, Memory& memory);

/// The rows of the output, packed.
Bytes packed_rows(const TensorRows& tensor, const Bytes& memory);

}  // namespace vkrope::conformance
