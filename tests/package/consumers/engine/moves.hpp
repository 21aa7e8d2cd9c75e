// SPDX-License-Identifier: MIT
// Keys that move in caches, and the types that only caches have, compared byte by byte with plain
// loops. Angles are quarter turns, which exchange the two blocks of a head, so that q8_0 and int8
// are exact.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "table.hpp"
#include "trial.hpp"

namespace engine {

class Moves : public Trial {
   public:
    Moves(const Gpu& gpu, VkCommandPool pool) : Trial(gpu, pool), rotation_(plain_rotation(64)) {
        for (double& frequency : rotation_.inv_freq) frequency = 1.5707963267948966;  // pi / 2
        table_ = table_of(rotation_, 16);
        shift();
        shift_with_scales();
        move_prefix();
        store_and_read();
        gpu.destroy(table_.image);
        change_frequencies();
    }

   private:
    using Bytes = std::vector<unsigned char>;

    static constexpr std::uint32_t heads = 2, head_dim = 64, blocks = heads * head_dim / 32,
                                   slots = 8, k_row = blocks * 34, v_row = blocks * 18;

    static std::uint32_t hash(std::size_t i) { return std::uint32_t(i) * 2654435761u >> 9; }
    static unsigned char any(std::size_t i) { return static_cast<unsigned char>(hash(i)); }
    // Returns a byte of a cache of q8_0 whose blocks have a largest code of 127, so that a turned
    // block has the same scale.
    static unsigned char stored(std::size_t i) {
        const std::size_t at = i % 34;
        const std::uint32_t scale = 0x2400 + 37 * std::uint32_t(i / 34);  // f16
        const int code = at == 9 ? 127 : int(hash(i) % 253) - 126;
        return static_cast<unsigned char>(at == 0   ? scale & 0xff
                                          : at == 1 ? scale >> 8
                                                    : std::uint32_t(code));
    }
    // Turns a row of q8_0 by quarter turns: (x0, x1) becomes (-x1, x0).
    static Bytes turned(Bytes row, std::int32_t quarters) {
        for (; quarters % 4 != 0; --quarters) {
            for (std::size_t at = 0; at < row.size(); at += 68) {
                std::swap_ranges(&row[at], &row[at] + 34, &row[at + 34]);
                for (std::size_t i = 2; i < 34; ++i)
                    row[at + i] = static_cast<unsigned char>(-row[at + i]);
            }
        }
        return row;
    }
    static Bytes row_of(const Bytes& cache, std::int32_t slot, std::size_t bytes) {
        const auto first = cache.begin() + slot * std::ptrdiff_t(bytes);
        return {first, first + std::ptrdiff_t(bytes)};
    }
    static void put(Bytes& cache, std::int32_t slot, const Bytes& row) {
        std::copy(row.begin(), row.end(), cache.begin() + slot * std::ptrdiff_t(row.size()));
    }
    Buffer& filled(const Bytes& content) {
        return fill<unsigned char>(
            content.size(), [&](std::size_t i) { return content[i]; });
    }
    VkDescriptorBufferInfo integers(const std::vector<std::int32_t>& numbers) {
        return fill<std::int32_t>(
                   numbers.size(), [&](std::size_t i) { return numbers[i]; })
            .whole();
    }
    void has(const Buffer& buffer, const Bytes& expected) {
        for (std::size_t i = 0; i < expected.size(); ++i) is(bytes(buffer)[i], expected[i]);
    }

    Table table_of(const vkrope::RopeParams& rotation, std::uint64_t max_position) {
        const VkCommandBuffer commands = gpu_.begin(pool_);
        Table table = upload_table(gpu_, commands, rotation, max_position);
        gpu_.submit_and_wait(commands);
        gpu_.destroy(table.staging);
        return table;
    }

