// SPDX-License-Identifier: MIT
// Layers that do more or less than rotate, each compared with plain loops: one without RoPE, one
// with second destinations, two with norms, and the latent row of MLA. Every cache has one row for
// each slot. Weights of norms are f16 buffers of the engine, which it does not pack.
#pragma once

#include <vector>

#include "table.hpp"
#include "trial.hpp"

namespace engine {

class Layers : public Trial {
   public:
    // rotation, table  half_split channels of a head of 64, and their angles
    Layers(const Gpu& gpu, VkCommandPool pool, const vkrope::RopeParams& rotation,
           const Table& table)
        : Trial(gpu, pool), rotation_(rotation), table_(table),
          bound_(0x1p-24 * vkrope_error_bound(table.plan.source, 1)) {
        without_rope();
        with_second();
        with_norms();
        latent();
    }

   private:
    static constexpr std::uint32_t head_dim = 64, heads = 2, tokens = 7, rows = tokens * heads,
                                   latent_dim = 576, normed = 512;
    static constexpr std::size_t count = rows * head_dim;
    static constexpr std::int32_t first_position = 5;
    static constexpr float unwritten = 1e30f;

    // Returns a multiple of 1/64. 32 channels have a largest magnitude of 127/64, so that q8_0
    // stores them exactly.
    static float input(std::size_t i) {
        const std::uint32_t hash = std::uint32_t(i) * 2654435761u >> 9;
        return float(i % 32 == 9 ? 127 : int(hash % 253) - 126) / 64;
    }
    // Token 0 has no slot; the others have slots in descending order.
    static std::int32_t slot(std::uint32_t token) {
        return token == 0 ? -1 : std::int32_t(tokens - token);
    }

    Buffer& inputs(std::size_t numbers) { return fill<float>(numbers, input); }
    Buffer& destination(std::size_t numbers) {
        return fill<float>(
            numbers, [](std::size_t) { return unwritten; });
    }
    // A cache of q8_0 with a row for each slot, and the blocks of `tokens` rows.
    Buffer& blocks() {
        return fill<unsigned char>(
            count / 32 * 34, [](std::size_t) { return 0xa5; });
    }

    vkrope::Call call() {
        vkrope::Call made;
        made.tokens = tokens;
        made.paged_cache.slot_mapping = fill<std::int32_t>(tokens, slot).whole();
        return made;
    }
    void rotate(vkrope::Call& call) const {
        call.positions.first = first_position;
        call.angles = table_.angles();
    }

