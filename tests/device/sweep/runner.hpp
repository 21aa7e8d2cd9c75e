// SPDX-License-Identifier: MIT
// Runs calls of one kernel in one submission, and compares every output byte with the oracle.
#pragma once

#include <map>

#include "tuples.hpp"

namespace vkrope::test {

/// One buffer before and after the calls: pieces of random bytes, separated by guard zones of
/// random bytes.
class Memory {
   public:
    explicit Memory(std::uint64_t seed) : random_(seed) {}

    /// Returns the start of a new piece: a multiple of 16 with guard bytes before and after it.
    std::uint64_t take(std::uint64_t bytes);

    Bytes before, after;
    std::vector<bool> may_change;  // bytes

   private:
    Random random_;
};

/// Q, K or V of a call.
struct PreparedTensor {
    Placed in = {}, out = {};
    std::uint64_t in_byte = 0, out_byte = 0;  // start of their pieces
};

struct PreparedCall {
    Tuple tuple;
    std::uint64_t first_byte = 0,
                  end_byte = 0;  // range of all its pieces, to report whose guard zone was hit
    bool flat = false;           // one sequence of all tokens
    Shape shape;
    PreparedTensor q = {}, k = {}, v = {};
    std::vector<std::int64_t> positions = {};
    std::uint64_t ids_byte = 0, slots_byte = 0, counter_byte = 0, parameters_byte = 0,
                  factors_byte = 0;
    std::uint32_t ids_stride = 0, slots_stride = 0;
};

class Sweep {
   public:
    explicit Sweep(std::uint64_t seed) : seed_(seed) {}

    /// Runs all tuples as calls of one kernel, in one command buffer.
    void run(std::uint32_t index, const Numbers& numbers, const KernelChoice& choice,
             const std::vector<Tuple>& tuples);

    std::vector<std::string> failures;  // one sentence each, with the tuple
    std::uint64_t elements = 0;         // compared with the oracle
    std::uint64_t dispatches = 0;
    std::uint64_t cut_calls = 0;  // of more than two dispatches
    double create_seconds = 0, device_seconds = 0, check_seconds = 0;

   private:
    using Canonical = std::vector<Bytes>;  // row by row; empty: not seen yet

    const AngleTable& table(const Numbers& numbers, const KernelChoice& choice, bool factor);
    void fail(const Numbers& numbers, const KernelChoice& choice, const Tuple& tuple,
              const std::string& what);
    void check(std::uint32_t index, const Numbers& numbers, const KernelChoice& choice,
               const Memory& memory, const PreparedCall& prepared);
    std::uint64_t check_tensor(std::uint32_t index, const Numbers& numbers,
                               const KernelChoice& choice, const Memory& memory,
                               const PreparedCall& prepared, bool key);
    std::uint64_t check_v(const Numbers& numbers, const KernelChoice& choice, const Memory& memory,
                          const PreparedCall& prepared);
    std::uint64_t check_ops(const Numbers& numbers, const KernelChoice& choice,
                            const Memory& memory, const PreparedCall& prepared,
                            const PreparedTensor& tensor, const char* name,
                            const oracle::Operation& operation, double bound);

    std::uint64_t seed_;
    std::map<std::vector<std::uint32_t>, AngleTable> tables_;
    std::map<std::vector<std::uint32_t>, Canonical> canonical_;
};

}  // namespace vkrope::test
