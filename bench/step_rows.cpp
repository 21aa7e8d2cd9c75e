// SPDX-License-Identifier: MIT
// Measures what a decode step of all layers costs the host: recorded each time, or submitted again.
#include <algorithm>
#include <cstring>

#include "cli/failure.hpp"
#include "copy_roof/median.hpp"
#include "rows.hpp"
#include "verify/memory.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;
using Ints = std::vector<std::int32_t>;

constexpr std::uint32_t layers = 32;

// Returns a layer of Llama 3.1 8B in f16, with V.
verify::Operation decode_step() {
    const auto shape = std::find_if(shapes().begin(), shapes().end(),
                                    [](const Shape& each) { return each.name == "decode_b1"; });
    verify::Operation operation = of_type(shape->operation, VKROPE_F16);
    add_v(operation, VKROPE_F16);
    return operation;
}

// A step of one token, since more would not change the host's work: a call that makes ids, slots
// and the number of tokens, then a call for each layer, all of which have the same tensors, and
// barriers between the calls.
class Step {
   public:
    explicit Step(Device& device)
        : device_(device), plain_(decode_step()),
          tokens_(value_of(Buffer::make(device, 4), Subject::device)),
          positions_(value_of(create_positions(device.ref()), Subject::device)),
          between_(barrier(device)) {
        layer_.emplace(device, plain_, true);
        verify::Operation counted = layer_->operation();
        counted.info.token_count = true;
        counted.call.token_count = tokens_.whole();
        // The device has to make the ids and slots.
        std::fill(counted.memory.begin(), counted.memory.end(), std::byte{0});
        pass_.emplace(device, counted, layers);
        if (!(device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
            arena_.reset(value_of(create_arena(positions_.get(), 3), Subject::device));
        give_numbers();

        VkCommandPoolCreateInfo pool = {};
        pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
        pool.queueFamilyIndex = device.queue_family();
        need(vk<PFN_vkCreateCommandPool>("vkCreateCommandPool")(handle(), &pool, nullptr, &pool_));
        VkCommandBufferAllocateInfo allocate = {};
        allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
        allocate.commandPool = pool_;
        allocate.commandBufferCount = 1;
        need(vk<PFN_vkAllocateCommandBuffers>("vkAllocateCommandBuffers")(handle(), &allocate,
                                                                          &commands_));
        VkFenceCreateInfo fence = {};
        fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
        need(vk<PFN_vkCreateFence>("vkCreateFence")(handle(), &fence, nullptr, &fence_));
    }
    ~Step() {
        vk<PFN_vkDestroyFence>("vkDestroyFence")(handle(), fence_, nullptr);
        vk<PFN_vkDestroyCommandPool>("vkDestroyCommandPool")(handle(), pool_, nullptr);
    }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

    void record(std::uint32_t calls) {
        need(reset_pool_(handle(), pool_, 0));
        VkCommandBufferBeginInfo begin = {};
        begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
        need(begin_(commands_, &begin));
        check(between_(commands_), Subject::device);
        vkrope_arena_reset(arena_.get());
        check(record_positions(commands_, positions_.get(), make_, arena_.get()), Subject::device);
        pass_->begin();
        for (std::uint32_t i = 0; i < calls; ++i) {
            check(between_(commands_), Subject::device);
            check(pass_->record_next(commands_), Subject::device);
        }
        need(end_(commands_));
    }

    void submit() {
        VkSubmitInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
        info.commandBufferCount = 1;
        info.pCommandBuffers = &commands_;
        need(submit_(device_.queue(), 1, &info, fence_));
    }

    void wait() {
        need(vk<PFN_vkWaitForFences>("vkWaitForFences")(handle(), 1, &fence_, VK_TRUE,
                                                        ~std::uint64_t{0}));
        need(vk<PFN_vkResetFences>("vkResetFences")(handle(), 1, &fence_));
    }

    // Checks a step of one layer.
    void check_outputs() {
        record(1);
        submit();
        wait();
        layer_->check_outputs(layer_->operation());
    }

   private:
    VkDevice handle() const { return device_.ref().device; }
    template <class Function>
    Function vk(const char* name) const {
        return function_of<Function>(device_, name);
    }
    static void need(VkResult result) {
        if (result != VK_SUCCESS)
            tools::fail(tools::ExitCode::device_failed, "a step: VkResult {}", int(result));
    }

    // Writes lengths, offsets and a block table of one page, from which follow the ids and slots of
    // the operation.
    void give_numbers() {
        const std::uint32_t tokens = plain_.call.tokens;
        const std::int32_t page_size = std::int32_t(plain_.call.paged_cache.page_size);
        Ints ids(tokens), slots(tokens), seq_lens(tokens), offsets(tokens), table(tokens);
        const auto read = [this](const VkDescriptorBufferInfo& part, Ints& numbers) {
            std::memcpy(numbers.data(), &plain_.memory[part.offset], part.range);
        };
        read(plain_.call.positions.ids, ids);
        read(plain_.call.paged_cache.slot_mapping, slots);
        for (std::uint32_t i = 0; i < tokens; ++i) {
            const std::int32_t place = slots[i] % page_size;
            seq_lens[i] = place + 1;
            offsets[i] = ids[i] - place;
            table[i] = slots[i] / page_size;
        }
        make_ = {.tokens = tokens, .sequences = tokens};
        verify::Memory memory(1);
        make_.query_lens = memory.put(Ints(tokens, 1));
        make_.seq_lens = memory.put(seq_lens);
        make_.offsets = memory.put(offsets);
        make_.block_table = memory.put(table);
        numbers_ = value_of(Buffer::make(device_, memory.bytes.size()), Subject::device);
        check(numbers_.upload(memory.bytes.data(), memory.bytes.size()), Subject::device);
        for (VkDescriptorBufferInfo* part :
             {&make_.query_lens, &make_.seq_lens, &make_.offsets, &make_.block_table})
            part->buffer = numbers_.handle();
        make_.pages = 1;
        make_.page_size = std::uint32_t(page_size);
        const TensorInfo& k = plain_.info.tensor[K];
        make_.cache_pages = std::uint32_t(output_bytes(plain_, K) /
                                          (make_.page_size * k.heads * k.head_dim * 2));
        make_.out = pass_->call().positions.ids;
        make_.slot_mapping = pass_->call().paged_cache.slot_mapping;
        make_.token_count = tokens_.whole();
    }

    Device& device_;
    verify::Operation plain_;
    Buffer tokens_, numbers_;
    std::optional<Layer> layer_;
    std::optional<Pass> pass_;
    Owned<PositionKernel> positions_;
    PositionCall make_ = {};
    Owned<DescriptorArena> arena_;
    Record between_;
    PFN_vkResetCommandPool reset_pool_ = vk<PFN_vkResetCommandPool>("vkResetCommandPool");
    PFN_vkBeginCommandBuffer begin_ = vk<PFN_vkBeginCommandBuffer>("vkBeginCommandBuffer");
    PFN_vkEndCommandBuffer end_ = vk<PFN_vkEndCommandBuffer>("vkEndCommandBuffer");
    PFN_vkQueueSubmit submit_ = vk<PFN_vkQueueSubmit>("vkQueueSubmit");
    VkCommandPool pool_ = VK_NULL_HANDLE;
    VkCommandBuffer commands_ = VK_NULL_HANDLE;
    VkFence fence_ = VK_NULL_HANDLE;
};

}  // namespace

void Bench::register_step_rows() {
    for (const bool again : {false, true}) {
        add(
            again ? "host/step_replayed" : "host/step_recorded",
            [this, again](benchmark::State& state) {
                free_row();
                Step step(device_);
                step.check_outputs();
                step.record(layers);
                std::vector<double> times, waits;
                // Nine steps stand for 64 iterations, because their waits take long. Their median,
                // because the driver's threads may interrupt this one.
                constexpr std::uint32_t batch = 64;
                while (state.KeepRunningBatch(batch)) {
                    times.clear();
                    for (int turn = 0; turn < 9; ++turn) {
                        const double start = now_ns();
                        if (!again) step.record(layers);
                        step.submit();
                        const double submitted = now_ns();
                        step.wait();
                        waits.push_back(now_ns() - submitted);
                        times.push_back(submitted - start);
                    }
                    state.SetIterationTime(tools::median(times) * batch * 1e-9);
                }
                state.counters["wait_ns"] = tools::median(waits);
                state.SetLabel(again ? "vkQueueSubmit alone" : "recorded, then submitted");
            });
    }
}

}  // namespace vkrope::bench
