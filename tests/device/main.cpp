// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>

#include "base/meaning.hpp"
#include "support/test_device.hpp"
#include "verify/compare.hpp"

namespace vkrope::test {

namespace {

// A message of the layer that the tests expect. There may be at most five, each with a reason.
struct Expected {
    const char* id;
    const char* reason;
};
constexpr Expected expected_messages[] = {
    {"UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
     "it is debugging: only the tests ask for the layer's extensions"},
    {"BestPractices-specialuse-extension", "the same, as newer layers name it"},
    {"BestPractices-deprecated-extension",
     "VK_EXT_validation_features: its successor is missing from Debian 12's headers and layer"},
    {"WARNING-GPU-Assisted-Validation", "it turns on features that it needs, and says so"},
};
static_assert(std::size(expected_messages) <= 5);

std::map<std::string, std::size_t> unexpected;

void on_message(void*, VkBool32, const char* id, const char* text) {
    for (const Expected& expected : expected_messages)
        if (std::strcmp(expected.id, id) == 0) return;
    if (unexpected[id]++ == 0) std::fprintf(stderr, "validation: [%s] %s\n", id, text);
}

// Not every run enables the layer, which takes two thirds of the time of many small calls.
bool without_layer() {
    return std::getenv("VKROPE_WITHOUT_LAYER") != nullptr;
}

Device open(bool push_descriptors) {
    const char* select = std::getenv("VKROPE_DEVICE");
    // GPU-assisted validation (in 1.4.309) checks every dispatch against the last push to its
    // command buffer, so push descriptors are disabled.
    DeviceOptions options{
        .select = select ? select : "",
        .validation = !without_layer(),
        .no_push_descriptors = !push_descriptors || gpu_assisted(),
        .on_message = on_message,
        .timeout_ns = 36'000'000'000'000};  // CTest ends a hang, with a limit for this machine
    auto opened = Device::open(options);
    if (!opened) {
        std::fprintf(stderr, "no device to test on: %s\n", opened.status.what);
        std::exit(1);
    }
    return std::move(opened.value);
}

// Returns the validation layer that the loader finds, if device() enables this layer.
VkLayerProperties validation_layer(const Device& on) {
    if (without_layer()) return {};
    const DeviceRef& ref = on.ref();
    const auto enumerate = reinterpret_cast<PFN_vkEnumerateInstanceLayerProperties>(
        ref.get_instance_proc_addr(nullptr, "vkEnumerateInstanceLayerProperties"));
    std::uint32_t count = 0;
    enumerate(&count, nullptr);
    std::vector<VkLayerProperties> layers(count);
    enumerate(&count, layers.data());
    for (const VkLayerProperties& layer : layers)
        if (std::strcmp(layer.layerName, "VK_LAYER_KHRONOS_validation") == 0) return layer;
    return {};
}

Device devices[2];
bool is_open[2] = {};

}  // namespace

Device& device(bool push_descriptors) {
    if (!is_open[push_descriptors]) devices[push_descriptors] = open(push_descriptors);
    is_open[push_descriptors] = true;
    return devices[push_descriptors];
}

bool gpu_assisted() {
    return std::getenv("VK_KHRONOS_VALIDATION_GPUAV_ENABLE") != nullptr;
}

std::size_t unexpected_messages() {
    std::size_t count = 0;
    for (const auto& [id, times] : unexpected) count += times;
    return count;
}

RopeParams rotation(Pairing pairing, std::uint32_t head_dim, std::uint32_t rotary_dim,
                    std::uint32_t q_offset, std::uint32_t k_offset, double attention_factor) {
    RopeParams r;
    r.pairing = pairing;
    r.head_dim = head_dim;
    r.rotary_dim = rotary_dim;
    r.q_rotary_offset = q_offset;
    r.k_rotary_offset = k_offset;
    r.inv_freq.resize(rotary_dim / 2);
    must(default_inv_freq(10000.0, rotary_dim, r.inv_freq.data()));
    r.attention_factor = attention_factor;
    return r;
}

Rotated rotate(Device& on, const RopeParams& rotation, const HostShape& shape, const Bytes& q,
               const Bytes& k, Direction direction) {
    HostRotation work = must(HostRotation::make(on, rotation, shape));
    REQUIRE(work.bytes(Q) == q.size());
    REQUIRE(work.bytes(K) == k.size());
    must(work.upload(q.data(), k.data()));
    must(work.run({.direction = direction}));
    Rotated out{Bytes(q.size()), Bytes(k.size())};
    must(work.download(out.q.data(), out.k.data()));
    return out;
}

void check_contract(const RopeParams& rotation, const HostShape& shape, bool key, const Bytes& in,
                    const Bytes& out, Direction direction) {
    const TensorIndex which = key ? K : Q;
    const std::uint32_t given = shape.head_dim[which], D = given != 0 ? given : rotation.head_dim,
                        S = shape.tokens, B = std::max(shape.batch, 1u), H = shape.heads[which];
    const std::size_t size = std::size_t{B} * S * H * D * element_bytes(shape.element);
    REQUIRE(in.size() >= size);
    REQUIRE(out.size() >= size);
    verify::Operation operation;
    operation.inv_freq = rotation.inv_freq;
    operation.attention_factor = rotation.attention_factor;
    operation.max_position = 1u << 31;
    operation.info.pairing = rotation.pairing;
    operation.info.rotary_dim = rotation.rotary_dim;
    operation.info.angles = shape.angles == VKROPE_ANGLES_AUTOMATIC
                                ? default_angles(rotation.precision, 1)
                                : shape.angles;
    operation.info.positions = shape.position_count == 0 ? VKROPE_POSITIONS_IMPLICIT
                                                         : VKROPE_POSITIONS_IDS;
    operation.info.tensor[which] = {shape.element, shape.element, D,
                                    key ? rotation.k_rotary_offset : rotation.q_rotary_offset};
    Tensor tensor = {.where = {{}, 0, size}, .heads = H};
    if (shape.layout == VKROPE_LAYOUT_BHSD) {
        tensor.token_stride = D;
        tensor.head_stride = std::int64_t{S} * D;
        tensor.batch_stride = H * tensor.head_stride;
    } else if (shape.layout == VKROPE_LAYOUT_SBHD) {
        tensor.token_stride = std::int64_t{B} * H * D;
        tensor.batch_stride = std::int64_t{H} * D;
    }
    Call& call = operation.call;
    call.batch = B;
    call.tokens = S;
    call.direction = direction;
    call.in[which] = call.out[which] = tensor;
    call.out[which].where.offset = size;
    call.positions.first = shape.first_position;
    call.positions.batch_stride = shape.position_count == std::size_t{B} * S && B > 1 ? S
                                                                                      : broadcast;
    operation.memory.assign(in.begin(), in.begin() + std::ptrdiff_t(size));
    operation.memory.resize(2 * size);
    if (shape.position_count != 0) {
        call.positions.ids = {{}, operation.memory.size(), shape.position_count * 4};
        const auto* const ids = reinterpret_cast<const std::byte*>(shape.positions);
        operation.memory.insert(operation.memory.end(), ids, ids + call.positions.ids.range);
    }
    Bytes after = operation.memory;
    std::copy_n(out.begin(), size, after.begin() + std::ptrdiff_t(size));
    // Some devices flush subnormal numbers.
    CHECK(verify::compare(operation, after, true).problem == "");
}

}  // namespace vkrope::test

int main(int argc, char** argv) {
    const vkrope::DeviceInfo& info = vkrope::test::device().info();
    const VkLayerProperties layer = vkrope::test::validation_layer(vkrope::test::device());
    const std::uint32_t version = layer.specVersion;
    std::printf("device: %s; %s\n", info.name, info.driver);
    if (version != 0) {
        std::printf("layer: %s %u.%u.%u, implementation %u\n", layer.layerName,
                    VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                    VK_API_VERSION_PATCH(version), layer.implementationVersion);
    }
    if (vkrope::test::gpu_assisted() && version < VK_MAKE_API_VERSION(0, 1, 4, 309)) {
        std::printf(
            "skipped: GPU-assisted validation of this layer misses accesses outside a binding; "
            "1.4.309 finds them\n");
        return 77;
    }
    doctest::Context context(argc, argv);
    const int failed = context.run();
    for (vkrope::Device& device : vkrope::test::devices)
        device = {};  // messages that its destruction causes count as well
    const std::size_t messages = vkrope::test::unexpected_messages();
    if (version != 0) std::printf("validation: %zu unexpected messages\n", messages);
    return failed != 0 ? failed : messages != 0;
}
