// SPDX-License-Identifier: MIT
#include <ggml-backend.h>

#include <algorithm>
#include <cstdio>

#include "modes.hpp"

namespace engine {

namespace {

constexpr std::size_t prompt = 64, steps = 64;

struct Text {
    std::size_t layers = 0;  ///< that vkrope took
    std::vector<float> logits;
    std::vector<llama_token> tokens;  ///< greedy, after the prompt and after each step
};

// Decodes the prompt and then token by token: `given`, or its own greedy tokens if that is empty.
Text run(const Setup& setup, const std::vector<llama_token>& given, bool with_vkrope) {
    Harness harness(setup);
    Runner runner;
    Text text;
    AtLayer at_layer;
    if (with_vkrope)
        at_layer = [&](const Layer& layer, const Copies& copies) {
            ++text.layers;
            const auto made = runner.run(layer, copies, true);
            for (const auto t : vkrope::every_tensor) {
                ggml_tensor* to = t == vkrope::Q ? layer[t].output : layer[t].cache;
                if (layer[t].input) ggml_backend_tensor_set(to, made[t].data(), 0, ggml_nbytes(to));
            }
        };
    std::vector<llama_token> next = some_tokens(prompt);
    for (std::size_t step = 0; step <= steps; ++step) {
        const std::size_t position = step == 0 ? 0 : prompt + step - 1;
        const auto logits = harness.decode(next, std::int32_t(position), at_layer);
        const auto last = logits.end() - std::ptrdiff_t(logits.size() / next.size());
        text.tokens.push_back(llama_token(std::max_element(last, logits.end()) - last));
        text.logits.insert(text.logits.end(), logits.begin(), logits.end());
        next = {given.empty() ? text.tokens.back() : given[step]};
    }
    return text;
}

// Normalised mean square error of logits.
double nmse(const Text& of, const Text& right) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < right.logits.size(); ++i) {
        const double difference = double(of.logits[i]) - right.logits[i];
        error += difference * difference;
        size += double(right.logits[i]) * right.logits[i];
    }
    return error / size;
}

}  // namespace

bool replace(Setup setup) {
    Text plain[2];
    double with_vkrope[2];
    std::size_t equal[2] = {};
    bool all_layers = true;
    for (const int d : {0, 1}) {
        setup.device = d == 0 ? "CPU" : "Vulkan0";
        plain[d] = run(setup, plain[0].tokens, false);
        const Text replaced = run(setup, plain[0].tokens, true);
        with_vkrope[d] = nmse(replaced, plain[d]);
        all_layers = all_layers && replaced.layers == 2 * (steps + 1);
        for (std::size_t i = 1; i <= steps; ++i)
            equal[d] += replaced.tokens[i] == plain[d].tokens[i];
    }
    const double backends = nmse(plain[1], plain[0]);
    std::printf(
        "nmse_cpu %.2g nmse_vulkan %.2g nmse_of_backends %.2g tokens_cpu %zu tokens_vulkan "
        "%zu of %zu\n",
        with_vkrope[0], with_vkrope[1], backends, equal[0], equal[1], steps);
    return all_layers && equal[0] + 4 >= steps && equal[1] + 4 >= steps &&
           with_vkrope[0] < backends && with_vkrope[1] < backends;
}

}  // namespace engine
