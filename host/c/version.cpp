// SPDX-License-Identifier: MIT
#include "vkrope/vkrope.h"

uint32_t vkrope_version(void) {
    return VKROPE_VERSION;
}
