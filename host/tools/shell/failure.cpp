// SPDX-License-Identifier: MIT
#include "shell/failure.hpp"

namespace vkrope::tools {
namespace {

ExitCode exit_code(Code code, Subject subject) {
    switch (code) {
        case Code::ok: return ExitCode::success;
        case Code::invalid_argument: return ExitCode::usage;
        case Code::not_supported:
        case Code::limit_exceeded:
            // A device limit that no option can avoid is equivalent to having no device. Limits
            // that an option can avoid are checked earlier.
            return subject == Subject::model_file ? ExitCode::bad_file : ExitCode::no_device;
        case Code::invalid_data: return ExitCode::bad_file;
        case Code::no_device: return ExitCode::no_device;
        case Code::out_of_host_memory:
        case Code::out_of_device_memory: return ExitCode::out_of_memory;
        case Code::device_lost:
        case Code::timeout:
        case Code::vulkan_error: return ExitCode::device_failed;
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
