// SPDX-License-Identifier: MIT
#include "run.hpp"

#include <ggml-backend.h>

#include <cstring>

namespace engine {

namespace {

Bytes bytes_of(const Buffer& buffer) {
    const auto* from = static_cast<const unsigned char*>(buffer.mapped);
    return {from, from + buffer.bytes};
}

vkrope::Tensor tensor_of(const Buffer& buffer, const Chain& chain) {
    vkrope::Tensor tensor;
    tensor.where = buffer.whole();
    tensor.heads = std::uint32_t(chain.heads);
    return tensor;
}

// Sets the strides of the rows that the graph reads, such as the parts of a fused QKV.
vkrope::Tensor input_of(const Buffer& buffer, const Chain& chain) {
    vkrope::Tensor tensor = tensor_of(buffer, chain);
    const ggml_tensor* rows = chain.input;
    if (ggml_is_contiguous(rows)) return tensor;
    const bool of_heads = rows->ne[0] == chain.head_dim && rows->ne[1] == chain.heads;
    tensor.head_stride = of_heads ? std::int64_t(rows->nb[1] / sizeof(float)) : chain.head_dim;
    tensor.token_stride = std::int64_t(rows->nb[of_heads ? 2 : 1] / sizeof(float));
    return tensor;
}

// The part of a row begins at its first channel.
vkrope::Tensor cache_of(const Buffer& buffer, const Chain& chain) {
    vkrope::Tensor tensor = tensor_of(buffer, chain);
    tensor.where.offset = ggml_row_size(chain.cache->type, chain.first_channel);
    tensor.where.range -= tensor.where.offset;
    return tensor;
}

}  // namespace

Runner::~Runner() {
    kernels_.clear();
    clear();
    vkDestroyCommandPool(gpu_.device(), pool_, nullptr);
}

void Runner::clear() {
    for (Buffer& buffer : buffers_) gpu_.destroy(buffer);
    buffers_.clear();
}

Buffer Runner::buffer(const void* data, std::size_t bytes, VkBufferUsageFlags usage) {
    buffers_.push_back(
        gpu_.make_buffer((bytes + 3) / 4 * 4, usage | VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, true));
    if (data) std::memcpy(buffers_.back().mapped, data, bytes);
    return buffers_.back();
}

vkrope::Angles Runner::angles(const Plan& plan) {
    const Buffer table = buffer(nullptr, plan.angles.bytes, plan.angles.usage);
    check(vkrope::fill_angles(plan.rotation, plan.angles, table.mapped, plan.angles.bytes),
          "fill_angles");
    return {&plan.angles, {}, table.whole()};
}

void Runner::add_parameters(const Layer& layer, const vkrope::KernelInfo& info,
                            vkrope::Call& call) {
    const auto layout = vkrope::plan_parameters(info);
    check(layout.status, "plan_parameters");
    vkrope::ParameterSources sources;
    std::vector<float> biases[3];
    for (const auto t : vkrope::every_tensor) {
        if (!layer[t].input) continue;
        if (layer[t].weight)
            call.norm_weight[t] = buffer(read<float>(layer[t].weight->src[1])).whole();
        if (!layer[t].bias) continue;
        biases[t] = read<float>(layer[t].bias->src[1]);
        sources.tensor[t].bias = {biases[t].data(), VKROPE_F32, biases[t].size()};
    }
    if (layout.value.bytes == 0) return;
    const Buffer made = buffer(nullptr, layout.value.bytes);
    check(vkrope::fill_parameters(layout.value, sources, made.mapped, made.bytes),
          "fill_parameters");
    call.parameters = made.whole();
}

std::uint64_t Runner::submit(const vkrope::KernelInfo& info, const vkrope::Call& call) {
    vkrope::Owned<vkrope::Kernel>& kernel = kernels_[info];
    if (!kernel) {
        auto made = vkrope::own(vkrope::create(gpu_.ref(), info));
        check(made.status, "create");
        kernel = std::move(made.value);
    }
    const auto count = vkrope::dispatches(kernel.get(), call);
    check(count.status, "dispatches");
    const VkCommandBuffer commands = gpu_.begin(pool_);
    check(vkrope::record(commands, kernel.get(), call), "record");
    memory_barrier(commands, vkrope::boundary().stage, vkrope::boundary().output_access,
                   VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    gpu_.submit_and_wait(commands);
    return count.value;
}

std::array<Bytes, 3> Runner::run(const Layer& layer, const Copies& copies, bool to_caches) {
    const auto& [q, k, v] = layer;
    const Plan plan = plan_of(layer);
    vkrope::KernelInfo info = plan.info;
    info.scatter_kv = info.scatter_kv && to_caches;
    vkrope::Call call;
    Buffer out[3];
    for (const auto t : vkrope::every_tensor) {
        const Chain& chain = layer[t];
        if (!chain.input) continue;
        call.in[t] = input_of(buffer(copies.at(chain.input)), chain);
        const std::int64_t values = ggml_nelements(chain.input);
        call.tokens = std::uint32_t(values / chain.heads / chain.head_dim);
        if (info.scatter_kv && chain.cache) {
            out[t] = t == vkrope::V && v.cache == k.cache ? out[vkrope::K]
                                                          : buffer(copies.at(chain.store));
            call.out[t] = cache_of(out[t], chain);
        } else {
            info.tensor[t].out = VKROPE_F32;
            out[t] = buffer(nullptr, std::size_t(values) * sizeof(float));
            call.out[t] = tensor_of(out[t], chain);
        }
    }
    if (info.scatter_kv) {
        Bytes slots = copies.at(k.store->src[1]), v_slots = copies.at(v.store->src[1]);
        // Types with other blocks have a dispatch each, so that V may read slots of its own.
        if (slots != v_slots || ggml_blck_size(k.cache->type) != ggml_blck_size(v.cache->type))
            call.paged_cache.v_slot_mapping = buffer(v_slots).whole();
        if (mutant == "slot") slots[0] ^= 1;
        call.paged_cache.slot_mapping = buffer(slots).whole();
        call.paged_cache.int64 = VK_TRUE;
        if (k.cache->ne[0] != k.heads * k.head_dim)
            call.paged_cache.row_stride = call.paged_cache.page_stride = k.cache->ne[0];
    }
    if (info.rotary_dim) {
        call.positions.ids = buffer(copies.at((k.rope ? k.rope : q.rope)->src[1])).whole();
        call.angles = angles(plan);
    }
    add_parameters(layer, info, call);
    if (q.input && q.scale_tokens)
        call.scale_tokens[vkrope::Q] = buffer(copies.at(q.scale_tokens->src[1])).whole();
    const std::uint64_t count = submit(info, call);
    dispatches += to_caches ? count : 0;
    std::array<Bytes, 3> made = {bytes_of(out[0]), bytes_of(out[1]), bytes_of(out[2])};
    clear();
    return made;
}

Bytes Runner::shift(const Layer& layer, const Bytes& cache, const std::vector<std::int32_t>& deltas,
                    bool in_place) {
    const Chain& k = layer[vkrope::K];
    const Plan plan = plan_of(layer);
    vkrope::KernelInfo info = plan.info;
    info.scatter_kv = VK_FALSE;  // the whole cache, with plain strides
    info.tensor[vkrope::Q] = info.tensor[vkrope::V] = {};
    vkrope::TensorInfo& tensor = info.tensor[vkrope::K];
    const std::uint32_t hadamard = tensor.ops.hadamard;
    tensor.in = tensor.out;
    tensor.ops = {};
    tensor.ops.hadamard = tensor.ops.hadamard_of_input = hadamard;
    vkrope::Call call;
    call.tokens = std::uint32_t(deltas.size());
    call.gain = VKROPE_GAIN_OMIT;  // keys have the attention factor
    Buffer to = buffer(cache);
    call.in[vkrope::K] = call.out[vkrope::K] = tensor_of(to, k);
    if (!in_place) {
        const std::size_t values = deltas.size() * std::size_t(k.heads * k.head_dim);
        tensor.out = VKROPE_F32;
        to = buffer(nullptr, values * sizeof(float));
        call.out[vkrope::K].where = to.whole();
    }
    call.positions.ids = buffer(deltas).whole();
    call.angles = angles(plan);
    const std::uint64_t count = submit(info, call);
    dispatches += in_place ? count : 0;
    Bytes made = bytes_of(to);
    clear();
    return made;
}

}  // namespace engine
