// SPDX-License-Identifier: MIT
// Declares the measured shapes: tensors and RoPE of real models in one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope::bench {

/// Source of the token positions.
enum class Numbering {
    ascending,   // implicit, from 0 on
    decoding,    // ids: every token is in another sequence, at any position up to max_position
    text_image,  // three ids per token (time, height, width): text and images alternate
    grid,        // two ids per token (row, column) of a square image
};

struct Shape {
    std::string name;
    const char* model;  // model with this shape
    std::uint32_t batch = 1, tokens = 0;
    std::uint32_t q_heads = 0, k_heads = 0;
    std::uint32_t q_head_dim = 0, k_head_dim = 0;
    std::uint32_t rotary_dim = 0;
    std::uint32_t q_offset = 0, k_offset = 0;  // first rotated channel
    Pairing pairing = VKROPE_HALF_SPLIT;
    double base = 10000;
    std::uint64_t max_position = 0;  // largest position of the table
    Numbering numbering = Numbering::ascending;
    std::vector<Window> windows = {};  // empty: one window
    Sections sections = {};
    std::uint32_t page_size = 0, pages = 0;  // cache for K; 0: no cache

    bool scatters() const { return page_size != 0; }
    std::uint64_t rows() const { return std::uint64_t{batch} * tokens; }
    std::uint64_t q_elements() const { return rows() * q_heads * q_head_dim; }
    std::uint64_t k_elements() const { return rows() * k_heads * k_head_dim; }
    /// Returns the number of elements in the output of K.
    std::uint64_t k_out_elements() const {
        return scatters() ? std::uint64_t{pages} * page_size * k_heads * k_head_dim : k_elements();
    }
    /// Returns whether the rivals and the CPU support the shape: packed rows, all channels rotated,
    /// ascending positions.
    bool plain() const;
};

std::span<const Shape> shapes();

/// Return Llama 3 layers that show how cost grows with this number of tokens, for all heads or for
/// one, or with this number of Q heads and no K.
Shape growing_tokens(std::uint32_t tokens);
Shape growing_tokens_of_one_head(std::uint32_t tokens);
Shape growing_heads(std::uint32_t heads);

/// Returns the bytes of the tensors in device memory, including copies of those rotated in place.
std::uint64_t device_bytes(const Shape& shape, Element element);

/// Returns the shape with the tokens halved until it fits in `bytes`; at least one token.
Shape reduced(Shape shape, Element element, std::uint64_t bytes);

RopeParams rotation_of(const Shape& shape);

/// Returns the position ids, which all sequences share: [axes, tokens], or [tokens] without
/// sections. Returns nothing if positions are implicit.
std::vector<std::int32_t> ids_of(const Shape& shape);

/// Returns the cache row of each token. Empty if nothing is scattered.
std::vector<std::int32_t> slots_of(const Shape& shape);

}  // namespace vkrope::bench
