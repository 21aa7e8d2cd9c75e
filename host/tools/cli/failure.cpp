// SPDX-License-Identifier: MIT
#include "cli/failure.hpp"

namespace vkrope::tools {
namespace {

ExitCode exit_code(ErrorCode code, Subject subject) {
    switch (code) {
        case VKROPE_SUCCESS: return ExitCode::success;
        case VKROPE_ERROR_INVALID_ARGUMENT: return ExitCode::usage;
        case VKROPE_ERROR_NOT_SUPPORTED:
        case VKROPE_ERROR_LIMIT_EXCEEDED:
            // A device limit that no option can avoid is equivalent to having no device. Limits
            // that an option can avoid are checked earlier.
            return subject == Subject::model_file ? ExitCode::bad_file : ExitCode::no_device;
        case VKROPE_ERROR_INVALID_DATA: return ExitCode::bad_file;
        case VKROPE_ERROR_NO_DEVICE: return ExitCode::no_device;
        case VKROPE_ERROR_OUT_OF_HOST_MEMORY:
        case VKROPE_ERROR_OUT_OF_DEVICE_MEMORY: return ExitCode::out_of_memory;
        case VKROPE_ERROR_DEVICE_LOST:
        case VKROPE_ERROR_TIMEOUT:
        case VKROPE_ERROR_INTERNAL:
        case VKROPE_ERROR_VULKAN: return ExitCode::device_failed;
    }
    return ExitCode::device_failed;
}

}  // namespace

void check(const Status& status, Subject subject, const std::string& prefix) {
    if (!status) {
        throw Failure(exit_code(status.code, subject),
                      prefix + static_cast<const char*>(status.what));
    }
}

}  // namespace vkrope::tools
