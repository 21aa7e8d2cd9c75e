// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "model/hf/field.hpp"

namespace vkrope {

/// Fails with not_supported, and names the key, if a key of the configuration turns RoPE off or
/// changes it in a way that is not implemented. Ignoring the key would silently give wrong angles.
///
/// rotates_by_class  the model's class has RoPE whatever its position-embedding key says
void refuse_unsupported_keys(const Scopes& scopes, bool rotates_by_class);

/// Whether some key says that the model has RoPE.
bool names_rope(const Scopes& scopes);

/// Keys of the language model's own object that look like RoPE and are not read; for the warnings.
///
/// rotary_object  the object called rotary is read
std::vector<std::string> ignored_keys(const Scopes& scopes, bool rotary_object);

}  // namespace vkrope
