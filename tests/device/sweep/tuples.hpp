// SPDX-License-Identifier: MIT
// What the sweep runs: sets of numbers, kernels for them, and calls of those kernels.
#pragma once

#include <map>
#include <random>
#include <set>

#include "layouts.hpp"

namespace vkrope::test {

using Random = std::mt19937_64;

/// One of 0 to count - 1.
inline std::uint32_t below(Random& random, std::uint32_t count) {
    return std::uint32_t(random() % count);
}

/// Head rows and where they are rotated: Q and K have windows of one kind.
struct Widths {
    std::uint32_t q_head_dim, q_offset, k_head_dim, k_offset, rotary_dim;
    std::vector<Window> windows = {};
    std::string text() const;
};

/// What the bits of every rotated row follow from, beside direction and gain: kernels that share it
/// must agree bit for bit.
struct Numbers {
    Pairing pairing = Pairing::half_split, pairing_out = Pairing::half_split;
    Element q_in = Element::f32, q_out = Element::f32, k_in = Element::f32, k_out = Element::f32;
    Widths widths;
    Shape shape;
    bool ids = false, shared_ids = false;  // shared: every sequence has the positions of the first
    std::int32_t first_position = 0;       // without ids
    std::vector<std::int32_t> id;          // [batch, tokens]
    bool scatter = false;
    std::uint32_t table_rows = 0;
    bool v = false;  // the kernels have a V of K's heads and head_dim
    Element v_in = Element::f32, v_out = Element::f32;
    Bytes q, k, values;  // inputs [batch, tokens, heads, head_dim]

    bool in_place_possible() const {
        return q_in == q_out && k_in == k_out && pairing == pairing_out;
    }
};

/// The set of numbers `index`, of which there are `numbers_count`: every pairing in and out with
/// every type in and out, for positions on both sides of 0 and a few behind the `table_rows` that
/// are covered.
inline constexpr std::uint32_t numbers_count = 36;
Numbers numbers_of(std::uint32_t index, const Widths& widths, const Shape& shape,
                   std::uint32_t table_rows, Random& random);

/// Widths to go with `index`: full and partial, several windows, odd ones.
const Widths& widths_of(std::uint32_t index);

/// 2 or 3 of everything.
Shape small_shape(const Widths& widths, Random& random);

/// What the device is made to offer.
enum class Limits { own, four_buffers, short_ranges };

/// How a kernel comes to its bits; none of it may change any.
struct KernelChoice {
    AngleSource source = AngleSource::factored_texture;
    Mapping mapping = Mapping::cpu;
    bool push_descriptors = true;
    Limits limits = Limits::own;
    Conversion conversion = Conversion::integer;  ///< native: where the device can
};

/// Four for each set of numbers: two sources, each with each mapping.
std::vector<KernelChoice> kernels_for(std::uint32_t index, const Numbers& numbers);

/// How V lies: as K, in a piece of its own, or with strides of its own, or where it goes.
enum class PlaceOfV { absent, as_k, apart, in_place };

/// One call.
struct Tuple {
    Arrangement in = Arrangement::bshd, out = Arrangement::bshd;
    bool in_place = false, q = true, k = true;
    Direction direction = Direction::forward;
    Gain gain = Gain::apply;
    bool factor = false;          // an attention factor other than 1
    bool counts = false;          // with a counter
    std::uint32_t page_size = 1;  // scattered
    bool pages_by_head = false, wide_slots = false, odd_pages = false;
    PlaceOfV v = PlaceOfV::absent;
};

/// Whether rows go where slots say: those of K and V, or of one of them.
inline bool has_slots(const Numbers& numbers, const Tuple& tuple) {
    return numbers.scatter && (tuple.k || tuple.v != PlaceOfV::absent);
}

/// A call that `numbers` allows, with a counter where the kernel can have one.
Tuple random_tuple(const Numbers& numbers, const KernelChoice& kernel, Random& random);

/// Equal keys are one tuple: layouts, pairings, types, direction, gain, source, in place or not.
/// Nothing else tells tuples apart.
using Key = std::vector<std::uint32_t>;
Key key_of(const Numbers& numbers, const KernelChoice& kernel, const Tuple& tuple);

/// dimension -> value, of a tuple with all that it is made of.
std::vector<std::pair<std::string, std::string>> values_of(const Numbers& numbers,
                                                           const KernelChoice& kernel,
                                                           const Tuple& tuple);

}  // namespace vkrope::test
