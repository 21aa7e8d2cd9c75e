// SPDX-License-Identifier: MIT
// The failure of a command: one sentence and an exit code. Only this file defines the exit codes.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

enum class ExitCode : int {
    success = 0,
    verification_failed = 1,
    usage = 2,          // wrong command line, or a request that this version does not support
    no_device = 3,      // no device, or none whose limits are large enough
    device_failed = 4,  // device lost, timeout or exit; of vkrope-conformance also a crash
    bad_file = 5,       // a file that cannot be read, has wrong content, or cannot be written
    out_of_memory = 6,
};

class Failure : public std::runtime_error {
   public:
    Failure(ExitCode code, const std::string& sentence)
        : std::runtime_error(sentence), code_(code) {}
    ExitCode code() const noexcept { return code_; }

   private:
    ExitCode code_;
};

template <class... Values>
[[noreturn]] void fail(ExitCode code, fmt::format_string<Values...> sentence, Values&&... values) {
    throw Failure(code, fmt::format(sentence, std::forward<Values>(values)...));
}

// The subject of a library call: the same ErrorCode maps to one exit code for a model file and to
// another for a device.
enum class Subject { model_file, device };

// Throws Failure unless `status` is ok. `prefix` comes before the sentence of the library.
void check(const Status& status, Subject subject, const std::string& prefix = {});

// Returns the value of a Result, or throws Failure.
template <class T>
T value_of(Result<T>&& result, Subject subject, const std::string& prefix = {}) {
    check(result.status, subject, prefix);
    return std::move(result.value);
}

}  // namespace vkrope::tools
