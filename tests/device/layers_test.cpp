// SPDX-License-Identifier: MIT
// Compares calls of layers without a rotation, of bound weights, of latent rows, of slots of V's
// own and of second destinations with other calls that must give the same bits.
#include "ran_on_device.hpp"
#include "verify/place.hpp"

namespace vkrope::test {
namespace {

using verify::Operation, verify::Unplaced;

// Returns Q and K of a layer without RoPE: Q has a norm and a temperature, K is stored as `k_out`.
Unplaced layer_without_rope(Element element, Element k_out, Mapping mapping) {
    constexpr std::uint32_t head_dim = 64;
    Unplaced layer;
    layer.info.pairing = VKROPE_PAIRING_NONE;
    layer.info.angles = VKROPE_ANGLES_AUTOMATIC;
    layer.info.mapping = mapping;
    layer.info.scatter_kv = true;
    layer.info.tensor[Q] = {.in = element, .out = element, .head_dim = head_dim};
    layer.info.tensor[Q].ops.norm = {
        .kind = VKROPE_NORM_RMS, .eps = 1e-5f, .weight = VKROPE_PARAMETER_CHANNEL};
    layer.info.tensor[Q].ops.scale_tokens = true;
    layer.info.tensor[K] = {.in = element, .out = k_out, .head_dim = head_dim};
    layer.shape = {.batch = 2, .tokens = 5, .groups = 2, .q_per_group = 3};
    return layer;
}

}  // namespace

TEST_CASE("layers without a rotation have the bits of a rotation by angles of 0") {
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const Element k_out : {element, VKROPE_Q8_0}) {
            CAPTURE(int(element));
            CAPTURE(int(k_out));
            const Mapping mapping = k_out == element ? VKROPE_MAPPING_GPU : VKROPE_MAPPING_CPU;
            const Unplaced layer = layer_without_rope(element, k_out, mapping);
            Unplaced turned = layer;
            turned.info.pairing = VKROPE_HALF_SPLIT;
            turned.info.rotary_dim = 64;
            turned.info.angles = VKROPE_ANGLES_FACTORED_TEXTURE;
            turned.info.phase = true;  // frequencies without phases must not all be 0
            turned.inv_freq = turned.phase = std::vector<double>(32, 0.0);
            const Operation plain = verify::placed(layer), by_0 = verify::placed(turned);
            const Ran ran = ran_on_device(plain), expected = ran_on_device(by_0);
            for (const TensorIndex which : {Q, K})
                CHECK((verify::packed_rows(plain, which, ran.after) ==
                       verify::packed_rows(by_0, which, expected.after)));
        }
    }
}

TEST_CASE("rows that nothing changes keep their bits: infinities, NaNs and -0") {
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            for (const std::uint32_t head_dim : {64u, 33u}) {  // 16 bytes at a time, and not
                CAPTURE(int(element));
                CAPTURE(int(mapping));
                CAPTURE(head_dim);
                Unplaced layer = layer_without_rope(element, element, mapping);
                layer.info.tensor[Q].ops = {};
                for (const TensorIndex which : {Q, K}) {
                    layer.info.tensor[which].head_dim = head_dim;
                    Bytes& rows = layer.rows[which];
                    rows = verify::random_bits(element, elements_of(layer, which), 51);
                    const std::uint32_t sign = element == VKROPE_F32 ? 1u << 31 : 1u << 15;
                    const std::uint32_t infinity = element == VKROPE_F32   ? 0x7f800000
                                                   : element == VKROPE_F16 ? 0x7c00
                                                                           : 0x7f80;
                    for (const std::uint32_t bits :
                         {sign, infinity, sign | infinity, infinity | 1, sign | 1})
                        verify::store(element, rows, bits % 61, bits);
                }
                const Operation operation = verify::placed(layer);
                const Ran ran = ran_on_device(operation);
                CHECK((verify::packed_rows(operation, Q, ran.after) == layer.rows[Q]));
                verify::each_stored_row(operation, K, [&](std::uint64_t row, std::size_t byte) {
                    const std::size_t bytes = head_dim * element_bytes(element);
                    CHECK(std::memcmp(&ran.after[byte], &layer.rows[K][row * bytes], bytes) == 0);
                });
            }
        }
    }
}

