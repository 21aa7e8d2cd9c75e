// SPDX-License-Identifier: MIT
// Opens the device of the tests with the validation layer on. Any message that is not on the short
// list of expected messages fails the run.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <random>

#include "base/meaning.hpp"
#include "verify/definition.hpp"
#include "verify/elements.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

// Returns the device, which is opened once and which VKROPE_DEVICE selects. It uses push
// descriptors if the device offers them and the caller wants them, but never if gpu_assisted().
Device& device(bool push_descriptors = true);

// Returns whether this run uses GPU-assisted validation, in which the layer rewrites the shaders
// to check their accesses.
bool gpu_assisted();

// Returns the number of messages so far that are not on the list of expected messages.
std::size_t unexpected_messages();

// Returns the value; if there is none, fails the test with the sentence of the status.
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

using verify::Bytes;
using verify::random_elements;
using verify::stored;
using verify::type_of;
using verify::value;

// Returns a rotation with inv_freq base^(-2j/R) and the windows of Q and of K.
RopeParams rotation(Pairing pairing, std::uint32_t head_dim, std::uint32_t rotary_dim,
                    std::uint32_t q_offset = 0, std::uint32_t k_offset = 0,
                    double attention_factor = 1.0);

struct Rotated {
    Bytes q, k;
};

// Uploads, rotates once, downloads.
Rotated rotate(Device& on, const RopeParams& rotation, const HostShape& shape, const Bytes& q,
               const Bytes& k, Direction direction = VKROPE_FORWARD);

// Checks one output against the contract: the error bound of direct tables, and every bit outside
// the window.
void check_contract(const RopeParams& rotation, const HostShape& shape, bool key, const Bytes& in,
                    const Bytes& out, Direction direction = VKROPE_FORWARD);

}  // namespace vkrope::test
