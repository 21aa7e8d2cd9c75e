// SPDX-License-Identifier: MIT
#include "conformance/builtin/finish_scene.hpp"

#include <cstring>

#include "reference/finish.hpp"
#include "reference/quantise.hpp"

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
    Bytes q_scales, k_scales, v_scales;  // made ones, f32 [batch, tokens, heads]
    bool operator==(const Outputs&) const = default;
};

std::size_t stored_bytes(Element element, std::size_t channels) {
    return channels / block_channels(element) * element_bytes(element);
}

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
        std::vector<float> bias, weight, norm_bias, store_scale;
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
        sources[i].store_scale = fill(items[i]->store_scale, made.tensors[i].store_scale);
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
    Buffer in, out, scales;
    std::size_t lead = 0, bytes = 0;  // of the output
};

Placed place(DeviceUnderTest& device, const Scene& scene, const Way& way, const Bytes& input,
             std::uint32_t heads, Tensor& in, Tensor& out) {
    const auto led = [&way](Element element, const Bytes& bytes) {
        Bytes all((way.lead * element_bytes(element) + bytes.size() + 8 + 3) / 4 * 4);
        std::copy(bytes.begin(), bytes.end(),
                  all.begin() + static_cast<std::ptrdiff_t>(way.lead * element_bytes(element)));
        return all;
    };
    const Bytes from = led(scene.in, input),
                to = led(scene.out,
                         Bytes(rows_of(heads) * stored_bytes(scene.out, scene.head_dim)));
    const std::vector<float> no_scales(rows_of(heads));
    Placed placed;
    placed.scales = device.upload(no_scales.data(), no_scales.size() * sizeof(float));
    placed.in = device.upload(from.data(), from.size());
    placed.out = device.upload(to.data(), to.size());
    placed.lead = way.lead * element_bytes(scene.out);
    placed.bytes = rows_of(heads) * stored_bytes(scene.out, scene.head_dim);
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

/// In a cache, token t of all has the row before the last but t. `token`: bytes of a token.
Bytes rows_in_order(const Way& way, std::size_t token, const Bytes& bytes) {
    if (!way.slots || bytes.empty()) {
        return bytes;
    }
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
    const auto made = [](const Finish& finish, const Placed& placed) {
        return finish.store_scale == StoreScale::made ? placed.scales.whole()
                                                      : VkDescriptorBufferInfo{};
    };
    of.q_scales_out = made(scene.q, q);
    of.k_scales_out = made(scene.k, k);
    of.v_scales_out = made(scene.v, v);
    device.rotate(call);
    const auto fetched_scales = [&](const Finish& finish, const Placed& placed,
                                    std::uint32_t heads) {
        Bytes bytes(finish.store_scale == StoreScale::made ? rows_of(heads) * sizeof(float) : 0);
        if (!bytes.empty()) {
            check(const_cast<Buffer&>(placed.scales).download(bytes.data(), bytes.size()));
        }
        return bytes;
    };
    const auto fetched = [&](const Placed& placed) {
        Bytes bytes(placed.bytes);
        const Buffer& from = way.in_place ? placed.in : placed.out;
        check(const_cast<Buffer&>(from).download(bytes.data(), bytes.size(), placed.lead));
        return bytes;
    };
    const std::size_t token = k_heads * stored_bytes(scene.out, scene.head_dim),
                      scales_of_token = k_heads * sizeof(float);
    return {.q = fetched(q),
            .k = rows_in_order(way, token, fetched(k)),
            .v = rows_in_order(way, token, fetched(v)),
            .q_scales = fetched_scales(scene.q, q, q_heads),
            .k_scales = rows_in_order(way, scales_of_token, fetched_scales(scene.k, k, k_heads)),
            .v_scales = rows_in_order(way, scales_of_token, fetched_scales(scene.v, v, k_heads))};
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
    steps.hadamard = finish.hadamard;
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

/// What a quantised type makes of one tensor.
struct Quantised {
    std::vector<std::uint8_t> codes;
    std::vector<float> scales;  // made ones
};

/// `rows`: f32, before the store. `given`: its scales, if there are any.
Quantised quantised(const Scene& scene, const Finish& finish, const std::vector<float>& given,
                    std::uint32_t heads, const Bytes& rows) {
    const auto store = reference::Store(static_cast<std::uint32_t>(scene.out) -
                                        static_cast<std::uint32_t>(Element::e4m3fn));
    Quantised all;
    std::vector<float> row(scene.head_dim);
    for (std::size_t i = 0; i < rows_of(heads); ++i) {
        std::memcpy(row.data(), rows.data() + i * row.size() * sizeof(float),
                    row.size() * sizeof(float));
        std::vector<std::uint8_t> codes;
        if (block_channels(scene.out) != 1) {
            codes = reference::quantise_blocks(store, row);
        } else if (finish.store_scale == StoreScale::made) {
            reference::MadeRow made = reference::quantise_made(store, row, finish.scale_floor);
            codes = std::move(made.codes);
            all.scales.push_back(made.scale);
        } else {
            const float factor = given.empty() ? 1 : given[i % heads % given.size()];
            codes = reference::quantise_given(store, row, factor);
        }
        all.codes.insert(all.codes.end(), codes.begin(), codes.end());
    }
    return all;
}

/// Compares the codes of one way with the definition of their type, for the rows of f32 that the
/// device itself stores; and these rows with the oracle.
void hold_codes(DeviceUnderTest& device, const Scene& scene, const Outputs& outputs,
                Findings& findings) {
    Scene plain = scene;
    plain.out = Element::f32;
    for (Finish* finish : {&plain.q, &plain.k, &plain.v}) {
        finish->store_scale = StoreScale::none;
        finish->scale_floor = 0;
    }
    const Outputs rows = run(device, plain, {.mapping = Mapping::cpu});
    hold_definition(device, plain, rows, findings);
    const Parameters parameters = parameters_of(kernel_of(scene, {}));
    const struct {
        char name;
        std::uint32_t heads;
        const Finish& finish;
        const Bytes &rows, &codes, &scales;
    } tensors[] = {{'Q', q_heads, scene.q, rows.q, outputs.q, outputs.q_scales},
                   {'K', k_heads, scene.k, rows.k, outputs.k, outputs.k_scales},
                   {'V', k_heads, scene.v, rows.v, outputs.v, outputs.v_scales}};
    for (std::size_t i = 0; i < 3; ++i) {
        const auto& [name, heads, finish, floats, codes, scales] = tensors[i];
        const Quantised expected = quantised(scene, finish, parameters.tensors[i].store_scale,
                                             heads, floats);
        std::size_t differing = 0;
        for (std::size_t at = 0; at < codes.size(); ++at) {
            differing += std::to_integer<std::uint8_t>(codes[at]) != expected.codes[at];
        }
        findings.hold(codes.size() == expected.codes.size() && differing == 0,
                      "{}: {} of {} bytes differ from the definition", name, differing,
                      codes.size());
        findings.hold(scales == bytes_of(expected.scales),
                      "{}: a scale is not the one of the definition", name);
    }
}

}  // namespace

void hold(DeviceUnderTest& device, const Scene& scene, Findings& findings) {
    const Outputs outputs = run(device, scene, {.mapping = Mapping::cpu});
    if (is_quantised(scene.out)) {
        hold_codes(device, scene, outputs, findings);
    } else {
        hold_definition(device, scene, outputs, findings);
    }
    const auto same = [&](const char* what, const Way& way) {
        findings.hold(run(device, scene, way) == outputs, "{} gives different bits", what);
    };
    same("the mapping of GPUs", {.mapping = Mapping::gpu});
    if (is_quantised(scene.out) && !scene.values.empty()) {
        return;  // about values, not about where they are
    }
    same("a tensor that starts in the middle of 16 bytes", {.mapping = Mapping::gpu, .lead = 2});
    same("the same on a processor", {.mapping = Mapping::cpu, .lead = 2});
    if (is_quantised(scene.out)) {
        same("an output that starts at any byte", {.mapping = Mapping::gpu, .lead = 3});
    }
    if (scene.head_dim == usual_head_dim) {  // another kernel
        same("a cache", {.mapping = Mapping::cpu, .slots = true});
    }
    if (scene.in == scene.out) {
        same("in place", {.mapping = Mapping::cpu, .in_place = true});
    }
}

}  // namespace vkrope::conformance
