// SPDX-License-Identifier: MIT
#include "conformance/cases/codes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "io/element_type.hpp"
#include "meaning.hpp"
#include "verify/oracle/oracle.hpp"
#include "verify/oracle/quantise.hpp"

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

/// The code of an element that stands alone.
CodeNumber code_alone(Element element, std::uint32_t bits) {
    switch (element) {
        case VKROPE_E4M3FN: return float_code(bits, 0x80, 0x7e);  // it has no infinity
        case VKROPE_E5M2: return float_code(bits, 0x80, 0x7c);
        default: return {bits, static_cast<std::int8_t>(bits)};
    }
}

/// The byte of a block that has a code: its last bytes do.
std::size_t byte_of(Element element, std::size_t code) {
    const std::size_t bytes = element_bytes(element);
    return element == VKROPE_Q8_0 ? bytes - in_block + code
                                  : bytes - in_block / 2 + code % (in_block / 2);
}

oracle::BlockFields fields_of(Element element, std::span<const std::byte> block) {
    return oracle::fields_of(tools::reference_store(element),
                             {reinterpret_cast<const std::uint8_t*>(block.data()), block.size()});
}

CodeNumber half_code(std::uint32_t bits) {
    return float_code(bits, 0x8000, 0x7c00);
}

/// A difference, at the byte where it is.
struct Difference {
    std::uint64_t byte = 0;
    std::string sentence;
};

/// One-step differences; a share of them is allowed.
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
        const bool integer = rows_.element == VKROPE_INT8;
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
                const oracle::BlockFields got = fields_of(rows_.element, actual),
                                          wanted = fields_of(rows_.element, expected);
                compare_halves(got, wanted, at);
                compare_codes_of(got, wanted, at);
            }
        }
    }

    /// The scale and the minimum of a block.
    void compare_halves(const oracle::BlockFields& actual, const oracle::BlockFields& expected,
                        std::uint64_t block) {
        OneStep here;
        const auto compare = [&](const char* name, std::uint32_t half, std::uint32_t expected_half,
                                 std::uint64_t byte) {
            const CodeNumber got = half_code(half), wanted = half_code(expected_half);
            if (!got.same_number(wanted)) {
                add(got, wanted, byte,
                    fmt::format("the {} of the block is {} ({:#06x}), expected {} ({:#06x})", name,
                                half_value(got), got.bits, half_value(wanted), wanted.bits),
                    here);
            }
        };
        compare("scale", actual.d, expected.d, block);
        compare("minimum", actual.m, expected.m, block + 2);  // equal zeros if there is none
        if (here.count > 0) {
            one_step(blocks_, here.first.byte, std::move(here.first.sentence));
        }
    }

    static float half_value(const CodeNumber& half) {
        return static_cast<float>(oracle::widen(oracle::Type::f16, half.bits));
    }

    void compare_codes_of(const oracle::BlockFields& actual, const oracle::BlockFields& expected,
                          std::uint64_t block) {
        for (std::size_t i = 0; i < in_block; ++i) {
            const CodeNumber got = {0, actual.codes[i]}, wanted = {0, expected.codes[i]};
            if (!got.same_number(wanted)) {
                add(got, wanted, block + byte_of(rows_.element, i),
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
