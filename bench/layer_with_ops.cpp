// SPDX-License-Identifier: MIT
#include "layer_with_ops.hpp"

#include <cmath>
#include <cstring>
#include <vkrope/vkrope.hpp>

#include "cli/failure.hpp"
#include "layer.hpp"
#include "meaning.hpp"
#include "runtime/device_impl.hpp"
#include "verify/oracle/element.hpp"
#include "verify/oracle/quantise.hpp"

namespace vkrope::bench {

using tools::check;
using tools::Subject;
using tools::value_of;

namespace {

/// Returns the largest distance between adjacent codes of a type, in a tensor of numbers up to
/// `largest`. A number near the boundary between two codes may be stored as either code.
double largest_step(Element type, double largest) {
    switch (type) {
        case VKROPE_E4M3FN: return largest / 8;
        case VKROPE_E5M2: return largest / 4;
        case VKROPE_INT8: return 1;  // the scale is 1
        case VKROPE_Q8_0: return largest / 127;
        case VKROPE_Q4_0: return largest / 8;
        case VKROPE_Q4_1: return 2 * largest / 15;
        case VKROPE_Q5_0: return largest / 16;
        case VKROPE_Q5_1: return 2 * largest / 31;
        default: return 0;
    }
}

}  // namespace

LayerWithOps::LayerWithOps(Device& device, const OpsShape& shape, const OpsTypes& types)
    : device_(device), shape_(shape), types_(types) {
    const std::uint32_t dim = shape.head_dim;
    RopeParams rotation;
    rotation.pairing = shape.pairing;
    rotation.head_dim = dim;
    rotation.rotary_dim = dim;
    rotation.inv_freq.resize(dim / 2);
    check(default_inv_freq(10000, dim, rotation.inv_freq.data()), Subject::device);
    table_ = value_of(AngleTable::make(device, rotation, VKROPE_ANGLES_AUTOMATIC, shape.tokens),
                      Subject::device);
    make_tensors();
    if (shape.norm != VKROPE_NORM_NONE)
        norm_ = {.kind = shape.norm,
                 .span = shape.span,
                 .eps = 1e-6f,
                 .weight = shape.span == VKROPE_NORM_SPAN_TOKEN ? VKROPE_PARAMETER_HEAD_CHANNEL
                                                                : VKROPE_PARAMETER_CHANNEL};
    make_whole();
    make_passes();
    if (shape.pairing == VKROPE_HALF_SPLIT) make_ggml_way();
}

double LayerWithOps::bytes_of_passes() const {
    double sum = 0;
    for (const Pass& pass : passes_) sum += moved(pass);
    return sum;
}

std::vector<Copied> LayerWithOps::copies() const {
    std::vector<Copied> all;
    for (const Placed* placed : {&q_, &k_, &v_}) {
        const VkDescriptorBufferInfo from = placed->in.whole(), to = placed->transformed.whole();
        const VkDeviceSize bytes = (from.range + placed->out_bytes) / 2 / 16 * 16;
        all.push_back({{from.buffer, 0, bytes}, {to.buffer, 0, bytes}});
    }
    return all;
}

Status LayerWithOps::record_with_products(VkCommandBuffer commands) {
    for (auto& [n, product] : products_) {
        if (Status s = product.reset(); !s) return s;
    }
    return record_passes(commands, {.with_products = true});
}

Status LayerWithOps::record_ggml(VkCommandBuffer commands) {
    for (auto& [n, product] : products_) {
        if (Status s = product.reset(); !s) return s;
    }
    return record_passes(commands, {.with_products = true, .of_ggml = true});
}

Status LayerWithOps::record_ggml_rotation(VkCommandBuffer commands, const Pass& rotation) {
    const Call& call = rotation.call;
    const bool scatters = rotation.info.scatter_kv;  // in a separate dispatch
    const Rival::Rotated q = {call.in[Q].where, call.out[Q].where, q_.heads},
                         k = {call.in[K].where, scatters ? k_.rotated.whole() : call.out[K].where,
                              k_.heads};
    if (Status s = ggml_->record(commands, q, k); !s || !scatters) return s;
    record_barrier(commands);
    return record(commands, scatter_k_);
}

std::vector<std::byte> LayerWithOps::results() {
    std::vector<std::byte> all(q_.out_bytes + k_.out_bytes + v_.out_bytes);
    std::size_t at = 0;
    for (auto* tensor : {&q_, &k_, &v_}) {
        check(tensor->out.download(all.data() + at, tensor->out_bytes), Subject::device);
        at += tensor->out_bytes;
    }
    return all;
}

bool LayerWithOps::nearly(const std::vector<std::byte>& others) {
    const std::vector<std::byte> mine = results();
    const std::size_t count = q_.out_bytes / sizeof(float);
    std::vector<float> a(count), b(count);
    std::memcpy(a.data(), mine.data(), q_.out_bytes);
    std::memcpy(b.data(), others.data(), q_.out_bytes);
    float largest = 0, difference = 0;
    for (std::size_t i = 0; i < count; ++i) {
        largest = std::fmax(largest, std::fabs(b[i]));
        difference = std::fmax(difference, std::fabs(a[i] - b[i]));
    }
    std::size_t changed = 0;
    for (std::size_t i = q_.out_bytes; i < mine.size(); ++i) changed += mine[i] != others[i];
    return difference <= largest * 0x1p-12f && changed <= (mine.size() - q_.out_bytes) / 100;
}

double LayerWithOps::distance(const std::vector<std::byte>& others) {
    const std::vector<std::byte> mine = results();
    const auto numbers = [](Element type, const std::byte* bytes, std::size_t size) {
        std::vector<float> made;
        if (is_quantised(type)) {
            const auto store = oracle::Store(std::uint32_t(type) - std::uint32_t(VKROPE_E4M3FN));
            return oracle::dequantise(store, {reinterpret_cast<const std::uint8_t*>(bytes), size});
        }
        const std::uint32_t each = element_bytes(type);
        for (std::size_t at = 0; at < size; at += each) {
            std::uint32_t bits = 0;
            std::memcpy(&bits, bytes + at, each);
            made.push_back(oracle::widen(oracle::Type(type), bits));
        }
        return made;
    };
    double worst = 0;
    std::size_t at = 0;
    for (const Placed* placed : {&q_, &k_, &v_}) {
        const Element type = placed == &q_ ? types_.element : types_.cache;
        const std::vector<float> a = numbers(type, &mine[at], placed->out_bytes),
                                 b = numbers(type, &others[at], placed->out_bytes);
        double largest = 0, difference = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            largest = std::fmax(largest, std::fabs(double{b[i]}));
            difference = std::fmax(difference, std::fabs(double{a[i]} - double{b[i]}));
        }
        worst = std::fmax(worst, (difference - largest_step(type, largest)) / largest);
        at += placed->out_bytes;
    }
    return worst;
}

