// SPDX-License-Identifier: MIT
#include "copy_roof/shader.hpp"

#include <algorithm>

#include "base/divide_up.hpp"
#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope::tools {

struct Shader::Impl {
    vkrope_device* device = nullptr;
    Program program;
    VkPipeline pipeline = VK_NULL_HANDLE;
    DescriptorArena* arena = nullptr;
    std::uint32_t sets = 0, workgroup_size = 0, push_bytes = 0;

    ~Impl() {
        if (!program.vk.vkDestroyPipeline || device->pending)
            return;  // a queue that never answered may still use the arena
        vkrope_arena_destroy(arena);
        program.vk.vkDestroyPipeline(program.device.device, pipeline, program.device.allocator);
        destroy_layouts(program);
    }
};

Shader::Shader() noexcept = default;
Shader::~Shader() = default;
Shader::Shader(Shader&&) noexcept = default;
Shader& Shader::operator=(Shader&&) noexcept = default;

Result<Shader> Shader::make(Device& device, const PackedModule& module,
                            const std::vector<std::uint32_t>& constants, std::uint32_t push_bytes,
                            const char* name, const Workgroup& workgroup) {
    Result<Shader> made;
    made->impl_ = std::make_unique<Impl>();
    Impl& impl = *made->impl_;
    impl.device = device.get();
    impl.push_bytes = push_bytes;
    if (made.status = borrow(impl.program, device.ref()); !made) return made;
    const VkPhysicalDeviceLimits& limits = *device.info().limits;
    impl.workgroup_size = std::min({workgroup.size, limits.maxComputeWorkGroupInvocations,
                                    limits.maxComputeWorkGroupSize[workgroup.along_y ? 1 : 0]});
    std::vector<std::uint32_t> values = {workgroup.along_y ? 1 : impl.workgroup_size};
    values.insert(values.end(), constants.begin(), constants.end());
    values.push_back(workgroup.along_y ? impl.workgroup_size : 1);
    Result<Specializer> specializer = Specializer::of(unpack(module.bytes, module.size));
    if (made.status = specializer.status; !made) return made;
    const Result<Spirv> words = specializer->specialize(values.data(), std::uint32_t(values.size()),
                                                        0, LoopControls::as_written,
                                                        impl.program.binds);
    if (made.status = words.status; !made) return made;
    if (made.status = create_layouts(impl.program, push_bytes); !made) return made;
    made.status = create_pipeline(impl.program, words.value, name, impl.pipeline);
    if (made) made.status = made->take_sets(1);
    return made;
}

std::uint32_t Shader::workgroup_size() const noexcept {
    return impl_->workgroup_size;
}

Status Shader::take_sets(std::uint32_t calls) {
    if (impl_->program.device.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return {};
    if (impl_->sets >= calls) {
        vkrope_arena_reset(impl_->arena);
        return {};
    }
    const Result<DescriptorArena*> arena = create_arena_of(&impl_->program, calls);
    if (!arena) return arena.status;
    vkrope_arena_destroy(impl_->arena);
    impl_->arena = arena.value;
    impl_->sets = calls;
    return {};
}

void Shader::record(VkCommandBuffer commands, const Descriptors& descriptors, const void* push,
                    std::uint64_t groups) const noexcept {
    const std::uint64_t most = impl_->program.dispatch_limits.workgroup_count[0];
    const std::uint64_t x = std::clamp<std::uint64_t>(groups, 1, most);
    const DispatchShape shape = {{std::uint32_t(x), std::uint32_t(divide_up(groups, x)), 1}};
    bind(commands, impl_->program, descriptors, impl_->arena);
    dispatch(commands, impl_->program, impl_->pipeline, push, impl_->push_bytes, shape);
}

}  // namespace vkrope::tools
