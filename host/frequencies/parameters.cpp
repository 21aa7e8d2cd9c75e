// SPDX-License-Identifier: MIT
// Plans and fills the parameter buffer of a kernel: weights, biases and scales as f32.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/bits.hpp"
#include "base/parameter_layout.hpp"
#include "base/status.hpp"

namespace vkrope {

namespace {

Status require_shape(const char* tensor, const char* field, ParameterShape shape,
                     std::uint32_t heads) noexcept {
    if (shape == VKROPE_PARAMETER_NONE) return {};
    if (shape > VKROPE_PARAMETER_HEAD_CHANNEL)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.%s is %u: no such shape", tensor, field,
                     unsigned(shape));
    if (shape == VKROPE_PARAMETER_CHANNEL || heads != 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.ops.%s is [heads, head_dim]: %s.heads must be above 0", tensor, field, tensor);
}

Status check_store_scale(const char* tensor, StoreScale scale, std::uint32_t heads) noexcept {
    if (scale > VKROPE_STORE_SCALE_MADE_POWER_OF_TWO)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.ops.store_scale is %u: no such source",
                     tensor, unsigned(scale));
    if (scale != VKROPE_STORE_SCALE_GIVEN_HEAD || heads != 0) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.ops.store_scale is %u: %s.heads must be above 0", tensor, unsigned(scale),
                 tensor);
}

Status check_shapes(const char* tensor, const TensorInfo& of) noexcept {
    const Ops& ops = of.ops;
    if (Status s = check_absent(tensor, of); !s) return s;
    if (Status s = require_shape(tensor, "bias", ops.bias, of.heads); !s) return s;
    if (Status s = require_shape(tensor, "norm.weight", ops.norm.weight, of.heads); !s) return s;
    if (Status s = require_shape(tensor, "norm.bias", ops.norm.bias, of.heads); !s) return s;
    if (Status s = check_norm_part(tensor, ops.norm, of.head_dim); !s) return s;
    if (Status s = check_store_scale(tensor, ops.store_scale, of.heads); !s) return s;
    if (ops.norm.weight_offset <= 1) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.ops.norm.weight_offset is %u: it must be 0 or 1", tensor,
                 ops.norm.weight_offset);
}

// An item of a plan, its source, and its name in errors.
struct Filled {
    const ParameterItem* item;
    const ParameterSource* source;
    const char *tensor, *field;
    bool is_weight = false, is_scale = false;
};

// Checks an item of a layout, which begins at float `at`. Returns an error for one that
// vkrope_plan_parameters cannot have made.
Status check_item(const Filled& of, std::uint64_t at) noexcept {
    const ParameterItem& item = *of.item;
    const bool none = item.shape == VKROPE_PARAMETER_NONE,
               scale = item.shape == VKROPE_PARAMETER_TENSOR || item.shape == VKROPE_PARAMETER_HEAD;
    const struct {
        const char* field;
        std::uint32_t value;
        bool valid;
    } fields[] = {{"shape", unsigned(item.shape),
                   none || (item.shape <= VKROPE_PARAMETER_HEAD && scale == of.is_scale)},
                  {"offset", item.offset, item.offset == (none ? 0 : at)},
                  {"count", item.count,
                   none                                    ? item.count == 0
                   : item.shape == VKROPE_PARAMETER_TENSOR ? item.count == 1
                                                           : item.count != 0},
                  {"added", item.added, item.added <= (of.is_weight && !none ? 1u : 0u)}};
    for (const auto& [field, value, valid] : fields) {
        if (!valid)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "layout.%s.%s.%s is %u: vkrope_plan_parameters makes no such layout",
                         of.tensor, of.field, field, value);
    }
    return {};
}

Status check_source(const Filled& of) noexcept {
    const ParameterItem& item = *of.item;
    const ParameterSource& source = *of.source;
    if (item.count == 0 && (source.data || source.count != 0 || source.element != 0))
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s.%s is given: the layout has none",
                     of.tensor, of.field);
    if (item.count == 0) return {};
    if (!source.data)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.%s.data is null: the layout has %u numbers for it", of.tensor, of.field,
                     item.count);
    if (source.element > VKROPE_BF16)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.%s.element is %u, %s: it must be f32, f16 or bf16", of.tensor, of.field,
                     unsigned(source.element), element_name(source.element));
    if (source.count == item.count) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.%s.count is %zu: the layout has %u numbers for it", of.tensor, of.field,
                 source.count, item.count);
}

// Converts an element exactly. A subnormal half is an integer times 2^-24.
float widened(Element element, const unsigned char* at) noexcept {
    if (element == VKROPE_F32) {
        float value;
        std::memcpy(&value, at, sizeof value);
        return value;
    }
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    if (element == VKROPE_BF16) return float_of(std::uint32_t{bits} << 16);
    const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    const std::uint32_t rebias = magnitude < 0x7c00u ? 112u << 23 : 224u << 23;
    const float value = magnitude < 0x400u ? float(magnitude) * 0x1p-24f
                                           : float_of((magnitude << 13) + rebias);
    return float_of(bits_of(value) | sign);
}

float number(const Filled& of, std::uint32_t index) noexcept {
    const auto* source = static_cast<const unsigned char*>(of.source->data);
    return widened(of.source->element,
                   source + std::size_t{index} * element_bytes(of.source->element));
}