TEST_CASE("weights that a call binds have the bits of the same weights among the parameters") {
    struct Row {
        Element type;
        std::uint32_t head_dim;  // 64: 16 bytes of weights at a time; 66: 4; 33: one weight
        Mapping mapping;
        ParameterShape shape;
    };
    const Row rows[] = {{VKROPE_F16, 64, VKROPE_MAPPING_GPU, VKROPE_PARAMETER_CHANNEL},
                        {VKROPE_F32, 64, VKROPE_MAPPING_GPU, VKROPE_PARAMETER_CHANNEL},
                        {VKROPE_BF16, 66, VKROPE_MAPPING_CPU, VKROPE_PARAMETER_HEAD_CHANNEL},
                        {VKROPE_F16, 33, VKROPE_MAPPING_GPU, VKROPE_PARAMETER_HEAD_CHANNEL},
                        {VKROPE_F32, 33, VKROPE_MAPPING_CPU, VKROPE_PARAMETER_HEAD_CHANNEL}};
    for (const Row& row : rows) {
        CAPTURE(int(row.type));
        CAPTURE(row.head_dim);
        Unplaced layer = layer_without_rope(VKROPE_BF16, VKROPE_BF16, row.mapping);
        for (const TensorIndex which : {Q, K}) {
            TensorInfo& of = layer.info.tensor[which];
            of.head_dim = row.head_dim;
            of.heads = which == Q ? layer.shape.q_heads() : layer.shape.groups;
            of.ops.norm = {.kind = VKROPE_NORM_RMS,
                           .eps = 1e-6f,
                           .weight = row.shape,
                           .weight_offset = which == Q ? 1u : 0u,
                           .weight_bound = true,
                           .weight_type = row.type};
        }
        layer.shares_weight = true;  // where Q and K have as many
        Unplaced packed = layer;
        verify::pack_weights(packed);
        const Operation bound = verify::placed(layer), expected = verify::placed(packed);
        CHECK((bound.call.norm_weight[Q].offset == bound.call.norm_weight[K].offset) ==
              (row.shape == VKROPE_PARAMETER_CHANNEL));
        const Ran ran = ran_on_device(bound), of_packed = ran_on_device(expected);
        for (const TensorIndex which : {Q, K})
            CHECK((verify::packed_rows(bound, which, ran.after) ==
                   verify::packed_rows(expected, which, of_packed.after)));
    }
}

TEST_CASE("V with slots of its own has the bits of a call with V alone") {
    for (const Element k_out : {VKROPE_F16, VKROPE_Q8_0}) {
        CAPTURE(int(k_out));
        Unplaced layer = layer_without_rope(VKROPE_F16, k_out, VKROPE_MAPPING_GPU);
        layer.info.tensor[V] = {.in = VKROPE_F16, .out = VKROPE_F16, .head_dim = 64};
        layer.shape.batch = 1;
        layer.slots = {3, 9, -1, 20, 24};  // K's cache has 21 rows, V's has 24
        layer.v_slots = {23, 5, 1, 21, 9};
        layer.call.paged_cache.page_size = 3;
        layer.beside = k_out == VKROPE_F16;  // then both have 21
        layer.counts = true;
        const Operation both = verify::placed(layer);
        Operation alone = both;
        alone.call.in[K] = alone.call.out[K] = alone.call.in[Q] = alone.call.out[Q] = {};
        alone.call.scale_tokens[Q] = {};
        PagedCache& cache = alone.call.paged_cache;
        cache.slot_mapping = std::exchange(cache.v_slot_mapping, {});
        const Ran ran = ran_on_device(both), of_v = ran_on_device(alone);
        CHECK(ran.dispatches == 2);
        CHECK(of_v.dispatches == 1);
        CHECK(
            (verify::packed_rows(both, V, ran.after) == verify::packed_rows(alone, V, of_v.after)));
    }
}

