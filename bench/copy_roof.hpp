// SPDX-License-Identifier: MIT
// The roof: RoPE moves bytes, so the most that it can reach on a device is a shader that copies the same bytes.
#pragma once

#include <memory>
#include <string>

#include "vkrope/runtime.hpp"

namespace vkrope::bench {

/// Copies what one rotation reads to where it writes, with several copy shaders. Move-only.
class CopyRoof {
   public:
    CopyRoof() noexcept;
    ~CopyRoof();
    CopyRoof(CopyRoof&&) noexcept;
    CopyRoof& operator=(CopyRoof&&) noexcept;

    /// The buffers must be disjoint (a rotation out of place) and must outlive the roof.
    static Result<CopyRoof> make(Device& device, const HostRotation::Buffers& buffers);

    /// Times every copy shader once. not_supported where the device has no timestamps.
    Status round();

    /// Nanoseconds of the fastest shader: the median over its rounds; and which one that is.
    double best_ns() const;
    std::string best_name() const;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope::bench
