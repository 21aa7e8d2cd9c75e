// SPDX-License-Identifier: MIT
// A check of the built-in suite: a name and a function that measures and compares.
#pragma once

#include <algorithm>
#include <functional>

#include "conformance/builtin/builtin.hpp"
#include "conformance/device_under_test.hpp"

namespace vkrope::conformance {

struct Trial;
struct Rotated;

// A running check: the device and the findings. The reason of a failure is the first problem
// found.
class Test {
   public:
    explicit Test(DeviceUnderTest& on) : device(on) {}

    DeviceUnderTest& device;

    // Runs a trial and compares its result with the definition. Throws Refusal if the library
    // refuses the trial or the device fails.
    Rotated run(const Trial& trial);

    // Fails the check unless the condition holds.
    template <class... Values>
    void expect(bool condition, fmt::format_string<Values...> message, Values&&... values) {
        ++expectations_;
        if (!condition && problem_.empty())
            problem_ = fmt::format(message, std::forward<Values>(values)...);
    }

    // Adds a clause to the reason of a check that fails: what the device may have done. Only the
    // first clause is kept.
    void explain(const std::string& clause) {
        if (explanation_.empty()) explanation_ = clause;
    }

    // Replaces the clause, for a caller that knows more.
    void explain_instead(const std::string& clause) { explanation_ = clause; }
    // Adds the text of a smaller operation that fails, too.
    void show(std::string operation) { operation_ = std::move(operation); }
    bool wrong() const { return !problem_.empty(); }

    // Keep the largest errors so far: as |actual - exact|, in units of the contract, and in units
    // of the last place.
    void measure_error(double error) { largest(error_, error); }
    void measure_u(double u) { largest(u_, u); }
    void measure_ulp(double ulp) { largest(ulp_, ulp); }
    void add_curve(ErrorCurve curve) { curves_.push_back(std::move(curve)); }

    // Returns the result. A check that compared nothing is an error.
    Outcome outcome() const {
        Outcome outcome = {.reason = problem_,
                           .operation = operation_,
                           .max_error = error_,
                           .max_u = u_,
                           .max_ulp = ulp_,
                           .curves = curves_};
        if (!problem_.empty()) {
            outcome.verdict = Verdict::fail;
            outcome.reason += explanation_.empty() ? "" : "; it looks as if " + explanation_;
        } else if (expectations_ == 0) {
            outcome = {.verdict = Verdict::error, .reason = "the check compared nothing"};
        }
        return outcome;
    }

   private:
    static void largest(std::optional<double>& so_far, double number) {
        so_far = std::max(so_far.value_or(0), number);
    }

    std::size_t expectations_ = 0;
    std::string problem_, explanation_, operation_;
    std::optional<double> error_, u_, ulp_;
    std::vector<ErrorCurve> curves_;
};

class BuiltinCheck : public Check {
   public:
    using Function = std::function<void(Test&)>;

    BuiltinCheck(std::string id, std::string source_options, Function function)
        : id_(std::move(id)), source_options_(std::move(source_options)),
          function_(std::move(function)) {}

    const std::string& id() const noexcept override { return id_; }
    std::string source_options() const override { return source_options_; }
    Outcome run(DeviceUnderTest& device) override {
        Test test(device);
        try {
            function_(test);
        } catch (const Refusal& refusal) {
            // A case of a user may request something that the library rejects. A built-in check
            // that requests such a thing is wrong.
            if (refusal.code() == VKROPE_ERROR_INVALID_ARGUMENT)
                return {.verdict = Verdict::error,
                        .reason = refusal.what(),
                        .exit = tools::ExitCode::verification_failed};
            // A later refusal as unsupported does not hide an earlier failure.
            Outcome so_far = test.outcome();
            if (refusal.outcome().verdict == Verdict::unsupported &&
                so_far.verdict == Verdict::fail)
                return so_far;
            throw;
        }
        return test.outcome();
    }

   private:
    std::string id_, source_options_;
    Function function_;
};

// Collects the checks of one group, and keeps checks of Level::full only if requested.
class Checks {
   public:
    Checks(Group& group, std::string prefix, const Extent& of)
        : extent(of), group_(group), prefix_(std::move(prefix)) {}

    const Extent extent;

    void add(const std::string& name, BuiltinCheck::Function function, Level of = Level::quick) {
        if (of == Level::quick || extent.level == Level::full)
            add_with(of == Level::full ? "--level full" : "", name, std::move(function));
    }

    // Adds a check that these options select.
    void add_with(const std::string& options, const std::string& name,
                  BuiltinCheck::Function function) {
        group_.checks.push_back(
            std::make_unique<BuiltinCheck>(prefix_ + '/' + name, options, std::move(function)));
    }

   private:
    Group& group_;
    std::string prefix_;
};

// The groups. The file of each group describes the checks.
void add_arithmetic(Checks& checks);
void add_elements(Checks& checks);
void add_positions(Checks& checks);
void add_angles(Checks& checks);
void add_offsets(Checks& checks);
void add_chains(Checks& checks);
void add_replays(Checks& checks);
void add_same_bits(Checks& checks);
void add_operations(Checks& checks);
void add_random(Checks& checks);

}  // namespace vkrope::conformance
