// SPDX-License-Identifier: MIT
// Tests that random operations take every value of every field that is drawn, and have their kind.
#include "verify/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>

#include "base/meaning.hpp"
#include "verify/definition.hpp"
#include "verify/oracle/turns.hpp"
#include "verify/place.hpp"
#include "verify/text.hpp"

namespace vkrope::test {
namespace {

using verify::Unplaced;

// The values that each field has taken, and the number of possible values.
class SeenValues {
   public:
    void add(const std::string& field, std::size_t value, std::size_t count) {
        Values& values = fields_[field];
        values.count = count;
        values.seen.insert(value);
    }
    void add(const std::string& field, bool yes) { add(field, yes ? 1 : 0, 2); }

    std::string missing() const {
        std::string missing;
        for (const auto& [field, values] : fields_) {
            for (std::size_t value = 0; value < values.count; ++value)
                if (values.seen.count(value) == 0)
                    missing += field + " is never " + std::to_string(value) + "; ";
        }
        return missing;
    }

   private:
    struct Values {
        std::size_t count = 0;
        std::set<std::size_t> seen;
    };
    std::map<std::string, Values> fields_;
};

// Returns 0 for a packed stride, 1 for an explicit stride and 2 for broadcast.
std::size_t kind_of(std::int64_t stride) {
    return stride == 0 ? 0 : stride == broadcast ? 2 : 1;
}

void add_rotation(SeenValues& seen, const KernelInfo& info) {
    seen.add("pairing", info.pairing - 1, 2);
    seen.add("pairing_out", info.pairing_out, 3);
    std::size_t windows = 0;
    while (windows < max_windows && info.windows[windows].rotary_dim != 0) ++windows;
    seen.add("windows", windows, max_windows + 1);
    seen.add("angles", info.angles - 1, 5);
    seen.add("positions", info.positions, 3);
    seen.add("phase", info.phase);
    seen.add("head_groups", head_groups_of(info) > 1);
    if (info.positions == VKROPE_POSITIONS_AXIS_IDS)
        seen.add("sections.order", info.sections.order, 3);
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        seen.add("table", info.table, 3);
        seen.add("channel_angles", info.channel_angles);
    }
}

void add_kernel(SeenValues& seen, const KernelInfo& info) {
    seen.add("a rotation", info.rotary_dim != 0);
    if (info.rotary_dim != 0) add_rotation(seen, info);
    seen.add("Q and K, or Q, or K",
             info.tensor[K].head_dim == 0   ? 1
             : info.tensor[Q].head_dim == 0 ? 2
                                            : 0,
             3);
    seen.add("V", info.tensor[V].head_dim != 0);
    seen.add("mapping", info.mapping, 3);
    seen.add("conversion", info.conversion, 3);
    seen.add("scatter_kv", info.scatter_kv);
    seen.add("gather_kv", info.gather_kv);
    seen.add("gather_kv and scatter_kv", info.gather_kv && info.scatter_kv);
    seen.add("two_parameter_sets", info.two_parameter_sets);
    seen.add("token_count", info.token_count);
}

void add_ops(SeenValues& seen, const std::string& name, const KernelInfo& info, TensorIndex which) {
    const TensorInfo& of = info.tensor[which];
    const bool in_pages = which != Q && info.scatter_kv;
    const Ops& ops = of.ops;
    const Norm& norm = ops.norm;
    seen.add(name + "bias", ops.bias, 3);
    seen.add(name + "norm.kind", norm.kind, 3);
    seen.add(name + "clip", ops.clip != 0);
    seen.add(name + "scale", scale_of(ops) != 1);
    seen.add(name + "scale_tokens", ops.scale_tokens);
    seen.add(name + "hadamard", ops.hadamard != 0);
    if (norm.kind != VKROPE_NORM_NONE) {
        seen.add(name + "norm.span", norm.span, 2);
        seen.add(name + "norm.place", norm.place, 2);
        seen.add(name + "norm.weight", norm.weight, 3);
        if (norm.weight != VKROPE_PARAMETER_NONE)
            seen.add(name + "norm.weight_bound", norm.weight_bound);
        seen.add(name + "norm.weight_offset", norm.weight_offset != 0);
        seen.add(name + "norm.bias", norm.bias, 3);
        seen.add(name + "norm.round_between", norm.round_between);
        seen.add(name + "norm of a part", norm.channels != 0 && norm.channels < of.head_dim);
        seen.add(name + "norm.first_channel", norm.first_channel % 2 != 0);
    }
    if (norm.weight_bound) {
        seen.add("weight_type", norm.weight_type, 3);
        seen.add("a bound weight of heads", norm.weight == VKROPE_PARAMETER_HEAD_CHANNEL);
        seen.add("a bound weight and 1", norm.weight_offset != 0);
    }
    if (moves_keys(info)) {
        seen.add("moved " + name + "in", of.in, VKROPE_INT4 + 1);
        seen.add("moved " + name + "hadamard",
                 (ops.hadamard != 0 ? 1 : 0) + (ops.hadamard_of_input != 0 ? 2 : 0), 4);
    }
    if (is_quantised(of.in) && !has_blocks(of.in)) seen.add(name + "scales_in", ops.scales_in);
    if (is_quantised(of.out) && !has_blocks(of.out))
        seen.add(name + "store_scale", ops.store_scale, 5);
    if (is_made(ops.store_scale)) {
        seen.add(name + "scale_floor", ops.scale_floor != 0);
        if (in_pages) seen.add(name + "scale_layout", ops.scale_layout, 2);
        if (of.head_dim % 32 == 0)
            seen.add(name + "store_scale_group", std::bit_width(ops.store_scale_group / 32), 4);
        if (ops.store_scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO)
            seen.add(name + "scale_type", ops.scale_type, 2);
    }
}

void add_tensors(SeenValues& seen, const Unplaced& operation) {
    const KernelInfo& info = operation.info;
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = info.tensor[which];
        const std::string name = std::string(1, "QKV"[which]) + ' ';
        if (of.head_dim == 0) continue;
        if (!is_quantised(of.in)) seen.add(name + "in", of.in, 3);
        seen.add(name + "out", of.out, VKROPE_INT4 + 1);
        seen.add(name + "heads", of.heads != 0);
        seen.add(name + "absent", operation.absent[which]);
        if (which != Q) seen.add(name + "second_of", of.second_of, 3);
        if (of.second_of != VKROPE_SECOND_NONE) seen.add(name + "second", of.second, 3);
        seen.add(name + "in_place", operation.in_place[which]);
        if (which != V) seen.add(name + "rotary_offset", of.rotary_offset != 0);
        add_ops(seen, name, info, which);
    }
    if (info.tensor[V].head_dim != 0) {
        seen.add("V has heads of its own", operation.shape.own_v_heads != 0);
        seen.add("V has K's shape in groups of its own",
                 operation.in == verify::Arrangement::gathered && operation.shape.groups > 3 &&
                     operation.shape.groups % 2 == 0 &&
                     operation.shape.v_heads() == operation.shape.groups &&
                     info.tensor[V].head_dim == info.tensor[K].head_dim);
        seen.add("V has another head_dim than K",
                 info.tensor[V].head_dim != info.tensor[K].head_dim);
    }
}

