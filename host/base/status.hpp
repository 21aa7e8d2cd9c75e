// SPDX-License-Identifier: MIT
// Creates the errors of all tiers. They use printf formatting, which does not allocate or throw.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/meaning.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope {

// The attribute `cold` optimises code that leads to an error for size, and places it elsewhere.
#if defined(__MINGW32__) && !defined(__clang__)
__attribute__((cold,
               format(gnu_printf, 2,
                      3)))  // libstdc++ uses the standard vsnprintf, but "printf" means Microsoft's
#elif defined(__GNUC__)
__attribute__((cold, format(printf, 2, 3)))
#endif
inline Status
error(ErrorCode code, const char* format, ...) noexcept {
    Status status;
    status.code = code;
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(status.what, sizeof status.what, format, arguments);
    va_end(arguments);
    return status;
}

// Returns an error if a required pointer is null.
inline Status not_null(const void* pointer, const char* name) noexcept {
    return pointer ? Status{} : error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null", name);
}

// Checks that a field is not set, because what it belongs to is absent.
//
// owner  the struct of the field
// why    a field of the struct and its value, which say that it is absent
inline Status not_set(const char* owner, const char* field, bool set, const char* why) noexcept {
    if (!set) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.%s is given: %s.%s, so the other fields must be 0", owner, field, owner, why);
}

// Writes the value, if there is one, to the caller's pointer `to`, and returns the status.
template <class Value>
Status hand_out(const Result<Value>& made, Value* to, const char* name) noexcept {
    if (Status s = not_null(to, name); !s) return s;
    if (made) *to = made.value;
    return made.status;
}

// Runs the body of a function of vkrope.h that can fail, and passes the status that `body` returns
// to the caller. `failure` may be null. `body` must not throw.
template <class Body>
vkrope_result answer(vkrope_error* failure, Body&& body) noexcept {
    const Status status = body();
    if (failure) {
        failure->code = status.code;
        failure->vk_result = status.vk_result;
        std::strcpy(failure->what, status.what);
    }
    return status.code;
}

// Like answer(), for a function that creates an object. First sets `*made` to null.
template <class Object, class Body>
vkrope_result make(Object** made, const char* name, vkrope_error* failure, Body&& body) noexcept {
    if (made) *made = nullptr;
    return answer(failure, [&]() -> Status {
        if (Status s = not_null(made, name); !s) return s;
        return body();
    });
}

// Names of a tensor in errors, and of its fields in a KernelInfo and a Call.
struct TensorNames {
    const char *name, *heads, *in, *out, *scale_tokens, *scales_in, *scales_out, *second,
        *norm_weight;
};
inline constexpr TensorNames names_of[tensor_count] = {
    {"tensor[0]", "tensor[0].heads", "in[0]", "out[0]", "scale_tokens[0]", "scales_in[0]",
     "scales_out[0]", "second[0]", "norm_weight[0]"},
    {"tensor[1]", "tensor[1].heads", "in[1]", "out[1]", "scale_tokens[1]", "scales_in[1]",
     "scales_out[1]", "second[1]", "norm_weight[1]"},
    {"tensor[2]", "tensor[2].heads", "in[2]", "out[2]", "scale_tokens[2]", "scales_in[2]",
     "scales_out[2]", "second[2]", "norm_weight[2]"}};

// Returns the name of a VkResult of functions that create, submit or wait, and null for others.
constexpr const char* result_name(VkResult result) noexcept {
    switch (result) {
        case VK_TIMEOUT: return "VK_TIMEOUT";
        case VK_ERROR_OUT_OF_HOST_MEMORY: return "VK_ERROR_OUT_OF_HOST_MEMORY";
        case VK_ERROR_OUT_OF_DEVICE_MEMORY: return "VK_ERROR_OUT_OF_DEVICE_MEMORY";
        case VK_ERROR_INITIALIZATION_FAILED: return "VK_ERROR_INITIALIZATION_FAILED";
        case VK_ERROR_DEVICE_LOST: return "VK_ERROR_DEVICE_LOST";
        case VK_ERROR_MEMORY_MAP_FAILED: return "VK_ERROR_MEMORY_MAP_FAILED";
        case VK_ERROR_LAYER_NOT_PRESENT: return "VK_ERROR_LAYER_NOT_PRESENT";
        case VK_ERROR_EXTENSION_NOT_PRESENT: return "VK_ERROR_EXTENSION_NOT_PRESENT";
        case VK_ERROR_FEATURE_NOT_PRESENT: return "VK_ERROR_FEATURE_NOT_PRESENT";
        case VK_ERROR_INCOMPATIBLE_DRIVER: return "VK_ERROR_INCOMPATIBLE_DRIVER";
        case VK_ERROR_TOO_MANY_OBJECTS: return "VK_ERROR_TOO_MANY_OBJECTS";
        case VK_ERROR_FRAGMENTED_POOL: return "VK_ERROR_FRAGMENTED_POOL";
        case VK_ERROR_UNKNOWN: return "VK_ERROR_UNKNOWN";
        default: return nullptr;
    }
}

// Returns the status for a VkResult that `call` returned.
inline Status vulkan_error(VkResult result, const char* call) noexcept {
    const ErrorCode code = result == VK_ERROR_OUT_OF_HOST_MEMORY ? VKROPE_ERROR_OUT_OF_HOST_MEMORY
                           : result == VK_ERROR_OUT_OF_DEVICE_MEMORY
                               ? VKROPE_ERROR_OUT_OF_DEVICE_MEMORY
                           : result == VK_ERROR_DEVICE_LOST ? VKROPE_ERROR_DEVICE_LOST
                           : result == VK_TIMEOUT           ? VKROPE_ERROR_TIMEOUT
                                                            : VKROPE_ERROR_VULKAN;
    const char* known = result_name(result);
    Status status = known ? error(code, "%s returned %s", call, known)
                          : error(code, "%s returned VkResult %d", call, int(result));
    status.vk_result = result;
    return status;
}

// Returns the status of a call that creates `handle`. On failure, sets the handle to null, because
// its value is then undefined and must not be destroyed.
template <class Handle>
Status created(VkResult result, Handle& handle, const char* call) noexcept {
    if (result == VK_SUCCESS) return {};
    handle = VK_NULL_HANDLE;
    return vulkan_error(result, call);
}

}  // namespace vkrope
