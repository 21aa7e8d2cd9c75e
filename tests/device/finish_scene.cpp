// SPDX-License-Identifier: MIT
#include "finish_scene.hpp"

#include <iterator>

#include "support/finishing.hpp"

namespace vkrope::test {

namespace {

Rotation rotation_of(const KernelInfo& info) {
    return rotation(info.pairing, std::max(info.q.head_dim, info.k.head_dim), info.rotary_dim,
                    info.q.rotary_offset, info.k.rotary_offset);
}

std::vector<float> factors_of(const Scene& scene) {
    return random_factors(std::size_t{scene.batch} * scene.tokens);
}

// Inputs of a scene that gives none.
void fill_inputs(Scene& scene) {
    const auto fill = [&](Bytes& bytes, const HeadFormat& width, std::uint32_t heads,
                          std::uint32_t seed) {
        const std::size_t count = std::size_t{scene.batch} * scene.tokens * heads * width.head_dim;
        if (bytes.empty()) bytes = random_elements(width.in, count, seed);
    };
    fill(scene.q, scene.info.q, scene.q_heads, 11);
    fill(scene.k, scene.info.k, scene.k_heads, 12);
    fill(scene.v, scene.info.v, scene.v_heads, 13);
}

}  // namespace

Results carry_out(Scene scene, const Way& way) {
    fill_inputs(scene);
    scene.info.mapping = way.mapping;
    scene.info.scatter_k = way.slots;
    const Owned<Kernel> kernel = make_kernel(device(), scene.info);
    const Rotation turned = rotation_of(scene.info);
    AngleTable table = must(
        AngleTable::make(device(), turned, scene.info.angles, scene.tokens + 3));
    const Parameters parameters = parameters_of(scene.info);
    Buffer parameter_buffer = upload(device(),
                                     parameters.filled.empty() ? Bytes(16) : parameters.filled);
    Buffer factors = upload(device(), bytes_of(factors_of(scene)));
    const std::uint32_t all_tokens = scene.batch * scene.tokens;
    std::vector<std::int32_t> slots;
    for (std::uint32_t t = 0; t < all_tokens; ++t)
        slots.push_back(std::int32_t(all_tokens - 1 - t));
    Buffer slot_buffer = upload(device(), bytes_of(slots));
    Call call{.batch = scene.batch,
              .tokens = scene.tokens,
              .positions = {.first = 3},
              .angles = table.angles(),
              .parameters = parameter_buffer.whole(),
              .q_scale = scene.q_scale};
    if (scene.info.q_finish.scale_tokens) call.q_scale_tokens = factors.whole();
    if (scene.info.k_finish.scale_tokens) call.k_scale_tokens = factors.whole();
    if (scene.info.v_finish.scale_tokens) call.v_scale_tokens = factors.whole();
    if (way.slots) call.paged_cache.slot_mapping = slot_buffer.whole();
    Buffer in[3], out[3];
    const struct {
        const Bytes& bytes;
        const HeadFormat& width;
        std::uint32_t heads;
        Tensor &in, &out;
    } tensors[] = {{scene.q, scene.info.q, scene.q_heads, call.q_in, call.q_out},
                   {scene.k, scene.info.k, scene.k_heads, call.k_in, call.k_out},
                   {scene.v, scene.info.v, scene.v_heads, call.v_in, call.v_out}};
    const auto lead_of = [&](Element element) { return way.lead * element_bytes(element); };
    for (std::uint32_t i = 0; i < 3; ++i) {
        const auto& [bytes, width, heads, from, to] = tensors[i];
        if (heads == 0) continue;
        const std::size_t elements = bytes.size() / element_bytes(width.in);
        Bytes led(lead_of(width.in) + bytes.size() + 8);
        std::memcpy(led.data() + lead_of(width.in), bytes.data(), bytes.size());
        in[i] = upload(device(), led);
        out[i] = upload(device(),
                        Bytes(lead_of(width.out) + elements * element_bytes(width.out) + 8));
        Buffer& target = way.in_place ? in[i] : out[i];
        from = {.where = part(in[i], lead_of(width.in), bytes.size()),
                .heads = heads,
                .buffer_size = led.size() / 4 * 4};
        to = {.where = part(target, lead_of(width.out), elements * element_bytes(width.out)),
              .heads = heads,
              .buffer_size = led.size() / 4 * 4};
        to.buffer_size = (lead_of(width.out) + elements * element_bytes(width.out) + 8) / 4 * 4;
    }
    run(device(), kernel, call);
    Results results;
    Bytes* const outputs[] = {&results.q, &results.k, &results.v};
    for (std::uint32_t i = 0; i < 3; ++i) {
        const auto& [bytes, width, heads, from, to] = tensors[i];
        if (heads == 0) continue;
        const std::size_t size = bytes.size() / element_bytes(width.in) * element_bytes(width.out);
        const Bytes led = download(way.in_place ? in[i] : out[i], lead_of(width.out) + size);
        *outputs[i] = Bytes(led.begin() + std::ptrdiff_t(lead_of(width.out)), led.end());
        if (!way.slots || i == 0) continue;
        const std::size_t row = size / all_tokens;  // back into the order of tokens
        Bytes ordered(size);
        for (std::uint32_t t = 0; t < all_tokens; ++t)
            std::memcpy(ordered.data() + t * row, outputs[i]->data() + std::size_t(slots[t]) * row,
                        row);
        *outputs[i] = ordered;
    }
    return results;
}

namespace {

void check_tensor(const Scene& scene, const char* name, const HeadFormat& width,
                  const Finish& finish, std::uint32_t heads, bool turns, const Bytes& in,
                  const Bytes& out, const std::vector<float>* parameters) {
    if (heads == 0) return;
    reference::Tensor from{.type = type_of(width.in),
                           .batch = scene.batch,
                           .tokens = scene.tokens,
                           .heads = heads,
                           .head_dim = width.head_dim,
                           .batch_stride = std::uint64_t{scene.tokens} * heads * width.head_dim,
                           .token_stride = std::uint64_t{heads} * width.head_dim,
                           .head_stride = width.head_dim};
    reference::Tensor to = from;
    to.type = type_of(width.out);
    reference::Operation operation;
    const Rotation turned = rotation_of(scene.info);
    operation.interleaved = scene.info.pairing == Pairing::interleaved;
    if (scene.info.pairing_out)
        operation.interleaved_out = *scene.info.pairing_out == Pairing::interleaved;
    operation.rotary_offset = width.rotary_offset;
    if (turns) operation.inv_freq = turned.inv_freq;
    for (const Window& window : scene.info.windows) {
        if (turns && window.rotary_dim != 0)
            operation.windows.push_back({window.offset, window.rotary_dim / 2});
    }
    operation.absolute_allowance = 0x1p-148 + 0x1p-123;
    for (std::uint32_t b = 0; b < scene.batch; ++b) {
        for (std::uint32_t t = 0; t < scene.tokens; ++t) operation.positions.push_back(t + 3);
    }
    const auto steps = oracle_of(finish, width.in, parameters, name[0] == 'q' ? scene.q_scale : 1,
                                 factors_of(scene));
    const reference::FinishVerdict verdict = reference::compare(
        from, to, operation, steps, error_bound(AngleSource::factored_texture, 1), in.data(),
        out.data());
    INFO(name, ": ", verdict.worst);
    CHECK(verdict.elements == std::uint64_t{scene.batch} * scene.tokens * heads * width.head_dim);
    CHECK(verdict.right());
    CHECK(verdict.largest_share <= 1);
}

void check(Scene scene, const Results& results) {
    fill_inputs(scene);
    const Parameters parameters = parameters_of(scene.info);
    const KernelInfo& info = scene.info;
    check_tensor(scene, "q", info.q, info.q_finish, scene.q_heads, true, scene.q, results.q,
                 parameters.of);
    check_tensor(scene, "k", info.k, info.k_finish, scene.k_heads, true, scene.k, results.k,
                 parameters.of + 3);
    check_tensor(scene, "v", info.v, info.v_finish, scene.v_heads, false, scene.v, results.v,
                 parameters.of + 6);
}

}  // namespace

void check_ways(const Scene& scene) {
    const Results first = carry_out(scene, {});
    check(scene, first);
    const bool in_place = scene.info.q.in == scene.info.q.out && !scene.info.pairing_out;
    const Way ways[] = {{Mapping::gpu, 0, false},
                        {Mapping::cpu, 1, in_place},
                        {Mapping::gpu, 1, in_place},
                        {Mapping::gpu, 2, false, true}};
    for (std::size_t i = 0; i < std::size(ways); i += sweep_share()) {
        const Way& way = ways[i];
        if (way.slots && scene.k_heads + scene.v_heads == 0) continue;
        CAPTURE(int(way.mapping));
        CAPTURE(way.lead);
        const Results other = carry_out(scene, way);
        CHECK(other.q == first.q);
        CHECK(other.k == first.k);
        CHECK(other.v == first.v);
    }
}

}  // namespace vkrope::test
