// SPDX-License-Identifier: MIT
// Checks the fields that only some kernels use. Setting such a field is an error if the field would
// have no effect. Each field has one row, and a test goes through all fields of all structs.
#include <cstddef>
#include <cstring>

#include "base/defaults.hpp"
#include "base/parameter_layout.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

// Finds the first field that is set but not used. Every call goes through these rows, so a row
// costs only a comparison, and only an error formats text.
class Unused {
   public:
    // Checks a field whose value is `value`, or `otherwise` if the field is not set.
    template <class Number>
    void number(const char* owner, const char* field, Number value, bool used, const char* why,
                Number otherwise = {}) noexcept {
        if (value == otherwise || used || why_) return;
        given(owner, field, true, false, why);
        value_ = double(value);
        is_number_ = true;
    }
    void given(const char* owner, const char* field, bool is_given, bool used,
               const char* why) noexcept {
        if (!is_given || used || why_) return;
        owner_ = owner, field_ = field, why_ = why;
    }
    void buffer(const char* owner, const char* field, const VkDescriptorBufferInfo& of, bool used,
                const char* why) noexcept {
        if (used) return;
        given(owner, field, is_given(of), false, why);
    }

    Status status() const noexcept {
        if (!why_) return {};
        const std::size_t length = std::strlen(owner_);
        const char* const dot = length == 0 || owner_[length - 1] == '>' ? "" : ".";
        if (is_number_)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s%s%s is %.10g: %s", owner_, dot, field_,
                         value_, why_);
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s%s%s is given: %s", owner_, dot, field_,
                     why_);
    }

   private:
    const char *owner_ = nullptr, *field_ = nullptr, *why_ = nullptr;
    double value_ = 0;
    bool is_number_ = false;
};

void tensor_rows(Unused& rows, const char* owner, const Tensor& of) noexcept {
    const char* const why = "its heads are 0, so the tensor is absent from the call";
    rows.buffer(owner, "where", of.where, false, why);
    rows.number(owner, "token_stride", of.token_stride, false, why);
    rows.number(owner, "head_stride", of.head_stride, false, why);
    rows.number(owner, "batch_stride", of.batch_stride, false, why);
    rows.number(owner, "heads_per_group", of.heads_per_group, false, why);
    rows.number(owner, "group_stride", of.group_stride, false, why);
    rows.number(owner, "buffer_size", of.buffer_size, false, why);
}

const char* const no_rotation = "the kernel's rotary_dim is 0, so nothing rotates";

// The fields of a rotation, in a call of a kernel that rotates nothing.
void rotation_rows(Unused& rows, const Call& call) noexcept {
    const Positions& positions = call.positions;
    const Angles& angles = call.angles;
    rows.number("positions", "first", positions.first, false, no_rotation);
    rows.buffer("positions", "ids", positions.ids, false, no_rotation);
    rows.given("positions", "int64", positions.int64, false, no_rotation);
    rows.number("positions", "batch_stride", positions.batch_stride, false, no_rotation);
    rows.number("positions", "axis_stride", positions.axis_stride, false, no_rotation);
    rows.number("positions", "token_stride", positions.token_stride, false, no_rotation);
    rows.given("angles", "layout", angles.layout, false, no_rotation);
    rows.given("angles", "view", angles.view, false, no_rotation);
    rows.buffer("angles", "buffer", angles.buffer, false, no_rotation);
    rows.buffer("angles", "sin", angles.sin, false, no_rotation);
    rows.number("", "direction", unsigned(call.direction), false, no_rotation);
    rows.number("", "gain", unsigned(call.gain), false, no_rotation);
}

void position_rows(Unused& rows, const KernelInfo& info, const Positions& of) noexcept {
    const bool ids = info.positions != VKROPE_POSITIONS_IMPLICIT;
    const bool axes = info.positions == VKROPE_POSITIONS_AXIS_IDS;
    const char* const owner = "positions";
    const char* const implicit = "the kernel was created for implicit positions";
    rows.number(owner, "first", of.first, !ids, "the kernel was created for ids");
    rows.buffer(owner, "ids", of.ids, ids, implicit);
    rows.given(owner, "int64", of.int64, ids, implicit);
    rows.number(owner, "token_stride", of.token_stride, ids, implicit);
    rows.number(owner, "axis_stride", of.axis_stride, axes, "the kernel was created for one axis");
}

