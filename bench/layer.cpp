// SPDX-License-Identifier: MIT
#include "layer.hpp"

#include <algorithm>

#include "base/meaning.hpp"
#include "cli/failure.hpp"
#include "kernel/dispatch_sequence.hpp"
#include "shapes.hpp"
#include "verify/definition.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;

Buffer make_buffer(Device& device, std::uint64_t bytes) {
    return bytes == 0 ? Buffer() : value_of(Buffer::make(device, bytes), Subject::device);
}

// Writes the whole buffer. `part` returns any range of its bytes.
void upload(Buffer& buffer, const ReadBytes& part) {
    constexpr std::uint64_t most = std::uint64_t{67320} * 512;  // whole blocks of every type
    const std::uint64_t size = buffer.whole().range;
    for (std::uint64_t first = 0; first < size; first += most) {
        const verify::Bytes bytes = part(first, std::min(most, size - first));
        check(buffer.upload(bytes.data(), bytes.size(), first), Subject::device);
    }
}

}  // namespace

Layer::Layer(Device& device, const verify::Operation& operation, bool in_place)
    : operation_(operation), in_place_(in_place) {
    for (const TensorIndex which : every_tensor) {
        if (!verify::has(operation, which)) continue;
        in_[which] = make_buffer(device, input_bytes(operation, which));
        if (!this->in_place(which))
            out_[which] = make_buffer(device, output_bytes(operation, which));
        operation_.call.in[which].where = in_[which].whole();
        operation_.call.out[which].where = (this->in_place(which) ? in_ : out_)[which].whole();
        second_[which] = make_buffer(device, second_bytes(operation, which));
        operation_.call.second[which] = second_[which].whole();
        scales_[which] = make_buffer(device, made_scale_bytes(operation, which));
        operation_.call.scales_out[which] = scales_[which].whole();
    }
    fill();
}

void Layer::fill() {
    for (const TensorIndex which : every_tensor) {
        const Element element = operation_.info.tensor[which].in;
        const std::uint32_t each = element_bytes(element), channels = block_channels(element);
        upload(in_[which],
               [&, pattern = Pattern(element)](std::uint64_t first, std::uint64_t bytes) {
                   return pattern.at(first / each * channels, bytes / each * channels);
               });
    }
    clear();
}

void Layer::clear() {
    const auto clear = [](Buffer& buffer) {
        upload(buffer, [](std::uint64_t, std::uint64_t bytes) {
            return verify::Bytes(bytes, std::byte{0xff});
        });
    };
    for (Buffer& buffer : out_) clear(buffer);
    for (Buffer& buffer : second_) clear(buffer);
}

bool Layer::in_place(TensorIndex which) const {
    return in_place_ && !(which != Q && operation_.info.scatter_kv);
}

std::uint64_t Layer::bytes_read(TensorIndex which) const {
    const TensorInfo& info = operation_.info.tensor[which];
    const std::uint32_t channels = in_place(which) ? operation_.info.rotary_dim : info.head_dim;
    return verify::tokens_of(operation_) * info.heads * channels * element_bytes(info.in);
}

std::uint64_t Layer::bytes_read() const {
    return bytes_read(Q) + bytes_read(K);
}

std::vector<tools::Copied> Layer::copies() const {
    std::vector<tools::Copied> copies;
    for (const TensorIndex which : {Q, K}) {
        const VkDeviceSize bytes = bytes_read(which) / 16 * 16;
        if (bytes != 0)
            copies.push_back({{call().in[which].where.buffer, 0, bytes},
                              {call().out[which].where.buffer, 0, bytes}});
    }
    return copies;
}

verify::Bytes Layer::output(TensorIndex which, std::uint64_t first, std::uint64_t bytes,
                            bool second) {
    verify::Bytes content(bytes);
    Buffer& buffer = (second ? second_ : in_place(which) ? in_ : out_)[which];
    if (bytes != 0) check(buffer.download(content.data(), bytes, first), Subject::device);
    return content;
}

Checked Layer::check_outputs(const verify::Operation& operation, std::optional<double> bound_u,
                             const char* what) {
    Checked all;
    for (const TensorIndex which : every_tensor) {
        if (!verify::has(operation, which)) continue;
        for (const bool second : {false, true}) {
            if (second && !verify::has_second(operation, which)) continue;
            const auto read = [&](std::uint64_t first, std::uint64_t bytes) {
                return output(which, first, bytes, second);
            };
            const auto scales = [&](std::uint64_t first, std::uint64_t bytes) {
                verify::Bytes content(bytes);
                check(scales_[which].download(content.data(), bytes, first), Subject::device);
                return content;
            };
            const Checked checked = check_output(operation, which, read, bound_u, second, scales);
            if (!checked.failure.empty())
                tools::fail(tools::ExitCode::verification_failed, "{}{}{}: {}", what,
                            second ? "second destination of " : "", "QKV"[which], checked.failure);
            all.elements += checked.elements;
            all.error_u = std::max(all.error_u, checked.error_u);
        }
    }
    return all;
}

Pass::Pass(Device& device, const verify::Operation& operation, std::uint32_t calls)
    : operation_(operation),
      on_device_(value_of(verify::OnDevice::make(device, operation), Subject::device)),
      call_(on_device_.call(operation.call)),
      kernel_(value_of(create(device.ref(), operation.info), Subject::device)) {
    if (device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return;
    // One set more than a call needs, because separate rotations of Q and K may take one dispatch
    // more than a joint rotation.
    const std::uint64_t sets = value_of(dispatches(kernel_.get(), call_), Subject::device) + 1;
    arena_.reset(
        value_of(create_arena(kernel_.get(), std::uint32_t(sets) * calls), Subject::device));
}

Status Pass::record_next(VkCommandBuffer commands) const {
    return vkrope::record(commands, kernel_.get(), call_, arena_.get());
}

Status Pass::record_next_unfused(VkCommandBuffer commands) const {
    Call alone = call_;
    alone.in[K] = alone.out[K] = {};
    alone.paged_cache = {};
    if (Status s = vkrope::record(commands, kernel_.get(), alone, arena_.get()); !s) return s;
    alone = call_;
    alone.in[Q] = alone.out[Q] = {};
    return vkrope::record(commands, kernel_.get(), alone, arena_.get());
}

Pass::Grid Pass::grid() const {
    const ResolvedCall resolved = value_of(resolve(*kernel_, call_), Subject::device);
    const Plan planned = value_of(plan(*kernel_, resolved), Subject::device);
    const Dispatch first = DispatchSequence(*kernel_, call_, resolved, planned).at(0);
    const auto& groups = first.shape.groups;
    return {std::uint64_t{groups[0]} * groups[1] * groups[2],
            first.pipeline->geometry.workgroup_size()};
}

Record barrier(const Device& device) {
    const auto record = function_of<PFN_vkCmdPipelineBarrier>(device, "vkCmdPipelineBarrier");
    return [record, at = boundary()](VkCommandBuffer commands) {
        VkMemoryBarrier memory = {};
        memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
        memory.srcAccessMask = at.output_access;
        memory.dstAccessMask = at.in_place_access;
        record(commands, at.stage, at.stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
        return Status{};
    };
}

}  // namespace vkrope::bench
