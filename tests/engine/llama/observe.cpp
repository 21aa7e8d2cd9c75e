// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "modes.hpp"

namespace engine {

namespace {

struct Sums {
    std::size_t layers = 0, nodes = 0, dispatches = 0, bytes = 0, wrong = 0;
    // Elements of f32, f16 and bf16, bytes of other types: of K's cache, and of V's.
    std::size_t codes[3] = {}, differing[3] = {};
    double distance = 0, ggml_u = 0, vkrope_u = 0;
};

// Returns the size of the difference from ggml's rows, which may be longer, over theirs.
double distance(const Chain& chain, const Bytes& rows, const Bytes& ggml) {
    const std::size_t channels = std::size_t(chain.heads * chain.head_dim),
                      values = rows.size() / sizeof(float),
                      length = ggml.size() / sizeof(float) / (values / channels);
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < values; ++i) {
        const double right = floats(
            ggml)[i / channels * length + i % channels + std::size_t(chain.first_channel)];
        difference += (floats(rows)[i] - right) * (floats(rows)[i] - right);
        size += right * right;
    }
    if (!std::isfinite(size)) {  // gemma3n on lavapipe
        std::fprintf(stderr, "ggml's rows are not finite: invalid\n");
        std::exit(Harness::no_model);
    }
    return std::sqrt(difference / size);
}

// Writes vkrope's rows to their slots as ggml's definition stores them. Returns their bytes.
std::size_t store(const Chain& chain, const Bytes& slots, const Bytes& rows, Bytes& cache) {
    const std::int64_t channels = chain.heads * chain.head_dim;
    std::size_t bytes = 0;
    for (std::size_t token = 0; token < slots.size() / sizeof(std::int64_t); ++token) {
        std::int64_t slot;
        std::memcpy(&slot, &slots[token * sizeof slot], sizeof slot);
        const float* from = floats(rows) + token * std::size_t(channels);
        const Bytes row = quantise(chain.cache->type, from, channels);
        std::memcpy(&cache[std::size_t(slot) * chain.cache->nb[1] +
                           ggml_row_size(chain.cache->type, chain.first_channel)],
                    row.data(), row.size());
        bytes += row.size();
    }
    return bytes;
}

// Returns the largest error of rotated K over 2^-24 (|x0| + |x1|), with the exact angles of ggml's
// plain RoPE.
double error_of(const Chain& k, const Copies& copies, const Bytes& turned) {
    const std::size_t pairs = std::size_t(k.rope->op_params[1]) / 2, head = std::size_t(k.head_dim),
                      channels = std::size_t(k.heads) * head;
    const bool halves = k.rope->op_params[2] != 0;
    const auto bias = k.bias ? read<float>(k.bias->src[1]) : std::vector<float>(channels);
    const auto factors = k.rope->src[2] ? read<float>(k.rope->src[2])
                                        : std::vector<float>(pairs, 1);
    const auto* ids = reinterpret_cast<const std::int32_t*>(copies.at(k.rope->src[1]).data());
    const float* input = floats(copies.at(k.input));
    double largest = 0;
    for (std::size_t i = 0; i < turned.size() / sizeof(float) / head * pairs; ++i) {
        const std::size_t j = i % pairs, row = i / pairs * head;
        const std::size_t a = row + (halves ? j : 2 * j), b = halves ? a + pairs : a + 1;
        const float x0 = input[a] + bias[a % channels], x1 = input[b] + bias[b % channels];
        const long double frequency = std::pow((long double)(parameter(k.rope, 5)),
                                               -(long double)(j) / pairs) /
                                      factors[j],
                          angle = ids[row / channels] * frequency, c = std::cos(angle),
                          s = std::sin(angle), unit = 0x1p-24L * (std::fabs(x0) + std::fabs(x1)),
                          e0 = floats(turned)[a] - (x0 * c - x1 * s),
                          e1 = floats(turned)[b] - (x0 * s + x1 * c);
        largest = std::max({largest, double(std::fabs(e0) / unit), double(std::fabs(e1) / unit)});
    }
    return largest;
}

std::size_t unit_of(const Chain& chain) {
    return ggml_blck_size(chain.cache->type) == 1 ? ggml_type_size(chain.cache->type) : 1;
}

void add(Runner& runner, const Setup& setup, const Layer& layer, const Copies& copies, Sums& sums) {
    const auto& [q, k, v] = layer;
    const auto made = runner.run(layer, copies, true), own = runner.run(layer, copies, false);
    const bool latent = k.store && v.cache == k.cache;
    Bytes expected[3];
    ++sums.layers;
    const bool apart = k.store &&
                       (latent || ggml_blck_size(k.cache->type) != ggml_blck_size(v.cache->type));
    sums.dispatches += apart ? 2 : 1;
    for (const auto t : vkrope::every_tensor) {
        const Chain& chain = layer[t];
        if (!chain.input) continue;
        const Bytes& ggml = copies.at(chain.store && latent ? chain.store->src[0] : chain.output);
        sums.nodes += chain.nodes;
        const double from_ggml = distance(chain, own[t], ggml);
        if (!(from_ggml <= sums.distance)) sums.distance = from_ggml;  // or NaN
        if (!chain.store) continue;
        Bytes& cache = expected[latent ? vkrope::K : t];
        if (cache.empty()) cache = copies.at(chain.store);
        const std::size_t bytes = store(chain, copies.at(chain.store->src[1]), own[t], cache);
        sums.bytes += bytes;
        sums.codes[latent ? vkrope::K : t] += bytes / unit_of(chain);
    }
    for (const auto t : {vkrope::K, vkrope::V}) {
        if (expected[t].empty()) continue;
        const auto ggml = read<unsigned char>(layer[t].cache);
        sums.wrong += differences(expected[t], made[t]);
        sums.differing[t] += differences(ggml, made[t], unit_of(layer[t]));
    }
    if (!k.input || !k.rope || k.norm || k.hadamard || latent || setup.yarn ||
        !ggml_is_contiguous(k.input))
        return;
    sums.ggml_u = std::max(sums.ggml_u, error_of(k, copies, copies.at(k.output)));
    sums.vkrope_u = std::max(sums.vkrope_u, error_of(k, copies, own[vkrope::K]));
}

}  // namespace

bool observe(const Setup& setup, std::int32_t last_position) {
    Runner runner;  // before the harness, which takes crashes for those of llama.cpp
    Harness harness(setup);
    Sums of;
    const auto at_layer = [&](const Layer& layer, const Copies& copies) {
        add(runner, setup, layer, copies, of);
    };
    harness.decode(some_tokens(64), last_position - 63, at_layer);
    std::printf(
        "layers %zu nodes %zu dispatches %zu bytes %zu wrong %zu k_differing %zu of %zu "
        "v_differing %zu of %zu distance %.2g ggml_u %.3g vkrope_u %.3g\n",
        of.layers, of.nodes, std::size_t(runner.dispatches), of.bytes, of.wrong, of.differing[1],
        of.codes[1], of.differing[2], of.codes[2], of.distance, of.ggml_u, of.vkrope_u);
    const std::size_t differing = of.differing[1] + of.differing[2];
    const bool near_ggml = !ggml_is_quantized(setup.k) || !ggml_is_quantized(setup.v) ||
                           last_position > 63 || differing * 100 <= of.codes[1] + of.codes[2];
    // ggml's angles are f32, so that their errors grow with the position.
    return of.layers && of.wrong == 0 && near_ggml && of.dispatches == runner.dispatches &&
           of.vkrope_u < 4 && of.distance < 0x1p-24 * (2.0 * last_position + 64);
}

}  // namespace engine
