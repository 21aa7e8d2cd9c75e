// SPDX-License-Identifier: MIT
#include "tuples.hpp"

#include <algorithm>
#include <cmath>

namespace vkrope::test {

namespace {

const char* name(Pairing pairing) {
    return pairing == Pairing::half_split ? "half_split" : "interleaved";
}

const char* name(AngleSource source) {
    switch (source) {
        case AngleSource::factored_texture: return "factored_texture";
        case AngleSource::computed: return "computed";
        case AngleSource::direct_texture: return "direct_texture";
        default: return "direct_buffer";
    }
}

const char* name(Element element) {
    constexpr const char* names[] = {"f32", "f16", "bf16"};
    return names[std::size_t(element)];
}

std::string arrow(const char* from, const char* to) {
    return std::string(from) + " -> " + to;
}

std::string text(const Norm& norm, bool present) {
    if (!present || norm.kind == NormKind::none) return "none";
    constexpr const char* weights[] = {"no weight", "weight of channels", "weight of heads"};
    return std::string(norm.kind == NormKind::rms ? "RMS" : "layer") +
           (norm.span == NormSpan::head ? ", head" : ", token") +
           (norm.place == NormPlace::before ? ", before, " : ", after, ") +
           weights[std::size_t(norm.weight)];
}

std::string steps_text(const Finish& finish, bool present) {
    std::string text;
    const auto add = [&](bool has, const char* step) {
        if (has && present) text += text.empty() ? step : std::string(", ") + step;
    };
    add(finish.bias != ParameterShape::none, "bias");
    add(finish.clip != 0, "clip");
    add(finish.scale != 1, "scale");
    add(finish.scale_call, "scale of the call");
    add(finish.scale_tokens, "of tokens");
    return text.empty() ? "none" : text;
}

const std::vector<Formats>& all_formats() {
    static const std::vector<Formats> formats = {
        {64, 0, 64, 0, 64},       {80, 0, 80, 0, 32},
        {32, 0, 32, 0, 32},       {7, 1, 7, 2, 4},
        {192, 128, 64, 0, 64},  // MLA: a part of Q's row, all of K's
        {10, 2, 10, 2, 6},        {48, 0, 48, 0, 48, {{0, 24}, {24, 24}}},  // 2-D vision
        {96, 16, 64, 0, 64},      {40, 2, 44, 4, 24, {{0, 8}, {12, 4}, {20, 12}}},
        {576, 512, 576, 512, 64}, {24, 1, 21, 0, 14, {{0, 2}, {3, 4}, {8, 6}, {16, 2}}},
        {16, 8, 16, 0, 8},        {2, 0, 6, 3, 2},
        {20, 0, 20, 0, 20},       {128, 0, 128, 0, 128},
        {12, 1, 9, 1, 8},         {30, 4, 22, 4, 12, {{0, 4}, {6, 8}}},
    };
    return formats;
}

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
        std::uint32_t bits = element == Element::f32 ? any_f32(random) : std::uint32_t(random());
        if (everywhere || is_rotated(formats, offset, std::uint32_t(i % head_dim))) {
            constexpr int exponents[] = {0, 0, 0, 0, 0, 10, -8, -20};  // the last: subnormal in f16
            const long double x = (static_cast<long double>(random() >> 32) / 0x1p32L - 0.5L) * 8;
            bits = reference::narrow(type_of(element), std::ldexp(x, exponents[random() % 8]));
        }
        std::memcpy(bytes.data() + i * element_bytes(element), &bits, element_bytes(element));
    }
    for (std::size_t row = period; row < rows; ++row)
        std::memcpy(&bytes[row * row_bytes], &bytes[(row - period) * row_bytes], row_bytes);
    return bytes;
}

}  // namespace

std::string Formats::text() const {
    std::string text = std::to_string(q_head_dim) + "/" + std::to_string(k_head_dim) + " at " +
                       std::to_string(q_offset) + "/" + std::to_string(k_offset) + ", R " +
                       std::to_string(rotary_dim);
    if (!windows.empty()) text += " in " + std::to_string(windows.size()) + " windows";
    return text;
}

const Formats& formats_of(std::uint32_t index) {
    return all_formats()[index % all_formats().size()];
}

