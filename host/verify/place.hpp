// SPDX-License-Identifier: MIT
// Places the memory of an operation.
#pragma once

#include "verify/unplaced.hpp"

namespace vkrope::verify {

// Places the tensors and all other arrays of an operation in pieces of memory, separated by guard
// zones, among random bytes. Content that `operation` does not specify is random too.
Operation placed(const Unplaced& operation);

// Puts the bound weights of a kernel into its parameters, so that no bit of a result may change.
void pack_weights(Unplaced& operation);

}  // namespace vkrope::verify
