// SPDX-License-Identifier: MIT
// An operation whose memory is not placed yet: shapes, arrangements and values. placed() in
// place.hpp turns it into an Operation.
#pragma once

#include "verify/arrangement.hpp"
#include "verify/elements.hpp"
#include "verify/operation.hpp"

namespace vkrope::verify {

// Limits that the device reports instead of its own; 0: its own.
struct ReportedLimits {
    std::uint32_t storage_buffers = 0, storage_range = 0, workgroups_x = 0, workgroups_y = 0,
                  workgroups_z = 0;
    std::uint32_t vendor = 0;  // PCI id: the library spares registers on GPUs of some vendors
    bool no_push_descriptors = false;
    bool operator==(const ReportedLimits&) const = default;
};

// An empty `inv_freq` stands for 10000^(-2j / rotary_dim), and in each further head group or
// summed axis for 3/4 of the frequencies before. Empty `parameters` are random. With implicit
// positions and a batch_stride of 0 every sequence starts at `first`.
struct Unplaced : Operation {
    Unplaced() {
        info.pairing = VKROPE_HALF_SPLIT;
        info.angles = VKROPE_ANGLES_FACTORED_TEXTURE;  // a tensor with head_dim 0 is absent
    }

    Shape shape = {};
    Arrangement in = Arrangement::bshd, out = Arrangement::bshd;
    std::array<bool, 3> in_place = {};
    std::array<bool, 3> absent = {};  // absent from the call, though not from the kernel
    std::uint32_t lead = 0;           // elements, or blocks, before the tensors of bshd
    // [batch, tokens, heads, head_dim], whole blocks if the type has them; empty: random
    std::array<Bytes, 3> rows = {};
    std::uint32_t seed = 1;
    bool counts = false;  // the call has vkrope_call::out_of_range, if a token can be out of range
    std::uint32_t token_count = 0;  // the number in call.token_count, for info.token_count
    // [axes, batch, tokens], if info.positions uses ids; stored with the strides of call.positions.
    std::vector<std::int64_t> ids = {};
    // For info.scatter_kv, stored with the stride of call.paged_cache. Empty: random, some of them
    // outside the cache.
    std::vector<std::int64_t> slots = {};
    // For info.gather_kv, in the same way. Empty: with info.scatter_kv the call has none, so that
    // rows come from `slots`. In a tensor that is in place, source and destination are one cache.
    std::vector<std::int64_t> sources = {};
    // Slots and sources of V where they are not those of K; empty: those of K. If one is given,
    // the caches of V have a page more than those of K, unless both lie in one row.
    std::vector<std::int64_t> v_slots = {}, v_sources = {};
    // [batch, tokens, heads, groups] of call.scales_in; empty: random.
    std::array<std::vector<float>, 3> scales = {};
    bool pages_by_head = false;
    bool page_gaps = false;  // gaps after each row and each page, unless a page is one row
    bool beside = false;     // a row of a cache contains K and V of a token and head side by side
    bool shares_weight = false;  // bound weights of one type and size are one buffer
    Bytes cos = {}, sin = {};    // cos_sin_cache: [max_position, row_stride] of info.table
    ReportedLimits limits = {};
};

// Returns the number of slots in a cache of K or V.
std::uint32_t slots_of(const Unplaced& operation, vkrope_tensor_index which);

// Returns the number of elements of a tensor.
std::size_t elements_of(const Unplaced& operation, vkrope_tensor_index which);

// Returns whether implicit positions reach beyond the table, so that the call must count them.
bool must_count(const Unplaced& operation);

// Returns the frequencies of the placed operation.
std::vector<double> inv_freq_of(const Unplaced& operation);

}  // namespace vkrope::verify
