// SPDX-License-Identifier: MIT
// Writes the modules of kernels of every kind to a folder, as create() passes them to a driver
// where integer code converts f16:
//
//     vkrope_modules some|every FOLDER
//
// With `some` the program writes each angle source with each pairing, each step and each store
// once, with the element types in turn.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {
namespace {

struct NamedKernel {
    std::string name;
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
};

// Returns a kernel for Q and K of 128 channels of this type.
KernelInfo q_and_k(Element element, AngleSource angles) {
    KernelInfo info = kernel_info(angles);
    for (const TensorIndex n : {Q, K}) info.tensor[n].in = info.tensor[n].out = element;
    return info;
}

// Returns the kernels that have different modules with every element type.
std::vector<NamedKernel> kernels_of(Element element) {
    std::vector<NamedKernel> all;
    const auto add = [&all](const char* name, const KernelInfo& info) {
        all.push_back({name, info});
    };
    const std::pair<const char*, AngleSource> sources[] = {
        {"factored_texture", VKROPE_ANGLES_FACTORED_TEXTURE},
        {"computed", VKROPE_ANGLES_COMPUTED},
        {"direct_texture", VKROPE_ANGLES_DIRECT_TEXTURE},
        {"direct_buffer", VKROPE_ANGLES_DIRECT_BUFFER},
        {"cos_sin_cache", VKROPE_ANGLES_COS_SIN_CACHE}};
    for (const auto& [name, angles] : sources) {
        for (const Pairing pairing : {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED}) {
            KernelInfo info = q_and_k(element, angles);
            info.pairing = pairing;
            all.push_back({std::string(name) +
                               (pairing == VKROPE_INTERLEAVED ? ".interleaved" : ".half_split"),
                           info});
        }
    }
    const KernelInfo computed = q_and_k(element, VKROPE_ANGLES_COMPUTED),
                     cache = q_and_k(element, VKROPE_ANGLES_COS_SIN_CACHE);
    KernelInfo info = with_v(computed);
    info.positions = VKROPE_POSITIONS_IDS;
    info.scatter_kv = true;
    add("scatter", info);
    info = with_v(computed);
    info.tensor[V].out = element == VKROPE_F32 ? VKROPE_BF16 : VKROPE_F32;
    info.pairing_out = VKROPE_INTERLEAVED;
    add("v_apart", info);
    info = cache;
    info.positions = VKROPE_POSITIONS_AXIS_IDS;
    info.sections = {.axes = 2, .pairs = {32, 32}};
    info.windows[0] = {0, 64};
    info.windows[1] = {64, 64};
    info.table = VKROPE_BF16;
    add("windows", info);
    info = cache;
    info.channel_angles = true;
    add("channel_angles", info);
    info = computed;
    info.phase = true;
    info.head_groups = 2;
    add("head_groups", info);
    Ops ops = full_ops(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_HEAD, VKROPE_NORM_PLACE_BEFORE);
    add("rms", with_ops(with_v(computed), ops));
    ops.hadamard = 64;
    add("hadamard", with_ops(computed, ops));
    add("layer", with_ops(computed, full_ops(VKROPE_NORM_LAYER, VKROPE_NORM_SPAN_TOKEN,
                                             VKROPE_NORM_PLACE_AFTER)));
    const std::pair<const char*, Element> stores[] = {
        {"q8_0", VKROPE_Q8_0},     {"q4_0", VKROPE_Q4_0}, {"q4_1", VKROPE_Q4_1},
        {"q5_0", VKROPE_Q5_0},     {"q5_1", VKROPE_Q5_1}, {"iq4_nl", VKROPE_IQ4_NL},
        {"e4m3fn", VKROPE_E4M3FN}, {"e5m2", VKROPE_E5M2}, {"int8", VKROPE_INT8},
        {"int4", VKROPE_INT4}};
    for (const auto& [name, type] : stores) {
        info = computed;
        info.tensor[Q] = {};
        TensorInfo& k = info.tensor[K];
        k.out = type;
        k.ops.hadamard = 128;
        add(name, info);
        std::swap(k.in, k.out);
        k.ops.hadamard_of_input = std::exchange(k.ops.hadamard, 0);
        all.push_back({std::string("read_") + name, info});
    }
    info = computed;
    info.tensor[Q] = {};
    info.positions = VKROPE_POSITIONS_IDS;
    info.gather_kv = info.scatter_kv = true;
    info.tensor[K].in = info.tensor[K].out = VKROPE_Q8_0;
    info.tensor[K].ops.hadamard_of_input = info.tensor[K].ops.hadamard = 128;
    TensorInfo& v = info.tensor[V];
    v = {.in = VKROPE_INT8, .out = element, .head_dim = 128, .heads = 2};
    v.ops.scales_in = true;
    v.ops.store_scale_group = 32;
    v.ops.scale_type = VKROPE_SCALE_TYPE_UE8M0;
    add("moved", info);
    std::swap(v.in, v.out);
    v.ops.scales_in = false;
    v.ops.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
    info.tensor[K] = {.in = element, .out = element, .head_dim = 128};
    info.gather_kv = false;
    add("groups", info);
    return all;
}

// Writes the files of one kernel. Returns the number of files, or 0 after an error.
std::size_t write(const std::string& prefix, const KernelInfo& info) {
    const KernelHost host({.float16 = false});
    const Result<Kernel*> created = create(host.ref, info);
    const Owned<Kernel> kernel(created.value);
    if (!kernel) {
        std::fprintf(stderr, "%s: %s\n", prefix.c_str(), created.status.what);
        return 0;
    }
    std::size_t count = 0;
    for (const std::vector<std::uint32_t>& words : fake().shaders()) {
        std::ofstream file(prefix + "." + std::to_string(count++) + ".spv", std::ios::binary);
        file.write(reinterpret_cast<const char*>(words.data()),
                   std::streamsize(words.size() * sizeof words[0]));
        if (!file.flush()) {
            std::fprintf(stderr, "%s: cannot be written\n", prefix.c_str());
            return 0;
        }
    }
    return count;
}

}  // namespace
}  // namespace vkrope::test

int main(int argc, char** argv) {
    using namespace vkrope;
    using namespace vkrope::test;
    const std::string which = argc > 1 ? argv[1] : "";
    if (argc != 3 || (which != "some" && which != "every")) {
        std::fprintf(stderr, "vkrope_modules some|every FOLDER\n");
        return 2;
    }
    const std::pair<const char*, Element> elements[] = {
        {"f32", VKROPE_F32}, {"f16", VKROPE_F16}, {"bf16", VKROPE_BF16}};
    std::size_t number = 0;
    for (const auto& [element, type] : elements) {
        std::size_t turn = number++;
        for (const NamedKernel& kernel : kernels_of(type)) {
            if (which == "some" && turn++ % std::size(elements) != 0) continue;
            const std::string prefix = std::string(argv[2]) + "/" + element + "." + kernel.name;
            if (write(prefix, kernel.info) == 0) return 1;
        }
    }
}
