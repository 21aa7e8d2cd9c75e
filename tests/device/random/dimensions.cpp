// SPDX-License-Identifier: MIT
#include "dimensions.hpp"

#include <cmath>
#include <cstdio>

#include "meaning.hpp"
#include "verify/definition.hpp"
#include "verify/place.hpp"

namespace vkrope::test {
namespace {

using Name = const char*;
using verify::Unplaced;

constexpr Name no_yes[] = {"no", "yes"};
constexpr Name pairings[] = {"none", "half_split", "interleaved"};
constexpr Name elements[] = {"f32",  "f16",  "bf16", "e4m3fn", "e5m2", "int8",
                             "q8_0", "q4_0", "q4_1", "q5_0",   "q5_1"};
constexpr auto inputs = std::span(elements).first<3>();
constexpr Name sources[] = {"factored_texture", "computed", "direct_texture", "direct_buffer",
                            "cos_sin_cache"};
constexpr Name position_sources[] = {"implicit", "ids", "axis_ids"};
constexpr Name mappings[] = {"automatic", "gpu", "cpu"};
constexpr Name conversions[] = {"automatic", "native", "integer"};
constexpr Name windows[] = {"none", "1", "2", "3", "4"};
constexpr Name orders[] = {"sequential", "interleaved", "sum"};
constexpr Name tensors[] = {"Q and K", "Q", "K"};
constexpr Name shapes[] = {"none", "channel", "head_channel"};
constexpr Name kinds[] = {"none", "rms", "layer"};
constexpr Name spans[] = {"head", "token"};
constexpr Name places[] = {"before", "after"};
constexpr Name store_scales[] = {"none", "given", "given_head", "made", "made_power_of_two"};
constexpr Name scale_layouts[] = {"slots_heads", "pages_heads"};
constexpr Name like_k[] = {"K's", "its own"};
constexpr Name directions[] = {"forward", "inverse"};
constexpr Name gains[] = {"apply", "omit", "divide_out"};
constexpr Name strides[] = {"packed", "given", "broadcast"};
constexpr Name page_sizes[] = {"0", "1", "3", "16"};
constexpr Name leads[] = {"0", "1", "2", "3"};

const std::vector<Name>& names_of_arrangements() {
    static const std::vector<Name> names = [] {
        std::vector<Name> made;
        for (const auto& arrangement : verify::arrangements) made.push_back(arrangement.name);
        return made;
    }();
    return names;
}

std::size_t kind_of(std::int64_t stride) {
    return stride == 0 ? 0 : stride == broadcast ? 2 : 1;
}

class Values {
   public:
    std::vector<Value> all;

