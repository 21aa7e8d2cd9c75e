// SPDX-License-Identifier: MIT
#include "kernel/spirv/spirv.hpp"

#include <algorithm>
#include <new>

#include "base/status.hpp"
#include "kernel/spirv/instruction.hpp"

namespace vkrope {

namespace {

// Reads the numbers of a packed module: octal digits of 4 bits, two to a byte, the lowest first, of
// which each but the last of a number has 8 added. Zeros follow the last byte.
class Digits {
   public:
    Digits(const std::uint8_t* bytes, std::size_t size) noexcept
        : bytes_(bytes), end_(bytes + size) {}

    std::uint64_t number() noexcept {
        if (unread_ <= 1) refill();
        std::uint64_t value = unread_ & 7;
        for (std::uint32_t shift = 3; (unread_ & 8) != 0; shift += 3) {
            unread_ >>= 4;
            if (unread_ <= 1) refill();
            value |= (unread_ & 7) << shift;
        }
        unread_ >>= 4;
        return value;
    }

   private:
    // Reads four bytes, or one of the last three.
    void refill() noexcept {
        if (end_ - bytes_ < 4) {
            unread_ = bytes_ != end_ ? 256u | *bytes_++ : 16;
            return;
        }
        const auto byte = [this](std::uint32_t i) { return std::uint32_t{bytes_[i]} << 8 * i; };
        unread_ = std::uint64_t{1} << 32 | (byte(0) | byte(1) | byte(2) | byte(3));
        bytes_ += 4;
    }

    const std::uint8_t* bytes_;
    const std::uint8_t* end_;
    std::uint64_t unread_ = 0;  // unread digits, lowest first; a 1 marks their end
};

}  // namespace

Result<Spirv> unpack(const std::uint8_t* bytes, std::size_t size) noexcept {
    Result<Spirv> result;
    Digits digits(bytes, size);
    const auto number = [&] { return std::uint32_t(digits.number()); };
    std::uint32_t begin[1 + header_words + 1];  // numbers of words, header, number of kinds
    for (std::uint32_t& value : begin) value = number();
    const std::size_t count = begin[0];
    const std::uint32_t kind_count = begin[1 + header_words];
    result->words.reset(new (std::nothrow) std::uint32_t[count + 1]);
    if (!result->words) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for a SPIR-V module of %zu words", count);
        return result;
    }
    result->count = count;
    const std::uint32_t* const end = result->words.get() + count;
    std::uint32_t* word = std::copy_n(begin + 1, std::min(count, header_words),
                                      result->words.get());

    struct Kind {
        const std::uint32_t* latest;  // the latest instruction of this kind; null: none yet
        std::uint32_t first;          // first word of each instruction
        std::uint32_t result;         // index of the operand that is the result id; 0: none
        std::uint32_t recent;  // bit i: operand i is coded as its distance from the latest result
    };
    const std::unique_ptr<Kind[]> kinds(new (std::nothrow) Kind[kind_count + 1]);
    if (!kinds) {
        result.status = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                              "not enough memory for %u kinds of instructions", kind_count);
        return result;
    }
    for (std::uint32_t i = 0; i < kind_count; ++i) {
        kinds[i].latest = nullptr;
        for (std::uint32_t* field : {&kinds[i].first, &kinds[i].result, &kinds[i].recent})
            *field = number();
    }
    std::uint32_t latest_result = 0;
    while (word != end) {
        Kind& kind = kinds[number()];
        const std::uint32_t* const stop = word + std::min<std::size_t>(length_of(&kind.first),
                                                                       std::size_t(end - word));
        const std::uint32_t* const of_result = word + kind.result;
        if (!kind.latest) {
            kind.latest = word;
            for (std::uint32_t* i = word; i != stop; ++i) *i = 0;
        }
        const std::uint32_t* same = kind.latest;
        kind.latest = word;
        *word++ = kind.first;
        for (std::uint32_t recent = kind.recent; word < stop; ++word) {
            recent >>= 1;
            ++same;
            const std::uint64_t coded = digits.number();  // 2 d or -2 d - 1
            *word = ((recent & 1) != 0 ? latest_result : *same) +
                    std::uint32_t(coded >> 1 ^ (0 - (coded & 1)));
            if (word == of_result) latest_result = *word;
        }
    }
    return result;
}

}  // namespace vkrope
