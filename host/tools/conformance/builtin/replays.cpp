// SPDX-License-Identifier: MIT
// Checks one command buffer that is recorded once and submitted a hundred times: each submission
// reads its inputs again, and equal inputs give equal bits.
#include "conformance/builtin/trial.hpp"
#include "verify/compare.hpp"
#include "verify/on_device.hpp"
#include "verify/place.hpp"

namespace vkrope::conformance {
namespace {

constexpr int replays = 100;
constexpr std::uint32_t tokens = 32, heads = 3, head_dim = 64;

template <class Function>
Function function(const DeviceRef& ref, const char* name) {
    return reinterpret_cast<Function>(ref.get_instance_proc_addr(ref.instance, name));
}

// A command buffer that may be submitted repeatedly.
class Recording {
   public:
    Recording(DeviceUnderTest& device, const DeviceUnderTest::KernelCall& call)
        : device_(device), ref_(device.device().ref()) {
        const Kernel* kernel = device.kernel_for(call.info);
        arena_ = device.arena_for(kernel, value_of(dispatches(kernel, call.call)));
        VkCommandPoolCreateInfo pool = {};
        pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool.queueFamilyIndex = device.device().queue_family();
        need(function<PFN_vkCreateCommandPool>(ref_, "vkCreateCommandPool")(ref_.device, &pool,
                                                                            nullptr, &pool_));
        VkCommandBufferAllocateInfo allocate = {};
        allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
        allocate.commandPool = pool_;
        allocate.commandBufferCount = 1;
        VkFenceCreateInfo fence = {};
        fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
        try {
            need(function<PFN_vkAllocateCommandBuffers>(ref_, "vkAllocateCommandBuffers")(
                ref_.device, &allocate, &commands_));
            need(function<PFN_vkCreateFence>(ref_, "vkCreateFence")(ref_.device, &fence, nullptr,
                                                                    &fence_));
            record_once(kernel, call.call);
        } catch (...) {
            destroy_all();
            throw;
        }
    }
    ~Recording() {
        if (!busy_)
            destroy_all();
        else
            static_cast<void>(arena_.release());
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    void replay() {
        VkSubmitInfo submit = {};
        submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
        submit.commandBufferCount = 1;
        submit.pCommandBuffers = &commands_;
        need(function<PFN_vkQueueSubmit>(ref_, "vkQueueSubmit")(device_.device().queue(), 1,
                                                                &submit, fence_));
        busy_ = true;
        need(function<PFN_vkWaitForFences>(ref_, "vkWaitForFences")(ref_.device, 1, &fence_,
                                                                    VK_TRUE, device_.timeout_ns()));
        busy_ = false;
        need(function<PFN_vkResetFences>(ref_, "vkResetFences")(ref_.device, 1, &fence_));
    }

   private:
    static void need(VkResult result) {
        if (result != VK_SUCCESS) {
            throw Refusal(Verdict::error, tools::ExitCode::device_failed,
                          fmt::format("a Vulkan call returned {} around a replay", int(result)));
        }
    }

    void record_once(const Kernel* kernel, const Call& call) {
        const auto barrier = function<PFN_vkCmdPipelineBarrier>(ref_, "vkCmdPipelineBarrier");
        VkCommandBufferBeginInfo begin = {};
        begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
        need(function<PFN_vkBeginCommandBuffer>(ref_, "vkBeginCommandBuffer")(commands_, &begin));
        const Boundary boundary = vkrope::boundary();
        VkMemoryBarrier memory = {};
        memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        memory.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
        memory.dstAccessMask = boundary.input_access | boundary.output_access |
                               boundary.in_place_access;
        barrier(commands_, VK_PIPELINE_STAGE_TRANSFER_BIT, boundary.stage, 0, 1, &memory, 0,
                nullptr, 0, nullptr);
        check(record(commands_, kernel, call, arena_.get()));
        memory.srcAccessMask = boundary.output_access | boundary.in_place_access;
        memory.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
        barrier(commands_, boundary.stage, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &memory, 0,
                nullptr, 0, nullptr);
        need(function<PFN_vkEndCommandBuffer>(ref_, "vkEndCommandBuffer")(commands_));
    }

    void destroy_all() {
        function<PFN_vkDestroyFence>(ref_, "vkDestroyFence")(ref_.device, fence_, nullptr);
        function<PFN_vkDestroyCommandPool>(ref_, "vkDestroyCommandPool")(ref_.device, pool_,
                                                                         nullptr);
    }

    DeviceUnderTest& device_;
    const DeviceRef ref_;
    Owned<DescriptorArena> arena_;
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
    bool busy_ = false;
};

// Rotates a hundred times. Before each rotation, writes new values and positions to memory.
void hold_replays(Test& test, Element element, bool in_place) {
    const auto of_replay = [&](int replay) {
        const auto seed = std::uint32_t(replay);
        Trial trial = trial_of(element, head_dim, tokens);
        trial.shape.q_per_group = heads;
        trial.info.positions = VKROPE_POSITIONS_IDS;
        trial.in_place.fill(in_place);
        trial.rows[Q] = random_elements(element, elements_of(trial, Q), 70 + seed);
        trial.ids = random_positions(tokens, -70, 70, 80 + seed);  // some are out of range
        return trial;
    };
    verify::Operation operation = verify::placed(of_replay(0));
    verify::OnDevice there = value_of(verify::OnDevice::make(test.device.device(), operation));
    Recording recording(test.device, {operation.info, there.call(operation.call)});
    for (int replay = 0; replay < replays; ++replay) {
        const Trial trial = of_replay(replay);
        operation = verify::placed(trial);
        Bytes& memory = operation.memory;
        check(there.memory().upload(memory.data(), memory.size()));
        recording.replay();
        test.device.download(there.memory(), memory.data(), memory.size());
        test.expect(verify::packed_rows(operation, Q, memory) == test.run(trial).rows[Q],
                    "replay {} gives different bits than a rotation of its own", replay);
    }
}

}  // namespace

void add_replays(Checks& checks) {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        for (const bool in_place : {false, true}) {
            checks.add(
                fmt::format("{}_{}", name_of(element), in_place ? "in_place" : "out_of_place"),
                [=](Test& test) { hold_replays(test, element, in_place); });
        }
    }
}

}  // namespace vkrope::conformance
