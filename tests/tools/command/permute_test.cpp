// SPDX-License-Identifier: MIT
// What permuted weights are for: with the other pairing they give the attention scores that the
// original weights gave with their own. And the names by which tensors are found.
#include "permute/permute.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "permute/names.hpp"
#include "reference/oracle.hpp"
#include "shell/failure.hpp"

using namespace vkrope;
using namespace vkrope::tools;

namespace {

const std::string scratch = VKROPE_TEST_SCRATCH;

using Shape = std::vector<std::uint64_t>;
using Values = std::vector<float>;

/// Tensors of random numbers in a file, and their values by name.
class Checkpoint {
   public:
    void add(const std::string& name, const Shape& shape) {
        std::uint64_t count = 1;
        for (const std::uint64_t dimension : shape) {
            count *= dimension;
        }
        Values values(count);
        for (float& value : values) {
            value = std::normal_distribution<float>()(random_);
        }
        header_[name] = {{"dtype", "F32"},
                         {"shape", shape},
                         {"data_offsets", {data_.size(), data_.size() + count * sizeof(float)}}};
        data_.append(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
    }

    void write(const std::string& path) const {
        const std::string json = header_.dump();
        std::ofstream file(path, std::ios::binary);
        for (unsigned byte = 0; byte < 8; ++byte) {
            file.put(static_cast<char>(std::uint64_t{json.size()} >> (8 * byte) & 0xff));
        }
        file << json << data_;
    }

   private:
    std::mt19937 random_{1};
    nlohmann::ordered_json header_;
    std::string data_;
};

std::map<std::string, Values> read(const std::string& path) {
    const safetensors::File file(path);
    std::map<std::string, Values> tensors;
    for (const safetensors::Tensor& tensor : file.header().tensors) {
        Values values((tensor.end - tensor.begin) / sizeof(float));
        file.read(file.header().data_offset + tensor.begin,
                  std::as_writable_bytes(std::span(values)));
        tensors[tensor.name] = values;
    }
    return tensors;
}

/// Runs the steps of the command, and returns the tensors that it changed.
PermutePlan permute(const std::string& config, const PermuteOptions& options) {
    std::ofstream(options.model) << config;
    const ModelFile model(options.model);
    const safetensors::File file(options.in);
    PermutePlan plan = plan_permutation(options, model, file.header());
    std::vector<OutputFile> outputs;
    outputs.emplace_back("--out", options.out, file.bytes());
    write_permuted(file, plan, options.to, outputs.front());
    OutputFile::publish(outputs);
    return plan;
}

PermuteOptions options_to(Pairing to) {
    PermuteOptions options;
    options.model = scratch + "/permute.json";
    options.in = scratch + "/before.safetensors";
    options.out = scratch + "/after.safetensors";
    options.to = to;
    return options;
}

constexpr std::size_t hidden = 12, tokens = 5;

/// Heads of Q or of K: rows of a projection; `pairs` pairs of them, from `offset` on, are rotated.
struct Heads {
    std::string weight, bias, norm;  // names; empty: there is none
    std::size_t heads, channels, offset, pairs;
    std::size_t norm_heads = 1;  // 1: all heads share the weight
};

/// The rotated channels of all heads, [tokens, heads, channels], by the definition in exact
/// angles.
std::vector<double> rotated(const std::map<std::string, Values>& tensors, const Heads& of,
                            Pairing pairing) {
    std::vector<double> all;
    for (std::size_t token = 0; token < tokens; ++token) {
        for (std::size_t head = 0; head < of.heads; ++head) {
            std::vector<double> row(of.channels);
            double squares = 0;
            for (std::size_t channel = 0; channel < of.channels; ++channel) {
                const std::size_t at = head * of.channels + channel;
                double sum = of.bias.empty() ? 0 : tensors.at(of.bias)[at];
                for (std::size_t i = 0; i < hidden; ++i) {
                    sum += tensors.at(of.weight)[at * hidden + i] *
                           std::sin(double(token * hidden + i));
                }
                row[channel] = sum;
                squares += sum * sum;
            }
            for (std::size_t channel = 0; channel < of.channels && !of.norm.empty(); ++channel) {
                row[channel] *= tensors.at(of.norm)[head % of.norm_heads * of.channels + channel] /
                                std::sqrt(squares / double(of.channels) + 1e-6);
            }
            for (std::size_t pair = 0; pair < of.pairs; ++pair) {
                const bool interleaved = pairing == Pairing::interleaved;
                double& x = row[of.offset + (interleaved ? 2 * pair : pair)];
                double& y = row[of.offset + (interleaved ? 2 * pair + 1 : of.pairs + pair)];
                const auto turn = reference::exact_cos_sin(
                    std::int64_t(token), std::pow(10000.0, -double(pair) / double(of.pairs)));
                const double turned = double(x * turn.cos - y * turn.sin);
                y = double(x * turn.sin + y * turn.cos);
                x = turned;
            }
            all.insert(all.end(), row.begin(), row.end());
        }
    }
    return all;
}

/// Products of each rotated query with each rotated key of its group, and of the rest of the row
/// where both have it.
std::vector<double> scores(const std::map<std::string, Values>& tensors, const Heads& q,
                           const Heads& k, Pairing pairing) {
    const std::vector<double> queries = rotated(tensors, q, pairing),
                              keys = rotated(tensors, k, pairing);
    const bool whole = q.channels == k.channels;
    const std::size_t count = whole ? q.channels : 2 * q.pairs;
    std::vector<double> all;
    for (std::size_t query = 0; query < tokens * q.heads; ++query) {
        for (std::size_t token = 0; token < tokens; ++token) {
            const std::size_t key = token * k.heads + query % q.heads / (q.heads / k.heads);
            double sum = 0;
            for (std::size_t i = 0; i < count; ++i) {
                sum += queries[query * q.channels + (whole ? 0 : q.offset) + i] *
                       keys[key * k.channels + (whole ? 0 : k.offset) + i];
            }
            all.push_back(sum);
        }
    }
    return all;
}

double difference(const std::vector<double>& one, const std::vector<double>& other) {
    REQUIRE(one.size() == other.size());
    double most = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
        most = std::max(most, std::fabs(one[i] - other[i]));
    }
    return most;
}

Pairing other_than(Pairing pairing) {
    return pairing == Pairing::interleaved ? Pairing::half_split : Pairing::interleaved;
}

/// Permutes before.safetensors and compares the scores of the layer, and the file that is permuted
/// back.
void check_scores(const std::string& config, Pairing from, const Heads& q, const Heads& k,
                  std::size_t changed) {
    const Pairing to = other_than(from);
    PermuteOptions options = options_to(to);
    const PermutePlan plan = permute(config, options);
    CHECK(plan.from == from);
    CHECK(plan.permuted.size() == changed);
    const auto before = read(options.in), after = read(options.out);
    const std::vector<double> right = scores(before, q, k, from);
    // Only the order of the sums differs: sums of less than 100 products, each below 100.
    CHECK(difference(right, scores(after, q, k, to)) < 1e-10);
    CHECK(difference(right, scores(before, q, k, to)) > 0.1);
    CHECK(difference(right, scores(after, q, k, from)) > 0.1);
    options.in = options.out;
    options.out = scratch + "/back.safetensors";
    options.to = from;
    options.pairing = to;
    permute(config, options);
    CHECK(read(options.out) == before);
}

const std::string layer = "model.layers.0.self_attn.";

TEST_CASE("scores of a layer with partial rotation, biases and norms stay what they are") {
    Checkpoint checkpoint;
    checkpoint.add(layer + "q_proj.weight", {64, hidden});
    checkpoint.add(layer + "v_proj.weight", {32, hidden});
    checkpoint.add(layer + "q_proj.bias", {64});
    checkpoint.add(layer + "k_norm.weight", {2, 16});
    checkpoint.add(layer + "k_proj.weight", {32, hidden});
    checkpoint.add(layer + "k_proj.bias", {32});
    checkpoint.add(layer + "q_norm.weight", {16});
    checkpoint.write(scratch + "/before.safetensors");
    check_scores(
        R"({"model_type": "stablelm", "hidden_size": 64, "num_attention_heads": 4,
        "num_key_value_heads": 2, "partial_rotary_factor": 0.5, "rope_theta": 10000.0,
        "max_position_embeddings": 2048})",
        Pairing::half_split,
        {layer + "q_proj.weight", layer + "q_proj.bias", layer + "q_norm.weight", 4, 16, 0, 4},
        {layer + "k_proj.weight", layer + "k_proj.bias", layer + "k_norm.weight", 2, 16, 0, 4, 2},
        6);
    CHECK(read(scratch + "/before.safetensors").at(layer + "v_proj.weight") ==
          read(scratch + "/after.safetensors").at(layer + "v_proj.weight"));
}

