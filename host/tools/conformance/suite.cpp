// SPDX-License-Identifier: MIT
#include "conformance/suite.hpp"

namespace vkrope::conformance {

using tools::ExitCode;

const char* word_for(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::pass: return "pass";
        case Verdict::fail: return "fail";
        case Verdict::unstable: return "unstable";
        case Verdict::unsupported: return "unsupported";
        case Verdict::error: return "error";
        case Verdict::waived: return "waived";
    }
    return "?";
}

void check(const Status& status, const std::string& prefix) {
    const std::string reason = prefix + static_cast<const char*>(status.what);
    switch (status.code) {
        case VKROPE_SUCCESS: return;
        case VKROPE_ERROR_INVALID_ARGUMENT:
        case VKROPE_ERROR_NOT_SUPPORTED:
        case VKROPE_ERROR_LIMIT_EXCEEDED:
            throw Refusal(Verdict::unsupported, ExitCode::success, reason, status.code);
        case VKROPE_ERROR_INVALID_DATA: throw Refusal(Verdict::error, ExitCode::bad_file, reason);
        case VKROPE_ERROR_OUT_OF_HOST_MEMORY:
        case VKROPE_ERROR_OUT_OF_DEVICE_MEMORY:
            throw Refusal(Verdict::error, ExitCode::out_of_memory, reason);
        case VKROPE_ERROR_NO_DEVICE: throw Refusal(Verdict::error, ExitCode::no_device, reason);
        case VKROPE_ERROR_DEVICE_LOST:
        case VKROPE_ERROR_TIMEOUT:
        case VKROPE_ERROR_INTERNAL:
        case VKROPE_ERROR_VULKAN: break;
    }
    throw Refusal(Verdict::error, ExitCode::device_failed, reason);
}

}  // namespace vkrope::conformance
