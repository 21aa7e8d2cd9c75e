// SPDX-License-Identifier: MIT
#include "injection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <set>

#include "result_codes.hpp"
#include "support/fake_vulkan/host_memory.hpp"

namespace vkrope::test {

namespace {

struct Totals {
    std::size_t calls = 0, tolerated = 0, allocations = 0, wrong = 0;
    std::set<std::string> scenarios;
};
Totals totals;

// The observed results and outcomes of a tolerated failure.
struct Seen {
    std::set<VkResult> results;
    std::set<Code> outcomes;
};

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
        case VK_ERROR_OUT_OF_HOST_MEMORY: return VKROPE_ERROR_OUT_OF_HOST_MEMORY;
        case VK_ERROR_OUT_OF_DEVICE_MEMORY: return VKROPE_ERROR_OUT_OF_DEVICE_MEMORY;
        case VK_ERROR_DEVICE_LOST: return VKROPE_ERROR_DEVICE_LOST;
        case VK_TIMEOUT: return VKROPE_ERROR_TIMEOUT;
        default: return VKROPE_ERROR_VULKAN;
    }
}

std::string words_of(const Status& status) {
    return "code " + std::to_string(int(status.code)) + ", VkResult " +
           std::to_string(int(status.vk_result)) + " (" + status.what + ")";
}

template <class Item>
bool contains(const std::vector<Item>& all, const Item& item) {
    return std::find(all.begin(), all.end(), item) != all.end();
}

// A list of tolerances, and the ones that were needed.
class Tolerated {
   public:
    explicit Tolerated(const std::vector<Tolerance>& list) : list_(list), seen_(list.size()) {}

    bool operator()(const Scenario& scenario, const Point& point, VkResult result, Code outcome) {
        for (std::size_t i = 0; i < list_.size(); ++i) {
            const Tolerance& one = list_[i];
            if (scenario.name.rfind(one.scenario, 0) != 0 || std::string(one.entry) != point.entry)
                continue;
            if (!contains(one.results, result) || !contains(one.outcomes, outcome)) continue;
            seen_[i].results.insert(result);
            seen_[i].outcomes.insert(outcome);
            return true;
        }
        return false;
    }

    void check_needed() const {
        for (std::size_t i = 0; i < list_.size(); ++i) {
            INFO("\"" << list_[i].scenario << "\", " << list_[i].entry
                      << ": tolerated, but it never comes to that");
            for (const VkResult result : list_[i].results)
                CHECK_MESSAGE(seen_[i].results.contains(result), int(result));
            for (const Code outcome : list_[i].outcomes)
                CHECK_MESSAGE(seen_[i].outcomes.contains(outcome), int(outcome));
        }
    }

