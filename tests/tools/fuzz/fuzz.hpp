// SPDX-License-Identifier: MIT
// The fuzz targets, one per parser, which take arbitrary bytes. A target must not crash, hang, use
// much memory, throw an exception that its interface does not document, or return a result that
// breaks its rules. driver.cpp passes a target to libFuzzer, replay.cpp runs all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "vkrope/vkrope.hpp"

namespace vkrope::fuzz {

// The bytes of one input. A target may read some of them before it parses the rest.
class Input {
   public:
    explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    std::span<const std::uint8_t> rest() const { return bytes_; }
    std::string_view text() const {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }

    // Reads a query from the first four bytes. Zeros are the default, and missing bytes are zeros.
    ModelQuery query();

   private:
    std::uint8_t byte();

    std::span<const std::uint8_t> bytes_;
};

// Ends the program, which is a finding, unless `holds` is true.
void require(bool holds, const char* rule);

// Requires the rules of an importer's result. Returns whether the result has a value.
bool require_rules(const Result<RopeParams>& result);

// The targets. Each returns whether the input is valid.
bool parse_config(Input input);
bool parse_gguf(Input input);
bool parse_npy(Input input);
bool parse_safetensors(Input input);

}  // namespace vkrope::fuzz
