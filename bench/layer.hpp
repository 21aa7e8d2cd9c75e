// SPDX-License-Identifier: MIT
// The tensors of an operation on a device, and the operation as vkrope records it.
#pragma once

#include <optional>
#include <vector>

#include "copy_roof/copy_roof.hpp"
#include "verify.hpp"
#include "verify/on_device.hpp"

namespace vkrope::bench {

using Record = std::function<Status(VkCommandBuffer)>;

// Inputs contain the pattern; outputs contain NaN until they are written.
class Layer {
   public:
    // in_place  applies to tensors that are not stored in a cache
    Layer(Device& device, const verify::Operation& operation, bool in_place = false);

    // Returns the operation with the buffers of this object.
    const verify::Operation& operation() const noexcept { return operation_; }
    const Call& call() const noexcept { return operation_.call; }

    // Returns the number of bytes that a rotation reads; it writes the same number. In place, only
    // rotated channels count.
    std::uint64_t bytes_read() const;
    // Returns copies that move the same number of bytes; where the rotation is in place, they are.
    std::vector<tools::Copied> copies() const;

    // Returns bytes of an output.
    verify::Bytes output(TensorIndex which, std::uint64_t first, std::uint64_t bytes,
                         bool second = false);
    // Fills the outputs with NaN, unless they are inputs.
    void clear();
    // Writes the inputs again, and clear().
    void fill();
    // Checks all outputs of `operation`, which read and wrote the tensors of this object. Throws
    // Failure, with `what` before the name of the tensor.
    Checked check_outputs(const verify::Operation& operation, std::optional<double> bound_u = {},
                          const char* what = "");

   private:
    bool in_place(TensorIndex which) const;
    std::uint64_t bytes_read(TensorIndex which) const;

    verify::Operation operation_;
    bool in_place_;
    Buffer in_[tensor_count], out_[tensor_count];  // in place, there is no `out_`
    Buffer second_[tensor_count];                  // second destinations
    Buffer scales_[tensor_count];                  // made scales
};

// An operation with its angle table, ids, slots, parameters and kernel: objects that an engine
// creates once and that record() uses.
class Pass {
   public:
    // The tensors of the operation have buffers that must outlive the object. A command buffer
    // takes at most `calls` calls.
    Pass(Device& device, const verify::Operation& operation, std::uint32_t calls = 1);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    const verify::Operation& operation() const noexcept { return operation_; }
    // Returns the call with all of its buffers.
    const Call& call() const noexcept { return call_; }

    // Must be called before one of the next functions records into a new command buffer.
    void begin() const noexcept { vkrope_arena_reset(arena_.get()); }
    Status record_next(VkCommandBuffer commands) const;
    // Records Q and K one after the other.
    Status record_next_unfused(VkCommandBuffer commands) const;
    // Records into a new command buffer.
    Status record(VkCommandBuffer commands) const {
        begin();
        return record_next(commands);
    }

    // The number and the size of the workgroups of the first dispatch.
    struct Grid {
        std::uint64_t workgroups = 0;
        std::uint32_t workgroup_size = 0;
    };
    Grid grid() const;

   private:
    verify::Operation operation_;
    verify::OnDevice on_device_;
    Call call_;
    Owned<Kernel> kernel_;
    Owned<DescriptorArena> arena_;
};

// Returns the device's function of this name.
template <class Function>
Function function_of(const Device& device, const char* name) {
    const DeviceRef& ref = device.ref();
    const auto find = reinterpret_cast<PFN_vkGetDeviceProcAddr>(
        ref.get_instance_proc_addr(ref.instance, "vkGetDeviceProcAddr"));
    return reinterpret_cast<Function>(find(ref.device, name));
}

// Returns a function that records the barrier between passes that access the same bytes.
Record barrier(const Device& device);

}  // namespace vkrope::bench
