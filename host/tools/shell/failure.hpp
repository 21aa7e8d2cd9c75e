// SPDX-License-Identifier: MIT
// How a command ends before it is done: one sentence and an exit code. The only file that knows the
// codes.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "vkrope/types.hpp"

namespace vkrope::tools {

enum class ExitCode : int {
    success = 0,
    verification_failed = 1,
    usage = 2,          // the command line is wrong, or asks for what this version does not do
    no_device = 3,      // no device, or none that can do this: its limits are too small
    device_failed = 4,  // device lost, driver crashed or did not answer in time
    bad_file = 5,       // a file that cannot be read, has wrong content or cannot be written
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

/// What a library call was about: the same Code means another exit code for a model file than for a
/// device.
enum class Subject { model_file, device };

/// Ends the command unless `status` is ok. `prefix` comes before the library's sentence.
void check(const Status& status, Subject subject, const std::string& prefix = {});

/// The value of a Result, or the end of the command.
template <class T>
T value_of(Result<T>&& result, Subject subject, const std::string& prefix = {}) {
    check(result.status, subject, prefix);
    return std::move(result.value);
}

}  // namespace vkrope::tools
