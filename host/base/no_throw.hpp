// SPDX-License-Identifier: MIT
// Turns exceptions of containers into statuses, for the functions of vkrope.h in tiers that use
// containers.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "base/status.hpp"

namespace vkrope {

// Returns the status that `body` returns, or a status for the exception that `body` throws.
template <class Body>
Status no_throw(const Body& body) noexcept {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "there is not enough host memory");
        // A container throws this if its size exceeds the memory of any host.
    } catch (const std::length_error&) {
        return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                     "a size is too large for the memory of any host");
    } catch (const std::exception& exception) {
        return error(VKROPE_ERROR_INTERNAL, "unexpected exception: %s", exception.what());
    } catch (...) {
        return error(VKROPE_ERROR_INTERNAL, "unexpected exception");
    }
}

// Like answer() of status.hpp, for a body that may throw.
template <class Body>
vkrope_result answer_all(vkrope_error* failure, const Body& body) noexcept {
    return answer(
        failure, [&] { return no_throw(body); });
}

// Like make() of status.hpp, for a body that may throw and returns a Result<std::unique_ptr>.
template <class Object, class Body>
vkrope_result make_all(Object** made, const char* name, vkrope_error* failure,
                       const Body& body) noexcept {
    return make(
        made, name, failure,
        [&] {
            return no_throw([&]() -> Status {
                auto result = body();
                if (result) *made = result.value.release();
                return result.status;
            });
        });
}

}  // namespace vkrope
