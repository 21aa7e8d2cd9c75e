// SPDX-License-Identifier: MIT
// Checks in named groups, from any origin; each has an outcome on each device. All share one
// report.
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
    unstable,     ///< repeated, its answers differ from each other
    unsupported,  ///< the library, or this device, does not support it; the reason says what. Never
                  ///< counts as a pass
    error,        ///< could not be judged: wrong files, out of memory, device failure
    computed,     ///< ran, but there was nothing to compare with
    waived,       ///< failed or erred, which is known: --waive names it
};
inline constexpr Verdict verdicts[] = {Verdict::pass,        Verdict::fail,  Verdict::unstable,
                                       Verdict::unsupported, Verdict::error, Verdict::computed,
                                       Verdict::waived};

/// True if something was checked and is correct: a run without such a check is not a success.
constexpr bool is_good(Verdict verdict) noexcept {
    return verdict == Verdict::pass || verdict == Verdict::computed;
}

/// True if the run is not a success for it.
constexpr bool is_bad(Verdict verdict) noexcept {
    return verdict == Verdict::fail || verdict == Verdict::unstable || verdict == Verdict::error;
}

/// Returns the word of the report, "pass".
const char* word_for(Verdict verdict) noexcept;

/// The largest errors of an angle source at some positions, in units of the accuracy contract.
struct ErrorCurve {
    std::string source;
    double bound_u = 0;
    std::vector<std::pair<std::int64_t, double>> points;  ///< position, error
};

struct Outcome {
    Verdict verdict = Verdict::pass;
    std::string reason = {};               ///< empty if passed
    std::optional<double> max_error = {};  ///< largest |actual - expected|
    /// Largest error in units of the accuracy contract, if the check measures it.
    std::optional<double> max_u = {};
    std::optional<double> max_ulp = {};  ///< largest error in units of the last place
    tools::ExitCode exit =
        tools::ExitCode::bad_file;        ///< for an error: the exit code that the tool returns
    double seconds = 0;                   ///< filled in by whoever runs the check
    std::vector<ErrorCurve> curves = {};  ///< for the page, if the check measures them
};

/// Ends a check before it has a result: thrown at any depth, caught by the caller of run().
class Refusal : public std::runtime_error {
   public:
    Refusal(Verdict verdict, tools::ExitCode exit, const std::string& reason,
            ErrorCode code = VKROPE_SUCCESS)
        : std::runtime_error(reason), verdict_(verdict), exit_(exit), code_(code) {}
    Outcome outcome() const { return {.verdict = verdict_, .reason = what(), .exit = exit_}; }
    /// The code of the library, if it refused.
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

/// Throws Refusal for a file that is wrong or contradicts another one.
template <class... Values>
[[noreturn]] void wrong_file(fmt::format_string<Values...> reason, Values&&... values) {
    throw Refusal(Verdict::error, tools::ExitCode::bad_file,
                  fmt::format(reason, std::forward<Values>(values)...));
}

/// Throws Refusal unless `status` is ok: a refusal of the library is unsupported, with its
/// sentence; anything else is an error.
void check(const Status& status, const std::string& prefix = {});

template <class T>
T value_of(Result<T>&& result, const std::string& prefix = {}) {
    check(result.status, prefix);
    return std::move(result.value);
}

class Check {
   public:
    virtual ~Check() = default;

    /// Unique among all checks of a run; --filter matches it.
    virtual const std::string& id() const noexcept = 0;

    /// May throw Refusal.
    virtual Outcome run(DeviceUnderTest& device) = 0;

    /// The options that select this check again, in addition to --device and --filter.
    virtual std::string source_options() const = 0;
};

struct Group {
    std::string name;
    std::vector<std::unique_ptr<Check>> checks;
};

}  // namespace vkrope::conformance
