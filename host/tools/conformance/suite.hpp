// SPDX-License-Identifier: MIT
// Defines checks, which form named groups and have an outcome on each device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "cli/failure.hpp"

namespace vkrope::conformance {

class DeviceUnderTest;

enum class Verdict {
    pass,
    fail,
    unstable,     // repeated runs gave different answers
    unsupported,  // the library or this device does not support the check, as the reason says;
                  // never counts as a pass
    error,        // has no result: out of memory, device failure
    waived,       // failed or erred as expected: --waive names the check
};
inline constexpr Verdict verdicts[] = {Verdict::pass,        Verdict::fail,  Verdict::unstable,
                                       Verdict::unsupported, Verdict::error, Verdict::waived};

// Returns true if a check with this verdict fails the run.
constexpr bool is_bad(Verdict verdict) noexcept {
    return verdict == Verdict::fail || verdict == Verdict::unstable || verdict == Verdict::error;
}

// Returns the word for reports, such as "pass".
const char* word_for(Verdict verdict) noexcept;

// The largest errors of an angle source at some positions, in units of the accuracy contract.
struct ErrorCurve {
    std::string source;
    double bound_u = 0;
    std::vector<std::pair<std::int64_t, double>> points;  // position, error
};

struct Outcome {
    Verdict verdict = Verdict::pass;
    std::string reason = {};               // empty if passed
    std::string operation = {};            // a small one that fails, as C++, if one was found
    std::optional<double> max_error = {};  // largest |actual - expected|
    // Largest error in units of the accuracy contract, if the check measures it.
    std::optional<double> max_u = {};
    std::optional<double> max_ulp = {};  // largest error in units of the last place
    tools::ExitCode exit =
        tools::ExitCode::bad_file;        // for an error: the exit code that the tool returns
    double seconds = 0;                   // set by the caller of run()
    std::vector<ErrorCurve> curves = {};  // for the page, if the check measures them
};

// Ends a check before it has a result: thrown at any depth, caught by the caller of run().
class Refusal : public std::runtime_error {
   public:
    Refusal(Verdict verdict, tools::ExitCode exit, const std::string& reason,
            ErrorCode code = VKROPE_SUCCESS)
        : std::runtime_error(reason), verdict_(verdict), exit_(exit), code_(code) {}
    Outcome outcome() const { return {.verdict = verdict_, .reason = what(), .exit = exit_}; }
    // Returns the error code of the library, if the library refused.
    ErrorCode code() const noexcept { return code_; }

   private:
    Verdict verdict_;
    tools::ExitCode exit_;
    ErrorCode code_;
};

template <class... Values>
[[noreturn]] void unsupported(fmt::format_string<Values...> reason, Values&&... values) {
    throw Refusal(Verdict::unsupported, tools::ExitCode::success,
                  fmt::format(reason, std::forward<Values>(values)...));
}

// Throws Refusal unless `status` is ok. A refusal by the library becomes `unsupported`, with the
// library's sentence; any other failure becomes an error.
void check(const Status& status, const std::string& prefix = {});

template <class T>
T value_of(Result<T>&& result, const std::string& prefix = {}) {
    check(result.status, prefix);
    return std::move(result.value);
}

class Check {
   public:
    virtual ~Check() = default;

    // Unique among all checks of a run; --filter matches it.
    virtual const std::string& id() const noexcept = 0;

    // Runs the check. May throw Refusal.
    virtual Outcome run(DeviceUnderTest& device) = 0;

    // Returns the options that, with --device and --filter, select this check again.
    virtual std::string source_options() const = 0;
};

struct Group {
    std::string name;
    std::vector<std::unique_ptr<Check>> checks;
};

}  // namespace vkrope::conformance
