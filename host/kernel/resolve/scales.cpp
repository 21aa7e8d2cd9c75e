// SPDX-License-Identifier: MIT
// Checks and resolves the scales of quantised rows, which are made or read.
#include <cinttypes>
#include <cmath>

#include "base/defaults.hpp"
#include "base/meaning.hpp"
#include "base/status.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

// Checks the heads of a tensor whose dispatches need the number of their first head, in 16 bits.
Status check_head_count(const char* tensor, std::uint32_t heads) noexcept {
    if (heads <= 65535) return {};
    return error(VKROPE_ERROR_NOT_SUPPORTED,
                 "%s.heads is %u: parameters and scales of each head, and second destinations, are "
                 "for at most 65535 heads",
                 tensor, heads);
}

namespace {

// Returns whether a type has a scale beside its codes.
bool has_scale(Element element) noexcept {
    return is_quantised(element) && !has_blocks(element);
}

// Checks scales that are read, and what they and made scales have in common.
Status check_layout_of_scales(const char* tensor, const TensorInfo& of, bool scatters,
                              bool gathers) noexcept {
    const Ops& ops = of.ops;
    const bool made = is_made(ops.store_scale), has = made || ops.scales_in;
    const std::uint32_t group = ops.store_scale_group;
    if (ops.scales_in && !has_scale(of.in))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scales_in is true: only e4m3fn, e5m2, int8 and int4 have scales, and "
                     "%s.in is %s",
                     tensor, tensor, element_name(of.in));
    if (ops.scales_in && of.heads == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scales_in is true: %s.heads must be above 0", tensor, tensor);
    if (ops.scales_in) {
        if (Status s = check_head_count(tensor, of.heads); !s) return s;
    }
    if (Status s = check_enumerator(tensor, "ops.scale_layout", ops.scale_layout,
                                    VKROPE_SCALE_LAYOUT_PAGES_HEADS);
        !s)
        return s;
    if (Status s = check_enumerator(tensor, "ops.scale_type", ops.scale_type,
                                    VKROPE_SCALE_TYPE_UE8M0);
        !s)
        return s;
    const char* const no_scales = "only made scales and scales that are read have one";
    if (ops.scale_layout != VKROPE_SCALE_LAYOUT_SLOTS_HEADS &&
        !((made && scatters) || (ops.scales_in && gathers)))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scale_layout is %u: only scales of rows of slots have one, made or "
                     "read",
                     tensor, unsigned(ops.scale_layout));
    if (ops.scale_type != VKROPE_SCALE_TYPE_F32 && !has)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.scale_type is %u: %s", tensor,
                     unsigned(ops.scale_type), no_scales);
    if (ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 && made &&
        ops.store_scale != VKROPE_STORE_SCALE_MADE_POWER_OF_TWO)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scale_type is UE8M0: store_scale is %u, but it must be made, a power "
                     "of two",
                     tensor, unsigned(ops.store_scale));
    if (group == 0) return {};
    if (!has)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.store_scale_group is %u: %s", tensor,
                     group, no_scales);
    if (group != 32 && group != 64 && group != 128)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.store_scale_group is %u: it must be 32, 64 or 128, or 0", tensor,
                     group);
    if (of.head_dim % group == 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.ops.store_scale_group is %u: it must divide head_dim, %u", tensor, group,
                 of.head_dim);
}

Status check_store_scale(const char* tensor, const Ops& ops, Element out,
                         std::uint32_t heads) noexcept {
    const StoreScale scale = ops.store_scale;
    if (Status s = check_enumerator(tensor, "ops.store_scale", scale,
                                    VKROPE_STORE_SCALE_MADE_POWER_OF_TWO);
        !s)
        return s;
    if (scale != VKROPE_STORE_SCALE_NONE && !has_scale(out))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.store_scale is %u: only e4m3fn, e5m2, int8 and int4 have a scale, and "
                     "%s.out is %s",
                     tensor, unsigned(scale), tensor, element_name(out));
    if (scale >= VKROPE_STORE_SCALE_GIVEN_HEAD && heads == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.store_scale is %u: %s.heads must be above 0", tensor, unsigned(scale),
                     tensor);
    if (scale >= VKROPE_STORE_SCALE_GIVEN_HEAD) {
        if (Status s = check_head_count(tensor, heads); !s) return s;
    }
    if (!(ops.scale_floor >= 0) || std::isinf(ops.scale_floor) ||
        (ops.scale_floor != 0 && !is_made(scale)))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scale_floor is %g: it must be finite and not negative, and 0 "
                     "unless store_scale is made",
                     tensor, double(ops.scale_floor));
    if (scale == VKROPE_STORE_SCALE_MADE_POWER_OF_TWO && ops.scale_floor > 0x1p127f)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.ops.scale_floor is %g: with powers of two it must be at most 2^127, "
                     "the largest that a float holds",
                     tensor, double(ops.scale_floor));
    return {};
}

}  // namespace

