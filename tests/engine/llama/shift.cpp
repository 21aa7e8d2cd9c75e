// SPDX-License-Identifier: MIT
#include <cmath>
#include <cstdio>
#include <cstring>

#include "modes.hpp"

namespace engine {

namespace {

double squares(const Bytes& halves) {
    double sum = 0;
    for (std::size_t i = 0; i < halves.size(); i += sizeof(ggml_fp16_t)) {
        ggml_fp16_t half;
        std::memcpy(&half, &halves[i], sizeof half);
        sum += double(ggml_fp16_to_fp32(half)) * ggml_fp16_to_fp32(half);
    }
    return sum;
}

}  // namespace

bool shift(const Setup& setup) {
    Harness harness(setup);
    Runner runner;
    std::vector<Layer> layers;
    std::vector<Bytes> caches;
    const auto keep = [&](const Layer& layer, const Copies&) {
        layers.push_back(layer);
        caches.push_back(read<unsigned char>(layer[vkrope::K].cache));
    };
    harness.decode(some_tokens(64), 0, keep);
    // 16 tokens stay, 16 leave, and 32 move down.
    llama_memory_seq_rm(harness.memory(), 0, 16, 32);
    llama_memory_seq_add(harness.memory(), 0, 32, -1, -16);
    harness.decode(some_tokens(1), 48);
    std::size_t moved = 0, wrong = 0, differing = 0, changed = 0;
    double before = 0, after = 0;  // squares of halves of keys that do not move
    for (std::size_t i = 0; i < layers.size(); ++i) {
        const Chain& k = layers[i][vkrope::K];
        const auto& deltas = harness.deltas();
        const auto ggml = read<unsigned char>(k.cache),
                   made = runner.shift(layers[i], caches[i], deltas, true),
                   rows = runner.shift(layers[i], caches[i], deltas, false);
        for (std::size_t cell = 0; cell < 64 && cell < deltas.size(); ++cell) {
            const auto row = [&](const Bytes& of) {
                const auto* from = &of[cell * k.cache->nb[1]];
                return Bytes(from, from + k.cache->nb[1]);
            };
            const float* turned = floats(rows) + cell * std::size_t(k.cache->ne[0]);
            const bool moves = deltas[cell] != 0;
            wrong += differences(row(made), moves ? quantise(k.cache->type, turned, k.cache->ne[0])
                                                  : row(caches[i]));
            if (moves)
                moved += row(made).size(), differing += differences(row(made), row(ggml));
            else if (cell < 16) {
                changed += differences(row(caches[i]), row(ggml));
                if (k.cache->type == GGML_TYPE_F16) {
                    before += squares(row(caches[i]));
                    after += squares(row(ggml));
                }
            }
        }
    }
    const double growth = before ? std::sqrt(after / before) : 1;
    std::printf(
        "dispatches %zu bytes %zu wrong %zu differing %zu unmoved_that_ggml_changes %zu growth "
        "%.4f\n",
        std::size_t(runner.dispatches), moved, wrong, differing, changed, growth);
    if (!moved || wrong != 0) return false;
    if (!setup.yarn) return differing * 100 < moved && changed == 0;
    // llama.cpp applies the attention factor again, so that its keys are no measure.
    const double factor = 1 + 0.1 * std::log(4.0);
    return changed != 0 && (!before || std::fabs(growth - factor) < 0.001);
}

}  // namespace engine
