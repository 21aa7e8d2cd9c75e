// SPDX-License-Identifier: MIT
#include "conformance/builtin/finish_scene.hpp"

#include <bit>

#include "reference/finish.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::uint32_t batch = 2, tokens = 5, q_heads = 3, k_heads = 2;
constexpr std::int32_t first_position = 9;

/// What changes no bit.
struct Way {
    Mapping mapping = Mapping::by_device;
    bool in_place = false, slots = false;
    std::uint32_t lead = 0;  // elements before each tensor, which narrow the access
};

struct Outputs {
    Bytes q, k, v;
    bool operator==(const Outputs&) const = default;
};

std::size_t rows_of(std::uint32_t heads) {
    return std::size_t{batch} * tokens * heads;
}

Bytes input_of(const Scene& scene, std::uint32_t heads, std::uint32_t seed) {
    const std::size_t count = rows_of(heads) * scene.head_dim;
    if (scene.values.empty()) {
        return random_elements(scene.in, count, seed);
    }
    Bytes bytes(count * element_bytes(scene.in));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = scene.values[i % scene.values.size()];
    }
    return bytes;
}

KernelInfo kernel_of(const Scene& scene, const Way& way) {
    const HeadFormat format = {scene.in, scene.out, scene.head_dim, scene.rotary_offset};
    KernelInfo info = {.pairing = scene.pairing,
                       .rotary_dim = scene.rotary_dim,
                       .q = format,
                       .k = format,
                       .v = {scene.in, scene.out, scene.head_dim, 0}};
    info.angles = AngleSource::direct_buffer;
    info.mapping = way.mapping;
    info.scatter_k = way.slots;
    info.q_heads = q_heads;
    info.k_heads = info.v_heads = k_heads;
    info.q_finish = scene.q;
    info.k_finish = scene.k;
    info.v_finish = scene.v;
    return info;
}

/// Weights and biases of a kernel: as the device has them, and as the oracle takes them.
struct Parameters {
    struct OfTensor {
        std::vector<float> bias, weight, norm_bias;
    };
    std::array<OfTensor, 3> tensors;
    std::vector<float> filled;
};

Parameters parameters_of(const KernelInfo& info) {
    const ParameterPlan plan = value_of(plan_parameters(info));
    Parameters made;
    std::array<TensorParameterSources, 3> sources;
    std::uint32_t seed = 700;
    const auto fill = [&seed](const ParameterItem& item, std::vector<float>& numbers) {
        const Bytes random = random_elements(Element::f32, item.count, ++seed);
        for (std::uint32_t i = 0; i < item.count; ++i) {
            numbers.push_back(value(Element::f32, random, i));
        }
        return item.count == 0 ? ParameterSource{}
                               : ParameterSource{numbers.data(), Element::f32, numbers.size()};
    };
    const TensorParameters* items[] = {&plan.q, &plan.k, &plan.v};
    for (std::size_t i = 0; i < 3; ++i) {
        sources[i].bias = fill(items[i]->bias, made.tensors[i].bias);
        sources[i].weight = fill(items[i]->weight, made.tensors[i].weight);
        sources[i].norm_bias = fill(items[i]->norm_bias, made.tensors[i].norm_bias);
    }
    made.filled.resize(plan.bytes / sizeof(float));
    check(fill_parameters(plan, {sources[0], sources[1], sources[2]}, made.filled.data(),
                          plan.bytes));
    return made;
}

Rotation rotation_of(const Scene& scene) {
    Rotation rotation;
    rotation.pairing = scene.pairing;
    rotation.head_dim = scene.head_dim;
    rotation.rotary_dim = scene.rotary_dim;
    rotation.q_rotary_offset = rotation.k_rotary_offset = scene.rotary_offset;
    rotation.inv_freq.resize(scene.rotary_dim / 2);
    check(default_inv_freq(10000, scene.rotary_dim, rotation.inv_freq.data()));
    return rotation;
}

/// One factor for each token, some of them below 1.
std::vector<float> token_scales() {
    std::vector<float> scales;
    for (std::uint32_t i = 0; i < batch * tokens; ++i) {
        scales.push_back(0.75f + 0.125f * static_cast<float>(i));
    }
    return scales;
}

/// A tensor of a call, in its own buffers.
struct Placed {
    Buffer in, out;
    std::size_t lead = 0, bytes = 0;  // of the output
};

