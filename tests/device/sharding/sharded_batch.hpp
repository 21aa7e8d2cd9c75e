// SPDX-License-Identifier: MIT
// One batch of Q and K that is split over several devices as in an engine: either by heads (tensor
// parallelism), or each sequence into two chunks per rank (context parallelism, zig-zag). A rank
// rotates its part and knows nothing of the other ranks. The functions throw errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope::sharding {

using Bytes = std::vector<std::byte>;

// Q and K are packed as [sequences, tokens, heads, head_dim]. q_heads / k_heads heads of Q share a
// head of K (GQA).
struct Batch {
    Element element = VKROPE_F32;
    std::uint32_t sequences = 0, tokens = 0, q_heads = 0, k_heads = 0, head_dim = 0;
    std::int32_t first_position = 0;  // the position of the first token of every sequence

    std::size_t bytes(std::uint32_t heads) const {
        return std::size_t{sequences} * tokens * heads * head_dim * vkrope_element_bytes(element);
    }
};

// Returns the batch of the tests. It splits by heads for up to 4 ranks, with unequal parts for 3,
// and by sequence for any number of ranks that divides 24.
Batch test_batch(Element element);

struct Tensors {
    Bytes q, k;
    bool operator==(const Tensors&) const = default;
};

// Returns numbers that are normal in their element type, since some devices flush subnormals.
Tensors random_tensors(const Batch& batch, std::uint32_t seed);

enum class Split { heads, sequence };
inline constexpr Split splits[] = {Split::heads, Split::sequence};
const char* word_for(Split split);

// The part of a batch that one of `ranks` ranks rotates.
class Shard {
   public:
    // ranks  by heads, at most k_heads, since heads of Q stay with their head of K; by sequence,
    // `tokens` must be a multiple of 2 * ranks
    Shard(const Batch& whole, Split split, std::uint32_t rank, std::uint32_t ranks);

    // Returns the description of the rank's part as a batch.
    const Batch& local() const noexcept { return local_; }

    // Returns the rank's part of the whole.
    Tensors part_of(const Tensors& whole) const;
    // Copies the part back into the whole.
    void put(const Tensors& part, Tensors& whole) const;

    // Rotates the part on one device, in place: by heads with implicit positions, by sequence with
    // the positions that record_positions() makes for this rank.
    Tensors rotate(Device& device, const Tensors& part) const;

   private:
    template <class Copy>
    void for_each_run(const Copy& copy) const;
    std::uint32_t first_k_head(std::uint32_t rank) const { return whole_.k_heads * rank / ranks_; }

    Batch whole_, local_;
    Split split_;
    std::uint32_t rank_, ranks_;
};

// Rotates the whole batch on one device with the runtime's HostRotation.
Tensors rotate_whole(Device& device, const Batch& batch, const Tensors& tensors);

// Opens every device of the machine that can run vkrope, with the validation layer if it is
// installed.
//
// errors  the counter of the errors that the layer reports
std::vector<Device> open_all(std::size_t& errors);

}  // namespace vkrope::sharding
