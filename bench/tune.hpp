// SPDX-License-Identifier: MIT
// Finds the tuning with which a device executes a call fastest.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/device_text.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::bench {

// A tuning, its median time, and the median of the default's time divided by its own, each pair of
// times one after the other.
struct Tried {
    Tuning tuning = {};
    double ns = 0, speedup = 0;
};

// Times a tuning, at least `rounds` times. Returns nothing if create() refuses it.
using Try = std::function<std::optional<Tried>(const Tuning&, std::size_t rounds)>;

struct Search {
    std::vector<Tried> tried;  // the fastest first
    std::size_t refused = 0;
};

// Tries the values of one field after the other, each with the best values of the other fields so
// far, until nothing gets faster. Begins with the library's choice.
Search search(const Try& try_tuning);

// What was tuned, and what came of it.
struct Tuned {
    std::string row, label;
    double bytes = 0;  // that a call reads and writes
    double roof_ns = 0, default_ns = 0;
    bool needs_gpu_mapping = false;  // the device is a CPU, whose default mapping has no tuning
    Search search = {};
};

// Returns a table with a line for each tuning, and what to write for the fastest.
std::string table(const Tuned& tuned);
// Returns the same as JSON.
std::string json(const Tuned& tuned, const tools::KnownDevice& device, const std::string& commit);

}  // namespace vkrope::bench
