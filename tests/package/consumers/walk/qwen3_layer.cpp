// SPDX-License-Identifier: MIT
// Runs a decoder layer of Qwen3-8B's shapes, from the packed rows of the QKV product to the paged
// caches, in one dispatch: Q and K are normed with the layer's weights and rotated, Q is scaled,
// and K and V go to their slots. The layer runs once with caches of f16, and once with caches of
// q8_0 after the Hadamard transforms of llama.cpp. The results are compared with loops that use
// nothing of the library.
#include <algorithm>
#include <cstdlib>

#include "halves.hpp"

namespace walk {

namespace {

constexpr std::uint32_t head_dim = 128, q_heads = 32, kv_heads = 8, tokens = 6;
constexpr Packed layout = {head_dim, q_heads, kv_heads};
constexpr std::uint32_t page_size = 4, pages = 3, rows = pages * page_size;
constexpr std::int32_t first_position = 1000;
constexpr float softmax_scale = 0.0883883461f;  // 1 / sqrt(head_dim)
constexpr std::size_t kv_row = layout.kv_row(), packed_row = layout.row();
constexpr std::byte unwritten = std::byte{0x5a};          // the content of the caches before
constexpr std::uint32_t in_block = 32, block_bytes = 34;  // channels and bytes of a q8_0 block

// ---- The engine's calls of the library ----

// The norms, their eps and the head counts are those of the model.
vkrope::Result<vkrope::KernelInfo> kernel_info(const vkrope::RopeParams& rope,
                                               const vkrope::AngleTableLayout& plan,
                                               vkrope::Element cache) {
    auto info = vkrope::kernel_info(rope, plan, VKROPE_F16, VKROPE_F16, VKROPE_F16);
    auto& [q, k, v] = info->tensor;
    q.ops.scale_call = true;
    info->scatter_kv = true;
    k.out = v.out = cache;
    const bool quantised = vkrope_is_quantised(cache);
    const vkrope::HadamardBlocks blocks = vkrope_hadamard_of_llama_cpp(head_dim, quantised,
                                                                       head_dim, quantised);
    q.ops.hadamard = k.ops.hadamard = blocks.q_and_k;
    v.ops.hadamard = blocks.v;
    return info;
}

struct Layer {
    std::vector<float> q_norm, k_norm;  // [head_dim]
};

// The engine calls this once for each layer, while it loads the model.
vkrope::Result<std::vector<std::byte>> parameters_of(const vkrope::KernelInfo& info,
                                                     const Layer& layer) {
    const auto plan = vkrope::plan_parameters(info);
    if (!plan) return {plan.status, {}};
    std::vector<std::byte> content(plan->bytes);
    const vkrope::ParameterSources sources{
        .tensor = {{.weight = {layer.q_norm.data(), VKROPE_F32, layer.q_norm.size()}},
                   {.weight = {layer.k_norm.data(), VKROPE_F32, layer.k_norm.size()}}}};
    return {vkrope::fill_parameters(plan.value, sources, content.data(), content.size()), content};
}

struct Tensors {
    VkDescriptorBufferInfo packed, q, k_cache, v_cache, slot_mapping, parameters;
};

vkrope::Call to_cache(const Tensors& tensors, const Table& table) {
    return {.tokens = tokens,
            .in = {layout.q(tensors.packed), layout.k(tensors.packed), layout.v(tensors.packed)},
            .out = {{.where = tensors.q, .heads = q_heads},
                    {.where = tensors.k_cache, .heads = kv_heads},
                    {.where = tensors.v_cache, .heads = kv_heads}},
            .positions = {.first = first_position},
            .angles = table.angles(),
            .paged_cache = {.slot_mapping = tensors.slot_mapping, .page_size = page_size},
            .parameters = tensors.parameters,
            .q_scale = softmax_scale};
}

// ---- The engine's own calculation ----

std::uint32_t random(std::uint32_t& state) {
    return state = state * 1664525 + 1013904223;
}

// Returns packed rows of finite numbers of a few magnitudes.
std::vector<Half> projection() {
    std::vector<Half> packed(tokens * packed_row);
    std::uint32_t state = 7;
    for (Half& half : packed) {
        const std::uint32_t bits = random(state) >> 16, exponent = 12 + (state >> 8) % 6;
        half = Half((bits & 0x83ff) | exponent << 10);
    }
    return packed;
}

std::vector<float> weights(std::uint32_t state) {
    std::vector<float> numbers(head_dim);
    for (float& number : numbers) number = 0.5f + float(random(state) >> 8) * 0x1p-23f;
    return numbers;
}

// Token 2 is padding.
std::int32_t slot_of(std::uint32_t token) {
    return token == 2 ? -1 : std::int32_t(token * 5 % rows);
}

// The exact value of a channel, and the size to which the contract's error bounds are relative.
struct Exact {
    double value = 0, size = 0;
};
using Row = std::vector<Exact>;

// Returns the row of a token after RMS norm with a weight, rotation (half_split), and scaling.
Row finished(std::uint32_t token, const std::vector<float>& weight, double scale, const Half* in) {
    double squares = 0;
    for (std::uint32_t c = 0; c < head_dim; ++c) squares += value(in[c]) * value(in[c]);
    const double root = 1 / std::sqrt(squares / head_dim + double(1e-6f));
    const auto normed = [&](std::uint32_t c) { return value(in[c]) * root * double(weight[c]); };
    Row row(head_dim);
    for (std::uint32_t j = 0; j < head_dim / 2; ++j) {
        const double x0 = normed(j), x1 = normed(j + head_dim / 2);
        const double angle = (first_position + double(token)) * std::pow(1e6, -2.0 * j / head_dim);
        const double c = std::cos(angle), s = std::sin(angle),
                     size = scale * (std::abs(x0) + std::abs(x1));
        row[j] = {scale * (x0 * c - x1 * s), size};
        row[j + head_dim / 2] = {scale * (x0 * s + x1 * c), size};
    }
    return row;
}

Row as_it_is(const Half* in) {
    Row row(head_dim);
    for (std::uint32_t c = 0; c < head_dim; ++c) row[c].value = value(in[c]);
    return row;
}

// Multiplies each block by the Hadamard matrix, whose element (i, j) is (-1)^(number of bits that i
// and j share) over the square root of the number of channels in a block.
Row transformed(const Row& row, std::uint32_t block) {
    if (block == 0) return row;
    Row out(row.size());
    for (std::uint32_t i = 0; i < row.size(); ++i) {
        for (std::uint32_t j = 0; j < block; ++j) {
            const Exact& from = row[i / block * block + j];
            std::uint32_t shared = i % block & j;
            int sign = 1;
            for (; shared != 0; shared &= shared - 1) sign = -sign;
            out[i].value += sign * from.value / std::sqrt(block);
            out[i].size += (from.size + std::abs(from.value)) / std::sqrt(block);
        }
    }
    return out;
}

// The value that was stored in a channel, and the largest rounding error of the storage type.
struct Stored {
    double value = 0, rounding = 0;
};

std::vector<Stored> stored_halves(const std::byte* row) {
    std::vector<Stored> stored(head_dim);
    for (Stored& channel : stored) {
        Half half = 0;
        std::memcpy(&half, row + (&channel - stored.data()) * sizeof half, sizeof half);
        channel.value = value(half);
        channel.rounding = std::ldexp(1, std::max(std::ilogb(channel.value), -14) - 10) / 2;
    }
    return stored;
}

// A block is d and 32 codes. The rounding of a code is up to half of d; the rounding of d to f16 is
// up to 2^-11 of each code. The largest code must be 127, so that a d that is too large fails.
std::vector<Stored> stored_q8_0(const std::byte* row) {
    std::vector<Stored> stored(head_dim);
    for (std::uint32_t c = 0; c < head_dim; ++c) {
        const std::byte* block = row + c / in_block * block_bytes;
        Half d = 0;
        std::memcpy(&d, block, sizeof d);
        const auto code = [&](std::uint32_t i) {
            return static_cast<std::int8_t>(block[sizeof d + i]);
        };
        int largest = 0;
        for (std::uint32_t i = 0; i < in_block; ++i) {
            largest = std::max(largest, std::abs(code(i)));
        }
        const double step = largest == 127 ? value(d) : 0;
        const int of_channel = code(c % in_block);
        stored[c] = {value(d) * of_channel, step * (0.5 + std::abs(of_channel) * 0x1p-11) * 1.0001};
    }
    return stored;
}

// The contract allows 6 u for the rotation, 10.5 u for the norm of each member of the pair, 2 u for
// the scale and 9 u for a Hadamard transform.
vkrope::Status is_near(const std::string& name, const std::vector<Stored>& stored,
                       const Row& exact) {
    for (std::uint32_t c = 0; c < head_dim; ++c) {
        const double off = std::abs(stored[c].value - exact[c].value);
        if (!(off <= 36 * 0x1p-24 * exact[c].size + stored[c].rounding))  // a NaN is not near
            return wrong(name + ", channel " + std::to_string(c) + " is not what the loops have");
    }
    return {};
}

struct Outcome {
    std::vector<std::byte> packed, q, k_cache, v_cache;
};

// Returns the size of a token's heads in a cache, in bytes.
std::size_t cache_row(const vkrope::KernelInfo& info) {
    return kv_row / vkrope_block_channels(info.tensor[vkrope::K].out) *
           vkrope_element_bytes(info.tensor[vkrope::K].out);
}

vkrope::Status check_values(const vkrope::KernelInfo& info, const std::vector<Half>& given,
                            const Layer& layer, const Outcome& got) {
    if (std::memcmp(got.packed.data(), given.data(), got.packed.size()) != 0)
        return wrong("the inputs have changed");
    const std::size_t row = cache_row(info), head = row / kv_heads;
    const auto stored = vkrope_is_quantised(info.tensor[vkrope::K].out) ? stored_q8_0
                                                                        : stored_halves;
    bool named[rows] = {};
    for (std::uint32_t t = 0; t < tokens; ++t) {
        const Half* token = &given[t * packed_row];
        const auto name = [t](const char* tensor, std::uint32_t h) {
            return std::string(tensor) + ": token " + std::to_string(t) + ", head " +
                   std::to_string(h);
        };
        for (std::uint32_t h = 0; h < q_heads; ++h) {
            const std::size_t out = (std::size_t{t} * q_heads + h) * head_dim * sizeof(Half);
            const Row q = finished(t, layer.q_norm, softmax_scale,
                                   token + std::size_t{h} * head_dim);
            if (vkrope::Status s = is_near(name("Q", h), stored_halves(&got.q[out]),
                                           transformed(q, info.tensor[vkrope::Q].ops.hadamard));
                !s)
                return s;
        }
        const std::int32_t slot = slot_of(t);
        if (slot < 0) continue;
        named[slot] = true;
        for (std::uint32_t h = 0; h < kv_heads; ++h) {
            const Half *k = token + std::size_t{q_heads + h} * head_dim, *v = k + kv_row;
            const std::size_t to = std::size_t(slot) * row + h * head;
            if (vkrope::Status s = is_near(name("K", h), stored(&got.k_cache[to]),
                                           transformed(finished(t, layer.k_norm, 1, k),
                                                       info.tensor[vkrope::K].ops.hadamard));
                !s)
                return s;
            if (vkrope::Status s = is_near(
                    name("V", h), stored(&got.v_cache[to]),
                    transformed(as_it_is(v), info.tensor[vkrope::V].ops.hadamard));
                !s)
                return s;
            if (!vkrope_is_quantised(info.tensor[vkrope::K].out) &&
                std::memcmp(v, &got.v_cache[to], head) != 0)
                return wrong(name("V", h) + " did not arrive as it was");
        }
    }
    for (std::size_t i = 0; i < rows * row; ++i) {
        if (!named[i / row] && (got.k_cache[i] != unwritten || got.v_cache[i] != unwritten))
            return wrong("row " + std::to_string(i / row) +
                         " of the caches, which no slot names, has changed");
    }
    return {};
}

std::vector<Step> with_caches(vkrope::Element cache, const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    const Loaded model = load_model(gpu, config_json, VKROPE_ANGLES_FACTORED_TEXTURE, 0, taken);
    const auto info = kernel_info(model.rope, model.table.plan, cache);
    taken.push_back({"kernel info", info.status});
    const Layer layer = {weights(1), weights(2)};
    const auto parameters = parameters_of(info.value, layer);
    taken.push_back({"parameters", parameters.status});
    const std::vector<Half> given = projection(), q(tokens * q_heads * head_dim);
    const std::vector<std::byte> empty(rows * cache_row(info.value), unwritten);
    std::vector<std::int32_t> slots;
    for (std::uint32_t t = 0; t < tokens; ++t) slots.push_back(slot_of(t));
    const Tensors on = {upload(gpu, given), upload(gpu, q),     upload(gpu, empty),
                        upload(gpu, empty), upload(gpu, slots), upload(gpu, parameters.value)};
    const Made made(gpu.ref, info.value);
    taken.push_back({"kernel", made.status});
    const vkrope::Call call = to_cache(on, model.table);
    taken.push_back({"dispatches", is_one_dispatch(made, call)});
    taken.push_back({"layer", gpu.rotate(made, call)});
    taken.push_back({"values", check_values(info.value, given, layer,
                                            {gpu.download(on.packed), gpu.download(on.q),
                                             gpu.download(on.k_cache), gpu.download(on.v_cache)})});
    return taken;
}

}  // namespace

std::vector<Step> qwen3_layer(const Gpu& gpu, std::string_view config_json) {
    return with_caches(VKROPE_F16, gpu, config_json);
}

std::vector<Step> qwen3_layer_q8_0(const Gpu& gpu, std::string_view config_json) {
    return with_caches(VKROPE_Q8_0, gpu, config_json);
}

}  // namespace walk
