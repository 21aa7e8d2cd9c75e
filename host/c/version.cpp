// SPDX-License-Identifier: MIT
#include "vkrope/vkrope.h"

// The installed header states its own version, which must be the version of the build.
static_assert(VKROPE_VERSION_MAJOR == VKROPE_PROJECT_VERSION_MAJOR &&
                  VKROPE_VERSION_MINOR == VKROPE_PROJECT_VERSION_MINOR &&
                  VKROPE_VERSION_PATCH == VKROPE_PROJECT_VERSION_PATCH,
              "vkrope.h and CMakeLists.txt disagree about the version");

uint32_t vkrope_version(void) {
    return VKROPE_MAKE_VERSION(VKROPE_PROJECT_VERSION_MAJOR, VKROPE_PROJECT_VERSION_MINOR,
                               VKROPE_PROJECT_VERSION_PATCH);
}