Shape small_shape(const Formats& formats, Random& random) {
    if (formats.q_head_dim > 100) return {.batch = 2, .tokens = 2, .groups = 2, .q_per_group = 2};
    const auto some = [&] { return 2 + below(random, 2); };
    return {.batch = some(), .tokens = some(), .groups = some(), .q_per_group = some()};
}

namespace {

void fill_inputs(Numbers& numbers, bool finite, Random& random) {
    const Formats& w = numbers.formats;
    const std::uint32_t rows = numbers.shape.rows(), k_rows = rows * numbers.shape.groups;
    numbers.q = rows_of(numbers.q_in, w, w.q_head_dim, w.q_offset, rows * numbers.shape.q_heads(),
                        finite, random);
    numbers.k = rows_of(numbers.k_in, w, w.k_head_dim, w.k_offset, k_rows, finite, random);
    if (numbers.v)
        numbers.values = rows_of(numbers.v_in, w, w.k_head_dim, w.k_offset, k_rows, finite, random);
}

ParameterShape any_shape(Random& random) {
    return ParameterShape(below(random, 3));
}

Finish any_finish(bool is_q, bool over_token, Random& random) {
    Finish finish;
    if (below(random, 3) == 0) finish.bias = any_shape(random);
    if (below(random, 3) == 0) finish.clip = 1.5f;
    if (below(random, 3) == 0) finish.scale = 0.3f;
    finish.scale_call = is_q && below(random, 2) == 1;
    finish.scale_tokens = below(random, 2) == 1;
    Norm& norm = finish.norm;
    norm.kind = NormKind(1 + below(random, 2));
    norm.span = over_token ? NormSpan::token : NormSpan::head;
    norm.place = NormPlace(below(random, 2));
    norm.eps = 1e-6f;
    norm.weight = any_shape(random);
    if (norm.weight != ParameterShape::none) norm.weight_offset = below(random, 2);
    if (norm.kind == NormKind::layer) norm.bias = any_shape(random);
    return finish;
}

}  // namespace

Numbers numbers_of(std::uint32_t index, const Formats& formats, const Shape& shape,
                   std::uint32_t table_rows, Random& random) {
    Numbers numbers;
    numbers.pairing = Pairing(index % 2);
    numbers.pairing_out = Pairing(index / 2 % 2);
    const std::uint32_t types = index / 4;
    numbers.q_in = numbers.k_in = Element(types % 3);
    numbers.q_out = numbers.k_out = Element(types / 3);
    if (index % 7 == 3) {  // K has other types
        numbers.k_in = Element((types + 1) % 3);
        numbers.k_out = Element((types / 3 + 2) % 3);
    }
    numbers.formats = formats;
    numbers.shape = shape;
    numbers.table_rows = table_rows;
    numbers.ids = index % 3 != 0;
    numbers.shared_ids = index % 3 == 2;
    const auto rows = std::int32_t(table_rows);
    const std::int32_t firsts[] = {5, -2, rows - 2};  // the last one leaves the table
    numbers.first_position = firsts[index / 3 % 3];
    for (std::uint32_t i = 0; i < shape.rows(); ++i) {
        const std::uint32_t same = i < shape.tokens || !numbers.shared_ids ? i : i - shape.tokens;
        numbers.id.push_back(same < i ? numbers.id[same]
                             : same == 0
                                 ? (index % 2 == 0 ? rows : INT32_MIN)  // outside the table
                                 : std::int32_t(below(random, 2 * table_rows + 11)) - rows - 5);
    }
    numbers.scatter = index % 4 == index / 4 % 4;
    numbers.v = index % 4 == index / 8 % 4;  // nine, of every pairing
    if (numbers.v) {                         // from and to every type
        const std::uint32_t nth = index / 4;
        numbers.v_in = Element(nth % 3);
        numbers.v_out = Element((nth / 3 + nth) % 3);
    }
    fill_inputs(numbers, false, random);
    return numbers;
}

