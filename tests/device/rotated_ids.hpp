// SPDX-License-Identifier: MIT
// Rotations of the same rows at positions from every source.
#pragma once

#include "support/recording.hpp"

namespace vkrope::test {

inline constexpr std::uint32_t D = 48, R = 40, offset = 4, heads = 3;

inline KernelInfo info_for(Element element, PositionSource source,
                           Pairing pairing = VKROPE_HALF_SPLIT) {
    return {.pairing = pairing,
            .rotary_dim = R,
            .tensor = {{element, element, D, offset}},
            .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
            .positions = source};
}

/// Rows of Q, and how they rotate.
struct Rotating {
    Element element = VKROPE_F32;
    std::uint32_t batch = 1, tokens = 1;
    Bytes in = {};

    Rotating(Element of, std::uint32_t sequences, std::uint32_t count, std::uint32_t seed)
        : element(of), batch(sequences), tokens(count),
          in(random_elements(of, std::size_t{sequences} * count * heads * D, seed)) {}

    // Rotates `in` at these positions.
    Bytes operator()(Device& on, const KernelInfo& info, const AngleTable& table,
                     const Positions& positions, Buffer* counter = nullptr) const {
        Buffer from = upload(on, in), to = upload(on, Bytes(in.size()));
        Call call{.batch = batch, .tokens = tokens};
        call.in[Q] = {.where = from.whole(), .heads = heads};
        call.out[Q] = {.where = to.whole(), .heads = heads};
        call.positions = positions;
        call.angles = table.angles();
        if (counter) call.out_of_range = counter->whole();
        run(on, make_kernel(on, info), call);
        return download(to, in.size());
    }
};

template <class Number>
std::vector<Number> random_positions(std::size_t count, std::int64_t from, std::int64_t to,
                                     std::uint32_t seed) {
    std::mt19937_64 generator(seed);
    std::vector<Number> numbers(count);
    for (Number& number : numbers)
        number = Number(from + std::int64_t(generator() % std::uint64_t(to - from + 1)));
    return numbers;
}

inline std::uint32_t count_in(Buffer& counter) {
    return stored(VKROPE_F32, download(counter, 4), 0);
}

}  // namespace vkrope::test
