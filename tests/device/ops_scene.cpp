// SPDX-License-Identifier: MIT
#include "ops_scene.hpp"

#include <iterator>

#include "divide_up.hpp"
#include "forced_limits.hpp"
#include "meaning.hpp"
#include "support/ops.hpp"

namespace vkrope::test {

namespace {

RopeParams rotation_of(const KernelInfo& info) {
    return rotation(info.pairing, std::max(info.tensor[Q].head_dim, info.tensor[K].head_dim),
                    info.rotary_dim, info.tensor[Q].rotary_offset, info.tensor[K].rotary_offset);
}

std::vector<float> factors_of(const Scene& scene) {
    return random_factors(std::size_t{scene.batch} * scene.tokens);
}

// Bytes around an output, which a call must leave.
constexpr std::byte untouched{0x5a};

std::size_t stored_bytes(Element element, std::size_t channels) {
    return channels / block_channels(element) * element_bytes(element);
}

// An output on the device: led by `lead` bytes, 8 more behind it, whole words.
Bytes guarded(std::size_t lead, std::size_t bytes) {
    return Bytes((lead + bytes + 8 + 3) / 4 * 4, untouched);
}

// Downloads an output and checks the bytes around it.
Bytes inside(Buffer& buffer, std::size_t lead, std::size_t bytes, const Bytes& before) {
    const Bytes all = download(buffer, before.size());
    const auto from = all.begin() + std::ptrdiff_t(lead), to = from + std::ptrdiff_t(bytes);
    CHECK(std::equal(all.begin(), from, before.begin()));
    CHECK(std::equal(to, all.end(), before.begin() + (to - all.begin())));
    return {from, to};
}

// Where the rows of a cache or of packed tokens lie.
struct RowOrder {
    const Way& way;
    const std::vector<std::int32_t>& slots;
    bool scattered;

