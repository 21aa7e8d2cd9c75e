// SPDX-License-Identifier: MIT
// Runs this program a second time as a worker, the process that calls a driver. VKROPE_WORKER in
// the environment describes the worker's job.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/isolation/child.hpp"
#include "conformance/suite.hpp"
#include "conformance/traits.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

// The job of a worker and the device for the job.
struct Job {
    std::string device = {};            // value of DeviceOptions::select
    std::string group = {};             // group of checks to run; empty: list the devices
    std::optional<Traits> traits = {};  // as measured by another worker
};

// Returns the environment of the worker that does this job.
std::map<std::string, std::string> environment_of(const Job& job);

// Returns the job of this process, or nullopt if it is not a worker. To be called once.
std::optional<Job> job_of_this_process();

// Does the job and ends the process. Sends lines to the parent. Without a group: {"devices":
// [device]}. With a group: {"traits"} first, unless they are known; then {"begun": id} and
// {"outcome"} for each check; {"interrupted": signal} if a signal came. After a check that lost
// the device, runs no other check. {"failure", "code"} gives the reason for stopping.
//
// find_group  returns the group of the job, if it has one
[[noreturn]] void work(const Job& job, DeviceOptions options,
                       const std::function<Group()>& find_group);

}  // namespace vkrope::conformance
