// SPDX-License-Identifier: MIT
#include "injection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <new>

#include "host_memory.hpp"
#include "result_codes.hpp"

namespace vkrope::test {

namespace {

struct Totals {
    std::size_t calls = 0, tolerated = 0, allocations = 0, wrong = 0;
};
Totals totals;

struct Verdict {
    bool right = true;
    std::string why;
    void require(bool condition, const std::string& sentence) {
        if (condition) return;
        right = false;
        why += "; " + sentence;
    }
};

Code code_for(VkResult result) {
    switch (result) {
        case VK_ERROR_OUT_OF_HOST_MEMORY: return Code::out_of_host_memory;
        case VK_ERROR_OUT_OF_DEVICE_MEMORY: return Code::out_of_device_memory;
        case VK_ERROR_DEVICE_LOST: return Code::device_lost;
        case VK_TIMEOUT: return Code::timeout;
        default: return Code::vulkan_error;
    }
}

std::string words_of(const Status& status) {
    return "code " + std::to_string(int(status.code)) + ", VkResult " + std::to_string(int(status.vk_result)) + " (" + status.what +
           ")";
}

const Tolerance* tolerance_for(const std::vector<Tolerance>& all, const Scenario& scenario, const Point& point, VkResult result) {
    for (const Tolerance& one : all) {
        if (scenario.name.rfind(one.scenario, 0) != 0 || std::string(one.entry) != point.entry) continue;
        if (one.results.empty() || std::find(one.results.begin(), one.results.end(), result) != one.results.end()) return &one;
    }
    return nullptr;
}

// One run of a scenario, on a fresh fake.
class Run {
   public:
    explicit Run(const Scenario& scenario) : scenario_(scenario) {
        fake().restart(scenario.config);
        prepared_ = scenario.prepare();
        alive_ = fake().alive();
    }

    Status act(Verdict& verdict) {
        try {
            return scenario_.act(prepared_.get());
        } catch (const std::bad_alloc&) {
            observed_allocations();
            verdict.require(false, "std::bad_alloc came out of the library");
        }
        return {Code::out_of_host_memory, VK_SUCCESS, {}};
    }

    void check_kept(Verdict& verdict) const {
        if (scenario_.keeps_nothing) verdict.require(fake().alive() == alive_, "objects were left behind");
    }

    void end(Verdict& verdict) {
        prepared_.reset();
        for (const std::string& fault : fake().faults()) verdict.require(false, fault);
        for (const std::string& object : fake().alive()) verdict.require(false, object + " was never destroyed");
    }

   private:
    const Scenario& scenario_;
    std::shared_ptr<void> prepared_;
    std::vector<std::string> alive_;
};

void count(const Verdict& verdict, const std::string& what) {
    if (verdict.right) return;
    ++totals.wrong;
    FAIL_CHECK(what << verdict.why);
}

// After the failure: the same again, without one.
void retry(Run& run, const Status& first, Verdict& verdict) {
    const Status again = run.act(verdict);
    const bool for_good = first.code == Code::device_lost || first.code == Code::timeout;
    if (for_good && again.code == first.code) return;
    verdict.require(bool(again), "a second try without failure: " + words_of(again));
}

void fail_call(const Scenario& scenario, std::size_t at, const Point& point, VkResult result, bool stays,
               const std::vector<Tolerance>& tolerances) {
    Verdict verdict;
    Run run(scenario);
    const std::size_t before = fake().points().size();
    fake().failure = {before + at, result, stays};
    const Status status = run.act(verdict);
    fake().failure = {};
    const bool reached =
        fake().points().size() >= before + at && std::string(fake().points()[before + at - 1].entry) == point.entry;
    verdict.require(reached, "the call was not reached");
    const Tolerance* tolerance = tolerance_for(tolerances, scenario, point, result);
    const Code own = code_for(result);
    const bool is_own = status.code == own && status.vk_result == result;
    const bool is_tolerated =
        tolerance && std::find(tolerance->outcomes.begin(), tolerance->outcomes.end(), status.code) != tolerance->outcomes.end();
    verdict.require(is_own || is_tolerated, "the outcome was " + words_of(status));
    run.check_kept(verdict);
    retry(run, status, verdict);
    run.end(verdict);
    ++totals.calls;
    totals.tolerated += !is_own;
    count(verdict, scenario.name + ": call " + std::to_string(at) + ", " + point.entry + (stays ? " from there on" : "") +
                       " returns " + std::to_string(int(result)));
}

std::vector<Point> points_of(const Scenario& scenario) {
    Verdict verdict;
    Run run(scenario);
    const std::size_t before = fake().points().size();
    const Status status = run.act(verdict);
    verdict.require(bool(status), "without a failure: " + words_of(status));
    const std::vector<Point> points(fake().points().begin() + std::ptrdiff_t(before), fake().points().end());
    run.check_kept(verdict);
    run.end(verdict);
    count(verdict, scenario.name);
    return points;
}

}  // namespace

void fail_every_call(const Scenario& scenario, const std::vector<Tolerance>& tolerances) {
    const std::vector<Point> points = points_of(scenario);
    REQUIRE(!points.empty());
    for (std::size_t at = 1; at <= points.size(); ++at) {
        const Point& point = points[at - 1];
        const std::vector<VkResult> results = result_codes(point.entry, point.fills_array);
        INFO(point.entry);
        REQUIRE(!results.empty());
        for (const VkResult result : results) {
            for (const bool stays : {false, true}) fail_call(scenario, at, point, result, stays, tolerances);
        }
    }
}

void fail_every_allocation(const Scenario& scenario) {
    std::size_t allocations = 1, harmless = 0;
    for (std::size_t at = 0; at <= allocations; ++at) {
        Verdict verdict;
        Run run(scenario);
        observe_host_memory(at);
        const Status status = run.act(verdict);
        const std::size_t seen = observed_allocations();
        if (at == 0) {
            allocations = seen;
            verdict.require(bool(status), "without a failure: " + words_of(status));
        } else {
            if (status) ++harmless;
            verdict.require(status ? harmless <= scenario.harmless_allocations : status.code == Code::out_of_host_memory,
                            "the outcome was " + words_of(status));
            run.check_kept(verdict);
            retry(run, status, verdict);
            ++totals.allocations;
        }
        run.end(verdict);
        count(verdict, scenario.name + ": allocation " + std::to_string(at));
    }
}

std::string injection_summary() {
    const std::size_t points = totals.calls + totals.allocations;
    return "failure injection: " + std::to_string(points) + " points, " + std::to_string(points - totals.wrong) +
           " failed as they should (" + std::to_string(totals.calls) + " Vulkan calls, " + std::to_string(totals.tolerated) +
           " of them tolerated as listed; " + std::to_string(totals.allocations) + " host allocations)";
}

}  // namespace vkrope::test
