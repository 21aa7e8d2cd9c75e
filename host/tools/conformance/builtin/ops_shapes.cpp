// SPDX-License-Identifier: MIT
// Checks ops and quantised outputs in calls of unusual sizes: long rows, many heads, few tokens,
// tensors of different shapes, calls in parts, two sets of parameters, and caches in which K and V
// share rows. All run at Level::full, since their kernels take long to compile.
#include "base/meaning.hpp"
#include "conformance/builtin/every_way.hpp"

namespace vkrope::conformance {
namespace {

constexpr Mapping mappings[] = {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU};
constexpr Norm of_head = {
    .kind = VKROPE_NORM_RMS, .eps = 1e-6f, .weight = VKROPE_PARAMETER_CHANNEL};
constexpr Norm after_of_head = {.kind = VKROPE_NORM_RMS,
                                .place = VKROPE_NORM_PLACE_AFTER,
                                .eps = 1e-6f,
                                .weight = VKROPE_PARAMETER_HEAD_CHANNEL};
constexpr Norm of_token = {.kind = VKROPE_NORM_RMS,
                           .span = VKROPE_NORM_SPAN_TOKEN,
                           .eps = 1e-6f,
                           .weight = VKROPE_PARAMETER_HEAD_CHANNEL};
constexpr Ops made = {.store_scale = VKROPE_STORE_SCALE_MADE};
// Limits that calls of more than 100 tokens exceed.
constexpr ReportedLimits few_workgroups = {.workgroups_x = 7, .workgroups_y = 2, .workgroups_z = 7};
constexpr ReportedLimits short_range = {.storage_range = 1u << 14};

Trial sized(Trial trial, std::uint32_t batch, std::uint32_t tokens, std::uint32_t q_heads,
            std::uint32_t k_heads) {
    trial.shape = {.batch = batch, .tokens = tokens, .groups = k_heads, .own_q_heads = q_heads};
    trial.max_position = 9 + tokens;
    trial.info.angles = VKROPE_ANGLES_FACTORED_TEXTURE;  // not limited by short ranges
    for (TensorInfo& info : trial.info.tensor) info.heads = k_heads;
    trial.info.tensor[Q].heads = q_heads;
    return trial;
}

// Runs the trial on both mappings, without and with each of the limits, which must split the call
// into several dispatches on at least one mapping.
void hold_parts(Test& test, Trial trial, std::initializer_list<ReportedLimits> limits) {
    trial.info.mapping = VKROPE_MAPPING_CPU;
    const Rotated whole = test.run(trial);
    trial.info.mapping = VKROPE_MAPPING_GPU;
    test.hold(same_bits(test.run(trial), whole), "the mapping of GPUs gives different bits");
    for (const ReportedLimits& of : limits) {
        std::uint64_t most = 0;
        for (const Mapping mapping : mappings) {
            trial.info.mapping = mapping;
            trial.limits = of;
            const Rotated parts = test.run(trial);
            test.hold(same_bits(parts, whole), "a call in {} dispatches gives different bits",
                      parts.dispatches);
            most = std::max(most, parts.dispatches);
        }
        test.hold(most > whole.dispatches, "the call was not split");
    }
}

// ---- Sizes that the other checks do not reach ----

void hold_long_rows(Test& test) {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        Trial trial = sized(three_alike(element, element, 1024, 64, 512), 1, 2, 2, 1);
        trial.info.tensor[Q].ops.norm = of_head;
        trial.info.tensor[K].ops.norm = after_of_head;
        run_every_way(test, trial);
    }
    Trial longest = sized(three_alike(VKROPE_BF16, VKROPE_BF16, 4096, 64), 1, 2, 1, 1);
    longest.info.tensor[K] = longest.info.tensor[V] = {};
    longest.info.tensor[Q].ops.norm = of_head;
    run_every_way(test, longest);
    Trial stored = sized(three_alike(VKROPE_F32, VKROPE_Q8_0, 1024, 64, 512), 1, 2, 2, 1);
    stored.info.tensor[Q].ops = {.norm = of_head, .hadamard = 512};
    stored.info.tensor[K].out = VKROPE_E5M2;
    stored.info.tensor[K].ops = made;
    run_every_way(test, stored);
}

// On a CPU, a lane processes the norms of 64 heads at a time.
void hold_many_heads(Test& test) {
    Trial trial = sized(three_alike(VKROPE_F32, VKROPE_F32, 16, 8), 1, 3, 130, 70);
    trial.info.tensor[Q].ops.norm = trial.info.tensor[V].ops.norm = of_token;
    trial.info.tensor[K].ops.norm = of_token;
    trial.info.tensor[K].ops.norm.place = VKROPE_NORM_PLACE_AFTER;
    run_every_way(test, trial);
}

// On a CPU, eight lanes share the heads of a token if there are at most 16 tokens.
void hold_few_tokens(Test& test) {
    for (const auto& [tokens, q_heads, k_heads] :
         {std::array{16u, 9u, 8u}, {17u, 9u, 8u}, {2u, 520u, 70u}}) {
        Trial trial = sized(three_alike(VKROPE_F16, VKROPE_F16, 24, 16), 2, tokens, q_heads,
                            k_heads);
        trial.info.tensor[Q].ops.norm = trial.info.tensor[K].ops.norm = of_head;
        run_every_way(test, trial);
    }
}

// The heads of a token need several workgroups or iterations, some of them without K and V. With
// 1100 tokens a lane processes several heads.
void hold_many_stored_heads(Test& test) {
    for (const std::uint32_t tokens : {5u, 1100u}) {
        Trial trial = sized(three_alike(VKROPE_F16, VKROPE_INT8, 64, 64), 1, tokens, 40, 17);
        trial.info.tensor[K].out = VKROPE_Q8_0;
        trial.info.tensor[V].out = VKROPE_Q5_1;
        trial.info.tensor[Q].ops = {.norm = of_head, .store_scale = VKROPE_STORE_SCALE_MADE};
        trial.info.tensor[K].ops = {.norm = of_head, .hadamard = 64};
        trial.info.tensor[V].ops = {.hadamard = 32};
        run_every_way(test, trial);
    }
}

// Stores f32, so that the store hides no rounding.
void hold_round_between(Test& test) {
    for (auto [element, norm] : {std::pair{VKROPE_F16, of_head}, {VKROPE_BF16, after_of_head}}) {
        norm.round_between = true;
        norm.weight_offset = element == VKROPE_F16 ? 1 : 0;
        Trial trial = three_alike(element, VKROPE_F32, 16, 16);
        trial.info.tensor[Q].ops.norm = norm;
        run_every_way(test, trial);
        const Rotated rounded = test.run(trial);
        trial.info.tensor[Q].ops.norm.round_between = false;
        test.hold(test.run(trial).rows[Q] != rounded.rows[Q], "round_between changes no bit");
    }
}

// Lanes that each own a row wait for each other where a tensor reuses the shared memory of another
// tensor.
void hold_other_sizes(Test& test) {
    const auto hold = [&](const Trial& trial) { hold_parts(test, trial, {}); };
    Trial trial = sized(three_alike(VKROPE_F16, VKROPE_F16, 64, 64), 1, 70, 4, 4);
    trial.info.tensor[Q].ops.norm = of_token;
    trial.info.tensor[K].ops = {.bias = VKROPE_PARAMETER_CHANNEL, .norm = of_head};
    trial.info.tensor[V].out = VKROPE_Q8_0;
    hold(trial);
    trial = sized(three_alike(VKROPE_F16, VKROPE_F16, 16, 16), 1, 70, 8, 8);
    trial.info.tensor[Q].ops.norm = of_token;
    trial.info.tensor[K].ops = {.bias = VKROPE_PARAMETER_CHANNEL, .norm = of_head};
    trial.info.tensor[V].head_dim = 8;
    hold(trial);
    trial = sized(three_alike(VKROPE_F16, VKROPE_INT8, 32, 16), 1, 70, 4, 4);
    trial.info.tensor[K].head_dim = 16;
    trial.info.tensor[V].head_dim = 8;
    for (TensorInfo& info : trial.info.tensor) info.ops = made;
    hold(trial);
}

void hold_ops_in_parts(Test& test) {
    Trial trial = sized(three_alike(VKROPE_F16, VKROPE_F16, 64, 64), 2, 240, 6, 3);
    trial.in = trial.out = Arrangement::bhsd;
    for (TensorInfo& info : trial.info.tensor) {
        info.ops = {.bias = VKROPE_PARAMETER_HEAD_CHANNEL,
                    .norm = after_of_head,
                    .clip = 2,
                    .scale_tokens = true};
    }
    hold_parts(test, trial, {short_range, few_workgroups});
    trial = sized(three_alike(VKROPE_F16, VKROPE_F32, 64, 64), 9, 60, 4, 2);
    trial.in = trial.out = Arrangement::sbhd;
    trial.info.tensor[Q].ops = {.norm = of_token, .scale_tokens = true};
    hold_parts(test, trial, {few_workgroups});
}

void hold_two_parameter_sets(Test& test) {
    for (const bool ids : {false, true}) {
        Trial trial = sized(three_alike(VKROPE_F16, VKROPE_F16, 64, 64), 2, 150, 6, 3);
        trial.info.two_parameter_sets = true;
        trial.call.first_set_tokens = 47;
        trial.info.tensor[Q].ops.norm = of_head;
        trial.info.tensor[K].ops.norm = after_of_head;
        trial.info.tensor[V].ops.bias = VKROPE_PARAMETER_HEAD_CHANNEL;
        if (ids) {
            trial.info.positions = VKROPE_POSITIONS_IDS;
            trial.ids = random_positions(trial.shape.rows(), -70, 70, 98);
            trial.info.tensor[Q].out = VKROPE_INT8;
            trial.info.tensor[Q].ops.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
        }
        hold_parts(test, trial, {short_range, few_workgroups});
    }
}

void hold_stores_in_parts(Test& test) {
    Trial trial = sized(three_alike(VKROPE_F16, VKROPE_INT8, 64, 64), 3, 150, 6, 3);
    trial.info.tensor[K].out = VKROPE_Q8_0;
    trial.info.tensor[V].out = VKROPE_E4M3FN;
    trial.info.tensor[Q].ops = {.norm = of_head, .store_scale = VKROPE_STORE_SCALE_MADE};
    trial.info.tensor[K].ops = {.norm = of_head, .hadamard = 64};
    trial.info.tensor[V].ops = made;
    trial.info.tensor[V].ops.scale_floor = 0.02f;
    trial.lead = 1;
    hold_parts(test, trial, {short_range, few_workgroups, {.storage_buffers = 7}});
}

// Q and K have different windows and separate dispatches.
void hold_apart(Test& test) {
    for (const Element element : {VKROPE_F32, VKROPE_F16}) {
        Trial trial = sized(three_alike(element, element, 32, 24), 1, 20, 2, 2);
        trial.info.tensor[K].rotary_offset = 4;
        trial.info.tensor[V] = {};
        trial.in = trial.out = Arrangement::packed_qkv;
        trial.in_place.fill(true);
        hold_parts(test, trial, {{.storage_buffers = 4}});
    }
}

// K and V of a token are adjacent in one row of a cache. Rows of 10 and of 6 bytes share words.
void hold_rows_of_both(Test& test) {
    const struct {
        Element in, out;
        std::uint32_t k_dim, v_dim;
        bool scaled = false;
    } kinds[] = {{VKROPE_F16, VKROPE_F16, 64, 64},      {VKROPE_BF16, VKROPE_F32, 64, 32},
                 {VKROPE_F16, VKROPE_BF16, 5, 5},       {VKROPE_F16, VKROPE_E4M3FN, 64, 64, true},
                 {VKROPE_F32, VKROPE_INT8, 3, 3, true}, {VKROPE_F16, VKROPE_E5M2, 2, 2},
                 {VKROPE_F16, VKROPE_Q8_0, 64, 64},     {VKROPE_BF16, VKROPE_Q5_0, 32, 64, false}};
    for (const auto& [in, out, k_dim, v_dim, scaled] : kinds) {
        Trial trial = sized(three_alike(in, out, k_dim, 2), 2, 37, 4, 3);
        trial.info.tensor[Q].out = in;
        trial.info.tensor[V].head_dim = v_dim;
        if (scaled) trial.info.tensor[K].ops = trial.info.tensor[V].ops = made;
        for (const Mapping mapping : mappings) {
            trial.info.mapping = mapping;
            trial.info.scatter_kv = false;
            const Rotated packed = test.run(trial);
            trial.info.scatter_kv = trial.beside = true;
            trial.call.paged_cache.page_size = mapping == VKROPE_MAPPING_GPU ? 16 : 4;
            trial.lead = block_channels(out) == 1 ? 1 : 0;
            trial.slots.clear();
            for (std::int64_t row = trial.shape.rows(); row-- > 0;) trial.slots.push_back(row);
            test.hold(same_bits(test.run(trial), packed),
                      "K and V in one row of a cache have different bits");
            trial.beside = false;
            trial.lead = trial.call.paged_cache.page_size = 0;
        }
    }
}

}  // namespace

void add_ops_shapes(Checks& checks) {
    const struct {
        const char* name;
        void (*hold)(Test&);
    } shapes[] = {{"long_rows", hold_long_rows},
                  {"many_heads", hold_many_heads},
                  {"few_tokens", hold_few_tokens},
                  {"many_stored_heads", hold_many_stored_heads},
                  {"round_between", hold_round_between},
                  {"other_sizes", hold_other_sizes},
                  {"in_parts", hold_ops_in_parts},
                  {"two_parameter_sets", hold_two_parameter_sets},
                  {"stores_in_parts", hold_stores_in_parts},
                  {"apart", hold_apart},
                  {"rows_of_both", hold_rows_of_both}};
    for (const auto& [name, hold] : shapes)
        checks.add(fmt::format("shape_{}", name), hold, Level::full);
}

}  // namespace vkrope::conformance
