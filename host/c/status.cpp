// SPDX-License-Identifier: MIT
// Converts statuses and exceptions to codes.
#include "status.hpp"

#include <exception>
#include <new>
#include <stdexcept>

#include "c/guard.hpp"

namespace vkrope::c {

vkrope_result report(vkrope_error* out, const Status& status) noexcept {
    return answer(out, [&] { return status; });
}

vkrope_result report_exception(vkrope_error* out) noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return report(out,
                      error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "there is not enough host memory"));
    } catch (const std::length_error&) {  // from a container: exceeds the memory of any host
        return report(out, error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                                 "a size is too large for the memory of any host"));
    } catch (const std::exception& e) {
        return report(out, error(VKROPE_ERROR_INTERNAL, "unexpected exception: %s", e.what()));
    } catch (...) {
        return report(out, error(VKROPE_ERROR_INTERNAL, "unexpected exception"));
    }
}

}  // namespace vkrope::c
