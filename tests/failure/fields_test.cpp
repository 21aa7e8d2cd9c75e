// SPDX-License-Identifier: MIT
// Checks that the library ignores nothing that a caller sets: a field of KernelInfo or of Call that
// is not 0 is refused by name, or it changes the shaders of the kernel or the recorded commands.
// The tests change every field of every struct in turn, on kernels of every kind. If a field is
// added to a struct, the structured binding of the struct no longer compiles.
#include <cstring>
#include <functional>
#include <set>

#include "base/meaning.hpp"
#include "kernel/geometry/ops.hpp"
#include "recorder.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

namespace {

// Visits the fields of a kernel and of a call, and changes one of them.
class Fields {
   public:
    explicit Fields(std::size_t changed) : changed_(changed) {}

    std::string name;  // the name of the changed field; empty if there are no more fields
    std::string last;  // the last part of the name

    void kernel(KernelInfo& of) {
        auto& [pairing, rotary_dim, tensors, angles, positions, mapping, tuning, pairing_out,
               scatter_kv, gather_kv, windows, of_sections, phase, head_groups, table,
               channel_angles, conversion, two_parameter_sets, token_count] = of;
        field("pairing", pairing, VKROPE_INTERLEAVED);
        field("rotary_dim", rotary_dim, 64u);
        for (std::size_t i : {Q, K, V}) format("tensor[" + std::to_string(i) + "]", tensors[i]);
        field("angles", angles,
              angles == VKROPE_ANGLES_AUTOMATIC ? VKROPE_ANGLES_COMPUTED : VKROPE_ANGLES_AUTOMATIC);
        field("positions", positions,
              positions == VKROPE_POSITIONS_IDS ? VKROPE_POSITIONS_IMPLICIT : VKROPE_POSITIONS_IDS);
        field("mapping", mapping, VKROPE_MAPPING_CPU);
        {
            auto& [lane_heads, group_lanes, group_tokens] = tuning;
            field("tuning.lane_heads", lane_heads, 2u);
            field("tuning.group_lanes", group_lanes, 32u);
            field("tuning.group_tokens", group_tokens, 2u);
        }
        field("pairing_out", pairing_out, VKROPE_INTERLEAVED);
        field("scatter_kv", scatter_kv, !scatter_kv);
        field("gather_kv", gather_kv, !gather_kv);
        for (Window& window : windows) {
            auto& [offset, dim] = window;
            field("windows.offset", offset, 2u), field("windows.rotary_dim", dim, 64u);
        }
        sections("sections", of_sections);
        field("phase", phase, true);
        field("head_groups", head_groups, 2u);
        field("table", table, VKROPE_BF16);
        field("channel_angles", channel_angles, !channel_angles);
        field("conversion", conversion, VKROPE_CONVERSION_INTEGER);
        field("two_parameter_sets", two_parameter_sets, !two_parameter_sets);
        field("token_count", token_count, !token_count);
    }

    void call(Call& of, AngleTableLayout& plan) {
        auto& [batch, tokens, in, out, positions, angles, direction, gain, paged_cache, token_count,
               out_of_range, parameters, first_set_tokens, q_scale, scale_tokens, scales_out,
               scales_in, second, norm_weight] = of;
        field("batch", batch, 1u), field("tokens", tokens, 3u);
        tensor("in[0]", in[Q]), tensor("out[0]", out[Q]);
        tensor("in[1]", in[K]), tensor("out[1]", out[K]);
        tensor("in[2]", in[V]), tensor("out[2]", out[V]);
        {
            auto& [first, ids, int64, batch_stride, axis_stride, token_stride] = positions;
            field("positions.first", first, 3);
            buffer("positions.ids", ids);
            field("positions.int64", int64, true);
            field("positions.batch_stride", batch_stride, std::int64_t{40});
            field("positions.axis_stride", axis_stride, std::int64_t{90});
            field("positions.token_stride", token_stride, std::int64_t{3});
        }
        {
            auto& [of_plan, view, table, sin] = angles;
            field("angles.layout", of_plan, of_plan ? nullptr : &plan);
            field("angles.view", view,
                  view ? VkImageView{} : reinterpret_cast<VkImageView>(std::uintptr_t{77}));
            buffer("angles.buffer", table), buffer("angles.sin", sin);
            if (of_plan) angle_plan(plan);
        }
        field("direction", direction, VKROPE_INVERSE);
        field("gain", gain, gain == VKROPE_GAIN_APPLY ? VKROPE_GAIN_OMIT : VKROPE_GAIN_APPLY);
        {
            auto& [slots, sources, v_slots, v_sources, int64, page_size, page_stride, row_stride,
                   batch_stride] = paged_cache;
            buffer("paged_cache.slot_mapping", slots);
            buffer("paged_cache.source_mapping", sources);
            buffer("paged_cache.v_slot_mapping", v_slots);
            buffer("paged_cache.v_source_mapping", v_sources);
            field("paged_cache.int64", int64, true);
            field("paged_cache.page_size", page_size, 2u);
            field("paged_cache.page_stride", page_stride, std::int64_t{2048});
            field("paged_cache.row_stride", row_stride, std::int64_t{1024});
            field("paged_cache.batch_stride", batch_stride, std::int64_t{40});
        }
        buffer("token_count", token_count);
        buffer("out_of_range", out_of_range), buffer("parameters", parameters);
        field("first_set_tokens", first_set_tokens, 3u);
        field("q_scale", q_scale, 0.25f);
        buffer("scale_tokens[0]", scale_tokens[Q]), buffer("scale_tokens[1]", scale_tokens[K]);
        buffer("scale_tokens[2]", scale_tokens[V]);
        buffer("scales_out[0]", scales_out[Q]), buffer("scales_out[1]", scales_out[K]);
        buffer("scales_out[2]", scales_out[V]);
        buffer("scales_in[0]", scales_in[Q]), buffer("scales_in[1]", scales_in[K]);
        buffer("scales_in[2]", scales_in[V]);
        buffer("second[0]", second[Q]), buffer("second[1]", second[K]);
        buffer("second[2]", second[V]);
        buffer("norm_weight[0]", norm_weight[Q]), buffer("norm_weight[1]", norm_weight[K]);
        buffer("norm_weight[2]", norm_weight[V]);
    }

