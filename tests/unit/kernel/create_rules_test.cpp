// SPDX-License-Identifier: MIT
// Checks the rules of create(): each broken rule is an error that names the field, the value and
// the rule.
#include <algorithm>
#include <cmath>

#include "given.hpp"
#include "support/c_numbers.hpp"

namespace vkrope {

TEST_CASE("create: handles, widths and windows of the tensors") {
    const Broken rules[] = {
        {"device.instance", [](Given& g) { g.device.instance = nullptr; }},
        {"device.physical", [](Given& g) { g.device.physical = nullptr; }},
        {"device.device", [](Given& g) { g.device.device = nullptr; }},
        {"device.get_instance_proc_addr null",
         [](Given& g) { g.device.get_instance_proc_addr = nullptr; }},
        {"device.enabled 0x40", [](Given& g) { g.device.enabled = 64; }},
        {"rotary_dim 0", [](Given& g) { g.info.rotary_dim = 0; }},
        {"rotary_dim 15", [](Given& g) { g.info.rotary_dim = 15; }},
        {"tensor[0].head_dim tensor[1].head_dim 0",
         [](Given& g) { g.info.tensor[Q] = g.info.tensor[K] = {}; }},
        {"tensor[0].head_dim tensor[1].head_dim 0",
         [](Given& g) {
             g.info.tensor[Q] = g.info.tensor[K] = {};
             g.info.tensor[V].head_dim = 16;
         }},
        {"tensor[0].head_dim 1", [](Given& g) { g.info.tensor[Q].head_dim = 1; }},
        {"tensor[2].head_dim 1", [](Given& g) { g.info.tensor[V].head_dim = 1; }},
        {"tensor[1].head_dim 65535", [](Given& g) { g.info.tensor[K].head_dim = 65535; }},
        {"tensor[1].rotary_offset 1", [](Given& g) { g.info.tensor[K].rotary_offset = 1; }},
        {"tensor[0].rotary_offset", [](Given& g) { g.info.tensor[Q].rotary_offset = 4294967295u; }},
        {"tensor[2].rotary_offset 2",
         [](Given& g) {
             g.info.tensor[V].head_dim = 16;
             g.info.tensor[V].rotary_offset = 2;
         }},
        {"tensor[0].in e4m3fn f32 f16 bf16 out",
         [](Given& g) { g.info.tensor[Q].in = VKROPE_E4M3FN; }},
        {"pairing 0", [](Given& g) { g.info.pairing = VKROPE_PAIRING_NONE; }},
        {"angles VKROPE_ANGLES_AUTOMATIC vkrope_plan_angles",
         [](Given& g) { g.info.angles = VKROPE_ANGLES_AUTOMATIC; }},
        {"scatter_kv tensor[1].head_dim 0",
         [](Given& g) {
             g.info.scatter_kv = true;
             g.info.tensor[K] = {};
         }},
    };
    check_create({}, rules);
}

TEST_CASE("create and plan_parameters: every other field of an absent tensor is 0") {
    const std::pair<const char*, void (*)(TensorInfo & of)> fields[] = {
        {"in", [](TensorInfo& of) { of.in = VKROPE_F16; }},
        {"out", [](TensorInfo& of) { of.out = VKROPE_F16; }},
        {"rotary_offset", [](TensorInfo& of) { of.rotary_offset = 2; }},
        {"heads", [](TensorInfo& of) { of.heads = 2; }},
        {"ops", [](TensorInfo& of) { of.ops.bias = VKROPE_PARAMETER_CHANNEL; }},
        {"ops", [](TensorInfo& of) { of.ops.norm.eps = 1e-6f; }},
        {"ops", [](TensorInfo& of) { of.ops.clip = 1; }},
        {"ops", [](TensorInfo& of) { of.ops.scale = 1; }},  // the default of a present tensor
        {"ops", [](TensorInfo& of) { of.ops.scale_tokens = true; }},
        {"ops", [](TensorInfo& of) { of.ops.hadamard = 16; }},
        {"ops", [](TensorInfo& of) { of.ops.store_scale = VKROPE_STORE_SCALE_GIVEN; }},
        {"ops", [](TensorInfo& of) { of.ops.scale_floor = 1; }},
        {"ops", [](TensorInfo& of) { of.ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS; }},
        {"ops", [](TensorInfo& of) { of.ops.hadamard_of_input = 16; }},
        {"ops", [](TensorInfo& of) { of.ops.store_scale_group = 32; }},
        {"ops", [](TensorInfo& of) { of.ops.scale_type = VKROPE_SCALE_TYPE_UE8M0; }},
        {"ops", [](TensorInfo& of) { of.ops.scales_in = true; }},
    };
    for (const TensorIndex t : every_tensor) {
        for (const auto& [field, change] : fields) {
            Given given;
            given.info.tensor[t] = {};
            change(given.info.tensor[t]);
            const std::string name = names_of[t].name;
            test::check_invalid(given.created(), name + "." + field + " " + name + ".head_dim 0");
            test::check_invalid(plan_parameters(given.info).status, name + "." + field);
        }
    }
}

// Under the undefined-behaviour sanitizer this also shows that the library never treats such a
// number as an enumerator.
TEST_CASE("create: numbers that are not enumerators are refused, and named") {
    const auto refuses = [](const std::string& name, std::uint32_t first, const auto& field_of) {
        const auto check_number = [&](std::uint32_t number) {
            Given given;
            given.info.tensor[V] = given.info.tensor[K];
            test::put(field_of(given.info), number);
            test::check_error(given.created(), VKROPE_ERROR_INVALID_ARGUMENT,
                              name + " " + std::to_string(number));
        };
        check_number(first);
        for (const std::uint32_t number : test::no_enumerators) check_number(number);
    };
    refuses(
        "pairing", 3, [](KernelInfo & i) -> auto& { return i.pairing; });
    refuses(
        "pairing_out", 3, [](KernelInfo & i) -> auto& { return i.pairing_out; });
    refuses(
        "angles", 6, [](KernelInfo & i) -> auto& { return i.angles; });
    refuses(
        "positions", 3, [](KernelInfo & i) -> auto& { return i.positions; });
    refuses(
        "mapping", 3, [](KernelInfo & i) -> auto& { return i.mapping; });
    refuses(
        "conversion", 3, [](KernelInfo & i) -> auto& { return i.conversion; });
    refuses(
        "table", 3, [](KernelInfo & i) -> auto& { return i.table; });
    for (const TensorIndex which : {Q, K, V}) {
        const std::string tensor = "tensor[" + std::to_string(which) + "].";
        refuses(
            tensor + "in", 13, [=](KernelInfo & i) -> auto& { return i.tensor[which].in; });
        refuses(
            tensor + "out", 13, [=](KernelInfo & i) -> auto& { return i.tensor[which].out; });
    }
}

TEST_CASE("create: a tuning is for GPUs, and its numbers are in their ranges") {
    const auto with = [](const Tuning& tuning) {
        return [=](Given& g) { g.info.tuning = tuning; };
    };
    const Broken rules[] = {
        {"tuning.lane_heads 17 1 16", with({.lane_heads = 17})},
        {"tuning.group_lanes 31 32 1024", with({.group_lanes = 31})},
        {"tuning.group_lanes 96 power", with({.group_lanes = 96})},
        {"tuning.group_lanes 2048", with({.group_lanes = 2048})},
        {"tuning.group_tokens 3 power", with({.group_tokens = 3})},
        {"tuning.group_tokens 2048", with({.group_tokens = 2048})},
        {"tuning.lane_heads 2 tensor[0].ops.norm.span",
         [](Given& g) {
             g.info.tuning.lane_heads = 2;
             g.info.tensor[Q].ops.norm = {.kind = VKROPE_NORM_RMS, .span = VKROPE_NORM_SPAN_TOKEN};
         }},
        {"tuning mapping VKROPE_MAPPING_CPU",
         [](Given& g) {
             g.info.tuning.lane_heads = 2;
             g.info.mapping = VKROPE_MAPPING_CPU;
         }},
    };
    check_create({}, rules);
}

TEST_CASE("create: sections say which axis turns a pair") {
    const auto with = [](const Sections& sections) {
        return [=](Given& g) {
            g.info.positions = VKROPE_POSITIONS_AXIS_IDS;
            g.info.sections = sections;
        };
    };
    const Broken rules[] = {
        {"sections.axes 0", with({})},
        {"sections.axes 1", with({.axes = 1, .pairs = {8}})},
        {"sections.axes 9", with({.axes = 9})},
        {"sections.pairs 0", with({.axes = 2})},
        {"sections.pairs[2] 2", with({.axes = 2, .pairs = {4, 2, 2}})},
        {"sections.pairs[0] 40000", with({.axes = 2, .pairs = {40000, 2}})},
        {"sections.order 3", with({.order = SectionOrder(3), .axes = 2, .pairs = {4, 4}})},
        {"sections.order sum", with({.order = VKROPE_SECTIONS_SUM, .axes = 2})},
        {"sections.axes 2 3 4",
         with({.order = VKROPE_SECTIONS_INTERLEAVED, .axes = 2, .pairs = {4, 4}})},
        {"sections.leftover_axis 3", with({.order = VKROPE_SECTIONS_INTERLEAVED,
                                           .axes = 3,
                                           .pairs = {4, 2, 2},
                                           .leftover_axis = 3})},
        {"sections.axes 2", [](Given& g) { g.info.sections.axes = 2; }},
    };
    check_create({}, rules);
}

TEST_CASE("create: phases, head groups and angles of channels need sources that have them") {
    Given good;
    good.info.angles = VKROPE_ANGLES_COMPUTED;
    good.info.phase = true;
    good.info.head_groups = 4;
    good.info.tensor[Q].heads = 8;
    good.info.positions = VKROPE_POSITIONS_AXIS_IDS;
    good.info.sections = {.order = VKROPE_SECTIONS_SUM, .axes = 8};
    const Broken of_groups[] = {
        {"tensor[1].heads 6 head_groups 4", [](Given& g) { g.info.tensor[K].heads = 6; }},
        {"sections.pairs[1] 4", [](Given& g) { g.info.sections.pairs[1] = 4; }},
        {"head_groups 0 1 65535", [](Given& g) { g.info.head_groups = 0; }},
        {"head_groups 65536", [](Given& g) { g.info.head_groups = 65536; }},
        // create() refuses this once, instead of each call.
        {"head_groups 4 tensor[1].ops 1",
         [](Given& g) {
             g.info.tensor[K].ops.norm = {
                 .kind = VKROPE_NORM_RMS, .span = VKROPE_NORM_SPAN_TOKEN, .eps = 1e-6f};
         },
         VKROPE_ERROR_NOT_SUPPORTED},
    };
    check_create(good, of_groups);
    const Broken of_sources[] = {
        {"head_groups 2 3", [](Given& g) { g.info.head_groups = 2; }},
        {"channel_angles VK_TRUE VKROPE_ANGLES_COS_SIN_CACHE 3",
         [](Given& g) { g.info.channel_angles = true; }},
        {"phase VK_TRUE VKROPE_ANGLES_COS_SIN_CACHE",
         [](Given& g) {
             g.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
             g.info.phase = true;
         }},
        {"windows[1].rotary_dim 8 channel_angles",
         [](Given& g) {
             g.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
             g.info.channel_angles = true;
             g.info.windows[0] = {0, 8};
             g.info.windows[1] = {8, 8};
         }},
    };
    check_create({}, of_sources);
}

TEST_CASE("create: windows are even, ascending and disjoint, and add up to rotary_dim") {
    const auto with = [](std::vector<Window> windows) {
        return [=](Given& g) { std::copy(windows.begin(), windows.end(), g.info.windows); };
    };
    Given good;
    with({{0, 4}, {4, 12}})(good);
    const Broken rules[] = {
        {"windows[1].offset 2 windows[0] 4", with({{0, 4}, {2, 12}})},
        {"windows[0].rotary_dim 5", with({{0, 5}, {8, 11}})},
        {"rotary_dim 16 8", with({{0, 4}, {4, 4}})},
        {"tensor[0].rotary_offset 0 17 head_dim 16", with({{0, 8}, {9, 8}})},
        {"windows[2].rotary_dim 8 windows[1]", with({{0, 8}, {0, 0}, {8, 8}})},
        {"windows[1].rotary_dim 16 windows[0]", with({{0, 0}, {0, 16}})},
        {"windows[1].rotary_dim 0 16", with({{0, 16}, {16, 0}})},
    };
    check_create(good, rules);
}

namespace {

// Returns arguments with 64 channels of f32 in Q, K and V, and with a norm of Q.
Given normed() {
    Given given;
    given.info.rotary_dim = 64;
    given.info.tensor[Q] = given.info.tensor[K] = given.info.tensor[V] = {VKROPE_F32, VKROPE_F32,
                                                                          64, 0};
    given.info.tensor[Q].ops.norm = {.kind = VKROPE_NORM_RMS, .eps = 1e-6f};
    return given;
}

Norm& norm_of_q(Given& g) {
    return g.info.tensor[Q].ops.norm;
}

}  // namespace

TEST_CASE("create: rules of norms, biases, clip and scale") {
    const float nan = std::nanf("");
    const Broken rules[] = {
        {"tensor[0].ops.norm.eps 0 1e-20 1", [](Given& g) { norm_of_q(g).eps = 0; }},
        {"tensor[0].ops.norm.eps 9.99e-21 1e-20 1", [](Given& g) { norm_of_q(g).eps = 9.99e-21f; }},
        {"tensor[0].ops.norm.eps nan 1e-20 1", [=](Given& g) { norm_of_q(g).eps = nan; }},
        {"tensor[0].ops.norm.kind 3", [](Given& g) { norm_of_q(g).kind = NormKind(3); }},
        {"tensor[0].ops.norm.kind none", [](Given& g) { norm_of_q(g).kind = VKROPE_NORM_NONE; }},
        {"tensor[0].ops.norm.span 2", [](Given& g) { norm_of_q(g).span = NormSpan(2); }},
        {"tensor[0].ops.norm.place 2", [](Given& g) { norm_of_q(g).place = NormPlace(2); }},
        {"tensor[0].ops.norm.weight 3", [](Given& g) { norm_of_q(g).weight = ParameterShape(3); }},
        {"tensor[0].ops.norm.weight head_dim] tensor[0].heads 0",
         [](Given& g) { norm_of_q(g).weight = VKROPE_PARAMETER_HEAD_CHANNEL; }},
        {"tensor[0].ops.norm.weight_offset 1 norm.weight none",
         [](Given& g) { norm_of_q(g).weight_offset = 1; }},
        {"tensor[0].ops.norm.bias 1",
         [](Given& g) { norm_of_q(g).bias = VKROPE_PARAMETER_CHANNEL; }},
        {"tensor[0].ops.norm.span token tensor[0].heads 0",
         [](Given& g) { norm_of_q(g).span = VKROPE_NORM_SPAN_TOKEN; }},
        {"tensor[0].ops.norm.first_channel 4 norm.channels 0",
         [](Given& g) { norm_of_q(g).first_channel = 4; }},
        {"tensor[0].ops.norm.channels 61 first_channel 4 head_dim 64",
         [](Given& g) { norm_of_q(g).first_channel = 4, norm_of_q(g).channels = 61; }},
        {"tensor[0].ops.norm.channels 4294967295 head_dim 64",
         [](Given& g) { norm_of_q(g).first_channel = 4, norm_of_q(g).channels = ~0u; }},
        {"tensor[1].ops.norm.kind none",
         [](Given& g) { g.info.tensor[K].ops.norm = {.channels = 8}; }},
        {"tensor[1].ops.clip -1", [](Given& g) { g.info.tensor[K].ops.clip = -1; }},
        {"tensor[2].ops.scale nan", [=](Given& g) { g.info.tensor[V].ops.scale = nan; }},
        {"tensor[1].ops.scale_call true q_scale",
         [](Given& g) { g.info.tensor[K].ops.scale_call = true; }},
        {"two_parameter_sets VK_TRUE",
         [](Given& g) {
             g.info.tensor[Q].ops = {};
             g.info.two_parameter_sets = true;
         }},
        {"token_count VK_TRUE two_parameter_sets",
         [](Given& g) { g.info.two_parameter_sets = g.info.token_count = true; },
         VKROPE_ERROR_NOT_SUPPORTED},
        {"tensor[2].ops tensor[2].head_dim 0",
         [](Given& g) {
             g.info.tensor[V] = {};
             g.info.tensor[V].ops.bias = VKROPE_PARAMETER_CHANNEL;
         }},
        {"tensor[0].head_dim 4098 4096", [](Given& g) { g.info.tensor[Q].head_dim = 4098; },
         VKROPE_ERROR_NOT_SUPPORTED},
        {"tensor[0].heads 1025 1024",
         [](Given& g) {
             g.info.tensor[Q].heads = 1025;
             norm_of_q(g).span = VKROPE_NORM_SPAN_TOKEN;
         },
         VKROPE_ERROR_NOT_SUPPORTED},
    };
    check_create(normed(), rules);
}

TEST_CASE("create: rules of a norm's weight that a call binds") {
    Given good = normed();
    norm_of_q(good).weight = VKROPE_PARAMETER_CHANNEL;
    norm_of_q(good).weight_bound = true;
    norm_of_q(good).weight_type = VKROPE_BF16;
    const Broken rules[] = {
        {"tensor[0].ops.norm.weight_bound true norm.weight none",
         [](Given& g) { norm_of_q(g).weight = VKROPE_PARAMETER_NONE; }},
        {"tensor[0].ops.norm.weight_bound true two_parameter_sets",
         [](Given& g) { g.info.two_parameter_sets = true; }},
        {"tensor[0].ops.norm.weight_type bf16 weight_bound",
         [](Given& g) { norm_of_q(g).weight_bound = false; }},
        {"tensor[0].ops.norm.weight_type e4m3fn f32 f16 bf16",
         [](Given& g) { norm_of_q(g).weight_type = VKROPE_E4M3FN; }},
        {"tensor[0].ops.norm.weight_type 13",
         [](Given& g) { norm_of_q(g).weight_type = Element(13); }},
        {"tensor[1].ops.norm.kind none",
         [](Given& g) { g.info.tensor[K].ops.norm.weight_bound = true; }},
        {"tensor[1].ops.norm.kind none",
         [](Given& g) { g.info.tensor[K].ops.norm.weight_type = VKROPE_F16; }},
    };
    check_create(good, rules);
    CHECK(plan_parameters(good.info)->bytes == 0);
    norm_of_q(good).kind = VKROPE_NORM_LAYER;
    norm_of_q(good).bias = VKROPE_PARAMETER_CHANNEL;
    const ParameterLayout layout = plan_parameters(good.info).value;
    CHECK(layout.bytes == 64 * sizeof(float));
    CHECK(layout.tensor[Q].weight.shape == VKROPE_PARAMETER_NONE);
}

TEST_CASE("create: rules of Hadamard transforms, quantised outputs and their scales") {
    Given good = normed();
    good.info.scatter_kv = true;
    good.info.tensor[K].out = VKROPE_E4M3FN;
    good.info.tensor[K].heads = 3;
    good.info.tensor[K].ops = {.hadamard = 64,
                               .store_scale = VKROPE_STORE_SCALE_MADE,
                               .scale_floor = 1e-6f,
                               .scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS};
    const auto stored = [](Element out, StoreScale scale) {
        return [=](Given& g) {
            g.info.tensor[V].out = out;
            g.info.tensor[V].ops.store_scale = scale;
        };
    };
    const Broken rules[] = {
        {"tensor[2].head_dim 80 32 tensor[2].out 32",
         [](Given& g) {
             g.info.tensor[V].head_dim = 80;
             g.info.tensor[V].out = VKROPE_Q8_0;
         }},
        {"tensor[1].ops.hadamard 1 2 512", [](Given& g) { g.info.tensor[K].ops.hadamard = 1; }},
        {"tensor[1].ops.hadamard 3 2 512", [](Given& g) { g.info.tensor[K].ops.hadamard = 3; }},
        {"tensor[1].ops.hadamard 48 2 512", [](Given& g) { g.info.tensor[K].ops.hadamard = 48; }},
        {"tensor[1].ops.hadamard 1024 2 512",
         [](Given& g) { g.info.tensor[K].ops.hadamard = 1024; }},
        {"tensor[1].ops.hadamard 128 head_dim 64",
         [](Given& g) { g.info.tensor[K].ops.hadamard = 128; }},
        {"tensor[2].ops.store_scale 5", stored(VKROPE_INT8, StoreScale(5))},
        {"tensor[2].ops.store_scale 1 e4m3fn e5m2 int8 tensor[2].out q8_0",
         stored(VKROPE_Q8_0, VKROPE_STORE_SCALE_GIVEN)},
        {"tensor[2].ops.store_scale 3 tensor[2].heads 0",
         stored(VKROPE_INT8, VKROPE_STORE_SCALE_MADE)},
        {"tensor[2].ops.store_scale 4 tensor[2].heads 0",
         stored(VKROPE_INT8, VKROPE_STORE_SCALE_MADE_POWER_OF_TWO)},
        {"tensor[2].ops.store_scale 2 tensor[2].heads 0",
         stored(VKROPE_E5M2, VKROPE_STORE_SCALE_GIVEN_HEAD)},
        {"tensor[2].ops.scale_floor 3e+38 2^127",
         [](Given& g) {
             g.info.tensor[V].out = VKROPE_INT8;
             g.info.tensor[V].heads = 2;
             g.info.tensor[V].ops = {.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO,
                                     .scale_floor = 3e38f};
         }},
        {"tensor[2].ops.scale_floor 0.5 0 store_scale",
         [](Given& g) { g.info.tensor[V].ops.scale_floor = 0.5f; }},
        {"tensor[1].ops.scale_layout 2",
         [](Given& g) { g.info.tensor[K].ops.scale_layout = vkrope_scale_layout(2); }},
        {"tensor[2].ops.scale_layout 1",
         [](Given& g) { g.info.tensor[V].ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS; }},
        {"tensor[2].ops tensor[2].head_dim 0",
         [](Given& g) {
             g.info.tensor[V] = {};
             g.info.tensor[V].ops.hadamard = 2;
         }},
    };
    check_create(good, rules);
}

TEST_CASE("create: a kernel without rotation has no field of a rotation") {
    Given good;
    good.info = completed({.tensor = {{VKROPE_F16, VKROPE_Q8_0, 32}, {VKROPE_F16, VKROPE_F16, 16}},
                           .scatter_kv = true});
    const Broken rules[] = {
        {"pairing 1 rotary_dim 0", [](Given& g) { g.info.pairing = VKROPE_HALF_SPLIT; }},
        {"pairing_out 2 rotary_dim 0", [](Given& g) { g.info.pairing_out = VKROPE_INTERLEAVED; }},
        {"angles 2 rotary_dim 0", [](Given& g) { g.info.angles = VKROPE_ANGLES_COMPUTED; }},
        {"positions 1 rotary_dim 0", [](Given& g) { g.info.positions = VKROPE_POSITIONS_IDS; }},
        {"tensor[0].rotary_offset 2 rotary_dim 0",
         [](Given& g) { g.info.tensor[Q].rotary_offset = 2; }},
        {"tensor[1].rotary_offset 2", [](Given& g) { g.info.tensor[K].rotary_offset = 2; }},
        {"rotary_dim 0 windows 8",
         [](Given& g) {
             g.info.windows[0] = {0, 8};
         }},
        {"sections.axes 3 positions", [](Given& g) { g.info.sections.axes = 3; }},
        {"head_groups 2 rotary_dim 0", [](Given& g) { g.info.head_groups = 2; }},
        {"phase rotary_dim 0", [](Given& g) { g.info.phase = VK_TRUE; }},
        {"channel_angles rotary_dim 0", [](Given& g) { g.info.channel_angles = VK_TRUE; }},
        {"table f16", [](Given& g) { g.info.table = VKROPE_F16; }},
        {"tensor[0].head_dim tensor[1].head_dim 0",
         [](Given& g) {
             g.info.tensor[V] = g.info.tensor[K];
             g.info.tensor[Q] = g.info.tensor[K] = {};
             g.info.scatter_kv = false;
         }},
    };
    check_create(good, rules);
}

TEST_CASE("create: rules of second destinations") {
    Given good;
    good.info.tensor[K].heads = 2;
    good.info.tensor[K].second_of = VKROPE_SECOND_RESULT;
    good.info.tensor[K].second = VKROPE_BF16;
    const Broken rules[] = {
        {"tensor[1].second_of 3 2", [](Given& g) { g.info.tensor[K].second_of = SecondOf(3); }},
        {"tensor[1].second bf16 second_of none",
         [](Given& g) { g.info.tensor[K].second_of = VKROPE_SECOND_NONE; }},
        {"tensor[1].second e4m3fn", [](Given& g) { g.info.tensor[K].second = VKROPE_E4M3FN; }},
        {"tensor[1].second_of 1 tensor[1].heads", [](Given& g) { g.info.tensor[K].heads = 0; }},
        {"tensor[1].heads 65536 65535", [](Given& g) { g.info.tensor[K].heads = 65536; },
         VKROPE_ERROR_NOT_SUPPORTED},
        {"tensor[0].second_of 2 K V",
         [](Given& g) { g.info.tensor[Q].second_of = VKROPE_SECOND_INPUT; }},
        {"tensor[2].second_of tensor[2].head_dim 0",
         [](Given& g) { g.info.tensor[V].second_of = VKROPE_SECOND_INPUT; }},
    };
    check_create(good, rules);
}

TEST_CASE("create: any VkBool32 but 0 is true") {
    KernelInfo given;
    given.scatter_kv = given.gather_kv = given.phase = given.channel_angles = 2;
    given.two_parameter_sets = given.token_count = 2;
    const KernelInfo info = completed(given);
    for (const VkBool32 flag : {info.scatter_kv, info.gather_kv, info.phase, info.channel_angles,
                                info.two_parameter_sets, info.token_count})
        CHECK(flag == VK_TRUE);
}

}  // namespace vkrope
