// SPDX-License-Identifier: MIT
#include "conformance/builtin/finish_run.hpp"

namespace vkrope::conformance::scenes {
namespace {

std::size_t stored_bytes(Element element, std::size_t channels) {
    return channels / block_channels(element) * element_bytes(element);
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

}  // namespace

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
    const TensorInfo format = {scene.in, scene.out, scene.head_dim, scene.rotary_offset};
    KernelInfo info = {.pairing = scene.pairing,
                       .rotary_dim = scene.rotary_dim,
                       .tensor = {format, format, {scene.in, scene.out, scene.head_dim, 0}},
                       .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    info.angles = VKROPE_ANGLES_DIRECT_BUFFER;
    info.mapping = way.mapping;
    info.scatter_kv = way.slots;
    info.tensor[Q].heads = q_heads;
    info.tensor[K].heads = info.tensor[V].heads = k_heads;
    info.tensor[Q].ops = scene.q;
    info.tensor[K].ops = scene.k;
    info.tensor[V].ops = scene.v;
    return info;
}

Parameters parameters_of(const KernelInfo& info) {
    const ParameterPlan plan = value_of(plan_parameters(info));
    Parameters made;
    std::array<TensorParameterSources, 3> sources;
    std::uint32_t seed = 700;
    const auto fill = [&seed](const ParameterItem& item, std::vector<float>& numbers) {
        const Bytes random = random_elements(VKROPE_F32, item.count, ++seed);
        for (std::uint32_t i = 0; i < item.count; ++i) {
            numbers.push_back(value(VKROPE_F32, random, i));
        }
        return item.count == 0 ? ParameterSource{}
                               : ParameterSource{numbers.data(), VKROPE_F32, numbers.size()};
    };
    const TensorParameters* items[] = {&plan.tensor[Q], &plan.tensor[K], &plan.tensor[V]};
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

std::vector<float> token_scales() {
    std::vector<float> scales;
    for (std::uint32_t i = 0; i < batch * tokens; ++i) {
        scales.push_back(0.75f + 0.125f * static_cast<float>(i));
    }
    return scales;
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
    of.positions = {.first = first_position, .batch_stride = broadcast};
    of.angles = table.angles();
    of.q_scale = scene.q_scale;
    if (!parameters.filled.empty()) {
        of.parameters = filled.whole();
    }
    const auto scaled = [&scales](const Finish& finish) {
        return finish.scale_tokens ? scales.whole() : VkDescriptorBufferInfo{};
    };
    of.scale_tokens[Q] = scaled(scene.q);
    of.scale_tokens[K] = scaled(scene.k);
    of.scale_tokens[V] = scaled(scene.v);
    if (way.slots) {
        of.paged_cache.slot_mapping = mapping.whole();
    }
    const Placed q = place(device, scene, way, input_of(scene, q_heads, 1), q_heads, of.in[Q],
                           of.out[Q]),
                 k = place(device, scene, way, input_of(scene, k_heads, 2), k_heads, of.in[K],
                           of.out[K]),
                 v = place(device, scene, way, input_of(scene, k_heads, 3), k_heads, of.in[V],
                           of.out[V]);
    const auto made = [](const Finish& finish, const Placed& placed) {
        return is_made(finish.store_scale) ? placed.scales.whole() : VkDescriptorBufferInfo{};
    };
    of.scales_out[Q] = made(scene.q, q);
    of.scales_out[K] = made(scene.k, k);
    of.scales_out[V] = made(scene.v, v);
    device.rotate(call);
    const auto fetched_scales = [&](const Finish& finish, const Placed& placed,
                                    std::uint32_t heads) {
        Bytes bytes(is_made(finish.store_scale) ? rows_of(heads) * sizeof(float) : 0);
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

}  // namespace vkrope::conformance::scenes