Status check_scales(const char* tensor, const TensorInfo& of, bool scatters,
                    bool gathers) noexcept {
    if (Status s = check_store_scale(tensor, of.ops, of.out, of.heads); !s) return s;
    return check_layout_of_scales(tensor, of, scatters, gathers);
}

namespace {

// Checks that scales have a number for each row of a tensor.
//
// pages  pages of the rows' cache, if they have one
Status check_rows(const char* name, const VkDescriptorBufferInfo& where, const Call& call,
                  const View& scales, std::uint32_t bytes, std::uint32_t heads,
                  std::uint32_t pages) noexcept {
    const std::uint32_t rows = scales.page_size;
    const std::uint64_t slots = rows != 0 ? std::uint64_t{pages} * rows
                                          : std::uint64_t{sequences_of(call)} * call.tokens;
    if (scales.batch >= std::uint64_t{1} << 32)
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "%s: scales of a page of %u rows and %u heads are too many to count in 32 "
                     "bits",
                     name, rows, heads);
    return check_words(name, where, multiply_add(slots * heads, bytes, 3) / 4 * 4);
}

// Checks that the scales of rows that move within a cache do so, too.
Status check_same_scales(const TensorNames& names, const VkDescriptorBufferInfo& in,
                         const VkDescriptorBufferInfo& out, const ResolvedTensor& tensor) noexcept {
    const bool same_rows = tensor.in.buffer == tensor.out.buffer &&
                           tensor.in.first_byte == tensor.out.first_byte;
    if (!same_rows || (in.buffer == out.buffer && in.offset == out.offset)) return {};
    return error(
        VKROPE_ERROR_INVALID_ARGUMENT,
        "%s is not %s: the rows of %s move within one cache, so it must be the same buffer "
        "and offset",
        names.scales_in, names.scales_out, names.in);
}

// Returns the bytes of the scales of a row.
std::uint32_t scale_bytes(const TensorInfo& info) noexcept {
    return scale_groups(info) * (info.ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 ? 1 : 4);
}

}  // namespace

View scales_of(const KernelInfo& info, const ResolvedCall& call, TensorIndex index,
               bool read) noexcept {
    const TensorInfo& of = info.tensor[index];
    const ResolvedTensor& tensor = call.tensor[index];
    const Place& place = read ? tensor.scales_in : tensor.scales_out;
    const std::uint32_t heads = tensor.heads;
    View view;
    view.buffer = place.buffer;
    view.first_byte = place.first_byte;
    view.page_size = read ? tensor.in.page_size : tensor.out.page_size;
    view.element_bytes = scale_bytes(of) * heads;
    view.token = 1;
    view.batch = view.page_size != 0 ? view.page_size : call.tokens;
    if (of.ops.scale_layout == VKROPE_SCALE_LAYOUT_PAGES_HEADS && view.page_size != 0) {
        view.element_bytes = scale_bytes(of);
        view.head_dim = (heads - 1) * view.page_size + 1;
        view.batch = std::uint64_t{heads} * view.page_size;
    }
    return view;
}

Status resolve_scales(const KernelInfo& info, TensorIndex index, const Call& call,
                      ResolvedCall& resolved) noexcept {
    const TensorInfo& of = info.tensor[index];
    const TensorNames& names = names_of[index];
    ResolvedTensor& tensor = resolved.tensor[index];
    const auto resolve = [&](const char* name, const VkDescriptorBufferInfo& where, Place& place,
                             std::uint32_t pages) {
        place = {where.buffer, where.offset};
        const View view = scales_of(info, resolved, index, &place == &tensor.scales_in);
        return check_rows(name, where, call, view, scale_bytes(of), tensor.heads, pages);
    };
    if (is_made(of.ops.store_scale)) {
        if (Status s = resolve(names.scales_out, call.scales_out[index], tensor.scales_out,
                               tensor.pages);
            !s)
            return s;
    }
    if (!of.ops.scales_in) return {};
    if (Status s = resolve(names.scales_in, call.scales_in[index], tensor.scales_in,
                           value_or(tensor.source_pages, tensor.pages));
        !s)
        return s;
    if (!tensor.scales_out) return {};
    return check_same_scales(names, call.scales_in[index], call.scales_out[index], tensor);
}

}  // namespace vkrope