TEST_CASE("a latent row in one dispatch has the bits of K and V in two") {
    constexpr std::uint32_t latent = 512, rotary_dim = 64, row = latent + rotary_dim, tokens = 7,
                            slots = 9;
    for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
        for (const Mapping mapping : {VKROPE_MAPPING_CPU, VKROPE_MAPPING_GPU}) {
            CAPTURE(int(element));
            CAPTURE(int(mapping));
            const std::size_t size = element_bytes(element);
            Operation one;
            one.info.pairing = VKROPE_INTERLEAVED;
            one.info.rotary_dim = rotary_dim;
            one.info.angles = VKROPE_ANGLES_FACTORED_TEXTURE;
            one.info.mapping = mapping;
            one.info.scatter_kv = true;
            one.info.tensor[K] = {
                .in = element, .out = element, .head_dim = row, .rotary_offset = latent};
            Norm& norm = one.info.tensor[K].ops.norm;
            norm = {.kind = VKROPE_NORM_RMS,
                    .eps = 1e-6f,
                    .weight = VKROPE_PARAMETER_CHANNEL,
                    .channels = latent};
            for (std::uint32_t c = 0; c < latent; ++c)
                one.parameters[K].weight.push_back(0.5f + float(c % 9) / 8);
            one.inv_freq.resize(rotary_dim / 2);
            must(default_inv_freq(10000, rotary_dim, one.inv_freq.data()));
            // The rows, then the slots, then the cache.
            one.memory = random_elements(element, tokens * row, 71);
            const std::vector<std::int32_t> mapping_of_slots = {4, 8, -1, 0, 2, 7, 1};
            const Bytes as_bytes = bytes_of(mapping_of_slots);
            const VkDescriptorBufferInfo in = {{}, 0, one.memory.size()},
                                         given = {{}, in.range, as_bytes.size()},
                                         cache = {{}, 16384 * 2, slots * row * size};
            one.memory.insert(one.memory.end(), as_bytes.begin(), as_bytes.end());
            one.memory.resize(cache.offset + cache.range + 64, std::byte{0x5a});
            Call& call = one.call;
            call.tokens = tokens;
            call.positions = {.first = 3, .batch_stride = broadcast};
            call.paged_cache.slot_mapping = given;
            call.in[K] = {.where = in, .heads = 1};
            call.out[K] = {.where = cache, .heads = 1};

            Operation two = one;
            two.info.tensor[K] = {.in = element, .out = element, .head_dim = rotary_dim};
            two.info.tensor[V] = {.in = element, .out = element, .head_dim = latent};
            two.info.tensor[V].ops.norm = norm;
            two.info.tensor[V].ops.norm.channels = 0;
            std::swap(two.parameters[K], two.parameters[V]);
            two.call.in[V] = two.call.in[K];
            two.call.out[V] = two.call.out[K];
            for (Tensor* const tensors : {two.call.in, two.call.out}) {
                tensors[K].where.offset += latent * size;
                tensors[K].where.range -= latent * size;
            }
            two.call.in[K].token_stride = two.call.in[V].token_stride = row;
            two.call.paged_cache.row_stride = two.call.paged_cache.page_stride = row;

            const Ran of_one = ran_on_device(one), of_two = ran_on_device(two);
            CHECK(of_one.dispatches == 1);
            CHECK(of_two.dispatches == 2);
            CHECK((of_one.after == of_two.after));
        }
    }
}

TEST_CASE("second destinations in one dispatch have the bits of those in dispatches of their own") {
    for (const SecondOf second_of : {VKROPE_SECOND_RESULT, VKROPE_SECOND_INPUT}) {
        for (const bool in_place : {false, true}) {
            CAPTURE(int(second_of));
            CAPTURE(in_place);
            Unplaced layer;
            layer.info.rotary_dim = 32;
            layer.info.tensor[Q] = {.in = VKROPE_F16, .out = VKROPE_F16, .head_dim = 64};
            layer.shape = {.batch = 2, .tokens = 3, .groups = 2, .q_per_group = 2};
            for (const TensorIndex which : {K, V}) {
                layer.info.tensor[which] = {.in = VKROPE_F16,
                                            .out = VKROPE_F16,
                                            .head_dim = 64,
                                            .heads = layer.shape.groups,
                                            .second_of = second_of,
                                            .second = which == K ? VKROPE_F16 : VKROPE_F32};
            }
            layer.in_place = {in_place, in_place, in_place};
            const Operation operation = verify::placed(layer);
            const Ran together = ran_on_device(operation),
                      apart = ran_on_device(operation, {.storage_buffers = 4});
            CHECK(together.dispatches == 1);
            CHECK(apart.dispatches > together.dispatches);
            CHECK((together.after == apart.after));
        }
    }
}

TEST_CASE("a number of tokens counts in a call that only stores a second destination") {
    Unplaced layer;
    layer.info.rotary_dim = 4;
    layer.info.token_count = true;
    for (const TensorIndex which : every_tensor) layer.info.tensor[which].head_dim = 4;
    layer.info.tensor[V].heads = 1;
    layer.info.tensor[V].second_of = VKROPE_SECOND_INPUT;
    layer.shape = {.batch = 2, .tokens = 3};
    layer.absent[Q] = layer.absent[K] = true;
    layer.in_place[V] = true;
    layer.counts = true;
    for (const std::uint32_t number : {2u, 3u, 4u}) {
        CAPTURE(number);
        layer.token_count = number;
        const Operation operation = verify::placed(layer);
        CHECK(verify::tokens_out_of_range(operation) == (number > 3 ? 1 : 0));
        for (const std::uint32_t storage_buffers : {0u, 4u})  // with 4 it has its own pipeline
            CHECK(ran_on_device(operation, {.storage_buffers = storage_buffers}).dispatches == 1);
    }
}

}  // namespace vkrope::test
