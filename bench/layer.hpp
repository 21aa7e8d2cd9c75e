// SPDX-License-Identifier: MIT
// Contains Q and K of one layer on the device and rotates them with vkrope.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "roof/copy_roof.hpp"
#include "shapes.hpp"
#include "verify.hpp"

namespace vkrope::bench {

/// Tensors of a layer. Inputs contain the pattern; outputs contain NaN until they are written.
class Layer {
   public:
    Layer(Device& device, const Shape& shape, Element element, bool in_place);

    const Shape& shape() const noexcept { return shape_; }
    Element element() const noexcept { return element_; }
    /// Returns whether a tensor is rotated in place; a scattered K never is.
    bool in_place(bool key) const noexcept { return in_place_ && !(key && shape_.scatters()); }
    VkDescriptorBufferInfo in(bool key) const { return (key ? k_in_ : q_in_).whole(); }
    VkDescriptorBufferInfo out(bool key) const {
        return (in_place(key) ? key ? k_in_ : q_in_ : key ? k_out_ : q_out_).whole();
    }

    /// Returns the number of bytes that a rotation reads from both tensors; it writes the same
    /// number. In place, only rotated channels count.
    std::uint64_t bytes_read() const { return bytes_read(false) + bytes_read(true); }
    /// Returns copies that move the same number of bytes.
    std::vector<Copied> copies() const;

    /// Checks the output after a rotation of the pattern.
    Checked check(bool key, double bound_u);

   private:
    std::uint64_t bytes_read(bool key) const;

    Shape shape_;
    Element element_;
    bool in_place_;
    Buffer q_in_, k_in_, q_out_, k_out_;  // in place, `out` is the destination of the copy
};

/// Angles, ids, slots and a kernel: objects that an engine creates once and that record() uses.
class Rope {
   public:
    /// The layer must outlive the object. A command buffer takes at most `calls` calls.
    Rope(Device& device, const Layer& layer, AngleSource angles, std::uint32_t calls = 1,
         Mapping mapping = VKROPE_MAPPING_AUTOMATIC);

    /// Must be called before recording a new command buffer.
    void begin() noexcept { vkrope_arena_reset(arena_.get()); }
    /// Records Q and K in one call, as engines do, or in two calls, one after the other.
    Status record(VkCommandBuffer commands);
    Status record_unfused(VkCommandBuffer commands);

    AngleSource angles() const noexcept { return table_.layout().source; }
    /// The number and the size of the workgroups of the first dispatch.
    struct Grid {
        std::uint64_t workgroups = 0;
        std::uint32_t workgroup_size = 0;
    };
    Grid grid() const;

   private:
    AngleTable table_;
    Buffer ids_, slots_;
    Owned<Kernel> kernel_;
    Owned<DescriptorArena> arena_;
    Call call_;
};

/// Returns the KernelInfo for create().
KernelInfo kernel_info(const Shape& shape, Element element, AngleSource angles,
                       Mapping mapping = VKROPE_MAPPING_AUTOMATIC);

}  // namespace vkrope::bench
