// SPDX-License-Identifier: MIT
// The inputs of the sweep: sets of numbers, kernels for them, and calls of those kernels.
#pragma once

#include <map>
#include <random>
#include <set>

#include "layouts.hpp"
#include "support/finishing.hpp"

namespace vkrope::test {

using Random = std::mt19937_64;

/// A random number from 0 to count - 1.
inline std::uint32_t below(Random& random, std::uint32_t count) {
    return std::uint32_t(random() % count);
}

/// Head rows and their rotated windows: Q and K have windows of one kind.
struct Formats {
    std::uint32_t q_head_dim, q_offset, k_head_dim, k_offset, rotary_dim;
    std::vector<Window> windows = {};
    std::string text() const;
};

/// Everything that the bits of a rotated row depend on, except direction and gain: kernels with the
/// same numbers must agree bit for bit.
struct Numbers {
    Pairing pairing = Pairing::half_split, pairing_out = Pairing::half_split;
    Element q_in = Element::f32, q_out = Element::f32, k_in = Element::f32, k_out = Element::f32;
    Formats formats;
    Shape shape;
    bool ids = false, shared_ids = false;  // shared: each sequence has those of the first
    std::int32_t first_position = 0;       // without ids
    std::vector<std::int32_t> id;          // [batch, tokens]
    bool scatter = false;
    std::uint32_t table_rows = 0;
    bool v = false;  // the kernels have a V of K's heads and head_dim
    Element v_in = Element::f32, v_out = Element::f32;
    Bytes q, k, values;  // inputs [batch, tokens, heads, head_dim]
    Finish q_finish = {}, k_finish = {}, v_finish = {};
    float q_scale = 1;
    std::vector<float> factors = {};  // [batch, tokens]; empty: no tensor has a finish
    Parameters parameters = {};

    bool has_finish() const { return !factors.empty(); }
    // Norms over a token take all heads at one stride, in one dispatch.
    bool over_token() const {
        return q_finish.norm.span == NormSpan::token || k_finish.norm.span == NormSpan::token;
    }
    bool in_place_possible() const {
        return q_in == q_out && k_in == k_out && pairing == pairing_out;
    }
};

/// The set of numbers `index`, below `numbers_count`: every pairing in and out with every type in
/// and out, at positions on both sides of 0 and a few beyond the `table_rows` that are covered.
inline constexpr std::uint32_t numbers_count = 36;
Numbers numbers_of(std::uint32_t index, const Formats& formats, const Shape& shape,
                   std::uint32_t table_rows, Random& random);

/// Q, K and V of these numbers, each with random steps around its rotation. Its inputs are finite:
/// a NaN or an infinity would make rows NaN. Kernels for short ranges have no norm over a token.
Numbers with_finish(Numbers numbers, bool short_ranges, Random& random);

/// The kernel of these numbers, before anything that changes no bit is chosen.
KernelInfo info_of(const Numbers& numbers);

/// Formats for `index`: full and partial, several windows, odd ones.
const Formats& formats_of(std::uint32_t index);

/// 2 or 3 of everything.
Shape small_shape(const Formats& formats, Random& random);

/// Limits that the device reports.
enum class Limits { own, few_buffers, short_ranges };

/// Options of a kernel, none of which may change a bit.
struct KernelChoice {
    AngleSource source = AngleSource::factored_texture;
    Mapping mapping = Mapping::cpu;
    bool push_descriptors = true;
    Limits limits = Limits::own;
    Conversion conversion = Conversion::integer;  ///< native: if the device supports it
};

/// Four for each set of numbers: two sources, each with each mapping.
std::vector<KernelChoice> kernels_for(std::uint32_t index, const Numbers& numbers);

/// Whether kernel `which` of a set has a finish: both kernels of one source, in 15 of the 36 sets.
/// The sets have every type, both places, slots and V.
inline bool takes_finish(std::uint32_t index, std::uint32_t which) {
    return (index + 1) % 5 < 2 && (which == 0 || which == 2) == (index / 5 % 2 == 0);
}

/// Place of V: strides as K, a separate piece or separate strides, or in place.
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

/// Whether slots give the rows of K, of V, or of both.
inline bool has_slots(const Numbers& numbers, const Tuple& tuple) {
    return numbers.scatter && (tuple.k || tuple.v != PlaceOfV::absent);
}

/// A call that `numbers` allows, with a counter if the kernel supports one.
Tuple random_tuple(const Numbers& numbers, const KernelChoice& kernel, Random& random);

/// Equal keys are one tuple: layouts, pairings, types, direction, gain, source, in place or not.
/// Tuples that differ only in other fields are equal.
using Key = std::vector<std::uint32_t>;
Key key_of(const Numbers& numbers, const KernelChoice& kernel, const Tuple& tuple);

/// dimension -> value, for all fields of a tuple.
std::vector<std::pair<std::string, std::string>> values_of(const Numbers& numbers,
                                                           const KernelChoice& kernel,
                                                           const Tuple& tuple);

}  // namespace vkrope::test
