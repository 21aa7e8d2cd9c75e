// SPDX-License-Identifier: MIT
#include "builtin.hpp"

namespace vkrope::conformance {

std::vector<Group> builtin_groups(Level) {
    return {};
}

}  // namespace vkrope::conformance
