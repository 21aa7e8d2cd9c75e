// SPDX-License-Identifier: MIT
#include "conformance/traits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "conformance/device_properties.hpp"
#include "conformance/device_under_test.hpp"
#include "conformance/suite.hpp"

namespace vkrope::conformance {
namespace {

// Operands of y0 = x0 c - x1 s and y1 = x0 s + x1 c on the device.
struct Probe {
    float x0 = 0, x1 = 0, c = 1, s = 0;
};
struct Answer {
    float y0, y1;
};

// Rotates one token for each probe, with one row of a cos_sin_cache for each token.
std::vector<Answer> ask(DeviceUnderTest& device, const std::vector<Probe>& probes) {
    std::vector<float> x, c, s;
    for (const Probe& probe : probes) {
        x.insert(x.end(), {probe.x0, probe.x1});
        c.push_back(probe.c);
        s.push_back(probe.s);
    }
    const auto count = std::uint32_t(probes.size());
    Buffer rows = device.upload(x.data(), x.size() * sizeof(float)),
           cos = device.upload(c.data(), c.size() * sizeof(float)),
           sin = device.upload(s.data(), s.size() * sizeof(float));
    const AngleTableLayout plan = value_of(plan_cos_sin_cache(1, count, 1, VKROPE_F32));
    DeviceUnderTest::KernelCall call;
    call.info.rotary_dim = 2;
    call.info.tensor[Q] = {.head_dim = 2};
    call.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    call.call.tokens = count;
    call.call.in[Q] = call.call.out[Q] = {.where = rows.whole(), .heads = 1};
    call.call.angles = {.layout = &plan, .buffer = cos.whole(), .sin = sin.whole()};
    device.rotate(call);
    std::vector<Answer> answers(count);
    check(rows.download(answers.data(), count * sizeof(Answer)));
    return answers;
}

float float_of(std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}
std::uint32_t bits_of(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

void measure_subnormals(DeviceUnderTest& device, Traits& traits) {
    constexpr float smallest_normal = 0x1p-126f;
    const std::vector<Answer> answers = ask(
        device, {{.x0 = 0x1p-149f},  // operand
                 {.x0 = 0x1.fffffp-127f},
                 {.x0 = -0x1p-130f, .x1 = 0x1p-140f},
                 {.x0 = smallest_normal, .c = 0.75f},  // product
                 {.x0 = 0x1p-100f, .c = 0x1p-40f},
                 {.x0 = 0x1.8p-126f, .x1 = smallest_normal, .c = 1, .s = 1}});  // difference
    const auto lost = [&](std::initializer_list<std::size_t> of) {
        return std::any_of(of.begin(), of.end(), [&](std::size_t i) { return answers[i].y0 == 0; });
    };
    std::string flushed;
    const auto add = [&flushed](bool is, const char* what) {
        flushed += is ? (flushed.empty() ? "" : ", ") + std::string(what) : "";
    };
    add(lost({0, 1, 2}), "operands");
    add(lost({3, 4}), "products");
    add(lost({5}), "sums");
    traits.flushes_subnormals = !flushed.empty();
    traits.subnormals = flushed.empty() ? "kept" : "flushed: " + flushed;
}

// The result of each probe differs between rounding to nearest even and toward zero; the last
// probes have a third result if a product is fused with the sum.
void measure_rounding(DeviceUnderTest& device, Traits& traits) {
    constexpr float e = 0x1p-23f;
    const std::vector<Probe> probes = {
        {.x0 = 1 + e, .c = 1 + e},            // product below the middle
        {.x0 = 1 + 3 * e, .c = 1 + 0x1p-1f},  // product in the middle
        {.x0 = -(1 + 5 * e), .c = 1 + 0x1p-1f},
        {.x0 = 1, .x1 = -0x1.8p-24f, .c = 1, .s = 1},    // sum above the middle
        {.x0 = 1 + e, .x1 = -0x1p-24f, .c = 1, .s = 1},  // sum in the middle
        {.x0 = 1, .x1 = 0x1p-26f, .c = 1, .s = 1},
        {.x0 = 1 + e,
         .x1 = 1 + 2 * e,
         .c = 1 + e,
         .s = 1}};  // if fused, y0 is the remainder of the first product
    const std::vector<Answer> answers = ask(device, probes);
    bool nearest = true, toward_zero = true;
    const auto chopped = [](double exact) {
        const auto rounded = float(exact);
        return std::fabs(double{rounded}) > std::fabs(exact) ? std::nextafter(rounded, 0.0f)
                                                             : rounded;
    };
    for (std::size_t i = 0; i < probes.size(); ++i) {
        const Probe& probe = probes[i];
        const double a = double{probe.x0} * double{probe.c},
                     b = double{probe.x1} * double{probe.s};  // exact
        const auto near_a = float(a), near_b = float(b);
        nearest = nearest && answers[i].y0 == float(double{near_a} - double{near_b});
        toward_zero = toward_zero &&
                      answers[i].y0 == chopped(double{chopped(a)} - double{chopped(b)});
    }
    const Probe& last = probes.back();
    const double fused = double{last.x0} * double{last.c} - double{last.x1} * double{last.s};
    traits.rounding = nearest       ? "to nearest even"
                      : toward_zero ? "toward zero"
                      : answers.back().y0 == float(fused)
                          ? "products fused with sums"
                          : "neither to nearest even nor toward zero";
}

// A compiler that assumes that NaN and infinity do not occur, or that -0 equals 0, folds the
// operations behind these results.
void measure_specials(DeviceUnderTest& device, Traits& traits) {
    constexpr float largest = std::numeric_limits<float>::max();
    const std::vector<Answer> answers = ask(
        device, {{.x0 = NAN},
                 {.x0 = INFINITY, .x1 = INFINITY, .c = 1, .s = 1},  // y0 is NaN
                 {.x0 = INFINITY, .c = 0},
                 {.x0 = INFINITY},
                 {.x0 = -INFINITY, .x1 = 1, .c = 1, .s = 1},
                 {.x0 = largest, .c = 2},
                 {.x0 = largest, .x1 = -largest, .c = 1, .s = 1},
                 {.x0 = -0.0f, .x1 = 0, .c = 1, .s = 1},  // -0 - 0
                 {.x0 = 0, .x1 = -0.0f, .c = -1, .s = 1}});
    const auto zero = [](float y) { return y == 0 && std::signbit(y); };
    std::string lost;
    const auto add = [&lost](bool kept, const char* what) {
        lost += kept ? "" : (lost.empty() ? "" : ", ") + std::string(what);
    };
    add(std::isnan(answers[0].y0) && std::isnan(answers[1].y0) && std::isnan(answers[2].y0), "NaN");
    add(answers[3].y0 == INFINITY && answers[4].y0 == -INFINITY && answers[5].y0 == INFINITY &&
            answers[6].y0 == INFINITY,
        "infinity");
    add(zero(answers[7].y0) && !zero(answers[8].y0), "sign of zero");
    traits.specials = lost.empty() ? "kept" : "lost: " + lost;
}

void measure_nan(DeviceUnderTest& device, Traits& traits) {
    constexpr std::uint32_t quiet = 0x7fc12345, signalling = 0x7f812345;
    const std::vector<Answer> answers = ask(device,
                                            {{.x0 = float_of(quiet)},
                                             {.x0 = float_of(signalling)},
                                             {.x0 = float_of(quiet | 0x80000000u)},
                                             {.x0 = INFINITY, .x1 = INFINITY, .c = 1, .s = 1}});
    const auto word = [&](std::size_t i) {
        return fmt::format("{:#010x}", bits_of(answers[i].y0));
    };
    const bool kept = bits_of(answers[0].y0) == quiet &&
                      bits_of(answers[2].y0) == (quiet | 0x80000000u);
    traits.nan = fmt::format(
        "{}; quiet {:#010x} -> {}, signalling {:#010x} -> {}, infinity - infinity -> {}",
        kept ? "payload kept" : "payload changed", quiet, word(0), signalling, word(1), word(3));
}

std::uint32_t subgroup_size_of(const DeviceRef& device) {
    VkPhysicalDeviceSubgroupProperties subgroup = {};
    subgroup.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES;
    add_properties(device, &subgroup);
    return subgroup.subgroupSize;
}

// Finds the f16 values that the device converts itself: none without VKROPE_CONVERSION_NATIVE, and
// otherwise all except those (subnormals) that the device does not promise to preserve.
void ask_for_f16(DeviceUnderTest& device, Traits& traits) {
    const KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                             .rotary_dim = 2,
                             .tensor = {{.in = VKROPE_F16, .out = VKROPE_F16, .head_dim = 2}},
                             .angles = VKROPE_ANGLES_COMPUTED,
                             .conversion = VKROPE_CONVERSION_NATIVE};
    try {
        device.kernel_for(info);
    } catch (const Refusal& refusal) {
        if (refusal.outcome().verdict != Verdict::unsupported) throw;
        traits.f16 = fmt::format("nothing; {}", refusal.what());
        return;
    }
    traits.converts_f16 = true;
    VkPhysicalDeviceFloatControlsProperties controls = {};
    controls.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES;
    add_properties(device.device().ref(), &controls);
    traits.f16 = controls.shaderDenormPreserveFloat16 ? "all" : "normal numbers";
}

void identify(const DeviceRef& device, Traits& traits) {
    const auto get = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(
        device.get_instance_proc_addr(device.instance, "vkGetPhysicalDeviceProperties"));
    VkPhysicalDeviceProperties properties = {};
    get(device.physical, &properties);
    traits.vendor_id = properties.vendorID;
    traits.device_id = properties.deviceID;
    traits.driver_version = properties.driverVersion;
    constexpr std::pair<std::uint32_t, const char*> words[] = {
        {VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR, "VK_KHR_push_descriptor"},
        {VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS, "shader float controls"},
        {VKROPE_DEVICE_FEATURE_SHADER_FLOAT16, "shaderFloat16"}};
    for (const auto& [bit, word] : words)
        if (device.enabled & bit) traits.features.push_back(word);
}

std::vector<Tool> tools_of(const DeviceRef& device) {
    // The function name with EXT does not depend on the API version of the instance.
    auto get = reinterpret_cast<PFN_vkGetPhysicalDeviceToolProperties>(
        device.get_instance_proc_addr(device.instance, "vkGetPhysicalDeviceToolPropertiesEXT"));
    if (get == nullptr) {
        get = reinterpret_cast<PFN_vkGetPhysicalDeviceToolProperties>(
            device.get_instance_proc_addr(device.instance, "vkGetPhysicalDeviceToolProperties"));
    }
    std::uint32_t count = 0;
    if (get == nullptr || get(device.physical, &count, nullptr) < 0) return {};
    VkPhysicalDeviceToolProperties none = {};
    none.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TOOL_PROPERTIES;
    std::vector<VkPhysicalDeviceToolProperties> found(count, none);
    if (get(device.physical, &count, found.data()) < 0) return {};
    found.resize(count);
    std::vector<Tool> tools;
    for (const VkPhysicalDeviceToolProperties& tool : found) {
        constexpr VkToolPurposeFlags altering = VK_TOOL_PURPOSE_ADDITIONAL_FEATURES_BIT |
                                                VK_TOOL_PURPOSE_MODIFYING_FEATURES_BIT;
        tools.push_back({.name = static_cast<const char*>(tool.name),
                         .version = static_cast<const char*>(tool.version),
                         .alters_features = (tool.purposes & altering) != 0});
    }
    return tools;
}

}  // namespace

Traits measure_traits(DeviceUnderTest& device) {
    Traits traits;
    identify(device.device().ref(), traits);
    traits.tools = tools_of(device.device().ref());
    traits.subgroup_size = subgroup_size_of(device.device().ref());
    try {
        measure_subnormals(device, traits);
        measure_rounding(device, traits);
        measure_specials(device, traits);
        measure_nan(device, traits);
        ask_for_f16(device, traits);
    } catch (const Refusal& refusal) {
        for (std::string* text :
             {&traits.subnormals, &traits.rounding, &traits.specials, &traits.nan, &traits.f16})
            *text = text->empty() ? "not measured: " + std::string(refusal.what()) : *text;
    }
    return traits;
}

}  // namespace vkrope::conformance
