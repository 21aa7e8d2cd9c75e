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
        case Verdict::computed: return "computed";
    }
    return "?";
}

void check(const Status& status, const std::string& prefix) {
    const std::string reason = prefix + static_cast<const char*>(status.what);
    switch (status.code) {
        case Code::ok: return;
        case Code::invalid_argument:
        case Code::not_supported:
        case Code::limit_exceeded:
            throw Refusal(Verdict::unsupported, ExitCode::success, reason, status.code);
        case Code::invalid_data: throw Refusal(Verdict::error, ExitCode::bad_file, reason);
        case Code::out_of_host_memory:
        case Code::out_of_device_memory:
            throw Refusal(Verdict::error, ExitCode::out_of_memory, reason);
        case Code::no_device: throw Refusal(Verdict::error, ExitCode::no_device, reason);
        case Code::device_lost:
        case Code::timeout:
        case Code::vulkan_error: break;
    }
    throw Refusal(Verdict::error, ExitCode::device_failed, reason);
}

}  // namespace vkrope::conformance
