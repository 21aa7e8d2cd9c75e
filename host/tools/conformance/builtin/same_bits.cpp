// SPDX-License-Identifier: MIT
// The same bits on every device: compares each with the source of the shader on the host, for 10^6
// and 10^8 elements. Uses only inputs for which devices have no choice: no NaN, and nothing
// subnormal in f32.
#include <bit>
#include <random>

#include "conformance/builtin/trial.hpp"
#include "conformance/shader_source/angles.hpp"

namespace vkrope::conformance {
namespace {

using Random = std::mt19937_64;
using shader::Unit;
using shader::Words;

constexpr std::uint32_t head_dim = 32, heads = 4, row_elements = heads * head_dim, unit = 8;
constexpr std::uint32_t direct_rows = 1 << 16;

struct Combination {
    Element element;
    Pairing pairing;
    AngleSource source;
};

/// Any finite f16; for the other types magnitudes from 2^-40 to 2^24, so that no product or sum is
/// subnormal or overflows.
std::vector<std::uint32_t> random_words(Element element, std::size_t count, Random& random) {
    std::vector<std::uint32_t> words(count);
    for (std::uint32_t& word : words) {
        const auto bits = static_cast<std::uint32_t>(random() >> 32);
        const auto exponent = [bits](int from) { return ((bits >> from & 0x3fu) + 87) << 23; };
        if (element == VKROPE_F32) {
            word = (bits & 0x807fffffu) | exponent(23);
        } else if (element == VKROPE_BF16) {
            word = (bits & 0x807f807fu) | exponent(23) | exponent(7) >> 16;
        } else {
            const std::uint32_t beyond = bits & (bits << 1) & (bits << 2) & (bits << 3) &
                                         (bits << 4) & 0x40004000u;
            word = bits & ~beyond;
        }
    }
    return words;
}

std::vector<std::int32_t> random_ids(AngleSource source, std::uint32_t tokens, Random& random) {
    const std::int64_t last = source == VKROPE_ANGLES_COMPUTED ? INT32_MAX
                              : source == VKROPE_ANGLES_FACTORED_TEXTURE
                                  ? std::int64_t{max_factored_positions} - 1
                                  : std::int64_t{direct_rows} - 1;
    std::vector<std::int32_t> ids(tokens);
    for (std::int32_t& id : ids) {
        // All magnitudes: half are large, the others increasingly small.
        const auto magnitude = static_cast<std::int64_t>(random() %
                                                         static_cast<std::uint64_t>(last + 1)) >>
                               std::min<int>(std::countr_zero(random()), 31);
        id = static_cast<std::int32_t>(random() % 2 == 0 ? magnitude : -magnitude);
    }
    const std::int64_t ends[] = {0,    1,     -1,
                                 last, -last, source == VKROPE_ANGLES_COMPUTED ? INT32_MIN : -last};
    std::copy(std::begin(ends), std::end(ends), ids.begin());
    return ids;
}

Words load(Element element, const std::uint32_t* w) {
    const glsl::uvec4 a = {w[0], w[1], w[2], w[3]};
    return element == VKROPE_F32 ? Words(a, {w[4], w[5], w[6], w[7]}) : Words(a, glsl::uvec4(0));
}

/// Returns the number of elements of the unit whose bits differ from `words`.
std::uint32_t differing(Element element, const Words& expected, const std::uint32_t* words) {
    const glsl::uvec4 &a = expected.a, &b = expected.b;
    const std::uint32_t right[] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < unit * element_bytes(element) / 4; ++i) {
        const std::uint32_t difference = right[i] ^ words[i];
        count += element == VKROPE_F32 ? difference != 0
                                       : ((difference & 0xffff) != 0) + (difference >> 16 != 0);
    }
    return count;
}

/// Evaluates the shader source for one row, eight pairs at a time; returns the number of elements
/// of `output` that differ.
std::uint64_t compare_row(const Combination& of, const Unit (&c)[2], const Unit (&s)[2],
                          const std::uint32_t* input, const std::uint32_t* output) {
    const auto element = static_cast<shader::uint>(of.element),
               pairing = of.pairing == VKROPE_INTERLEAVED ? shader::pairing_interleaved
                                                          : shader::pairing_half_split;
    const std::uint32_t elements_a_word = of.element == VKROPE_F32 ? 1 : 2;
    std::uint64_t differ = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
        const glsl::uvec2 channels = shader::vkrope_pair_channels(pairing, head_dim, unit,
                                                                  i * unit);
        const std::uint32_t first = channels.x / elements_a_word,
                            second = channels.y / elements_a_word;
        Unit x0, x1, y0, y1, a, b;
        shader::vkrope_to_pairs(
            pairing, unit, shader::vkrope_decode(element, load(of.element, input + first)),
            shader::vkrope_decode(element, load(of.element, input + second)), x0, x1);
        shader::vkrope_rotate(x0, x1, c[i], s[i], y0, y1);
        shader::vkrope_from_pairs(pairing, unit, y0, y1, a, b);
        differ += differing(of.element, shader::vkrope_encode(element, a), output + first) +
                  differing(of.element, shader::vkrope_encode(element, b), output + second);
    }
    return differ;
}

