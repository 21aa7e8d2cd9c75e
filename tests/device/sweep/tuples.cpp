// SPDX-License-Identifier: MIT
#include "tuples.hpp"

#include <algorithm>
#include <cmath>

#include "meaning.hpp"

namespace vkrope::test {

std::span<const Formats> all_formats() {
    static const std::vector<Formats> formats = {
        {"32", 32, 0, 32, 0, 32},
        {"7, 4 turn from 1 / 2", 7, 1, 7, 2, 4},
        {"10, 6 turn from 2", 10, 2, 10, 2, 6},
        {"24 / 21, 14 turn in 4 windows", 24, 1, 21, 0, 14, {{0, 2}, {3, 4}, {8, 6}, {16, 2}}},
        {"16, 8 turn from 8 / 0", 16, 8, 16, 0, 8},
        {"12 / 9, 8 turn from 1", 12, 1, 9, 1, 8},
        {"40 / 44, 24 turn in 3 windows", 40, 2, 44, 4, 24, {{0, 8}, {12, 4}, {20, 12}}},
        {"2 / 6, 2 turn from 0 / 3", 2, 0, 6, 3, 2},
        {"20", 20, 0, 20, 0, 20},
        {"30 / 22, 12 turn in 2 windows", 30, 4, 22, 4, 12, {{0, 4}, {6, 8}}},
        {"48 in 2 windows", 48, 0, 48, 0, 48, {{0, 24}, {24, 24}}},  // 2-D vision
        {"64", 64, 0, 64, 0, 64},
        {"80, 32 turn", 80, 0, 80, 0, 32},
        {"192 / 64, 64 turn from 128 / 0", 192, 128, 64, 0, 64},  // MLA: a part of Q's, all of K's
        {"96 / 64, 64 turn from 16 / 0", 96, 16, 64, 0, 64},
        {"576, 64 turn from 512", 576, 512, 576, 512, 64},
        {"128", 128, 0, 128, 0, 128},
    };
    return formats;
}

namespace {

bool is_rotated(const Formats& formats, std::uint32_t offset, std::uint32_t channel) {
    if (formats.windows.empty()) return channel >= offset && channel < offset + formats.rotary_dim;
    for (const Window& window : formats.windows) {
        if (channel >= offset + window.offset &&
            channel < offset + window.offset + window.rotary_dim)
            return true;
    }
    return false;
}

// Random bits; every other value lies halfway between two neighbours in f16, or in bf16.
std::uint32_t any_f32(Random& random) {
    const auto bits = std::uint32_t(random());
    const std::uint32_t near_one = 0x38800000 + bits % 0x0f000000;  // 2^-14 to 2^16: normal in f16
    switch (random() % 4) {
        case 0: return (near_one & ~0x1fffu) | 0x1000;
        case 1: return (near_one & ~0xffffu) | 0x8000;
        default: return bits;
    }
}

// Numbers of all magnitudes in rotated channels, random bits elsewhere; or such numbers everywhere.
// The rows repeat after a prime number of rows.
Bytes rows_of(Element element, const Formats& formats, std::uint32_t head_dim, std::uint32_t offset,
              std::uint32_t rows, bool everywhere, Random& random) {
    constexpr std::uint32_t period = 9973;
    const std::size_t row_bytes = std::size_t{head_dim} * element_bytes(element);
    Bytes bytes(rows * row_bytes);
    for (std::size_t i = 0; i < std::size_t{std::min(rows, period)} * head_dim; ++i) {
        std::uint32_t bits = element == VKROPE_F32 ? any_f32(random) : std::uint32_t(random());
        if (everywhere || is_rotated(formats, offset, std::uint32_t(i % head_dim))) {
            constexpr int exponents[] = {0, 0, 0, 0, 0, 10, -8, -20};  // the last: subnormal in f16
            const long double x = (static_cast<long double>(random() >> 32) / 0x1p32L - 0.5L) * 8;
            bits = oracle::narrow(type_of(element), std::ldexp(x, exponents[random() % 8]));
        }
        std::memcpy(bytes.data() + i * element_bytes(element), &bits, element_bytes(element));
    }
    for (std::size_t row = period; row < rows; ++row)
        std::memcpy(&bytes[row * row_bytes], &bytes[(row - period) * row_bytes], row_bytes);
    return bytes;
}

}  // namespace

Shape small_shape(const Formats& formats, Random& random) {
    if (formats.q_head_dim > 100) return {.batch = 2, .tokens = 2, .groups = 2, .q_per_group = 2};
    const auto some = [&] { return 2 + below(random, 2); };
    return {.batch = some(), .tokens = some(), .groups = some(), .q_per_group = some()};
}

namespace {

Ops any_ops(bool is_q, Choices& choices) {
    Ops ops;
    ops.bias = choices.any<ParameterShape>(3);
    if (choices.coin()) ops.clip = 1.5f;
    if (choices.coin()) ops.scale = 0.3f;
    ops.scale_call = is_q && choices.coin();
    ops.scale_tokens = choices.coin();
    Norm& norm = ops.norm;
    norm.kind = choices.any<NormKind>(3);
    if (norm.kind == VKROPE_NORM_NONE) return ops;
    norm.span = choices.any<NormSpan>(2);
    norm.place = choices.any<NormPlace>(2);
    norm.eps = 1e-6f;
    norm.weight = choices.any<ParameterShape>(3);
    if (norm.weight != VKROPE_PARAMETER_NONE) norm.weight_offset = choices.below(2);
    if (norm.kind == VKROPE_NORM_LAYER) norm.bias = choices.any<ParameterShape>(3);
    return ops;
}

}  // namespace

Numbers draw_numbers(Choices& choices) {
    Numbers numbers;
    numbers.has_ops = choices.coin();
    // Long rows with ops take seconds to compile.
    const auto formats = std::uint32_t(all_formats().size());
    numbers.format = choices.below(numbers.has_ops ? formats_with_ops : formats);
    numbers.pairing = choices.any(2, VKROPE_HALF_SPLIT);
    numbers.pairing_out = choices.any(2, VKROPE_HALF_SPLIT);
    numbers.q_in = choices.any<Element>(3);
    // Every second kernel stores what it loads, so that calls in place are not rare.
    numbers.q_out = choices.coin() ? numbers.q_in : choices.any<Element>(3);
    const std::uint32_t others = choices.coin() ? choices.below(3) : 0;  // K's own types
    numbers.k_in = Element((std::uint32_t(numbers.q_in) + others) % 3);
    numbers.k_out = Element((std::uint32_t(numbers.q_out) + others) % 3);
    numbers.positions = choices.any<Positions>(5);
    numbers.scatter = choices.coin();
    numbers.source = choices.any(4, VKROPE_ANGLES_FACTORED_TEXTURE);
    numbers.v = choices.coin();
    if (numbers.v) {
        numbers.v_in = choices.any<Element>(3);
        numbers.v_out = choices.coin() ? numbers.v_in : choices.any<Element>(3);
    }
    if (numbers.has_ops) {
        numbers.q_ops = any_ops(true, choices);
        numbers.k_ops = any_ops(false, choices);
        if (numbers.v) numbers.v_ops = any_ops(false, choices);
    }
    return numbers;
}

void fill(Numbers& numbers, const Shape& shape, std::uint32_t table_rows, Random& random) {
    numbers.shape = shape;
    numbers.table_rows = table_rows;
    const auto rows = std::int32_t(table_rows);
    numbers.first_position = numbers.positions == Positions::after_zero    ? 5
                             : numbers.positions == Positions::across_zero ? -2
                                                                           : rows - 2;
    const bool shared = numbers.positions == Positions::shared_ids;
    for (std::uint32_t i = 0; i < shape.rows(); ++i) {
        const std::uint32_t same = i < shape.tokens || !shared ? i : i - shape.tokens;
        numbers.id.push_back(same < i ? numbers.id[same]
                             : same == 0
                                 ? (below(random, 2) == 1 ? rows : INT32_MIN)  // outside the table
                                 : std::int32_t(below(random, 2 * table_rows + 11)) - rows - 5);
    }
    const Formats& w = numbers.formats();
    const bool finite = numbers.has_ops;
    const std::uint32_t q_rows = shape.rows() * shape.q_heads(),
                        k_rows = shape.rows() * shape.groups;
    numbers.q = rows_of(numbers.q_in, w, w.q_head_dim, w.q_offset, q_rows, finite, random);
    numbers.k = rows_of(numbers.k_in, w, w.k_head_dim, w.k_offset, k_rows, finite, random);
    if (numbers.v)
        numbers.values = rows_of(numbers.v_in, w, w.k_head_dim, w.k_offset, k_rows, finite, random);
    if (!numbers.has_ops) return;
    if (numbers.q_ops.scale_call) numbers.q_scale = 0.7f;
    numbers.factors = random_factors(shape.rows());
    numbers.parameters = parameters_of(info_of(numbers));
}

KernelInfo info_of(const Numbers& numbers) {
    const Formats& w = numbers.formats();
    KernelInfo info{.pairing = numbers.pairing,
                    .rotary_dim = w.rotary_dim,
                    .tensor = {{.in = numbers.q_in,
                                .out = numbers.q_out,
                                .head_dim = w.q_head_dim,
                                .rotary_offset = w.q_offset,
                                .ops = numbers.q_ops},
                               {.in = numbers.k_in,
                                .out = numbers.k_out,
                                .head_dim = w.k_head_dim,
                                .rotary_offset = w.k_offset,
                                .ops = numbers.k_ops},
                               numbers.v ? TensorInfo{numbers.v_in, numbers.v_out, w.k_head_dim, 0,
                                                      0, numbers.v_ops}
                                         : TensorInfo{}},
                    .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                    .positions = numbers.ids() ? VKROPE_POSITIONS_IDS : VKROPE_POSITIONS_IMPLICIT,
                    .scatter_kv = numbers.scatter};
    if (numbers.pairing_out != numbers.pairing || numbers.ids())
        info.pairing_out = numbers.pairing_out;  // otherwise left at its default
    std::copy(w.windows.begin(), w.windows.end(), info.windows);
    if (!numbers.has_ops) return info;
    info.tensor[Q].heads = numbers.shape.q_heads();
    info.tensor[K].heads = numbers.shape.groups;
    if (numbers.v) info.tensor[V].heads = numbers.shape.groups;
    return info;
}

Two draw_kernels(const Numbers& numbers, Choices& choices) {
    KernelChoice one{.source = numbers.source,
                     .mapping = choices.any(2, VKROPE_MAPPING_GPU),
                     .push_descriptors = choices.coin(),
                     .conversion = choices.any(2, VKROPE_CONVERSION_NATIVE)};
    KernelChoice other = one;
    // Tables in a texture and in a buffer have the same bits.
    if (one.source == VKROPE_ANGLES_DIRECT_TEXTURE) other.source = VKROPE_ANGLES_DIRECT_BUFFER;
    if (one.source == VKROPE_ANGLES_DIRECT_BUFFER) other.source = VKROPE_ANGLES_DIRECT_TEXTURE;
    other.mapping = one.mapping == VKROPE_MAPPING_CPU ? VKROPE_MAPPING_GPU : VKROPE_MAPPING_CPU;
    other.push_descriptors = !one.push_descriptors;
    other.conversion = one.conversion == VKROPE_CONVERSION_NATIVE ? VKROPE_CONVERSION_INTEGER
                                                                  : VKROPE_CONVERSION_NATIVE;
    for (KernelChoice* kernel : {&one, &other}) {
        kernel->limits = choices.any<Limits>(3);
        const bool too_few = numbers.scatter || numbers.ids(),  // for slots and ids
            too_short = numbers.over_token() || kernel->source == VKROPE_ANGLES_DIRECT_BUFFER;
        if ((kernel->limits == Limits::few_buffers && too_few) ||
            (kernel->limits == Limits::short_ranges && too_short))
            kernel->limits = Limits::own;
    }
    return {one, other};
}

bool allows_groups(const Numbers& numbers, const KernelChoice& kernel) {
    return !numbers.over_token() && !(numbers.has_ops && kernel.limits == Limits::short_ranges);
}

bool allows_long_pages(const Numbers& numbers, const KernelChoice& kernel) {
    return numbers.scatter && kernel.limits != Limits::short_ranges;
}

Tuple draw_tuple(const Numbers& numbers, const KernelChoice& kernel, Choices& choices) {
    Tuple tuple;
    tuple.in_place = numbers.in_place_possible() && choices.below(3) == 0;
    const bool groups = allows_groups(numbers, kernel);
    const auto arrangement_of = [&](std::uint32_t count) {
        Arrangement arrangement;
        do arrangement = choices.any<Arrangement>(count);
        while (!groups && (arrangement == Arrangement::grouped_qkv ||
                           arrangement == Arrangement::groups_first));
        return arrangement;
    };
    tuple.in = arrangement_of(packable_arrangements + (tuple.in_place ? 0 : 1));
    tuple.out = tuple.in_place ? tuple.in : arrangement_of(packable_arrangements);
    const std::uint32_t present = choices.below(4);
    tuple.q = present != 1;
    tuple.k = present != 2 || tuple.in == Arrangement::broadcast;
    // A scattered K is never in place; without Q the only arrangement of the output is the cache.
    if (numbers.scatter && tuple.in_place) tuple.q = true;
    if (numbers.scatter && !tuple.q) tuple.out = cache_of_k;
    tuple.direction = choices.any<Direction>(2);
    tuple.gain = choices.any<Gain>(3);
    tuple.factor = choices.coin();
    const bool may_be_outside = kernel.source != VKROPE_ANGLES_COMPUTED || numbers.ids() ||
                                numbers.scatter;
    tuple.counts = may_be_outside &&
                   !(kernel.limits == Limits::few_buffers && !numbers.has_ops &&
                     kernel.source == VKROPE_ANGLES_DIRECT_BUFFER) &&
                   choices.coin();
    if (numbers.v) {
        const bool stays = numbers.v_in_place_possible() && tuple.in != Arrangement::broadcast;
        tuple.v = choices.any<PlaceOfV>(stays ? 4 : 3);
    }
    if (has_slots(numbers, tuple)) {
        constexpr std::uint32_t page_sizes[] = {1, 3, 16};
        tuple.page_size = page_sizes[choices.below(allows_long_pages(numbers, kernel) ? 3 : 2)];
        tuple.pages_by_head = choices.coin();
        tuple.wide_slots = choices.coin();
        tuple.odd_pages = choices.below(3) == 0;
    }
    return tuple;
}

}  // namespace vkrope::test
