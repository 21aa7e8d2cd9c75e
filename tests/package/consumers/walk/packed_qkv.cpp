// SPDX-License-Identifier: MIT
// An engine that gets Q, K and V from one matrix product. One record() moves Q from the packed rows
// to a separate tensor, and K and V to the pages of their caches; another rotates Q and K in place.
// The results are compared with loops that use the model's base and nothing of the library.
#include <algorithm>

#include "halves.hpp"

namespace walk {

namespace {

constexpr std::uint32_t head_dim = 128, q_heads = 4, kv_heads = 2, tokens = 21;
constexpr Packed layout = {head_dim, q_heads, kv_heads};
constexpr std::uint32_t page_size = 4, pages = 6, rows = pages * page_size;
constexpr std::int32_t first_position = 3000;
constexpr std::size_t kv_row = layout.kv_row(), packed_row = layout.row();
constexpr Half unwritten = 0x5a5a;  // the content of the caches before the call

// ---- The engine's calls of the library ----

// V is stored in the same way as K, without a rotation.
vkrope::Result<vkrope::KernelInfo> kernel_info(const vkrope::RopeParams& rope,
                                               const vkrope::AngleTableLayout& plan) {
    auto info = vkrope::kernel_info(rope, plan, VKROPE_F16, VKROPE_F16);
    info->tensor[vkrope::V] = {VKROPE_F16, VKROPE_F16, rope.head_dim};
    info->tensor[vkrope::Q].heads = q_heads;
    info->tensor[vkrope::K].heads = info->tensor[vkrope::V].heads = kv_heads;
    return info;
}

struct Tensors {
    VkDescriptorBufferInfo packed, q, k_cache, v_cache, slot_mapping, outside;
};

vkrope::Call to_cache(const Tensors& tensors, const Table& table) {
    return {.tokens = tokens,
            .in = {layout.q(tensors.packed), layout.k(tensors.packed), layout.v(tensors.packed)},
            .out = {{.where = tensors.q, .heads = q_heads},
                    {.where = tensors.k_cache, .heads = kv_heads},
                    {.where = tensors.v_cache, .heads = kv_heads}},
            .positions = {.first = first_position},
            .angles = table.angles(),
            .paged_cache = {.slot_mapping = tensors.slot_mapping, .page_size = page_size},
            .out_of_range = tensors.outside};
}

// V is already at its destination, so it costs nothing to name V in the call.
vkrope::Call in_place(const VkDescriptorBufferInfo& packed, const Table& table) {
    const vkrope::Tensor q = layout.q(packed), k = layout.k(packed), v = layout.v(packed);
    return {.tokens = tokens,
            .in = {q, k, v},
            .out = {q, k, v},
            .positions = {.first = first_position},
            .angles = table.angles()};
}

// ---- The engine's own calculation ----

// Returns packed rows. Q and K are finite numbers of a few magnitudes; V is any bits, which must
// arrive unchanged.
std::vector<Half> projection() {
    std::vector<Half> packed(tokens * packed_row);
    std::uint32_t state = 1;
    for (std::size_t i = 0; i < packed.size(); ++i) {
        state = state * 1664525 + 1013904223;
        const std::uint32_t bits = state >> 16, exponent = 12 + (state >> 8) % 6;
        const bool is_v = i % packed_row >= (q_heads + kv_heads) * head_dim;
        packed[i] = Half(is_v ? bits : (bits & 0x83ff) | exponent << 10);
    }
    return packed;
}

// Returns the slot of a token: -1 for padding, or, for token 12, the row after the last one, which
// is a mistake that the library must count.
std::int32_t slot_of(std::uint32_t token) {
    return token == 7 ? -1 : token == 12 ? std::int32_t(rows) : std::int32_t(token * 5 % rows);
}

// Returns whether `got` is the half nearest to a value that is within 6 u (|x0| + |x1|) of `exact`,
// which is the contract of this angle source.
bool is_near(double got, double exact, double size) {
    const double bound = 6 * 0x1p-24 * size;
    const int exponent = std::max(std::ilogb(std::abs(exact) + bound), -14);
    return std::abs(got - exact) <= bound + std::ldexp(1, exponent - 11);
}

struct Row {
    const char* tensor;
    std::uint32_t token, head;

