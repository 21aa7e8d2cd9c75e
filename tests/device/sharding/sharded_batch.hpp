// SPDX-License-Identifier: MIT
// One batch of Q and K as an engine with several devices splits it: by heads (tensor parallelism),
// or every sequence into two chunks a rank (context parallelism, zig-zag). A rank rotates what it
// holds and knows nothing of the others. What fails throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "vkrope/runtime.hpp"

namespace vkrope::sharding {

using Bytes = std::vector<std::byte>;

/// Q and K are packed as [sequences, tokens, heads, head_dim]. Each head of K serves q_heads /
/// k_heads heads of Q (GQA).
struct Batch {
    Element element = Element::f32;
    std::uint32_t sequences = 0, tokens = 0, q_heads = 0, k_heads = 0, head_dim = 0;
    std::int32_t first_position = 0;  // of every sequence

    std::size_t bytes(std::uint32_t heads) const {
        return std::size_t{sequences} * tokens * heads * head_dim * element_bytes(element);
    }
};

/// What the tests split: whole groups for up to 4 ranks, not as many for each of 3; chunks for up
/// to 6.
Batch test_batch(Element element);

struct Tensors {
    Bytes q, k;
    bool operator==(const Tensors&) const = default;
};

/// Numbers that are normal in every element type: that some devices flush subnormals is not what is
/// tested here.
Tensors random_tensors(const Batch& batch, std::uint32_t seed);

enum class Split { heads, sequence };
inline constexpr Split splits[] = {Split::heads, Split::sequence};
const char* word_for(Split split);

/// Seeded: the last rank takes itself for the one before it, and starts at its first head, or its
/// first position. No test may pass.
enum class Mistake { none, start };

/// What one rank of `ranks` holds of a batch.
class Shard {
   public:
    /// ranks  by heads: at most k_heads, since the heads of Q stay with theirs of K; by sequence:
    /// `tokens` is a multiple of twice as many
    Shard(const Batch& whole, Split split, std::uint32_t rank, std::uint32_t ranks,
          Mistake mistake = Mistake::none);

    /// What the rank sees.
    const Batch& local() const noexcept { return local_; }

    /// The rank's part of the whole.
    Tensors part_of(const Tensors& whole) const;
    /// The other way round.
    void put(const Tensors& part, Tensors& whole) const;

    /// Rotates the part on one device, in place: by heads with implicit positions, by sequence with
    /// those that record_positions() makes for this rank.
    Tensors rotate(Device& device, const Tensors& part) const;

   private:
    template <class Copy>
    void for_each_run(std::uint32_t starting_rank, const Copy& copy) const;
    std::uint32_t first_k_head(std::uint32_t rank) const { return whole_.k_heads * rank / ranks_; }

    Batch whole_, local_;
    Split split_;
    std::uint32_t rank_, ranks_;
    std::uint32_t believed_rank_;  // without a mistake, rank_
};

/// The whole batch on one device, by the runtime's own HostRotation.
Tensors rotate_whole(Device& device, const Batch& batch, const Tensors& tensors);

/// Every device of the machine that can run vkrope, opened, with the validation layer where there
/// is one.
///
/// errors  counts what the layer calls an error
std::vector<Device> open_all(std::size_t& errors);

}  // namespace vkrope::sharding
