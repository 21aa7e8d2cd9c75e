// SPDX-License-Identifier: MIT
// The roof: RoPE moves bytes, so the most that it can reach on a device is a shader that copies the
// same bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "vkrope/runtime.hpp"

namespace vkrope::bench {

/// Bytes that are copied; both ranges have one size, a multiple of 16, and are apart.
struct Copied {
    VkDescriptorBufferInfo from = {}, to = {};
};

/// Copies what one rotation reads to where it writes, with several copy shaders: widths, vectors an
/// invocation, patterns of access and sizes of workgroups. settle() tries all of them; the fastest
/// then take turns with what is held against them. Move-only.
class CopyRoof {
   public:
    CopyRoof() noexcept;
    ~CopyRoof();
    CopyRoof(CopyRoof&&) noexcept;
    CopyRoof& operator=(CopyRoof&&) noexcept;

    /// Compiles the shaders, once for any number of rotations.
    static Result<CopyRoof> make(Device& device);
    /// For one rotation, out of place.
    static Result<CopyRoof> make(Device& device, const HostRotation::Buffers& buffers);

    /// From now on copies these, which must outlive the next aim().
    void aim(std::vector<Copied> copies);

    /// Warms up, and forgets all times; finds out which shaders are the fastest, unless as many
    /// bytes were copied before. not_supported where the device has no timestamps, unless the wall
    /// clock will do.
    Status settle(bool wall_clock_will_do = false);

    /// Times each of the fastest shaders once, after settle().
    Status round();
    /// Copies once with one of `shader_count()` shaders; returns its nanoseconds.
    Result<double> copy(std::size_t shader);
    std::size_t shader_count() const;

    /// Of the fastest shader, after round(): nanoseconds, the median over its rounds and those of
    /// the last round; and which one it is.
    double best_ns() const;
    double last_ns() const;
    std::string best_name() const;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope::bench
