// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>

#include "meaning.hpp"
#include "support/test_device.hpp"
#include "verify/oracle/turns.hpp"

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
    for (const Expected& expected : expected_messages) {
        if (std::strcmp(expected.id, id) == 0) return;
    }
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
    for (const VkLayerProperties& layer : layers) {
        if (std::strcmp(layer.layerName, "VK_LAYER_KHRONOS_validation") == 0) return layer;
    }
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

Bytes random_elements(Element element, std::size_t count, std::uint32_t seed) {
    std::mt19937 generator(seed);
    Bytes bytes(count * element_bytes(element));
    for (std::size_t i = 0; i < count; ++i) {
        const long double x = (static_cast<long double>(generator()) / 0x1p32L - 0.5L) * 8;
        const std::uint32_t bits = oracle::narrow(type_of(element), x);
        std::memcpy(bytes.data() + i * element_bytes(element), &bits, element_bytes(element));
    }
    return bytes;
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
    const std::uint64_t heads = key ? shape.heads[K] : shape.heads[Q],
                        given = key ? shape.head_dim[K] : shape.head_dim[Q];
    const std::uint64_t D = given ? given : rotation.head_dim, S = shape.tokens,
                        B = std::max(shape.batch, 1u);
    oracle::Tensor tensor{
        .type = type_of(shape.element), .batch = B, .tokens = S, .heads = heads, .head_dim = D};
    switch (shape.layout) {
        case VKROPE_LAYOUT_BHSD:
            tensor.token_stride = D, tensor.head_stride = S * D,
            tensor.batch_stride = heads * S * D;
            break;
        case VKROPE_LAYOUT_SBHD:
            tensor.token_stride = B * heads * D, tensor.head_stride = D,
            tensor.batch_stride = heads * D;
            break;
        default:
            tensor.token_stride = heads * D, tensor.head_stride = D,
            tensor.batch_stride = S * heads * D;
    }
    oracle::Operation operation;
    operation.interleaved = rotation.pairing == VKROPE_INTERLEAVED;
    operation.inverse = direction == VKROPE_INVERSE;
    operation.rotary_offset = key ? rotation.k_rotary_offset : rotation.q_rotary_offset;
    operation.inv_freq = rotation.inv_freq;
    operation.attention_factor = rotation.attention_factor;
    operation.absolute_allowance = oracle::flushing_allowance(operation);  // some devices flush
    for (std::uint64_t b = 0; b < B; ++b) {
        for (std::uint64_t s = 0; s < S; ++s) {
            const std::size_t ids = shape.position_count;
            operation.positions.push_back(ids == 0   ? shape.first_position + std::int64_t(s)
                                          : ids == S ? shape.positions[s]
                                                     : shape.positions[b * S + s]);
        }
    }
    const oracle::Verdict verdict = oracle::compare(tensor, operation, in.data(), out.data());
    INFO(verdict.worst);
    CHECK(verdict.elements == B * S * heads * D);
    CHECK_FALSE(verdict.nan_mismatch);
    CHECK_FALSE(verdict.bits_changed);
    const AngleSource source = shape.angles == VKROPE_ANGLES_AUTOMATIC
                                   ? default_angles(rotation.precision, 1)
                                   : shape.angles;
    CHECK(verdict.largest_error_u <= error_bound(source, rotation.attention_factor));
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
