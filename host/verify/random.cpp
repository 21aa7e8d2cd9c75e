// SPDX-License-Identifier: MIT
// Draws random operations. Long because each field of vkrope_call is drawn here, in the order of
// the rules that connect the fields.
#include "verify/random.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "verify/definition.hpp"
#include "verify/oracle/code_edges.hpp"
#include "verify/random_kernel.hpp"

namespace vkrope::verify {
namespace {

bool binds_weights(const KernelInfo& info) {
    return std::any_of(
        std::begin(info.tensor), std::end(info.tensor),
        [](const TensorInfo& of) { return of.ops.norm.weight_bound != 0; });
}

bool over_token(const KernelInfo& info, vkrope_tensor_index which) {
    return info.tensor[which].ops.norm.span == VKROPE_NORM_SPAN_TOKEN;
}

// ---- The angles of a call ----

void draw_angles(Random& random, Unplaced& operation) {
    KernelInfo& info = operation.info;
    const bool of_caller = info.angles == VKROPE_ANGLES_COS_SIN_CACHE;
    operation.attention_factor = random.any_of({1.0, 1.2079441541679836, 0.3, 1024.0});
    operation.max_position = info.angles == VKROPE_ANGLES_FACTORED_TEXTURE
                                 ? random.any_of({48u, 5000u, 1u << 22})
                                 : random.any_of({1u, 48u, 129u});
    if (info.phase) {
        const std::size_t count = std::size_t{vkrope::head_groups_of(info)} * info.rotary_dim / 2;
        for (std::size_t i = 0; i < count; ++i)
            operation.phase.push_back((random.number() - 0.5) * random.any_of({4.0, 4000.0}));
    }
    const bool direct = info.angles == VKROPE_ANGLES_DIRECT_TEXTURE ||
                        info.angles == VKROPE_ANGLES_DIRECT_BUFFER;
    if (direct && !info.phase && random.one_in(3))
        operation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    if (random.one_in(2)) {
        const std::size_t count = inv_freq_of(operation).size();
        for (std::size_t i = 0; i < count; ++i) {
            operation.inv_freq.push_back(std::pow(10.0, -5 * random.number()) *
                                         random.any_of({1.0, 1.0, -1.0, 100.0}));
        }
    }
    if (of_caller) {
        const std::uint32_t columns = info.rotary_dim / (info.channel_angles ? 1 : 2);
        operation.row_stride = columns + random.below(4);
        const std::size_t count = rounded_up(operation.max_position * operation.row_stride, 2);
        const auto seed = std::uint32_t(random());
        operation.cos = random_elements(info.table, count, seed);
        operation.sin = random_elements(info.table, count, seed + 1);
    }
}

// Draws a position, often a position that the angles cover.
std::int64_t any_position(Random& random, const Unplaced& operation, bool int64) {
    const std::int64_t end = operation.info.angles == VKROPE_ANGLES_COMPUTED
                                 ? std::int64_t{1} << random.below(32)
                                 : operation.max_position;
    const std::int64_t near[] = {0,
                                 end - 1,
                                 1 - end,
                                 end,
                                 -end,
                                 std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max()};
    const std::int64_t beyond[] = {std::int64_t{1} << 31, (std::int64_t{1} << 32) + 1,
                                   -(std::int64_t{1} << 32), INT64_MIN, INT64_MAX};
    if (moves_keys(operation.info) && random.one_in(2)) return 0;
    std::int64_t position = std::int64_t(random() % std::uint64_t(end));
    if (operation.info.angles != VKROPE_ANGLES_COS_SIN_CACHE && random.one_in(2))
        position = -position;
    const std::uint32_t kind = random.below(16);
    position = kind == 0 && int64 ? random.any_of(beyond)
               : kind < 4         ? random.any_of(near)
                                  : position;
    constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min(),
                           high = std::numeric_limits<std::int32_t>::max();
    return int64 ? position : std::clamp(position, low, high);
}

void draw_positions(Random& random, Unplaced& operation) {
    const KernelInfo& info = operation.info;
    const Shape& shape = operation.shape;
    Positions& positions = operation.call.positions;
    positions = {};
    if (info.positions == VKROPE_POSITIONS_IMPLICIT) {
        const std::uint32_t stride = random.below(9);
        positions.batch_stride = stride == 0 ? broadcast : stride;
        const std::int64_t last = std::int64_t{std::numeric_limits<std::int32_t>::max()} -
                                  shape.tokens - std::int64_t{shape.batch} * stride;
        const std::int64_t first = any_position(random, operation, false) - random.below(4);
        positions.first = std::int32_t(
            std::clamp(first, std::int64_t{std::numeric_limits<std::int32_t>::min()}, last));
        return;
    }
    positions.int64 = random.one_in(2);
    positions.token_stride = random.below(3);
    const std::int64_t token = std::max<std::int64_t>(positions.token_stride, 1);
    const bool one_row = random.one_in(4), one_axis = random.one_in(6);
    const std::int64_t sequence = shape.tokens * token;
    positions.batch_stride = one_row            ? broadcast
                             : random.one_in(2) ? 0
                                                : sequence + random.below(3);
    const std::int64_t batch = positions.batch_stride == broadcast ? sequence
                               : positions.batch_stride == 0       ? shape.batch * sequence
                                                             : shape.batch * positions.batch_stride;
    const std::uint32_t axes = std::max(info.sections.axes, 1u);
    if (info.positions == VKROPE_POSITIONS_AXIS_IDS) {
        positions.axis_stride = one_axis           ? broadcast
                                : random.one_in(2) ? 0
                                                   : batch + random.below(3);
    }
    for (std::uint32_t axis = 0; axis < axes; ++axis) {
        for (std::uint32_t row = 0; row < shape.batch; ++row) {
            for (std::uint32_t t = 0; t < shape.tokens; ++t) {
                const std::size_t same = axis > 0 && one_axis ? row * shape.tokens + t
                                         : row > 0 && one_row ? std::size_t{axis} * shape.rows() + t
                                                              : operation.ids.size();
                operation.ids.push_back(
                    same < operation.ids.size()
                        ? operation.ids[same]
                        : any_position(random, operation, positions.int64 != 0));
            }
        }
    }
}

// ---- The tensors of a call ----

bool is_block_type(Element element) {
    return block_channels(element) != 1;
}

// Returns true if the element types allow the strides of an arrangement. Norms over a token need
// the same stride between all heads.
bool allows(const Unplaced& operation, Arrangement arrangement, bool output) {
    const KernelInfo& info = operation.info;
    bool blocks = false, whole_blocks = true, one_stride = false;
    for (const TensorIndex which : every_tensor) {
        blocks = blocks || is_block_type(output ? info.tensor[which].out : info.tensor[which].in);
        // An absent Q or K takes up one channel in a row.
        whole_blocks = whole_blocks && info.tensor[which].head_dim % 32 == 0 &&
                       (which == V || is_present(info, which));
        one_stride = one_stride || over_token(info, which);
    }
    const bool of_groups = operation.shape.own_q_heads == 0;
    switch (arrangement) {
        case Arrangement::broadcast: return !output && is_present(info, K) && !info.gather_kv;
        case Arrangement::thd: return operation.shape.batch == 1;
        case Arrangement::grouped_qkv: return of_groups && !one_stride && (!blocks || whole_blocks);
        case Arrangement::groups_first: return of_groups && !one_stride;
        case Arrangement::gathered:
            return !one_stride && vkrope::head_groups_of(info) < 3 && (!blocks || whole_blocks);
        case Arrangement::packed_qkv: return of_groups && (!blocks || whole_blocks);
        case Arrangement::packed_kv: return !blocks || whole_blocks;
        case Arrangement::gaps:
        case Arrangement::odd_offsets:
        case Arrangement::odd_pairs: return !blocks;
        default: return true;
    }
}

Arrangement any_arrangement(Random& random, const Unplaced& operation, bool output) {
    // Of all arrangements only this one tells V apart from K where they have the same shape.
    const std::uint32_t share = operation.info.tensor[V].head_dim != 0 ? 4 : 16;
    for (;;) {
        const Arrangement drawn = random.one_in(share) ? Arrangement::gathered
                                                       : random.any_of(arrangements).value;
        if (allows(operation, drawn, output)) return drawn;
    }
}

bool may_be_in_place(const Unplaced& operation, TensorIndex which) {
    const KernelInfo& info = operation.info;
    const TensorInfo& of = info.tensor[which];
    return of.head_dim != 0 && of.in == of.out &&
           (which == V || output_pairing(info) == info.pairing) &&
           (which == Q || info.scatter_kv == info.gather_kv) &&
           !(which != Q && operation.in == Arrangement::broadcast);
}

void draw_arrangements(Random& random, Unplaced& operation) {
    operation.in = any_arrangement(random, operation, false);
    operation.out = any_arrangement(random, operation, true);
    operation.lead = random.below(4);
    const bool some = random.one_in(2);
    for (const TensorIndex which : every_tensor)
        operation.in_place[which] = some && may_be_in_place(operation, which) && !random.one_in(4);
}

// Returns whether K and V have equal rows and head counts, or there is no V.
bool are_alike(const Unplaced& operation) {
    const TensorInfo &k = operation.info.tensor[K], &v = operation.info.tensor[V];
    return v.head_dim == 0 ||
           (v.head_dim == k.head_dim && operation.shape.v_heads() == operation.shape.groups);
}

bool may_be_beside(const Unplaced& operation) {
    const KernelInfo& info = operation.info;
    const TensorInfo &k = info.tensor[K], &v = info.tensor[V];
    return are_alike(operation) && is_present(info, V) && (!info.scatter_kv || v.out == k.out) &&
           (!info.gather_kv || v.in == k.in);
}

// A page of one row has no gaps between its heads.
bool may_be_by_head(const Unplaced& operation) {
    return are_alike(operation) && !(operation.beside && operation.call.paged_cache.page_size <= 1);
}

bool may_have_gaps(const Unplaced& operation) {
    const auto has_block = [](const TensorInfo& of) {
        return is_block_type(of.in) || is_block_type(of.out);
    };
    return are_alike(operation) && !operation.beside && !has_block(operation.info.tensor[K]) &&
           !has_block(operation.info.tensor[V]);
}

std::int64_t slot_outside(Random& random, std::uint32_t rows, bool int64) {
    const std::int64_t outside[] = {rows,
                                    -2,
                                    INT32_MIN,
                                    INT32_MAX,
                                    (std::int64_t{1} << 32) + 1,
                                    INT64_MIN,
                                    0xffffffff,
                                    -(std::int64_t{1} << 32)};
    return outside[random.below(int64 ? 8 : 4)];
}

void draw_slots(Random& random, Unplaced& operation) {
    const Shape& shape = operation.shape;
    PagedCache& cache = operation.call.paged_cache;
    cache.int64 = random.one_in(2);
    cache.page_size = random.any_of({0u, 1u, 3u, 16u, 128u});
    cache.batch_stride = random.one_in(2) ? 0 : shape.tokens + random.below(3);
    const std::uint32_t rows = slots_of(operation, K);
    // No token's source is the destination of another one, even if both are one cache.
    const KernelInfo& info = operation.info;
    const std::uint32_t count = shape.rows();
    const bool own_sources = info.gather_kv && !(info.scatter_kv && random.one_in(3));
    std::vector<std::int64_t> free(rows);
    for (std::uint32_t row = 0; row < rows; ++row) free[row] = row;
    for (std::uint32_t i = 0; i < 2 * count; ++i)
        std::swap(free[i], free[i + random.below(rows - i)]);
    const auto any_outside = [&] { return slot_outside(random, rows, cache.int64 != 0); };
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t kind = random.below(8), of_source = random.below(12);
        if (info.scatter_kv)
            operation.slots.push_back(kind == 0 ? -1 : kind == 1 ? any_outside() : free[i]);
        if (own_sources)
            operation.sources.push_back(of_source == 0   ? -1
                                        : of_source == 1 ? any_outside()
                                        : of_source < 4  ? free[i]
                                        : of_source == 4 ? free[count + random.below(count)]
                                                         : free[count + i]);
    }
    operation.beside = may_be_beside(operation) && random.one_in(3);
    operation.pages_by_head = may_be_by_head(operation) && random.one_in(2);
    operation.page_gaps = may_have_gaps(operation) && random.one_in(3);
}

// Draws slots and sources of V's own, from rows that K does not use.
void draw_slots_of_v(Random& random, Unplaced& operation) {
    const std::vector<std::int64_t>&slots = operation.slots, &sources = operation.sources;
    if (operation.absent[K] || operation.absent[V] || (slots.empty() && sources.empty()) ||
        !random.one_in(6))
        return;
    const std::uint32_t drawn = slots.empty() ? 2 : sources.empty() ? 1 : 1 + random.below(3);
    const std::size_t count = operation.shape.rows();
    if (drawn != 2) operation.v_slots.resize(count);
    if (drawn != 1) operation.v_sources.resize(count);
    const std::uint32_t rows = slots_of(operation, V);
    std::vector<bool> used(rows);
    for (const std::vector<std::int64_t>* of_k : {&slots, &sources})
        for (const std::int64_t slot : *of_k)
            if (slot >= 0 && slot < rows) used[std::size_t(slot)] = true;
    std::vector<std::int64_t> free;
    for (std::int64_t row = 0; row < rows; ++row)
        if (!used[std::size_t(row)]) free.push_back(row);
    if (random.one_in(2)) std::swap(free.front(), free.back());  // a row of the last page
    for (std::size_t i = 1; i < 2 * count; ++i)
        std::swap(free[i], free[i + random.below(std::uint32_t(free.size() - i))]);
    const auto draw = [&](std::vector<std::int64_t>& own, std::size_t i, std::int64_t row) {
        const std::uint32_t kind = random.below(8);
        if (own.empty()) return;
        own[i] = kind == 0   ? -1
                 : kind == 1 ? slot_outside(random, rows, operation.call.paged_cache.int64 != 0)
                             : row;
    };
    for (std::size_t i = 0; i < count; ++i) {
        draw(operation.v_slots, i, free[i]);
        draw(operation.v_sources, i, drawn == 3 && random.one_in(4) ? free[i] : free[count + i]);
    }
}

// ---- The values of a call ----

// The kinds of values in a row. equal: small, but about half of the blocks of 32 have numbers of
// one magnitude, often 0, and both signs.
enum class Values { small, all_magnitudes, special, equal, any_bits };

std::uint32_t special_bits(Random& random, Element element) {
    const int mantissa = element == VKROPE_F32 ? 23 : element == VKROPE_F16 ? 10 : 7;
    const std::uint32_t sign = element == VKROPE_F32 ? 1u << 31 : 1u << 15;
    const std::uint32_t infinity = sign - (1u << mantissa);
    const std::uint32_t special[] = {0,
                                     1,
                                     (1u << mantissa) - 1,
                                     1u << mantissa,
                                     infinity,
                                     infinity + (1u << (mantissa - 1)),
                                     infinity + 1};
    return random.any_of(special) | (random.one_in(2) ? sign : 0);
}

std::uint32_t any_element(Random& random, Element element, Values values) {
    // -130: subnormal in f32; 70: its square overflows in f32
    constexpr int exponents[] = {0, 0, 0, 10, -8, -20, -130, 70};
    const std::uint32_t count = element == VKROPE_F16 ? 7 : 8;
    const int exponent = values == Values::all_magnitudes ? exponents[random.below(count)] : 0;
    if (values == Values::any_bits)
        return std::uint32_t(random()) & (element == VKROPE_F32 ? ~0u : 0xffffu);
    if (values == Values::special && random.one_in(24)) return special_bits(random, element);
    const double number = (random.number() - 0.5) * 8;
    return oracle::narrow(type_of(element), std::ldexp(static_cast<long double>(number), exponent));
}

// Returns blocks with every edge of the codes of a quantised type, and the ties between codes.
// They reach the store if no op changes the rows.
std::vector<float> edges_of(Element element) {
    const oracle::Store store = store_of(element);
    return oracle::code_edges(store, 1.25f * oracle::largest_for_ties(store), false);
}

// Draws rows of codes, and scales. `special`: some d, m, scales and codes are zeros, subnormal
// numbers, infinities and NaNs.
void draw_codes(Random& random, Unplaced& operation, TensorIndex which, bool special,
                bool may_be_largest) {
    const TensorInfo& of = operation.info.tensor[which];
    const std::size_t count = elements_of(operation, which), bytes = element_bytes(of.in);
    Bytes& rows = operation.rows[which];
    rows = random_elements(of.in, count, std::uint32_t(random()));
    const auto is_special = [&] { return special && random.one_in(24); };
    if (has_blocks(of.in)) {
        const std::size_t fields = oracle::has_minimum(store_of(of.in)) ? 2 : 1;
        for (std::size_t block = 0; block < rows.size(); block += bytes) {
            for (std::size_t field = 0; field < fields; ++field) {
                const std::uint32_t bits = special_bits(random, VKROPE_F16);
                if (is_special()) std::memcpy(&rows[block + 2 * field], &bits, 2);
            }
        }
        return;
    }
    if (of.in == VKROPE_E4M3FN || of.in == VKROPE_E5M2)  // most rows have no NaN
        for (std::byte& code : rows)
            while (
                !is_special() &&
                !std::isfinite(oracle::dequantise(store_of(of.in), {{std::uint8_t(code)}}).front()))
                code = std::byte(random());
    if (!of.ops.scales_in) return;
    const bool powers = of.ops.scale_type == VKROPE_SCALE_TYPE_UE8M0;
    const float largest = may_be_largest ? 0x1p127f : 1.f;
    const float extremes[] = {0,
                              NAN,
                              powers ? 0.f : INFINITY,
                              powers ? 0x1p-126f : 0x1p-140f,
                              largest,
                              powers ? 1.f : -0.5f};
    for (std::size_t i = 0; i < count / of.head_dim * scale_groups(of); ++i) {
        const float drawn = std::ldexp(powers ? 1.f : float(1 + random.number()),
                                       -int(random.below(9)));
        operation.scales[which].push_back(is_special() ? random.any_of(extremes) : drawn);
    }
}

void draw_values(Random& random, Unplaced& operation) {
    for (const TensorIndex which : every_tensor) {
        const TensorInfo& of = operation.info.tensor[which];
        // The oracle has no overflow inside an op. In f32, sums of the largest numbers overflow in
        // a layer norm and in a Hadamard transform, and both products of a rotation with a factor
        // above 1 overflow too.
        const bool may_be_largest = operation.attention_factor == 1 && of.ops.hadamard == 0 &&
                                    of.ops.hadamard_of_input == 0 &&
                                    of.ops.norm.kind != VKROPE_NORM_LAYER;
        if (of.head_dim != 0 && is_quantised(of.in)) {
            draw_codes(random, operation, which, random.one_in(2), may_be_largest);
            continue;
        }
        const auto values = Values(random.below(may_be_largest ? 5 : 4));
        const bool at_edges = is_quantised(of.out) && random.one_in(2);
        const std::vector<float> edges = at_edges ? edges_of(of.out) : std::vector<float>();
        const std::size_t first_edge = 32 * random.below(32);  // of a block
        const std::uint32_t sign = of.in == VKROPE_F32 ? 1u << 31 : 1u << 15;
        bool are_equal = false;
        std::uint32_t magnitude = 0;
        operation.rows[which].resize(elements_of(operation, which) * element_bytes(of.in));
        for (std::size_t i = 0; i < elements_of(operation, which); ++i) {
            std::uint32_t bits = any_element(random, of.in, values);
            if (!edges.empty())
                bits = oracle::narrow(type_of(of.in), edges[(first_edge + i) % edges.size()]);
            if (i % 32 == 0) {
                are_equal = values == Values::equal && random.one_in(2);
                magnitude = random.one_in(2) ? 0 : bits & ~sign;
            }
            if (are_equal) bits = (bits & sign) | magnitude;
            store(of.in, operation.rows[which], i, bits);
        }
    }
}

void draw_call(Random& random, Unplaced& operation, std::uint32_t elements) {
    const KernelInfo& info = operation.info;
    Call& call = operation.call;
    Shape& shape = operation.shape;
    if (info.tensor[Q].heads == 0 && info.tensor[K].heads == 0) {
        draw_heads(random, operation);
        shape.groups <<= shape.groups < 10 ? random.below(3) : 0;
        if (info.tensor[V].heads != 0) shape.own_v_heads = info.tensor[V].heads;
    }
    std::size_t longest = 1;  // elements of the largest tensor for one token
    shape.batch = shape.tokens = 1;
    for (const TensorIndex which : every_tensor)
        longest = std::max(longest, elements_of(operation, which));
    const auto most = std::uint32_t(elements / longest);
    const std::uint32_t fewest = info.two_parameter_sets ? 2 : 1;
    shape.batch = 1 + random.below(std::clamp(most / fewest, 1u, 3u));
    shape.tokens = fewest +
                   random.below(std::clamp(most / shape.batch, fewest, 1u << 16) + 1 - fewest);
    const bool rotates = info.rotary_dim != 0;
    if (rotates) {
        draw_angles(random, operation);
        draw_positions(random, operation);
        call.direction = random.up_to(VKROPE_INVERSE);
        call.gain = moves_keys(info) && !random.one_in(3) ? VKROPE_GAIN_OMIT
                                                          : random.up_to(VKROPE_GAIN_DIVIDE_OUT);
    }
    if (info.scatter_kv || info.gather_kv) draw_slots(random, operation);
    const bool whole = random.one_in(2);
    for (const TensorIndex which : every_tensor)
        operation.absent[which] = !is_present(info, which) || (!whole && random.one_in(4));
    if (operation.absent[Q] && operation.absent[K] && operation.absent[V])
        operation.absent[is_present(info, Q) ? Q : K] = false;
    draw_arrangements(random, operation);
    if (info.tensor[Q].ops.scale_call && !operation.absent[Q])
        call.q_scale = random.any_of({0.0f, 1.0f, 0.7f, -3.0f});
    if (info.two_parameter_sets) call.first_set_tokens = 1 + random.below(shape.tokens - 1);
    const bool may_be_outside = (rotates && (info.angles != VKROPE_ANGLES_COMPUTED ||
                                             info.positions != VKROPE_POSITIONS_IMPLICIT)) ||
                                info.scatter_kv || info.gather_kv;
    operation.counts = may_be_outside && random.one_in(2);
    operation.seed = std::uint32_t(random());
    Random more(operation.seed);
    draw_slots_of_v(more, operation);
    operation.shares_weight = more.one_in(2) && binds_weights(info);
    if (info.token_count) {
        Random of_count(~std::uint64_t{operation.seed});
        const std::uint32_t all = shape.tokens, some = of_count.below(all + 1);
        operation.token_count = of_count.any_of(
            {0u, 1u, all - 1, all, all + 1, ~0u, std::uint32_t(of_count()), some, some, some});
        if (!may_be_outside) operation.counts = of_count.one_in(2);
    }
}

// Draws whether a kernel takes a number of tokens, apart from all else that is drawn.
//
// from  determines the result
void draw_token_count(std::uint64_t from, const Kind& kind, KernelInfo& info) {
    const bool may = !info.two_parameter_sets;
    info.token_count = may && (kind.has_token_count ||
                               (kind.kernel == nullptr && Random(~from).one_in(6)));
}

// Returns whether no two tokens store to one of `rows` rows, and no token's source is another
// token's destination.
bool are_apart(const std::vector<std::int64_t>& slots, const std::vector<std::int64_t>& sources,
               std::int64_t rows) {
    const auto is_row = [&](std::int64_t slot) { return slot >= 0 && slot < rows; };
    std::vector<std::int64_t> used;
    for (const std::int64_t slot : slots)
        if (is_row(slot)) used.push_back(slot);
    std::sort(used.begin(), used.end());
    for (std::size_t i = 0; i < std::min(slots.size(), sources.size()); ++i)
        if (is_row(sources[i]) && sources[i] != slots[i] &&
            std::binary_search(used.begin(), used.end(), sources[i]))
            return false;
    return std::adjacent_find(used.begin(), used.end()) == used.end();
}

}  // namespace