// Adds the special d of blocks that are read, and the special scales.
void add_scales(SeenValues& seen, const Unplaced& operation) {
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = operation.info.tensor[which];
        std::vector<float> scales = operation.scales[which];
        const verify::Bytes& rows = operation.rows[which];
        if (has_blocks(of.in))
            for (std::size_t at = 0; at < rows.size(); at += element_bytes(of.in))
                scales.push_back(verify::value(VKROPE_F16, rows, at / 2));
        if (scales.empty()) continue;
        const auto any = [&](auto is) { return std::any_of(scales.begin(), scales.end(), is); };
        const std::string name = has_blocks(of.in)                              ? "d "
                                 : of.ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 ? "UE8M0 scale "
                                                                                : "scale ";
        seen.add(name + "NaN", any([](float x) { return std::isnan(x); }));
        seen.add(name + "0", any([](float x) { return x == 0; }));
        if (name == "UE8M0 scale ") continue;  // which has no other special values
        seen.add(name + "infinity", any([](float x) { return std::isinf(x); }));
        if (of.ops.scales_in) seen.add(name + "below 0", any([](float x) { return x < 0; }));
        seen.add(name + "subnormal", any([&](float x) {
                     return x != 0 && std::fabs(x) < (has_blocks(of.in) ? 0x1p-14f : 0x1p-126f);
                 }));
    }
}