Status LayerWithOps::record_passes(VkCommandBuffer commands, Ways ways) {
    for (Pass& pass : passes_) {
        if (pass.waits) record_barrier(commands);
        const std::uint32_t n = pass.info.tensor[V].ops.hadamard;
        if (ways.of_ggml && pass.turns) {
            if (Status s = record_ggml_rotation(commands, pass); !s) return s;
        } else if (ways.with_products && n != 0) {
            const Tensor &in = pass.call.in[V], &out = pass.call.out[V];
            const std::uint32_t rows = shape_.tokens * in.heads * shape_.head_dim / n;
            products_.at(n).record(commands, in.where, out.where, rows);
        } else if (Status s = record(commands, pass); !s) {
            return s;
        }
    }
    return {};
}

Status LayerWithOps::record(VkCommandBuffer commands, Pass& pass) {
    vkrope_arena_reset(pass.arena.get());
    return vkrope::record(commands, pass.kernel.get(), pass.call, pass.arena.get());
}

void LayerWithOps::record_barrier(VkCommandBuffer commands) {
    const Boundary at = boundary();
    VkMemoryBarrier barrier = {};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = at.output_access;
    barrier.dstAccessMask = at.in_place_access;
    device_.get()->vk.vkCmdPipelineBarrier(commands, at.stage, at.stage, 0, 1, &barrier, 0, nullptr,
                                           0, nullptr);
}