Placed place(DeviceUnderTest& device, const Scene& scene, const Way& way, const Bytes& input,
             std::uint32_t heads, Tensor& in, Tensor& out) {
    const auto led = [&way](Element element, const Bytes& bytes) {
        Bytes all(way.lead * element_bytes(element) + bytes.size() + 8);
        std::copy(bytes.begin(), bytes.end(),
                  all.begin() + static_cast<std::ptrdiff_t>(way.lead * element_bytes(element)));
        return all;
    };
    const Bytes from = led(scene.in, input),
                to = led(scene.out,
                         Bytes(rows_of(heads) * scene.head_dim * element_bytes(scene.out)));
    Placed placed;
    placed.in = device.upload(from.data(), from.size());
    placed.out = device.upload(to.data(), to.size());
    placed.lead = way.lead * element_bytes(scene.out);
    placed.bytes = to.size() - placed.lead - 8;
    const auto tensor = [heads](const Buffer& buffer, std::size_t lead, std::size_t bytes) {
        Tensor made = {.where = buffer.whole(), .heads = heads};
        made.buffer_size = made.where.range;
        made.where.offset = lead;
        made.where.range = bytes;
        return made;
    };
    in = tensor(placed.in, way.lead * element_bytes(scene.in), input.size());
    out = way.in_place ? in : tensor(placed.out, placed.lead, placed.bytes);
    return placed;
}

/// In a cache, token t of all has the row before the last but t.
Bytes rows_in_order(const Scene& scene, const Way& way, std::uint32_t heads, const Bytes& bytes) {
    if (!way.slots) {
        return bytes;
    }
    const std::size_t token = std::size_t{heads} * scene.head_dim * element_bytes(scene.out);
    Bytes ordered;
    for (std::size_t t = std::size_t{batch} * tokens; t-- > 0;) {
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(t * token);
        ordered.insert(ordered.end(), first, first + static_cast<std::ptrdiff_t>(token));
    }
    return ordered;
}

Outputs run(DeviceUnderTest& device, const Scene& scene, const Way& way) {
    DeviceUnderTest::KernelCall call = {.info = kernel_of(scene, way), .call = {}};
    const Parameters parameters = parameters_of(call.info);
    const AngleTable table = value_of(AngleTable::make(device.device(), rotation_of(scene),
                                                       call.info.angles, first_position + tokens));
    const Buffer filled = device.upload(parameters.filled.data(),
                                        parameters.filled.size() * sizeof(float));
    const std::vector<float> factors = token_scales();
    const Buffer scales = device.upload(factors.data(), factors.size() * sizeof(float));
    std::vector<std::int32_t> slots;
    for (std::uint32_t t = batch * tokens; t-- > 0;) {
        slots.push_back(static_cast<std::int32_t>(t));
    }
    const Buffer mapping = device.upload(slots.data(), slots.size() * sizeof(std::int32_t));
    Call& of = call.call;
    of.batch = batch;
    of.tokens = tokens;
    of.positions.first = first_position;
    of.angles = table.angles();
    of.q_scale = scene.q_scale;
    if (!parameters.filled.empty()) {
        of.parameters = filled.whole();
    }
    const auto scaled = [&scales](const Finish& finish) {
        return finish.scale_tokens ? scales.whole() : VkDescriptorBufferInfo{};
    };
    of.q_scale_tokens = scaled(scene.q);
    of.k_scale_tokens = scaled(scene.k);
    of.v_scale_tokens = scaled(scene.v);
    if (way.slots) {
        of.paged_cache.slot_mapping = mapping.whole();
    }
    const Placed q = place(device, scene, way, input_of(scene, q_heads, 1), q_heads, of.q_in,
                           of.q_out),
                 k = place(device, scene, way, input_of(scene, k_heads, 2), k_heads, of.k_in,
                           of.k_out),
                 v = place(device, scene, way, input_of(scene, k_heads, 3), k_heads, of.v_in,
                           of.v_out);
    device.rotate(call);
    const auto fetched = [&](const Placed& placed) {
        Bytes bytes(placed.bytes);
        const Buffer& from = way.in_place ? placed.in : placed.out;
        check(const_cast<Buffer&>(from).download(bytes.data(), bytes.size(), placed.lead));
        return bytes;
    };
    return {fetched(q), rows_in_order(scene, way, k_heads, fetched(k)),
            rows_in_order(scene, way, k_heads, fetched(v))};
}

