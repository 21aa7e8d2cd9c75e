// SPDX-License-Identifier: MIT
// Compares moved keys with the named definitions of their types, with their old bytes, and with
// calls in parts.
#include <algorithm>
#include <random>

#include "ran_on_device.hpp"
#include "verify/oracle/quantise.hpp"
#include "verify/place.hpp"

namespace vkrope::test {
namespace {

using verify::Operation, verify::Unplaced;

// Returns K of one type with 128 channels, or fewer, in a cache whose rows move to other slots.
Unplaced moved(Element element, std::uint32_t head_dim) {
    Unplaced keys;
    KernelInfo& info = keys.info;
    info.rotary_dim = head_dim / 2 * 2;
    info.angles = VKROPE_ANGLES_COMPUTED;
    info.positions = VKROPE_POSITIONS_IDS;
    info.scatter_kv = info.gather_kv = true;
    info.tensor[K] = {.in = element, .out = element, .head_dim = head_dim};
    keys.call.gain = VKROPE_GAIN_OMIT;
    keys.attention_factor = 1.5;
    keys.shape = {.batch = 1, .tokens = 6, .groups = 2};
    keys.slots = {3, 9, 1, 20, 5, 0};
    keys.sources = {4, 2, 6, 8, 10, 12};
    keys.ids = std::vector<std::int64_t>(6, 0);
    return keys;
}

// Returns random bytes of rows; of f16, bf16 and f32 with NaNs and -0.
Bytes any_rows(const Unplaced& keys) {
    const Element element = keys.info.tensor[K].in;
    std::mt19937 random(91);
    Bytes rows(verify::stored_bytes(element, elements_of(keys, K)));
    for (std::byte& byte : rows) byte = std::byte(random() >> 16);
    if (is_quantised(element)) return rows;
    const std::uint32_t sign = element == VKROPE_F32 ? 1u << 31 : 1u << 15;
    verify::store(element, rows, 7, sign);
    verify::store(element, rows, 8, sign - 3);  // a NaN
    verify::store(element, rows, 9, element == VKROPE_F16 ? 0x7c01 : sign - (sign >> 9) + 1);
    return rows;
}

// Moves rows that nothing changes, between two transforms of so many channels, or without them.
void check_kept(Element element, std::uint32_t head_dim, Mapping mapping, std::uint32_t transform) {
    Unplaced keys = moved(element, head_dim);
    keys.info.mapping = mapping;
    keys.rows[K] = any_rows(keys);
    TensorInfo& k = keys.info.tensor[K];
    k.ops.hadamard_of_input = k.ops.hadamard = transform;
    if (is_quantised(element) && !has_blocks(element)) {
        k.heads = keys.shape.groups;
        k.ops.scales_in = true;
        k.ops.store_scale = VKROPE_STORE_SCALE_MADE;
        k.ops.store_scale_group = head_dim % 32 == 0 ? 32 : 0;
        keys.scales[K] = std::vector<float>(24 / (head_dim % 32 == 0 ? 1 : 2), 0.5f);
        keys.scales[K][3] = NAN;
        keys.scales[K][4] = -0.f;
        keys.scales[K][5] = INFINITY;
    }
    const Operation operation = verify::placed(keys);
    const Bytes after = ran_on_device(operation).after;
    CHECK((verify::packed_rows(operation, K, after) == keys.rows[K]));
    if (k.ops.scales_in)
        CHECK((bytes_of(verify::made_scales(operation, K, after)) == bytes_of(keys.scales[K])));
}

}  // namespace

TEST_CASE("q8_0 keys with a Hadamard transform, moved by 1000 positions and back") {
    for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
        CAPTURE(int(mapping));
        Unplaced in_place = moved(VKROPE_Q8_0, 128);
        in_place.info.mapping = mapping;
        TensorInfo& k = in_place.info.tensor[K];
        k.ops.hadamard_of_input = k.ops.hadamard = 128;
        in_place.sources.clear();
        in_place.in_place[K] = true;
        in_place.rows[K] = random_elements(VKROPE_Q8_0, elements_of(in_place, K), 92);
        for (const std::int64_t delta : {1000, -1000}) {
            CAPTURE(delta);
            std::fill(in_place.ids.begin(), in_place.ids.end(), delta);
            Unplaced as_f32 = in_place;  // the rows before they are stored
            as_f32.info.scatter_kv = false;
            as_f32.info.tensor[K].out = VKROPE_F32;
            as_f32.in_place[K] = false;
            std::swap(as_f32.sources, as_f32.slots);
            const Operation rows = verify::placed(as_f32), cache = verify::placed(in_place);
            const Bytes bytes = verify::packed_rows(rows, K, ran_on_device(rows).after);
            std::vector<float> numbers(bytes.size() / sizeof(float));
            std::memcpy(numbers.data(), bytes.data(), bytes.size());
            const std::vector<std::uint8_t> stored = oracle::quantise_blocks(oracle::Store::q8_0,
                                                                             numbers);
            const Bytes after = verify::packed_rows(cache, K, ran_on_device(cache).after);
            CHECK((after == bytes_of(stored)));
            in_place.rows[K] = after;
        }
    }
}

TEST_CASE("keys that move without a rotation keep their bytes and scales, in every type") {
    for (std::uint32_t type = VKROPE_F32; type <= VKROPE_INT4; ++type) {
        for (const std::uint32_t head_dim : {64u, 34u}) {
            if (head_dim % block_channels(Element(type)) != 0) continue;
            for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
                for (const std::uint32_t transform : {0u, 2u}) {
                    CAPTURE(type);
                    CAPTURE(head_dim);
                    CAPTURE(int(mapping));
                    CAPTURE(transform);
                    check_kept(Element(type), head_dim, mapping, transform);
                }
            }
        }
    }
}

TEST_CASE("keys that move in parts have the bits of one dispatch") {
    for (const Element element : {VKROPE_Q8_0, VKROPE_F16}) {
        for (const bool in_place : {false, true}) {
            CAPTURE(int(element));
            CAPTURE(in_place);
            Unplaced keys = moved(element, 128);
            keys.shape.tokens = 60;
            keys.slots.clear();
            keys.sources.clear();
            keys.ids.clear();
            for (std::int64_t i = 0; i < 60; ++i) {
                keys.slots.push_back(i * 3);
                keys.sources.push_back(i * 3 + 1);
                keys.ids.push_back(i % 4 == 0 ? 0 : 17 * i - 500);
            }
            keys.in_place[K] = in_place;
            const Operation operation = verify::placed(keys);
            const Ran whole = ran_on_device(operation),
                      parts = ran_on_device(operation, {.storage_range = 1u << 14});
            CHECK(whole.dispatches == 1);
            CHECK(parts.dispatches > 1);
            CHECK((whole.after == parts.after));
        }
    }
}

}  // namespace vkrope::test
