// SPDX-License-Identifier: MIT
#include "dimensions.hpp"

#include "meaning.hpp"

namespace vkrope::test {

namespace {

using Name = const char*;

constexpr Name no_yes[] = {"no", "yes"};
constexpr Name pairings[] = {"half_split", "interleaved"};
constexpr Name elements[] = {"f32", "f16", "bf16"};
constexpr Name types_of_k[] = {"as Q's", "its own"};
constexpr Name positions[] = {"implicit", "implicit, from below 0", "implicit, beyond the table",
                              "ids", "ids, one row for all"};
constexpr Name none_or_elements[] = {"none", "f32", "f16", "bf16"};
constexpr Name sources[] = {"factored_texture", "computed", "direct_texture", "direct_buffer"};
constexpr Name mappings[] = {"gpu", "cpu"};
constexpr Name descriptors[] = {"sets", "push, where the device can"};
constexpr Name conversions[] = {"native, where the device can", "integer"};
constexpr Name limits[] = {"as they are", "few storage buffers", "short storage ranges"};
constexpr Name kinds[] = {"none", "RMS", "layer"};
constexpr Name spans[] = {"no norm", "head", "token"};
constexpr Name places[] = {"no norm", "before", "after"};
constexpr Name shapes[] = {"none", "channel", "head and channel"};
constexpr Name tensors[] = {"Q and K", "Q", "K"};
constexpr Name directions[] = {"forward", "inverse"};
constexpr Name gains[] = {"apply", "omit", "divide_out"};
constexpr Name factors[] = {"1", "not 1"};
constexpr Name page_sizes[] = {"no slots", "1", "3", "16"};
constexpr Name slots[] = {"no slots", "int32", "int64"};
constexpr Name orders[] = {"no slots", "by row", "by head"};
constexpr Name page_strides[] = {"no slots", "by rule", "odd"};
constexpr Name places_of_v[] = {"absent", "laid out as K", "strides of its own", "in place"};

constexpr Name q_steps[] = {"norm of Q",          "span of Q's norm", "place of Q's norm",
                            "weight of Q's norm", "bias of Q's norm", "bias of Q",
                            "clip of Q",          "scale of Q",       "token scale of Q"};
constexpr Name k_steps[] = {"norm of K",          "span of K's norm", "place of K's norm",
                            "weight of K's norm", "bias of K's norm", "bias of K",
                            "clip of K",          "scale of K",       "token scale of K"};
constexpr Name v_steps[] = {"norm of V",          "span of V's norm", "place of V's norm",
                            "weight of V's norm", "bias of V's norm", "bias of V",
                            "clip of V",          "scale of V",       "token scale of V"};

const std::vector<Name>& names_of_formats() {
    static const std::vector<Name> names = [] {
        std::vector<Name> made;
        for (const Formats& formats : all_formats()) made.push_back(formats.name);
        return made;
    }();
    return names;
}

std::vector<Name> names_of_arrangements() {
    std::vector<Name> names;
    for (const auto& arrangement : verify::arrangements) names.push_back(arrangement.name);
    return names;
}

const std::vector<Name>& names_of_inputs() {
    static const std::vector<Name> names = names_of_arrangements();
    return names;
}

// All but broadcast, in whose place is the cache.
const std::vector<Name>& names_of_outputs() {
    static const std::vector<Name> names = [] {
        std::vector<Name> made = names_of_arrangements();
        made.back() = "cache (K alone)";
        return made;
    }();
    return names;
}

void add_steps(std::vector<Value>& values, const Name (&dimensions)[9], const Ops& ops,
               Value::Of of) {
    const Norm& norm = ops.norm;
    const bool normed = norm.kind != VKROPE_NORM_NONE;
    const auto add = [&](Name dimension, std::span<const Name> names, auto index) {
        values.push_back({dimension, names, std::uint32_t(index), of});
    };
    add(dimensions[0], kinds, norm.kind);
    add(dimensions[1], spans, normed ? 1 + std::uint32_t(norm.span) : 0);
    add(dimensions[2], places, normed ? 1 + std::uint32_t(norm.place) : 0);
    add(dimensions[3], shapes, norm.weight);
    add(dimensions[4], shapes, norm.bias);
    add(dimensions[5], shapes, ops.bias);
    add(dimensions[6], no_yes, ops.clip != 0);
    add(dimensions[7], no_yes, scale_of(ops) != 1);
    add(dimensions[8], no_yes, ops.scale_tokens);
}

}  // namespace

std::vector<Value> values_of(const Numbers& numbers, const KernelChoice& kernel) {
    const auto none_or = [&](bool there, Element element) {
        return there ? 1 + std::uint32_t(element) : 0;
    };
    const bool alike = numbers.q_in == numbers.k_in && numbers.q_out == numbers.k_out;
    std::vector<Value> values = {
        {"head_dim Q / K", names_of_formats(), numbers.format, Value::rows},
        {"pairing", pairings, numbers.pairing - VKROPE_HALF_SPLIT},
        {"pairing out", pairings, numbers.pairing_out - VKROPE_HALF_SPLIT},
        {"type of Q", elements, std::uint32_t(numbers.q_in)},
        {"type of Q out", elements, std::uint32_t(numbers.q_out)},
        {"types of K", types_of_k, alike ? 0u : 1u},
        {"positions", positions, std::uint32_t(numbers.positions)},
        {"slots", no_yes, numbers.scatter},
        {"type of V", none_or_elements, none_or(numbers.v, numbers.v_in)},
        {"type of V out", none_or_elements, none_or(numbers.v, numbers.v_out)},
        {"in place possible", no_yes, numbers.in_place_possible()},
        {"V in place possible", no_yes, numbers.v_in_place_possible()},
        {"ops", no_yes, numbers.has_ops},
        {"source", sources,
         std::uint32_t(kernel.source) - std::uint32_t(VKROPE_ANGLES_FACTORED_TEXTURE)},
        {"mapping", mappings, std::uint32_t(kernel.mapping) - std::uint32_t(VKROPE_MAPPING_GPU)},
        {"descriptors", descriptors, kernel.push_descriptors},
        {"conversion", conversions,
         std::uint32_t(kernel.conversion) - std::uint32_t(VKROPE_CONVERSION_NATIVE)},
        {"limits", limits, std::uint32_t(kernel.limits)},
        {"groups possible", no_yes, allows_groups(numbers, kernel)},
        {"long pages possible", no_yes, allows_long_pages(numbers, kernel)}};
    add_steps(values, q_steps, numbers.q_ops, Value::ops_of_q);
    values.push_back({"call scale of Q", no_yes, numbers.q_ops.scale_call, Value::ops_of_q});
    add_steps(values, k_steps, numbers.k_ops, Value::ops_of_k);
    add_steps(values, v_steps, numbers.v_ops, Value::ops_of_v);
    return values;
}

std::vector<Value> values_of(const Numbers& numbers, const KernelChoice& kernel,
                             const Tuple& tuple) {
    std::vector<Value> values = values_of(numbers, kernel);
    const bool cached = has_slots(numbers, tuple);
    const auto of_slots = [&](std::uint32_t index) { return cached ? 1 + index : 0; };
    const std::uint32_t page = tuple.page_size == 1 ? 0 : tuple.page_size == 3 ? 1 : 2;
    const Value of_call[] = {
        {"layout in", names_of_inputs(), std::uint32_t(tuple.in)},
        {"layout out", names_of_outputs(),
         tuple.out == cache_of_k ? packable_arrangements : std::uint32_t(tuple.out)},
        {"in place", no_yes, tuple.in_place},
        {"tensors", tensors,
         tuple.q && tuple.k ? 0u
         : tuple.q          ? 1u
                            : 2u},
        {"V", places_of_v, std::uint32_t(tuple.v)},
        {"direction", directions, std::uint32_t(tuple.direction)},
        {"gain", gains, std::uint32_t(tuple.gain)},
        {"factor", factors, tuple.factor},
        {"counter", no_yes, tuple.counts},
        {"page size", page_sizes, of_slots(page)},
        {"type of slots", slots, of_slots(tuple.wide_slots)},
        {"pages", orders, of_slots(tuple.pages_by_head)},
        {"page strides", page_strides, of_slots(tuple.odd_pages)}};
    for (Value value : of_call) {
        value.of = Value::call;
        values.push_back(value);
    }
    return values;
}

}  // namespace vkrope::test