   private:
    const std::vector<Tolerance>& list_;
    std::vector<Seen> seen_;
};

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
            const Status status = scenario_.act(prepared_.get());
            const bool silent = status.what[0] == '\0';
            if (bool(status) != silent)
                verdict.require(
                    false, silent ? "a failure without a sentence" : "a success with a sentence");
            return status;
        } catch (const std::bad_alloc&) {
            observed_allocations();
            verdict.require(false, "std::bad_alloc came out of the library");
        }
        return {VKROPE_ERROR_OUT_OF_HOST_MEMORY, VK_SUCCESS, {}};
    }

    void check_kept(Verdict& verdict) const {
        if (scenario_.keeps_nothing)
            verdict.require(fake().alive() == alive_, "objects were left behind");
    }

    void end(Verdict& verdict) {
        prepared_.reset();
        for (const std::string& fault : fake().faults()) verdict.require(false, fault);
        for (const std::string& object : fake().alive())
            verdict.require(false, object + " was never destroyed");
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

// After the failure: the same again, without a failure.
void retry(Run& run, const Scenario& scenario, const Status& first, Verdict& verdict) {
    const Status again = run.act(verdict);
    const bool for_good = !scenario.keeps_nothing && (first.code == VKROPE_ERROR_DEVICE_LOST ||
                                                      first.code == VKROPE_ERROR_TIMEOUT);
    if (for_good && again.code == first.code) return;
    verdict.require(bool(again), "a second try without failure: " + words_of(again));
}

void fail_call(const Scenario& scenario, std::size_t at, const Point& point, VkResult result,
               bool stays, Tolerated& tolerated) {
    Verdict verdict;
    Run run(scenario);
    const std::size_t before = fake().points().size();
    fake().failure = {before + at, result, stays};
    const Status status = run.act(verdict);
    fake().failure = {};
    const bool reached = fake().points().size() >= before + at &&
                         std::string(fake().points()[before + at - 1].entry) == point.entry;
    verdict.require(reached, "the call was not reached");
    const bool is_own = status.code == code_for(result) && status.vk_result == result;
    verdict.require(is_own || tolerated(scenario, point, result, status.code),
                    "the outcome was " + words_of(status));
    run.check_kept(verdict);
    retry(run, scenario, status, verdict);
    run.end(verdict);
    ++totals.calls;
    totals.tolerated += !is_own;
    count(verdict, scenario.name + ": call " + std::to_string(at) + ", " + point.entry +
                       (stays ? " from there on" : "") + " returns " + std::to_string(int(result)));
}

void require_promised(const char* what, std::size_t seen, const Promised& promised,
                      Verdict& verdict) {
    verdict.require(promised ? seen == *promised : seen != 0, std::to_string(seen) + " " + what);
}

std::vector<Point> points_of(const Scenario& scenario) {
    Verdict verdict;
    Run run(scenario);
    const std::size_t before = fake().points().size();
    const Status status = run.act(verdict);
    verdict.require(bool(status), "without a failure: " + words_of(status));
    const std::vector<Point> points(fake().points().begin() + std::ptrdiff_t(before),
                                    fake().points().end());
    require_promised("calls that may fail", points.size(), scenario.calls, verdict);
    run.check_kept(verdict);
    run.end(verdict);
    count(verdict, scenario.name);
    return points;
}

void fail_every_call(const Scenario& scenario, Tolerated& tolerated) {
    totals.scenarios.insert(scenario.name);
    const std::vector<Point> points = points_of(scenario);
    for (std::size_t at = 1; at <= points.size(); ++at) {
        const Point& point = points[at - 1];
        const std::vector<VkResult> results = result_codes(point.entry, point.fills_array);
        INFO(point.entry);
        REQUIRE(!results.empty());
        for (const VkResult result : results) {
            for (const bool stays : {false, true})
                fail_call(scenario, at, point, result, stays, tolerated);
        }
    }
}

void fail_every_allocation(const Scenario& scenario) {
    totals.scenarios.insert(scenario.name);
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
            require_promised("host allocations", seen, scenario.allocations, verdict);
        } else {
            if (status) ++harmless;
            verdict.require(status ? harmless <= scenario.harmless_allocations
                                   : status.code == VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                            "the outcome was " + words_of(status));
            run.check_kept(verdict);
            retry(run, scenario, status, verdict);
            ++totals.allocations;
        }
        run.end(verdict);
        count(verdict, scenario.name + ": allocation " + std::to_string(at));
    }
    INFO(scenario.name);
    CHECK(harmless == scenario.harmless_allocations);
}

}  // namespace

void fail_every_call(const std::vector<Scenario>& scenarios,
                     const std::vector<Tolerance>& tolerances) {
    Tolerated tolerated(tolerances);
    for (const Scenario& scenario : scenarios) fail_every_call(scenario, tolerated);
    tolerated.check_needed();
}

void fail_every_allocation(const std::vector<Scenario>& scenarios) {
    for (const Scenario& scenario : scenarios) fail_every_allocation(scenario);
}

std::string injection_summary() {
    const std::size_t points = totals.calls + totals.allocations;
    return "failure injection: " + std::to_string(points) + " points in " +
           std::to_string(totals.scenarios.size()) + " scenarios, " +
           std::to_string(points - totals.wrong) + " failed as they should (" +
           std::to_string(totals.calls) + " Vulkan calls, " + std::to_string(totals.tolerated) +
           " of them tolerated as listed; " + std::to_string(totals.allocations) +
           " host allocations)";
}

}  // namespace vkrope::test
