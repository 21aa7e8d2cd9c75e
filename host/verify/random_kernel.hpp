// SPDX-License-Identifier: MIT
// Draws the kernels of random operations.
#pragma once

#include <random>
#include <vector>

#include "base/meaning.hpp"
#include "verify/unplaced.hpp"

namespace vkrope::verify {

class Random {
   public:
    explicit Random(std::uint64_t seed) : random_(seed) {}

    std::uint64_t operator()() { return random_(); }
    // Returns an integer from 0 to count - 1.
    std::uint32_t below(std::uint32_t count) { return std::uint32_t(random_() % count); }
    bool one_in(std::uint32_t count) { return below(count) == 0; }
    template <class T, std::size_t count>
    T any_of(const T (&values)[count]) {
        return values[below(count)];
    }
    template <class T>
    T any_of(const std::vector<T>& values) {
        return values[below(std::uint32_t(values.size()))];
    }
    // Returns an enumerator from 0 to `last`.
    template <class Enum>
    Enum up_to(Enum last) {
        return Enum(below(std::uint32_t(last) + 1));
    }
    // Returns a number in [0, 1).
    double number() { return double(random_() >> 11) * 0x1p-53; }

   private:
    std::mt19937_64 random_;
};

constexpr bool is_present(const KernelInfo& info, vkrope_tensor_index which) {
    return info.tensor[which].head_dim != 0;
}

constexpr std::uint32_t rounded_up(std::uint32_t number, std::uint32_t unit) {
    return (number + unit - 1) / unit * unit;
}

// Makes a kernel that applies the same ops without a rotation.
void leave_out_rotation(KernelInfo& info);

// Draws a kernel, and numbers of heads that it allows.
void draw_kernel(Random& random, Unplaced& operation);

// Draws head counts of each tensor. Those of Q and K are multiples of the number of head groups.
void draw_heads(Random& random, Unplaced& operation);

}  // namespace vkrope::verify