TEST_CASE("scores of latent attention stay what they are, and so do the other rows") {
    Checkpoint checkpoint;
    checkpoint.add(layer + "q_b_proj.weight", {4 * (6 + 8), hidden});
    checkpoint.add(layer + "kv_a_proj_with_mqa.weight", {20 + 8, hidden});
    checkpoint.add(layer + "kv_a_layernorm.weight", {20});
    checkpoint.write(scratch + "/before.safetensors");
    check_scores(R"({"model_type": "deepseek_v3", "hidden_size": 12, "num_attention_heads": 4,
        "num_key_value_heads": 4, "qk_nope_head_dim": 6, "qk_rope_head_dim": 8,
        "kv_lora_rank": 20, "rope_theta": 10000.0, "max_position_embeddings": 2048})",
                 Pairing::interleaved, {layer + "q_b_proj.weight", "", "", 4, 14, 6, 4},
                 {layer + "kv_a_proj_with_mqa.weight", "", "", 1, 28, 20, 4}, 2);
    const auto before = read(scratch + "/before.safetensors"),
               after = read(scratch + "/after.safetensors");
    const std::string latent = layer + "kv_a_proj_with_mqa.weight";
    CHECK(std::equal(before.at(latent).begin(), before.at(latent).begin() + 20 * hidden,
                     after.at(latent).begin()));
}