    // query_scale_layout is that of the caller, whose fields also change.
    void position_call(PositionCall& of, QueryScaleLayout& factors) {
        auto& [batch, tokens, first, ids, offsets, cu_seqlens, query_lens, seq_lens, sequences,
               offsets_int64, cu_seqlens_int64, cp_size, cp_rank, ids_f32, fraction_bits, out,
               block_table, pages, block_table_stride, page_size, cache_pages, slot_mapping,
               query_scales, query_scale_layout, scale_tokens, token_count, out_of_range] = of;
        field("batch", batch, 3u), field("tokens", tokens, 6u), field("first", first, 5);
        buffer("ids", ids), buffer("offsets", offsets), buffer("cu_seqlens", cu_seqlens);
        buffer("query_lens", query_lens), buffer("seq_lens", seq_lens);
        field("sequences", sequences, 1u);
        field("offsets_int64", offsets_int64, true);
        field("cu_seqlens_int64", cu_seqlens_int64, true);
        field("cp_size", cp_size, 3u), field("cp_rank", cp_rank, 1u);
        field("ids_f32", ids_f32, !ids_f32), field("fraction_bits", fraction_bits, 3u);
        buffer("out", out), buffer("block_table", block_table);
        field("pages", pages, 3u), field("block_table_stride", block_table_stride, 9u);
        field("page_size", page_size, 8u), field("cache_pages", cache_pages, 30u);
        buffer("slot_mapping", slot_mapping), buffer("query_scales", query_scales);
        turn("query_scale_layout",
             [&, &layout = query_scale_layout] { layout = layout ? nullptr : &factors; });
        if (query_scale_layout) {
            auto& [scale, rows, positions_per_row, shift, bytes] = factors;
            const std::string at = "query_scale_layout.";
            // The other fields of the formula decide what fills the table.
            field(at + "kind", scale.kind, VKROPE_QUERY_SCALING_NONE);
            turn(at + "rows", [&, &count = rows, &size = bytes] { count = 5, size = 20; });
            field(at + "positions_per_row", positions_per_row, 3u);
            field(at + "shift", shift, 5u), field(at + "bytes", bytes, std::size_t{4});
        }
        buffer("scale_tokens", scale_tokens), buffer("token_count", token_count);
        buffer("out_of_range", out_of_range);
    }

   private:
    void turn(const std::string& of, const std::function<void()>& change) {
        if (visited_++ != changed_) return;
        name = of;
        last = of.substr(of.rfind('.') + 1);
        change();
    }
    template <class Field, class Value>
    void field(const std::string& of, Field& at, Value value) {
        turn(
            of, [&] { at = Field(value); });
    }

    void buffer(const std::string& of, VkDescriptorBufferInfo& at) {
        turn(
            of,
            [&] {
                at.buffer = some_buffer, at.offset += 4096;
                at.range = at.range == 0 ? 256 : at.range;
            });
        turn(
            of, [&] { at.offset += 1 << 12; });
        turn(of, [&] { at.range = at.range == 0 ? 16 : 0; });
    }

    void tensor(const std::string& of, Tensor& at) {
        auto& [where, heads, token_stride, head_stride, batch_stride, heads_per_group, group_stride,
               buffer_size] = at;
        buffer(of + ".where", where);
        field(of + ".heads", heads, heads == 0 ? 2u : 1u);
        field(of + ".token_stride", token_stride, std::int64_t{2048});
        field(of + ".head_stride", head_stride, std::int64_t{256});
        field(of + ".batch_stride", batch_stride, std::int64_t{16384});
        turn(of + ".heads_per_group", [&, &heads_of = heads_per_group, &stride = group_stride] {
            heads_of = 1, stride = 256;
        });
        field(of + ".group_stride", group_stride, std::int64_t{512});
        field(of + ".buffer_size", buffer_size, VkDeviceSize{1});
    }

