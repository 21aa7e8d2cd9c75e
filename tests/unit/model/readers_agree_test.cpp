// SPDX-License-Identifier: MIT
// config.json and GGUF of one model say the same rotation. The keys of the GGUF files are those
// that llama.cpp's converters write for the numbers of the config.json (conversion and gguf-py).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gguf_reading.hpp"
#include "support/gguf_builder.hpp"
#include "support/names.hpp"
#include "vkrope/vkrope.hpp"

using namespace vkrope::test;
using namespace vkrope;

namespace {

/// The differences that are known.
enum class Differs {
    no,
    pairing,  ///< the converter rearranges the rows of Q and K for interleaved pairs
    ramp,     ///< llama.cpp rounds the range of YaRN, the model's code does not; with a warning
};

struct Model {
    std::string config;  ///< fields of the config.json
    GgufBuilder file;
    Differs differs = Differs::no;
    int layer = -1;
    std::uint64_t seq_len = 0;
};

/// A converted model of 8 layers, 8 heads of Q and 2 of K.
GgufBuilder converted(const std::string& architecture, float base, std::uint32_t rotary_dim = 128,
                      std::uint32_t head_dim = 128) {
    GgufBuilder file(architecture);
    file.u32("block_count", 8)
        .u32("context_length", 131072)
        .u32("embedding_length", 1024)
        .u32("attention.head_count", 8)
        .u32("attention.head_count_kv", 2)
        .f32("attention.layer_norm_rms_epsilon", 1e-5f)
        .u32("attention.key_length", head_dim)
        .u32("rope.dimension_count", rotary_dim)
        .f32("rope.freq_base", base);
    return file;
}

GgufBuilder yarn(GgufBuilder file, float factor, std::uint32_t original) {
    return file.text("rope.scaling.type", "yarn")
        .f32("rope.scaling.factor", factor)
        .u32("rope.scaling.original_context_length", original);
}

GgufBuilder latent(const std::string& architecture, float base, std::uint32_t query,
                   std::uint32_t rank) {
    GgufBuilder file(architecture);
    file.u32("block_count", 8)
        .u32("context_length", 131072)
        .u32("attention.head_count", 8)
        .u32("attention.key_length", rank + 64)
        .u32("attention.key_length_mla", query)
        .u32("attention.kv_lora_rank", rank)
        .u32("rope.dimension_count", 64)
        .f32("rope.freq_base", base);
    return file;
}

GgufBuilder with_norms(GgufBuilder file, std::vector<std::uint64_t> q,
                       std::vector<std::uint64_t> k) {
    for (const char* layer : {"blk.0.", "blk.3."})
        file.tensor_of(std::string(layer) + "attn_q_norm.weight", q, 0, 0)
            .tensor_of(std::string(layer) + "attn_k_norm.weight", k, 0, 0);
    return file;
}

/// The divisors of Llama 3's formula: LlamaModel.generate_extra_tensors of the converter.
std::vector<float> llama3_divisors(double base, int dim, double factor, double low, double high,
                                   double original) {
    std::vector<float> divisors;
    for (int j = 0; j < dim / 2; ++j) {
        const double length = 2 * 3.14159265358979323846 * std::pow(base, 2.0 * j / dim);
        const double smooth = std::clamp((original / length - low) / (high - low), 0.0, 1.0);
        divisors.push_back(float(1 / ((1 - smooth) / factor + smooth)));
    }
    return divisors;
}

std::string fields_of(const std::string& type, double base, const std::string& more = "") {
    return "\"model_type\": \"" + type + "\", \"rope_theta\": " + std::to_string(base) +
           (more.empty() ? "" : ", " + more);
}

std::vector<Model> models() {
    std::vector<Model> all = {
        {fields_of("llama", 5e5, R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192})"),
         converted("llama", 5e5f)
             .tensor("rope_freqs.weight", llama3_divisors(5e5, 128, 8, 1, 4, 8192)),
         Differs::pairing},
        {fields_of("llama", 1e4, R"("rope_scaling": {"rope_type": "linear", "factor": 4.0})"),
         converted("llama", 1e4f).text("rope.scaling.type", "linear").f32("rope.scaling.factor", 4),
         Differs::pairing},
        {fields_of("qwen2", 1e6, R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0,
            "original_max_position_embeddings": 32768})"),
         yarn(converted("qwen2", 1e6f), 4, 32768)},
        {fields_of("qwen3", 1e6, R"("rms_norm_eps": 1e-5)"),
         with_norms(converted("qwen3", 1e6f), {128}, {128})},
        {fields_of("exaone4", 1e6, R"("rms_norm_eps": 1e-5, "sliding_window": 4096)"),
         with_norms(converted("exaone4", 1e6f).u32("attention.sliding_window", 4096), {128}, {128}),
         Differs::no, 3},
        {fields_of("afmoe", 1e4, R"("rms_norm_eps": 1e-5, "sliding_window": 2048,
            "num_hidden_layers": 8)"),
         with_norms(converted("afmoe", 1e4f).u32("attention.sliding_window", 2048), {128}, {128}),
         Differs::no, 0},
        {fields_of("hunyuan_v1_dense", 1e4, R"("rms_norm_eps": 1e-5)"),
         with_norms(converted("hunyuan-dense", 1e4f), {128}, {128})},
        {fields_of("hunyuan_vl", 1e4, R"("rms_norm_eps": 1e-5)"),
         with_norms(converted("hunyuan_vl", 1e4f), {128}, {128})},
        {fields_of("olmo2", 5e5, R"("rms_norm_eps": 1e-5)"),
         with_norms(converted("olmo2", 5e5f), {1024}, {256})},
        {fields_of("gpt_neox", 1e4, R"("partial_rotary_factor": 0.25)"),
         converted("gptneox", 1e4f, 32)},
        {fields_of("glm4", 1e4, R"("partial_rotary_factor": 0.5)"), converted("glm4", 1e4f, 64)},
        {fields_of("qwen2_vl", 1e6, R"("rope_scaling": {"type": "mrope",
            "mrope_section": [16, 24, 24]})"),
         converted("qwen2vl", 1e6f).i32_list("rope.dimension_sections", {16, 24, 24, 0})},
        {fields_of("qwen3_vl", 5e6,
                   R"("rms_norm_eps": 1e-5, "rope_scaling": {"rope_type": "default",
            "mrope_section": [24, 20, 20], "mrope_interleaved": true})"),
         with_norms(converted("qwen3vl", 5e6f).i32_list("rope.dimension_sections", {24, 20, 20, 0}),
                    {128}, {128})},
        {fields_of("ministral3", 1e6, R"("rope_scaling": {"rope_type": "yarn", "factor": 16.0,
            "original_max_position_embeddings": 16384, "mscale": 1.0, "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.5})"),
         yarn(converted("mistral3", 1e6f), 16, 16384)
             .f32("rope.scaling.yarn_log_multiplier", 1)
             .f32("attention.temperature_scale", 0.5f),
         Differs::pairing},
        {fields_of("mistral4", 1e4, R"("qk_nope_head_dim": 64, "qk_rope_head_dim": 64,
            "kv_lora_rank": 256, "rope_scaling": {"rope_type": "yarn", "factor": 128.0,
            "original_max_position_embeddings": 8192, "mscale": 1.0, "mscale_all_dim": 1.0,
            "llama_4_scaling_beta": 0.5})"),
         yarn(latent("mistral4", 1e4f, 128, 256), 128, 8192)
             .f32("rope.scaling.yarn_log_multiplier", 0.1f)
             .f32("attention.temperature_scale", 0.5f)},
        {fields_of("deepseek_v2", 1e4, R"("qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "kv_lora_rank": 512, "rope_scaling": {"type": "yarn", "factor": 40,
            "original_max_position_embeddings": 4096, "mscale": 0.707, "mscale_all_dim": 0.707})"),
         yarn(latent("deepseek2", 1e4f, 192, 512), 40, 4096)
             .f32("rope.scaling.yarn_log_multiplier", 0.0707f)},
        {fields_of("gpt_oss", 150000, R"("rope_scaling": {"rope_type": "yarn", "factor": 32.0,
            "truncate": false, "original_max_position_embeddings": 4096})"),
         yarn(converted("gpt-oss", 150000), 32, 4096), Differs::ramp, 1},
    };
    for (const int layer : {0, 5})  // a sliding layer, a full one
        all.push_back({fields_of("gemma3_text", 1e6, R"("rms_norm_eps": 1e-5,
                           "num_hidden_layers": 8, "sliding_window": 1024,
                           "rope_local_base_freq": 10000.0,
                           "rope_scaling": {"rope_type": "linear", "factor": 8.0})"),
                       converted("gemma3", 1e6f)
                           .f32("rope.freq_base_swa", 1e4f)
                           .u32("attention.sliding_window", 1024)
                           .text("rope.scaling.type", "linear")
                           .f32("rope.scaling.factor", 8),
                       Differs::no, layer});
    for (const int layer : {0, 3})  // a sliding layer, and one without RoPE
        all.push_back({fields_of("cohere2", 5e4, R"("num_hidden_layers": 8)"),
                       converted("cohere2", 5e4f), Differs::no, layer});
    const std::vector<float> near = {1, 1, 1.5f, 2}, far = {1, 2, 8, 32};
    for (const std::uint64_t seq_len : {std::uint64_t{4096}, std::uint64_t{100000}})
        all.push_back({R"("model_type": "phi3", "rope_theta": 10000.0, "head_dim": 8,
                          "original_max_position_embeddings": 4096, "rope_scaling":
                          {"type": "longrope", "short_factor": [1, 1, 1.5, 2],
                           "long_factor": [1, 2, 8, 32]})",
                       converted("phi3", 1e4f, 8, 8)
                           .text("rope.scaling.type", "longrope")
                           .u32("rope.scaling.original_context_length", 4096)
                           .f32("rope.scaling.attn_factor",
                                float(std::sqrt(1 + std::log(32.0) / std::log(4096.0))))
                           .tensor("rope_factors_long.weight", far)
                           .tensor("rope_factors_short.weight", near),
                       Differs::no, -1, seq_len});
    // Only the pairing.
    const struct {
        const char *type, *architecture;
    } permuted[] = {{"arcee", "arcee"},       {"arctic", "arctic"},   {"chameleon", "chameleon"},
                    {"baichuan", "baichuan"}, {"granite", "granite"}, {"internlm2", "internlm2"},
                    {"mistral", "llama"},     {"minicpm", "minicpm"}, {"olmo", "olmo"},
                    {"xverse", "xverse"}},
      kept[] = {{"bitnet", "bitnet"},         {"chatglm", "chatglm"},
                {"cohere", "command-r"},      {"dbrx", "dbrx"},
                {"dots1", "dots1"},           {"ernie4_5", "ernie4_5"},
                {"exaone", "exaone"},         {"falcon", "falcon"},
                {"gemma2", "gemma2"},         {"gemma", "gemma"},
                {"glm4_moe", "glm4moe"},      {"grok-1", "grok"},
                {"jais2", "jais2"},           {"lfm2", "lfm2"},
                {"minimax_m2", "minimax-m2"}, {"nemotron", "nemotron"},
                {"olmoe", "olmoe"},           {"openelm", "openelm"},
                {"orion", "orion"},           {"phi", "phi2"},
                {"phimoe", "phimoe"},         {"plamo2", "plamo2"},
                {"plamo", "plamo"},           {"qwen2_moe", "qwen2moe"},
                {"qwen3_moe", "qwen3moe"},    {"qwen", "qwen"},
                {"seed_oss", "seed_oss"},     {"stablelm", "stablelm"},
                {"starcoder2", "starcoder2"}};
    const std::string whole = R"("partial_rotary_factor": 1.0)";
    for (const auto& one : permuted)
        all.push_back(
            {fields_of(one.type, 1e4, whole), converted(one.architecture, 1e4f), Differs::pairing});
    for (const auto& one : kept)
        all.push_back({fields_of(one.type, 1e4, whole), converted(one.architecture, 1e4f)});
    return all;
}

