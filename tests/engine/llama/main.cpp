// SPDX-License-Identifier: MIT
// The layers of llama.cpp's own graphs on vkrope, each in one call.
//
//     llama observe|replace|shift ARCHITECTURE DEVICE K V LAST_POSITION -|MUTANT|yarn
#include <ggml-backend.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "modes.hpp"

namespace engine {

Bytes quantise(ggml_type type, const float* rows, std::int64_t channels) {
    Bytes made(ggml_row_size(type, channels));
    if (type == GGML_TYPE_IQ4_NL)
        ggml_get_type_traits(type)->from_float_ref(rows, made.data(), channels);
    else
        ggml_quantize_chunk(type, rows, made.data(), 0, 1, channels, nullptr);
    return made;
}

std::size_t differences(const Bytes& a, const Bytes& b, std::size_t unit) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); i += unit) count += std::memcmp(&a[i], &b[i], unit) != 0;
    return count;
}

}  // namespace engine

namespace {

ggml_type type_named(const std::string& name) {
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const char* known = ggml_type_name(ggml_type(type));
        if (known && name == known) return ggml_type(type);
    }
    engine::fail("no such type: " + name);
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto is_one_of = [](const std::string& word, std::initializer_list<const char*> of) {
        return std::find(of.begin(), of.end(), word) != of.end();
    };
    if (words.size() != 7 || !is_one_of(words[0], {"observe", "replace", "shift"}) ||
        !is_one_of(words[6], {"-", "yarn", "pairing", "hadamard", "eps", "slot"}))
        return std::fprintf(stderr, "see main.cpp\n"), 2;
    llama_log_set(
        [](ggml_log_level level, const char* text, void*) {
            if (level >= GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
        },
        nullptr);
    ggml_backend_load_all();
    llama_backend_init();
    const bool yarn = words.back() == "yarn";
    if (!yarn) engine::mutant = words[6];
    const engine::Setup setup{words[1], words[2], type_named(words[3]), type_named(words[4]), yarn};
    const bool good = words[0] == "observe"   ? engine::observe(setup, std::stoi(words[5]))
                      : words[0] == "replace" ? engine::replace(setup)
                                              : engine::shift(setup);
    return good ? 0 : 1;
}