    // Returns a kernel for K in q8_0, with Hadamard transforms, and V in iq4_nl, without an op.
    vkrope::KernelInfo kernel() const {
        auto info = vkrope::kernel_info(rotation_, table_.plan, {}, VKROPE_Q8_0, VKROPE_IQ4_NL);
        check(info.status, "kernel_info, of keys that move");
        vkrope::Ops& ops = info.value.tensor[vkrope::K].ops;
        ops.hadamard = ops.hadamard_of_input = 32;
        info.value.positions = VKROPE_POSITIONS_IDS;
        info.value.gather_kv = info.value.scatter_kv = VK_TRUE;
        return info.value;
    }
    vkrope::Call call(const Buffer& k, const std::vector<std::int32_t>& to,
                      const std::vector<std::int32_t>& deltas) {
        vkrope::Call made;
        made.tokens = std::uint32_t(to.size());
        made.in[vkrope::K] = made.out[vkrope::K] = tensor(k, heads);
        made.positions.ids = integers(deltas);
        made.angles = table_.angles();
        made.gain = VKROPE_GAIN_OMIT;
        made.paged_cache.slot_mapping = integers(to);
        return made;
    }
    static Bytes k_cache() {
        Bytes cache(slots * k_row);
        for (std::size_t i = 0; i < cache.size(); ++i) cache[i] = stored(i);
        return cache;
    }

    // A context shift in place. The key with a delta of 0 has bytes that no store gives.
    void shift() {
        const std::vector<std::int32_t> to = {6, 1, -1, 3, 4}, deltas = {1, 0, 1, -2, 7};
        Bytes expected = k_cache();
        for (std::size_t i = 0; i < k_row; ++i) expected[k_row + i] = any(i);
        const Buffer& cache = filled(expected);
        run(kernel(), call(cache, to, deltas));
        for (std::size_t t = 0; t < to.size(); ++t)
            if (to[t] >= 0)
                put(expected, to[t], turned(row_of(expected, to[t], k_row), deltas[t] + 8));
        has(cache, expected);
    }

    // A context shift in place of a cache of int8, [pages, heads, page_size, head_dim], with a
    // UE8M0 scale for 32 channels. Turned groups exchange their codes and scales.
    void shift_with_scales() {
        constexpr std::size_t page_size = 4;
        const std::vector<std::int32_t> to = {6, 1, -1, 3, 4}, deltas = {1, 0, 1, -2, 7};
        const auto slot_of = [](std::size_t row) {
            return std::int32_t(row / (heads * page_size) * page_size + row % page_size);
        };
        // The key with a delta of 0 has bytes that no store gives; other groups have a largest code
        // above 63, so that a turned group has the same scale.
        Bytes codes(slots * heads * head_dim), scales(codes.size() / 32);
        for (std::size_t i = 0; i < codes.size(); ++i) {
            const bool stays = slot_of(i / head_dim) == to[1];
            const int code = i % 32 == 9 ? 100 : int(hash(i) % 201) - 100;
            codes[i] = stays ? any(i) : static_cast<unsigned char>(code);
            scales[i / 32] = stays ? 255 : static_cast<unsigned char>(120 + i / 32 % 11);
        }
        const Buffer &cache = filled(codes), &scale_cache = filled(scales);

        auto info = vkrope::kernel_info(rotation_, table_.plan, {}, VKROPE_INT8);
        check(info.status, "kernel_info, of int8 keys that move");
        info.value.positions = VKROPE_POSITIONS_IDS;
        info.value.gather_kv = info.value.scatter_kv = VK_TRUE;
        info.value.tensor[vkrope::K].heads = heads;
        vkrope::Ops& ops = info.value.tensor[vkrope::K].ops;
        ops.scales_in = VK_TRUE;
        ops.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
        ops.store_scale_group = 32;
        ops.scale_type = VKROPE_SCALE_TYPE_UE8M0;
        ops.scale_layout = VKROPE_SCALE_LAYOUT_PAGES_HEADS;
        vkrope::Call layer = call(cache, to, deltas);
        layer.in[vkrope::K].head_stride = page_size * head_dim;
        layer.out[vkrope::K] = layer.in[vkrope::K];
        layer.scales_in[vkrope::K] = layer.scales_out[vkrope::K] = scale_cache.whole();
        layer.paged_cache.page_size = page_size;
        layer.paged_cache.page_stride = heads * page_size * head_dim;
        layer.paged_cache.row_stride = head_dim;
        run(info.value, layer);

        for (std::size_t row = 0; row < slots * heads; ++row) {
            for (std::size_t t = 0; t < to.size(); ++t) {
                for (int turn = to[t] == slot_of(row) ? deltas[t] & 3 : 0; turn != 0; --turn) {
                    const auto first = codes.begin() + std::ptrdiff_t(row * head_dim);
                    std::swap_ranges(first, first + 32, first + 32);
                    std::transform(first, first + 32, first, std::negate<unsigned char>());
                    std::swap(scales[2 * row], scales[2 * row + 1]);
                }
            }
        }
        has(cache, codes);
        has(scale_cache, scales);
    }

