// SPDX-License-Identifier: MIT
// The subset of GLSL that the files of shader.hpp use, so that they compile as C++.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace vkrope::glsl {

using uint = std::uint32_t;

template <class S>
concept Scalar = std::is_arithmetic_v<S>;

template <class T>
struct Vec2 {
    T x = 0, y = 0;
    Vec2() = default;
    Vec2(T x_, T y_) : x(x_), y(y_) {}
};

template <class T>
struct Vec4 {
    T x = 0, y = 0, z = 0, w = 0;
    Vec4() = default;
    Vec4(T x_, T y_, T z_, T w_) : x(x_), y(y_), z(z_), w(w_) {}
    Vec4(Vec2<T> xy, Vec2<T> zw) : Vec4(xy.x, xy.y, zw.x, zw.y) {}
    template <Scalar S>
    explicit Vec4(S all) : Vec4(T(all), T(all), T(all), T(all)) {}
    template <class S>
    explicit Vec4(Vec4<S> v) : Vec4(T(v.x), T(v.y), T(v.z), T(v.w)) {}

    Vec2<T> xz() const { return {x, z}; }
    Vec2<T> yw() const { return {y, w}; }
    Vec4 zwxy() const { return {z, w, x, y}; }
};

using vec4 = Vec4<float>;
using ivec4 = Vec4<std::int32_t>;
using uvec4 = Vec4<uint>;
using bvec4 = Vec4<bool>;
using uvec2 = Vec2<uint>;
using vec2 = Vec2<float>;
using ivec2 = Vec2<std::int32_t>;

template <class T>
Vec2<T> operator+(Vec2<T> a, Vec2<T> b) {
    return {a.x + b.x, a.y + b.y};
}

template <class T, class F>
auto by_component(Vec4<T> a, Vec4<T> b, F f) {
    return Vec4<decltype(f(a.x, b.x))>(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w));
}

#define VKROPE_GLSL_OPERATOR(op)                                            \
    template <class T>                                                      \
    Vec4<T> operator op(Vec4<T> a, Vec4<T> b) {                             \
        return by_component(a, b, [](T p, T q) -> T { return T(p op q); }); \
    }                                                                       \
    template <class T, Scalar S>                                            \
    Vec4<T> operator op(Vec4<T> a, S b) {                                   \
        return a op Vec4<T>(b);                                             \
    }                                                                       \
    template <class T, Scalar S>                                            \
    Vec4<T> operator op(S a, Vec4<T> b) {                                   \
        return Vec4<T>(a) op b;                                             \
    }                                                                       \
    template <class T>                                                      \
    Vec4<T>& operator op##=(Vec4<T>& a, Vec4<T> b) {                        \
        return a = a op b;                                                  \
    }
VKROPE_GLSL_OPERATOR(+)
VKROPE_GLSL_OPERATOR(-)
VKROPE_GLSL_OPERATOR(*)
VKROPE_GLSL_OPERATOR(&)
VKROPE_GLSL_OPERATOR(|)
VKROPE_GLSL_OPERATOR(^)
VKROPE_GLSL_OPERATOR(<<)
VKROPE_GLSL_OPERATOR(>>)
#undef VKROPE_GLSL_OPERATOR

template <class T>
bvec4 equal(Vec4<T> a, Vec4<T> b) {
    return by_component(
        a, b, [](T p, T q) { return p == q; });
}
template <class T>
bvec4 notEqual(Vec4<T> a, Vec4<T> b) {
    return by_component(
        a, b, [](T p, T q) { return p != q; });
}
template <class T>
bvec4 lessThan(Vec4<T> a, Vec4<T> b) {
    return by_component(
        a, b, [](T p, T q) { return p < q; });
}
template <class T>
bvec4 greaterThan(Vec4<T> a, Vec4<T> b) {
    return lessThan(b, a);
}
template <class T>
bvec4 greaterThanEqual(Vec4<T> a, Vec4<T> b) {
    return by_component(
        a, b, [](T p, T q) { return p >= q; });
}

inline uint max(uint a, uint b) {
    return a < b ? b : a;
}
inline uvec4 max(uvec4 a, uvec4 b) {
    return by_component(
        a, b, [](uint p, uint q) { return p < q ? q : p; });
}

inline uint min(uint a, uint b) {
    return a < b ? a : b;
}
inline uvec4 min(uvec4 a, uvec4 b) {
    return by_component(
        a, b, [](uint p, uint q) { return p < q ? p : q; });
}

inline uint mix(uint a, uint b, bool second) {
    return second ? b : a;
}
template <class T>
Vec4<T> mix(Vec4<T> a, Vec4<T> b, bvec4 second) {
    return {second.x ? b.x : a.x, second.y ? b.y : a.y, second.z ? b.z : a.z, second.w ? b.w : a.w};
}

inline uvec4 floatBitsToUint(vec4 v) {
    return {std::bit_cast<uint>(v.x), std::bit_cast<uint>(v.y), std::bit_cast<uint>(v.z),
            std::bit_cast<uint>(v.w)};
}
inline vec4 uintBitsToFloat(uvec4 v) {
    return {std::bit_cast<float>(v.x), std::bit_cast<float>(v.y), std::bit_cast<float>(v.z),
            std::bit_cast<float>(v.w)};
}

inline uint floatBitsToUint(float x) {
    return std::bit_cast<uint>(x);
}
inline float uintBitsToFloat(uint bits) {
    return std::bit_cast<float>(bits);
}

inline void umulExtended(uvec4 a, uvec4 b, uvec4& high, uvec4& low) {
    high = by_component(a, b, [](uint p, uint q) { return uint(std::uint64_t{p} * q >> 32); });
    low = a * b;
}

inline uvec4 uaddCarry(uvec4 a, uvec4 b, uvec4& carry) {
    const uvec4 sum = a + b;
    carry = by_component(sum, a, [](uint p, uint q) -> uint { return p < q ? 1 : 0; });
    return sum;
}

}  // namespace vkrope::glsl