Buffer LayerWithOps::buffer_of(const std::vector<std::byte>& content) {
    Buffer buffer = value_of(Buffer::make(device_, content.size()), Subject::device);
    check(buffer.upload(content.data(), content.size()), Subject::device);
    return buffer;
}

std::size_t LayerWithOps::cache_bytes(std::size_t elements) const {
    return elements / block_channels(types_.cache) * element_bytes(types_.cache);
}

void LayerWithOps::make_tensors() {
    const Pattern pattern(types_.element);
    const auto tensor = [&](Placed& placed, std::uint32_t heads, bool cached) {
        const std::uint64_t count = std::uint64_t{shape_.tokens} * heads * shape_.head_dim;
        const std::vector<std::byte> content = pattern.at(0, count);
        placed.heads = heads;
        placed.out_bytes = cached ? cache_bytes(count) : content.size();
        for (Buffer* buffer : {&placed.in, &placed.normed, &placed.rotated, &placed.transformed})
            *buffer = buffer_of(content);
        placed.out = buffer_of(std::vector<std::byte>(placed.out_bytes));
    };
    tensor(q_, shape_.q_heads, false);
    tensor(k_, shape_.k_heads, true);
    tensor(v_, shape_.k_heads, true);
    std::vector<std::int32_t> slots(shape_.tokens);
    for (std::uint32_t t = 0; t < shape_.tokens; ++t) slots[t] = std::int32_t(t);
    slots_ = value_of(Buffer::make(device_, slots.size() * 4), Subject::device);
    check(slots_.upload(slots.data(), slots.size() * 4), Subject::device);
    const std::vector<float> ones(std::size_t{2} * (shape_.q_heads + 2) * shape_.head_dim, 1);
    parameters_ = value_of(Buffer::make(device_, ones.size() * 4), Subject::device);
    check(parameters_.upload(ones.data(), ones.size() * 4), Subject::device);
}

Tensor LayerWithOps::at(const Buffer& buffer, std::uint32_t heads) {
    return {.where = buffer.whole(), .heads = heads};
}

LayerWithOps::Pass LayerWithOps::empty_pass() const {
    return {.info = {.pairing = shape_.pairing,
                     .rotary_dim = shape_.head_dim,
                     .angles = table_.layout().source},
            .call = {.tokens = shape_.tokens, .angles = table_.angles()}};
}

void LayerWithOps::rotates(Pass& pass, const Buffer& q, const Buffer& q_out, const Buffer& k,
                           const Buffer& k_out, Element k_type) const {
    pass.info.tensor[Q] = format(types_.element);
    pass.info.tensor[K] = format(k_type);
    pass.info.tensor[Q].heads = q_.heads;
    pass.info.tensor[K].heads = k_.heads;
    pass.call.in[Q] = at(q, q_.heads), pass.call.out[Q] = at(q_out, q_.heads);
    pass.call.in[K] = at(k, k_.heads), pass.call.out[K] = at(k_out, k_.heads);
}

void LayerWithOps::scatters(Pass& pass) const {
    pass.info.scatter_kv = true;
    pass.call.paged_cache.slot_mapping = slots_.whole();
}

LayerWithOps::Pass LayerWithOps::moves(std::uint32_t heads, const Buffer& from, const Buffer& to,
                                       Element type) const {
    Pass pass = empty_pass();
    pass.info.tensor[K] = format(types_.element);
    pass.info.tensor[V] = format(type);
    pass.info.tensor[K].heads = k_.heads;
    pass.info.tensor[V].heads = heads;
    pass.call.in[V] = at(from, heads), pass.call.out[V] = at(to, heads);
    return pass;
}