// Adds the special values of rows, which few rows contain.
void add_rows(SeenValues& seen, const Unplaced& operation) {
    bool nan = false, infinity = false, subnormal = false, minus_zero = false, zeros = false;
    for (const TensorIndex which : every_tensor) {
        const Element element = operation.info.tensor[which].in;
        if (is_quantised(element)) continue;
        const verify::Bytes& rows = operation.rows[which];
        const float least = element == VKROPE_F16 ? 0x1p-14f : 0x1p-126f;
        std::size_t in_a_row = 0;
        for (std::size_t i = 0; i < rows.size() / element_bytes(element); ++i) {
            const float x = verify::value(element, rows, i);
            nan = nan || std::isnan(x);
            infinity = infinity || std::isinf(x);
            subnormal = subnormal || (x != 0 && std::fabs(x) < least);
            minus_zero = minus_zero || (x == 0 && std::signbit(x));
            in_a_row = x == 0 ? in_a_row + 1 : 0;
            zeros = zeros || in_a_row == 32;
        }
    }
    seen.add("a NaN", nan);
    seen.add("an infinity", infinity);
    seen.add("a subnormal", subnormal);
    seen.add("-0", minus_zero);
    seen.add("a block of zeros", zeros);
}

void add_call(SeenValues& seen, const Unplaced& operation) {
    const KernelInfo& info = operation.info;
    const Call& call = operation.call;
    const std::size_t arrangements = std::size(verify::arrangements);
    seen.add("arrangement in", std::size_t(operation.in), arrangements);
    seen.add("arrangement out", std::size_t(operation.out), arrangements - 1);
    seen.add("lead", operation.lead, 4);
    seen.add("batch", operation.shape.batch > 1);
    seen.add("tokens", operation.shape.tokens > 1);
    if (info.rotary_dim != 0) {
        seen.add("direction", call.direction, 2);
        seen.add("gain", call.gain, 3);
        seen.add("attention_factor", operation.attention_factor != 1);
        seen.add("inv_freq", !operation.inv_freq.empty());
    }
    seen.add("out_of_range", operation.counts);
    seen.add("a token out of range", tokens_out_of_range(verify::placed(operation)) != 0);
    if (info.angles == VKROPE_ANGLES_DIRECT_TEXTURE || info.angles == VKROPE_ANGLES_DIRECT_BUFFER)
        seen.add("precision", operation.precision == VKROPE_ANGLE_PRECISION_FLOAT32);
    if (info.rotary_dim != 0)
        seen.add("positions.batch_stride", kind_of(call.positions.batch_stride), 3);
    if (info.positions != VKROPE_POSITIONS_IMPLICIT) {
        seen.add("positions.int64", call.positions.int64);
        seen.add("positions.token_stride", call.positions.token_stride != 0);
    }
    if (info.positions == VKROPE_POSITIONS_AXIS_IDS)
        seen.add("positions.axis_stride", kind_of(call.positions.axis_stride), 3);
    if ((info.scatter_kv || info.gather_kv) && !operation.absent[K] && !operation.absent[V]) {
        seen.add("v_slot_mapping", !operation.v_slots.empty());
        seen.add("v_source_mapping", !operation.v_sources.empty());
    }
    if (std::any_of(std::begin(info.tensor), std::end(info.tensor),
                    [](const TensorInfo& of) { return of.ops.norm.weight_bound; }))
        seen.add("shares_weight", operation.shares_weight);
    if (info.gather_kv) {
        seen.add("source_mapping", !operation.sources.empty());
        if (info.scatter_kv) seen.add("one cache", operation.in_place[K] || operation.in_place[V]);
        bool stays = false, moves = false, outside = false, again = false;
        std::set<std::int64_t> sources;
        for (std::size_t i = 0; i < operation.sources.size(); ++i) {
            const std::int64_t source = operation.sources[i];
            const bool is_outside = source < -1 || source > 100000;
            outside = outside || is_outside;
            again = again || (source != -1 && !is_outside && !sources.insert(source).second);
            stays = stays || (info.scatter_kv && source == operation.slots[i]);
            moves = moves || (info.scatter_kv && source != operation.slots[i]);
        }
        seen.add("a row that stays", stays);
        seen.add("a row that moves", moves);
        seen.add("a source outside", outside);
        seen.add("a source of two tokens", again);
    }
    if (moves_keys(info)) {
        bool kept = false;
        const verify::Operation placed = verify::placed(operation);
        for (const TensorIndex which : {K, V})
            for (const bool one : verify::kept_tokens(placed, which)) kept = kept || one;
        seen.add("a kept row", kept);
        bool covered = true;
        if (info.rotary_dim != 0 && !operation.absent[K]) {
            const auto rotation = verify::definition_of(placed, K, false).operation;
            for (std::size_t token = 0; token < operation.shape.rows(); ++token)
                covered = covered && oracle::is_covered(rotation, token);
        }
        seen.add("a delta that is not covered", !covered);
    }
    if (info.scatter_kv) {
        const std::uint32_t size = call.paged_cache.page_size;
        seen.add("page_size", size == 128 ? 4 : size == 16 ? 3 : size == 3 ? 2 : size, 5);
        seen.add("paged_cache.int64", call.paged_cache.int64);
        seen.add("paged_cache.batch_stride", call.paged_cache.batch_stride != 0);
        seen.add("pages_by_head", operation.pages_by_head);
        seen.add("page_gaps", operation.page_gaps);
        seen.add("beside", operation.beside);
    }
    if (info.token_count) {
        const std::uint32_t count = operation.token_count, most = operation.shape.tokens;
        seen.add("a number of tokens",
                 count == 0      ? 0
                 : count < most  ? 1
                 : count == most ? 2
                 : count < ~0u   ? 3
                                 : 4,
                 5);
        CHECK(!info.two_parameter_sets);
    }
    if (info.tensor[Q].ops.scale_call && !operation.absent[Q])
        seen.add("q_scale", call.q_scale != 0 && call.q_scale != 1);
}

}  // namespace

