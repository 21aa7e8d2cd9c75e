// SPDX-License-Identifier: MIT
#include "conformance/cases/codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/meaning.hpp"
#include "io/element_type.hpp"
#include "verify/oracle/oracle.hpp"
#include "verify/oracle/quantise.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::size_t in_block = 32;

/// A code, or the scale or minimum of a block.
struct Number {
    std::uint32_t bits = 0;
    int order = 0;  // rank of the value: neighbours differ by 1, and both zeros have rank 0
    bool nan = false;
    std::uint64_t byte = 0;      // index in its block
    const char* half = nullptr;  // name of a scale or minimum, which is f16; null for a code

    bool same_bits(const Number& other) const {
        return nan || other.nan ? nan == other.nan : bits == other.bits;
    }
    bool same_number(const Number& other) const {
        return nan || other.nan ? nan == other.nan : order == other.order;
    }
    /// Returns true if the two numbers are equal or neighbours.
    bool next_to(const Number& other) const {
        return !nan && !other.nan && std::abs(order - other.order) <= 1;
    }
};

/// Returns a float whose highest bit is the sign. `infinite`: the bits of infinity.
Number float_number(std::uint32_t bits, std::uint32_t sign, std::uint32_t infinite) {
    const std::uint32_t magnitude = bits & (sign - 1);
    const auto order = static_cast<int>(magnitude);
    return {bits, (bits & sign) != 0 ? -order : order, magnitude > infinite};
}

Number half_number(const char* name, std::uint32_t bits, std::uint64_t byte) {
    Number half = float_number(bits, 0x8000, 0x7c00);
    half.half = name;
    half.byte = byte;
    return half;
}

/// Returns the index of the byte that contains a code. The codes are the last bytes of a block.
std::size_t byte_of(Element element, std::size_t code) {
    const std::size_t bytes = element_bytes(element);
    return element == VKROPE_Q8_0 ? bytes - in_block + code
                                  : bytes - in_block / 2 + code % (in_block / 2);
}

/// Returns the numbers of a block, or the code of an element that is not in a block.
std::vector<Number> numbers_of(Element element, std::span<const std::byte> block) {
    const auto first = static_cast<std::uint32_t>(block[0]);
    switch (element) {
        case VKROPE_E4M3FN: return {float_number(first, 0x80, 0x7e)};  // the type has no infinity
        case VKROPE_E5M2: return {float_number(first, 0x80, 0x7c)};
        case VKROPE_INT8: return {{.bits = first, .order = static_cast<std::int8_t>(first)}};
        default: break;
    }
    const oracle::BlockFields fields = oracle::fields_of(
        verify::store_of(element),
        {reinterpret_cast<const std::uint8_t*>(block.data()), block.size()});
    std::vector<Number> numbers = {
        half_number("scale", fields.d, 0),
        half_number("minimum", fields.m, 2)};  // 0 in both outputs if the type has none
    for (std::size_t i = 0; i < in_block; ++i) {
        numbers.push_back({.order = fields.codes[i], .byte = byte_of(element, i)});
    }
    return numbers;
}

std::string text_of(Element element, const Number& number) {
    if (number.half != nullptr) {
        return fmt::format("{} ({:#06x})",
                           static_cast<float>(oracle::widen(oracle::Type::f16, number.bits)),
                           number.bits);
    }
    const bool is_float = element == VKROPE_E4M3FN || element == VKROPE_E5M2;
    return is_float ? fmt::format("{:#04x}", number.bits) : fmt::format("{}", number.order);
}

/// A difference, and the index of its byte.
struct Difference {
    std::uint64_t byte = 0;
    std::string sentence;
};

/// The differences of one step, of which a share is allowed.
struct OneStep {
    std::uint64_t count = 0, of = 0;
    Difference first;

    std::uint64_t allowed(double share) const {
        // The double nearest to a share like 0.29 may be a little less than 0.29.
        return static_cast<std::uint64_t>(
            std::floor(share * static_cast<double>(of) * (1 + 1e-12)));
    }
};