    // Calls `with` for every channel, with the index of its row in the cache: -1 if it has none.
    template <class With>
    static void for_channels(const With& with) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto row = std::int32_t(i / head_dim);
            const std::int32_t at = slot(std::uint32_t(row) / heads);
            with(i, at < 0 ? -1 : at * std::int32_t(heads) + row % std::int32_t(heads));
        }
    }
    // Compares a cache of q8_0 with the inputs: the scale of each block is 1/64.
    void has_codes(const Buffer& cache) {
        for_channels([&](std::size_t i, std::int32_t row) {
            const std::size_t channel = i % head_dim;
            if (row < 0) return is(bytes(cache)[i / 32 * 34], 0xa5);  // no token has slot 0
            const auto* block = bytes(cache) + (std::size_t(row) * head_dim + channel) / 32 * 34;
            is(block[0] | block[1] << 8, 0x2400);
            is(static_cast<signed char>(block[2 + channel % 32]), input(i) * 64);
        });
    }
    // Compares a rotated pair, whose channels had an error of `more` units before.
    void has_turned(double y0, double y1, double x0, double x1, std::uint32_t pair,
                    std::uint32_t token, double more = 0) {
        const double angle = (first_position + std::int32_t(token)) * rotation_.inv_freq[pair];
        const double bound = (bound_ + more * 0x1p-24) * (std::fabs(x0) + std::fabs(x1));
        is(y0, x0 * std::cos(angle) - x1 * std::sin(angle), bound);
        is(y1, x0 * std::sin(angle) + x1 * std::cos(angle), bound);
    }

    // As in Llama 4: Q in place with a factor for each token; K and V to caches.
    void without_rope() {
        vkrope::RopeParams none;
        none.head_dim = head_dim;
        none.no_rope = true;
        none.ops.tensor[vkrope::Q].scale_tokens = VK_TRUE;
        auto info = vkrope::kernel_info(none, VKROPE_F32, VKROPE_F32, VKROPE_F32);
        check(info.status, "kernel_info, without RoPE");
        info.value.scatter_kv = VK_TRUE;
        info.value.tensor[vkrope::V].out = VKROPE_Q8_0;
        const auto factor = [](std::size_t token) { return 1 + 0.1f * float(token); };
        const Buffer &q = inputs(count), &k = inputs(count), &k_cache = destination(count),
                     &v_cache = blocks();
        vkrope::Call layer = call();
        layer.in[vkrope::Q] = layer.out[vkrope::Q] = tensor(q, heads);
        layer.in[vkrope::K] = layer.in[vkrope::V] = tensor(k, heads);
        layer.out[vkrope::K] = tensor(k_cache, heads);
        layer.out[vkrope::V] = tensor(v_cache, heads);
        layer.scale_tokens[vkrope::Q] = fill<float>(tokens, factor).whole();
        run(info.value, layer);
        for_channels([&](std::size_t i, std::int32_t row) {
            is(floats(q)[i], input(i) * factor(i / head_dim / heads));
            if (row < 0) return is(floats(k_cache)[i], unwritten);  // no token has slot 0
            is(floats(k_cache)[std::size_t(row) * head_dim + i % head_dim], input(i));
        });
        has_codes(v_cache);
    }

    // K rotated and raw; V in q8_0 and in f32.
    void with_second() {
        auto info = vkrope::kernel_info(rotation_, table_.plan, {}, VKROPE_F32, VKROPE_F32);
        check(info.status, "kernel_info, with second destinations");
        info.value.scatter_kv = VK_TRUE;
        vkrope::TensorInfo &of_k = info.value.tensor[vkrope::K],
                           &of_v = info.value.tensor[vkrope::V];
        of_k.heads = of_v.heads = heads;
        of_k.second_of = VKROPE_SECOND_INPUT;
        of_v.second_of = VKROPE_SECOND_RESULT;
        of_v.out = VKROPE_Q8_0;
        const Buffer &k = inputs(count), &raw = destination(count), &packed = destination(count),
                     &k_cache = destination(count), &v_cache = blocks();
        vkrope::Call layer = call();
        rotate(layer);
        layer.in[vkrope::K] = layer.in[vkrope::V] = tensor(k, heads);
        layer.out[vkrope::K] = tensor(k_cache, heads);
        layer.out[vkrope::V] = tensor(v_cache, heads);
        layer.second[vkrope::K] = raw.whole();
        layer.second[vkrope::V] = packed.whole();
        run(info.value, layer);
        for_channels([&](std::size_t i, std::int32_t row) {
            is(floats(raw)[i], input(i));
            is(floats(packed)[i], input(i));
            const auto j = std::uint32_t(i % head_dim);
            if (row < 0) return is(floats(k_cache)[i], unwritten);
            if (j >= head_dim / 2) return;
            const float* turned = floats(k_cache) + std::size_t(row) * head_dim + j;
            has_turned(turned[0], turned[head_dim / 2], input(i), input(i + head_dim / 2), j,
                       std::uint32_t(i / head_dim / heads));
        });
        has_codes(v_cache);
    }

    // A weight of 0.5 and more, and its bits in f16.
    static double weight(std::size_t channel, std::uint32_t step) {
        return 0.5 + double(step * channel) / 2048;
    }
    VkDescriptorBufferInfo weights(std::size_t channels, std::uint32_t step) {
        return fill<std::uint16_t>(
                   channels, [&](std::size_t channel) { return 0x3800 + step * channel; })
            .whole();
    }
    static vkrope::Norm norm_of(std::uint32_t channels) {
        vkrope::Norm norm;
        norm.kind = VKROPE_NORM_RMS;
        norm.eps = 1e-6f;
        norm.weight = VKROPE_PARAMETER_CHANNEL;
        norm.channels = channels;
        norm.weight_bound = VK_TRUE;
        norm.weight_type = VKROPE_F16;
        return norm;
    }
    static double root(const float* x, std::uint32_t channels) {
        double sum = 0;
        for (std::uint32_t c = 0; c < channels; ++c) sum += double(x[c]) * x[c];
        return std::sqrt(sum / channels + 1e-6f);
    }

    // Q and K in place, with norms. Two layers with other weights share a kernel.
    void with_norms() {
        const std::size_t before = kernels();
        const Buffer& x = inputs(count);
        for (const std::uint32_t step : {0u, 2u}) {
            auto info = vkrope::kernel_info(rotation_, table_.plan, VKROPE_F32, VKROPE_F32);
            check(info.status, "kernel_info, with norms");
            const Buffer &q = inputs(count), &k = inputs(count);
            vkrope::Call layer;
            layer.tokens = tokens;
            rotate(layer);
            layer.in[vkrope::Q] = layer.out[vkrope::Q] = tensor(q, heads);
            layer.in[vkrope::K] = layer.out[vkrope::K] = tensor(k, heads);
            for (const auto t : {vkrope::Q, vkrope::K}) {
                info.value.tensor[t].ops.norm = norm_of(0);
                layer.norm_weight[t] = weights(head_dim, step);
            }
            run(info.value, layer);
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t j = i % head_dim, half = head_dim / 2;
                if (j >= half) continue;
                const double divisor = root(floats(x) + i - j, head_dim);
                for (const Buffer* y : {&q, &k})
                    has_turned(floats(*y)[i], floats(*y)[i + half],
                               input(i) / divisor * weight(j, step),
                               input(i + half) / divisor * weight(j + half, step), std::uint32_t(j),
                               std::uint32_t(i / head_dim / heads), 10);
            }
        }
        is(double(kernels()), double(before + 1));
    }

    // [512 with a norm | 64 rotated], in one dispatch.
    void latent() {
        vkrope::RopeParams rotation = rotation_;
        rotation.pairing = VKROPE_INTERLEAVED;
        rotation.k_rotary_offset = normed;
        auto info = vkrope::kernel_info(rotation, table_.plan, {}, VKROPE_F32);
        check(info.status, "kernel_info, of a latent row");
        info.value.scatter_kv = VK_TRUE;
        info.value.tensor[vkrope::K].ops.norm = norm_of(normed);
        const Buffer &k = inputs(tokens * latent_dim), &cache = destination(tokens * latent_dim);
        vkrope::Call layer = call();
        rotate(layer);
        layer.in[vkrope::K] = tensor(k, 1);
        layer.out[vkrope::K] = tensor(cache, 1);
        layer.norm_weight[vkrope::K] = weights(normed, 1);
        run(info.value, layer);
        for (std::uint32_t token = 1; token < tokens; ++token) {
            const float *x = floats(k) + token * latent_dim,
                        *y = floats(cache) + std::size_t(slot(token)) * latent_dim;
            const double divisor = root(x, normed);
            for (std::uint32_t c = 0; c < normed; ++c) {
                const double exact = x[c] * weight(c, 1) / divisor;
                is(y[c], exact, 11.5 * 0x1p-24 * std::fabs(exact));
            }
            for (std::uint32_t c = normed; c < latent_dim; c += 2)
                has_turned(y[c], y[c + 1], x[c], x[c + 1], (c - normed) / 2, token);
        }
        for (std::uint32_t c = 0; c < latent_dim; ++c) is(floats(cache)[c], unwritten);
    }

    const vkrope::RopeParams& rotation_;
    const Table& table_;
    double bound_;
};

}  // namespace engine
