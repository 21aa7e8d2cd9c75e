// SPDX-License-Identifier: MIT
#include "layer.hpp"

#include <algorithm>

#include "cli/failure.hpp"
#include "kernel/dispatch_sequence.hpp"
#include "meaning.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::Subject;
using tools::value_of;

Buffer make_buffer(Device& device, std::uint64_t bytes) {
    return bytes == 0 ? Buffer() : value_of(Buffer::make(device, bytes), Subject::device);
}

Buffer uploaded(Device& device, const std::vector<std::int32_t>& numbers) {
    Buffer buffer = make_buffer(device, numbers.size() * sizeof(std::int32_t));
    if (!numbers.empty())
        check(buffer.upload(numbers.data(), numbers.size() * sizeof(std::int32_t)),
              Subject::device);
    return buffer;
}

/// Writes `elements` elements. `part` returns any range of them.
void upload(
    Buffer& buffer, Element element, std::uint64_t elements,
    const std::function<std::vector<std::byte>(std::uint64_t first, std::uint64_t count)>& part) {
    constexpr std::uint64_t most = std::uint64_t{1} << 23;
    for (std::uint64_t first = 0; first < elements; first += most) {
        const std::vector<std::byte> bytes = part(first, std::min(most, elements - first));
        check(buffer.upload(bytes.data(), bytes.size(), first * element_bytes(element)),
              Subject::device);
    }
}

}  // namespace

Layer::Layer(Device& device, const Shape& shape, Element element, bool in_place)
    : shape_(shape), element_(element), in_place_(in_place) {
    const std::uint64_t bytes = element_bytes(element);
    q_in_ = make_buffer(device, shape.q_elements() * bytes);
    q_out_ = make_buffer(device, shape.q_elements() * bytes);
    k_in_ = make_buffer(device, shape.k_elements() * bytes);
    k_out_ = make_buffer(device, shape.k_out_elements() * bytes);
    const Pattern pattern(element);
    const auto input = [&](std::uint64_t first, std::uint64_t count) {
        return pattern.at(first, count);
    };
    // Fills outputs with NaN, because memory from an earlier row could look like a correct output.
    const auto nothing = [&](std::uint64_t, std::uint64_t count) {
        return std::vector<std::byte>(count * bytes, std::byte{0xff});
    };
    upload(q_in_, element, shape.q_elements(), input);
    upload(k_in_, element, shape.k_elements(), input);
    upload(q_out_, element, shape.q_elements(), nothing);
    upload(k_out_, element, shape.k_out_elements(), nothing);
}

std::uint64_t Layer::bytes_read(bool key) const {
    const std::uint64_t rows = shape_.rows() * (key ? shape_.k_heads : shape_.q_heads);
    return rows *
           (in_place(key) ? shape_.rotary_dim
            : key         ? shape_.k_head_dim
                          : shape_.q_head_dim) *
           element_bytes(element_);
}

std::vector<Copied> Layer::copies() const {
    std::vector<Copied> copies;
    for (const bool key : {false, true}) {
        const VkDeviceSize bytes = bytes_read(key) / 16 * 16;
        if (bytes != 0)
            copies.push_back(
                {{in(key).buffer, 0, bytes}, {(key ? k_out_ : q_out_).handle(), 0, bytes}});
    }
    return copies;
}

Checked Layer::check(bool key, double bound_u) {
    Buffer& output = in_place(key) ? key ? k_in_ : q_in_ : key ? k_out_ : q_out_;
    const std::uint32_t bytes_each = element_bytes(element_);
    const auto read = [&](std::uint64_t first, std::uint64_t count) {
        std::vector<std::byte> bytes(count * bytes_each);
        tools::check(output.download(bytes.data(), bytes.size(), first * bytes_each),
                     Subject::device);
        return bytes;
    };
    return verify(shape_, element_, key, read, bound_u);
}

KernelInfo kernel_info(const Shape& shape, Element element, AngleSource angles, Mapping mapping) {
    KernelInfo info{.pairing = shape.pairing, .rotary_dim = shape.rotary_dim};
    info.tensor[Q] = {element, element, shape.q_head_dim, shape.q_offset};
    if (shape.k_heads != 0) info.tensor[K] = {element, element, shape.k_head_dim, shape.k_offset};
    info.angles = angles;
    info.positions = shape.numbering == Numbering::ascending ? VKROPE_POSITIONS_IMPLICIT
                     : shape.sections.axes == 0              ? VKROPE_POSITIONS_IDS
                                                             : VKROPE_POSITIONS_AXIS_IDS;
    info.scatter_kv = shape.scatters();
    std::copy(shape.windows.begin(), shape.windows.end(), info.windows);
    info.sections = shape.sections;
    info.mapping = mapping;
    info.tensor[Q].heads = shape.q_heads;
    info.tensor[K].heads = shape.k_heads;
    return info;
}

Rope::Rope(Device& device, const Layer& layer, AngleSource angles, std::uint32_t calls,
           Mapping mapping) {
    const Shape& shape = layer.shape();
    table_ = value_of(AngleTable::make(device, rotation_of(shape), angles, shape.max_position),
                      Subject::device);
    ids_ = uploaded(device, ids_of(shape));
    slots_ = uploaded(device, slots_of(shape));
    kernel_.reset(value_of(
        create(device.ref(), kernel_info(shape, layer.element(), table_.layout().source, mapping)),
        Subject::device));
    call_ = {.batch = shape.batch, .tokens = shape.tokens};
    call_.in[Q] = {.where = layer.in(false), .heads = shape.q_heads};
    call_.out[Q] = {.where = layer.out(false), .heads = shape.q_heads};
    if (shape.k_heads != 0) {
        call_.in[K] = {.where = layer.in(true), .heads = shape.k_heads};
        call_.out[K] = {.where = layer.out(true), .heads = shape.k_heads};
    }
    call_.positions.batch_stride = broadcast;
    if (shape.numbering != Numbering::ascending) call_.positions.ids = ids_.whole();
    if (shape.scatters())
        call_.paged_cache = {.slot_mapping = slots_.whole(), .page_size = shape.page_size};
    call_.angles = table_.angles();
    if (device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return;
    // One set more than a call needs, because separate rotations of Q and K may take one dispatch
    // more than a joint rotation.
    const std::uint64_t sets = value_of(dispatches(kernel_.get(), call_), Subject::device) + 1;
    arena_.reset(
        value_of(create_arena(kernel_.get(), std::uint32_t(sets) * calls), Subject::device));
}

Status Rope::record(VkCommandBuffer commands) {
    return vkrope::record(commands, kernel_.get(), call_, arena_.get());
}

Rope::Grid Rope::grid() const {
    const ResolvedCall resolved = value_of(resolve(*kernel_, call_), Subject::device);
    const Jobs jobs = value_of(plan(*kernel_, resolved), Subject::device);
    const Dispatch first = DispatchSequence(*kernel_, call_, resolved, jobs).at(0);
    const auto& groups = first.shape.groups;
    return {std::uint64_t{groups[0]} * groups[1] * groups[2],
            first.pipeline->geometry.workgroup_size()};
}

Status Rope::record_unfused(VkCommandBuffer commands) {
    Call alone = call_;
    alone.in[K] = alone.out[K] = {};
    alone.paged_cache = {};
    if (Status s = vkrope::record(commands, kernel_.get(), alone, arena_.get()); !s) return s;
    alone = call_;
    alone.in[Q] = alone.out[Q] = {};
    return vkrope::record(commands, kernel_.get(), alone, arena_.get());
}

}  // namespace vkrope::bench
