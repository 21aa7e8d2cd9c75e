// SPDX-License-Identifier: MIT
// Records one command buffer at a time, submits it, waits up to the timeout, and reads the elapsed
// time.
#include <cinttypes>

#include "base/status.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

namespace {

class Recording {
   public:
    explicit Recording(bool& flag) : flag_(flag) { flag_ = true; }
    ~Recording() { flag_ = false; }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    bool& flag_;
};

}  // namespace

// Starts recording. Makes writes of earlier submissions visible to all later commands.
Status DeviceState::begin() {
    VkResult result = vk.vkResetCommandPool(ref.device, command_pool, 0);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkResetCommandPool");
    VkCommandBufferBeginInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
    result = vk.vkBeginCommandBuffer(commands, &info);
    if (result != VK_SUCCESS) return vulkan_error(result, "vkBeginCommandBuffer");
    constexpr VkPipelineStageFlags stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT |
                                            VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT |
                            VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                            VK_ACCESS_TRANSFER_WRITE_BIT;
    vk.vkCmdPipelineBarrier(commands, stages, stages, 0, 1, &barrier, 0, nullptr, 0, nullptr);
    return {};
}

Status DeviceState::wait() {
    const VkResult result = vk.vkWaitForFences(ref.device, 1, &fence, VK_TRUE, timeout_ns);
    pending = result != VK_SUCCESS &&
              result != VK_ERROR_DEVICE_LOST;  // unknown state: nothing may be reused or freed
    if (!pending) free_abandoned();
    if (result == VK_SUCCESS) return {};
    Status status = vulkan_error(result, "vkWaitForFences");
    if (result == VK_TIMEOUT) {
        status = error(VKROPE_ERROR_TIMEOUT, "the device did not answer within %" PRIu64 " ms",
                       timeout_ns / 1'000'000);
        status.vk_result = result;
    }
    return status;
}

// Keeps a fatal error, because a device that is lost or does not answer stays unusable.
Status DeviceState::keep(const Status& status) {
    if (status.code == VKROPE_ERROR_DEVICE_LOST || status.code == VKROPE_ERROR_TIMEOUT)
        lost = status;
    return status;
}

Status DeviceState::ready() {
    if (!lost) return lost;
    return pending ? keep(wait()) : Status{};
}

// Returns no value if there are no timestamps, or if they cannot be read or are implausible. Only a
// lost device is an error.
Result<std::optional<double>> DeviceState::elapsed_ns() {
    std::uint64_t ticks[2] = {};
    if (!timestamps) return {};
    const VkResult result = vk.vkGetQueryPoolResults(ref.device, timestamps, 0, 2, sizeof ticks,
                                                     ticks, sizeof *ticks, VK_QUERY_RESULT_64_BIT);
    if (result == VK_ERROR_DEVICE_LOST) return {vulkan_error(result, "vkGetQueryPoolResults"), {}};
    if (result != VK_SUCCESS) return {};
    const std::uint64_t valid = candidate.timestamp_bits >= 64
                                    ? ~std::uint64_t{0}
                                    : (std::uint64_t{1} << candidate.timestamp_bits) - 1;
    // Counters wrap; a difference above half of their range means that they ran backwards.
    const std::uint64_t passed = (ticks[1] - ticks[0]) & valid;
    if (passed > valid / 2) {
        timestamps_run_backwards = true;
        return {};
    }
    return {{}, double(passed) * double(candidate.limits.timestampPeriod)};
}

// Returns an error while a callback is recording into the only command buffer, because beginning
// this buffer again would discard its commands.
Status DeviceState::check_not_recording() const {
    if (!recording) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "submit: it was called from the callback of another submit (uploads, downloads "
                 "and runs are submits too); call it before or after");
}

Result<std::optional<double>> DeviceState::submit(
    const std::function<Status(VkCommandBuffer)>& record_commands) {
    if (Status s = check_not_recording(); !s) return {s, {}};
    if (Status s = ready(); !s) return {s, {}};
    if (Status s = begin(); !s) return {s, {}};
    if (timestamps) {
        vk.vkCmdResetQueryPool(commands, timestamps, 0, 2);
        vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, timestamps, 0);
    }
    {
        const Recording in_callback(recording);  // also ends if the callback throws
        if (Status s = record_commands(commands); !s) return {s, {}};
    }
    if (timestamps)
        vk.vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps, 1);
    VkResult result = vk.vkEndCommandBuffer(commands);
    if (result != VK_SUCCESS) return {vulkan_error(result, "vkEndCommandBuffer"), {}};

    VkSubmitInfo info = {};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    // The fence is reset here, not after the wait, because if this fails, nothing has been
    // submitted and the next submission tries again.
    result = vk.vkResetFences(ref.device, 1, &fence);
    if (result != VK_SUCCESS) return {vulkan_error(result, "vkResetFences"), {}};
    result = vk.vkQueueSubmit(queue, 1, &info, fence);
    if (Status s = keep(result == VK_SUCCESS ? wait() : vulkan_error(result, "vkQueueSubmit")); !s)
        return {s, {}};
    const Result<std::optional<double>> elapsed = elapsed_ns();
    static_cast<void>(keep(elapsed.status));
    return elapsed;
}

}  // namespace vkrope