    void angle_plan(AngleTableLayout& of) {
        auto& [source, format, extent, usage, bytes, pairs, rows, fold_log2, row_texels,
               attention_factor, of_sections, phase, head_groups, element, row_stride,
               channel_angles] = of;
        const std::string at = "angles.layout.";
        field(at + "source", source, VKROPE_ANGLES_AUTOMATIC);
        field(at + "format", format, VK_FORMAT_R8_UNORM);
        auto& [width, height] = extent;
        field(at + "width", width, 1u), field(at + "height", height, 1u);
        field(at + "usage", usage, 1u);
        field(at + "bytes", bytes, std::size_t{4});
        field(at + "pairs", pairs, 3u), field(at + "rows", rows, 2u);
        field(at + "fold_log2", fold_log2, 13u), field(at + "row_texels", row_texels, 33u);
        field(at + "attention_factor", attention_factor, 3.0);
        sections(at + "sections", of_sections);
        field(at + "phase", phase, true), field(at + "head_groups", head_groups, 2u);
        field(at + "element", element, VKROPE_F16);
        field(at + "row_stride", row_stride, 70u);
        field(at + "channel_angles", channel_angles, !channel_angles);
    }

    void sections(const std::string& of, Sections& at) {
        auto& [order, axes, pairs, leftover_axis] = at;
        field(of + ".order", order, VKROPE_SECTIONS_INTERLEAVED);
        field(of + ".axes", axes, 4u);
        for (std::uint32_t& count : pairs) field(of + ".pairs", count, 9u);
        field(of + ".leftover_axis", leftover_axis, 1u);
    }

    void format(const std::string& of, TensorInfo& at) {
        auto& [in, out, head_dim, rotary_offset, heads, ops, second_of, second] = at;
        field(of + ".in", in, VKROPE_BF16), field(of + ".out", out, VKROPE_BF16);
        field(of + ".head_dim", head_dim, 256u);
        field(of + ".rotary_offset", rotary_offset, 2u);
        field(of + ".heads", heads, 4u);
        read_ops(of + ".ops", ops);
        field(of + ".second_of", second_of,
              second_of == VKROPE_SECOND_INPUT ? VKROPE_SECOND_RESULT : VKROPE_SECOND_INPUT);
        field(of + ".second", second, VKROPE_BF16);
    }

    void read_ops(const std::string& of, Ops& at) {
        auto& [bias, norm, clip, scale, scale_call, scale_tokens, hadamard, store_scale,
               scale_floor, scale_layout, hadamard_of_input, store_scale_group, scale_type,
               scales_in] = at;
        field(of + ".bias", bias, VKROPE_PARAMETER_HEAD_CHANNEL);
        {
            auto& [kind, span, place, eps, weight, weight_offset, norm_bias, round, first_channel,
                   channels, weight_bound, weight_type] = norm;
            field(of + ".norm.kind", kind, VKROPE_NORM_LAYER);
            field(of + ".norm.span", span, VKROPE_NORM_SPAN_TOKEN);
            field(of + ".norm.place", place, VKROPE_NORM_PLACE_AFTER);
            field(of + ".norm.eps", eps, 0.5f);
            field(of + ".norm.weight", weight,
                  weight == VKROPE_PARAMETER_CHANNEL ? VKROPE_PARAMETER_HEAD_CHANNEL
                                                     : VKROPE_PARAMETER_CHANNEL);
            field(of + ".norm.weight_offset", weight_offset, 1 - weight_offset);
            field(of + ".norm.bias", norm_bias, VKROPE_PARAMETER_CHANNEL);
            field(of + ".norm.round_between", round, true);
            field(of + ".norm.first_channel", first_channel, 32u);
            field(of + ".norm.channels", channels, 64u);
            field(of + ".norm.weight_bound", weight_bound, !weight_bound);
            field(of + ".norm.weight_type", weight_type, VKROPE_BF16);
        }
        field(of + ".clip", clip, 7.0f), field(of + ".scale", scale, 3.0f);
        field(of + ".scale_call", scale_call, !scale_call);
        field(of + ".scale_tokens", scale_tokens, !scale_tokens);
        field(of + ".hadamard", hadamard, 16u);
        field(of + ".store_scale", store_scale, VKROPE_STORE_SCALE_GIVEN);
        field(of + ".scale_floor", scale_floor, 0.5f);
        field(of + ".scale_layout", scale_layout, VKROPE_SCALE_LAYOUT_PAGES_HEADS);
        field(of + ".hadamard_of_input", hadamard_of_input, 16u);
        field(of + ".store_scale_group", store_scale_group, store_scale_group == 32 ? 64u : 32u);
        field(
            of + ".scale_type", scale_type,
            scale_type == VKROPE_SCALE_TYPE_F32 ? VKROPE_SCALE_TYPE_UE8M0 : VKROPE_SCALE_TYPE_F32);
        field(of + ".scales_in", scales_in, !scales_in);
    }

