// SPDX-License-Identifier: MIT
// A compute shader of the benchmarks on a device: what copies, and what rotates as others do.
// Layouts, pipelines and descriptors are made as those of the library's own kernels.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernel/vulkan/program.hpp"
#include "vkrope/runtime.hpp"

namespace vkrope::bench {

/// Nanoseconds of what is recorded: those of the device, or those that submitting and waiting took
/// where it has no timestamps.
Result<double> time_ns(Device& device,
                       const std::function<Status(VkCommandBuffer)>& record_commands);

/// The median, of an even number the mean of the two in the middle; 0 of nothing.
double median(std::vector<double> values);

/// Move-only.
class Shader {
   public:
    Shader() noexcept;
    ~Shader();
    Shader(Shader&&) noexcept;
    Shader& operator=(Shader&&) noexcept;

    /// constants   specialisation constants from 1 on; 0 is the size of a workgroup along x, and
    /// the one after these along y push_bytes  of push constants
    struct Workgroup {
        std::uint32_t size = 256;  // at most; less where the device allows less
        bool along_y = false;      // or along x; its other sizes are 1
    };
    static Result<Shader> make(Device& device, const PackedModule& module,
                               const std::vector<std::uint32_t>& constants,
                               std::uint32_t push_bytes, const char* name,
                               const Workgroup& workgroup);

    /// Invocations of a workgroup.
    std::uint32_t workgroup_size() const noexcept;

    /// Where no push descriptors are at hand: sets for so many calls of record(), all of them free
    /// again.
    Status take_sets(std::uint32_t calls);

    /// One dispatch of at least `groups` workgroups; the shader counts them along x, then along y.
    void record(VkCommandBuffer commands, const Descriptors& descriptors, const void* push,
                std::uint64_t groups) const noexcept;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope::bench