KernelInfo info_of(const Numbers& numbers) {
    const Formats& w = numbers.formats;
    KernelInfo info{
        .pairing = numbers.pairing,
        .rotary_dim = w.rotary_dim,
        .q = {numbers.q_in, numbers.q_out, w.q_head_dim, w.q_offset},
        .k = {numbers.k_in, numbers.k_out, w.k_head_dim, w.k_offset},
        .v = numbers.v ? HeadFormat{numbers.v_in, numbers.v_out, w.k_head_dim, 0} : HeadFormat{},
        .positions = numbers.ids ? PositionSource::ids : PositionSource::implicit,
        .scatter_k = numbers.scatter,
        .q_finish = numbers.q_finish,
        .k_finish = numbers.k_finish,
        .v_finish = numbers.v_finish};
    if (numbers.pairing_out != numbers.pairing || numbers.ids)
        info.pairing_out = numbers.pairing_out;  // otherwise left at its default
    std::copy(w.windows.begin(), w.windows.end(), info.windows);
    if (!numbers.has_finish()) return info;
    info.q_heads = numbers.shape.q_heads();
    info.k_heads = numbers.shape.groups;
    if (numbers.v) info.v_heads = numbers.shape.groups;
    return info;
}

Numbers with_finish(Numbers numbers, bool short_ranges, Random& random) {
    fill_inputs(numbers, true, random);
    const bool over_token = !short_ranges && below(random, 2) == 1;
    numbers.q_finish = any_finish(true, over_token, random);
    numbers.k_finish = any_finish(false, over_token && below(random, 2) == 1, random);
    if (below(random, 4) == 0) numbers.k_finish.norm = {};
    if (numbers.v) numbers.v_finish = any_finish(false, false, random);
    if (numbers.q_finish.scale_call) numbers.q_scale = 0.7f;
    numbers.factors = random_factors(numbers.shape.rows());
    numbers.parameters = parameters_of(info_of(numbers));
    return numbers;
}

std::vector<KernelChoice> kernels_for(std::uint32_t index, const Numbers& numbers) {
    const bool push = index % 2 == 0;
    constexpr AngleSource sources[][2] = {
        {AngleSource::factored_texture, AngleSource::direct_buffer},
        {AngleSource::direct_texture, AngleSource::computed},
        {AngleSource::factored_texture, AngleSource::computed},
        {AngleSource::direct_texture, AngleSource::direct_buffer}};
    const auto& [one, other] = sources[index / 2 % 4];
    std::vector<KernelChoice> kernels = {
        {one, Mapping::cpu, push, Limits::own, Conversion::integer},
        {other, Mapping::gpu, !push, Limits::own, Conversion::native},
        {one, Mapping::gpu, !push, Limits::own, Conversion::native},
        {other, Mapping::cpu, push, Limits::own, Conversion::integer}};
    if (index % 3 == 0 && !numbers.scatter)
        kernels[0].limits = kernels[1].limits = Limits::few_buffers;  // too few for slots
    if (index % 3 == 1) kernels[2].limits = Limits::short_ranges;
    return kernels;
}

Tuple random_tuple(const Numbers& numbers, const KernelChoice& kernel, Random& random) {
    Tuple tuple;
    tuple.in_place = numbers.in_place_possible() && below(random, 3) == 0;
    // With norms, none where heads lie in groups, if these might be cut.
    const bool no_groups = numbers.over_token() ||
                           (numbers.has_finish() && kernel.limits == Limits::short_ranges);
    const auto any = [&](std::uint32_t count) {
        Arrangement arrangement;
        do arrangement = Arrangement(below(random, count));
        while (no_groups && (arrangement == Arrangement::grouped_qkv ||
                             arrangement == Arrangement::groups_first));
        return arrangement;
    };
    tuple.in = any(packable_arrangements + (tuple.in_place ? 0 : 1));
    tuple.out = tuple.in_place ? tuple.in : any(packable_arrangements);
    const std::uint32_t present = below(random, 4);
    tuple.q = present != 1;
    tuple.k = present != 2 || tuple.in == Arrangement::broadcast;
    // A scattered K is never in place; without Q the only arrangement of the output is the cache.
    if (numbers.scatter && tuple.in_place) tuple.q = true;
    if (numbers.scatter && !tuple.q) tuple.out = cache_of_k;
    tuple.direction = Direction(below(random, 2));
    tuple.gain = Gain(below(random, 3));
    tuple.factor = below(random, 2) == 1;
    tuple.counts = !(kernel.limits == Limits::few_buffers && !numbers.has_finish() &&
                     kernel.source == AngleSource::direct_buffer) &&
                   below(random, 2) == 1;
    if (numbers.v) {
        const bool stays = numbers.v_in == numbers.v_out && !numbers.scatter &&
                           tuple.in != Arrangement::broadcast;
        tuple.v = PlaceOfV(below(random, stays ? 4 : 3));
    }
    if (has_slots(numbers, tuple)) {
        constexpr std::uint32_t page_sizes[] = {1, 3, 16};
        tuple.page_size = page_sizes[below(random, kernel.limits == Limits::short_ranges ? 2 : 3)];
        tuple.pages_by_head = below(random, 2) == 1;
        tuple.wide_slots = below(random, 2) == 1;
        tuple.odd_pages = below(random, 3) == 0;
    }
    return tuple;
}

