// SPDX-License-Identifier: MIT
// Converts statuses and exceptions to codes.
#include "status.hpp"

#include <exception>
#include <new>
#include <stdexcept>

#include "c/guard.hpp"

namespace vkrope::c {

vkrope_result report(vkrope_error* out, const Status& status) noexcept {
    if (out) *out = status;
    return status.code;
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

Status not_null(const void* pointer, const char* name) noexcept {
    return pointer ? Status{} : error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null", name);
}

}  // namespace vkrope::c

const char* vkrope_status_string(vkrope_result result) {
    switch (result) {
        case VKROPE_SUCCESS: return "success";
        case VKROPE_ERROR_INVALID_ARGUMENT: return "invalid argument";
        case VKROPE_ERROR_NOT_SUPPORTED: return "not supported";
        case VKROPE_ERROR_LIMIT_EXCEEDED: return "limit exceeded";
        case VKROPE_ERROR_INVALID_DATA: return "invalid data";
        case VKROPE_ERROR_NO_DEVICE: return "no device";
        case VKROPE_ERROR_OUT_OF_HOST_MEMORY: return "out of host memory";
        case VKROPE_ERROR_OUT_OF_DEVICE_MEMORY: return "out of device memory";
        case VKROPE_ERROR_DEVICE_LOST: return "device lost";
        case VKROPE_ERROR_TIMEOUT: return "timeout";
        case VKROPE_ERROR_VULKAN: return "Vulkan error";
        case VKROPE_ERROR_INTERNAL: return "internal error";
    }
    return "unknown result";
}