/// The numbers of a GGUF file are f32.
bool close(double of_config, double of_file) {
    return std::abs(of_config - of_file) <= 0x1p-21 * of_config;
}

bool close(const std::vector<double>& of_config, const std::vector<double>& of_file) {
    return std::equal(of_config.begin(), of_config.end(), of_file.begin(), of_file.end(),
                      [](double a, double b) { return close(a, b); });
}

void check_same(const Norm& of_config, const Norm& of_file) {
    CHECK(of_config.kind == of_file.kind);
    CHECK(of_config.span == of_file.span);
    CHECK(of_config.place == of_file.place);
    CHECK(of_config.eps == of_file.eps);
    CHECK(of_config.weight == of_file.weight);
    CHECK(of_config.bias == of_file.bias);
}

}  // namespace

TEST_CASE("readers: config.json and GGUF of one model say the same") {
    for (const Model& model : models()) {
        CAPTURE(model.config);
        const std::string head_dim = model.config.find("\"head_dim\"") == std::string::npos &&
                                             model.config.find("qk_rope") == std::string::npos
                                         ? R"("head_dim": 128, )"
                                         : "";
        const std::string json =
            "{\"hidden_size\": 1024, \"num_attention_heads\": 8, "
            "\"num_key_value_heads\": 2, "
            "\"max_position_embeddings\": 131072, " +
            head_dim + model.config + "}";
        ModelQuery query;
        query.by_layer = model.layer >= 0;
        if (query.by_layer) query.layer = std::uint32_t(model.layer);
        query.seq_len = model.seq_len;
        const Result<RopeParams> config = from_hf_config(json, query);
        REQUIRE_MESSAGE(config, config.status.what);
        const RopeParams file = rotation_of(model.file, query);
        CHECK(!config->no_rope == !file.no_rope);
        CHECK(config->head_dim == file.head_dim);
        CHECK(config->rotary_dim == file.rotary_dim);
        CHECK(config->q_rotary_offset == file.q_rotary_offset);
        CHECK(config->k_rotary_offset == file.k_rotary_offset);
        CHECK(close(config->attention_factor, file.attention_factor));
        CHECK(close(config->softmax_scale, file.softmax_scale));
        if (!config->no_rope && model.differs == Differs::ramp) {
            CHECK_FALSE(close(config->inv_freq, file.inv_freq));
            CHECK(warns(file, "llama.cpp rounds YaRN config.json truncate"));
        } else {
            CHECK(close(config->inv_freq, file.inv_freq));
        }
        if (model.differs == Differs::pairing) {
            CHECK(config->pairing == VKROPE_HALF_SPLIT);
            CHECK(file.pairing == VKROPE_INTERLEAVED);
        } else {
            CHECK(config->pairing == file.pairing);
        }
        CHECK(std::equal(std::begin(config->sections.pairs), std::end(config->sections.pairs),
                         std::begin(file.sections.pairs)));
        CHECK(config->sections.order == file.sections.order);
        CHECK(config->ops.query_scale.kind == file.ops.query_scale.kind);
        CHECK(config->ops.query_scale.length == file.ops.query_scale.length);
        CHECK(close(config->ops.query_scale.beta, file.ops.query_scale.beta));
        if (file.ops.norms_known) {  // it has tensors
            CHECK(config->ops.norms_known);
            check_same(config->ops.tensor[Q].norm, file.ops.tensor[Q].norm);
            check_same(config->ops.tensor[K].norm, file.ops.tensor[K].norm);
        }
    }
}

TEST_CASE("readers: where sources differ on the softmax, both readers say so") {
    const Model* mistral4 = nullptr;
    const std::vector<Model> all = models();
    for (const Model& model : all)
        if (model.config.find("mistral4") != std::string::npos) mistral4 = &model;
    REQUIRE(mistral4 != nullptr);
    const auto config = from_hf_config("{\"max_position_embeddings\": 131072, " + mistral4->config +
                                       "}");
    REQUIRE_MESSAGE(config, config.status.what);
    CHECK(warns(config.value, "softmax transformers llama.cpp SGLang"));
    CHECK(warns(rotation_of(mistral4->file), "softmax transformers llama.cpp SGLang"));
    CHECK(config->softmax_scale == doctest::Approx(std::pow(0.1 * std::log(128.0) + 1, 2)));
}
