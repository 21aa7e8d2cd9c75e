// SPDX-License-Identifier: MIT
// Changes of a shader that are a lie or a liberty, depending on what the device reports.
#pragma once

#include "module.hpp"

namespace vkrope::lies {

/// Makes 0 of each f32 result that is subnormal.
void flush_subnormals(Module& module);

/// Makes one quiet NaN of each NaN.
void unify_nan(Module& module);

}  // namespace vkrope::lies
