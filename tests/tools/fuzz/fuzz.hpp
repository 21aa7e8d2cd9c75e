// SPDX-License-Identifier: MIT
// One target a parser, which takes bytes of anyone's. What a target must not do is crash, hang, ask
// for much memory, let an exception out that its interface does not have, or give a result that
// breaks the result's own rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "vkrope/model.hpp"

namespace vkrope::fuzz {

/// Bytes of one input, from which a target may take some for itself before it parses the rest.
class Input {
   public:
    explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    std::span<const std::uint8_t> rest() const { return bytes_; }
    std::string_view text() const {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }

    /// Of the first four bytes, zeros being the default; missing ones are zeros.
    ModelQuery query();

   private:
    std::uint8_t byte();

    std::span<const std::uint8_t> bytes_;
};

/// Ends the program, which is a finding, unless `holds`.
void require(bool holds, const char* rule);

/// The rules of what an importer returns.
void require_rules(const Result<Rotation>& result);

/// What a target defines. driver.cpp has the rest.
void parse(Input input);

}  // namespace vkrope::fuzz
