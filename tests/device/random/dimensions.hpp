// SPDX-License-Identifier: MIT
// The dimensions of random operations, and how often each of their values has been seen.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "verify/unplaced.hpp"

namespace vkrope::test {

/// A value of a dimension, of which `names` are all.
struct Value {
    std::string dimension;
    std::span<const char* const> names;
    std::size_t index;
};

/// The dimensions that an operation has; those of an absent tensor are left out.
std::vector<Value> values_of(const verify::Unplaced& operation);

class SeenValues {
   public:
    void add(const std::vector<Value>& values);
    void print() const;
    /// Values that no operation had.
    std::vector<std::string> missing() const;

   private:
    struct Counts {
        std::span<const char* const> names;
        std::vector<std::size_t> of;
    };
    std::map<std::string, Counts> dimensions_;
};

}  // namespace vkrope::test
