// SPDX-License-Identifier: MIT
// The inputs of the sweep: sets of numbers, kernels for them, and calls of those kernels, drawn at
// random.
#pragma once

#include <array>
#include <random>
#include <span>

#include "layouts.hpp"
#include "parameters.hpp"

namespace vkrope::test {

using Random = std::mt19937_64;

/// A random number from 0 to count - 1.
inline std::uint32_t below(Random& random, std::uint32_t count) {
    return std::uint32_t(random() % count);
}

/// Random choices that can be made again, all but one as before.
class Choices {
   public:
    explicit Choices(Random& random) : random_(&random) {}

    std::uint32_t below(std::uint32_t count) {
        if (next_ == made_.size()) made_.push_back((*random_)());
        return std::uint32_t(made_[next_++] % count);
    }
    /// One of `count` values, of which `first` is the first.
    template <class Enum>
    Enum any(std::uint32_t count, Enum first = Enum()) {
        return Enum(std::uint32_t(first) + below(count));
    }
    bool coin() { return below(2) == 1; }

    void again() { next_ = 0; }
    void change_one() { made_[(*random_)() % made_.size()] = (*random_)(); }

   private:
    Random* random_;
    std::vector<std::uint64_t> made_ = {};
    std::size_t next_ = 0;
};

/// Head rows and their rotated windows: Q and K have windows of one kind.
struct Formats {
    const char* name;
    std::uint32_t q_head_dim, q_offset, k_head_dim, k_offset, rotary_dim;
    std::vector<Window> windows = {};
};

/// Full and partial, several windows, odd ones.
std::span<const Formats> all_formats();
/// The first of them, whose rows are short.
inline constexpr std::uint32_t formats_with_ops = 10;

/// What gives a token its position: without ids, the first one and whether a call leaves the table.
enum class Positions { after_zero, across_zero, beyond_table, ids, shared_ids };

/// Everything that the bits of a rotated row depend on, except direction and gain: kernels with the
/// same numbers must agree bit for bit.
struct Numbers {
    std::uint32_t format = 0;  // of all_formats()
    Pairing pairing = VKROPE_HALF_SPLIT, pairing_out = VKROPE_HALF_SPLIT;
    Element q_in = VKROPE_F32, q_out = VKROPE_F32, k_in = VKROPE_F32, k_out = VKROPE_F32;
    Positions positions = Positions::ids;  // shared: each sequence has those of the first
    bool scatter = false;
    bool v = false;  // the kernels have a V of K's heads and head_dim
    Element v_in = VKROPE_F32, v_out = VKROPE_F32;
    AngleSource source = VKROPE_ANGLES_FACTORED_TEXTURE;
    bool has_ops = false;  // any tensor has ops
    Ops q_ops = {}, k_ops = {}, v_ops = {};

    // What fill() makes of a shape.
    Shape shape = {};
    std::uint32_t table_rows = 0;
    std::int32_t first_position = 0;    // without ids
    std::vector<std::int32_t> id = {};  // [batch, tokens]
    Bytes q = {}, k = {}, values = {};  // inputs [batch, tokens, heads, head_dim]
    float q_scale = 1;
    std::vector<float> factors = {};  // [batch, tokens]
    Parameters parameters = {};

    const Formats& formats() const { return all_formats()[format]; }
    bool ids() const { return positions >= Positions::ids; }
    // Norms over a token take all heads at one stride, in one dispatch.
    bool over_token() const {
        return q_ops.norm.span == VKROPE_NORM_SPAN_TOKEN ||
               k_ops.norm.span == VKROPE_NORM_SPAN_TOKEN ||
               v_ops.norm.span == VKROPE_NORM_SPAN_TOKEN;
    }
    bool in_place_possible() const {
        return q_in == q_out && k_in == k_out && pairing == pairing_out;
    }
    bool v_in_place_possible() const { return v && v_in == v_out && !scatter; }
};

/// Numbers of any kind, not yet of a shape.
Numbers draw_numbers(Choices& choices);

/// Gives them a shape, ids on both sides of 0 and a few beyond the `table_rows` that are covered,
/// and inputs; these are finite where a NaN or an infinity would make whole rows NaN.
void fill(Numbers& numbers, const Shape& shape, std::uint32_t table_rows, Random& random);

/// The kernel of these numbers, before anything that changes no bit is chosen.
KernelInfo info_of(const Numbers& numbers);

/// 2 or 3 of everything.
Shape small_shape(const Formats& formats, Random& random);

/// Limits that the device reports.
enum class Limits { own, few_buffers, short_ranges };

/// Options of a kernel, none of which may change a bit.
struct KernelChoice {
    AngleSource source = VKROPE_ANGLES_FACTORED_TEXTURE;
    Mapping mapping = VKROPE_MAPPING_CPU;
    bool push_descriptors = true;
    Limits limits = Limits::own;
    Conversion conversion = VKROPE_CONVERSION_INTEGER;  ///< native: if the device supports it
};

/// One for each mapping, whose bits are equal.
using Two = std::array<KernelChoice, 2>;
Two draw_kernels(const Numbers& numbers, Choices& choices);

/// Whether heads may lie in groups: not with norms, if their rows might be cut.
bool allows_groups(const Numbers& numbers, const KernelChoice& kernel);
/// Whether pages may be longer than a short range.
bool allows_long_pages(const Numbers& numbers, const KernelChoice& kernel);

/// Place of V: strides as K, a separate piece or separate strides, or in place.
enum class PlaceOfV { absent, as_k, apart, in_place };

/// One call.
struct Tuple {
    Arrangement in = Arrangement::bshd, out = Arrangement::bshd;
    bool in_place = false, q = true, k = true;
    Direction direction = VKROPE_FORWARD;
    Gain gain = VKROPE_GAIN_APPLY;
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
Tuple draw_tuple(const Numbers& numbers, const KernelChoice& kernel, Choices& choices);

}  // namespace vkrope::test