    std::size_t operator()(std::size_t token, std::size_t head, std::size_t heads) const {
        if (!scattered) return token * heads + head;
        const auto slot = std::size_t(slots[token]);
        if (way.page_rows == 0) return slot * heads + head;
        return (slot / way.page_rows * heads + head) * way.page_rows + slot % way.page_rows;
    }
};

// Rows of a tensor in memory: of `bytes` bytes, from byte `at` of every `pitch` bytes on, of which
// the call owns `owned`.
struct Spacing {
    std::size_t bytes, at, owned, pitch;
};

// Rows back in the order of tokens. Checks every byte between them.
Bytes in_order(const Bytes& rows, const Spacing& of, std::size_t tokens, std::size_t heads,
               const RowOrder& order) {
    Bytes ordered(tokens * heads * of.bytes);
    for (std::size_t t = 0; t < tokens; ++t) {
        for (std::size_t h = 0; h < heads; ++h)
            std::memcpy(ordered.data() + (t * heads + h) * of.bytes,
                        rows.data() + order(t, h, heads) * of.pitch + of.at, of.bytes);
    }
    std::size_t changed = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        changed += i % of.pitch >= of.owned && rows[i] != untouched;
    CHECK(changed == 0);
    return ordered;
}

}  // namespace

void fill_inputs(Scene& scene) {
    const auto fill = [&](Bytes& bytes, const TensorInfo& width, std::uint32_t heads,
                          std::uint32_t seed) {
        const std::size_t count = std::size_t{scene.batch} * scene.tokens * heads * width.head_dim;
        if (bytes.empty()) bytes = random_elements(width.in, count, seed);
    };
    fill(scene.q, scene.info.tensor[Q], scene.q_heads, 11);
    fill(scene.k, scene.info.tensor[K], scene.k_heads, 12);
    fill(scene.v, scene.info.tensor[V], scene.v_heads, 13);
}

Results carry_out(Scene scene, const Way& way) {
    fill_inputs(scene);
    scene.info.mapping = way.mapping;
    scene.info.scatter_kv = way.slots;
    if (way.page_rows != 0) {
        for (Ops* ops : {&scene.info.tensor[K].ops, &scene.info.tensor[V].ops}) {
            if (is_made(ops->store_scale)) ops->scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
        }
    }
    const Owned<Kernel> kernel = make_kernel(device(), scene.info,
                                             Forced{.range = way.range,
                                                    .workgroups = way.workgroups,
                                                    .mapping = way.mapping,
                                                    .storage_buffers = way.storage_buffers});
    const RopeParams turned = rotation_of(scene.info);
    AngleTable table = must(
        AngleTable::make(device(), turned, scene.info.angles, scene.tokens + 3));
    Bytes parameters = parameters_of(scene.info, scene.parameter_seed).filled;
    if (scene.info.two_parameter_sets) {
        const Bytes second = parameters_of(scene.info, second_seed).filled;
        parameters.insert(parameters.end(), second.begin(), second.end());
    }
    Buffer parameter_buffer = upload(device(), parameters.empty() ? Bytes(16) : parameters);
    Buffer factors = upload(device(), bytes_of(factors_of(scene)));
    const std::uint32_t all_tokens = scene.batch * scene.tokens;
    const std::uint32_t page_rows = std::max(way.page_rows, 1u);
    const std::uint32_t all_slots = std::uint32_t(divide_up(all_tokens, page_rows)) * page_rows;
    std::vector<std::int32_t> slots;
    for (std::uint32_t t = 0; t < all_tokens; ++t) slots.push_back(std::int32_t(all_slots - 1 - t));
    Buffer slot_buffer = upload(device(), bytes_of(slots));
    Call call{.batch = scene.batch,
              .tokens = scene.tokens,
              .positions = {.first = 3, .batch_stride = broadcast},
              .angles = table.angles(),
              .first_set_tokens = scene.first_set_tokens,
              .q_scale = scene.q_scale};
    std::vector<std::int32_t> ids;
    for (std::uint32_t t = 0; t < scene.tokens; ++t) ids.push_back(std::int32_t(t) + 3);
    Buffer id_buffer = upload(device(), bytes_of(ids));
    if (scene.info.positions == VKROPE_POSITIONS_IDS)
        call.positions = {.ids = id_buffer.whole(), .batch_stride = broadcast};
    if (!parameters.empty()) call.parameters = parameter_buffer.whole();
    if (scene.info.tensor[Q].ops.scale_tokens) call.scale_tokens[Q] = factors.whole();
    if (scene.info.tensor[K].ops.scale_tokens) call.scale_tokens[K] = factors.whole();
    if (scene.info.tensor[V].ops.scale_tokens) call.scale_tokens[V] = factors.whole();
    if (way.slots) call.paged_cache.slot_mapping = slot_buffer.whole();
    Results results;
    struct OneTensor {
        const Bytes& bytes;
        const TensorInfo& width;
        const Ops& ops;
        std::uint32_t heads;
        Tensor &from, &to;
        VkDescriptorBufferInfo& scales;
        Bytes &result, &made;
        Buffer in = {}, out = {}, scales_out = {};
        OneTensor* holder = nullptr;  // whose `out` has the rows
        std::size_t in_lead = 0, out_lead = 0, rows = 0;
        Spacing spacing = {};
        Bytes led = {}, out_before = {}, scales_before = {};
    } tensors[] = {{scene.q, scene.info.tensor[Q], scene.info.tensor[Q].ops, scene.q_heads,
                    call.in[Q], call.out[Q], call.scales_out[Q], results.q, results.q_scales},
                   {scene.k, scene.info.tensor[K], scene.info.tensor[K].ops, scene.k_heads,
                    call.in[K], call.out[K], call.scales_out[K], results.k, results.k_scales},
                   {scene.v, scene.info.tensor[V], scene.info.tensor[V].ops, scene.v_heads,
                    call.in[V], call.out[V], call.scales_out[V], results.v, results.v_scales}};
    const auto scatters = [&](const OneTensor& of) { return way.slots && &of != tensors; };
    for (OneTensor& of : tensors) {
        if (of.heads == 0) continue;
        of.in_lead = way.lead * element_bytes(of.width.in);
        of.out_lead = way.lead * element_bytes(of.width.out);
        of.rows = std::size_t{scatters(of) ? all_slots : all_tokens} * of.heads;
        const bool beside = way.beside && scatters(of), spaced = beside || way.gap != 0;
        const std::uint32_t block = block_channels(of.width.out);
        const std::uint32_t channels = beside ? scene.info.tensor[K].head_dim +
                                                    scene.info.tensor[V].head_dim
                                              : of.width.head_dim;
        const std::uint32_t row_stride = channels + (way.gap + block - 1) / block * block;
        of.spacing = {.bytes = stored_bytes(of.width.out, of.width.head_dim),
                      .at = 0,
                      .owned = stored_bytes(of.width.out, channels),
                      .pitch = stored_bytes(of.width.out, row_stride)};
        of.holder = &of;
        if (beside && &of == &tensors[2]) {
            of.holder = &tensors[1];
            of.spacing.at = tensors[1].spacing.bytes;
        }
        of.led = Bytes(of.in_lead + of.bytes.size() + 8, untouched);
        std::memcpy(of.led.data() + of.in_lead, of.bytes.data(), of.bytes.size());
        of.in = upload(device(), of.led);
        if (of.holder == &of) {
            of.out_before = guarded(of.out_lead, of.rows * of.spacing.pitch);
            of.out = upload(device(), of.out_before);
        }
        of.from = {.where = part(of.in, of.in_lead, of.bytes.size()),
                   .heads = of.heads,
                   .buffer_size = of.led.size() / 4 * 4};
        if (way.in_place) {
            of.to = of.from;
            of.spacing.owned = of.spacing.pitch = of.spacing.bytes;
            continue;
        }
        of.to = {.where = part(of.holder->out, of.out_lead + of.spacing.at,
                               of.rows * of.spacing.pitch - of.spacing.at),
                 .heads = of.heads,
                 .buffer_size = of.holder->out_before.size()};
        const std::int64_t heads_stride = std::int64_t{of.heads} * row_stride;
        if (spaced) of.to.head_stride = row_stride;
        if (scatters(of) && way.page_rows != 0) {
            of.to.head_stride = std::int64_t{way.page_rows} * row_stride;
            call.paged_cache.page_size = way.page_rows;
            call.paged_cache.row_stride = row_stride;
            call.paged_cache.page_stride = way.page_rows * heads_stride;
        } else if (scatters(of) && spaced) {
            call.paged_cache.row_stride = call.paged_cache.page_stride = heads_stride;
        } else if (way.gap != 0) {
            of.to.token_stride = heads_stride;
            of.to.batch_stride = heads_stride * scene.tokens;
        }
        if (!is_made(of.ops.store_scale)) continue;
        of.scales_before = guarded(4 * way.lead, 4 * of.rows);
        of.scales_out = upload(device(), of.scales_before);
        of.scales = part(of.scales_out, 4 * way.lead, 4 * of.rows);
    }
    const std::uint64_t dispatched = run(device(), *kernel, call);
    if (way.range != 0 || way.workgroups != 0 || way.storage_buffers != 0) CHECK(dispatched > 1);
    for (OneTensor& of : tensors) {
        if (of.heads == 0) continue;
        const RowOrder order{way, slots, scatters(of)};
        const Bytes stored = way.in_place
                                 ? inside(of.in, of.in_lead, of.bytes.size(), of.led)
                                 : inside(of.holder->out, of.out_lead, of.rows * of.spacing.pitch,
                                          of.holder->out_before);
        of.result = in_order(stored, of.spacing, all_tokens, of.heads, order);
        if (of.scales_before.empty()) continue;
        of.made = in_order(inside(of.scales_out, 4 * way.lead, 4 * of.rows, of.scales_before),
                           {.bytes = 4, .at = 0, .owned = 4, .pitch = 4}, all_tokens, of.heads,
                           order);
    }
    return results;
}

namespace {

void check_tensor(const Scene& scene, const char* name, const TensorInfo& width, const Ops& ops,
                  std::uint32_t heads, bool turns, const Bytes& in, const Bytes& out,
                  const std::vector<float>* parameters) {
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
    const RopeParams turned = rotation_of(scene.info);
    operation.interleaved = scene.info.pairing == VKROPE_INTERLEAVED;
    if (scene.info.pairing_out)
        operation.interleaved_out = scene.info.pairing_out == VKROPE_INTERLEAVED;
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
    const auto steps = oracle_of(ops, width.in, parameters, name[0] == 'q' ? scene.q_scale : 1,
                                 factors_of(scene));
    const reference::OpsVerdict verdict = reference::compare(
        from, to, operation, steps, error_bound(VKROPE_ANGLES_FACTORED_TEXTURE, 1), in.data(),
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
    check_tensor(scene, "q", info.tensor[Q], info.tensor[Q].ops, scene.q_heads, true, scene.q,
                 results.q, parameters.of);
    check_tensor(scene, "k", info.tensor[K], info.tensor[K].ops, scene.k_heads, true, scene.k,
                 results.k, parameters.of + 3);
    check_tensor(scene, "v", info.tensor[V], info.tensor[V].ops, scene.v_heads, false, scene.v,
                 results.v, parameters.of + 6);
}

}  // namespace

void check_ways(const Scene& scene) {
    const Results first = carry_out(scene, {});
    check(scene, first);
    const bool in_place = scene.info.tensor[Q].in == scene.info.tensor[Q].out &&
                          !scene.info.pairing_out;
    const Way ways[] = {{VKROPE_MAPPING_GPU, 0, false},
                        {VKROPE_MAPPING_CPU, 1, in_place},
                        {VKROPE_MAPPING_GPU, 1, in_place},
                        {VKROPE_MAPPING_GPU, 2, false, true},
                        {VKROPE_MAPPING_CPU, 0, false, true, 4}};
    for (std::size_t i = 0; i < std::size(ways); i += sweep_share()) {
        const Way& way = ways[i];
        if (way.slots && scene.k_heads + scene.v_heads == 0) continue;
        const bool equal_rows = scene.v_heads == 0 ||
                                (scene.v_heads == scene.k_heads &&
                                 scene.info.tensor[V].head_dim == scene.info.tensor[K].head_dim);
        if (way.page_rows != 0 && !equal_rows) continue;  // one page_stride for both caches
        CAPTURE(int(way.mapping));
        CAPTURE(way.lead);
        const Results other = carry_out(scene, way);
        CHECK(other.q == first.q);
        CHECK(other.k == first.k);
        CHECK(other.v == first.v);
        CHECK(other.q_scales == first.q_scales);
        CHECK(other.k_scales == first.k_scales);
        CHECK(other.v_scales == first.v_scales);
    }
}

}  // namespace vkrope::test
