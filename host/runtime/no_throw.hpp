// SPDX-License-Identifier: MIT
// Containers may throw; the tier's public functions may not.
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

/// What `body` returns, or the status of what it threw.
template <class Body>
auto no_throw(const Body& body) noexcept -> decltype(body()) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        decltype(body()) failed;
        status_of(failed) = error(Code::out_of_host_memory, "the application is out of memory");
        return failed;
    } catch (const std::exception& exception) {
        decltype(body()) failed;
        status_of(failed) = error(Code::invalid_argument, "a callback threw: %s", exception.what());
        return failed;
    } catch (...) {
        decltype(body()) failed;
        status_of(failed) = error(Code::invalid_argument, "a callback threw");
        return failed;
    }
}

}  // namespace vkrope