    std::size_t changed_, visited_ = 0;

   public:
    VkBuffer some_buffer = VK_NULL_HANDLE;  // the buffer KernelHost::words
};

// A kernel and a call that it accepts.
struct Scene {
    const char* name;
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    AngleTableLayout plan;
    Call call;  // angles.layout is set from `plan`
};

KernelInfo base_info(AngleSource angles, PositionSource positions) {
    KernelInfo info = with_v(kernel_info(angles));
    info.positions = positions;
    return info;
}

Scene scene_of(const char* name, const KernelHost& host, const KernelInfo& info) {
    Scene made = {name, info, {}, {.batch = 2, .tokens = 5}};
    const auto rows = [](VkBuffer buffer, std::uint32_t heads) {
        return Tensor{.where = {buffer, 256, 1 << 18}, .heads = heads};
    };
    Call& call = made.call;
    if (info.tensor[Q].head_dim != 0)
        call.in[Q] = rows(host.q, 8), call.out[Q] = rows(host.q_out, 8);
    if (info.tensor[K].head_dim != 0)
        call.in[K] = rows(host.k, 2), call.out[K] = rows(host.k_out, 2);
    if (info.tensor[V].head_dim != 0)
        call.in[V] = rows(host.v, 2), call.out[V] = rows(host.v_out, 2);
    const auto words = [&](VkDeviceSize kib, VkDeviceSize bytes) {
        return VkDescriptorBufferInfo{host.words, kib << 10, bytes};
    };
    for (const TensorIndex t : {K, V})
        if (info.tensor[t].second_of != VKROPE_SECOND_NONE)
            call.second[t] = words(400 + 16 * std::uint32_t(t), 16384);
    if (info.scatter_kv) call.paged_cache = {.slot_mapping = words(32, 4000), .page_size = 4};
    if (info.gather_kv) {
        call.paged_cache.source_mapping = words(40, 4000);
        call.paged_cache.page_size = 4;
    }
    if (info.tensor[Q].ops.scale_call) call.q_scale = 0.5f;
    if (info.tensor[Q].ops.scale_tokens) call.scale_tokens[Q] = words(56, 256);
    if (info.tensor[K].ops.scale_tokens) call.scale_tokens[K] = words(64, 256);
    for (const TensorIndex t : {K, V}) {
        const Ops& ops = info.tensor[t].ops;
        if (is_made(ops.store_scale)) call.scales_out[t] = words(560 + 40 * t, 32768);
        if (ops.scales_in) call.scales_in[t] = words(720 + 40 * t, 32768);
    }
    if (plan_parameters(info).value.bytes != 0) call.parameters = words(96, 16384);
    for (const TensorIndex t : every_tensor)
        if (info.tensor[t].ops.norm.weight_bound) call.norm_weight[t] = words(880 + 16 * t, 4096);
    if (info.two_parameter_sets) call.first_set_tokens = 2;
    if (info.token_count) call.token_count = words(940, 4);
    if (info.rotary_dim == 0) return made;
    if (info.positions == VKROPE_POSITIONS_IMPLICIT)
        call.positions = {.first = 7, .batch_stride = broadcast};
    else
        call.positions.ids = words(0, 4000);
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        made.plan = plan_cos_sin_cache(64, 64, 64, info.table).value;
        call.angles.sin = words(512, 32768);
    } else {
        made.plan = angle_plan(info.angles);
        made.plan.sections = info.sections;
    }
    made.plan.attention_factor = 1.5;
    call.gain = VKROPE_GAIN_OMIT;  // the table has the attention factor already
    if (info.angles == VKROPE_ANGLES_DIRECT_TEXTURE ||
        info.angles == VKROPE_ANGLES_FACTORED_TEXTURE)
        call.angles.view = host.view;
    else
        call.angles.buffer = words(128, 300000);
    if (info.angles != VKROPE_ANGLES_COMPUTED) call.out_of_range = words(48, 64);
    return made;
}