class Comparer {
   public:
    explicit Comparer(const CodeRows& rows) : rows_(rows) {}

    CodeFindings findings() {
        const std::uint64_t row_bytes = rows_.row_bytes;
        for (std::uint64_t row = 0; row_bytes != 0 && row < rows_.actual.size() / row_bytes;
             ++row) {
            if (!rows_.written.empty() && !rows_.written[row]) {
                compare_bytes(row * row_bytes);
            } else {
                for (std::uint64_t at = 0; at < row_bytes; at += element_bytes(rows_.element)) {
                    compare_block(row * row_bytes + at);
                }
            }
        }
        findings_.codes = codes_.of;
        add_too_many(codes_, "codes differ by one");
        add_too_many(blocks_, "blocks have a scale that differs by one unit");
        return findings_;
    }

   private:
    void wrong(std::uint64_t byte, std::string sentence) {
        if (findings_.wrong++ == 0) {
            findings_.byte = byte;
            findings_.first = std::move(sentence);
        }
    }

    static void one_step(OneStep& steps, std::uint64_t byte, std::string sentence) {
        if (steps.count++ == 0) {
            steps.first = {byte, std::move(sentence)};
        }
    }

    void add_too_many(const OneStep& steps, const char* what) {
        const std::uint64_t allowed = steps.allowed(rows_.off_by_one.value_or(0));
        if (steps.count > allowed) {
            wrong(steps.first.byte, fmt::format("{}: {} of {} {}, and {} may", steps.first.sentence,
                                                steps.count, steps.of, what, allowed));
            findings_.wrong += steps.count - 1;
        }
    }

    void compare_bytes(std::uint64_t first) {
        for (std::uint64_t at = first; at < first + rows_.row_bytes; ++at) {
            if (rows_.actual[at] != rows_.expected[at]) {
                wrong(at, fmt::format("the byte is {:#04x}, expected {:#04x}, and no slot names "
                                      "its row",
                                      std::to_integer<unsigned>(rows_.actual[at]),
                                      std::to_integer<unsigned>(rows_.expected[at])));
            }
        }
    }

    void compare_block(std::uint64_t first) {
        const std::uint64_t bytes = element_bytes(rows_.element);
        const std::uint32_t channels = block_channels(rows_.element);
        const auto actual = rows_.actual.subspan(first, bytes),
                   expected = rows_.expected.subspan(first, bytes);
        codes_.of += channels;
        ++blocks_.of;
        if (std::equal(actual.begin(), actual.end(), expected.begin())) {
            return;
        }
        const std::vector<Number> all = numbers_of(rows_.element, actual),
                                  all_wanted = numbers_of(rows_.element, expected);
        const bool bit_for_bit = channels == 1 && !rows_.off_by_one;
        bool half_counts = true;  // scale and minimum of a block count as one difference
        for (std::size_t i = 0; i < all.size(); ++i) {
            const Number &got = all[i], &wanted = all_wanted[i];
            if (bit_for_bit ? got.same_bits(wanted) : got.same_number(wanted)) {
                continue;
            }
            const std::string name = got.half != nullptr
                                         ? fmt::format("the {} of the block", got.half)
                                     : channels == 1 ? "the code"
                                                     : fmt::format("code {} of the block", i - 2);
            std::string sentence = fmt::format("{} is {}, expected {}", name,
                                               text_of(rows_.element, got),
                                               text_of(rows_.element, wanted));
            if (!got.next_to(wanted)) {
                wrong(first + got.byte, std::move(sentence));
            } else if (got.half == nullptr) {
                one_step(codes_, first + got.byte, std::move(sentence));
            } else if (std::exchange(half_counts, false)) {
                one_step(blocks_, first + got.byte, std::move(sentence));
            }
        }
    }

    const CodeRows& rows_;
    CodeFindings findings_;
    OneStep codes_, blocks_;
};

}  // namespace

CodeFindings compare_codes(const CodeRows& rows) {
    return Comparer(rows).findings();
}

}  // namespace vkrope::conformance
