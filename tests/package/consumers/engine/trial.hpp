// SPDX-License-Identifier: MIT
// Calls over buffers that the host sees, with kernels that layers of equal infos share, and the
// comparison of numbers.
#pragma once

#include <cmath>
#include <deque>
#include <unordered_map>

#include "gpu.hpp"
#include "vkrope/vkrope.hpp"

namespace engine {

class Trial {
   public:
    unsigned wrong() const { return wrong_; }
    std::size_t values() const { return values_; }

   protected:
    Trial(const Gpu& gpu, VkCommandPool pool) : gpu_(gpu), pool_(pool) {}
    Trial(const Trial&) = delete;
    Trial& operator=(const Trial&) = delete;
    ~Trial() {
        for (Buffer& buffer : buffers_) gpu_.destroy(buffer);
    }

    // Returns a new buffer with the numbers that make() returns for each index.
    template <class T, class Make>
    Buffer& fill(std::size_t numbers, const Make& make) {
        buffers_.push_back(
            gpu_.make_buffer(numbers * sizeof(T), VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true));
        for (std::size_t i = 0; i < numbers; ++i)
            static_cast<T*>(buffers_.back().mapped)[i] = T(make(i));
        return buffers_.back();
    }

    static vkrope::Tensor tensor(const Buffer& buffer, std::uint32_t heads) {
        vkrope::Tensor made;
        made.where = buffer.whole();
        made.heads = heads;
        return made;
    }

    // Returns the kernel of the first layer whose info was equal.
    const vkrope::Kernel* kernel_of(const vkrope::KernelInfo& info) {
        vkrope::Owned<vkrope::Kernel>& kernel = kernels_[info];
        if (!kernel) {
            auto made = vkrope::own(vkrope::create(gpu_.ref(), info));
            check(made.status, "create, of a layer");
            kernel = std::move(made.value);
        }
        return kernel.get();
    }
    std::size_t kernels() const { return kernels_.size(); }

    void run(const vkrope::KernelInfo& info, const vkrope::Call& call) {
        const vkrope::Kernel* kernel = kernel_of(info);
        vkrope::Owned<vkrope::DescriptorArena> arena;
        if (!(gpu_.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
            const auto sets = vkrope::dispatches(kernel, call);
            check(sets.status, "dispatches, of a layer");
            auto made = vkrope::own(vkrope::create_arena(kernel, std::uint32_t(sets.value)));
            check(made.status, "create_arena, of a layer");
            arena = std::move(made.value);
        }
        const VkCommandBuffer commands = gpu_.begin(pool_);
        check(vkrope::record(commands, kernel, call, arena.get()), "record, a layer");
        memory_barrier(commands, vkrope::boundary().stage, vkrope::boundary().output_access,
                       VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
        gpu_.submit_and_wait(commands);
    }

    void is(double got, double exact, double bound = 0) {
        wrong_ += !(std::fabs(got - exact) <= bound);
        ++values_;
    }
    static const float* floats(const Buffer& buffer) {
        return static_cast<const float*>(buffer.mapped);
    }
    static const unsigned char* bytes(const Buffer& buffer) {
        return static_cast<const unsigned char*>(buffer.mapped);
    }

    const Gpu& gpu_;
    VkCommandPool pool_;

   private:
    std::unordered_map<vkrope::KernelInfo, vkrope::Owned<vkrope::Kernel>, vkrope::InfoHash,
                       vkrope::InfoEqual>
        kernels_;
    std::deque<Buffer> buffers_;
    unsigned wrong_ = 0;
    std::size_t values_ = 0;
};

}  // namespace engine