    void add(const std::string& dimension, std::span<const Name> names, std::size_t index) {
        all.push_back({dimension, names, index});
    }
    void add(const std::string& dimension, bool yes) { add(dimension, no_yes, yes ? 1 : 0); }
};

void add_kernel(Values& values, const KernelInfo& info) {
    const auto set = [&](std::size_t i) { return info.windows[i].rotary_dim != 0; };
    std::size_t count = 0;
    while (count < max_windows && set(count)) ++count;
    values.add("pairing", std::span(pairings).last(2), info.pairing - 1);
    values.add("pairing_out", pairings, info.pairing_out);
    values.add("windows", windows, count);
    values.add("tensors of the kernel", tensors,
               info.tensor[K].head_dim == 0   ? 1
               : info.tensor[Q].head_dim == 0 ? 2
                                              : 0);
    values.add("V", info.tensor[V].head_dim != 0);
    values.add("angles", sources, info.angles - 1);
    values.add("positions", position_sources, info.positions);
    values.add("mapping", mappings, info.mapping);
    values.add("conversion", conversions, info.conversion);
    values.add("scatter_kv", info.scatter_kv);
    values.add("phase", info.phase);
    values.add("head_groups", head_groups_of(info) > 1);
    values.add("two_parameter_sets", info.two_parameter_sets);
    if (info.positions == VKROPE_POSITIONS_AXIS_IDS)
        values.add("sections.order", orders, info.sections.order);
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        values.add("table", inputs, info.table);
        values.add("channel_angles", info.channel_angles);
    }
}

void add_ops(Values& values, const std::string& name, const TensorInfo& of, bool may_have_layout) {
    const Ops& ops = of.ops;
    values.add(name + " bias", shapes, ops.bias);
    values.add(name + " norm.kind", kinds, ops.norm.kind);
    values.add(name + " clip", ops.clip != 0);
    values.add(name + " scale", scale_of(ops) != 1);
    values.add(name + " scale_tokens", ops.scale_tokens);
    values.add(name + " hadamard", ops.hadamard != 0);
    if (ops.norm.kind != VKROPE_NORM_NONE) {
        values.add(name + " norm.span", spans, ops.norm.span);
        values.add(name + " norm.place", places, ops.norm.place);
        values.add(name + " norm.weight", shapes, ops.norm.weight);
        values.add(name + " norm.weight_offset", ops.norm.weight_offset != 0);
        values.add(name + " norm.bias", shapes, ops.norm.bias);
        values.add(name + " norm.round_between", ops.norm.round_between);
    }
    if (is_quantised(of.out) && block_channels(of.out) == 1)
        values.add(name + " store_scale", store_scales, ops.store_scale);
    if (is_made(ops.store_scale)) {
        values.add(name + " scale_floor", ops.scale_floor != 0);
        if (may_have_layout) values.add(name + " scale_layout", scale_layouts, ops.scale_layout);
    }
}

// Values of the rows that few rows have.
void add_special(Values& values, const Unplaced& operation) {
    bool nan = false, infinity = false, subnormal = false, minus_zero = false;
    for (const TensorIndex which : every_tensor) {
        const Element element = operation.info.tensor[which].in;
        const verify::Bytes& rows = operation.rows[which];
        const float least = element == VKROPE_F16 ? 0x1p-14f : 0x1p-126f;
        for (std::size_t i = 0; i < rows.size() / element_bytes(element); ++i) {
            const float x = verify::value(element, rows, i);
            nan = nan || std::isnan(x);
            infinity = infinity || std::isinf(x);
            subnormal = subnormal || (x != 0 && std::fabs(x) < least);
            minus_zero = minus_zero || (x == 0 && std::signbit(x));
        }
    }
    values.add("a NaN", nan);
    values.add("an infinity", infinity);
    values.add("a subnormal", subnormal);
    values.add("-0", minus_zero);
}

void add_call(Values& values, const Unplaced& operation) {
    const KernelInfo& info = operation.info;
    const Call& call = operation.call;
    const auto& all = names_of_arrangements();
    values.add("arrangement of inputs", all, std::size_t(operation.in));
    values.add("arrangement of outputs", std::span(all).first(all.size() - 1),
               std::size_t(operation.out));
    values.add("elements before the tensors", leads, operation.lead);
    values.add("several sequences", operation.shape.batch > 1);
    values.add("several tokens", operation.shape.tokens > 1);
    values.add("direction", directions, call.direction);
    values.add("gain", gains, call.gain);
    values.add("attention factor", operation.attention_factor != 1);
    values.add("frequencies of its own", !operation.inv_freq.empty());
    values.add("out_of_range", operation.counts);
    values.add("a token out of range", tokens_out_of_range(verify::placed(operation)) != 0);
    if (info.angles == VKROPE_ANGLES_DIRECT_TEXTURE || info.angles == VKROPE_ANGLES_DIRECT_BUFFER)
        values.add("float32 angles", operation.precision == VKROPE_ANGLE_PRECISION_FLOAT32);
    values.add("positions.batch_stride", std::span(strides), kind_of(call.positions.batch_stride));
    if (info.positions != VKROPE_POSITIONS_IMPLICIT) {
        values.add("positions.int64", call.positions.int64);
        values.add("positions.token_stride", call.positions.token_stride != 0);
    }
    if (info.positions == VKROPE_POSITIONS_AXIS_IDS)
        values.add("positions.axis_stride", strides, kind_of(call.positions.axis_stride));
    if (info.scatter_kv) {
        const std::uint32_t size = call.paged_cache.page_size;
        values.add("page_size", page_sizes, size == 16 ? 3 : size == 3 ? 2 : size);
        values.add("slots are int64", call.paged_cache.int64);
        values.add("paged_cache.batch_stride", call.paged_cache.batch_stride != 0);
        values.add("pages by head", operation.pages_by_head);
        values.add("gaps in pages", operation.page_gaps);
        values.add("K and V side by side", operation.beside);
    }
    if (info.tensor[Q].ops.scale_call && !operation.absent[Q])
        values.add("q_scale", call.q_scale != 0 && call.q_scale != 1);
    add_special(values, operation);
}

}  // namespace

std::vector<Value> values_of(const Unplaced& operation) {
    constexpr Name names[] = {"Q", "K", "V"};
    const KernelInfo& info = operation.info;
    Values values;
    add_kernel(values, info);
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = info.tensor[which];
        const std::string name = names[which];
        if (of.head_dim == 0) continue;
        values.add(name + " in", inputs, of.in);
        values.add(name + " out", elements, of.out);
        values.add(name + " heads given", of.heads != 0);
        values.add(name + " absent from the call", operation.absent[which]);
        values.add(name + " in place", operation.in_place[which]);
        if (which != V) values.add(name + " rotary_offset", of.rotary_offset != 0);
        add_ops(values, name, of, which != Q && info.scatter_kv);
    }
    if (info.tensor[V].head_dim != 0) {
        values.add("heads of V", like_k, operation.shape.own_v_heads != 0 ? 1 : 0);
        values.add("head_dim of V", like_k,
                   info.tensor[V].head_dim != info.tensor[K].head_dim ? 1 : 0);
    }
    add_call(values, operation);
    return values.all;
}

void SeenValues::add(const std::vector<Value>& values) {
    for (const auto& [dimension, names, index] : values) {
        Counts& counts = dimensions_[dimension];
        counts.names = names;
        counts.of.resize(names.size());
        ++counts.of.at(index);
    }
}

void SeenValues::print() const {
    std::printf("%-24s  %-20s  %s\n", "dimension", "value", "operations");
    for (const auto& [dimension, counts] : dimensions_) {
        const char* shown = dimension.c_str();
        for (std::size_t i = 0; i < counts.of.size(); ++i) {
            std::printf("%-24s  %-20s  %10zu\n", shown, counts.names[i], counts.of[i]);
            shown = "";
        }
    }
}

std::vector<std::string> SeenValues::missing() const {
    std::vector<std::string> missing;
    for (const auto& [dimension, counts] : dimensions_) {
        for (std::size_t i = 0; i < counts.of.size(); ++i) {
            if (counts.of[i] == 0) missing.push_back(dimension + ": " + counts.names[i]);
        }
    }
    return missing;
}

}  // namespace vkrope::test
