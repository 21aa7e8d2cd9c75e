// SPDX-License-Identifier: MIT
// The indexer of sparse attention: a small attention beside the main one, with a rotation of its
// own width and pairing. A layer type of its own to a query: "indexer".
#pragma once

#include "model/hf/source.hpp"
#include "vkrope/model.hpp"

namespace vkrope {

/// Turns the rotation of a layer into that of its indexer, which has the same frequencies. Fails if
/// the class has none.
void become_indexer(const Source& source, const ModelQuery& query, Rotation& rotation);

}  // namespace vkrope
