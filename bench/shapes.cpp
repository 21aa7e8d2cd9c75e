// SPDX-License-Identifier: MIT
#include "shapes.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/meaning.hpp"
#include "verify/definition.hpp"
#include "verify/elements.hpp"
#include "verify/memory.hpp"

namespace vkrope::bench {
namespace {

using verify::Operation;
using Ids = std::vector<std::int64_t>;

constexpr std::uint32_t pages = 1024, page_size = 16;

void set_tensor(Operation& operation, TensorIndex which, const Heads& of) {
    if (of.heads == 0) return;
    operation.info.tensor[which] = {.head_dim = of.head_dim, .rotary_offset = of.rotary_offset};
    operation.info.tensor[which].heads = of.heads;
    operation.call.in[which].heads = operation.call.out[which].heads = of.heads;
}

std::vector<double> inv_freq_of(double base, std::uint32_t rotary_dim) {
    std::vector<double> inv_freq(rotary_dim / 2);
    // Every rotary_dim here is valid.
    static_cast<void>(default_inv_freq(base, rotary_dim, inv_freq.data()));
    return inv_freq;
}

// Sets ids [axes, tokens], which all sequences share, and slots; empty: there are none.
void set_ids(Operation& operation, const Ids& ids, const Ids& slots = {}) {
    verify::Memory memory(1);
    if (!ids.empty()) {
        operation.info.positions = operation.info.sections.axes == 0 ? VKROPE_POSITIONS_IDS
                                                                     : VKROPE_POSITIONS_AXIS_IDS;
        operation.call.positions.ids = memory.put(ids, false);
    }
    if (!slots.empty()) {
        operation.info.scatter_kv = true;
        operation.call.paged_cache.slot_mapping = memory.put(slots, false);
    }
    operation.memory = std::move(memory.bytes);
}

// Returns a Llama 3 decode step: one token in each of `sequences`, at any position, and 16 384
// cache rows, which do not fit in a CPU cache.
Operation decoding(std::uint32_t sequences) {
    Operation operation = rotation(sequences, {32, 128}, {8, 128}, 128, 500000);
    operation.max_position = 131072;
    operation.call.paged_cache.page_size = page_size;
    Ids ids(sequences), slots(std::size_t{pages} * page_size);
    std::mt19937 generator(1);
    for (std::int64_t& id : ids) id = std::int64_t(generator() % operation.max_position);
    ids.back() = operation.max_position - 1;
    std::iota(slots.begin(), slots.end(), 0);
    std::shuffle(slots.begin(), slots.end(), std::mt19937(2));
    slots.resize(sequences);
    set_ids(operation, ids, slots);
    return operation;
}

// Returns a layer of Qwen2-VL. 64 tokens of text alternate with images of 16 x 16 patches: time,
// height and width continue from the largest previous position.
Operation text_and_images() {
    constexpr std::uint32_t text = 64, side = 16;
    Operation operation = rotation(4096, {28, 128}, {4, 128}, 128, 1000000);
    operation.info.sections = {.axes = 3, .pairs = {16, 24, 24}};
    const std::uint32_t tokens = operation.call.tokens;
    Ids ids(std::size_t{3} * tokens);
    std::uint32_t next = 0;
    for (std::uint32_t t = 0; t < tokens; ++t) {
        const std::uint32_t within = t % (text + side * side), patch = within - text;
        const bool of_text = within < text;
        ids[t] = next;
        ids[tokens + t] = of_text ? next : next + patch / side;
        ids[2 * tokens + t] = of_text ? next : next + patch % side;
        if (of_text) next += 1;
        if (within == text + side * side - 1) next += side;
    }
    set_ids(operation, ids);
    return operation;
}

// Returns a layer of EVA-02-L: 8 images of 32 x 32 patches, and a window of channels for the row
// and for the column of a patch.
Operation images() {
    constexpr std::uint32_t side = 32, tokens = side * side;
    Operation operation = rotation(tokens, {16, 64}, {16, 64}, 64);
    operation.call.batch = 8;
    operation.max_position = side;
    operation.info.sections = {.axes = 2, .pairs = {16, 16}};
    operation.inv_freq.clear();
    for (const std::uint32_t window : {0u, 1u}) {
        operation.info.windows[window] = {window * side, side};
        const std::vector<double> inv_freq = inv_freq_of(10000, side);
        operation.inv_freq.insert(operation.inv_freq.end(), inv_freq.begin(), inv_freq.end());
    }
    Ids ids;
    for (std::uint32_t t = 0; t < tokens; ++t) ids.push_back(t / side);
    for (std::uint32_t t = 0; t < tokens; ++t) ids.push_back(t % side);
    set_ids(operation, ids);
    return operation;
}

Operation llama3_8b(std::uint32_t tokens) {
    return rotation(tokens, {32, 128}, {8, 128}, 128, 500000);
}

}  // namespace

Operation rotation(std::uint32_t tokens, const Heads& q, const Heads& k, std::uint32_t rotary_dim,
                   double base, Pairing pairing) {
    Operation operation;
    operation.max_position = std::max(tokens, 1u);
    operation.inv_freq = inv_freq_of(base, rotary_dim);
    operation.info.pairing = pairing;
    operation.info.rotary_dim = rotary_dim;
    operation.info.angles = vkrope_default_angles(operation.precision, operation.max_position);
    operation.call.batch = 1;
    operation.call.tokens = tokens;
    operation.call.positions.batch_stride = broadcast;
    set_tensor(operation, Q, q);
    set_tensor(operation, K, k);
    return operation;
}

Operation of_type(Operation operation, Element element) {
    for (TensorInfo& tensor : operation.info.tensor)
        if (tensor.head_dim != 0) tensor.in = tensor.out = element;
    return operation;
}

void add_norm(Operation& operation, TensorIndex which, Norm norm) {
    const bool token = norm.span == VKROPE_NORM_SPAN_TOKEN;
    norm.kind = VKROPE_NORM_RMS;
    norm.eps = 1e-6f;
    norm.weight = token ? VKROPE_PARAMETER_HEAD_CHANNEL : VKROPE_PARAMETER_CHANNEL;
    TensorInfo& info = operation.info.tensor[which];
    info.ops.norm = norm;
    const std::uint32_t channels = norm.channels == 0 ? info.head_dim : norm.channels;
    operation.parameters[which].weight.assign((token ? info.heads : 1) * channels, 1);
}

void add_norms(Operation& operation, NormSpan span) {
    for (const TensorIndex which : {Q, K}) add_norm(operation, which, {.span = span});
}

void bind_weights(Operation& operation) {
    verify::Memory memory(1);
    memory.bytes = std::move(operation.memory);
    for (const TensorIndex which : {Q, K}) {
        const verify::Bytes weight = verify::bytes_of(operation.parameters[which].weight);
        VkDescriptorBufferInfo& place = operation.call.norm_weight[which];
        place = memory.take(weight.size(), 256);
        std::copy(weight.begin(), weight.end(), &memory.bytes[place.offset]);
        operation.parameters[which].weight.clear();
        operation.info.tensor[which].ops.norm.weight_bound = true;
    }
    operation.memory = std::move(memory.bytes);
}

Operation with_packed_weights(Operation operation) {
    for (const TensorIndex which : {Q, K}) {
        Norm& norm = operation.info.tensor[which].ops.norm;
        if (!norm.weight_bound) continue;
        operation.parameters[which].weight = verify::bound_weight(operation, which);
        operation.call.norm_weight[which] = {};
        norm.weight_bound = false;
    }
    return operation;
}

void remove_rotation(Operation& operation) {
    operation.info.pairing = VKROPE_PAIRING_NONE;
    operation.info.rotary_dim = 0;
    operation.info.angles = VKROPE_ANGLES_AUTOMATIC;
    operation.inv_freq.clear();
    operation.call.positions = {};
}

void add_v(Operation& operation, Element cache) {
    TensorInfo(&info)[tensor_count] = operation.info.tensor;
    const Element element = info[K].in;
    set_tensor(operation, V, {info[K].heads, info[K].head_dim});
    info[V].in = element;
    info[K].out = info[V].out = cache;
    if (!verify::is_quantised(cache)) return;
    const HadamardBlocks blocks = vkrope_hadamard_of_llama_cpp(info[K].head_dim, true,
                                                               info[V].head_dim, true);
    info[Q].ops.hadamard = info[K].ops.hadamard = blocks.q_and_k;
    info[V].ops.hadamard = blocks.v;
}

void store_in_cache(Operation& operation) {
    Ids slots(operation.call.tokens);
    std::iota(slots.begin(), slots.end(), 0);
    set_ids(operation, {}, slots);
}

Operation moved_keys(std::uint32_t tokens, const Heads& k, Element cache) {
    Operation operation = rotation(tokens, {}, k, k.head_dim, 500000);
    TensorInfo& info = operation.info.tensor[K];
    info.in = info.out = cache;
    info.ops.hadamard_of_input = info.ops.hadamard =
        vkrope_hadamard_of_llama_cpp(k.head_dim, true, k.head_dim, true).q_and_k;
    operation.call.gain = VKROPE_GAIN_OMIT;
    operation.call.positions = {};
    Ids slots(tokens);
    std::iota(slots.begin(), slots.end(), 0);
    verify::Memory memory(1);
    operation.info.positions = VKROPE_POSITIONS_IDS;
    operation.call.positions.ids = memory.put(Ids(tokens, -1000), false);
    operation.info.gather_kv = operation.info.scatter_kv = true;
    operation.call.paged_cache.slot_mapping = memory.put(slots, false);
    operation.call.paged_cache.source_mapping = memory.put(slots, false);
    operation.memory = std::move(memory.bytes);
    return operation;
}

std::span<const Shape> shapes() {
    static const Shape all[] = {
        {"prefill_llama3_8b", "Llama 3.1 8B", llama3_8b(4096)},
        {"prefill_llama3_70b", "Llama 3.1 70B", rotation(4096, {64, 128}, {8, 128}, 128, 500000)},
        {"prefill_qwen3_30b", "Qwen3 30B-A3B", rotation(4096, {32, 128}, {4, 128}, 128, 1000000)},
        {"long_llama3_8b", "Llama 3.1 8B", llama3_8b(131072)},
        {"decode_b1", "Llama 3.1 8B", decoding(1), Pace::chained},
        {"decode_b64", "Llama 3.1 8B", decoding(64), Pace::chained},
        {"decode_b256", "Llama 3.1 8B", decoding(256), Pace::chained},
        {"mla_deepseek", "DeepSeek-V3",
         rotation(1024, {128, 192, 128}, {1, 576, 512}, 64, 10000, VKROPE_INTERLEAVED)},
        {"partial_neox_20b", "GPT-NeoX 20B", rotation(2048, {64, 96}, {64, 96}, 24)},
        {"mrope_qwen2_vl", "Qwen2-VL 7B", text_and_images()},
        {"vision_2d", "EVA-02-L", images()},
        {"gptj_interleaved", "GPT-J 6B",
         rotation(2048, {16, 256}, {16, 256}, 64, 10000, VKROPE_INTERLEAVED)},
    };
    return all;
}

std::vector<Shape> in_place_prefills() {
    std::vector<Shape> all;
    for (const std::uint32_t tokens : {1024u, 2048u, 4096u, 8192u}) {
        const std::string name = "prefill_" + std::to_string(tokens);
        all.push_back({name + "_warm", "Llama 3.1 8B", llama3_8b(tokens), Pace::chained});
        all.push_back({name + "_cold", "Llama 3.1 8B", llama3_8b(tokens), Pace::cold});
    }
    return all;
}

bool is_plain(const Operation& operation) {
    const KernelInfo& info = operation.info;
    return info.positions == VKROPE_POSITIONS_IMPLICIT && info.pairing == VKROPE_HALF_SPLIT &&
           operation.call.batch == 1 && info.tensor[Q].head_dim == info.rotary_dim &&
           info.tensor[K].head_dim == info.rotary_dim;
}

std::uint64_t input_bytes(const Operation& operation, TensorIndex which) {
    const TensorInfo& info = operation.info.tensor[which];
    return verify::stored_bytes(info.in, verify::tokens_of(operation) * info.heads * info.head_dim);
}

std::uint64_t output_bytes(const Operation& operation, TensorIndex which) {
    const TensorInfo& info = operation.info.tensor[which];
    const bool paged = which != Q && operation.call.paged_cache.page_size != 0;
    const std::uint64_t rows = paged ? std::uint64_t{pages} * page_size
                                     : verify::tokens_of(operation);
    return verify::stored_bytes(info.out, rows * info.heads * info.head_dim);
}

std::uint64_t second_bytes(const Operation& operation, TensorIndex which) {
    const TensorInfo& info = operation.info.tensor[which];
    if (!verify::has_second(operation, which)) return 0;
    return verify::stored_bytes(info.second,
                                verify::tokens_of(operation) * info.heads * info.head_dim);
}

std::uint64_t made_scale_bytes(const Operation& operation, TensorIndex which) {
    const TensorInfo& info = operation.info.tensor[which];
    if (!is_made(info.ops.store_scale)) return 0;
    return verify::tokens_of(operation) * info.heads * scale_groups(info) * sizeof(float);
}

std::uint64_t device_bytes(const Operation& operation) {
    std::uint64_t sum = 0;
    for (const TensorIndex which : every_tensor)
        sum += input_bytes(operation, which) + output_bytes(operation, which) +
               second_bytes(operation, which) + made_scale_bytes(operation, which);
    return sum;
}

Operation reduced(Operation operation, std::uint64_t bytes) {
    while (operation.call.tokens > 1 && device_bytes(operation) > bytes) operation.call.tokens /= 2;
    return operation;
}

}  // namespace vkrope::bench
