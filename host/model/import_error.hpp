// SPDX-License-Identifier: MIT
// How the importers give up from any depth. Caught by the public functions; it never leaves the tier.
#pragma once

#include <cstdarg>
#include <cstdio>

#include "vkrope/types.hpp"

namespace vkrope {

struct ImportError {
    Status status;
};

[[noreturn]]
#if defined(__MINGW32__) && !defined(__clang__)
__attribute__((format(gnu_printf, 2, 3)))  // libstdc++ chooses the standard vsnprintf there; "printf" would mean Microsoft's
#elif defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
inline void
fail(Code code, const char* format, ...) {
    ImportError error;
    error.status.code = code;
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(error.status.what, sizeof error.status.what, format, arguments);
    va_end(arguments);
    throw error;
}

}  // namespace vkrope
