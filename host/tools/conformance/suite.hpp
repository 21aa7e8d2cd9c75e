// SPDX-License-Identifier: MIT
// What the tool runs: checks in named groups, wherever they come from, each of which has an outcome
// on each device. One report serves them all.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "shell/failure.hpp"

namespace vkrope::conformance {

class DeviceUnderTest;

enum class Verdict {
    pass,
    fail,
    unsupported,  ///< the library, or this device, does not take it; the reason says what. Never a
                  ///< pass
    error,        ///< could not be judged: its files are wrong, memory ran out, the device failed
    computed,     ///< ran, and there was nothing to compare with
};
inline constexpr Verdict verdicts[] = {Verdict::pass, Verdict::fail, Verdict::unsupported,
                                       Verdict::error, Verdict::computed};

/// Whether something was checked, and is as it should be: a run without such a check is no success.
constexpr bool is_good(Verdict verdict) noexcept {
    return verdict == Verdict::pass || verdict == Verdict::computed;
}

/// "pass", as the report says it.
const char* word_for(Verdict verdict) noexcept;

struct Outcome {
    Verdict verdict = Verdict::pass;
    std::string reason = {};               ///< empty for what passed
    std::optional<double> max_error = {};  ///< largest |actual - expected|
    /// Largest error in units of the accuracy contract, where the check measures it.
    std::optional<double> max_u = {};
    std::optional<double> max_ulp = {};  ///< and in units of the last place of what is stored
    tools::ExitCode exit =
        tools::ExitCode::bad_file;  ///< of an error: what the tool returns for it
    double seconds = 0;             ///< filled in by whoever runs the check
};

/// Why a check ends before it has a result: thrown from any depth, caught by whoever runs the
/// check.
class Refusal : public std::runtime_error {
   public:
    Refusal(Verdict verdict, tools::ExitCode exit, const std::string& reason, Code code = Code::ok)
        : std::runtime_error(reason), verdict_(verdict), exit_(exit), code_(code) {}
    Outcome outcome() const { return {.verdict = verdict_, .reason = what(), .exit = exit_}; }
    /// Of the library, where it refused.
    Code code() const noexcept { return code_; }

   private:
    Verdict verdict_;
    tools::ExitCode exit_;
    Code code_;
};

template <class... Values>
[[noreturn]] void unsupported(fmt::format_string<Values...> reason, Values&&... values) {
    throw Refusal(Verdict::unsupported, tools::ExitCode::success,
                  fmt::format(reason, std::forward<Values>(values)...));
}

/// A file that is wrong, or that contradicts another one.
template <class... Values>
[[noreturn]] void wrong_file(fmt::format_string<Values...> reason, Values&&... values) {
    throw Refusal(Verdict::error, tools::ExitCode::bad_file,
                  fmt::format(reason, std::forward<Values>(values)...));
}

/// Ends the check unless `status` is ok: what the library refuses is unsupported, with its own
/// sentence; all else is an error.
void check(const Status& status, const std::string& prefix = {});

template <class T>
T value_of(Result<T>&& result, const std::string& prefix = {}) {
    check(result.status, prefix);
    return std::move(result.value);
}

class Check {
   public:
    virtual ~Check() = default;

    /// Unique among all checks of a run; --filter knows it by this.
    virtual const std::string& id() const noexcept = 0;

    /// May throw Refusal.
    virtual Outcome run(DeviceUnderTest& device) = 0;

    /// The options, beside --device and --filter, that find this check again.
    virtual std::string source_options() const = 0;
};

struct Group {
    std::string name;
    std::vector<std::unique_ptr<Check>> checks;
};

}  // namespace vkrope::conformance
