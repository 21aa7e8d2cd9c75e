// SPDX-License-Identifier: MIT
// Implements the CPU baseline: plain loops on all cores, which the compiler vectorises.
#include <bit>
#include <thread>

#include "rivals.hpp"

// Compiles functions for several vector instruction sets, one of which is selected at program
// start. Disabled with sanitizers, which cannot run that early.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define VKROPE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VKROPE_CLONES
#endif

namespace vkrope::bench {
namespace {

using Half = std::uint16_t;

struct F32 {
    using Stored = float;
    static float widen(float f) { return f; }
    static float narrow(float f) { return f; }
};

// Selects without a branch, because the compiler would not vectorise a branch with float
// computation on one side.
std::uint32_t choose(bool condition, std::uint32_t yes, std::uint32_t no) {
    const std::uint32_t mask = 0u - std::uint32_t{condition};
    return (yes & mask) | (no & ~mask);
}

// Converts with integers, as in shaders/element.glsl except for NaN, which the pattern does not
// contain.
struct F16 {
    using Stored = Half;
    static float widen(Half h) {
        const std::uint32_t sign = std::uint32_t(h & 0x8000) << 16, magnitude = h & 0x7fff;
        const std::uint32_t normal = (magnitude << 13) + (112u << 23);
        const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(
            float(std::int32_t(magnitude)) * 0x1p-24f);
        return std::bit_cast<float>(choose(magnitude < 0x400, subnormal, normal) | sign);
    }
    static Half narrow(float f) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(f), magnitude = bits & 0x7fffffff;
        const std::uint32_t normal = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >>
                                     13;
        const std::uint32_t subnormal =
            std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
        const std::uint32_t h = choose(magnitude >= 0x477ff000, 0x7c00,
                                       choose(magnitude < 0x38800000, subnormal, normal));
        return Half(h | ((bits >> 16) & 0x8000));
    }
};

struct Bf16 {
    using Stored = Half;
    static float widen(Half h) { return std::bit_cast<float>(std::uint32_t{h} << 16); }
    static Half narrow(float f) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
        return Half((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
    }
};

struct Slice {
    const void* in;
    void* out;
    const float* cos_sin;
    std::uint64_t first, last;  // tokens
    std::uint32_t heads, half;  // half: pairs per head
};

template <class Type>
[[gnu::always_inline]] inline void rotate(const Slice& slice) {
    using Stored = typename Type::Stored;
    const std::size_t half = slice.half;
    std::vector<float> c(half), s(half);
    for (std::uint64_t token = slice.first; token < slice.last; ++token) {
        for (std::size_t j = 0; j < half; ++j) {
            c[j] = slice.cos_sin[2 * (token * half + j)];
            s[j] = slice.cos_sin[2 * (token * half + j) + 1];
        }
        const float* __restrict cosine = c.data();
        const float* __restrict sine = s.data();
        for (std::uint32_t head = 0; head < slice.heads; ++head) {
            const std::size_t row = (token * slice.heads + head) * 2 * half;
            const Stored* __restrict in = static_cast<const Stored*>(slice.in) + row;
            Stored* __restrict out = static_cast<Stored*>(slice.out) + row;
            for (std::size_t j = 0; j < half; ++j) {
                const float x0 = Type::widen(in[j]), x1 = Type::widen(in[j + half]);
                out[j] = Type::narrow(x0 * cosine[j] - x1 * sine[j]);
                out[j + half] = Type::narrow(x0 * sine[j] + x1 * cosine[j]);
            }
        }
    }
}

VKROPE_CLONES void rotate_f32(const Slice& slice) {
    rotate<F32>(slice);
}
VKROPE_CLONES void rotate_f16(const Slice& slice) {
    rotate<F16>(slice);
}
VKROPE_CLONES void rotate_bf16(const Slice& slice) {
    rotate<Bf16>(slice);
}

}  // namespace

void rotate_on_cpu(Element element, const void* in, void* out, const float* cos_sin,
                   std::uint64_t tokens, std::uint32_t heads, std::uint32_t head_dim) {
    const auto rotate_slice = element == VKROPE_F32   ? rotate_f32
                              : element == VKROPE_F16 ? rotate_f16
                                                      : rotate_bf16;
    const std::uint64_t cores = std::max(std::thread::hardware_concurrency(), 1u);
    std::vector<std::thread> threads;
    for (std::uint64_t core = 0; core < cores; ++core) {
        const Slice slice = {
            in,    out,         cos_sin, tokens * core / cores, tokens * (core + 1) / cores,
            heads, head_dim / 2};
        if (core + 1 < cores)
            threads.emplace_back([=] { rotate_slice(slice); });
        else
            rotate_slice(slice);
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace vkrope::bench
