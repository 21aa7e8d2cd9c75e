// SPDX-License-Identifier: MIT
// Times one dispatch from the projection to the cache, and the passes that it replaces: norms of Q
// and K, the rotation, Hadamard transforms, and the store of K and V.
#include <memory>

#include "cli/words.hpp"
#include "layer_with_ops.hpp"
#include "meaning.hpp"
#include "rows.hpp"

namespace vkrope::bench {
namespace {

using tools::check;
using tools::ExitCode;
using tools::fail;
using tools::Subject;
using tools::value_of;

constexpr OpsShape ops_shapes[] = {
    {"prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128},
    {"long_qwen3_8b", "Qwen3 8B", 8192, 32, 8, 128},
    {"decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128},
    {"prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256},
    {"decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256},
    {"prefill_olmo2_7b", "OLMo 2 7B", 512, 32, 32, 128, VKROPE_NORM_RMS, VKROPE_NORM_SPAN_TOKEN},
    {"decode_olmo2_7b", "OLMo 2 7B", 1, 32, 32, 128, VKROPE_NORM_RMS, VKROPE_NORM_SPAN_TOKEN},
    {"image_flux", "Flux, a quarter of 1024 x 1024", 1152, 24, 24, 128, VKROPE_NORM_RMS,
     VKROPE_NORM_SPAN_HEAD, VKROPE_INTERLEAVED}};
constexpr OpsShape cache_shapes[] = {
    {"prefill_llama3_1_8b", "Llama 3.1 8B", 512, 32, 8, 128, VKROPE_NORM_NONE},
    {"long_llama3_1_8b", "Llama 3.1 8B", 8192, 32, 8, 128, VKROPE_NORM_NONE},
    {"decode_llama3_1_8b", "Llama 3.1 8B", 1, 32, 8, 128, VKROPE_NORM_NONE},
    {"prefill_qwen3_8b", "Qwen3 8B", 512, 32, 8, 128},
    {"decode_qwen3_8b", "Qwen3 8B", 1, 32, 8, 128},
    {"prefill_gemma3_4b", "Gemma 3 4B", 512, 8, 4, 256},
    {"decode_gemma3_4b", "Gemma 3 4B", 1, 8, 4, 256}};

/// The error bound of a rotation with float angles, relative to the largest value. It is the bound
/// of the rivals.
constexpr double largest_distance = 1.0 / 16;

using Record = Status (LayerWithOps::*)(VkCommandBuffer);

double timed(Device& device, LayerWithOps& layer, Record way) {
    return value_of(
        time_ns(device, [&](VkCommandBuffer commands) { return (layer.*way)(commands); }),
        Subject::device);
}

/// Checks all variants. In f32 nothing is rounded between the passes, so they must give the same
/// bits as the one dispatch.
void check_ways(Device& device, LayerWithOps& layer, Element element) {
    timed(device, layer, &LayerWithOps::record_passes);
    const std::vector<std::byte> passes = layer.results();
    timed(device, layer, &LayerWithOps::record_plain);
    if (layer.results() == passes)
        fail(ExitCode::verification_failed, "the other steps changed no element");
    timed(device, layer, &LayerWithOps::record_fused);
    if (element == VKROPE_F32 && layer.results() != passes)
        fail(ExitCode::verification_failed,
             "the one dispatch and the passes that it replaces have other bits");
    if (layer.has_ggml_way()) {
        timed(device, layer, &LayerWithOps::record_ggml);
        if (layer.distance(passes) > largest_distance)
            fail(ExitCode::verification_failed,
                 "ggml's passes and the passes have different results");
    }
    if (!layer.transforms()) return;
    timed(device, layer, &LayerWithOps::record_with_products);
    if (!layer.nearly(passes))
        fail(ExitCode::verification_failed,
             "the matrix products differ from the Hadamard transforms");
}

}  // namespace

void Bench::register_ops() {
    const auto row = [this](const std::string& name, const OpsShape& shape, const OpsTypes& types) {
        add(name, [=, this](benchmark::State& state) {
            if (set_up_ != name) {
                row_ = {};
                set_up_ = name;
                ops_.reset();
            }
            if (!ops_) {
                const auto made = std::make_shared<LayerWithOps>(device_, shape, types);
                check_ways(device_, *made, types.element);
                ops_ = made;
            }
            time_ops(state, ops_.get(), shape.model);
        });
    };
    // A GPU is busy only with many tokens, for which a software device would take minutes.
    const bool software = device_.info().type == VK_PHYSICAL_DEVICE_TYPE_CPU;
    const auto fits_device = [&](const OpsShape& shape) {
        return !software || shape.tokens <= 4096;
    };
    for (const OpsShape& shape : ops_shapes) {
        if (!fits_device(shape)) continue;
        for (const auto& [word, element] : tools::elements)
            row(fmt::format("ops/{}/{}", shape.name, word), shape, {element, element});
    }
    for (const OpsShape& shape : cache_shapes) {
        if (!fits_device(shape)) continue;
        for (const auto& [word, cache] : tools::stored_elements) {
            if (is_quantised(cache))
                row(fmt::format("cache/{}/{}", shape.name, word), shape, {VKROPE_F32, cache});
        }
    }
}

// Dispatch and passes alternate, so that other load on the machine affects all of them.
void Bench::time_ops(benchmark::State& state, void* of, const char* model) {
    auto& layer = *static_cast<LayerWithOps*>(of);
    std::vector<double> fused, plain, passes, with_products, of_ggml;
    roof().aim(layer.copies());
    check(roof().settle(true), Subject::device);
    for (auto _ : state) {
        check(roof().round(), Subject::device);
        if (layer.has_ggml_way())
            of_ggml.push_back(timed(device_, layer, &LayerWithOps::record_ggml));
        if (layer.transforms())
            with_products.push_back(timed(device_, layer, &LayerWithOps::record_with_products));
        passes.push_back(timed(device_, layer, &LayerWithOps::record_passes));
        plain.push_back(timed(device_, layer, &LayerWithOps::record_plain));
        fused.push_back(timed(device_, layer, &LayerWithOps::record_fused));
        state.SetIterationTime(fused.back() * 1e-9);
    }
    state.counters["bytes_per_second"] = layer.bytes() / median(fused) * 1e9;
    state.counters["roof"] = roof().best_ns() / median(fused);
    state.counters["passes_over_fused"] = median(passes) / median(fused);
    if (layer.has_ggml_way()) state.counters["ggml_over_fused"] = median(of_ggml) / median(fused);
    if (layer.transforms())
        state.counters["products_over_fused"] = median(with_products) / median(fused);
    state.counters["bytes_of_passes"] = layer.bytes_of_passes() / layer.bytes();
    state.counters["passes"] = double(layer.passes());
    state.counters["fused_over_plain"] = median(fused) / median(plain);
    state.SetLabel(model);
}

}  // namespace vkrope::bench
