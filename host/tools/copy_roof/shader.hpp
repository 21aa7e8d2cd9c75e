// SPDX-License-Identifier: MIT
// A compute shader of the benchmarks: a copy, or a rotation in the style of another library.
// Layouts, pipelines and descriptors are created as for the library's own kernels.
#pragma once

#include <memory>
#include <vector>

#include "kernel/vulkan/program.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// A compute shader and its pipeline. Move-only.
class Shader {
   public:
    Shader() noexcept;
    ~Shader();
    Shader(Shader&&) noexcept;
    Shader& operator=(Shader&&) noexcept;

    // constants   specialisation constants 1 and up; constant 0 is the workgroup size along x, and
    // the constant after `constants` is the workgroup size along y
    // push_bytes  size of the push constants
    struct Workgroup {
        std::uint32_t size = 256;  // upper limit; lower if the device allows less
        bool along_y = false;      // false: along x; the other sizes are 1
    };
    static Result<Shader> make(Device& device, const PackedModule& module,
                               const std::vector<std::uint32_t>& constants,
                               std::uint32_t push_bytes, const char* name,
                               const Workgroup& workgroup);

    // Number of invocations in a workgroup.
    std::uint32_t workgroup_size() const noexcept;

    // If there are no push descriptors, provides descriptor sets for `calls` calls of record(),
    // all of which are free again.
    Status take_sets(std::uint32_t calls);

    // Records one dispatch of at least `groups` workgroups; the shader numbers them along x, then
    // along y.
    void record(VkCommandBuffer commands, const Descriptors& descriptors, const void* push,
                std::uint64_t groups) const noexcept;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope::tools
