// SPDX-License-Identifier: MIT
// Containers may throw; the public functions of this tier must not.
#pragma once

#include <exception>
#include <new>

#include "status.hpp"

namespace vkrope {

inline Status& status_of(Status& status) noexcept {
    return status;
}
template <class T>
Status& status_of(Result<T>& result) noexcept {
    return result.status;
}

/// Returns the result of `body`, or a status for the exception that it threw.
template <class Body>
auto no_throw(const Body& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        decltype(body()) failed;
        status_of(failed) = error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                                  "the application is out of memory");
        return failed;
    } catch (const std::exception& exception) {
        decltype(body()) failed;
        status_of(failed) = error(VKROPE_ERROR_INVALID_ARGUMENT, "a callback threw: %s",
                                  exception.what());
        return failed;
    } catch (...) {
        decltype(body()) failed;
        status_of(failed) = error(VKROPE_ERROR_INVALID_ARGUMENT, "a callback threw");
        return failed;
    }
}

}  // namespace vkrope
