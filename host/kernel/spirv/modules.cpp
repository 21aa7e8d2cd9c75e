// SPDX-License-Identifier: MIT
#include "kernel/spirv/modules.hpp"

namespace vkrope {

namespace {

constexpr std::uint8_t rope_bytes[] = {
#include "rope.inc"
};
constexpr std::uint8_t position_bytes[] = {
#include "positions.inc"
};

}  // namespace

const PackedModule rope_module = {rope_bytes, sizeof rope_bytes};
const PackedModule position_module = {position_bytes, sizeof position_bytes};

}  // namespace vkrope
