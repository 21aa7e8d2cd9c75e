// SPDX-License-Identifier: MIT
// Makes deliberate bugs, which prove that the layer's checks for such bugs are enabled.
#include <memory>

#include "support/test_device.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t head_dim = 64, tokens = 16;

// A device that counts the messages of its layer, and the objects of a rotation in place on it.
struct Seeded {
    explicit Seeded(const char* part_of_message) {
        DeviceOptions options{.select = device().info().uuid,
                              .validation = true,
                              .no_push_descriptors = (device().ref().enabled &
                                                      VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) == 0};
        wanted = part_of_message;
        options.user_data = this;
        options.on_message = [](void* user, VkBool32, const char* id, const char* text) {
            auto& seeded = *static_cast<Seeded*>(user);
            seeded.reports += std::strstr(id, seeded.wanted) || std::strstr(text, seeded.wanted);
        };
        on = must(Device::open(options));
        const RopeParams r = rotation(VKROPE_HALF_SPLIT, head_dim, head_dim);
        table = must(AngleTable::make(on, r, VKROPE_ANGLES_FACTORED_TEXTURE, tokens));
        q = must(Buffer::make(on, tokens * head_dim * 4));
    }

    // Rotates twice, and calls `between` to record commands between the rotations.
    void rotate_twice(const DeviceRef& ref, const std::function<void(VkCommandBuffer)>& between) {
        const Owned<Kernel> kernel(
            must(create(ref, {.pairing = VKROPE_HALF_SPLIT,
                              .rotary_dim = head_dim,
                              .tensor = {{VKROPE_F32, VKROPE_F32, head_dim, 0}},
                              .angles = VKROPE_ANGLES_FACTORED_TEXTURE})));
        Owned<DescriptorArena> arena;
        if (!(ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
            arena.reset(must(create_arena(kernel.get(), 2)));
        const Tensor tensor{.where = q.whole(), .heads = 1};
        const Call call{
            .tokens = tokens, .in = {tensor}, .out = {tensor}, .angles = table.angles()};
        must(on.submit([&](VkCommandBuffer commands) {
            if (Status s = record(commands, kernel.get(), call, arena.get()); !s) return s;
            between(commands);
            return record(commands, kernel.get(), call, arena.get());
        }));
        // A thread of the layer may report after the wait for the fence, and then reads the
        // kernel's pipeline.
        const auto wait = reinterpret_cast<PFN_vkDeviceWaitIdle>(
            on.ref().get_instance_proc_addr(on.ref().instance, "vkDeviceWaitIdle"));
        wait(on.ref().device);
    }

    // Records the barrier that boundary() specifies.
    void barrier(VkCommandBuffer commands) const {
        const Boundary at = boundary();
        VkMemoryBarrier memory = {};
        memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        memory.srcAccessMask = at.output_access;
        memory.dstAccessMask = at.in_place_access;
        const auto record_it = reinterpret_cast<PFN_vkCmdPipelineBarrier>(
            on.ref().get_instance_proc_addr(on.ref().instance, "vkCmdPipelineBarrier"));
        record_it(commands, at.stage, at.stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
    }

    const char* wanted = nullptr;  // a part of the message that is counted
    std::size_t reports = 0;
    Device on;
    AngleTable table;
    Buffer q;
};

// Functions of Vulkan with one bug: they bind only half of the range of storage buffers.
PFN_vkGetInstanceProcAddr real_instance_proc_addr;
PFN_vkGetDeviceProcAddr real_device_proc_addr;
PFN_vkUpdateDescriptorSets real_update;

VKAPI_ATTR void VKAPI_CALL update_with_halves(VkDevice device, std::uint32_t count,
                                              const VkWriteDescriptorSet* writes, std::uint32_t,
                                              const VkCopyDescriptorSet*) {
    for (std::uint32_t i = 0; i < count; ++i) {
        VkWriteDescriptorSet write = writes[i];
        VkDescriptorBufferInfo half = {};
        if (write.pBufferInfo) {
            half = *write.pBufferInfo;
            half.range /= 2;
            write.pBufferInfo = &half;
        }
        real_update(device, 1, &write, 0, nullptr);
    }
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_proc_addr(VkDevice device, const char* name) {
    const PFN_vkVoidFunction found = real_device_proc_addr(device, name);
    if (std::strcmp(name, "vkUpdateDescriptorSets") != 0) return found;
    real_update = reinterpret_cast<PFN_vkUpdateDescriptorSets>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(update_with_halves);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_proc_addr(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = real_instance_proc_addr(instance, name);
    if (std::strcmp(name, "vkGetDeviceProcAddr") != 0) return found;
    real_device_proc_addr = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(device_proc_addr);
}

}  // namespace

TEST_CASE(
    "synchronisation validation is on: a second rotation in place that does not wait for the first "
    "is reported") {
    Seeded seeded("SYNC-HAZARD");
    for (const bool waits : {true, false}) {
        seeded.rotate_twice(seeded.on.ref(), [&](VkCommandBuffer commands) {
            if (waits) seeded.barrier(commands);
        });
        CHECK((seeded.reports != 0) == !waits);
    }
}

TEST_CASE("GPU-assisted validation is on: rows outside the bound range are reported") {
    if (!gpu_assisted()) {
        MESSAGE("skipped: this run is without GPU-assisted validation");
        return;
    }
    Seeded seeded("out of bounds");
    DeviceRef ref = seeded.on.ref();
    REQUIRE_FALSE((ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR));
    real_instance_proc_addr = ref.get_instance_proc_addr;
    for (const bool halved : {false, true}) {
        if (halved) ref.get_instance_proc_addr = instance_proc_addr;
        seeded.rotate_twice(ref, [&](VkCommandBuffer commands) { seeded.barrier(commands); });
        CHECK((seeded.reports != 0) == halved);
    }
}

}  // namespace vkrope::test