    // K and V of three tokens go to other slots.
    void move_prefix() {
        const std::vector<std::int32_t> from = {0, 1, 2}, to = {7, 5, 4}, deltas = {1, 0, 2};
        Bytes k = k_cache(), v(slots * v_row);
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = any(i);
        const Buffer &k_buffer = filled(k), &v_buffer = filled(v);
        vkrope::Call layer = call(k_buffer, to, deltas);
        layer.in[vkrope::V] = layer.out[vkrope::V] = tensor(v_buffer, heads);
        layer.paged_cache.source_mapping = integers(from);
        run(kernel(), layer);
        for (std::size_t t = 0; t < to.size(); ++t) {
            put(k, to[t], turned(row_of(k, from[t], k_row), deltas[t]));
            put(v, to[t], row_of(v, from[t], v_row));
        }
        has(k_buffer, k);
        has(v_buffer, v);
    }

    // Stores K in iq4_nl, V in int4 with a scale for 32 channels, and reads both. All numbers are
    // codes times powers of two, which both types keep.
    void store_and_read() {
        static constexpr int uneven[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
        constexpr std::uint32_t tokens = 3, count = tokens * heads * head_dim;
        const auto k_code = [](std::size_t i) { return i % 32 == 5 ? 0 : hash(i) % 16; };
        const auto v_code = [](std::size_t i) { return i % 32 == 5 ? -7 : int(hash(i) % 15) - 7; };
        const auto scale = [](std::size_t i) { return std::ldexp(1.0f, -int(i / 32 % 5)); };
        const auto k_number = [&](std::size_t i) { return float(uneven[k_code(i)]) * scale(i); };
        const auto v_number = [&](std::size_t i) { return float(v_code(i)) * scale(i); };

        vkrope::RopeParams none;
        none.head_dim = head_dim;
        none.no_rope = true;
        auto info = vkrope::kernel_info(none, std::nullopt, VKROPE_F32, VKROPE_F32);
        check(info.status, "kernel_info, of small types");
        info.value.scatter_kv = VK_TRUE;
        vkrope::TensorInfo &of_k = info.value.tensor[vkrope::K],
                           &of_v = info.value.tensor[vkrope::V];
        of_k.out = VKROPE_IQ4_NL;
        of_v.out = VKROPE_INT4;
        of_v.heads = heads;
        of_v.ops.store_scale = VKROPE_STORE_SCALE_MADE;
        of_v.ops.store_scale_group = 32;
        Bytes k(tokens * v_row), v(count / 2);
        const Buffer &k_cache = filled(k), &v_cache = filled(v),
                     &scales = fill<float>(count / 32, [](std::size_t) { return 0; }),
                     &k_rows = fill<float>(count, k_number), &v_rows = fill<float>(count, v_number);
        vkrope::Call layer;
        layer.tokens = tokens;
        layer.in[vkrope::K] = tensor(k_rows, heads);
        layer.in[vkrope::V] = tensor(v_rows, heads);
        layer.out[vkrope::K] = tensor(k_cache, heads);
        layer.out[vkrope::V] = tensor(v_cache, heads);
        layer.scales_out[vkrope::V] = scales.whole();
        layer.paged_cache.slot_mapping = integers({0, 1, 2});
        run(info.value, layer);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t block = i / 32 * 18, at = i % 32;
            if (at == 0) {
                is(floats(scales)[i / 32], scale(i));
                k[block + 1] = static_cast<unsigned char>(0x3c - 4 * (i / 32 % 5));  // f16
            }
            k[block + 2 + at % 16] |= static_cast<unsigned char>(k_code(i) << at / 16 * 4);
            v[i / 2] |= static_cast<unsigned char>((v_code(i) & 15) << i % 2 * 4);
        }
        has(k_cache, k);
        has(v_cache, v);

        std::swap(of_k.in, of_k.out);
        std::swap(of_v.in, of_v.out);
        of_v.ops.store_scale = VKROPE_STORE_SCALE_NONE;
        of_v.ops.scales_in = VK_TRUE;
        info.value.scatter_kv = VK_FALSE;
        info.value.gather_kv = VK_TRUE;
        std::swap(layer.scales_in, layer.scales_out);
        layer.paged_cache.slot_mapping = {};
        const std::vector<std::int32_t> from = {2, 0};
        layer.tokens = std::uint32_t(from.size());
        layer.paged_cache.source_mapping = integers(from);
        std::swap(layer.in, layer.out);
        run(info.value, layer);
        constexpr std::size_t row = heads * head_dim;
        for (std::size_t i = 0; i < from.size() * row; ++i) {
            const std::size_t of = std::size_t(from[i / row]) * row + i % row;
            is(floats(k_rows)[i], k_number(of));
            is(floats(v_rows)[i], v_number(of));
        }
    }

