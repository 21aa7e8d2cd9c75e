// SPDX-License-Identifier: MIT
// The roof: RoPE is limited by memory bandwidth, so the upper limit of its speed on a device is the
// speed of a shader that copies the same bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "copy_roof/timing.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::tools {

// One copy. Both ranges have the same size, a multiple of 16. They are the same or do not overlap.
struct Copied {
    VkDescriptorBufferInfo from = {}, to = {};
};

// Copies the bytes that one rotation reads to where the rotation writes, with several copy shaders
// that differ in access width, vectors per invocation, access pattern and workgroup size. settle()
// tries all of them; afterwards only the fastest are timed, alternately with the code that is
// compared with them. Move-only.
class CopyRoof {
   public:
    CopyRoof() noexcept;
    ~CopyRoof();
    CopyRoof(CopyRoof&&) noexcept;
    CopyRoof& operator=(CopyRoof&&) noexcept;

    // Compiles the shaders once, for any number of rotations.
    static Result<CopyRoof> make(Device& device);

    // Sets the buffers to copy, which must stay valid until the next aim(), and how a timing
    // repeats the copies.
    void aim(std::vector<Copied> copies, Repeat repeat = {});

    // Warms up and discards all times. Finds the fastest shaders, unless the last aim() copied the
    // same sizes in the same way. Returns not_supported if the device has no timestamps, unless
    // `wall_clock_will_do`.
    Status settle(bool wall_clock_will_do = false);

    // Times each of the fastest shaders once, after settle().
    Status round();
    // Copies once with the shader `shader`, below `shader_count()`. Returns nanoseconds.
    Result<double> copy(std::size_t shader);
    std::size_t shader_count() const;

    // Results of the fastest shader after round(): the median of its rounds and its last round, in
    // nanoseconds, and its name.
    double best_ns() const;
    double last_ns() const;
    std::string best_name() const;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope::tools