Key key_of(const Numbers& numbers, const KernelChoice& kernel, const Tuple& tuple) {
    const bool q = tuple.q;
    return {std::uint32_t(tuple.in),
            std::uint32_t(tuple.out),
            tuple.in_place,
            std::uint32_t(numbers.pairing),
            std::uint32_t(numbers.pairing_out),
            std::uint32_t(q ? numbers.q_in : numbers.k_in),
            std::uint32_t(q ? numbers.q_out : numbers.k_out),
            std::uint32_t(tuple.direction),
            std::uint32_t(tuple.gain),
            tuple.factor,
            std::uint32_t(kernel.source),
            numbers.has_finish()};
}

std::vector<std::pair<std::string, std::string>> values_of(const Numbers& numbers,
                                                           const KernelChoice& kernel,
                                                           const Tuple& tuple) {
    constexpr const char* gains[] = {"apply", "omit", "divide_out"};
    constexpr const char* limits[] = {"as they are", "few storage buffers", "short storage ranges"};
    std::string slots = "none";
    if (has_slots(numbers, tuple)) {
        slots = std::string(tuple.wide_slots ? "int64" : "int32") + ", pages of " +
                std::to_string(tuple.page_size) + (tuple.pages_by_head ? ", by head" : "") +
                (tuple.odd_pages ? ", odd" : "");
    }
    const std::string types = tuple.q ? arrow(name(numbers.q_in), name(numbers.q_out))
                                      : arrow(name(numbers.k_in), name(numbers.k_out));
    const std::string same = numbers.q_in == numbers.k_in && numbers.q_out == numbers.k_out
                                 ? "Q and K alike"
                                 : "K's own";
    return {{"layout in", name(tuple.in)},
            {"layout out", name(tuple.out)},
            {"place", tuple.in_place ? "in place" : "out of place"},
            {"pairing", arrow(name(numbers.pairing), name(numbers.pairing_out))},
            {"types", types},
            {"types of K", same},
            {"direction", tuple.direction == Direction::forward ? "forward" : "inverse"},
            {"gain", std::string(gains[std::size_t(tuple.gain)]) +
                         (tuple.factor ? ", factor not 1" : ", factor 1")},
            {"source", name(kernel.source)},
            {"conversion",
             kernel.conversion == Conversion::native ? "native, where the device can" : "integer"},
            {"tensors", tuple.q && tuple.k ? "Q and K"
                        : tuple.q          ? "Q"
                                           : "K"},
            {"V", tuple.v == PlaceOfV::absent ? "absent"
                  : tuple.v == PlaceOfV::as_k
                      ? arrow(name(numbers.v_in), name(numbers.v_out)) + ", laid out as K"
                  : tuple.v == PlaceOfV::apart
                      ? arrow(name(numbers.v_in), name(numbers.v_out)) + ", strides of its own"
                      : "in place"},
            {"norm of Q", text(numbers.q_finish.norm, tuple.q)},
            {"norm of K", text(numbers.k_finish.norm, tuple.k)},
            {"norm of V", text(numbers.v_finish.norm, tuple.v != PlaceOfV::absent)},
            {"steps of Q", steps_text(numbers.q_finish, tuple.q)},
            {"with a finish", numbers.has_finish()
                                  ? std::string(tuple.in_place ? "in place, " : "out of place, ") +
                                        types + (slots == "none" ? "" : ", slots")
                                  : "none"},
            {"head_dim Q/K", numbers.formats.text()},
            {"positions", !numbers.ids         ? "implicit"
                          : numbers.shared_ids ? "ids, one row for all"
                                               : "ids"},
            {"slots", slots},
            {"counter", tuple.counts ? "yes" : "no"},
            {"mapping", kernel.mapping == Mapping::cpu ? "cpu" : "gpu"},
            {"descriptors",
             device(kernel.push_descriptors).ref().enabled & push_descriptor ? "push" : "sets"},
            {"limits", limits[std::size_t(kernel.limits)]}};
}

}  // namespace vkrope::test
