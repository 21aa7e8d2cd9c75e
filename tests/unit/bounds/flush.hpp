// SPDX-License-Identifier: MIT
// Treats subnormal numbers as zero, as the arithmetic of some devices does.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace vkrope::bounds {

// While an object of this class lives, this thread flushes subnormal operands and results, if
// asked to and if the processor can. Code in its scope calls functions that are not inlined, so
// that no arithmetic moves out of the scope.
class Flushing {
   public:
#if defined(__x86_64__)
    explicit Flushing(bool flushes) : before_(_mm_getcsr()) {
        if (flushes) _mm_setcsr(before_ | 0x8040u);  // flush to zero, denormals are zero
    }
    ~Flushing() {
        _mm_setcsr(before_);
    }

   private:
    unsigned before_;
#elif defined(__aarch64__)
    explicit Flushing(bool flushes) {
        asm volatile("mrs %0, fpcr" : "=r"(before_));
        if (flushes) asm volatile("msr fpcr, %0" ::"r"(before_ | std::uint64_t{1} << 24));
    }
    ~Flushing() {
        asm volatile("msr fpcr, %0" ::"r"(before_));
    }

   private:
    std::uint64_t before_ = 0;
#else
    explicit Flushing(bool) {}
#endif

   public:
    Flushing(const Flushing&) = delete;
    Flushing& operator=(const Flushing&) = delete;
};

}  // namespace vkrope::bounds