TEST_CASE("a channel goes where the other pairing looks for it") {
    PermutedTensor tensor;
    tensor.rotary_offset = 2;
    tensor.rotary_dim = 6;
    tensor.windows = {{0, 6}};
    const std::uint64_t to_interleaved[] = {0, 1, 2, 5, 3, 6, 4, 7, 8, 9};
    const std::uint64_t to_half_split[] = {0, 1, 2, 4, 6, 3, 5, 7, 8, 9};
    for (std::uint64_t channel = 0; channel < 10; ++channel) {
        CHECK(source_channel(tensor, Pairing::interleaved, channel) == to_interleaved[channel]);
        CHECK(source_channel(tensor, Pairing::half_split, channel) == to_half_split[channel]);
    }
    tensor.rotary_dim = 8;
    tensor.windows = {{0, 4}, {5, 4}};
    const std::uint64_t in_windows[] = {0, 1, 2, 4, 3, 5, 6, 7, 9, 8, 10, 11};
    for (std::uint64_t channel = 0; channel < 12; ++channel) {
        CHECK(source_channel(tensor, Pairing::interleaved, channel) == in_windows[channel]);
        CHECK(source_channel(tensor, Pairing::half_split, channel) == in_windows[channel]);
    }
}

TEST_CASE("names") {
    const auto kind = [](const char* name) { return tensor_name(name).kind; };
    for (const char* name :
         {"model.layers.11.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.bias",
          "layers.3.attention.wq.weight", "transformer.h.5.attn.k_proj.weight",
          "model.language_model.layers.2.self_attn.k_norm.weight",
          "model.text_model.layers.2.self_attn.q_proj.weight",
          "language_model.model.layers.2.self_attn.q_proj.weight_scale",
          "model.layers.7.self_attn.q_layernorm.bias",
          "base_model.model.model.layers.1.self_attn.q_proj.lora_B.weight"}) {
        CAPTURE(name);
        CHECK(kind(name) == NameKind::follows);
    }
    for (const char* name : {"model.embed_tokens.weight", "model.layers.0.self_attn.v_proj.weight",
                             "model.layers.0.self_attn.o_proj.weight", "lm_head.weight", "", ".",
                             "q_proj_weight", "model.layers.0.self_attn.kv_b_proj.weight",
                             "model.layers.0.self_attn.q_a_proj.weight"}) {
        CAPTURE(name);
        CHECK(kind(name) == NameKind::other);
    }
    for (const char* name :
         {"vision_tower.vision_model.encoder.layers.0.self_attn.q_proj.weight",
          "visual.blocks.0.attn.qkv.weight", "model.layers.0.cross_attn.q_proj.weight",
          "model.layers.0.self_attn.indexer.wq_b.weight", "model.layers.0.q_proj.weight",
          "model.layers.x.self_attn.q_proj.weight", "q_proj.weight", "q_proj",
          "model.layers.65536.self_attn.q_proj.weight"}) {
        CAPTURE(name);
        CHECK(kind(name) == NameKind::elsewhere);
        CHECK(!tensor_name(name).reason.empty());
    }
    for (const char* name :
         {"model.layers.0.self_attn.qkv_proj.weight", "model.layers.0.self_attn.kv_proj.weight",
          "gpt_neox.layers.0.attention.query_key_value.bias",
          "model.layers.0.self_attn.q_proj.qweight", "model.layers.0.self_attn.q_proj",
          "model.layers.0.self_attn.k_proj.weight_scale_inv",
          "model.layers.0.self_attn.q_norm.norms.0.weight"}) {
        CAPTURE(name);
        CHECK(kind(name) == NameKind::unsupported);
    }
    CHECK(kind("model.layers.0.self_attn.q_proj.lora_A.weight") == NameKind::shared);
    CHECK(tensor_name("model.layers.12.self_attn.k_proj.weight").key);
    CHECK(tensor_name("model.layers.12.self_attn.k_proj.weight").layer == 12u);
    CHECK(tensor_name("layers.0.attention.wk.weight").of_meta);
    CHECK(layer_in("a.b.7.c.8") == 7u);
    CHECK(!layer_in("a.b7.c"));
}

TEST_CASE("patterns") {
    CHECK(matches("a", "a"));
    CHECK(matches("*", ""));
    CHECK(matches("*.q.weight", "x.1.q.weight"));
    CHECK(matches("a*b*c", "a.b.b.c"));
    CHECK(matches("a**", "a"));
    CHECK(!matches("a", "ab"));
    CHECK(!matches("", "a"));
    CHECK(!matches("*.q.weight", "x.1.q.weights"));
    CHECK(!matches("a*b*c", "a.c.b"));
    // No pattern takes long.
    std::string stars;
    for (int i = 0; i < 1000; ++i) {
        stars += "a*";
    }
    CHECK(!matches(stars + "b", std::string(60000, 'a')));
}

}  // namespace
