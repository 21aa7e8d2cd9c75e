// SPDX-License-Identifier: MIT
// Statuses and exceptions as codes.
#include "status.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <stdexcept>

#include "c/guard.hpp"

namespace vkrope::c {

static_assert(sizeof(vkrope_result) == 4 && sizeof(vkrope_error::what) == sizeof(Status::what));

// A code is the C++ one, negative.
static_assert(VKROPE_ERROR_INVALID_ARGUMENT == -int(Code::invalid_argument));
static_assert(VKROPE_ERROR_NOT_SUPPORTED == -int(Code::not_supported));
static_assert(VKROPE_ERROR_LIMIT_EXCEEDED == -int(Code::limit_exceeded));
static_assert(VKROPE_ERROR_INVALID_DATA == -int(Code::invalid_data));
static_assert(VKROPE_ERROR_NO_DEVICE == -int(Code::no_device));
static_assert(VKROPE_ERROR_OUT_OF_HOST_MEMORY == -int(Code::out_of_host_memory));
static_assert(VKROPE_ERROR_OUT_OF_DEVICE_MEMORY == -int(Code::out_of_device_memory));
static_assert(VKROPE_ERROR_DEVICE_LOST == -int(Code::device_lost));
static_assert(VKROPE_ERROR_TIMEOUT == -int(Code::timeout));
static_assert(VKROPE_ERROR_VULKAN == -int(Code::vulkan_error));

namespace {

// The sentences of the C++ tiers name fields and values as C++ has them. Here is what has another name in C.
struct Renamed {
    const char *from, *to;
};
constexpr Renamed renamed[] = {
    {"positions.int64 ", "positions.int64_ids "},
    {"rotation.rotates is false", "rotation.unrotated is true"},
    {"product is float32", "product is VKROPE_ANGLE_PRODUCT_FLOAT32"},
    {"source must be direct_texture or direct_buffer", "source must be VKROPE_ANGLES_DIRECT_TEXTURE or _BUFFER"},
    {"source is caller_buffer", "source is VKROPE_ANGLES_CALLER_BUFFER"},
    {"plan_caller_angles", "vkrope_plan_caller_angles"},
    {"must be an AngleProduct", "must be a vkrope_angle_product"},
    {"must be an AngleSource", "must be a vkrope_angle_source"},
    {"must be an Element", "must be a vkrope_element"},
    {"Enabled::float_controls and shader_float16", "VKROPE_ENABLED_FLOAT_CONTROLS and _SHADER_FLOAT16"},
    {"bits that are no Enabled", "bits that are no vkrope_enabled_bits"},
};

// Replaces the first `from`; what does not fit any more is cut off at the end.
void rename(char (&what)[sizeof(vkrope_error::what)], const Renamed& name) noexcept {
    char* const found = std::strstr(what, name.from);
    if (!found) return;
    char rest[sizeof what];
    std::strcpy(rest, found + std::strlen(name.from));
    std::snprintf(found, std::size_t(std::end(what) - found), "%s%s", name.to, rest);
}

vkrope_result report(vkrope_error* out, vkrope_result result, const Status& status) noexcept {
    if (out) {
        out->code = result;
        out->vk_result = status.vk_result;
        std::memcpy(out->what, status.what, sizeof out->what);
        for (const Renamed& name : renamed) rename(out->what, name);
    }
    return result;
}

}  // namespace

vkrope_result report(vkrope_error* out, const Status& status) noexcept {
    return report(out, vkrope_result(-int(status.code)), status);
}

vkrope_result report_exception(vkrope_error* out) noexcept {
    try {
        throw;
    } catch (const std::bad_alloc&) {
        return report(out, error(Code::out_of_host_memory, "the host has not enough memory for this"));
    } catch (const std::length_error&) {  // of a container: more than any host's memory
        return report(out, error(Code::out_of_host_memory, "no host has enough memory for this"));
    } catch (const std::exception& e) {
        return report(out, VKROPE_ERROR_INTERNAL, error(Code::ok, "unexpected exception: %s", e.what()));
    } catch (...) {
        return report(out, VKROPE_ERROR_INTERNAL, error(Code::ok, "unexpected exception"));
    }
}

Status not_null(const void* pointer, const char* name) noexcept {
    return pointer ? Status{} : error(Code::invalid_argument, "%s is null", name);
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
        case VKROPE_RESULT_MAX_ENUM: break;
    }
    return "unknown result";
}