// Adds kernels that move keys.
void add_moves(const KernelHost& host, std::vector<Scene>& all) {
    KernelInfo info = base_info(VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_POSITIONS_IDS);
    info.tensor[Q] = {};
    info.scatter_kv = info.gather_kv = true;
    for (const TensorIndex t : {K, V})
        info.tensor[t] = {.in = VKROPE_E4M3FN,
                          .out = VKROPE_E4M3FN,
                          .head_dim = 128,
                          .heads = 2,
                          .ops = {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO,
                                  .store_scale_group = 64,
                                  .scale_type = VKROPE_SCALE_TYPE_UE8M0,
                                  .scales_in = true}};
    const auto in_place = [](Scene scene) {
        Call& call = scene.call;
        for (const TensorIndex t : {K, V}) call.in[t] = call.out[t];
        for (const TensorIndex t : {K, V})
            if (is_made(scene.info.tensor[t].ops.store_scale))
                call.scales_in[t] = call.scales_out[t];
        return scene;
    };
    all.push_back(in_place(scene_of("moves within a cache", host, info)));
    all.push_back(all.back());
    all.back().name = "rows that stay in their slots";
    all.back().call.paged_cache.source_mapping = {};
    KernelInfo packed = info;
    packed.scatter_kv = false;
    packed.tensor[K] = {.in = VKROPE_Q8_0, .head_dim = 128, .ops = {.hadamard_of_input = 32}};
    packed.tensor[V] = {};
    all.push_back(scene_of("moves to packed rows", host, packed));
    KernelInfo whole = packed;
    whole.gather_kv = false;
    whole.tensor[K] = {.in = VKROPE_INT8,
                       .out = VKROPE_INT8,
                       .head_dim = 128,
                       .heads = 2,
                       .ops = {.store_scale = VKROPE_STORE_SCALE_MADE, .scales_in = true}};
    whole.tensor[V] = {.in = VKROPE_Q4_0, .out = VKROPE_Q4_0, .head_dim = 128};
    all.push_back(in_place(scene_of("a whole cache in place", host, whole)));
    KernelInfo converted = {
        .tensor = {{}, info.tensor[K], info.tensor[V]}, .scatter_kv = true, .gather_kv = true};
    converted.tensor[K].in = VKROPE_INT4;
    converted.tensor[V] = {.in = VKROPE_IQ4_NL, .out = VKROPE_Q8_0, .head_dim = 128};
    all.push_back(scene_of("a cache to another", host, converted));
    all.push_back(all.back());
    all.back().name = "a cache to another, slots of V's own";
    PagedCache& cache = all.back().call.paged_cache;
    for (VkDescriptorBufferInfo* own : {&cache.v_slot_mapping, &cache.v_source_mapping})
        *own = {host.words, (own == &cache.v_slot_mapping ? 860u : 870u) << 10, 4000};
}

std::vector<Scene> scenes(const KernelHost& host) {
    std::vector<Scene> all;
    for (const AngleSource angles : {VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_FACTORED_TEXTURE,
                                     VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_BUFFER})
        for (const PositionSource positions : {VKROPE_POSITIONS_IMPLICIT, VKROPE_POSITIONS_IDS})
            all.push_back(scene_of("rotation alone", host, base_info(angles, positions)));
    KernelInfo axes = base_info(VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_POSITIONS_AXIS_IDS);
    axes.sections = {.axes = 3, .pairs = {16, 24, 24}};
    axes.tensor[K] = axes.tensor[V] = {};
    all.push_back(scene_of("axes, Q alone", host, axes));
    KernelInfo given = base_info(VKROPE_ANGLES_COS_SIN_CACHE, VKROPE_POSITIONS_IDS);
    given.tensor[Q] = {};
    given.scatter_kv = true;
    all.push_back(scene_of("cos_sin_cache, slots", host, given));
    KernelInfo steps = base_info(VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_POSITIONS_IDS);
    steps.tensor[K].out = VKROPE_E4M3FN;
    steps.tensor[Q].heads = 8, steps.tensor[K].heads = steps.tensor[V].heads = 2;
    steps.tensor[Q].ops = {
        .norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_HEAD_CHANNEL},
        .scale_call = true,
        .scale_tokens = true};
    steps.tensor[K].ops = {.scale_tokens = true, .store_scale = VKROPE_STORE_SCALE_MADE};
    all.push_back(scene_of("steps", host, steps));
    KernelInfo bound = steps;
    bound.tensor[Q].ops.norm.weight_bound = true;
    bound.tensor[Q].ops.norm.weight_type = VKROPE_F16;
    bound.tensor[V].ops.norm = {.kind = VKROPE_NORM_RMS,
                                .eps = 1e-6f,
                                .weight = VKROPE_PARAMETER_CHANNEL,
                                .weight_offset = 1,
                                .weight_bound = true};
    all.push_back(scene_of("bound weights", host, bound));
    bound.token_count = true;
    all.push_back(scene_of("bound weights, the number of tokens", host, bound));
    steps.scatter_kv = true;
    all.push_back(scene_of("steps, slots", host, steps));
    Scene without_k = all.back();
    without_k.name = "steps, slots, a call without K and V";
    for (const TensorIndex t : {K, V}) without_k.call.in[t] = without_k.call.out[t] = {};
    without_k.call.paged_cache = {};
    without_k.call.scale_tokens[K] = without_k.call.scales_out[K] = {};
    Scene own = all.back();
    own.name = "steps, slots of V's own";
    own.call.paged_cache.v_slot_mapping = {host.words, 860u << 10, 4000};
    all.push_back(without_k);
    all.push_back(own);
    steps.scatter_kv = false;
    steps.two_parameter_sets = true;
    all.push_back(scene_of("two sets of parameters, ids", host, steps));
    steps.positions = VKROPE_POSITIONS_IMPLICIT;
    all.push_back(scene_of("two sets of parameters", host, steps));
    steps.two_parameter_sets = false;
    steps.tensor[Q].ops.norm.channels = 32;
    steps.tensor[K].second_of = VKROPE_SECOND_RESULT;
    steps.tensor[V].second_of = VKROPE_SECOND_INPUT;
    steps.tensor[V].second = VKROPE_F16;
    all.push_back(scene_of("second destinations", host, steps));
    steps.pairing = VKROPE_PAIRING_NONE;
    steps.rotary_dim = 0;
    steps.angles = VKROPE_ANGLES_AUTOMATIC;
    steps.scatter_kv = true;
    all.push_back(scene_of("no rotation", host, steps));
    add_moves(host, all);
    return all;
}

