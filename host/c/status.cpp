// SPDX-License-Identifier: MIT
// Converts statuses and exceptions to codes.
#include "status.hpp"

#include <array>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

#include "c/guard.hpp"

namespace vkrope::c {

static_assert(sizeof(vkrope_result) == 4 && sizeof(vkrope_error::what) == sizeof(Status::what));

// A C code is the negated C++ code.
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

// Messages of the C++ tiers use the C++ names of fields and values. This table holds every message
// with a name that differs in C. Whole messages are compared, because a message may contain text of
// the caller, such as a file name. # stands for a number.
struct Renamed {
    const char *cpp, *c;
};
constexpr Renamed renamed[] = {
    {"rotation.precision is #: it must be an AnglePrecision",
     "rotation.precision is #: it must be a vkrope_angle_precision"},
    {"rotation.precision is float32: source must be direct_texture or direct_buffer, but it is #",
     "rotation.precision is VKROPE_ANGLE_PRECISION_FLOAT32: source must be "
     "VKROPE_ANGLES_DIRECT_TEXTURE or _BUFFER, but it is #"},
    {"angles is by_default: it must be AnglePlan::source, which plan_angles chose",
     "angles is VKROPE_ANGLES_BY_DEFAULT: it must be vkrope_angle_plan::source, which "
     "vkrope_plan_angles chose"},
    {"source is cos_sin_cache: use plan_cos_sin_cache for a cache of your own cos and sin",
     "source is VKROPE_ANGLES_COS_SIN_CACHE: use vkrope_plan_cos_sin_cache for a cache of your own "
     "cos and sin"},
    {"source is #: it must be an AngleSource", "source is #: it must be a vkrope_angle_source"},
    {"element is #: it must be an Element", "element is #: it must be a vkrope_element"},
    {"plan.source is #: it must be the source that plan_angles chose",
     "plan.source is #: it must be the source that vkrope_plan_angles chose"},
    {"plan.bytes is #: it must be the size that plan_angles returned for # positions",
     "plan.bytes is #: it must be the size that vkrope_plan_angles returned for # positions"},
    {"plan.source is # and plan.element is #: they must be the values that plan_angles returned",
     "plan.source is # and plan.element is #: they must be the values that vkrope_plan_angles "
     "returned"},
    {"angles.plan: its # rows do not fit in its # bytes; it must be a plan that plan_angles "
     "returned",
     "angles.plan: its # rows do not fit in its # bytes; it must be a plan that vkrope_plan_angles "
     "returned"},
    {"phase is true: a cos_sin_cache holds whole angles, so it must be false",
     "phase is VK_TRUE: a VKROPE_ANGLES_COS_SIN_CACHE holds whole angles, so it must be VK_FALSE"},
    {"channel_angles is true: angles must be cos_sin_cache, but it is #",
     "channel_angles is VK_TRUE: angles must be VKROPE_ANGLES_COS_SIN_CACHE, but it is #"},
    {"two_parameter_sets is true: the kernel has no weights, biases or given scales",
     "two_parameter_sets is VK_TRUE: the kernel has no weights, biases or given scales"},
    {"sections.axes is #: with axis_ids it must be 2 to #",
     "sections.axes is #: with VKROPE_POSITIONS_AXIS_IDS it must be 2 to #"},
    {"device.enabled is 0x#: it must hold only bits of DeviceFeature",
     "device.enabled is 0x#: it must hold only bits of vkrope_device_features"},
    {"conversion is native: it needs DeviceFeature::float_controls and shader_float16, and a "
     "device with "
     "shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16",
     "conversion is VKROPE_CONVERSION_NATIVE: it needs VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS and "
     "_SHADER_FLOAT16, and a device with "
     "shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16"},
    {"scale.kind is #: it must be a QueryScaling",
     "scale.kind is #: it must be a vkrope_query_scaling"},
    {"role is #: it must be a DualChunkRole", "role is #: it must be a vkrope_dual_chunk_role"},
    {"not enough memory for a Kernel", "not enough memory for a vkrope_kernel"},
    {"not enough memory for a PositionKernel", "not enough memory for a vkrope_position_kernel"},
    {"not enough memory for a DescriptorArena", "not enough memory for a vkrope_arena"},
};

using Numbers = std::array<std::string_view, 2>;

/// True if `what` is exactly this sentence; `numbers` then receives the numbers at each #.
bool is_sentence(const char* what, const char* sentence, Numbers& numbers) noexcept {
    std::size_t found = 0;
    for (; *sentence; ++sentence) {
        if (*sentence != '#') {
            if (*what++ != *sentence) return false;
            continue;
        }
        const std::size_t length = std::strspn(what, "0123456789abcdef");
        if (length == 0 || found == numbers.size()) return false;
        numbers[found++] = {what, length};
        what += length;
    }
    return *what == '\0';
}

/// Writes `sentence` with these numbers to `to`, truncated if it does not fit.
void write_sentence(const char* sentence, const Numbers& numbers,
                    char (&to)[sizeof(vkrope_error::what)]) noexcept {
    std::size_t size = 0, used = 0;
    for (; *sentence; ++sentence) {
        const std::string_view part = *sentence == '#' ? numbers[used++]
                                                       : std::string_view(sentence, 1);
        size += part.copy(to + size, sizeof to - 1 - size);
    }
    to[size] = '\0';
}

void write_in_words_of_c(const char* what, char (&to)[sizeof(vkrope_error::what)]) noexcept {
    Numbers numbers;
    for (const Renamed& name : renamed) {
        if (is_sentence(what, name.cpp, numbers)) return write_sentence(name.c, numbers, to);
    }
    std::memcpy(to, what, sizeof to);
}

vkrope_result report(vkrope_error* out, vkrope_result result, const Status& status) noexcept {
    if (out) {
        out->code = result;
        out->vk_result = status.vk_result;
        write_in_words_of_c(status.what, out->what);
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
        return report(out, error(Code::out_of_host_memory, "there is not enough host memory"));
    } catch (const std::length_error&) {  // from a container: exceeds the memory of any host
        return report(
            out, error(Code::out_of_host_memory, "a size is too large for the memory of any host"));
    } catch (const std::exception& e) {
        return report(out, VKROPE_ERROR_INTERNAL,
                      error(Code::ok, "unexpected exception: %s", e.what()));
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
