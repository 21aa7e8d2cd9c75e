// SPDX-License-Identifier: MIT
// The memory, the angle table and the parameters of an operation on a device.
#pragma once

#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::verify {

/// The rotation of its angle table.
RopeParams rotation_of(const Operation& operation);

/// Move-only. It must not move while a call() is in use.
class OnDevice {
   public:
    static Result<OnDevice> make(Device& device, const Operation& operation);

    /// The call of the operation, or of another one with the same table, with the buffers here.
    Call call(Call of) const;

    Buffer& memory() noexcept { return memory_; }

   private:
    Buffer memory_, parameters_;
    AngleTable table_;
    AngleTableLayout plan_ = {};  // of a cos_sin_cache
};

}  // namespace vkrope::verify