// Returns, as text, everything that the dispatches from number `from` on receive.
std::string recorded_by(const KernelHost& host, std::size_t from) {
    std::string text;
    const std::vector<Command> all = dispatches(host);
    for (std::size_t i = from; i < all.size(); ++i) {
        const Command& command = all[i];
        text += fake().find(VK_OBJECT_TYPE_PIPELINE, command.pipeline, "test")->name + "\n";
        for (const std::uint32_t count : command.groups) text += std::to_string(count) + " ";
        for (const std::byte byte : command.pushed) text += std::to_string(int(byte)) + " ";
        for (const auto& [binding, of] : command.descriptors) {
            text += "\n" + std::to_string(binding) + ": " +
                    std::to_string(number_of(of.buffer.buffer)) + " " +
                    std::to_string(of.buffer.offset) + " " + std::to_string(of.buffer.range) + " " +
                    std::to_string(number_of(of.image.imageView));
        }
    }
    return text;
}

struct Outcome {
    Status status;
    std::string recorded;
};

Outcome record_with(const KernelHost& host, const Kernel* kernel, Call call,
                    const AngleTableLayout& plan) {
    if (call.angles.layout) call.angles.layout = &plan;
    const std::size_t before = dispatches(host).size();
    Outcome outcome = {record(host.commands, kernel, call), {}};
    outcome.recorded = recorded_by(host, before);
    return outcome;
}

bool names_field(const Status& status, const std::string& last) {
    return std::string(status.what).find(last) != std::string::npos;
}

// Fields that are only checked: they describe the caller's objects, and no dispatch reads them.
const std::set<std::string> only_checked = {"in[0].buffer_size", "out[0].buffer_size",
                                            "in[1].buffer_size", "out[1].buffer_size",
                                            "in[2].buffer_size", "out[2].buffer_size"};
// Hints, which every kernel accepts: they select how the work is done and never change its result.
const std::set<std::string> hints = {"mapping", "conversion", "tuning.lane_heads",
                                     "tuning.group_lanes", "tuning.group_tokens"};

}  // namespace

TEST_CASE("record: a field of a call that is set is used, or refused by name") {
    const KernelHost host({.debug_utils = true});
    std::set<std::string> used, refused;
    for (const Scene& scene : scenes(host)) {
        CAPTURE(std::string(scene.name));
        CAPTURE(int(scene.info.angles));
        CAPTURE(int(scene.info.positions));
        const auto kernel = own(create(host.ref, scene.info));
        REQUIRE_MESSAGE(kernel, kernel.status.what);
        Call base = scene.call;
        if (scene.info.rotary_dim != 0) base.angles.layout = &scene.plan;
        const Outcome usual = record_with(host, kernel.value.get(), base, scene.plan);
        REQUIRE_MESSAGE(usual.status, usual.status.what);
        REQUIRE(!usual.recorded.empty());
        for (std::size_t i = 0;; ++i) {
            Call call = base;
            AngleTableLayout plan = scene.plan;
            Fields fields(i);
            fields.some_buffer = host.words;
            fields.call(call, plan);
            if (fields.name.empty()) break;
            CAPTURE(fields.name);
            const Outcome now = record_with(host, kernel.value.get(), call, plan);
            if (!now.status) {
                refused.insert(fields.name);
                CHECK(now.status.code != VKROPE_ERROR_VULKAN);
                CHECK_MESSAGE(now.recorded.empty(), now.status.what);
                const bool named = names_field(now.status, fields.last) ||
                                   names_field(now.status,
                                               fields.name.substr(0, fields.name.find('.')));
                CHECK_MESSAGE(named, now.status.what);
            } else if (now.recorded != usual.recorded) {
                used.insert(fields.name);
            } else {
                const bool a_range = fields.last == "where" || fields.last == "ids" ||
                                     fields.last == "buffer" || fields.last == "sin";
                // V in place is not accessed if nothing changes its rows.
                const bool of_still_v = fields.last == "v_slot_mapping" &&
                                        keeps_rows(scene.info.tensor[V]) &&
                                        !scene.call.paged_cache.source_mapping.buffer &&
                                        scene.call.in[V].where.buffer ==
                                            scene.call.out[V].where.buffer;
                const bool excused = only_checked.count(fields.name) != 0 || a_range || of_still_v;
                CHECK_MESSAGE(excused, "accepted without an effect");
            }
        }
    }
    // Every field that some kernels do not use was refused by one kernel and used by another.
    for (const char* name : {"positions.first",
                             "positions.ids",
                             "positions.int64",
                             "positions.axis_stride",
                             "positions.token_stride",
                             "angles.view",
                             "angles.buffer",
                             "angles.sin",
                             "paged_cache.slot_mapping",
                             "paged_cache.source_mapping",
                             "paged_cache.v_slot_mapping",
                             "paged_cache.v_source_mapping",
                             "norm_weight[0]",
                             "norm_weight[2]",
                             "paged_cache.page_size",
                             "out_of_range",
                             "parameters",
                             "first_set_tokens",
                             "q_scale",
                             "scale_tokens[0]",
                             "scales_out[1]",
                             "scales_in[1]",
                             "in[0].token_stride",
                             "out[2].where"}) {
        CAPTURE(name);
        CHECK((used.count(name) != 0 || std::string(name) == "angles.view"));
        CHECK(refused.count(name) != 0);
    }
    check_no_faults();
}

