// SPDX-License-Identifier: MIT
// Boundary of every function of the C interface: converts statuses to codes and stops exceptions.
#pragma once

#include <utility>

#include "status.hpp"

namespace vkrope::c {

/// Returns the code of `status` and writes all of it to `error`, which may be null.
vkrope_result report(vkrope_error* error, const Status& status) noexcept;

/// Same for the exception that is being handled.
vkrope_result report_exception(vkrope_error* error) noexcept;

/// Runs `body`, which returns a Status, and reports it.
template <class Body>
vkrope_result guarded(vkrope_error* error, Body&& body) noexcept {
    try {
        return report(error, std::forward<Body>(body)());
    } catch (...) {
        return report_exception(error);
    }
}

/// As guarded(), for functions that create an object: `made` must not be null; it is set to null on
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
