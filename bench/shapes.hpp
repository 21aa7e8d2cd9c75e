// SPDX-License-Identifier: MIT
// What is measured: the tensors and the RoPE of real models, in one table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "vkrope/runtime.hpp"

namespace vkrope::bench {

/// Where the positions of a shape's tokens come from.
enum class Numbering {
    ascending,   // implicit, from 0 on
    decoding,    // ids: every token is the next one of a sequence of its own, of any length up to
                 // max_position
    text_image,  // three ids a token (time, height, width): a stretch of text, then an image, and
                 // so on
    grid,        // two ids a token (row, column) of a square image
};

struct Shape {
    std::string name;
    const char* model;  // whose numbers these are
    std::uint32_t batch = 1, tokens = 0;
    std::uint32_t q_heads = 0, k_heads = 0;
    std::uint32_t q_head_dim = 0, k_head_dim = 0;
    std::uint32_t rotary_dim = 0;
    std::uint32_t q_offset = 0, k_offset = 0;  // first rotated channel
    Pairing pairing = Pairing::half_split;
    double base = 10000;
    std::uint64_t max_position = 0;  // of the table
    Numbering numbering = Numbering::ascending;
    std::vector<Window> windows = {};  // none: one
    Sections sections = {};
    std::uint32_t page_size = 0, pages = 0;  // K is scattered into a cache of so many; 0: it is not

    bool scatters() const { return page_size != 0; }
    std::uint64_t rows() const { return std::uint64_t{batch} * tokens; }
    std::uint64_t q_elements() const { return rows() * q_heads * q_head_dim; }
    std::uint64_t k_elements() const { return rows() * k_heads * k_head_dim; }
    /// Of the output of K.
    std::uint64_t k_out_elements() const {
        return scatters() ? std::uint64_t{pages} * page_size * k_heads * k_head_dim : k_elements();
    }
    /// Whether the rivals and the processor can rotate it: packed rows that are rotated whole,
    /// ascending positions.
    bool plain() const;
};

/// All of them.
std::span<const Shape> shapes();

/// Numbers of a Llama 3 layer with so many tokens, of all heads or of a single one, or so many
/// heads of Q and none of K: how cost grows.
Shape growing_tokens(std::uint32_t tokens);
Shape growing_tokens_of_one_head(std::uint32_t tokens);
Shape growing_heads(std::uint32_t heads);

/// Bytes that tensors and a copy of what is rotated in place take on the device.
std::uint64_t device_bytes(const Shape& shape, Element element);

/// The shape with as many tokens as fit into `bytes`, by halving; one at least.
Shape reduced(Shape shape, Element element, std::uint64_t bytes);

Rotation rotation_of(const Shape& shape);

/// Ids as the kernel reads them: [axes, tokens] for all sequences, or [tokens]. Empty: implicit.
std::vector<std::int32_t> ids_of(const Shape& shape);

/// Rows of the cache, one a token. Empty where nothing is scattered.
std::vector<std::int32_t> slots_of(const Shape& shape);

}  // namespace vkrope::bench
