// SPDX-License-Identifier: MIT
// Each program stops, with this version, at a step that says "not supported yet": no other error, no crash, no wrong success.
#include <cstdio>

#include "../engine/gpu.hpp"
#include "walk.hpp"

int main() {
    engine::Gpu device(true);
    walk::Gpu gpu;
    gpu.ref = device.ref();
    gpu.upload_texture = [](VkFormat, VkExtent2D, VkFlags, const std::vector<std::byte>&) { return VkImageView(); };
    const char* llama = R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 128, "num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 10000.0})";
    const char* gemma = R"({"model_type": "gemma3_text", "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 128, "num_hidden_layers": 2, "max_position_embeddings": 4096, "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0, "layer_types": ["sliding_attention", "full_attention"]})";
    const struct {
        const char* name;
        vkrope::Code (*today)(const walk::Gpu&, std::string_view);
        const char* config;
    } programs[] = {{"paged_decode", walk::paged_decode::today, llama},
                    {"qwen25vl", walk::qwen25vl::today, llama},
                    {"mla", walk::mla::today, llama},
                    {"training", walk::training::today, llama},
                    {"layer_types", walk::layer_types::today, gemma}};
    int failures = 0;
    for (const auto& program : programs) {
        const vkrope::Code code = program.today(gpu, program.config);
        if (code == vkrope::Code::not_supported) continue;
        std::fprintf(stderr, "walk: %s ended with code %d: not_supported was expected\n", program.name, int(code));
        ++failures;
    }
    std::printf("walk: 5 programs, %d without the expected \"not supported yet\"\n", failures);
    return failures != 0;
}
