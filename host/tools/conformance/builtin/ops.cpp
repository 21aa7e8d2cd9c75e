// SPDX-License-Identifier: MIT
// Checks the ops around the rotation: norms of every kind, span and place, bias, clip and scale,
// for every element type, on both mappings, with units of 8, 4, 2 and 1 elements, in place and to
// slots.
#include <limits>

#include "conformance/builtin/every_way.hpp"

namespace vkrope::conformance {
namespace {

constexpr Norm norm_of(NormKind kind, NormSpan span, NormPlace place, ParameterShape weight,
                       std::uint32_t weight_offset, ParameterShape bias = VKROPE_PARAMETER_NONE) {
    Norm norm;
    norm.kind = kind;
    norm.span = span;
    norm.place = place;
    norm.eps = 1e-6f;
    norm.weight = weight;
    norm.weight_offset = weight_offset;
    norm.bias = bias;
    return norm;
}

struct Named {
    const char* name;
    Element quick;  // the type that runs at Level::quick, since kernels take seconds to compile
    Norm q, k;
};

constexpr ParameterShape none = VKROPE_PARAMETER_NONE, channel = VKROPE_PARAMETER_CHANNEL,
                         each_head = VKROPE_PARAMETER_HEAD_CHANNEL;
constexpr NormKind rms = VKROPE_NORM_RMS, layer = VKROPE_NORM_LAYER;
constexpr NormSpan head = VKROPE_NORM_SPAN_HEAD, token = VKROPE_NORM_SPAN_TOKEN;
constexpr NormPlace before = VKROPE_NORM_PLACE_BEFORE, after = VKROPE_NORM_PLACE_AFTER;

constexpr Named norms[] = {
    {"rms_of_heads", VKROPE_F16, norm_of(rms, head, before, channel, 0),
     norm_of(rms, head, before, channel, 1)},
    {"rms_of_heads_after", VKROPE_BF16, norm_of(rms, head, after, each_head, 0),
     norm_of(rms, head, after, none, 0)},
    {"rms_of_tokens", VKROPE_F32, norm_of(rms, token, before, each_head, 0),
     norm_of(rms, token, after, each_head, 1)},
    {"layer_norm", VKROPE_BF16, norm_of(layer, head, before, each_head, 0, each_head),
     norm_of(layer, head, after, channel, 0, channel)},
};

// The shape of a row with a window: units of 8, 4 and 2 elements, and single elements.
struct RowShape {
    std::uint32_t head_dim, rotary_dim, rotary_offset;
    Pairing pairing;
};
constexpr RowShape row_shapes[] = {{usual_head_dim, 128, 0, VKROPE_HALF_SPLIT},
                                   {80, 32, 16, VKROPE_INTERLEAVED},
                                   {10, 4, 2, VKROPE_HALF_SPLIT},
                                   {7, 4, 1, VKROPE_INTERLEAVED}};

Trial of_shape(Element in, Element out, const RowShape& shape) {
    return three_alike(in, out, shape.head_dim, shape.rotary_dim, shape.rotary_offset,
                       shape.pairing);
}

// Checks rows of zeros, largest numbers and subnormals, and rows with an infinity or a NaN.
void hold_extremes(Test& test, NormKind kind) {
    const float largest = std::numeric_limits<float>::max(),
                infinity = std::numeric_limits<float>::infinity();
    constexpr std::uint32_t head_dim = 16;
    std::vector<float> rows;
    const auto add_row = [&rows](float usual, float first) {
        rows.push_back(first);
        rows.resize(rows.size() + head_dim - 1, usual);
    };
    add_row(0, 0);
    add_row(0, 1e-30f);
    add_row(1e-40f, -1e-40f);
    add_row(1, infinity);
    add_row(1, -infinity);
    add_row(1, std::numeric_limits<float>::quiet_NaN());
    if (kind == VKROPE_NORM_RMS) {  // differences of such numbers cannot be represented as floats
        add_row(largest, -largest);
        add_row(1e30f, 2);
    }
    Trial trial = three_alike(VKROPE_F32, VKROPE_F32, head_dim, 4, 6);
    for (TensorInfo& info : trial.info.tensor) info.ops.norm = norm_of(kind, head, before, none, 0);
    fill_rows(trial, bytes_of(rows));
    run_every_way(test, trial);
}

}  // namespace

void add_ops(Checks& checks) {
    for (const Named& named : norms) {
        for (const Element element : elements) {
            checks.add(
                fmt::format("{}_{}", named.name, name_of(element)),
                [=](Test& test) {
                    // Each type runs the usual row shape and one other shape. For layer norms,
                    // whose kernels take longest to compile, the usual shape is a shorter one.
                    const auto own = 1 + std::size_t(element);
                    const std::size_t usual = named.q.kind == layer ? 1 : 0;
                    for (const std::size_t shape : {usual, own}) {
                        Trial trial = of_shape(element, element, row_shapes[shape]);
                        trial.info.tensor[Q].ops.norm = named.q;
                        trial.info.tensor[K].ops.norm = named.k;
                        run_every_way(test, trial);
                    }
                },
                element == named.quick ? Level::quick : Level::full);
        }
    }
    checks.add(
        "bias_clip_and_scale",
        [](Test& test) {
            for (const std::size_t shape : {0, 2}) {
                Trial trial = of_shape(VKROPE_BF16, VKROPE_F32, row_shapes[shape]);
                trial.call.q_scale = 0.3f;
                trial.info.tensor[Q].ops = {
                    .bias = each_head, .clip = 2.5f, .scale = 0.7f, .scale_call = true};
                trial.info.tensor[K].ops = {.bias = channel, .clip = 2.5f, .scale_tokens = true};
                trial.info.tensor[V].ops = {.bias = each_head, .clip = 2.5f, .scale = -3};
                run_every_way(test, trial);
            }
        });
    checks.add(
        "extreme_rows_rms", [](Test& test) { hold_extremes(test, rms); });
    checks.add(
        "extreme_rows_layer_norm", [](Test& test) { hold_extremes(test, layer); }, Level::full);
    add_ops_shapes(checks);
}

}  // namespace vkrope::conformance