    // Turns cached keys from the frequencies of one base to those of another one.
    void change_frequencies() {
        const std::vector<std::int32_t> positions = {11, 0, 3000, 77};
        constexpr double old_factor = 1.25, new_factor = 1.5;
        const vkrope::RopeParams old = plain_rotation(head_dim);
        vkrope::RopeParams change = old;
        change.attention_factor = new_factor / old_factor;
        const auto new_frequency = [](std::size_t j) { return std::pow(5e5, -double(j) / 32); };
        for (std::size_t j = 0; j < head_dim / 2; ++j)
            change.inv_freq[j] = new_frequency(j) - old.inv_freq[j];
        const auto raw = [](std::size_t i) { return float(int(hash(i) % 1000) - 500) / 64; };
        // Returns the exact channel of a key that is rotated by these frequencies.
        const auto rotated = [&](std::size_t i, double frequency, double factor) {
            const std::size_t half = head_dim / 2;
            const double angle = positions[i / (heads * head_dim)] * frequency;
            return i % head_dim < half
                       ? factor * (raw(i) * std::cos(angle) - raw(i + half) * std::sin(angle))
                       : factor * (raw(i - half) * std::sin(angle) + raw(i) * std::cos(angle));
        };
        const std::size_t count = positions.size() * heads * head_dim;
        const Buffer& cache = fill<float>(count, [&](std::size_t i) {
            return rotated(i, old.inv_freq[i % (head_dim / 2)], old_factor);
        });
        Table table = table_of(change, 4096);
        auto info = vkrope::kernel_info(change, table.plan, {}, VKROPE_F32);
        check(info.status, "kernel_info, of new frequencies");
        info.value.positions = VKROPE_POSITIONS_IDS;
        info.value.gather_kv = info.value.scatter_kv = VK_TRUE;
        vkrope::Call layer = call(cache, {0, 1, 2, 3}, positions);
        layer.angles = table.angles();
        layer.gain = VKROPE_GAIN_APPLY;
        run(info.value, layer);
        gpu_.destroy(table.image);
        // The bound of the rotation, and half a unit of each cached channel, times the factor.
        const double u = (vkrope_error_bound(table.plan.source, change.attention_factor) + 1) *
                         0x1p-24;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t first = i - i % head_dim + i % (head_dim / 2);
            const double size = std::fabs(raw(first)) + std::fabs(raw(first + head_dim / 2));
            is(floats(cache)[i], rotated(i, new_frequency(i % (head_dim / 2)), new_factor),
               1.4143 * new_factor * u * size);
        }
    }

    vkrope::RopeParams rotation_;
    Table table_;
};

}  // namespace engine
