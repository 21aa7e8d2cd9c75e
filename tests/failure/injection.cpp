// SPDX-License-Identifier: MIT
#include "injection.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <new>
#include <set>

#include "support/fake_vulkan/host_memory.hpp"

namespace vkrope::test {

namespace {

ErrorCode code_for(VkResult result) {
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

// A list of tolerances, and a record of those that were needed.
class Tolerated {
   public:
    explicit Tolerated(const std::vector<Tolerance>& list) : list_(list), seen_(list.size()) {}

    bool operator()(const Scenario& scenario, const std::string& entry, VkResult result,
                    ErrorCode outcome) {
        for (std::size_t i = 0; i < list_.size(); ++i) {
            const Tolerance& one = list_[i];
            if (scenario.name.rfind(one.scenario, 0) != 0 || one.entry != entry) continue;
            seen_[i].applies = true;
            if (!contains(one.results, result) || !contains(one.outcomes, outcome)) continue;
            seen_[i].results.insert(result);
            seen_[i].outcomes.insert(outcome);
            return true;
        }
        return false;
    }

    void check_needed() const {
        for (std::size_t i = 0; i < list_.size(); ++i) {
            if (!seen_[i].applies) continue;
            INFO("\"" << list_[i].scenario << "\", " << list_[i].entry
                      << ": tolerated, but it never comes to that");
            for (const VkResult result : list_[i].results)
                CHECK_MESSAGE(seen_[i].results.contains(result), int(result));
            for (const ErrorCode outcome : list_[i].outcomes)
                CHECK_MESSAGE(seen_[i].outcomes.contains(outcome), int(outcome));
        }
    }

   private:
    struct Seen {
        bool applies = false;
        std::set<VkResult> results;
        std::set<ErrorCode> outcomes;
    };
    const std::vector<Tolerance>& list_;
    std::vector<Seen> seen_;
};

// The call that fails in a run, counted from 1: one with a VkResult, or one of operator new.
struct Failing {
    std::size_t call = 0;
    VkResult with = VK_SUCCESS;
    bool stays = false;  // every later call of the same entry point fails, too
    std::size_t allocation = 0;
};

// One run of a scenario; the fake is restarted before it.
class Run {
   public:
    Run(const Scenario& scenario, const Failing& failing) : scenario_(scenario) {
        fake().restart(scenario.config);
        std::shared_ptr<void> prepared = scenario.prepare();
        const std::vector<std::string> alive = fake().alive();
        const std::size_t before = fake().points().size();
        if (failing.call != 0)
            fake().failure = {before + failing.call, failing.with, failing.stays};
        observe_host_memory(failing.allocation);
        status = act(prepared.get());
        allocations = observed_allocations();
        fake().failure = {};
        points.assign(fake().points().begin() + std::ptrdiff_t(before), fake().points().end());
        if (scenario.keeps_nothing) require(fake().alive() == alive, "objects were left behind");
        if (failing.call != 0 || failing.allocation != 0) try_again(prepared.get());
        prepared.reset();
        for (const std::string& fault : fake().faults()) require(false, fault);
        for (const std::string& object : fake().alive())
            require(false, object + " was never destroyed");
    }

    void require(bool condition, const std::string& sentence) {
        if (!condition) wrong_ += "; " + sentence;
    }
    void report(const std::string& what) const {
        if (!wrong_.empty()) FAIL_CHECK(scenario_.name << what << wrong_);
    }

    Status status;
    std::vector<Point> points;
    std::size_t allocations = 0;

   private:
    Status act(void* prepared) {
        try {
            const Status result = scenario_.act(prepared);
            if (bool(result) != (result.what[0] == '\0'))
                require(false, result ? "a success with a sentence" : "a failure without one");
            return result;
        } catch (const std::bad_alloc&) {
            observed_allocations();
            require(false, "std::bad_alloc came out of the library");
        }
        return VKROPE_ERROR_OUT_OF_HOST_MEMORY;
    }

    void try_again(void* prepared) {
        const Status again = act(prepared);
        const bool for_good = !scenario_.keeps_nothing && again.code == status.code &&
                              (status.code == VKROPE_ERROR_DEVICE_LOST ||
                               status.code == VKROPE_ERROR_TIMEOUT);
        require(again || for_good, "a second try without failure: " + words_of(again));
    }

    const Scenario& scenario_;
    std::string wrong_;
};

void fail_call(const Scenario& scenario, const Failing& failing, const char* entry,
               Tolerated& tolerated) {
    Run run(scenario, failing);
    run.require(run.points.size() >= failing.call &&
                    std::string(run.points[failing.call - 1].entry) == entry,
                "the call was not reached");
    const bool is_own = run.status.code == code_for(failing.with) &&
                        run.status.vk_result == failing.with;
    run.require(is_own || tolerated(scenario, entry, failing.with, run.status.code),
                "the outcome was " + words_of(run.status));
    run.report(": call " + std::to_string(failing.call) + ", " + entry +
               (failing.stays ? " from there on" : "") + " returns " +
               std::to_string(int(failing.with)));
}

// Returns the number of failures.
std::size_t fail_everything(const Scenario& scenario, Tolerated& tolerated) {
    Run whole(scenario, {});
    const auto promised = [&](const char* what, std::size_t seen, const Promised& promise) {
        whole.require(promise ? seen == *promise : seen != 0, std::to_string(seen) + " " + what);
    };
    whole.require(bool(whole.status), "without a failure: " + words_of(whole.status));
    promised("calls that may fail", whole.points.size(), scenario.calls);
    promised("host allocations", whole.allocations, scenario.allocations);
    whole.report("");
    std::size_t failures = 0, harmless = 0;
    for (std::size_t at = 1; at <= whole.points.size(); ++at) {
        const Point& point = whole.points[at - 1];
        const std::vector<VkResult> results = result_codes(point.entry, point.fills_array);
        for (const VkResult result : results) {
            for (const bool stays : {false, true})
                fail_call(scenario, {.call = at, .with = result, .stays = stays}, point.entry,
                          tolerated);
        }
        failures += 2 * results.size();
    }
    for (std::size_t at = 1; at <= whole.allocations; ++at) {
        Run run(scenario, {.allocation = at});
        harmless += bool(run.status);
        run.require(run.status || run.status.code == VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                    "the outcome was " + words_of(run.status));
        run.report(": allocation " + std::to_string(at));
    }
    INFO(scenario.name);
    CHECK(harmless == scenario.harmless_allocations);
    return failures + whole.allocations;
}

}  // namespace

void fail_everything(const std::vector<Scenario>& scenarios,
                     const std::vector<Tolerance>& tolerances) {
    Tolerated tolerated(tolerances);
    std::size_t failures = 0;
    for (const Scenario& scenario : scenarios) failures += fail_everything(scenario, tolerated);
    tolerated.check_needed();
    MESSAGE(failures << " failures in " << scenarios.size() << " scenarios");
}

}  // namespace vkrope::test
