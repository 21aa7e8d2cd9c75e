// SPDX-License-Identifier: MIT
#include "verify/oracle/quantise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "verify/oracle/rounded.hpp"
#include "verify/oracle/rows.hpp"

namespace vkrope::oracle {
namespace {

constexpr std::size_t in_block = 32;
constexpr long double unit = 0x1p-24L;

bool has_fifth_bit(Store store) {
    return store == Store::q5_0 || store == Store::q5_1;
}

void append(std::vector<std::uint8_t>& bytes, std::uint32_t field, int size) {
    for (int i = 0; i < size; ++i) bytes.push_back(std::uint8_t(field >> 8 * i));
}

std::uint32_t field_at(const std::uint8_t* bytes, int size) {
    std::uint32_t field = 0;
    for (int i = 0; i < size; ++i) field |= std::uint32_t{bytes[i]} << 8 * i;
    return field;
}

// ---- Types without blocks ----

struct Float8 {
    int fraction_bits = 0, bias = 0;
    unsigned largest = 0;  // the code of the largest finite value
};

Float8 format_of(Store store) {
    return store == Store::e4m3fn ? Float8{3, 7, 0x7e} : Float8{2, 15, 0x7b};
}

// Returns the value of a code without its sign; the code is not an infinity or a NaN.
double value_of(const Float8& format, unsigned code) {
    const unsigned one = 1u << format.fraction_bits;
    const unsigned exponent = code / one, fraction = code % one;
    const int lowest = 1 - format.bias - format.fraction_bits;
    return exponent == 0 ? std::ldexp(fraction, lowest)
                         : std::ldexp(one + fraction, lowest + int(exponent) - 1);
}

// Returns the midpoints between the values of successive codes, ascending.
std::vector<double> middles_of(const Float8& format) {
    std::vector<double> middles;
    for (unsigned code = 0; code < format.largest; ++code)
        middles.push_back((value_of(format, code) + value_of(format, code + 1)) / 2);
    return middles;
}

std::uint8_t nearest_float8(Store store, float number) {
    if (std::isnan(number)) return 0x7f;
    static const std::vector<double> of_e4m3fn = middles_of(format_of(Store::e4m3fn)),
                                     of_e5m2 = middles_of(format_of(Store::e5m2));
    const std::vector<double>& middles = store == Store::e4m3fn ? of_e4m3fn : of_e5m2;
    const double magnitude = std::fabs(double{number});
    const auto next = std::lower_bound(middles.begin(), middles.end(), magnitude);
    auto code = unsigned(next - middles.begin());
    if (next != middles.end() && *next == magnitude && code % 2 != 0)
        ++code;  // a tie goes to the even code
    return std::uint8_t(code | (std::signbit(number) ? 0x80u : 0u));
}

int nearest_integer(float number, double largest) {
    if (std::isnan(number)) return 0;
    const double nearest = std::round(double{number});  // ties away from zero
    return int(std::clamp(nearest, -largest, largest));
}

float value_of(Store store, std::uint8_t code) {
    if (store == Store::int8) return float(std::int8_t(code));
    if (store == Store::int4) return float(code < 8 ? code : code - 16);
    const unsigned magnitude = code & 0x7fu;
    double value = value_of(format_of(store), magnitude);
    if (store == Store::e4m3fn && magnitude == 0x7f) {
        value = std::numeric_limits<double>::quiet_NaN();
    } else if (store == Store::e5m2 && magnitude >= 0x7c) {
        value = magnitude == 0x7c ? std::numeric_limits<double>::infinity()
                                  : std::numeric_limits<double>::quiet_NaN();
    }
    return float(code >= 0x80 ? -value : value);
}

// Returns bytes with the codes of channels, each of which has a byte in `codes`.
std::vector<std::uint8_t> packed(Store store, const std::vector<std::uint8_t>& codes) {
    if (store != Store::int4) return codes;
    std::vector<std::uint8_t> bytes;
    for (std::size_t c = 0; c < codes.size(); c += 2)
        bytes.push_back(std::uint8_t(codes[c] | codes[c + 1] << 4));
    return bytes;
}

// ---- Blocks ----

// d and m of a block. Of iq4_nl d is d0 in quantise_blocks().
struct Scales {
    float d = 0, m = 0;
};

Scales scales_of(Store store, std::span<const float> block) {
    float first_largest = 0, min = 0, max = 0;
    bool any = false;
    for (const float x : block) {
        if (std::isnan(x)) continue;
        if (std::fabs(x) > std::fabs(first_largest)) first_largest = x;
        min = !any || x < min ? x : min;
        max = !any || x > max ? x : max;
        any = true;
    }
    if (has_minimum(store)) {
        const bool infinite = std::isinf(min) || std::isinf(max);
        const float range = infinite ? HUGE_VALF : sum(max, -min);
        return {quotient(range, store == Store::q4_1 ? 15.f : 31.f), min};
    }
    switch (store) {
        case Store::q8_0: return {quotient(std::fabs(first_largest), 127.f)};
        case Store::q4_0: return {quotient(first_largest, -8.f)};
        case Store::iq4_nl:
            return {std::fabs(first_largest) < iq4_least ? 0 : quotient(first_largest, -127.f)};
        default: return {quotient(first_largest, -16.f)};
    }
}

int code_in_block(Store store, float x, const Scales& scales) {
    const float inverse = scales.d == 0 ? 0.f : quotient(1.f, scales.d);
    if (store == Store::iq4_nl && scales.d == 0) return 0;
    if (std::isnan(x) || std::isinf(inverse) || std::isinf(scales.d)) return middle(store);
    if (store == Store::q8_0) return int(std::round(double{product(x, inverse)}));
    if (store == Store::iq4_nl) return iq4_index(product(x, inverse));
    const float from = has_minimum(store) ? sum(x, -scales.m) : x;
    const float shifted = sum(product(from, inverse), float(middle(store)) + 0.5f);
    const int code = int(shifted);
    return store == Store::q5_1 ? code : std::min(code, has_fifth_bit(store) ? 31 : 15);
}

void append_block(Store store, std::span<const float> block, std::vector<std::uint8_t>& bytes) {
    Scales scales = scales_of(store, block);
    int codes[in_block];
    std::uint32_t fifth_bits = 0;
    for (std::size_t j = 0; j < in_block; ++j) {
        codes[j] = code_in_block(store, block[j], scales);
        fifth_bits |= (std::uint32_t(codes[j]) >> 4 & 1) << j;
    }
    if (store == Store::iq4_nl && scales.d != 0 && std::isfinite(scales.d))
        scales.d = iq4_sums(block, codes).d();
    append(bytes, narrow(Type::f16, scales.d), 2);
    if (has_minimum(store)) append(bytes, narrow(Type::f16, scales.m), 2);
    if (has_fifth_bit(store)) append(bytes, fifth_bits, 4);
    if (store == Store::q8_0) {
        for (const int code : codes) append(bytes, std::uint32_t(code), 1);
        return;
    }
    for (std::size_t j = 0; j < in_block / 2; ++j)
        append(bytes, std::uint32_t((codes[j] & 15) | (codes[j + in_block / 2] & 15) << 4), 1);
}

void append_values(Store store, const std::uint8_t* bytes, std::vector<float>& values) {
    const BlockFields fields = fields_of(store, {bytes, block_bytes(store)});
    const float d = widen(Type::f16, fields.d), m = widen(Type::f16, fields.m);
    for (const int code : fields.codes) {
        const int number = store == Store::iq4_nl ? iq4_values[std::size_t(code)]
                                                  : code - middle(store);
        const float value = product(float(number), d);
        values.push_back(has_minimum(store) ? sum(value, m) : value);
    }
}

}  // namespace

bool has_blocks(Store store) {
    return store >= Store::q8_0 && store <= Store::iq4_nl;
}

std::uint64_t block_channels(Store store) {
    return has_blocks(store) ? in_block : store == Store::int4 ? 2 : 1;
}

std::uint64_t block_bytes(Store store) {
    switch (store) {
        case Store::q8_0: return 34;
        case Store::q4_0:
        case Store::iq4_nl: return 18;
        case Store::q4_1: return 20;
        case Store::q5_0: return 22;
        case Store::q5_1: return 24;
        default: return 1;
    }
}

bool has_minimum(Store store) {
    return store == Store::q4_1 || store == Store::q5_1;
}

int middle(Store store) {
    return store == Store::q4_0 || store == Store::iq4_nl ? 8 : store == Store::q5_0 ? 16 : 0;
}

float largest(Store store) {
    require(!has_blocks(store), "oracle: a block has no largest value");
    return store == Store::int8   ? 127.f
           : store == Store::int4 ? 7.f
                                  : float(value_of(format_of(store), format_of(store).largest));
}

std::uint8_t code_of(Store store, float number) {
    require(!has_blocks(store), "oracle: codes of a block depend on each other");
    if (store == Store::int8) return std::uint8_t(nearest_integer(number, 127));
    if (store == Store::int4) return std::uint8_t(nearest_integer(number, 7) & 15);
    return nearest_float8(store, number);
}

std::uint8_t code_at(Store store, std::span<const std::uint8_t> row, std::size_t channel) {
    if (store != Store::int4) return row[channel];
    return channel % 2 == 0 ? row[channel / 2] & 15 : row[channel / 2] >> 4;
}

std::vector<std::uint8_t> quantise_given(Store store, std::span<const float> row, float given) {
    std::vector<std::uint8_t> codes;
    for (const float x : row) codes.push_back(code_of(store, product(x, given)));
    return packed(store, codes);
}

float power_of_two_from(float least) {
    float power = 0x1p-126f;
    while (power < least) power *= 2;
    return power;
}

MadeRow quantise_made(Store store, std::span<const float> row, float floor, bool power_of_two) {
    float most = 0;
    for (const float x : row) most = std::fabs(x) > most ? std::fabs(x) : most;
    MadeRow made;
    made.scale = std::max(quotient(most, largest(store)), floor);
    made.scale = power_of_two ? power_of_two_from(made.scale) : made.scale;
    for (const float x : row) {
        const bool zero = made.scale == 0 && !std::isnan(x);
        made.codes.push_back(code_of(store, zero ? 0.f : quotient(x, made.scale)));
    }
    made.codes = packed(store, made.codes);
    return made;
}

std::vector<std::uint8_t> quantise_blocks(Store store, std::span<const float> row) {
    require(has_blocks(store), "oracle: not a type with blocks");
    require(row.size() % in_block == 0, "oracle: blocks have 32 channels");
    std::vector<std::uint8_t> bytes;
    for (std::size_t first = 0; first < row.size(); first += in_block)
        append_block(store, row.subspan(first, in_block), bytes);
    return bytes;
}

int iq4_index(float number) {
    int index = 0;
    const auto value = [](int of) { return double(iq4_values[std::size_t(of)]); };
    while (index < 15 && number - value(index) >= value(index + 1) - number) ++index;
    return index;
}

float Iq4Sums::d() const {
    const float d = quotient(of_x, of_v);
    return std::isnan(d) ? std::numeric_limits<float>::quiet_NaN() : d;
}

Iq4Sums iq4_sums(std::span<const float> block, std::span<const int> codes) {
    Iq4Sums sums;
    for (std::size_t c = 0; c < block.size(); ++c) {
        const float x = std::isnan(block[c]) ? 0 : block[c];
        const auto v = float(iq4_values[std::size_t(codes[c])]);
        const float weighed = product(product(x, x), v);
        sums = {sum(sums.of_x, product(weighed, x)), sum(sums.of_v, product(weighed, v))};
    }
    return sums;
}

BlockFields fields_of(Store store, std::span<const std::uint8_t> block) {
    require(has_blocks(store) && block.size() == block_bytes(store),
            "oracle: not the bytes of one block");
    const std::uint8_t* bytes = block.data();
    const auto field = [&bytes](int size) {
        bytes += size;
        return field_at(bytes - size, size);
    };
    BlockFields fields;
    fields.d = field(2);
    fields.m = has_minimum(store) ? field(2) : 0;
    const std::uint32_t fifth_bits = has_fifth_bit(store) ? field(4) : 0;
    for (std::size_t j = 0; j < in_block; ++j) {
        if (store == Store::q8_0) {
            fields.codes[j] = bytes[j] < 128 ? bytes[j] : bytes[j] - 256;
        } else {
            fields.codes[j] = j < in_block / 2 ? bytes[j] & 15 : bytes[j - in_block / 2] >> 4;
            fields.codes[j] |= int(fifth_bits >> j & 1) << 4;
        }
    }
    return fields;
}

std::vector<float> dequantise(Store store, std::span<const std::uint8_t> bytes, float scale) {
    require(bytes.size() % block_bytes(store) == 0, "oracle: bytes must be whole blocks");
    std::vector<float> values;
    for (std::size_t at = 0; at < bytes.size(); at += block_bytes(store))
        if (has_blocks(store))
            append_values(store, &bytes[at], values);
        else
            for (std::size_t c = 0; c < block_channels(store); ++c)
                values.push_back(
                    product(value_of(store, code_at(store, bytes.subspan(at), c)), scale));
    return values;
}

void hadamard(std::span<Approximate> row, std::uint64_t n, double absolute_allowance) {
    require(std::has_single_bit(n) && row.size() % n == 0,
            "oracle: a Hadamard block is a power of two that divides the row");
    const auto levels = static_cast<long double>(std::bit_width(n) - 1);
    const long double root = std::sqrt(static_cast<long double>(n));
    const long double products = std::bit_width(n) % 2 == 0 ? 2 : 1;  // including the factor
    for (std::uint64_t first = 0; first < row.size(); first += n) {
        const std::span<Approximate> block = row.subspan(first, n);
        const std::vector<Approximate> in(block.begin(), block.end());
        long double size = 0, error = 0;
        for (const Approximate& channel : in) {
            size += std::fabs(channel.value) + channel.error;
            error += channel.error;
        }
        // 1.001 covers products of two roundings. An allowance at level i reaches n / 2^i outputs
        // of the levels above; the sum over all levels is at most n - 1.
        const long double rounding = 1.001L * (levels + products) * unit * size;
        const auto lost = static_cast<long double>(n - 1) * absolute_allowance;
        const bool finite = std::isfinite(size);
        for (std::uint64_t i = 0; i < n; ++i) {
            long double value = 0;
            for (std::uint64_t j = 0; j < n; ++j)
                value += std::popcount(i & j) % 2 == 0 ? in[j].value : -in[j].value;
            block[i] = {value / root,
                        finite ? (error + rounding + lost) / root + absolute_allowance : 0};
        }
    }
}

}  // namespace vkrope::oracle
