// SPDX-License-Identifier: MIT
// Q and K of one layer on the device, and vkrope's rotation of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "roof/copy_roof.hpp"
#include "shapes.hpp"
#include "verify.hpp"

namespace vkrope::bench {

/// Tensors: inputs hold the pattern, outputs hold nothing of use.
class Layer {
   public:
    Layer(Device& device, const Shape& shape, Element element, bool in_place);

    const Shape& shape() const noexcept { return shape_; }
    Element element() const noexcept { return element_; }
    /// A scattered K is not, whatever was asked for.
    bool in_place(bool key) const noexcept { return in_place_ && !(key && shape_.scatters()); }
    VkDescriptorBufferInfo in(bool key) const { return (key ? k_in_ : q_in_).whole(); }
    VkDescriptorBufferInfo out(bool key) const {
        return (in_place(key) ? key ? k_in_ : q_in_ : key ? k_out_ : q_out_).whole();
    }

    /// Bytes that a rotation reads of both tensors, and writes as many: in place those of rotated
    /// channels, else all.
    std::uint64_t bytes_read() const { return bytes_read(false) + bytes_read(true); }
    /// As many, for the copy.
    std::vector<Copied> copies() const;

    /// Of what a rotation of the pattern left.
    Checked check(bool key, double bound_u);

   private:
    std::uint64_t bytes_read(bool key) const;

    Shape shape_;
    Element element_;
    bool in_place_;
    Buffer q_in_, k_in_, q_out_, k_out_;  // in place: `out` is where the copy goes
};

/// Angles, ids, slots and a kernel: what an engine makes once, and record() needs.
class Rope {
   public:
    /// The layer outlives it. A command buffer takes so many calls at most.
    Rope(Device& device, const Layer& layer, AngleSource angles, std::uint32_t calls = 1,
         Mapping mapping = Mapping::by_device);

    /// Before a new command buffer.
    void begin() noexcept { reset(arena_.get()); }
    /// Q and K in one call, as engines do; or in two, one after the other.
    Status record(VkCommandBuffer commands);
    Status record_unfused(VkCommandBuffer commands);

    AngleSource angles() const noexcept { return table_.plan().source; }
    /// Workgroups and invocations of each, of its first dispatch.
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

/// What create() is asked for.
KernelInfo kernel_info(const Shape& shape, Element element, AngleSource angles,
                       Mapping mapping = Mapping::by_device);

}  // namespace vkrope::bench