TEST_CASE("record_positions: a field of a call that is set is used, or refused by name") {
    const KernelHost host({.debug_utils = true});
    const auto kernel = own(create_positions(host.ref));
    REQUIRE_MESSAGE(kernel, kernel.status.what);
    const auto words = [&](VkDeviceSize kib) {
        return VkDescriptorBufferInfo{host.words, kib << 10, 2048};
    };
    const PositionCall plain{.batch = 2, .tokens = 8, .out = words(0), .out_of_range = words(8)};
    std::vector<PositionCall> calls(8, plain);
    calls[1].offsets = words(16);
    calls[2].ids = words(24);
    calls[3].ids = words(24), calls[3].ids_f32 = true, calls[3].fraction_bits = 4;
    calls[4].batch = 1, calls[4].cu_seqlens = words(32), calls[4].sequences = 2;
    calls[4].cp_size = 2, calls[4].offsets = words(16);
    const auto factors = plan_query_scales({VKROPE_QUERY_SCALING_LLAMA4, 16, 0.1}, 500);
    REQUIRE(factors);
    calls[5].batch = 1, calls[5].query_lens = words(32), calls[5].sequences = 2;
    calls[6] = calls[5];
    for (PositionCall* call : {&calls[6], &calls[7]}) {
        call->seq_lens = words(40);
        call->block_table = words(48), call->pages = 4, call->cache_pages = 20;
        call->slot_mapping = words(56);
        call->query_scales = words(64), call->query_scale_layout = &factors.value;
        call->scale_tokens = words(72);
    }
    calls[6].token_count = words(80);
    const auto recorded_of = [&](const PositionCall& call, Status& status) {
        const std::size_t before = dispatches(host).size();
        status = record_positions(host.commands, kernel.value.get(), call);
        return recorded_by(host, before);
    };
    for (const PositionCall& base : calls) {
        CAPTURE(&base - calls.data());
        Status status;
        const std::string usual = recorded_of(base, status);
        REQUIRE_MESSAGE(status, status.what);
        for (std::size_t i = 0;; ++i) {
            PositionCall call = base;
            QueryScaleLayout layout = factors.value;
            if (call.query_scale_layout) call.query_scale_layout = &layout;
            Fields fields(i);
            fields.some_buffer = host.words;
            fields.position_call(call, layout);
            if (fields.name.empty()) break;
            CAPTURE(fields.name);
            const std::string now = recorded_of(call, status);
            if (!status) CHECK_MESSAGE(names_field(status, fields.last), status.what);
            if (status) CHECK_MESSAGE(now != usual, "accepted without an effect");
        }
    }
    check_no_faults();
}

// Returns the fields of an info that are flags.
std::vector<VkBool32*> flags_of(KernelInfo& info) {
    std::vector<VkBool32*> flags = {
        &info.scatter_kv,     &info.gather_kv,          &info.phase,
        &info.channel_angles, &info.two_parameter_sets, &info.token_count};
    for (TensorInfo& of : info.tensor)
        for (VkBool32* flag : {&of.ops.scale_call, &of.ops.scale_tokens, &of.ops.scales_in,
                               &of.ops.norm.round_between, &of.ops.norm.weight_bound})
            flags.push_back(flag);
    return flags;
}