// Checks that scales are finite and not 0.
Status check_store_scales(const Filled& of) noexcept {
    for (std::uint32_t i = 0; i < of.item->count; ++i) {
        const float scale = number(of, i);
        if (std::isfinite(scale) && scale != 0) continue;
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "%s.%s[%u] is %g: a scale must be finite and not 0", of.tensor, of.field, i,
                     double(scale));
    }
    return {};
}

void fill(const Filled& of, unsigned char* memory) noexcept {
    for (std::uint32_t i = 0; i < (of.item->count + 3) / 4 * 4; ++i) {  // with the padding after it
        float value = i < of.item->count ? number(of, i) : 0;
        if (of.item->added != 0) value += float(of.item->added);
        std::memcpy(memory + 4 * (std::size_t{of.item->offset} + i), &value, sizeof value);
    }
}

// Returns whether these are the rows of latent attention (MLA): values of 256 channels or more,
// beside keys of the 32 or 64 channels that rotate, alone or together with the values.
bool is_latent(std::uint32_t k_head_dim, std::uint32_t v_head_dim) noexcept {
    constexpr std::uint32_t deepseek = 512 + 64;  // no other head has as many channels
    if (k_head_dim == deepseek) return true;
    for (const std::uint32_t rotated : {32u, 64u})
        if (v_head_dim >= 256 && (k_head_dim == rotated || k_head_dim == v_head_dim + rotated))
            return true;
    return false;
}

std::uint32_t block_of_llama_cpp(std::uint32_t head_dim, bool quantised,
                                 std::uint32_t most) noexcept {
    if (!quantised || head_dim == 0 || head_dim % 64 != 0) return 0;
    std::uint32_t block = 64;
    while (block < most && head_dim % (2 * block) == 0) block *= 2;
    return block;
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_hadamard_blocks vkrope_hadamard_of_llama_cpp(uint32_t k_head_dim, VkBool32 k_quantised,
                                                    uint32_t v_head_dim, VkBool32 v_quantised) {
    if (is_latent(k_head_dim, v_head_dim)) return {};
    return {block_of_llama_cpp(k_head_dim, k_quantised, 512),
            block_of_llama_cpp(v_head_dim, v_quantised, 64)};
}

vkrope_result vkrope_plan_parameters(const vkrope_kernel_info* given, vkrope_parameter_layout* made,
                                     vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(given, "info"); !s) return s;
            if (Status s = not_null(made, "layout"); !s) return s;
            const KernelInfo& info = *given;
            for (const TensorIndex t : every_tensor)
                if (Status s = check_shapes(names_of[t].name, info.tensor[t]); !s) return s;
            ParameterLayout plan;
            const std::uint64_t floats = lay_out_parameters(info, plan) *
                                         (info.two_parameter_sets ? 2 : 1);
            if (floats >= std::uint64_t{1} << 30)
                return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                             "the parameters have %" PRIu64
                             " floats: a storage buffer holds less than 2^30",
                             floats);
            *made = plan;
            return {};
        });
}

vkrope_result vkrope_fill_parameters(const vkrope_parameter_layout* planned,
                                     const vkrope_parameter_sources* from, void* memory,
                                     size_t bytes, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(planned, "layout"); !s) return s;
            if (Status s = not_null(from, "sources"); !s) return s;
            const ParameterLayout& plan = *planned;
            const ParameterSources& sources = *from;
            if (plan.bytes != 0 && (!memory || reinterpret_cast<std::uintptr_t>(memory) % 4 != 0))
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "memory is %p: it must be a multiple of 4, not null", memory);
            if (bytes < plan.bytes)
                return error(VKROPE_ERROR_INVALID_ARGUMENT, "bytes is %zu: the layout has %zu",
                             bytes, plan.bytes);
            constexpr std::uint32_t item_count = 4;  // items per tensor
            std::array<Filled, tensor_count * item_count> items;
            for (const TensorIndex t : every_tensor) {
                const TensorParameters& of = plan.tensor[t];
                const TensorParameterSources& given = sources.tensor[t];
                const char* name = names_of[t].name;
                const Filled own[item_count] = {
                    {&of.bias, &given.bias, name, "bias"},
                    {&of.weight, &given.weight, name, "weight", true},
                    {&of.norm_bias, &given.norm_bias, name, "norm_bias"},
                    {&of.store_scale, &given.store_scale, name, "store_scale", false, true}};
                std::copy(std::begin(own), std::end(own), items.begin() + t * item_count);
            }
            std::uint64_t floats = 0;
            for (const Filled& item : items) {
                if (Status s = check_item(item, floats); !s) return s;
                floats += (std::uint64_t{item.item->count} + 3) / 4 * 4;
            }
            if (plan.bytes != floats * 4)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "layout.bytes is %zu: its items have %" PRIu64, plan.bytes,
                             floats * 4);
            for (const Filled& item : items) {
                if (Status s = check_source(item); !s) return s;
                if (item.item->shape != VKROPE_PARAMETER_TENSOR &&
                    item.item->shape != VKROPE_PARAMETER_HEAD)
                    continue;
                if (Status s = check_store_scales(item); !s) return s;
            }
            for (const Filled& item : items) fill(item, static_cast<unsigned char*>(memory));
            return {};
        });
}
