// SPDX-License-Identifier: MIT
// What a tensor of a checkpoint is to a change of pairing, as far as its name says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vkrope::tools {

enum class NameKind {
    other,        // does not look like Q or K
    follows,      // its rows are the channels of the heads of Q or K
    shared,       // belongs to Q or K, and has no rows for channels
    unsupported,  // has such rows in a form that is not known here; `reason` says which
    elsewhere,    // looks like Q or K, but is not known to be of a layer of the language model
};

struct TensorName {
    NameKind kind = NameKind::other;
    bool key = false;    // K, not Q
    bool norm = false;   // a weight or bias that all heads may share
    bool scale = false;  // may be one number for all rows
    /// A name of Meta's own files, whose pairing no config.json states.
    bool of_meta = false;
    std::optional<std::uint32_t> layer = {};
    std::string reason = {};
};

/// Knows the names of Hugging Face's models, of PEFT's adapters and of Meta's own files.
TensorName tensor_name(std::string_view name);

/// The first number between two points of a name: the number of the layer.
std::optional<std::uint32_t> layer_in(std::string_view name);

/// Whether the whole name is as the pattern, in which * stands for any characters.
bool matches(std::string_view pattern, std::string_view name) noexcept;

}  // namespace vkrope::tools