reference::Finish steps_of(const Scene& scene, const Finish& finish,
                           const Parameters::OfTensor& parameters) {
    const auto doubles = [](const std::vector<float>& floats) {
        return std::vector<double>(floats.begin(), floats.end());
    };
    const Norm& norm = finish.norm;
    reference::Finish steps;
    steps.bias = doubles(parameters.bias);
    steps.norm.kind = norm.kind == NormKind::rms     ? reference::NormKind::rms
                      : norm.kind == NormKind::layer ? reference::NormKind::layer
                                                     : reference::NormKind::none;
    steps.norm.over_token = norm.span == NormSpan::token;
    steps.norm.after = norm.place == NormPlace::after;
    steps.norm.eps = norm.eps;
    steps.norm.weight = doubles(parameters.weight);
    steps.norm.weight_offset = norm.weight_offset;
    steps.norm.bias = doubles(parameters.norm_bias);
    steps.clip = finish.clip;
    steps.scale = double{finish.scale} * (finish.scale_call ? double{scene.q_scale} : 1);
    if (finish.scale_tokens) {
        steps.scale_tokens = doubles(token_scales());
    }
    return steps;
}

/// Compares the outputs of one way with the oracle.
void hold_definition(DeviceUnderTest& device, const Scene& scene, const Outputs& outputs,
                     Findings& findings) {
    const KernelInfo info = kernel_of(scene, {});
    const Parameters parameters = parameters_of(info);
    const Rotation rotation = rotation_of(scene);
    const struct {
        char name;
        std::uint32_t heads, seed;
        const Finish& finish;
        const Bytes& output;
    } tensors[] = {{'Q', q_heads, 1, scene.q, outputs.q},
                   {'K', k_heads, 2, scene.k, outputs.k},
                   {'V', k_heads, 3, scene.v, outputs.v}};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto& [name, heads, seed, finish, output] = tensors[i];
        const auto shape = [&](Element element) {
            const std::uint64_t row = scene.head_dim;
            return reference::Tensor{.type = type_of(element),
                                     .batch = batch,
                                     .tokens = tokens,
                                     .heads = heads,
                                     .head_dim = row,
                                     .batch_stride = row * heads * tokens,
                                     .token_stride = row * heads,
                                     .head_stride = row};
        };
        reference::Operation operation;
        if (device.traits().flushes_subnormals) {
            operation.absolute_allowance = 0x1p-123 + 0x1p-148;
        }
        for (std::uint32_t t = 0; t < batch * tokens; ++t) {
            operation.positions.push_back(first_position + t % tokens);
        }
        if (name != 'V') {
            operation.interleaved = scene.pairing == Pairing::interleaved;
            operation.rotary_offset = scene.rotary_offset;
            operation.inv_freq = rotation.inv_freq;
        }
        const Bytes input = input_of(scene, heads, seed);
        const reference::FinishVerdict verdict = reference::compare(
            shape(scene.in), shape(scene.out), operation,
            steps_of(scene, finish, parameters.tensors[i]),
            error_bound(AngleSource::direct_buffer, 1), input.data(), output.data());
        findings.hold(verdict.right(), "{}: {} of {} values are within the contract: {}", name,
                      verdict.within, verdict.elements, verdict.worst);
    }
}

}  // namespace

void hold(DeviceUnderTest& device, const Scene& scene, Findings& findings) {
    const Outputs outputs = run(device, scene, {.mapping = Mapping::cpu});
    hold_definition(device, scene, outputs, findings);
    const auto same = [&](const char* what, const Way& way) {
        findings.hold(run(device, scene, way) == outputs, "{} gives different bits", what);
    };
    same("the mapping of GPUs", {.mapping = Mapping::gpu});
    same("a tensor that starts in the middle of 16 bytes", {.mapping = Mapping::gpu, .lead = 2});
    same("the same on a processor", {.mapping = Mapping::cpu, .lead = 2});
    if (scene.head_dim == usual_head_dim) {  // another kernel
        same("a cache", {.mapping = Mapping::cpu, .slots = true});
    }
    if (scene.in == scene.out) {
        same("in place", {.mapping = Mapping::cpu, .in_place = true});
    }
}

}  // namespace vkrope::conformance
