// SPDX-License-Identifier: MIT
#include "verify/random_kernel.hpp"

#include <algorithm>

namespace vkrope::verify {
namespace {

// Draws up to 4 windows of a row, aligned to `unit`. Returns the end of the last window.
std::uint32_t draw_windows(Random& random, KernelInfo& info, std::uint32_t unit, bool is_long) {
    if (is_long) {
        info.rotary_dim = random.any_of({48u, 64u, 128u, 264u});
        return info.rotary_dim;
    }
    const std::uint32_t windows = info.channel_angles || random.one_in(2) ? 1 : 1 + random.below(4);
    const bool are_given = windows > 1 || random.one_in(4);
    std::uint32_t end = 0;
    for (std::uint32_t i = 0; i < windows; ++i) {
        const std::uint32_t offset = end + (are_given ? unit * random.below(3) : 0);
        const std::uint32_t rotary_dim = rounded_up(2 * (1 + random.below(windows == 1 ? 16 : 4)),
                                                    std::max(unit, 2u));
        if (are_given) info.windows[i] = {offset, rotary_dim};
        info.rotary_dim += rotary_dim;
        end = offset + rotary_dim;
    }
    return end;
}

// Draws the numbers of channels in rows of Q, K and V.
void draw_rows(Random& random, KernelInfo& info, bool with_ops) {
    const bool is_long = random.one_in(with_ops ? 8 : 4);
    const std::uint32_t unit = is_long ? 16 : random.any_of({1u, 2u, 4u, 8u});
    const std::uint32_t end = draw_windows(random, info, unit, is_long);
    const bool of_blocks = with_ops && random.one_in(2);
    const std::uint32_t steps = random.one_in(8) ? 60 : is_long ? 9 : 4;
    const auto draw = [&](TensorInfo& tensor) {
        tensor.rotary_offset = random.one_in(2) ? 0 : unit * random.below(steps);
        tensor.head_dim = tensor.rotary_offset + end +
                          (random.one_in(2) ? 0 : unit * random.below(steps));
        if (of_blocks) tensor.head_dim = rounded_up(tensor.head_dim, random.one_in(3) ? 128 : 32);
    };
    const std::uint32_t present = random.below(6);
    if (present != 1) draw(info.tensor[Q]);
    if (present == 0 || (present > 2 && random.one_in(2))) {
        draw(info.tensor[K]);
    } else if (present != 2) {
        info.tensor[K] = info.tensor[Q];
        if (present == 1) draw(info.tensor[K]);
    }
    if (random.one_in(2)) {
        const std::uint32_t of_k = info.tensor[K].head_dim;
        const std::uint32_t own = of_blocks ? 32 * (1 + random.below(4)) : 2 + random.below(40);
        info.tensor[V].head_dim = of_k != 0 && !random.one_in(3) ? of_k : own;
    }
}

Element any_quantised(Random& random, std::uint32_t head_dim) {
    for (;;) {
        const auto drawn = Element(VKROPE_E4M3FN + random.below(VKROPE_INT4 - VKROPE_BF16));
        if (head_dim % block_channels(drawn) == 0) return drawn;
    }
}

// Draws element types. Half of the outputs have the input's type, so in-place calls are common.
void draw_elements(Random& random, KernelInfo& info, bool with_ops) {
    const bool all_alike = random.one_in(2);
    const TensorInfo* first = nullptr;
    for (const TensorIndex which : every_tensor) {
        TensorInfo& of = info.tensor[which];
        if (of.head_dim == 0) continue;
        of.in = random.up_to(VKROPE_BF16);
        of.out = random.one_in(2) ? of.in : random.up_to(VKROPE_BF16);
        if (with_ops && random.one_in(3)) of.out = any_quantised(random, of.head_dim);
        if (all_alike && first != nullptr) {
            of.in = first->in;
            of.out = of.head_dim % block_channels(first->out) == 0 ? first->out : of.in;
        }
        first = first == nullptr ? &of : first;
    }
}

vkrope_parameter_shape any_shape(Random& random) {
    return random.up_to(VKROPE_PARAMETER_HEAD_CHANNEL);
}

void draw_norm(Random& random, Norm& norm, bool may_span_token) {
    norm.kind = random.up_to(VKROPE_NORM_LAYER);
    if (norm.kind == VKROPE_NORM_NONE) return;
    norm.span = may_span_token ? random.up_to(VKROPE_NORM_SPAN_TOKEN) : VKROPE_NORM_SPAN_HEAD;
    norm.place = random.up_to(VKROPE_NORM_PLACE_AFTER);
    norm.eps = random.any_of({1e-6f, 1e-5f, 1e-20f, 1.0f});
    norm.weight = any_shape(random);
    norm.weight_offset = norm.weight != VKROPE_PARAMETER_NONE ? random.below(2) : 0;
    norm.bias = norm.kind == VKROPE_NORM_LAYER ? any_shape(random) : VKROPE_PARAMETER_NONE;
    norm.round_between = random.one_in(4);
}

void draw_ops(Random& random, KernelInfo& info, TensorIndex which) {
    TensorInfo& of = info.tensor[which];
    Ops& ops = of.ops;
    ops.bias = any_shape(random);
    draw_norm(random, ops.norm, info.head_groups < 2 || which == V);
    // The sums over long rows of many heads are more steps than a lane of a processor takes.
    const std::uint32_t sums = ops.norm.kind == VKROPE_NORM_LAYER ? 3 : 1;
    if (info.mapping != VKROPE_MAPPING_GPU && sums * of.head_dim > 100)
        ops.norm.span = VKROPE_NORM_SPAN_HEAD;
    ops.clip = random.any_of({0.0f, 1.5f});
    ops.scale = random.any_of({0.0f, 0.3f, -2.0f});
    ops.scale_call = which == Q && random.one_in(2);
    ops.scale_tokens = random.one_in(3);
    if (random.one_in(3)) {
        const std::uint32_t largest = of.head_dim & (~of.head_dim + 1);  // a power of 2
        ops.hadamard = largest < 2 ? 0 : std::min(largest, 2u << random.below(9));
    }
}

void draw_store_scale(Random& random, KernelInfo& info, TensorIndex which) {
    TensorInfo& of = info.tensor[which];
    Ops& ops = of.ops;
    const auto has_scale = [](Element type) { return is_quantised(type) && !has_blocks(type); };
    ops.scales_in = has_scale(of.in) && !random.one_in(3);
    if (has_scale(of.out)) ops.store_scale = random.up_to(VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
    if (ops.scales_in && of.in == of.out && !random.one_in(4))
        ops.store_scale = random.any_of(
            {VKROPE_STORE_SCALE_MADE, VKROPE_STORE_SCALE_MADE_POWER_OF_TWO});
    const bool made = is_made(ops.store_scale);
    if (made) ops.scale_floor = random.any_of({0.0f, 0.01f});
    if (!made && !ops.scales_in) return;
    for (const std::uint32_t group : {32u, 64u, 128u})
        if (of.head_dim % group == 0 && !random.one_in(3)) ops.store_scale_group = group;
    if (!made || ops.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO)
        ops.scale_type = random.up_to(VKROPE_SCALE_TYPE_UE8M0);
    if (which != Q && ((made && info.scatter_kv) || (ops.scales_in && info.gather_kv)))
        ops.scale_layout = random.up_to(VKROPE_SCALE_LAYOUT_PAGES_HEADS);
}

// Gives K and V of a kernel that moves keys any types, mostly one for input and output.
void draw_cached_elements(Random& random, KernelInfo& info) {
    for (const TensorIndex which : {K, V}) {
        TensorInfo& of = info.tensor[which];
        if (of.head_dim == 0) continue;
        const auto draw = [&] {
            return random.one_in(4) ? random.up_to(VKROPE_BF16)
                                    : any_quantised(random, of.head_dim);
        };
        of.out = draw();
        of.in = random.one_in(4) ? draw() : of.out;
    }
}

// Draws the transform that the rows of a cache have, mostly that of the output, too.
void draw_transform_of_input(Random& random, const KernelInfo& info, TensorInfo& of) {
    Ops& ops = of.ops;
    const std::uint32_t largest = of.head_dim & (~of.head_dim + 1);  // a power of 2
    if (largest < 2 || output_pairing(info) != info.pairing || random.one_in(2)) return;
    ops.norm.span = VKROPE_NORM_SPAN_HEAD;
    ops.hadamard_of_input = std::min(largest, 2u << random.below(9));
    if (!random.one_in(3)) ops.hadamard = ops.hadamard_of_input;
}

bool needs_heads(const Ops& ops) {
    return ops.scales_in || ops.bias == VKROPE_PARAMETER_HEAD_CHANNEL ||
           ops.norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL ||
           ops.norm.bias == VKROPE_PARAMETER_HEAD_CHANNEL ||
           ops.norm.span == VKROPE_NORM_SPAN_TOKEN ||
           ops.store_scale >= VKROPE_STORE_SCALE_GIVEN_HEAD;
}

bool has_parameters(const Ops& ops) {
    return ops.bias != VKROPE_PARAMETER_NONE || ops.norm.weight != VKROPE_PARAMETER_NONE ||
           ops.norm.bias != VKROPE_PARAMETER_NONE || ops.store_scale == VKROPE_STORE_SCALE_GIVEN ||
           ops.store_scale == VKROPE_STORE_SCALE_GIVEN_HEAD;
}

void draw_sections(Random& random, KernelInfo& info) {
    Sections& sections = info.sections;
    sections.order = info.angles == VKROPE_ANGLES_COMPUTED
                         ? random.up_to(VKROPE_SECTIONS_SUM)
                         : random.up_to(VKROPE_SECTIONS_INTERLEAVED);
    if (sections.order == VKROPE_SECTIONS_INTERLEAVED) {
        sections.axes = 3 + random.below(2);
        sections.leftover_axis = random.below(sections.axes);
    } else {
        sections.axes = 2 + random.below(max_axes - 1);
    }
    if (sections.order != VKROPE_SECTIONS_SUM) {
        for (std::uint32_t axis = 0; axis < sections.axes; ++axis)
            sections.pairs[axis] = random.below(5);
        sections.pairs[random.below(sections.axes)] += 1;
    }
}

bool may_be_latent(const Unplaced& operation) {
    return operation.info.tensor[K].ops.norm.kind != VKROPE_NORM_NONE &&
           operation.shape.groups < 10 && operation.shape.q_heads() < 46;
}

// Gives K the latent row of MLA, 512 channels with a norm and 64 that rotate, and Q a row for it.
void make_latent(KernelInfo& info) {
    for (vkrope_window& window : info.windows) window = {};
    info.rotary_dim = 64;
    for (const auto& [which, before] : {std::pair(Q, 128u), std::pair(K, 512u)}) {
        TensorInfo& of = info.tensor[which];
        if (of.head_dim == 0) continue;
        of.head_dim = before + info.rotary_dim;
        of.rotary_offset = before;
        of.ops.hadamard = std::min(of.ops.hadamard, 64u);
        of.ops.hadamard_of_input = std::min(of.ops.hadamard_of_input, 64u);
        of.ops.store_scale_group = std::min(of.ops.store_scale_group, 64u);
    }
    info.tensor[K].ops.norm.channels = info.tensor[K].rotary_offset;
}

// Draws the part of a row that its norm takes: the channels before the rotation, or any.
void draw_part(Random& random, TensorInfo& of) {
    Norm& norm = of.ops.norm;
    if (of.rotary_offset != 0 && random.one_in(3)) {
        norm.channels = of.rotary_offset;
        return;
    }
    const std::uint32_t unit = random.any_of({1u, 1u, 2u, 4u, 8u});
    if (of.head_dim < unit) return;
    norm.channels = unit * (1 + random.below(of.head_dim / unit));
    norm.first_channel = unit * random.below((of.head_dim - norm.channels) / unit + 1);
}

void draw_second(Random& random, TensorInfo& of, std::uint32_t heads) {
    of.second_of = SecondOf(1 + random.below(VKROPE_SECOND_INPUT));
    of.second = random.up_to(VKROPE_BF16);
    of.heads = heads;
}

void bind_weight(Random& random, Norm& norm) {
    norm.weight_bound = VK_TRUE;
    norm.weight_type = random.up_to(VKROPE_BF16);
}

}  // namespace

void leave_out_rotation(KernelInfo& info) {
    const KernelInfo rotation = info;
    info = {};
    for (const TensorIndex which : every_tensor) {
        info.tensor[which] = rotation.tensor[which];
        info.tensor[which].rotary_offset = 0;
    }
    info.mapping = rotation.mapping;
    info.tuning = rotation.tuning;
    info.conversion = rotation.conversion;
    info.scatter_kv = rotation.scatter_kv;
    info.gather_kv = rotation.gather_kv;
    info.two_parameter_sets = rotation.two_parameter_sets;
    info.token_count = rotation.token_count;
}

void draw_heads(Random& random, Unplaced& operation) {
    Shape& shape = operation.shape;
    const std::uint32_t unit = vkrope::head_groups_of(operation.info);
    std::uint32_t longest = 0;
    for (const TensorInfo& of : operation.info.tensor) longest = std::max(longest, of.head_dim);
    const std::uint32_t many = longest <= 64 && random.one_in(6) ? 24 : 1;
    shape.groups = unit * (1 + random.below(3 * many));
    shape.q_per_group = 1 + random.below(many == 1 ? 3 : 9);
    shape.own_q_heads = random.one_in(3) ? unit * (1 + random.below(many == 1 ? 5 : 600 / unit))
                                         : 0;
    shape.own_v_heads = random.one_in(3) ? 1 + random.below(4 * many) : 0;
}

// Draws each field as 0 or from its range, but for workgroups that take long to compile.
void draw_tuning(Random& random, KernelInfo& info) {
    const auto power = [](std::uint32_t drawn, std::uint32_t first) {
        return drawn == 0 ? 0 : first << (drawn - 1);
    };
    const std::uint32_t heads = random.below(17), lanes = random.below(5), tokens = random.below(5);
    const bool of_token = std::any_of(
        std::begin(info.tensor), std::end(info.tensor),
        [](const TensorInfo& of) { return of.ops.norm.span == VKROPE_NORM_SPAN_TOKEN; });
    info.tuning = {of_token ? 0 : heads, power(lanes, 32), power(tokens, 1)};
}

void draw_kernel(Random& random, Unplaced& operation) {
    KernelInfo& info = operation.info;
    const bool moves = random.one_in(6), with_ops = moves || random.one_in(2);
    info.pairing = random.any_of({VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED});
    info.pairing_out = random.one_in(3) ? random.up_to(VKROPE_INTERLEAVED) : VKROPE_PAIRING_NONE;
    info.angles = AngleSource(1 + random.below(VKROPE_ANGLES_COS_SIN_CACHE));
    info.positions = random.up_to(VKROPE_POSITIONS_AXIS_IDS);
    info.mapping = random.up_to(VKROPE_MAPPING_CPU);
    info.conversion = random.up_to(VKROPE_CONVERSION_INTEGER);
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        info.table = random.up_to(VKROPE_BF16);
        info.channel_angles = random.one_in(2);
    }
    info.phase = info.angles != VKROPE_ANGLES_COS_SIN_CACHE && random.one_in(3);
    if (info.angles == VKROPE_ANGLES_COMPUTED && random.one_in(2))
        info.head_groups = 1 + random.below(3);
    if (info.positions == VKROPE_POSITIONS_AXIS_IDS) draw_sections(random, info);
    draw_rows(random, info, with_ops);
    if (moves) {
        if (!is_present(info, K)) info.tensor[K] = info.tensor[Q];
        info.tensor[Q] = {};
        info.gather_kv = !random.one_in(3);
    }
    info.scatter_kv = is_present(info, K) && random.one_in(2);
    draw_elements(random, info, with_ops);
    if (moves) draw_cached_elements(random, info);
    draw_heads(random, operation);
    const std::uint32_t heads[] = {operation.shape.q_heads(), operation.shape.groups,
                                   operation.shape.v_heads()};
    const bool know_heads = random.one_in(2);
    bool parameters = false;
    for (const TensorIndex which : every_tensor) {
        if (!is_present(info, which)) continue;
        if (moves ? random.one_in(4) : with_ops && !random.one_in(4)) draw_ops(random, info, which);
        if (moves) draw_transform_of_input(random, info, info.tensor[which]);
        draw_store_scale(random, info, which);
        const Ops& ops = info.tensor[which].ops;
        info.tensor[which].heads = know_heads || needs_heads(ops) ? heads[which] : 0;
        parameters = parameters || has_parameters(ops);
    }
    info.two_parameter_sets = parameters && random.one_in(3);
    if (may_be_latent(operation) && random.one_in(8)) make_latent(info);
    for (const TensorIndex which : every_tensor)
        if (info.tensor[which].ops.norm.kind != VKROPE_NORM_NONE && random.one_in(3))
            draw_part(random, info.tensor[which]);
    for (const TensorIndex which : {K, V})
        if (is_present(info, which) && !moves && random.one_in(5))
            draw_second(random, info.tensor[which], heads[which]);
    if (random.one_in(moves ? 4 : 6)) leave_out_rotation(info);
    if (!info.two_parameter_sets && random.one_in(4))
        for (TensorInfo& of : info.tensor)
            if (of.ops.norm.weight != VKROPE_PARAMETER_NONE && !random.one_in(4))
                bind_weight(random, of.ops.norm);
    if (info.mapping == VKROPE_MAPPING_GPU && random.one_in(3)) draw_tuning(random, info);
}

}  // namespace vkrope::verify