void angle_rows(Unused& rows, const KernelInfo& info, const Angles& of) noexcept {
    const bool texture = info.angles == VKROPE_ANGLES_FACTORED_TEXTURE ||
                         info.angles == VKROPE_ANGLES_DIRECT_TEXTURE,
               cache = info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    const char* const no_texture = "the kernel was created for angles that are not in a texture";
    const char* const no_buffer = "the kernel was created for angles in a texture";
    const char* const no_cache = "the kernel was not created for cos and sin of the caller";
    if (!of.layout || of.layout->source != info.angles) return;  // another rule reports it
    rows.given("angles", "view", of.view, texture, no_texture);
    rows.buffer("angles", "buffer", of.buffer, !texture, no_buffer);
    rows.buffer("angles", "sin", of.sin, cache, no_cache);
}

void cache_rows(Unused& rows, const KernelInfo& info, const Call& call) noexcept {
    const PagedCache& of = call.paged_cache;
    const char* const owner = "paged_cache";
    const bool has_kv = call.in[K].heads != 0 || call.in[V].heads != 0;
    const char* const why = has_kv ? "the kernel was created without scatter_kv"
                                   : "the call has neither K nor V";
    rows.buffer(owner, "slot_mapping", of.slot_mapping, has_kv && info.scatter_kv, why);
    rows.buffer(owner, "source_mapping", of.source_mapping, has_kv && info.gather_kv,
                has_kv ? "the kernel was created without gather_kv" : why);
    if (is_given(of.v_slot_mapping) || is_given(of.v_source_mapping)) {
        const bool both = call.in[K].heads != 0 && call.in[V].heads != 0;
        const char* const not_both = "the call does not have both K and V";
        rows.buffer(owner, "v_slot_mapping", of.v_slot_mapping, both && info.scatter_kv,
                    both ? why : not_both);
        rows.buffer(owner, "v_source_mapping", of.v_source_mapping,
                    both && is_given(of.source_mapping),
                    both ? "source_mapping, which has the slots of K, is not given" : not_both);
    }
    if (has_kv && (info.scatter_kv || info.gather_kv)) return;  // all other fields are used
    rows.given(owner, "int64", of.int64, false, why);
    rows.number(owner, "page_size", page_size_of(of), false, why, 1u);
    rows.number(owner, "page_stride", of.page_stride, false, why);
    rows.number(owner, "row_stride", of.row_stride, false, why);
    rows.number(owner, "batch_stride", of.batch_stride, false, why);
}

// Returns whether no tensor has a buffer other than its rows, as in most calls. These buffers are
// the last fields of a call.
bool has_no_buffers_of_tensors(const Call& call) noexcept {
    constexpr std::size_t first = offsetof(Call, scale_tokens);
    constexpr VkDescriptorBufferInfo none[(sizeof(Call) - first) / sizeof *call.second] = {};
    static_assert(first + sizeof none == sizeof(Call));
    return std::memcmp(reinterpret_cast<const char*>(&call) + first, none, sizeof none) == 0;
}

void scale_rows(Unused& rows, const Ops& ops, bool present, const TensorNames& names,
                const VkDescriptorBufferInfo& scale_tokens, const VkDescriptorBufferInfo& scales_in,
                const VkDescriptorBufferInfo& scales_out) noexcept {
    const char* const absent = "its tensor is absent from the call";
    rows.buffer(
        "", names.scale_tokens, scale_tokens, present && ops.scale_tokens,
        present ? "the kernel was created without scale_tokens, a factor for each token" : absent);
    rows.buffer("", names.scales_in, scales_in, present && ops.scales_in,
                present ? "the kernel was created without ops.scales_in" : absent);
    rows.buffer("", names.scales_out, scales_out, present && is_made(ops.store_scale),
                present ? "the kernel was created without store_scale made" : absent);
}

}  // namespace

