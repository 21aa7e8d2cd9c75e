// SPDX-License-Identifier: MIT
// The device that the tests run on, with the validation layer on: any message that is not on the
// short list fails the run.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "reference/oracle.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::test {

/// Opened once; VKROPE_DEVICE says which. With push descriptors where the device offers them, or
/// without; always without them where gpu_assisted().
Device& device(bool push_descriptors = true);

/// Whether this run is with GPU-assisted validation: the layer rewrites the shaders so that they
/// check what they access.
bool gpu_assisted();

/// What a test that goes through many combinations takes of them: every n-th, by
/// VKROPE_SWEEP_SHARE; without it all. Every kernel is made of one source, so that a share tells
/// another device from the first.
std::size_t sweep_share();

/// Messages so far that are not on the list of expected ones.
std::size_t unexpected_messages();

/// The value, or a failed test with the sentence of the status.
template <class T>
T must(Result<T> result) {
    INFO(result.status.what);
    REQUIRE(bool(result.status));
    return std::move(result.value);
}

inline void must(const Status& status) {
    INFO(status.what);
    REQUIRE(bool(status));
}

/// Stored elements in host memory.
using Bytes = std::vector<std::byte>;

inline reference::Type type_of(Element element) {
    return reference::Type(std::uint32_t(element));
}

/// `count` elements, uniform in [-4, 4], repeatable.
Bytes random_elements(Element element, std::size_t count, std::uint32_t seed);

inline std::uint32_t stored(Element element, const Bytes& bytes, std::size_t index) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + index * element_bytes(element), element_bytes(element));
    return bits;
}

inline float value(Element element, const Bytes& bytes, std::size_t index) {
    return reference::widen(type_of(element), stored(element, bytes, index));
}

/// base^(-2j/R), with the window of Q and of K.
Rotation rotation(Pairing pairing, std::uint32_t head_dim, std::uint32_t rotary_dim,
                  std::uint32_t q_offset = 0, std::uint32_t k_offset = 0,
                  double attention_factor = 1.0);

struct Rotated {
    Bytes q, k;
};

/// The whole way: upload, rotate once, download.
Rotated rotate(Device& on, const Rotation& rotation, const HostShape& shape, const Bytes& q,
               const Bytes& k, Direction direction = Direction::forward);

/// Holds one output against the contract: the error bound of direct tables, and every bit outside
/// the window.
void check_contract(const Rotation& rotation, const HostShape& shape, bool key, const Bytes& in,
                    const Bytes& out, Direction direction = Direction::forward);

}  // namespace vkrope::test