void LayerWithOps::make(Pass& pass) {
    if (value_of(plan_parameters(pass.info), Subject::device).bytes != 0)
        pass.call.parameters = parameters_.whole();
    pass.kernel.reset(value_of(create(device_.ref(), pass.info), Subject::device));
    if (!(device_.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        pass.arena.reset(value_of(create_arena(pass.kernel.get(), 4), Subject::device));
}

void LayerWithOps::make_whole() {
    const auto whole = [&](Pass& pass) {
        pass = empty_pass();
        rotates(pass, q_.in, q_.out, k_.in, k_.out, types_.cache);
        pass.info.tensor[V] = format(types_.cache);
        pass.info.tensor[V].heads = v_.heads;
        pass.call.in[V] = at(v_.in, v_.heads), pass.call.out[V] = at(v_.out, v_.heads);
        scatters(pass);
    };
    whole(plain_);
    make(plain_);
    whole(whole_);
    whole_.info.tensor[Q].ops.norm = whole_.info.tensor[K].ops.norm = norm_;
    if (transforms()) {
        const HadamardBlocks blocks = vkrope_hadamard_of_llama_cpp(shape_.head_dim, true,
                                                                   shape_.head_dim, true);
        whole_.info.tensor[Q].ops.hadamard = whole_.info.tensor[K].ops.hadamard = blocks.q_and_k;
        whole_.info.tensor[V].ops.hadamard = blocks.v;
    }
    make(whole_);
}

void LayerWithOps::make_passes() {
    const Element element = types_.element;
    const Buffer *q = &q_.in, *k = &k_.in;
    const auto add = [&](Pass&& pass, bool waits) {
        pass.waits = waits && !passes_.empty();
        make(pass);
        passes_.push_back(std::move(pass));
    };
    if (norm_.kind != VKROPE_NORM_NONE) {
        for (Placed* placed : {&q_, &k_}) {
            Pass pass = moves(placed->heads, placed->in, placed->normed, element);
            pass.info.tensor[V].ops.norm = norm_;
            add(std::move(pass), false);
        }
        q = &q_.normed, k = &k_.normed;
    }
    const bool transforms = this->transforms();
    Pass rotation = empty_pass();
    rotates(rotation, *q, transforms ? q_.rotated : q_.out, *k, transforms ? k_.rotated : k_.out,
            element);
    rotation.turns = true;
    if (!transforms) scatters(rotation);
    add(std::move(rotation), true);
    const Buffer* v = &v_.in;
    if (transforms) {
        const struct {
            const Placed& placed;
            const Buffer &from, &to;
            std::uint32_t block;
        } each[] = {{q_, q_.rotated, q_.out, whole_.info.tensor[Q].ops.hadamard},
                    {k_, k_.rotated, k_.transformed, whole_.info.tensor[K].ops.hadamard},
                    {v_, v_.in, v_.transformed, whole_.info.tensor[V].ops.hadamard}};
        for (const auto& [placed, from, to, block] : each) {
            Pass pass = moves(placed.heads, from, to, element);
            pass.info.tensor[V].ops.hadamard = block;
            if (products_.count(block) == 0) products_.try_emplace(block, device_, block);
            add(std::move(pass), &placed == &q_);
        }
        Pass store = moves(k_.heads, k_.transformed, k_.out, types_.cache);
        scatters(store);
        add(std::move(store), true);
        v = &v_.transformed;
    }
    Pass store = moves(v_.heads, *v, v_.out, types_.cache);
    scatters(store);
    add(std::move(store), false);
}

void LayerWithOps::make_ggml_way() {
    const Shape shape = {.name = shape_.name,
                         .model = shape_.model,
                         .tokens = shape_.tokens,
                         .q_heads = q_.heads,
                         .k_heads = k_.heads,
                         .q_head_dim = shape_.head_dim,
                         .k_head_dim = shape_.head_dim,
                         .rotary_dim = shape_.head_dim,
                         .max_position = shape_.tokens};
    ggml_.emplace(device_, shape, types_.element, Way::ggml);
    scatter_k_ = moves(k_.heads, k_.rotated, k_.out, types_.cache);
    scatters(scatter_k_);
    make(scatter_k_);
}

double LayerWithOps::moved(const Pass& pass) {
    double sum = 0;
    for (const Tensor* tensor : {&pass.call.in[Q], &pass.call.out[Q], &pass.call.in[K],
                                 &pass.call.out[K], &pass.call.in[V], &pass.call.out[V]}) {
        if (tensor->heads != 0) sum += double(tensor->where.range);
    }
    return sum;
}

}  // namespace vkrope::bench