TEST_CASE("random operations have every value of every field") {
    SeenValues seen;
    // The rarest value occurs in about one of 150 kernels.
    for (std::uint64_t kernel = 0; kernel < 1250; ++kernel) {
        const Unplaced operation = verify::random_operation(kernel *
                                                            verify::operations_of_a_kernel);
        add_kernel(seen, operation.info);
        add_tensors(seen, operation);
        add_call(seen, operation);
        add_rows(seen, operation);
        add_scales(seen, operation);
    }
    CHECK(seen.missing() == "");
}

TEST_CASE("packed weights are the weights that a random operation binds") {
    std::set<vkrope_element> types;
    for (std::uint64_t kernel = 0; types.size() < 3; ++kernel) {
        const Unplaced bound = verify::random_operation(kernel * verify::operations_of_a_kernel);
        Unplaced packed = bound;
        verify::pack_weights(packed);
        const verify::Operation a = verify::placed(bound), b = verify::placed(packed);
        for (const TensorIndex which : every_tensor) {
            const Norm& norm = bound.info.tensor[which].ops.norm;
            CHECK(!packed.info.tensor[which].ops.norm.weight_bound);
            if (!norm.weight_bound || bound.absent[which]) continue;
            types.insert(norm.weight_type);
            const std::vector<float>& weight = b.parameters[which].weight;
            CHECK(a.parameters[which].weight.empty());
            CHECK(b.call.norm_weight[which].range == 0);
            CHECK(a.call.norm_weight[which].offset % 256 == 0);
            CHECK(a.call.norm_weight[which].range ==
                  (weight.size() * element_bytes(norm.weight_type) + 3) / 4 * 4);
            CHECK(verify::definition_of(a, which, false).ops.norm.weight ==
                  std::vector<double>(weight.begin(), weight.end()));
        }
    }
}

TEST_CASE("each kind of random operations has a name and operations of its own") {
    std::set<std::string> names;
    std::uint64_t number = 0;
    for (const verify::Kind& kind : verify::kinds()) {
        CAPTURE(std::string(kind.name));
        CHECK(names.insert(kind.name).second);
        const std::uint64_t first = number++ * verify::operations_of_a_kernel;
        const Unplaced one = verify::random_operation(first, kind),
                       other = verify::random_operation(first + 1, kind);
        CHECK((kind.call == nullptr || (kind.call(one) && kind.call(other))));
        CHECK(verify::rows_are_apart(one));
        CHECK(verify::text_of(one) != verify::text_of(other));
        CHECK(one.info.rotary_dim == other.info.rotary_dim);
        CHECK(bool(one.info.token_count) == kind.has_token_count);
    }
}

}  // namespace vkrope::test
