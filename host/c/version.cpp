// SPDX-License-Identifier: MIT
#include "vkrope/vkrope.h"

// The header is installed as it is, so it says the version again; the build's is the project's.
static_assert(VKROPE_VERSION_MAJOR == VKROPE_PROJECT_VERSION_MAJOR &&
                  VKROPE_VERSION_MINOR == VKROPE_PROJECT_VERSION_MINOR &&
                  VKROPE_VERSION_PATCH == VKROPE_PROJECT_VERSION_PATCH,
              "vkrope.h and CMakeLists.txt disagree about the version");

uint32_t vkrope_version(void) {
    return VKROPE_MAKE_VERSION(VKROPE_PROJECT_VERSION_MAJOR, VKROPE_PROJECT_VERSION_MINOR,
                               VKROPE_PROJECT_VERSION_PATCH);
}
