// SPDX-License-Identifier: MIT
// The exception by which importers fail from any depth, and the one place that catches it: it never
// leaves the tier.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "status.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

struct ImportError {
    Status status;
};

[[noreturn]]
#if defined(__MINGW32__) && !defined(__clang__)
__attribute__((
    format(gnu_printf, 2,
           3)))  // libstdc++ chooses the standard vsnprintf there; "printf" would mean Microsoft's
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

/// Fails with the message of a formula that refuses what `name` says.
inline void require(const Status& status, const std::string& name) {
    if (!status) {
        fail(VKROPE_ERROR_INVALID_DATA, "%s: %s", name.c_str(), status.what);
    }
}

/// Runs `work`, which reads `what`, and returns its status.
template <class Work>
Status status_of(const char* what, Work&& work) {
    try {
        work();
        return {};
    } catch (const ImportError& failure) {
        return failure.status;
    } catch (const std::bad_alloc&) {
        return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "out of memory while reading %s", what);
    } catch (const std::exception& exception) {
        return error(VKROPE_ERROR_INVALID_DATA, "cannot read %s: %s", what, exception.what());
    }
}

}  // namespace vkrope
