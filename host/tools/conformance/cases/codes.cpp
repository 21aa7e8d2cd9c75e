// SPDX-License-Identifier: MIT
#include "conformance/cases/codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "reference/oracle.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::size_t in_block = 32;

/// A number of a format whose codes stand in an order.
struct CodeNumber {
    std::uint32_t bits = 0;
    int order = 0;  // neighbours differ by 1
    bool nan = false;

    bool same_bits(const CodeNumber& other) const {
        return nan || other.nan ? nan == other.nan : bits == other.bits;
    }
    bool same_number(const CodeNumber& other) const {
        return nan || other.nan ? nan == other.nan : order == other.order;
    }
    /// True if one step leads to the other.
    bool next_to(const CodeNumber& other) const {
        return !nan && !other.nan && std::abs(order - other.order) <= 1;
    }
};

/// A float with its sign in the highest bit. `infinite`: the bits of infinity.
CodeNumber float_code(std::uint32_t bits, std::uint32_t sign, std::uint32_t infinite) {
    const std::uint32_t magnitude = bits & (sign - 1);
    const auto order = static_cast<int>(magnitude);
    return {bits, (bits & sign) != 0 ? -order : order, magnitude > infinite};
}

std::uint32_t byte_at(std::span<const std::byte> bytes, std::size_t at) {
    return static_cast<std::uint32_t>(bytes[at]);
}

/// The f16 at a byte.
CodeNumber half_at(std::span<const std::byte> bytes, std::size_t at) {
    return float_code(byte_at(bytes, at) | byte_at(bytes, at + 1) << 8, 0x8000, 0x7c00);
}

/// The code of an element that stands alone.
CodeNumber code_alone(Element element, std::uint32_t bits) {
    switch (element) {
        case Element::e4m3fn: return float_code(bits, 0x80, 0x7e);  // it has no infinity
        case Element::e5m2: return float_code(bits, 0x80, 0x7c);
        default: return {bits, static_cast<std::int8_t>(bits)};
    }
}

/// Where the fields of a block are, in bytes.
struct BlockFormat {
    std::size_t halves = 0;  // the scale and, for some, the minimum
    bool fifth_bits = false;
    bool bytes = false;  // codes are bytes, not halves of bytes

    explicit BlockFormat(Element element)
        : halves(element == Element::q4_1 || element == Element::q5_1 ? 2 : 1),
          fifth_bits(element == Element::q5_0 || element == Element::q5_1),
          bytes(element == Element::q8_0) {}

    /// The first byte of the codes.
    std::size_t codes() const { return 2 * halves + (fifth_bits ? 4 : 0); }
    std::size_t byte_of(std::size_t code) const {
        return codes() + (bytes ? code : code % (in_block / 2));
    }
    CodeNumber code(std::span<const std::byte> block, std::size_t index) const {
        const std::uint32_t byte = byte_at(block, byte_of(index));
        if (bytes) {
            return code_alone(Element::int8, byte);
        }
        std::uint32_t bits = index < in_block / 2 ? byte & 15 : byte >> 4;
        if (fifth_bits) {
            bits |= (byte_at(block, 2 * halves + index / 8) >> index % 8 & 1) << 4;
        }
        return {bits, static_cast<int>(bits)};
    }
};

/// A difference, at the byte where it is.
struct Difference {
    std::uint64_t byte = 0;
    std::string sentence;
};

/// Differences of one step, of which some may be.
struct OneStep {
    std::uint64_t count = 0, of = 0;
    Difference first;

    std::uint64_t allowed(double share) const {
        // A share like 0.29 is a little below what its digits say.
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
            } else if (block_channels(rows_.element) == 1) {
                compare_alone(row * row_bytes);
            } else {
                compare_blocks(row * row_bytes);
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
                                      byte_at(rows_.actual, at), byte_at(rows_.expected, at)));
            }
        }
    }

    void compare_alone(std::uint64_t first) {
        const bool integer = rows_.element == Element::int8;
        codes_.of += rows_.row_bytes;
        for (std::uint64_t at = first; at < first + rows_.row_bytes; ++at) {
            const CodeNumber got = code_alone(rows_.element, byte_at(rows_.actual, at)),
                             wanted = code_alone(rows_.element, byte_at(rows_.expected, at));
            if (rows_.off_by_one ? got.same_number(wanted) : got.same_bits(wanted)) {
                continue;
            }
            std::string sentence = integer ? fmt::format("the code is {}, expected {}", got.order,
                                                         wanted.order)
                                           : fmt::format("the code is {:#04x}, expected {:#04x}",
                                                         got.bits, wanted.bits);
            add(got, wanted, at, std::move(sentence), codes_);
        }
    }

    void add(const CodeNumber& got, const CodeNumber& wanted, std::uint64_t byte,
             std::string sentence, OneStep& steps) {
        if (got.next_to(wanted)) {
            one_step(steps, byte, std::move(sentence));
        } else {
            wrong(byte, std::move(sentence));
        }
    }

    void compare_blocks(std::uint64_t first) {
        const std::uint64_t bytes = element_bytes(rows_.element);
        for (std::uint64_t at = first; at < first + rows_.row_bytes; at += bytes) {
            codes_.of += in_block;
            ++blocks_.of;
            const auto actual = rows_.actual.subspan(at, bytes),
                       expected = rows_.expected.subspan(at, bytes);
            if (!std::equal(actual.begin(), actual.end(), expected.begin())) {
                compare_halves(actual, expected, at);
                compare_block(actual, expected, at);
            }
        }
    }

    /// The scale and the minimum of a block.
    void compare_halves(std::span<const std::byte> actual, std::span<const std::byte> expected,
                        std::uint64_t block) {
        const BlockFormat format(rows_.element);
        OneStep here;
        for (std::size_t i = 0; i < format.halves; ++i) {
            const CodeNumber got = half_at(actual, 2 * i), wanted = half_at(expected, 2 * i);
            if (!got.same_number(wanted)) {
                add(got, wanted, block + 2 * i,
                    fmt::format("the {} of the block is {} ({:#06x}), expected {} ({:#06x})",
                                i == 0 ? "scale" : "minimum", half_value(got), got.bits,
                                half_value(wanted), wanted.bits),
                    here);
            }
        }
        if (here.count > 0) {
            one_step(blocks_, here.first.byte, std::move(here.first.sentence));
        }
    }

    static float half_value(const CodeNumber& half) {
        return static_cast<float>(reference::widen(reference::Type::f16, half.bits));
    }

    void compare_block(std::span<const std::byte> actual, std::span<const std::byte> expected,
                       std::uint64_t block) {
        const BlockFormat format(rows_.element);
        for (std::size_t i = 0; i < in_block; ++i) {
            const CodeNumber got = format.code(actual, i), wanted = format.code(expected, i);
            if (got.bits != wanted.bits) {
                add(got, wanted, block + format.byte_of(i),
                    fmt::format("code {} of the block is {}, expected {}", i, got.order,
                                wanted.order),
                    codes_);
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
