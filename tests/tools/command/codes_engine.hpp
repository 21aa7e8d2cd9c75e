// SPDX-License-Identifier: MIT
// An engine that stores codes, with the mistakes of engines, and the judgement of what it stored.
// It is a loop of its own over a V without steps, whose rows are exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "check/judge.hpp"
#include "verify/oracle/element.hpp"

namespace vkrope::tools::codes {

using oracle::Store;

inline constexpr std::size_t tokens = 32, heads = 32, head_dim = 32,
                             count = tokens * heads * head_dim;

using Row = std::vector<float>;
using Bytes = std::vector<std::uint8_t>;

inline double round_half_up(double x) {
    return std::floor(x + 0.5);
}

/// What an engine does with a row of head_dim channels, or with another row.
struct Engine {
    Store type = Store::q8_0;
    std::function<double(double)> nearest = [](double x) { return std::round(x); };
    bool divides = false;       // blocks: x / d, not x * (1 / d); made scales: x / scale
    bool rounds_first = false;  // d to f16
    float given = 1, d_of_amax = 127;
    bool made = false, power_of_two = false;

    float over(float x, float d) const { return divides ? x / d : x * (1 / d); }

    void append_half(Bytes& bytes, float d) const {
        const std::uint32_t bits = oracle::narrow(oracle::Type::f16, d);
        bytes.push_back(static_cast<std::uint8_t>(bits));
        bytes.push_back(static_cast<std::uint8_t>(bits >> 8));
    }

    void append_block(Bytes& bytes, const float* x) const {
        const float* most = std::max_element(
            x, x + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
        const bool nibbles = type == Store::q4_0;
        float d = nibbles && d_of_amax == 127 ? *most / -8 : std::fabs(*most) / d_of_amax;
        append_half(bytes, d);
        if (rounds_first) {
            d = oracle::widen(oracle::Type::f16, oracle::narrow(oracle::Type::f16, d));
        }
        int codes[32];
        for (int i = 0; i < 32; ++i) {
            codes[i] = static_cast<int>(nearest(over(x[i], d)));
            codes[i] = nibbles ? std::min(codes[i] + 8, 15) : codes[i];
        }
        for (int i = 0; i < (nibbles ? 16 : 32); ++i) {
            bytes.push_back(
                static_cast<std::uint8_t>(nibbles ? codes[i] | codes[i + 16] << 4 : codes[i]));
        }
    }

    Bytes stored(const Row& values, std::vector<float>& scales, std::size_t row = head_dim) const {
        Bytes bytes;
        for (std::size_t first = 0; first < values.size(); first += row) {
            const float* x = &values[first];
            if (type == Store::q8_0 || type == Store::q4_0) {
                for (std::size_t i = 0; i < row; i += 32) {
                    append_block(bytes, x + i);
                }
                continue;
            }
            float amax = 0;
            for (std::size_t i = 0; i < row; ++i) {
                amax = std::max(amax, std::fabs(x[i]));
            }
            float scale = amax / oracle::largest(type);
            scale = power_of_two ? std::exp2(std::ceil(std::log2(scale))) : scale;  // as vLLM
            for (std::size_t i = 0; made && i < row / head_dim; ++i) {
                scales.push_back(scale);
            }
            for (std::size_t i = 0; i < row; ++i) {
                const float number = made ? over(x[i], scale) : x[i] * given;
                bytes.push_back(type == Store::int8 ? static_cast<std::uint8_t>(static_cast<int>(
                                                          std::clamp(nearest(number), -127., 127.)))
                                                    : oracle::code_of(type, number));
            }
        }
        return bytes;
    }
};

inline Row random_values() {
    Row values(count);
    std::uint32_t state = 1;
    for (float& x : values) {
        state = state * 1664525 + 1013904223;
        x = float(int(state >> 8) - (1 << 23)) * 0x1p-17f;
    }
    return values;
}

/// Each block of 32 begins with `first`, and all else is half of an odd number, times `unit`.
inline Row halves(float first, float unit) {
    Row values(count);
    for (std::size_t i = 0; i < count; ++i) {
        const float half = float(int(i * 7 % 13)) - 5.5f;
        values[i] = i % 32 == 0 ? first : half * unit;
    }
    return values;
}

/// [tokens, heads, head_dim] with another axis innermost.
inline Row transposed(const Row& values, bool tokens_innermost) {
    Row to;
    if (tokens_innermost) {
        for (std::size_t i = 0; i < heads * head_dim; ++i) {
            for (std::size_t t = 0; t < tokens; ++t) {
                to.push_back(values[t * heads * head_dim + i]);
            }
        }
        return to;
    }
    for (std::size_t i = 0; i < tokens * head_dim; ++i) {
        for (std::size_t h = 0; h < heads; ++h) {
            to.push_back(values[(i / head_dim * heads + h) * head_dim + i % head_dim]);
        }
    }
    return to;
}

struct Output {
    Bytes codes;
    std::vector<float> scales;
};

inline Output output_of(const Engine& engine, const Row& values, std::size_t row = head_dim) {
    Output output;
    output.codes = engine.stored(values, output.scales, row);
    return output;
}

inline Judgement judged(const Row& values, const Output& output,
                        const oracle::QuantisedStore& store, const oracle::Ops& steps = {},
                        std::uint64_t batch = 1, const Limits& limits = {}) {
    Observation seen;
    seen.with_steps = true;
    seen.right.steps = steps;
    seen.right.in = {.type = oracle::Type::f32,
                     .batch = batch,
                     .tokens = tokens / batch,
                     .heads = heads,
                     .head_dim = head_dim,
                     .batch_stride = count / batch,
                     .token_stride = heads * head_dim,
                     .head_stride = head_dim};
    seen.right.out = seen.right.in;
    seen.input = values.data();
    seen.right.operation.positions.assign(tokens, 1);
    seen.rotated = seen.right;
    seen.rotated->operation.inv_freq = {1, 0.5};
    seen.codes = output.codes;
    seen.right.store = {.quantised = store, .scales = output.scales};
    return judge(seen, limits);
}

}  // namespace vkrope::tools::codes
