// SPDX-License-Identifier: MIT
// This program, started again: the process that touches a driver. VKROPE_WORKER in its environment
// says what it has to do.
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

/// What a worker has to do, on which device.
struct Job {
    std::string device = {};    ///< for DeviceOptions::select
    std::string manifest = {};  ///< of the driver, which alone is then loaded; empty: all drivers
    std::string group = {};     ///< whose checks it runs; empty: it lists the devices
    std::optional<Traits> traits = {};  ///< as another worker has measured them
};

/// The environment in which a program loads this driver only, unless `manifest` is empty.
std::map<std::string, std::string> with_driver(const std::string& manifest);

/// The environment of the worker that does this job.
std::map<std::string, std::string> environment_of(const Job& job);

/// The job of this process; nothing: it is not a worker. To be called once.
std::optional<Job> job_of_this_process();

/// Does the job and ends the process. Lines to the parent: without a group {"devices": [device]};
/// else {"traits"} first, if they are not known, then {"begun": id} and {"outcome"} for each check,
/// and {"interrupted": signal} if one came. After a check that the device did not survive it runs
/// no other. {"failure", "code"} says why it cannot go on.
///
/// find_group  called for a job with a group
[[noreturn]] void work(const Job& job, DeviceOptions options,
                       const std::function<Group()>& find_group);

}  // namespace vkrope::conformance