Unplaced random_operation(std::uint64_t seed, const Kind& kind) {
    constexpr std::uint64_t step = std::uint64_t{1} << 40;  // to the next seed that is tried
    Unplaced kernel;
    for (std::uint64_t at = seed / operations_of_a_kernel;; at += step) {
        kernel = {};
        Random random(at);
        draw_kernel(random, kernel);
        draw_token_count(at, kind, kernel.info);
        if (kind.has_token_count && !kernel.info.token_count) continue;
        if (kind.kernel == nullptr || kind.kernel(kernel.info, kernel.shape)) break;
    }
    for (std::uint64_t tried = 0; tried < 5000; ++tried) {
        Unplaced operation = kernel;
        Random random(~seed - tried * step);
        draw_call(random, operation, kind.elements);
        if (kind.call != nullptr && !kind.call(operation)) continue;
        draw_values(random, operation);
        return operation;
    }
    throw std::logic_error(std::string("no call is of the kind ") + kind.name);
}

bool rows_are_apart(const Unplaced& operation) {
    const std::vector<std::int64_t>&slots = operation.slots, &sources = operation.sources;
    if (operation.info.scatter_kv && slots.empty() && !sources.empty())
        return false;  // random slots may be sources
    return allows(operation, operation.in, false) && allows(operation, operation.out, true) &&
           std::all_of(std::begin(every_tensor), std::end(every_tensor),
                       [&](TensorIndex of) {
                           return !operation.in_place[of] || may_be_in_place(operation, of);
                       }) &&
           (!operation.beside || may_be_beside(operation)) &&
           (!operation.pages_by_head || may_be_by_head(operation)) &&
           (!operation.page_gaps || may_have_gaps(operation)) &&
           are_apart(slots, sources, slots_of(operation, K)) &&
           are_apart(operation.v_slots.empty() ? slots : operation.v_slots,
                     operation.v_sources.empty() ? sources : operation.v_sources,
                     slots_of(operation, V));
}

Unplaced rearranged(const Unplaced& operation, std::uint64_t seed) {
    Unplaced other = operation;
    Random random(seed);
    if (operation.in == Arrangement::broadcast)
        other.lead = random.below(4);  // the number of heads of K stays 1
    else
        do {
            draw_arrangements(random, other);
        } while (other.in == Arrangement::broadcast);
    other.pages_by_head = other.pages_by_head && random.one_in(2);
    other.page_gaps = other.page_gaps && random.one_in(2);
    other.seed = std::uint32_t(random());
    return other;
}

}  // namespace vkrope::verify