struct Round {
    double base, factor;
    Direction direction;
    Conversion conversion;
};

/// Rotates random rows and returns the number of elements that differ from the host result.
std::uint64_t differences(DeviceUnderTest& device, const Combination& of, const Round& round,
                          std::uint32_t tokens, Random& random) {
    Rotation rotation;
    rotation.pairing = of.pairing;
    rotation.head_dim = head_dim;
    rotation.rotary_dim = head_dim;
    rotation.inv_freq.resize(head_dim / 2);
    rotation.attention_factor = round.factor;
    check(default_inv_freq(round.base, head_dim, rotation.inv_freq.data()));
    const std::uint64_t rows = of.source == VKROPE_ANGLES_FACTORED_TEXTURE ? max_factored_positions
                                                                           : direct_rows;
    const AngleTable table = value_of(AngleTable::make(device.device(), rotation, of.source, rows));
    const std::uint32_t row_words = row_elements * element_bytes(of.element) / 4;
    const std::vector<std::uint32_t> input = random_words(of.element,
                                                          std::size_t{tokens} * row_words, random);
    const std::vector<std::int32_t> ids = random_ids(of.source, tokens, random);
    Buffer buffer = device.upload(input.data(), input.size() * 4),
           positions = device.upload(ids.data(), ids.size() * 4);
    DeviceUnderTest::KernelCall call;
    call.info = {.pairing = of.pairing,
                 .rotary_dim = head_dim,
                 .tensor = {{.in = of.element, .out = of.element, .head_dim = head_dim}},
                 .angles = of.source,
                 .positions = VKROPE_POSITIONS_IDS,
                 .conversion = round.conversion};
    call.call.tokens = tokens;
    call.call.in[Q] = call.call.out[Q] = {.where = buffer.whole(), .heads = heads};
    call.call.positions.ids = positions.whole();
    call.call.angles = table.angles();
    call.call.direction = round.direction;
    device.rotate(call);
    std::vector<std::uint32_t> output(input.size());
    device.download(buffer, output.data(), output.size() * 4);

    const shader_source::Angles angles(rotation.inv_freq, round.factor);
    std::uint64_t differ = 0;
    for (std::uint32_t token = 0; token < tokens; ++token) {
        Unit c[2], s[2];
        for (std::uint32_t i = 0; i < 2; ++i) {
            angles.at(of.source, ids[token], i * unit, c[i].a, s[i].a);
            angles.at(of.source, ids[token], i * unit + 4, c[i].b, s[i].b);
            if (round.direction == VKROPE_INVERSE) {
                s[i] = {s[i].a * -1.0f, s[i].b * -1.0f};
            }
        }
        for (std::uint32_t head = 0; head < heads; ++head) {
            const std::size_t at = std::size_t{token} * row_words + head * (row_words / heads);
            differ += compare_row(of, c, s, &input[at], &output[at]);
        }
    }
    return differ;
}

void hold_same_bits(DeviceUnderTest& device, const Combination& of, std::uint32_t rounds,
                    std::uint32_t tokens, Findings& findings) {
    constexpr double bases[] = {1e4, 5e5, 1e7}, factors[] = {1, 1.01, 1.1386, 1.19, 2};
    const bool native = of.element == VKROPE_F16 && device.traits().converts_f16;
    Random random(71);
    std::uint64_t differ = 0;
    for (std::uint32_t i = 0; i < rounds; ++i) {
        const Round round = {.base = bases[i % 3],
                             .factor = factors[i % 5],
                             .direction = i % 2 == 0 ? VKROPE_FORWARD : VKROPE_INVERSE,
                             .conversion = native && i / 2 % 2 == 0 ? VKROPE_CONVERSION_NATIVE
                                                                    : VKROPE_CONVERSION_INTEGER};
        differ += differences(device, of, round, tokens, random);
    }
    findings.hold(
        differ == 0,
        "{} of {} elements have different bits than the shader's source gives on the host", differ,
        std::uint64_t{rounds} * tokens * row_elements);
}

}  // namespace

void add_same_bits(Checks& checks) {
    for (const Element element : elements) {
        for (const Pairing pairing : pairings) {
            for (const AngleSource source : our_sources) {
                const Combination of = {element, pairing, source};
                const std::string name = fmt::format("{}_{}_{}", name_of(element), name_of(pairing),
                                                     name_of(source));
                // Quick: each type with each source, and each pairing with both.
                const bool quick =
                    (static_cast<std::size_t>(element) + static_cast<std::size_t>(source)) % 2 ==
                    static_cast<std::size_t>(pairing == VKROPE_INTERLEAVED);
                checks.add(
                    name,
                    [=](DeviceUnderTest& device, Findings& findings) {
                        hold_same_bits(device, of, 6, 1303, findings);
                    },
                    quick ? Level::quick : Level::full);
                checks.add(
                    name + "_100_million",
                    [=](DeviceUnderTest& device, Findings& findings) {
                        hold_same_bits(device, of, 30, 26042, findings);
                    },
                    Level::full);
            }
        }
    }
}

}  // namespace vkrope::conformance
