// SPDX-License-Identifier: MIT
// The border that every function of the C interface stands on: statuses go out as codes, exceptions
// do not go out.
#pragma once

#include <utility>

#include "vkrope/types.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::c {

/// Hands a status out: the code as the result, all of it to `error`, which may be null.
vkrope_result report(vkrope_error* error, const Status& status) noexcept;

/// The same for the exception that is being handled.
vkrope_result report_exception(vkrope_error* error) noexcept;

/// Runs `body`, which returns a Status, and reports what came of it.
template <class Body>
vkrope_result guarded(vkrope_error* error, Body&& body) noexcept {
    try {
        return report(error, std::forward<Body>(body)());
    } catch (...) {
        return report_exception(error);
    }
}

/// The rule of every pointer that is not optional.
Status not_null(const void* pointer, const char* name) noexcept;

/// As guarded(), for functions that make an object: `made` must not be null, and is null on
/// failure.
template <class Handle, class Body>
vkrope_result making(Handle** made, const char* name, vkrope_error* error, Body&& body) noexcept {
    if (made) *made = nullptr;
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(made, name); !s) return s;
        return std::forward<Body>(body)();
    });
}

}  // namespace vkrope::c