TEST_CASE("kernel_info_equal: each field matters, and so it does to the hash") {
    const KernelHost host;
    for (const Scene& scene : scenes(host)) {
        CAPTURE(std::string(scene.name));
        const vkrope_kernel_info& info = scene.info;
        std::set<std::uint64_t> hashes = {vkrope_kernel_info_hash(&info)};
        for (std::size_t i = 0;; ++i) {
            KernelInfo changed = info;
            Fields fields(i);
            fields.kernel(changed);
            if (fields.name.empty()) break;
            CAPTURE(fields.name);
            const bool same = std::memcmp(&changed, &info, sizeof info) == 0;
            CHECK(vkrope_kernel_info_equal(&info, &changed) == same);
            CHECK(vkrope_kernel_info_equal(&changed, &info) == same);
            CHECK(hashes.insert(vkrope_kernel_info_hash(&changed)).second != same);
        }
    }
}

TEST_CASE("kernel_info_equal: defaults, flags that are true and zeros are equal") {
    const KernelHost host;
    const auto check_equal = [](const KernelInfo& a, const KernelInfo& b) {
        CHECK(InfoEqual()(a, b));
        CHECK(InfoHash()(a) == InfoHash()(b));
    };
    for (const Scene& scene : scenes(host)) {
        CAPTURE(std::string(scene.name));
        KernelInfo given = scene.info;
        for (VkBool32* flag : flags_of(given)) *flag *= 4;
        if (given.pairing_out == VKROPE_PAIRING_NONE) given.pairing_out = given.pairing;
        if (given.head_groups == 0) given.head_groups = 1;
        if (given.rotary_dim != 0 && given.windows[0].rotary_dim == 0)
            given.windows[0].rotary_dim = given.rotary_dim;
        for (TensorInfo& of : given.tensor) {
            if (of.head_dim != 0 && of.ops.scale == 0) of.ops.scale = 1;
            for (float* number : {&of.ops.norm.eps, &of.ops.clip, &of.ops.scale_floor})
                if (*number == 0) *number = -0.0f;
        }
        CHECK(std::memcmp(&given, &scene.info, sizeof given) != 0);
        check_equal(given, scene.info);
        KernelInfo negative = scene.info;
        for (TensorInfo& of : negative.tensor)
            if (of.ops.scale == 0) of.ops.scale = -0.0f;
        check_equal(negative, scene.info);
    }
    const KernelInfo info = base_info(VKROPE_ANGLES_COMPUTED, VKROPE_POSITIONS_IDS);
    for (const auto& [a, b] : {std::pair(&info, static_cast<const KernelInfo*>(nullptr)),
                               {nullptr, &info},
                               {nullptr, nullptr}})
        CHECK(!vkrope_kernel_info_equal(a, b));
    CHECK(vkrope_kernel_info_hash(nullptr) == 0);
}

TEST_CASE("create: a field of a kernel that is set has an effect, or is refused by name") {
    const KernelHost host({.debug_utils = true});
    // Returns the kernel's shaders and parameters and the commands of its call; sets `status` to
    // the error of create() or record().
    const auto made_of = [&](const KernelInfo& info, const Scene& scene, Status& status) {
        const std::size_t before = fake().shaders().size();
        const auto kernel = own(create(host.ref, info));
        std::string text;
        status = kernel.status;
        if (!kernel) return text;
        const ParameterLayout parameters = plan_parameters(info).value;
        text.assign(reinterpret_cast<const char*>(&parameters), sizeof parameters);
        for (std::size_t i = before; i < fake().shaders().size(); ++i) {
            const auto& words = fake().shaders()[i];
            text.append(reinterpret_cast<const char*>(words.data()), words.size() * 4);
        }
        Call call = scene.call;
        if (scene.info.rotary_dim != 0) call.angles.layout = &scene.plan;
        const Outcome now = record_with(host, kernel.value.get(), call, scene.plan);
        return text + now.status.what + now.recorded;
    };
    for (const Scene& scene : scenes(host)) {
        CAPTURE(std::string(scene.name));
        CAPTURE(int(scene.info.angles));
        CAPTURE(int(scene.info.positions));
        Status status;
        const std::string usual = made_of(scene.info, scene, status);
        REQUIRE_MESSAGE(status, status.what);
        for (std::size_t i = 0;; ++i) {
            KernelInfo info = scene.info;
            Fields fields(i);
            fields.kernel(info);
            if (fields.name.empty()) break;
            CAPTURE(fields.name);
            const std::string now = made_of(info, scene, status);
            if (!status) {
                // The error names the field, or the struct with it: a norm, or a tensor's ops.
                const std::string norm = fields.name.substr(0, fields.name.rfind('.'));
                const std::string ops = norm.substr(0, norm.rfind('.'));
                const bool named = names_field(status, fields.last) || names_field(status, norm) ||
                                   names_field(status, ops);
                CHECK_MESSAGE(named, status.what);
            } else if (now == usual) {
                CHECK_MESSAGE(hints.count(fields.name) != 0, "accepted without an effect");
            }
        }
    }
    check_no_faults();
}

}  // namespace vkrope::test
