// SPDX-License-Identifier: MIT
// The memory, the angle table and the parameters of an operation on a device.
#pragma once

#include "verify/operation.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::verify {

// Returns the rotation from which the angle table of `operation` is made.
RopeParams rotation_of(const Operation& operation);

// Move-only. The object must not move while a call() is in use.
class OnDevice {
   public:
    static Result<OnDevice> make(Device& device, const Operation& operation);

    // Returns `of`, a call with the angle table of the operation, with the buffers of this object.
    Call call(Call of) const;

    // Returns the memory, if the operation has one buffer.
    Buffer& memory() noexcept { return memory_.front().buffer; }

    // Copies a part of the memory from the device to `memory`, which is like that of the
    // operation.
    Status download(const VkDescriptorBufferInfo& part, Bytes& memory);

    AngleTableLayout angles() const noexcept { return table_.layout(); }

   private:
    struct Piece {
        std::size_t first = 0;  // index of its first byte
        Buffer buffer;
    };

    std::size_t piece_with(std::size_t byte) const;  // returns its index

    std::vector<Piece> memory_;
    Buffer parameters_;
    AngleTable table_;            // none if nothing rotates
    AngleTableLayout plan_ = {};  // only for a cos_sin_cache
};

}  // namespace vkrope::verify
