// SPDX-License-Identifier: MIT
// Tests calls that need many dispatches on a device with small limits: dispatches() announces the
// number of dispatches, each accesses the rows of its part of the call, the fake refuses a dispatch
// beyond the limits, and a barrier is exactly where a dispatch must wait.
#include "recorder.hpp"
#include "unit/kernel/tiling_oracle.hpp"

namespace vkrope::test::split {

namespace {

constexpr std::uint32_t D = 128;

struct Layout {
    const char* name;
    void (*change)(const KernelHost& host, KernelInfo& info, Call& call);
};

// Places Q and K side by side in rows of 15 heads.
void pack(const KernelHost& host, KernelInfo&, Call& call) {
    const auto plane = [&](std::uint32_t first, std::uint32_t heads) {
        const VkDeviceSize start = VkDeviceSize{first} * D * 2;
        return Tensor{.where = {host.q, start, KernelHost::buffer_bytes - start},
                      .heads = heads,
                      .token_stride = 15 * D};
    };
    call.in[Q] = call.out[Q] = plane(0, 8);
    call.in[K] = call.out[K] = plane(8, 2);
}

constexpr Layout layouts[] = {
    {"separate", [](const KernelHost&, KernelInfo&, Call&) {}},
    {"packed", pack},
    {"heads before tokens, in place",
     [](const KernelHost&, KernelInfo&, Call& call) {
         for (const TensorIndex t : {Q, K}) {
             call.in[t].token_stride = D;
             call.in[t].head_stride = std::int64_t{call.tokens} * D;
             call.in[t].batch_stride = call.in[t].heads * call.in[t].head_stride;
             call.out[t] = call.in[t];
         }
     }},
    {"groups of heads",
     [](const KernelHost& host, KernelInfo&, Call& call) {
         call.in[Q].where = {host.q, 0, KernelHost::buffer_bytes};
         call.in[Q].token_stride = 10 * D;
         call.in[Q].heads_per_group = 4;
         call.in[Q].group_stride = 5 * D;
     }},
};

bool writes(std::uint32_t binding) {
    return binding >= shader::binding_q_out && binding <= shader::binding_v_second;  // of storage
}

bool must_wait(const Command& later, const Command& earlier) {
    for (const auto& [i, a] : earlier.descriptors) {
        for (const auto& [j, b] : later.descriptors) {
            if (a.type != VK_DESCRIPTOR_TYPE_STORAGE_BUFFER || b.type != a.type ||
                !(writes(i) || writes(j)))
                continue;
            if (a.buffer.buffer == b.buffer.buffer &&
                a.buffer.offset < b.buffer.offset + b.buffer.range &&
                b.buffer.offset < a.buffer.offset + a.buffer.range)
                return true;
        }
    }
    return false;
}

struct Outcome {
    std::uint64_t dispatches = 0, barriers = 0;
};

// Checks that the dispatch after each recorded barrier needs the barrier, and that none is missing.
Outcome check_barriers(const std::vector<Command>& commands) {
    Outcome outcome;
    std::vector<Command> since_barrier;
    bool waited = false;
    for (const Command& command : commands) {
        if (command.entry == "vkCmdPipelineBarrier") {
            CHECK_FALSE(waited);
            waited = true;
            ++outcome.barriers;
            CHECK(command.stages[0] == boundary().stage);
            CHECK(command.stages[1] == boundary().stage);
            REQUIRE(command.memory_barriers.size() == 1);
            CHECK(command.memory_barriers[0].srcAccessMask == boundary().output_access);
            CHECK(command.memory_barriers[0].dstAccessMask ==
                  (VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT));
        }
        if (command.entry != "vkCmdDispatch") continue;
        bool has_to = false;
        for (const Command& earlier : since_barrier) has_to = has_to || must_wait(command, earlier);
        REQUIRE(waited == has_to);
        if (waited) since_barrier.clear();
        since_barrier.push_back(command);
        waited = false;
        ++outcome.dispatches;
    }
    CHECK_FALSE(waited);
    return outcome;
}

// Records a call with as many sets as dispatches() announces. Checks that with one set less the
// call is refused and nothing is recorded.
Outcome check(const KernelHost& host, const Kernel& kernel, const Call& call) {
    const Result<std::uint64_t> announced = vkrope::dispatches(&kernel, call);
    REQUIRE_MESSAGE(announced, announced.status.what);
    Owned<DescriptorArena> arena;
    if (!(host.ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
        if (announced.value > 1) {
            arena.reset(create_arena(&kernel, std::uint32_t(announced.value - 1)).value);
            CHECK(record(host.commands, &kernel, call, arena.get()).code ==
                  VKROPE_ERROR_LIMIT_EXCEEDED);
            CHECK(recorded(host).empty());
        }
        arena.reset(create_arena(&kernel, std::uint32_t(announced.value)).value);
    }
    const Status status = record(host.commands, &kernel, call, arena.get());
    REQUIRE_MESSAGE(status, status.what);
    const Outcome outcome = check_barriers(fake().commands(host.commands));
    CHECK(outcome.dispatches == announced.value);
    check_no_faults();
    return outcome;
}

// ---- Random calls, compared with a plain loop over their rows ----

bool is_cache(const KernelInfo& info, TensorIndex t) {
    return t != Q && info.scatter_kv;
}
bool is_source(const KernelInfo& info, TensorIndex t) {
    return t != Q && info.gather_kv;
}

// Returns the bytes of a channel of this type.
std::uint32_t bytes_of(Element element) {
    return element == VKROPE_INT8 ? 1 : 2;
}

bool is_made(const Ops& ops) {
    return ops.store_scale >= VKROPE_STORE_SCALE_MADE;
}
std::uint32_t scales_of_row(const Ops& ops) {
    return ops.store_scale_group == 0 ? 1 : D / ops.store_scale_group;
}
std::uint32_t scale_bytes(const Ops& ops) {
    return ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 ? 1 : 4;
}

KernelInfo draw_kernel(Random& random) {
    KernelInfo info = random.one_in(2) ? with_v(kernel_info()) : kernel_info();
    info.scatter_kv = random.one_in(3);
    const bool moves = random.one_in(3);
    if (moves) {
        info.tensor[Q] = {};
        info.scatter_kv = random.one_in(2);
        info.gather_kv = !random.one_in(4);
    }
    if (random.one_in(2)) info.positions = VKROPE_POSITIONS_IDS;
    const bool with_ops = !random.one_in(3);
    for (TensorInfo& of : info.tensor) {
        if (of.head_dim == 0) continue;
        of.heads = 2u << random.below(3);
        if (with_ops) {
            of.ops.norm = {.kind = VKROPE_NORM_LAYER, .eps = 1};
            ParameterShape* const shapes[] = {&of.ops.bias, &of.ops.norm.weight, &of.ops.norm.bias};
            *shapes[random.below(3)] = VKROPE_PARAMETER_HEAD_CHANNEL;
            of.ops.scale_tokens = random.one_in(3);
        }
        if (moves && random.one_in(2)) of.in = VKROPE_INT8, of.ops.scales_in = random.one_in(2);
        if (random.one_in(moves ? 2 : 6))
            of.out = VKROPE_INT8, of.ops.store_scale = VKROPE_STORE_SCALE_MADE;
        if (!(is_made(of.ops) || of.ops.scales_in) || random.one_in(2)) continue;
        of.ops.store_scale_group = random.one_in(2) ? 32 : 128;
        if (random.one_in(2)) continue;
        of.ops.scale_type = VKROPE_SCALE_TYPE_UE8M0;
        if (is_made(of.ops)) of.ops.store_scale = VKROPE_STORE_SCALE_MADE_POWER_OF_TWO;
    }
    info.two_parameter_sets = with_ops && random.one_in(2);
    info.token_count = !info.two_parameter_sets && random.one_in(2);
    for (TensorInfo& of : info.tensor)
        of.ops.norm.weight_bound = of.ops.norm.weight != VKROPE_PARAMETER_NONE &&
                                   !info.two_parameter_sets && random.one_in(2);
    return info;
}

// Draws the order of a tensor's axes, and gaps between their steps.
void lay_out(Tensor& tensor, const Call& call, Random& random) {
    tensor.heads_per_group = std::min(tensor.heads, 1u << random.below(4));
    std::pair<std::int64_t*, std::uint32_t> axes[] = {
        {&tensor.batch_stride, call.batch},
        {&tensor.token_stride, call.tokens},
        {&tensor.group_stride, tensor.heads / tensor.heads_per_group},
        {&tensor.head_stride, tensor.heads_per_group}};
    std::int64_t packed = D;
    for (std::size_t left = 4; left > 0; --left) {
        std::swap(axes[left - 1], axes[random.below(left)]);
        const auto [stride, steps] = axes[left - 1];
        *stride = packed + (random.one_in(3) ? D : 0);
        packed = *stride * steps;
    }
}

constexpr std::uint32_t pages = 3, page_size = 7;

// Returns whether rows are read from the slots that they are stored to.
bool stays(const KernelInfo& info, const Call& call) {
    return info.gather_kv && info.scatter_kv && !call.paged_cache.source_mapping.buffer;
}

bool has_slots_of_v(const Call& call) {
    return call.paged_cache.v_slot_mapping.buffer || call.paged_cache.v_source_mapping.buffer;
}

const VkDescriptorBufferInfo& mapping_of(const Call& call, TensorIndex t, bool source) {
    const PagedCache& cache = call.paged_cache;
    const VkDescriptorBufferInfo& own = source ? cache.v_source_mapping : cache.v_slot_mapping;
    if (t == V && own.buffer) return own;
    return source ? cache.source_mapping : cache.slot_mapping;
}

bool same_rows(const Call& call, TensorIndex t) {
    const VkDescriptorBufferInfo &in = call.in[t].where, &out = call.out[t].where;
    return in.buffer == out.buffer && in.offset == out.offset;
}

// Draws a call. Half of the tensors that are not in a cache share the rows of a buffer.
Call draw_call(const KernelHost& host, const KernelInfo& info, Random& random) {
    Call call = kernel_call(host);
    call.batch = std::uint32_t(1 + random.below(3));
    call.tokens = std::uint32_t(2 + random.below(12));
    const auto words = [&](VkDeviceSize from, std::int64_t count) {
        return VkDescriptorBufferInfo{host.words, from + 4 * random.below(70),
                                      4 * VkDeviceSize(count)};
    };
    const std::int64_t heads = std::max(info.tensor[K].heads, info.tensor[V].heads);
    const bool by_head = random.one_in(2), within = random.one_in(2);
    const std::uint32_t source_pages = within ? pages : std::uint32_t(1 + random.below(4));
    if (info.scatter_kv || info.gather_kv) {
        call.paged_cache = {.page_size = page_size,
                            .page_stride = heads * page_size * D,
                            .row_stride = by_head ? D : heads * D};
        if (info.scatter_kv)
            call.paged_cache.slot_mapping = words(0xa8000, call.batch * call.tokens);
        if (info.gather_kv && !(info.scatter_kv && random.one_in(3)))
            call.paged_cache.source_mapping = words(0xac000, call.batch * call.tokens);
        if (info.tensor[V].head_dim != 0 && random.one_in(2)) {
            if (info.scatter_kv && !random.one_in(3))
                call.paged_cache.v_slot_mapping = words(0xbc000, call.batch * call.tokens);
            if (call.paged_cache.source_mapping.buffer && !random.one_in(3))
                call.paged_cache.v_source_mapping = words(0xbd000, call.batch * call.tokens);
        }
    }
    // Both sides of V's own have these pages more.
    const std::uint32_t more = has_slots_of_v(call) ? std::uint32_t(random.below(3)) : 0;
    const VkBuffer buffers[2][tensor_count] = {{host.q, host.k, host.v},
                                               {host.q_out, host.k_out, host.v_out}};
    std::vector<Tensor*> sharing;
    std::int64_t row = 0;  // channels of the rows that tensors share
    for (const TensorIndex t : every_tensor) {
        for (Tensor* const side : {call.in, call.out}) {
            const bool out = side == call.out;
            const std::uint32_t bytes = bytes_of(out ? info.tensor[t].out : info.tensor[t].in);
            const VkDeviceSize offset = (random.one_in(2) ? 16 : 2) * random.below(40);
            side[t] = {.where = {buffers[out][t], offset, KernelHost::buffer_bytes / 2},
                       .heads = info.tensor[t].heads,
                       .head_stride = D,
                       .buffer_size = KernelHost::buffer_bytes};
            if (side[t].heads == 0) {
                side[t] = {};
            } else if (out ? is_cache(info, t) : is_source(info, t)) {
                side[t].head_stride = by_head ? page_size * D : D;
                side[t].where.range = VkDeviceSize((out ? pages : source_pages) +
                                                   (t == V ? more : 0)) *
                                      VkDeviceSize(call.paged_cache.page_stride) * bytes;
            } else if (bytes == 2 && random.one_in(2)) {
                sharing.push_back(&side[t]);
                side[t].where = {host.words, VkDeviceSize(row) * 2, 0x98000};
                row += side[t].heads * D;
            } else {
                lay_out(side[t], call, random);
            }
        }
    }
    for (Tensor* const tensor : sharing) {
        tensor->token_stride = row;
        tensor->batch_stride = row * call.tokens;
    }
    for (const TensorIndex t : every_tensor) {
        const TensorInfo& of = info.tensor[t];
        if (of.in != of.out || is_cache(info, t) != is_source(info, t)) continue;
        if (is_cache(info, t) ? within : t != V && random.one_in(4)) call.out[t] = call.in[t];
    }
    call.positions = {.first = 5, .batch_stride = 50};
    if (info.positions == VKROPE_POSITIONS_IDS)
        call.positions = {.ids = words(0xa4000, call.batch * call.tokens)};
    if (random.one_in(2)) call.out_of_range = words(0xbf000, 1);
    if (info.token_count) call.token_count = {host.words, 0xbf200, 4};
    call = with_ops(host, info, call);
    if (info.two_parameter_sets) {
        call.parameters.range *= 2;
        call.first_set_tokens = std::uint32_t(1 + random.below(call.tokens - 1));
    }
    for (const TensorIndex t : every_tensor) {
        const Ops& ops = info.tensor[t].ops;
        if (ops.norm.weight_bound)
            call.norm_weight[t] = {host.words, (0xb9000 + 0x10000 * t) & ~0xffu,
                                   VkDeviceSize{info.tensor[t].heads} * D * 4};
        if (is_made(ops)) call.scales_out[t] = words(0xb0000 + 0x4000 * t, 0x600);
        if (ops.scales_in)
            call.scales_in[t] = is_made(ops) && same_rows(call, t)
                                    ? call.scales_out[t]
                                    : words(0xb2000 + 0x4000 * t, 0x600);
    }
    return call;
}

// A byte of a buffer.
using Place = std::pair<VkBuffer, VkDeviceSize>;

Place place(const VkDescriptorBufferInfo& where, std::uint64_t index, std::uint32_t bytes = 4) {
    return {where.buffer, where.offset + bytes * index};
}

// Returns the place of a row, where `slow` is the sequence or page, and `fast` the token or row.
Place place(const Tensor& of, std::uint32_t bytes, std::uint32_t slow, std::uint32_t fast,
            std::uint32_t head) {
    const std::uint32_t group = of.heads_per_group == 0 ? of.heads : of.heads_per_group;
    return place(of.where,
                 std::uint64_t(slow * of.batch_stride + fast * of.token_stride +
                               head / group * of.group_stride + head % group * of.head_stride),
                 bytes);
}

// The rows of one head that a dispatch reads and stores: each source slot for each slot, or 1.
struct Moved {
    std::uint32_t from, from_end, to, to_end;
};

struct Row {
    TensorIndex tensor;
    std::uint32_t batch, token, head;
    std::vector<Moved> moved = {};

    void add(const Moved& next) {
        for (const Moved& of : moved)
            if (next.from < of.from_end && of.from < next.from_end && next.to < of.to_end &&
                of.to < next.to_end)
                FAIL(std::string("moves each row to each slot once"));
        moved.push_back(next);
    }
    std::uint32_t all() const {
        std::uint32_t sum = 0;
        for (const Moved& of : moved) sum += (of.from_end - of.from) * (of.to_end - of.to);
        return sum;
    }
};

void right(bool holds, const char* what) {
    if (!holds) FAIL(std::string(what));
}

// Returns whether a call leaves the rows of V as they are.
bool keeps(const KernelInfo& info, const Call& call, TensorIndex t) {
    const TensorInfo& of = info.tensor[t];
    return t == V && same_rows(call, t) && !call.paged_cache.source_mapping.buffer &&
           of.ops.norm.kind == VKROPE_NORM_NONE && is_made(of.ops) == (of.ops.scales_in != 0);
}

// Computes what the shader of each dispatch accesses, and compares it with the call.
void compare(const KernelInfo& info, const Call& call, const std::vector<Command>& all) {
    const PagedCache& cache = call.paged_cache;
    const bool still = stays(info, call);
    const auto in_cache = [&](Tensor of) {
        of.batch_stride = cache.page_stride, of.token_stride = cache.row_stride;
        return of;
    };
    const auto pages_of = [&](const Tensor& of, Element element) {
        return std::uint32_t(of.where.range /
                             (VkDeviceSize(cache.page_stride) * bytes_of(element)));
    };
    std::vector<Row> rows;
    struct Read {
        TensorIndex tensor;
        std::uint32_t slow, fast, head;  // slow: the sequence or page; fast: the token or row
    };
    std::map<Place, Read> reads;  // by their place in the input
    const auto row_of = [&](TensorIndex t, std::uint32_t token, std::uint32_t head) -> Row& {
        std::size_t at = 0;
        for (const TensorIndex before : every_tensor)
            at += before < t ? call.in[before].heads * call.batch * call.tokens : 0;
        return rows[at + token * call.in[t].heads + head];
    };
    for (const TensorIndex t : every_tensor) {
        const Tensor& in = call.in[t];
        const Element element = info.tensor[t].in;
        for (std::uint32_t batch = 0; batch < call.batch; ++batch)
            for (std::uint32_t token = 0; token < call.tokens; ++token)
                for (std::uint32_t head = 0; head < in.heads; ++head)
                    rows.push_back({t, batch, token, head});
        if (in.heads == 0) continue;
        const bool source = is_source(info, t);
        const Tensor from = source ? in_cache(in) : in;
        const std::uint32_t slows = source ? pages_of(in, element) : call.batch,
                            fasts = source ? page_size : call.tokens;
        for (std::uint32_t slow = 0; slow < slows; ++slow)
            for (std::uint32_t fast = 0; fast < fasts; ++fast)
                for (std::uint32_t head = 0; head < in.heads; ++head)
                    reads[place(from, bytes_of(element), slow, fast, head)] = {t, slow, fast, head};
    }
    // Flags of dispatches: of the first that counts, and of V with slots of its own.
    std::vector<std::uint32_t> counts(call.batch * call.tokens), counts_of_v = counts;
    const auto visit = [&](const Command& dispatch, TensorIndex as, std::uint32_t z,
                           std::uint32_t index, std::uint32_t head) {
        const shader::Push push = pushed(dispatch);
        const auto has = [&](std::uint32_t flag) { return (push.flags & flag) != 0; };
        // `unit`: the bytes that the offset counts
        const auto at = [&](std::uint32_t binding, std::uint32_t which, std::uint32_t element,
                            std::uint32_t bytes, std::uint32_t unit, std::uint32_t count) {
            const VkDescriptorBufferInfo& bound = dispatch.descriptors.at(binding).buffer;
            const std::uint32_t offset = which == shader::offset_q_scales_out + V
                                             ? push.flags / shader::flag_v_scales_out % 64
                                             : offset_of(push, which);
            const VkDeviceSize first = VkDeviceSize{offset} * unit + element * bytes;
            right(first + count * bytes <= bound.range, "bound as far as accessed");
            return Place(bound.buffer, bound.offset + first);
        };
        const auto word_at = [&](std::uint32_t binding, std::uint32_t which, std::uint32_t word) {
            return at(binding, which, word, 4, 4, 1);
        };
        const auto &in = as == Q ? push.q_in : push.k_in, &out = as == Q ? push.q_out : push.k_out;
        // Quantised inputs have buffers of their own.
        const VkBuffer buffer = dispatch.descriptors.at(shader::binding_q_in + as).buffer.buffer;
        std::uint32_t bytes_in = 2;
        for (const TensorIndex t : every_tensor)
            if (call.in[t].where.buffer == buffer) bytes_in = bytes_of(info.tensor[t].in);
        const auto read_at = [&](std::uint32_t element) {
            const auto found = reads.find(at(shader::binding_q_in + as, shader::offset_q_in + as,
                                             element + head * in.head, bytes_in, bytes_in, D));
            right(found != reads.end(), "loads a row");
            return found->second;
        };
        const bool source = as != Q && info.gather_kv;
        const Read read = read_at(source ? 0 : z * in.z + index * in.token);
        const TensorIndex t = read.tensor;
        const Ops& ops = info.tensor[t].ops;
        std::uint32_t token = read.slow * call.tokens + read.fast;
        std::uint32_t from = 0, from_end = 1;  // slots that are read
        if (source) {
            const auto& mapping = mapping_of(call, t, !still);
            const Place word = word_at(shader::binding_source_mapping, shader::offset_source,
                                       z * push.q_in.z + index);
            token = std::uint32_t((word.second - mapping.offset) / 4);
            right(token < counts.size() && word == place(mapping, token),
                  "has the source slot of its token");
            from = push.q_in.token, from_end = from + push.q_in.head;
            for (std::uint32_t slot = from; slot < from_end; ++slot) {
                const std::uint32_t nth = slot - from;
                const Read other = read_at(nth / page_size * in.z + nth % page_size * in.token);
                right(other.tensor == t && other.head == read.head &&
                          other.slow * page_size + other.fast == slot,
                      "reads a source slot where it lies");
            }
        }
        Row& row = row_of(t, token, read.head);
        const bool ids = info.positions == VKROPE_POSITIONS_IDS, to_cache = is_cache(info, t);
        const std::uint32_t bytes = bytes_of(info.tensor[t].out);
        const std::uint32_t heads = as == Q ? push.heads & 0xffff : push.heads >> 16,
                            group = has(shader::flag_z_is_group) ? z : 0,
                            nth = index + (has(shader::flag_z_is_group) ? 0 : z * push.tokens),
                            of_call = push.flags / shader::flag_first_head + group * heads + head;
        if (ops.norm.kind != VKROPE_NORM_NONE)
            right(of_call == row.head, "has the parameters of its head");
        if (ops.norm.weight_bound) {
            const auto& bound = dispatch.descriptors.at(shader::binding_q_weight + as).buffer;
            right(place(bound, 0) == place(call.norm_weight[t], 0) &&
                      bound.range == call.norm_weight[t].range,
                  "has the whole weight of its tensor");
        }
        if (ids)
            right(word_at(shader::binding_ids, shader::offset_ids,
                          z * push.ids_z + index * push.ids_token) ==
                      place(call.positions.ids, token),
                  "has the id of its token");
        else
            right(
                push.first_position + z * push.position_z + index == 5 + 50 * row.batch + row.token,
                "has the position of its token");
        if (info.two_parameter_sets)
            right((index < push.first_set_tokens) == (row.token < call.first_set_tokens),
                  "has the parameters of its token");
        if (info.token_count)
            right((push.first_token & ~shader::first_token_counts) + index == row.token,
                  "knows the number of its token");
        if (ops.scale_tokens)
            right(word_at(shader::binding_q_scales + as, shader::offset_q_scales + as, nth) ==
                      place(call.scale_tokens[t], token),
                  "has the factor of its token");
        // Checks the scales of a row, which is row `nth_row` of the dispatch and `number` of all.
        const auto check_scales = [&](std::uint32_t binding, std::uint32_t which,
                                      std::uint32_t nth_row, const VkDescriptorBufferInfo& where,
                                      std::uint32_t number) {
            const std::uint32_t many = scales_of_row(ops), all_heads = call.in[t].heads;
            right(
                at(binding, which, (nth_row * all_heads + of_call) * many, scale_bytes(ops), 4,
                   many) == place(where, (number * all_heads + row.head) * many, scale_bytes(ops)),
                "has the scales of its row");
        };
        if (ops.scales_in) {
            const bool k = as == K;
            for (std::uint32_t slot = from; slot < from_end; ++slot)
                check_scales(k ? shader::binding_k_scales_in : shader::binding_v_scales_in,
                             k ? shader::offset_k_scales_in : shader::offset_v_scales_in,
                             source ? slot - from : nth, call.scales_in[t], source ? slot : token);
        }
        Tensor to = call.out[t];
        std::uint32_t first = 0, end = 1;  // slots
        if (to_cache) {
            right(word_at(shader::binding_slot_mapping, shader::offset_slots,
                          z * push.slot_z + index) == place(mapping_of(call, t, false), token),
                  "has the slot of its token");
            to = in_cache(to);
            first = push.slot_first, end = first + push.slot_rows;
        }
        if (still) right(from == first && from_end == end, "reads the slots that it stores to");
        row.add({still ? 0 : from, still ? 1 : from_end, first, end});
        for (std::uint32_t slot = first; slot < end; ++slot) {
            const std::uint32_t nth_slot = slot - first, slow = to_cache ? nth_slot / page_size : z,
                                fast = to_cache ? nth_slot % page_size : index;
            right(at(shader::binding_q_out + as, shader::offset_q_out + as,
                     slow * out.z + fast * out.token + head * out.head, bytes, bytes,
                     D) == place(to, bytes, to_cache ? slot / page_size : row.batch,
                                 to_cache ? slot % page_size : row.token, row.head),
                  "stores a row where it belongs");
            if (is_made(ops))
                check_scales(shader::binding_q_scales_out + as, shader::offset_q_scales_out + as,
                             to_cache ? nth_slot : nth, call.scales_out[t],
                             to_cache ? slot : token);
        }
        const std::uint32_t flags = push.flags &
                                    (shader::flag_count_positions | shader::flag_count_slots);
        if (head != 0 || group != 0 || (as != Q && (push.heads & 0xffff) != 0) ||
            (as == V && has(shader::flag_v)))
            return;
        std::uint32_t& counted = (t == V && has_slots_of_v(call) ? counts_of_v : counts)[token];
        right((counted & flags) == 0, "counts each token once");
        counted |= flags;
    };
    std::uint32_t excess_counts = 0;  // dispatches that count a token_count that is too large
    for (const Command& dispatch : all) {
        const shader::Push push = pushed(dispatch);
        if (info.token_count && (push.first_token & shader::first_token_counts) != 0) {
            ++excess_counts;
            right((push.first_token & ~shader::first_token_counts) + push.tokens == call.tokens,
                  "compares with the tokens of the call");
        }
        const std::uint32_t heads[] = {push.heads & 0xffff, push.heads >> 16,
                                       push.flags & shader::flag_v ? push.heads >> 16 : 0};
        for (const TensorIndex as : every_tensor)
            for (std::uint32_t z = 0; z < dispatch.groups[2]; ++z)
                for (std::uint32_t index = 0; index < push.tokens; ++index)
                    for (std::uint32_t head = 0; head < heads[as]; ++head)
                        visit(dispatch, as, z, index, head);
    }
    const bool slots = info.scatter_kv || info.gather_kv;
    const std::uint32_t counted = !call.out_of_range.buffer
                                      ? 0
                                      : shader::flag_count_positions |
                                            (slots ? shader::flag_count_slots : 0);
    for (const std::uint32_t flags : counts) CHECK(flags == counted);
    CHECK(excess_counts == (info.token_count && counted != 0 && !all.empty() ? 1 : 0));
    const bool v_counts = has_slots_of_v(call) && counted != 0 && !keeps(info, call, V);
    for (const std::uint32_t flags : counts_of_v)
        CHECK(flags == (v_counts ? shader::flag_count_slots : 0));
    for (const Row& row : rows) {
        const TensorIndex t = row.tensor;
        const std::uint32_t from = is_source(info, t)
                                       ? page_size * pages_of(call.in[t], info.tensor[t].in)
                                       : 1,
                            to = is_cache(info, t)
                                     ? page_size * pages_of(call.out[t], info.tensor[t].out)
                                     : 1;
        CHECK(row.all() == (keeps(info, call, t) ? 0
                            : still && t != Q    ? std::min(from, to)
                                                 : from * to));
    }
}

}  // namespace

TEST_CASE(
    "split calls: each row is accessed once, where a plain loop finds it, and barriers are exactly "
    "where bound ranges overlap") {
    Random random{8};
    Outcome split;
    for (int kernels = 0; kernels < 200; ++kernels) {
        CAPTURE(kernels);
        const auto few = [&] { return std::uint32_t(1 + random.below(9)); };
        const KernelHost host({.storage_buffers = 4u << random.below(4),
                               .offset_alignment = random.one_in(2) ? 16u : 256u,
                               .storage_range = 1000u << random.below(7),
                               .workgroup_count = {few(), few(), few()},
                               .type = random.one_in(2) ? VK_PHYSICAL_DEVICE_TYPE_CPU
                                                        : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
                               .push_descriptors = random.one_in(2),
                               .debug_utils = false});
        const KernelInfo info = draw_kernel(random);
        const Result<Kernel*> created = create(host.ref, info);
        const Owned<Kernel> kernel(created.value);
        for (int calls = 0; calls < 8; ++calls) {
            const Call call = draw_call(host, info, random);
            const Result<std::uint64_t> count = kernel ? vkrope::dispatches(kernel.get(), call)
                                                       : Result<std::uint64_t>{created.status, 0};
            if (!count) {
                CHECK_MESSAGE(count.status.code == VKROPE_ERROR_LIMIT_EXCEEDED, count.status.what);
            } else if (count.value <= 100) {  // more take long to check
                fake().find(VK_OBJECT_TYPE_COMMAND_BUFFER, host.commands, "test")->commands.clear();
                const Outcome outcome = check(host, *kernel, call);
                compare(info, call, dispatches(host));
                split.dispatches += outcome.dispatches - 1;
                split.barriers += outcome.barriers;
            }
        }
    }
    CHECK(split.barriers > 1000);
    CHECK(split.dispatches - split.barriers > 1000);
}

TEST_CASE(
    "split calls: parts that are apart in memory do not wait for each other; packed Q and K are "
    "split at the same tokens") {
    for (const auto& of : {std::pair{layouts[0], 9u + 2}, {layouts[1], 15u}}) {
        const Layout& layout = of.first;
        CAPTURE(std::string(layout.name));
        const KernelHost host(
            {.offset_alignment = 256, .storage_range = 1u << 16, .debug_utils = false});
        KernelInfo info = kernel_info();
        Call call = kernel_call(host, 250);
        layout.change(host, info, call);
        const Owned<Kernel> kernel(create(host.ref, info).value);
        const Outcome outcome = check(host, *kernel, call);
        CHECK(outcome.dispatches == of.second);
        CHECK(outcome.barriers == 0);
    }
}

TEST_CASE("split calls: a tensor of 16 GiB is read and written to its last byte") {
    constexpr std::uint32_t all = 1u << 23, row = 8 * D * 2;  // the tokens, and the bytes of each
    const KernelHost host({.debug_utils = false});
    for (const VkBuffer buffer : {host.q, host.q_out})
        fake().find(VK_OBJECT_TYPE_BUFFER, buffer, "test")->bytes = VkDeviceSize{all} * row;
    Call call = kernel_call(host, all, VKROPE_ANGLES_COMPUTED);  // a table covers fewer positions
    call.in[K] = call.out[K] = {};
    const Owned<Kernel> kernel(create(host.ref, kernel_info(VKROPE_ANGLES_COMPUTED)).value);
    REQUIRE(kernel);
    CHECK(check(host, *kernel, call).dispatches > 100);
    VkDeviceSize done = 0;
    for (const Command& dispatch : dispatches(host)) {
        const shader::Push push = pushed(dispatch);
        for (const auto& [binding, which] : {std::pair{shader::binding_q_in, shader::offset_q_in},
                                             {shader::binding_q_out, shader::offset_q_out}}) {
            const VkDescriptorBufferInfo& bound = dispatch.descriptors.at(binding).buffer;
            CHECK(bound.offset + offset_of(push, which) * 2 == done);
            CHECK(bound.offset + bound.range == done + VkDeviceSize{push.tokens} * row);
        }
        done += VkDeviceSize{push.tokens} * row;
    }
    CHECK(done == VkDeviceSize{all} * row);
}

TEST_CASE("split calls: a call that cannot be split is refused, and nothing is recorded") {
    struct Row {
        std::uint32_t range;
        Layout layout;
        bool norms;  // whether the tensors have norms over a token
        ErrorCode code;
        const char* words;
    };
    const Row rows[] = {
        {256, layouts[0], false, VKROPE_ERROR_LIMIT_EXCEEDED, "in[0] 256 256"},
        {1u << 16, layouts[2], true, VKROPE_ERROR_LIMIT_EXCEEDED, "norm token"},
        {1u << 27, layouts[3], true, VKROPE_ERROR_NOT_SUPPORTED, "groups norm token"}};
    for (const Row& row : rows) {
        CAPTURE(std::string(row.layout.name));
        const KernelHost host({.storage_range = row.range, .debug_utils = false});
        KernelInfo info = kernel_info();
        Call call = kernel_call(host, 250);
        row.layout.change(host, info, call);
        if (row.norms) {
            info = with_ops(
                info, full_ops(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_TOKEN, VKROPE_NORM_PLACE_BEFORE));
            call = with_ops(host, info, call);
        }
        const Owned<Kernel> kernel(create(host.ref, info).value);
        REQUIRE(kernel);
        const Status announced = vkrope::dispatches(kernel.get(), call).status,
                     status = record(host.commands, kernel.get(), call);
        CHECK(announced.code == status.code);
        check_error(status, row.code, row.words);
        CHECK(fake().commands(host.commands).empty());
    }
}

}  // namespace vkrope::test::split
