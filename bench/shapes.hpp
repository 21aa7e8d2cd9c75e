// SPDX-License-Identifier: MIT
// Declares the measured operations: tensors and RoPE of layers of real models.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::bench {

// How the calls of a row follow each other.
enum class Pace {
    single,   // a submission of one call
    chained,  // calls with barriers between them in one submission: caches keep what they hold
    cold,     // a submission of one call, after a copy of more bytes than caches hold
};

struct Shape {
    std::string name;
    const char* model;            // model with this shape
    verify::Operation operation;  // its tensors have no buffers; Layer makes them
    Pace pace = Pace::single;     // if it is another one, the calls are in place

    bool in_place() const noexcept { return pace != Pace::single; }
};

// The heads of Q or of K; 0 heads: no tensor.
struct Heads {
    std::uint32_t heads = 0, head_dim = 0, rotary_offset = 0;
};

// Returns a rotation of packed f32 tensors of one sequence at the positions 0 and up, with the
// angle source that is the default.
verify::Operation rotation(std::uint32_t tokens, const Heads& q, const Heads& k,
                           std::uint32_t rotary_dim, double base = 10000,
                           Pairing pairing = VKROPE_HALF_SPLIT);

// Returns the operation with inputs and outputs of this type.
verify::Operation of_type(verify::Operation operation, Element element);
// Adds an RMS norm with weights of 1 to a tensor; the span and the channels of `norm` count.
void add_norm(verify::Operation& operation, TensorIndex which, Norm norm);
// Adds norms to Q and K.
void add_norms(verify::Operation& operation, NormSpan span);
// Binds the weights of Q and K as they are, in f32, instead of packing them into the parameters.
void bind_weights(verify::Operation& operation);
verify::Operation with_packed_weights(verify::Operation operation);
// Adds V, like K, and stores both as `cache`: if it is quantised, with llama.cpp's Hadamard
// transforms.
void add_v(verify::Operation& operation, Element cache);
// Makes a layer without RoPE.
void remove_rotation(verify::Operation& operation);
// Stores K and V in a cache that has a row for each token, in the order of the tokens.
void store_in_cache(verify::Operation& operation);
// Returns a call that moves this many keys by -1000 positions, from a cache to another one.
verify::Operation moved_keys(std::uint32_t tokens, const Heads& k, Element cache);

std::span<const Shape> shapes();
// Returns prefills in place, with a warm and with a cold cache.
std::vector<Shape> in_place_prefills();

// Returns whether the rivals and the CPU support the operation: packed rows, all channels rotated
// by half_split pairs, ascending positions.
bool is_plain(const verify::Operation& operation);

// Return the bytes of a tensor's input or output, which may be a cache.
std::uint64_t input_bytes(const verify::Operation& operation, TensorIndex which);
std::uint64_t output_bytes(const verify::Operation& operation, TensorIndex which);
// Returns the bytes of the second destination of a tensor.
std::uint64_t second_bytes(const verify::Operation& operation, TensorIndex which);
// Returns the bytes of the scales that a tensor's store makes.
std::uint64_t made_scale_bytes(const verify::Operation& operation, TensorIndex which);
// Returns the bytes of all inputs and outputs.
std::uint64_t device_bytes(const verify::Operation& operation);

// Returns the operation with the tokens halved until it fits in `bytes`; at least one token.
verify::Operation reduced(verify::Operation operation, std::uint64_t bytes);

}  // namespace vkrope::bench