    vkrope::Status differs(std::uint32_t channel) const {
        char sentence[128];
        const char* const words = "%s: token %u, head %u, channel %u is not what the loops have";
        std::snprintf(sentence, sizeof sentence, words, tensor, token, head, channel);
        return wrong(sentence);
    }
};

vkrope::Status is_rotated(const Row& row, const Half* in, const Half* out) {
    for (std::uint32_t j = 0; j < head_dim / 2; ++j) {
        const double x0 = value(in[j]), x1 = value(in[j + head_dim / 2]);
        const double angle = (first_position + double(row.token)) *
                             std::pow(10000.0, -2.0 * j / head_dim);
        const double c = std::cos(angle), s = std::sin(angle), size = std::abs(x0) + std::abs(x1);
        if (!is_near(value(out[j]), x0 * c - x1 * s, size)) return row.differs(j);
        if (!is_near(value(out[j + head_dim / 2]), x0 * s + x1 * c, size))
            return row.differs(j + head_dim / 2);
    }
    return {};
}

vkrope::Status is_same(const Row& row, const Half* in, const Half* out) {
    for (std::uint32_t c = 0; c < head_dim; ++c) {
        if (in[c] != out[c]) return row.differs(c);
    }
    return {};
}

const Half* packed_at(const std::vector<Half>& packed, std::uint32_t token, std::uint32_t head) {
    return &packed[token * packed_row + std::size_t{head} * head_dim];
}

struct Outcome {
    std::vector<Half> packed, q, k_cache, v_cache;
};

vkrope::Status check_cache(const std::vector<Half>& given, const Outcome& got) {
    if (got.packed != given) return wrong("the inputs have changed");
    bool named[rows] = {};
    for (std::uint32_t t = 0; t < tokens; ++t) {
        for (std::uint32_t h = 0; h < q_heads; ++h) {
            const Half* out = &got.q[(std::size_t{t} * q_heads + h) * head_dim];
            if (vkrope::Status s = is_rotated({"Q", t, h}, packed_at(given, t, h), out); !s)
                return s;
        }
        const std::int32_t slot = slot_of(t);
        if (slot < 0 || slot >= std::int32_t(rows)) continue;
        named[slot] = true;
        for (std::uint32_t h = 0; h < kv_heads; ++h) {
            const Half *k = packed_at(given, t, q_heads + h),
                       *v = packed_at(given, t, q_heads + kv_heads + h);
            const std::size_t to = std::size_t(slot) * kv_row + std::size_t{h} * head_dim;
            if (vkrope::Status s = is_rotated({"K", t, h}, k, &got.k_cache[to]); !s) return s;
            if (vkrope::Status s = is_same({"V", t, h}, v, &got.v_cache[to]); !s) return s;
        }
    }
    for (std::size_t i = 0; i < rows * kv_row; ++i) {
        if (!named[i / kv_row] && (got.k_cache[i] != unwritten || got.v_cache[i] != unwritten))
            return wrong("row " + std::to_string(i / kv_row) +
                         " of the caches, which no slot names, has changed");
    }
    return {};
}

vkrope::Status check_in_place(const std::vector<Half>& given, const std::vector<Half>& got) {
    for (std::uint32_t t = 0; t < tokens; ++t) {
        for (std::uint32_t h = 0; h < layout.heads(); ++h) {
            const Half *in = packed_at(given, t, h), *out = packed_at(got, t, h);
            const bool turns = h < q_heads + kv_heads;
            const Row row = {h < q_heads ? "Q in place"
                             : turns     ? "K in place"
                                         : "V in place",
                             t, h};
            if (vkrope::Status s = turns ? is_rotated(row, in, out) : is_same(row, in, out); !s)
                return s;
        }
    }
    return {};
}

}  // namespace

std::vector<Step> packed_qkv(const Gpu& gpu, std::string_view config_json) {
    std::vector<Step> taken;
    const Loaded model = load_model(gpu, config_json, VKROPE_ANGLES_FACTORED_TEXTURE, 0, taken);
    const auto info = kernel_info(model.rope, model.table.plan);
    taken.push_back({"kernel info", info.status});
    vkrope::KernelInfo scattering = info.value;
    scattering.scatter_kv = true;

    const std::vector<Half> given = projection(), q(tokens * q_heads * head_dim),
                            cache(rows * kv_row, unwritten);
    const std::vector<std::uint32_t> zero = {0};
    std::vector<std::int32_t> slots;
    for (std::uint32_t t = 0; t < tokens; ++t) slots.push_back(slot_of(t));
    const auto content = [&](const VkDescriptorBufferInfo& buffer) {
        return numbers_of<Half>(gpu.download(buffer));
    };
    const Tensors on = {upload(gpu, given), upload(gpu, q),     upload(gpu, cache),
                        upload(gpu, cache), upload(gpu, slots), upload(gpu, zero)};

    const Made paged(gpu.ref, scattering);
    taken.push_back({"kernel", paged.status});
    const vkrope::Call stores = to_cache(on, model.table);
    taken.push_back({"to the caches, dispatches", is_one_dispatch(paged, stores)});
    taken.push_back({"to the caches", gpu.rotate(paged, stores)});
    const Outcome stored = {content(on.packed), content(on.q), content(on.k_cache),
                            content(on.v_cache)};
    taken.push_back({"to the caches, values", check_cache(given, stored)});
    const std::uint32_t outside = numbers_of<std::uint32_t>(gpu.download(on.outside)).front();
    taken.push_back({"to the caches, slots outside",
                     outside == 1 ? vkrope::Status{}
                                  : wrong(std::to_string(outside) + " were counted, there is 1")});

    const Made packed_rows(gpu.ref, info.value);
    taken.push_back({"kernel of packed rows", packed_rows.status});
    const vkrope::Call turns = in_place(on.packed, model.table);
    taken.push_back({"in place, dispatches", is_one_dispatch(packed_rows, turns)});
    taken.push_back({"in place", gpu.rotate(packed_rows, turns)});
    taken.push_back({"in place, values", check_in_place(given, content(on.packed))});
    return taken;
}

}  // namespace walk
