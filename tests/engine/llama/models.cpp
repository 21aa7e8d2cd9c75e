// SPDX-License-Identifier: MIT
#include <ggml-backend.h>

#include <cmath>
#include <random>
#include <sstream>

#include "harness.hpp"

namespace engine {

namespace {

// Hyperparameters: key=value, after the architectures for which they are exceptions, if any. A
// value with a point is a float, a list is in brackets. What an architecture does not have is not
// read.
constexpr char hyperparameters[] = R"(
vocab_size=256 context_length=4096 embedding_length=256 features_length=256 block_count=2
feed_forward_length=256 leading_dense_block_count=1 full_attention_interval=2 logit_scale=1.0
use_parallel_residual=true residual_scale=1.0 embedding_scale=1.0 attention.head_count=4
attention.head_count_kv=2 attention.layer_norm_epsilon=0.00001 attention.clamp_kqv=1.0
attention.layer_norm_rms_epsilon=0.00001 attention.group_norm_epsilon=0.00001
attention.group_norm_groups=8 attention.sliding_window=512 attention.sliding_window_pattern=2
attention.max_alibi_bias=8.0 attention.q_lora_rank=128 attention.kv_lora_rank=512
attention.indexer.head_count=1 attention.indexer.key_length=64 attention.indexer.top_k=8
rope.dimension_sections=[8,12,12,0] expert_count=2 expert_used_count=1 expert_shared_count=1
expert_feed_forward_length=256 expert_shared_feed_forward_length=256 expert_gating_func=2
expert_group_scale=1.0 experts_per_group=1 interleave_moe_layer_step=2 moe_latent_size=64
swiglu_clamp_exp=7.0 ssm.inner_size=512 ssm.conv_kernel=4 ssm.state_size=128
ssm.time_step_rank=4 ssm.group_count=2 shortconv.l_cache=3 xielu.alpha_n=1.0 xielu.alpha_p=1.0
xielu.beta=1.0 xielu.eps=0.0000001
llama: expert_count=0 expert_used_count=0
llama4,smollm3: block_count=4
gemma4: block_count=5 attention.sliding_window_pattern=[1,1,1,1,0] attention.shared_kv_layers=0
gemma4: embedding_length_per_layer_input=128 attention.key_length_swa=64
gemma4: attention.value_length_swa=64 rope.freq_base_swa=10000.0
gemma3n: block_count=22
olmoe,dots1: attention.head_count_kv=4
plamo2: ssm.group_count=0
granite_swa,maion-coder,maple,mimo2,step35,spark2_5: attention.sliding_window_pattern=[0,1]
granitehybrid,jamba,lfm2,lfm2moe,plamo2,nemotron_h,nemotron_h_moe: block_count=3
granitehybrid,jamba,lfm2,lfm2moe,plamo2,nemotron_h,nemotron_h_moe: attention.head_count=[4,0,4]
granitehybrid,jamba,lfm2,lfm2moe,plamo2,nemotron_h,nemotron_h_moe: attention.head_count_kv=[2,0,0]
nemotron_h,nemotron_h_moe: feed_forward_length=[0,0,256]
deepseek2,deepseek32,glm-dsa,mistral4: attention.head_count_kv=1 attention.key_length=576
deepseek2,deepseek32,glm-dsa,mistral4: attention.value_length=512 rope.dimension_count=64
deepseek2,deepseek32,glm-dsa,mistral4: attention.key_length_mla=192 attention.value_length_mla=128
)";

void set(gguf_context* file, const char* key, const std::string& value) {
    if (value[0] == '[') {
        std::vector<std::uint32_t> numbers;
        std::istringstream list(value.substr(1));
        for (std::uint32_t number; list >> number; list.ignore()) numbers.push_back(number);
        gguf_set_arr_data(file, key, GGUF_TYPE_UINT32, numbers.data(), numbers.size());
    } else if (value == "true")
        gguf_set_val_bool(file, key, true);
    else if (value.find('.') != value.npos)
        gguf_set_val_f32(file, key, std::stof(value));
    else
        gguf_set_val_u32(file, key, std::uint32_t(std::stoul(value)));
}

// Weights of norms, scales and divisors of frequencies are near 1; others keep the size of rows.
void fill(ggml_tensor* tensor, void*) {
    const std::string name = tensor->name;
    std::mt19937 random(std::uint32_t(std::hash<std::string>()(name)));
    const bool near_one = name.find("norm") != name.npos || name.find("rope_f") != name.npos ||
                          name.find(".scale") != name.npos;
    std::normal_distribution<float> bell(near_one ? 1.f : 0.f,
                                         near_one ? 0.1f : 1 / std::sqrt(float(tensor->ne[0])));
    std::vector<float> numbers(std::size_t(ggml_nelements(tensor)));
    for (float& number : numbers) number = bell(random);
    Bytes bytes(ggml_nbytes(tensor));
    ggml_quantize_chunk(tensor->type, numbers.data(), bytes.data(), 0, ggml_nrows(tensor),
                        tensor->ne[0], nullptr);
    ggml_backend_tensor_set(tensor, bytes.data(), 0, bytes.size());
}

}  // namespace

llama_model* random_model(const Setup& setup) {
    const std::string& architecture = setup.architecture;
    gguf_context* file = gguf_init_empty();
    gguf_set_val_str(file, "general.architecture", architecture.c_str());
    gguf_set_val_str(file, "tokenizer.ggml.model", "no_vocab");
    std::istringstream lines(hyperparameters);
    for (std::string line; std::getline(lines, line);) {
        const std::size_t colon = line.find(':');
        const std::string of = "," + line.substr(0, colon) + ",";
        if (colon != line.npos && of.find("," + architecture + ",") == of.npos) continue;
        std::istringstream words(line.substr(colon + 1));  // npos + 1 is 0
        for (std::string word; words >> word;) {
            const std::string key = word.substr(0, word.find('='));
            const bool bare = key.rfind("xielu", 0) == 0;
            set(file, (bare ? key : architecture + "." + key).c_str(),
                word.substr(word.find('=') + 1));
        }
    }
    if (setup.yarn) {
        const std::string scaling = architecture + ".rope.scaling.";
        gguf_set_val_str(file, (scaling + "type").c_str(), "yarn");
        gguf_set_val_f32(file, (scaling + "factor").c_str(), 4);
        gguf_set_val_u32(file, (scaling + "original_context_length").c_str(), 1024);
    }
    llama_model_params parameters = llama_model_default_params();
    ggml_backend_dev_t devices[] = {ggml_backend_dev_by_name(setup.device.c_str()), nullptr};
    parameters.devices = devices;
    return llama_model_init_from_user(file, fill, nullptr, parameters);
}

}  // namespace engine