Status check_unused(const KernelInfo& info, std::size_t parameter_bytes,
                    const Call& call) noexcept {
    Unused rows;
    for (const TensorIndex t : every_tensor) {
        if (call.in[t].heads != 0) continue;  // all fields are used
        tensor_rows(rows, names_of[t].in, call.in[t]);
        tensor_rows(rows, names_of[t].out, call.out[t]);
    }
    if (info.rotary_dim != 0) {
        position_rows(rows, info, call.positions);
        angle_rows(rows, info, call.angles);
    } else {
        rotation_rows(rows, call);
    }
    cache_rows(rows, info, call);
    const bool rotates = info.rotary_dim != 0 && (call.in[Q].heads != 0 || call.in[K].heads != 0);
    const bool slots = (info.scatter_kv || info.gather_kv) &&
                       (call.in[K].heads != 0 || call.in[V].heads != 0);
    rows.buffer("", "token_count", call.token_count, info.token_count,
                "the kernel was created without token_count");
    rows.buffer("", "out_of_range", call.out_of_range,
                (rotates && (info.angles != VKROPE_ANGLES_COMPUTED || call.positions.int64)) ||
                    slots || info.token_count,
                "nothing can be out of range: no row is rotated by a table or by 64-bit ids, no "
                "row of K or V goes to a slot or comes from one, and there is no token_count");
    rows.buffer("", "parameters", call.parameters, parameter_bytes != 0,
                "the kernel was created without weights, biases and given scales");
    rows.number("", "first_set_tokens", call.first_set_tokens, info.two_parameter_sets,
                "the kernel was created with one set of parameters");
    const bool q = call.in[Q].heads != 0;
    rows.number(
        "", "q_scale", q_scale_of(call), q && info.tensor[Q].ops.scale_call,
        q ? "the kernel was created without tensor[0].ops.scale_call" : "Q is absent from the call",
        1.0f);
    if (has_no_buffers_of_tensors(call)) return rows.status();
    for (const TensorIndex t : every_tensor) {
        const bool present = call.in[t].heads != 0;
        scale_rows(rows, info.tensor[t].ops, present, names_of[t], call.scale_tokens[t],
                   call.scales_in[t], call.scales_out[t]);
        const char* const absent = "its tensor is absent from the call";
        rows.buffer("", names_of[t].second, call.second[t], present && has_second(info.tensor[t]),
                    present ? "the kernel was created without second_of" : absent);
        rows.buffer("", names_of[t].norm_weight, call.norm_weight[t],
                    present && info.tensor[t].ops.norm.weight_bound,
                    present ? "the kernel was created without ops.norm.weight_bound" : absent);
    }
    return rows.status();
}

Status check_unused(const KernelInfo& info) noexcept {
    for (const TensorIndex t : every_tensor)
        if (Status s = check_absent(names_of[t].name, info.tensor[t]); !s) return s;
    Unused rows;
    if (info.rotary_dim == 0) {
        const char* const why = "rotary_dim is 0, so nothing rotates";
        rows.number("", "pairing", unsigned(info.pairing), false, why);
        rows.number("", "pairing_out", unsigned(info.pairing_out), false, why);
        rows.number("", "angles", unsigned(info.angles), false, why);
        rows.number("", "positions", unsigned(info.positions), false, why);
        for (const TensorIndex t : {Q, K})
            rows.number(names_of[t].name, "rotary_offset", info.tensor[t].rotary_offset, false,
                        why);
        rows.number("", "head_groups", info.head_groups, false, why, 1u);
        rows.given("", "phase", info.phase, false, why);
        rows.given("", "channel_angles", info.channel_angles, false, why);
    }
    if (Status s = rows.status(); !s) return s;
    if (info.table == VKROPE_F32 || info.angles == VKROPE_ANGLES_COS_SIN_CACHE) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "table is %s: only cos and sin of the caller have a type",
                 element_name(info.table));
}

}  // namespace vkrope
