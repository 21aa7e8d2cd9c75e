// SPDX-License-Identifier: MIT
// Calls that need many dispatches on a device with small limits. A model of the shader reads
// bindings and push constants, and says which row each dispatch reads, writes and counts. Together
// they must handle every row of the call once, at its place.
#include <algorithm>
#include <memory>
#include <random>

#include "kernel/geometry/finish.hpp"
#include "kernel/kernel_object.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

namespace {

constexpr std::uint32_t D = 128, row_bytes = D * 2;

enum class Which { q, k, v };

struct Row {
    Which which = Which::q;
    std::uint32_t batch = 0, token = 0, head = 0;
    auto operator<=>(const Row&) const = default;
};

using Byte = std::pair<VkBuffer, VkDeviceSize>;

// A call, and the content of the buffers that it reads.
struct Scenario {
    Call call;
    std::vector<std::int64_t> slot_mapping = {};  ///< [batch, tokens]
    std::vector<bool> outside_table = {};  ///< [batch, tokens]: whether the position is outside
    std::uint32_t pages = 0;               ///< number of pages of the cache
    std::size_t at(const Row& row) const {
        return std::size_t{row.batch} * call.tokens + row.token;
    }
};

// ---- The contract: kernel.hpp, Tensor and PagedCache ----

std::uint64_t or_packed(std::int64_t given, std::uint64_t packed) {
    return given == 0 ? packed : std::uint64_t(given);
}

std::uint64_t head_elements(const Tensor& tensor, std::uint32_t head) {
    if (tensor.head_stride == broadcast) return 0;
    const std::uint64_t stride = or_packed(tensor.head_stride, D);
    if (tensor.heads_per_group == 0) return head * stride;
    return head / tensor.heads_per_group *
               or_packed(tensor.group_stride, tensor.heads_per_group * stride) +
           head % tensor.heads_per_group * stride;
}

Byte place(const Tensor& tensor, std::uint32_t tokens, const Row& row) {
    const std::uint64_t token = or_packed(tensor.token_stride, std::uint64_t{tensor.heads} * D);
    const std::uint64_t elements = row.batch * or_packed(tensor.batch_stride, tokens * token) +
                                   row.token * token;
    return {tensor.where.buffer,
            tensor.where.offset + (elements + head_elements(tensor, row.head)) * 2};
}

Byte place_in_cache(const Call& call, const Tensor& out, std::int64_t slot, std::uint32_t head) {
    const PagedCache& rows = call.paged_cache;
    const std::uint64_t line = or_packed(rows.row_stride, std::uint64_t{out.heads} * D);
    const std::uint64_t page = or_packed(rows.page_stride, rows.page_size * line);
    const std::uint64_t index = std::uint64_t(slot);
    const std::uint64_t elements = index / rows.page_size * page + index % rows.page_size * line;
    return {out.where.buffer, out.where.offset + (elements + head_elements(out, head)) * 2};
}

const Tensor& input(const Call& call, Which which) {
    return which == Which::q ? call.q_in : which == Which::k ? call.k_in : call.v_in;
}
const Tensor& output(const Call& call, Which which) {
    return which == Which::q ? call.q_out : which == Which::k ? call.k_out : call.v_out;
}
const Finish& finish_of(const KernelInfo& info, Which which) {
    return which == Which::q ? info.q_finish : which == Which::k ? info.k_finish : info.v_finish;
}
const VkDescriptorBufferInfo& factors(const Call& call, Which which) {
    return which == Which::q   ? call.q_scale_tokens
           : which == Which::k ? call.k_scale_tokens
                               : call.v_scale_tokens;
}

// The destination of every row, except for those of an in-place V without a finish, which stay
// there; rows with slot -1 or a slot outside the cache have none.
std::map<Byte, Row> destinations(const Scenario& scenario, const KernelInfo& info) {
    const Call& call = scenario.call;
    std::map<Byte, Row> rows;
    for (const Which which : {Which::q, Which::k, Which::v}) {
        const Tensor& out = output(call, which);
        const bool in_place = out.where.buffer == input(call, which).where.buffer &&
                              out.where.offset == input(call, which).where.offset;
        if (which == Which::v && in_place && !has_finish(info.v_finish)) continue;
        for (Row row{.which = which}; row.batch < call.batch; ++row.batch) {
            for (row.token = 0; row.token < call.tokens; ++row.token) {
                for (row.head = 0; row.head < out.heads; ++row.head) {
                    Byte at = place(out, call.tokens, row);
                    if (which != Which::q && !scenario.slot_mapping.empty()) {
                        const std::int64_t slot = scenario.slot_mapping[scenario.at(row)];
                        if (slot < 0 ||
                            slot >= std::int64_t{scenario.pages} * call.paged_cache.page_size)
                            continue;
                        at = place_in_cache(call, out, slot, row.head);
                    }
                    REQUIRE(rows.emplace(at, row).second);
                }
            }
        }
    }
    return rows;
}

// ---- The model of the shader: interface.h, Push ----

class Model {
   public:
    Model(const Scenario& scenario, const Kernel& kernel)
        : scenario_(scenario), kernel_(kernel), rows_(destinations(scenario, kernel.info)),
          counts_(std::size_t{scenario.call.batch} * scenario.call.tokens) {}

    void run(const Command& dispatch, VkPipeline pipeline) {
        push_ = pushed(dispatch);
        dispatch_ = &dispatch;
        check_shape(pipeline);
        const std::uint32_t q_heads = push_.heads & 0xffff, k_heads = push_.heads >> 16;
        for (std::uint32_t z = 0; z < dispatch.groups[2]; ++z) {
            for (std::uint32_t index = 0; index < push_.tokens; ++index) {
                Row token;
                bool known = false, slot_outside = false, stored = true;
                std::uint32_t slot = 0;
                if (!scenario_.slot_mapping.empty() && k_heads != 0) {
                    token = token_of_slot(z, index);
                    known = true;
                    const std::int64_t value = scenario_.slot_mapping[scenario_.at(token)];
                    stored = value >= push_.slot_first &&
                             value < std::int64_t{push_.slot_first} + push_.slot_rows;
                    slot_outside = value != -1 &&
                                   (value < 0 ||
                                    value >= std::int64_t{push_.slot_first} + push_.slot_rows);
                    slot = std::uint32_t(value) - push_.slot_first;
                }
                for (std::uint32_t head = 0; head < q_heads; ++head) {
                    const std::uint32_t from = at(offset(shader::offset_q_in), push_.q_in, z, index,
                                                  head),
                                        to = at(offset(shader::offset_q_out), push_.q_out, z, index,
                                                head);
                    visit(shader::binding_q_in, from, shader::binding_q_out, to, z, index, token,
                          known);
                    check_finish(to, shader::binding_q_out, shader::binding_q_scales,
                                 shader::offset_q_scales, z, index, head, q_heads);
                }
                for (std::uint32_t head = 0; head < (stored ? k_heads : 0); ++head) {
                    const std::uint32_t from = at(offset(shader::offset_k_in), push_.k_in, z, index,
                                                  head);
                    const std::uint32_t start = offset(shader::offset_k_out);
                    const std::uint32_t to = scenario_.slot_mapping.empty()
                                                 ? at(start, push_.k_out, z, index, head)
                                                 : at(start, push_.k_out, slot / push_.page_size,
                                                      slot % push_.page_size, head);
                    visit(shader::binding_k_in, from, shader::binding_k_out, to, z, index, token,
                          known);
                    check_finish(to, shader::binding_k_out, shader::binding_k_scales,
                                 shader::offset_k_scales, z, index, head, k_heads);
                    if ((push_.flags & shader::flag_v) == 0) continue;
                    // V has K's strides.
                    visit(shader::binding_v_in,
                          from - offset(shader::offset_k_in) + offset(shader::offset_v_in),
                          shader::binding_v_out, to - start + offset(shader::offset_v_out), z,
                          index, token, known);
                    check_finish(to - start + offset(shader::offset_v_out), shader::binding_v_out,
                                 shader::binding_v_scales, shader::offset_v_scales, z, index, head,
                                 k_heads);
                }
                REQUIRE(known);
                count(token, z, slot_outside);
            }
        }
    }

    void check_all() const {
        CHECK(visited_.size() == rows_.size());  // visit() refuses repeated rows
        for (std::uint32_t i = 0; i < counts_.size(); ++i) {
            const std::uint32_t b = i / scenario_.call.tokens, t = i % scenario_.call.tokens;
            bool outside = scenario_.outside_table[i];
            if (!scenario_.slot_mapping.empty()) {
                const std::int64_t slot = scenario_.slot_mapping[i];
                outside = outside || slot < -1 ||
                          slot >=
                              std::int64_t{scenario_.pages} * scenario_.call.paged_cache.page_size;
            }
            CAPTURE(b);
            CAPTURE(t);
            REQUIRE(counts_[i] == (scenario_.call.out_of_range.buffer && outside));
        }
    }

   private:
    std::uint32_t offset(std::uint32_t which) const { return offset_of(push_, which); }

    static std::uint32_t at(std::uint32_t start, const shader::RowLayout& side, std::uint32_t z,
                            std::uint32_t token, std::uint32_t head) {
        return start + z * side.z + token * side.token +
               head * side.head;  // in 32 bits, like the shader
    }

    const VkDescriptorBufferInfo& bound(std::uint32_t binding) const {
        return dispatch_->descriptors.at(binding).buffer;
    }

    // The address of a word or row of a binding, which must contain all of it.
    Byte byte(std::uint32_t binding, std::uint64_t offset, std::uint64_t bytes) const {
        const VkDescriptorBufferInfo& where = bound(binding);
        REQUIRE(offset + bytes <= where.range);
        return {where.buffer, where.offset + offset};
    }

    void check_shape(VkPipeline pipeline) const {
        const auto used = std::find_if(std::begin(kernel_.pipelines), std::end(kernel_.pipelines),
                                       [&](const Pipeline& one) { return one.handle == pipeline; });
        REQUIRE(used != std::end(kernel_.pipelines));
        const Work work{.z = dispatch_->groups[2],
                        .tokens = push_.tokens,
                        .q_heads = push_.heads & 0xffff,
                        .k_heads = push_.heads >> 16};
        const DispatchShape shape = shape_of(used->geometry, work);
        for (int i = 0; i < 3; ++i) CHECK(dispatch_->groups[i] == shape.groups[i]);
        for (int i = 0; i < 3; ++i)
            CHECK(dispatch_->groups[i] <= kernel_.dispatch_limits.workgroup_count[i]);
    }

    Row token_of_slot(std::uint32_t z, std::uint32_t index) const {
        const PagedCache& rows = scenario_.call.paged_cache;
        const std::uint32_t words = rows.int64 ? 2 : 1;
        const std::uint64_t word = offset(shader::offset_slots) + std::uint64_t{z} * push_.slot_z +
                                   index * words;
        const Byte at = byte(shader::binding_slot_mapping, word * 4, words * 4);
        REQUIRE(at.first == rows.slot_mapping.buffer);
        const std::uint64_t number = (at.second - rows.slot_mapping.offset) / (4 * words);
        const std::uint64_t step = or_packed(rows.batch_stride, scenario_.call.tokens);
        return {.batch = std::uint32_t(number / step), .token = std::uint32_t(number % step)};
    }

    // One row: it must come from its place in the call, with its token's position, and must not
    // have been written before.
    void visit(std::uint32_t in, std::uint64_t from, std::uint32_t out, std::uint64_t to,
               std::uint32_t z, std::uint32_t index, Row& token, bool& known) {
        const Call& call = scenario_.call;
        const auto found = rows_.find(byte(out, to * 2, row_bytes));
        REQUIRE(found != rows_.end());
        const Row& row = found->second;
        REQUIRE(visited_.insert(found->first).second);
        if (known) {
            REQUIRE(row.batch == token.batch);
            REQUIRE(row.token == token.token);
        }
        token = {.batch = row.batch, .token = row.token};
        known = true;
        REQUIRE(byte(in, from * 2, row_bytes) == place(input(call, row.which), call.tokens, row));
        if (kernel_.info.positions == PositionSource::ids) {
            const std::uint64_t word = offset(shader::offset_ids) +
                                       std::uint64_t{z} * push_.index_z + index;
            const std::uint64_t expected =
                call.positions.ids.offset +
                (row.batch * std::uint64_t(call.positions.batch_stride) + row.token) * 4;
            REQUIRE(byte(shader::binding_ids, word * 4, 4) ==
                    Byte{call.positions.ids.buffer, expected});
        } else {
            REQUIRE(std::int32_t(push_.first_position + index) ==
                    call.positions.first + std::int32_t(row.token));
        }
    }

    // A row with a norm, parameters of its head or a factor: finish.glsl, absolute_head and
    // token_factor.
    void check_finish(std::uint64_t to, std::uint32_t out, std::uint32_t scales,
                      std::uint32_t scales_offset, std::uint32_t z, std::uint32_t index,
                      std::uint32_t head, std::uint32_t heads) const {
        const Row& row = rows_.at(byte(out, to * 2, row_bytes));
        const Finish& finish = finish_of(kernel_.info, row.which);
        const Call& call = scenario_.call;
        const bool z_is_group = (push_.flags & shader::flag_z_is_group) != 0;
        if (finish.norm.span == NormSpan::token) REQUIRE(heads == output(call, row.which).heads);
        if (finish.norm.weight == ParameterShape::head_channel) {
            REQUIRE(push_.flags / shader::flag_first_head + (z_is_group ? z * heads : 0) + head ==
                    row.head);
        }
        if (finish.norm.weight != ParameterShape::none) {
            const Byte first = byte(shader::binding_parameters,
                                    offset(shader::offset_parameters) * 4, call.parameters.range);
            REQUIRE(first == Byte{call.parameters.buffer, call.parameters.offset});
        }
        if (!finish.scale_tokens) return;
        const std::uint64_t word = offset(scales_offset) + index +
                                   (z_is_group ? 0 : z * push_.tokens);
        const VkDescriptorBufferInfo& where = factors(call, row.which);
        REQUIRE(byte(scales, word * 4, 4) ==
                Byte{where.buffer, where.offset + scenario_.at(row) * 4});
    }

    void count(const Row& token, std::uint32_t z, bool slot_outside) {
        const bool positions = (push_.flags & shader::flag_count_positions) != 0,
                   slots = (push_.flags & shader::flag_count_slots) != 0;
        if ((push_.flags & shader::flag_z_is_group) != 0 && z != 0) return;
        const bool position_outside = scenario_.outside_table[scenario_.at(token)];
        if (!(positions && position_outside) &&
            !(slots && slot_outside && (positions || !position_outside)))
            return;
        const Byte counter = byte(shader::binding_status, offset(shader::offset_status) * 4, 4);
        REQUIRE(counter ==
                Byte{scenario_.call.out_of_range.buffer, scenario_.call.out_of_range.offset});
        ++counts_[scenario_.at(token)];
    }

    const Scenario& scenario_;
    const Kernel& kernel_;
    std::map<Byte, Row> rows_;
    std::set<Byte> visited_;
    std::vector<std::uint32_t> counts_;
    shader::Push push_ = {};
    const Command* dispatch_ = nullptr;
};

// ---- Barriers, from the descriptors themselves ----

bool writes(std::uint32_t binding) {
    return binding == shader::binding_q_out || binding == shader::binding_k_out ||
           binding == shader::binding_v_out || binding == shader::binding_status;
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

// ---- A scenario on a device ----

struct Limits {
    std::uint32_t range, workgroups;
};
constexpr Limits small_limits[] = {{1u << 16, 65535}, {1u << 27, 7}, {1u << 16, 7}, {9000, 3}};

struct Outcome {
    std::uint64_t dispatches = 0, barriers = 0;
    bool v_beside_k = false;  ///< in some dispatch
};

Outcome check(const KernelHost& host, const Kernel& kernel, const Scenario& scenario) {
    const Result<std::uint64_t> announced = dispatches(&kernel, scenario.call);
    INFO(announced.status.what);
    REQUIRE(announced);
    const std::size_t before = fake().commands(host.commands).size();
    const bool sets = !(host.ref.enabled & push_descriptor);
    const auto arena_of = [&](std::uint64_t calls) {
        return Owned<DescriptorArena>(sets ? create_arena(&kernel, std::uint32_t(calls)).value
                                           : nullptr);
    };
    if (sets && announced.value > 1) {  // one set too few: nothing is recorded, and no set is used
        const auto small = arena_of(announced.value - 1);
        CHECK(record(host.commands, &kernel, scenario.call, small.get()).code ==
              Code::limit_exceeded);
        CHECK(fake().commands(host.commands).size() == before);
    }
    const auto arena = arena_of(announced.value);
    const Status status = record(host.commands, &kernel, scenario.call, arena.get());
    INFO(status.what);
    REQUIRE(status);
    const std::size_t after = fake().commands(host.commands).size();
    if (sets) {  // all sets were used
        CHECK(record(host.commands, &kernel, scenario.call, arena.get()).code ==
              Code::limit_exceeded);
        CHECK(fake().commands(host.commands).size() == after);
    }

    Model model(scenario, kernel);
    Outcome outcome;
    std::vector<Command> since_barrier;
    VkPipeline pipeline = VK_NULL_HANDLE;
    bool waited = false;
    const std::vector<Command>& commands = fake().commands(host.commands);
    for (std::size_t i = before; i < commands.size(); ++i) {
        const Command& command = commands[i];
        if (command.entry == "vkCmdBindPipeline") pipeline = command.pipeline;
        if (command.entry == "vkCmdPipelineBarrier") {
            CHECK_FALSE(waited);
            waited = true;
            ++outcome.barriers;
        }
        if (command.entry != "vkCmdDispatch") continue;
        bool has_to = false;
        for (const Command& earlier : since_barrier) has_to = has_to || must_wait(command, earlier);
        REQUIRE(waited == has_to);
        if (waited) since_barrier.clear();
        since_barrier.push_back(command);
        waited = false;
        model.run(command, pipeline);
        outcome.v_beside_k = outcome.v_beside_k || (pushed(command).flags & shader::flag_v) != 0;
        ++outcome.dispatches;
    }
    CHECK_FALSE(waited);
    CHECK(outcome.dispatches == announced.value);
    model.check_all();
    check_no_faults();
    return outcome;
}

// ---- Layouts ----

enum class Layout {
    bshd,
    bhsd,
    sbhd,
    bhsd_to_bshd,
    packed,
    grouped,
    uneven,
    broadcast_k,
    odd,
    paged,
    paged_by_head,
    paged_groups
};
constexpr Layout layouts[] = {Layout::bshd,         Layout::bhsd,          Layout::sbhd,
                              Layout::bhsd_to_bshd, Layout::packed,        Layout::grouped,
                              Layout::uneven,       Layout::broadcast_k,   Layout::odd,
                              Layout::paged,        Layout::paged_by_head, Layout::paged_groups};

Tensor strided(VkBuffer buffer, std::uint32_t heads, std::int64_t batch, std::int64_t token,
               std::int64_t head, VkDeviceSize offset = 0) {
    return {.where = {buffer, offset, KernelHost::buffer_bytes - offset},
            .heads = heads,
            .token_stride = token,
            .head_stride = head,
            .batch_stride = batch};
}

enum class V { absent, like_k, apart, in_place };

Scenario scenario(const KernelHost& host, Layout layout, V v, std::uint32_t batch,
                  std::uint32_t tokens, std::mt19937& random) {
    Scenario s;
    Call& c = s.call;
    c.batch = batch;
    c.tokens = tokens;
    c.angles = {.plan = &angle_plan(), .view = host.view};
    c.positions.first = 11;
    const std::int64_t B = batch, S = tokens;
    const auto bshd = [&](VkBuffer buffer, std::uint32_t heads) {
        return strided(buffer, heads, S * heads * D, heads * D, D);
    };
    const auto bhsd = [&](VkBuffer buffer, std::uint32_t heads) {
        return strided(buffer, heads, S * heads * D, D, S * D);
    };
    const auto sbhd = [&](VkBuffer buffer, std::uint32_t heads) {
        return strided(buffer, heads, heads * D, B * heads * D, D);
    };
    c.q_in = bshd(host.q, 4);
    c.q_out = bshd(host.q_out, 4);
    c.k_in = bshd(host.k, 2);
    c.k_out = bshd(host.k_out, 2);
    switch (layout) {
        case Layout::bshd: break;
        case Layout::bhsd:
            c.q_in = c.q_out = bhsd(host.q, 4), c.k_in = bhsd(host.k, 2),
            c.k_out = bhsd(host.k_out, 2);
            break;
        case Layout::sbhd:
            c.q_in = sbhd(host.q, 4), c.q_out = sbhd(host.q_out, 4),
            c.k_in = c.k_out = sbhd(host.k, 2);
            break;
        case Layout::bhsd_to_bshd: c.q_in = bhsd(host.q, 4), c.k_in = bhsd(host.k, 2); break;
        case Layout::packed:
            c.q_in = c.q_out = strided(host.q, 4, S * 8 * D, 8 * D, D);
            c.k_in = c.k_out = strided(host.q, 2, S * 8 * D, 8 * D, D, 4 * row_bytes);
            break;
        case Layout::grouped:  // [S, 2 groups, 2 of Q, K, V]
            c.q_in = c.q_out = strided(host.q, 4, S * 8 * D, 8 * D, D);
            c.k_in = c.k_out = strided(host.q, 2, S * 8 * D, 8 * D, D, 2 * row_bytes);
            for (Tensor* q : {&c.q_in, &c.q_out}) q->heads_per_group = 2, q->group_stride = 4 * D;
            for (Tensor* k : {&c.k_in, &c.k_out}) k->heads_per_group = 1, k->group_stride = 4 * D;
            break;
        case Layout::uneven:  // groups of 4 to groups of 6: they share pairs of heads, at two
                              // distances
            c.q_in = strided(host.q, 12, S * 15 * D, 15 * D, D);
            c.q_in.heads_per_group = 4, c.q_in.group_stride = 5 * D;
            c.q_out = strided(host.q_out, 12, S * 14 * D, 14 * D, D);
            c.q_out.heads_per_group = 6, c.q_out.group_stride = 7 * D;
            break;
        case Layout::broadcast_k:
            c.k_in = strided(host.k, 4, S * D, D, broadcast);
            c.k_out = bshd(host.k_out, 4);
            break;
        case Layout::odd:  // rows that begin at odd elements, ids, a counter
            c.q_in = c.q_out = strided(host.q, 4, (S * 4 * (D + 1) + 3), 4 * (D + 1), D + 1, 6);
            c.k_in = strided(host.k, 2, S * 2 * D + 5, 2 * D, D, 2);
            break;
        case Layout::paged:
        case Layout::paged_by_head:
        case Layout::paged_groups: {
            const std::uint32_t heads = layout == Layout::paged_groups ? 4 : 2;
            c.paged_cache = {.slot_mapping = {host.words, 68, 0},
                             .int64 = random() % 2 != 0,
                             .page_size = 1 + std::uint32_t(random() % 8)};
            const std::uint32_t page_bytes = c.paged_cache.page_size * heads * row_bytes;
            s.pages = std::uint32_t(KernelHost::buffer_bytes / page_bytes);
            c.k_out = {.where = {host.k_out, 0, KernelHost::buffer_bytes}, .heads = heads};
            if (layout == Layout::paged_groups) {  // [S, 2 groups of 2 + 3, D] to a cache with the
                                                   // opposite order of groups
                c.k_in = strided(host.k, 4, S * 10 * D, 10 * D, D);
                c.k_in.heads_per_group = c.k_out.heads_per_group = 2;
                c.k_in.group_stride = 5 * D;
                c.k_out.head_stride = 2 * D;
                c.k_out.group_stride = D;
            }
            if (layout == Layout::paged_by_head) {
                c.k_out.head_stride = c.paged_cache.page_size * D;
                c.paged_cache.row_stride = D;
                c.paged_cache.page_stride = 2 * c.paged_cache.page_size * D;
            }
            c.paged_cache.slot_mapping.range = std::uint64_t{batch} * tokens *
                                               (c.paged_cache.int64 ? 8 : 4);
            std::vector<std::int64_t> free(std::size_t{s.pages} * c.paged_cache.page_size);
            for (std::size_t i = 0; i < free.size(); ++i) free[i] = std::int64_t(i);
            std::shuffle(free.begin(), free.end(), random);
            for (std::uint32_t i = 0; i < batch * tokens; ++i) {
                const std::uint32_t kind = random() % 8;
                s.slot_mapping.push_back(kind == 0   ? -1
                                         : kind == 1 ? std::int64_t(free.size() + random() % 9)
                                         : kind == 2 ? -5
                                                     : free.at(i));
            }
            break;
        }
    }
    switch (v) {
        case V::absent: break;
        case V::like_k:
            c.v_in = c.k_in;
            c.v_in.where.buffer = host.v;
            c.v_out = c.k_out;
            c.v_out.where.buffer = host.v_out;
            break;
        case V::apart:  // fewer heads; if pages of one row have K's strides, rows with larger gaps
            if (layout == Layout::paged_by_head) {
                c.v_in = strided(host.v, 2, S * 3 * D, 3 * D, D);
                c.v_out = c.k_out;
                c.v_out.where.buffer = host.v_out;
                break;
            }
            c.v_in = strided(host.v, 1, S * D, D, D);
            c.v_out = c.paged_cache.slot_mapping.buffer
                          ? Tensor{.where = {host.v_out, 0, KernelHost::buffer_bytes}, .heads = 1}
                          : strided(host.v_out, 1, S * D, D, D);
            break;
        case V::in_place: c.v_in = c.v_out = strided(host.v, 2, S * 2 * D, 2 * D, D); break;
    }
    for (std::uint32_t i = 0; i < batch * tokens; ++i) s.outside_table.push_back(random() % 4 == 0);
    // Dispatches that count wait for each other: a counter in every call would hide everything
    // else.
    if (random() % 2) c.out_of_range = {host.words, KernelHost::buffer_bytes / 2 + 20, 4};
    return s;
}

// The finish of a call's tensors.
enum class Steps { none, of_heads, of_tokens };

KernelInfo info_for(Layout layout, V v, Steps steps = Steps::none) {
    KernelInfo info = kernel_info();
    if (v != V::absent) info.v = info.k;
    if (layout == Layout::odd || layout == Layout::paged) info.positions = PositionSource::ids;
    if (layout == Layout::bhsd) {
        info.rotary_dim = 64;
        info.windows[0] = {16, 32};
        info.windows[1] = {64, 32};
    }
    info.scatter_k = layout == Layout::paged || layout == Layout::paged_by_head ||
                     layout == Layout::paged_groups;
    if (steps == Steps::none) return info;
    const bool four = layout == Layout::broadcast_k || layout == Layout::paged_groups;
    const std::uint32_t k_heads = four ? 4 : 2;
    const bool own_heads = v == V::apart && layout != Layout::paged_by_head;
    return with_finish(
        info,
        full_finish(NormKind::rms, steps == Steps::of_heads ? NormSpan::head : NormSpan::token,
                    NormPlace::before),
        layout == Layout::uneven ? 12 : 4, k_heads,
        own_heads          ? 1
        : v == V::in_place ? 2
                           : k_heads);
}

const AnglePlan& plan_for(const KernelInfo& info) {
    static const AnglePlan half = {.source = AngleSource::direct_texture,
                                   .format = VK_FORMAT_R32G32B32A32_SFLOAT,
                                   .extent = {16, 4096},
                                   .bytes = 4096 * 16 * 16,
                                   .pairs = 32,
                                   .rows = 4096,
                                   .fold_log2 = 12,
                                   .row_texels = 16};
    return info.rotary_dim == 64 ? half : angle_plan();
}

V any_v(Layout layout, std::mt19937& random) {
    const V v = V(random() % 4);
    const bool cache = layout == Layout::paged || layout == Layout::paged_by_head ||
                       layout == Layout::paged_groups;
    return v == V::in_place && cache ? V::absent : v;  // a cache is another buffer
}

FakeConfig config_for(const Limits& limits, std::uint32_t storage_buffers, bool push_descriptors,
                      std::mt19937& random) {
    const std::uint32_t most = limits.workgroups;
    return {
        .storage_buffers = storage_buffers,
        .offset_alignment = random() % 2 ? 16u : 256u,
        .storage_range = limits.range,
        .workgroup_count = {most, most, most},
        .type = random() % 2 ? VK_PHYSICAL_DEVICE_TYPE_CPU : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        .push_descriptors = push_descriptors,
        .debug_utils = false};
}

// A call that `info` allows, with what its finish reads.
Scenario scenario_for(const KernelHost& host, const KernelInfo& info, Layout layout, V v,
                      std::uint32_t batch, std::uint32_t tokens, std::mt19937& random) {
    Scenario s = scenario(host, layout, v, batch, tokens, random);
    s.call.angles.plan = &plan_for(info);
    if (info.positions == PositionSource::ids) {
        s.call.positions = {.ids = {host.words, 131072 + 36, 100000},
                            .batch_stride = random() % 2 ? tokens + 3 : 0};
    }
    s.call = with_finish(host, info, s.call);
    return s;
}

// Whether the heads of a token may be too far apart in memory for one dispatch.
bool heads_may_be_cut(Layout layout) {
    return layout == Layout::bhsd || layout == Layout::bhsd_to_bshd ||
           layout == Layout::paged_by_head;
}
bool has_groups(Layout layout) {
    return layout == Layout::grouped || layout == Layout::uneven || layout == Layout::paged_groups;
}

}  // namespace

TEST_CASE(
    "split calls: every row once, where it belongs; barriers exactly where bound ranges overlap; a "
    "token counts once") {
    std::mt19937 random(75);
    std::uint64_t many = 0, barriers = 0, without = 0;
    std::uint64_t with_k = 0, without_k = 0;  // calls with V in K's dispatch, and outside it
    for (const Layout layout : layouts) {
        for (const Limits& limits : small_limits) {
            for (const bool apart : {false, true}) {
                for (const bool push_descriptors : {true, false}) {
                    CAPTURE(int(layout));
                    CAPTURE(limits.range);
                    CAPTURE(limits.workgroups);
                    CAPTURE(apart);
                    CAPTURE(push_descriptors);
                    const V v = any_v(layout, random);
                    CAPTURE(int(v));
                    const KernelInfo info = info_for(layout, v);
                    if (apart && info.scatter_k) continue;  // needs more buffers: create() says so
                    const KernelHost host(
                        config_for(limits, apart ? 4 : 16, push_descriptors, random));
                    const Owned<Kernel> kernel(create(host.ref, info).value);
                    REQUIRE(kernel);
                    const std::pair<std::uint32_t, std::uint32_t> shapes[] = {
                        {1, 270}, {2, 130}, {20, 9}, {1, 1}};
                    for (const auto& shape : shapes) {
                        const std::uint32_t batch = shape.first, tokens = shape.second;
                        CAPTURE(batch);
                        CAPTURE(tokens);
                        const Scenario s = scenario_for(host, info, layout, v, batch, tokens,
                                                        random);
                        const Outcome outcome = check(host, *kernel, s);
                        if (batch * tokens > 250 && limits.range <= 1u << 16)
                            CHECK(outcome.dispatches > 1);
                        many = std::max(many, outcome.dispatches);
                        barriers += outcome.barriers;
                        without += outcome.dispatches - 1 - outcome.barriers;
                        with_k += outcome.v_beside_k;
                        without_k += v == V::apart || (v == V::like_k && !outcome.v_beside_k);
                    }
                }
            }
        }
    }
    MESSAGE("up to " << many << " dispatches a call; " << barriers << " of " << barriers + without
                     << " wait for an earlier one");
    CHECK(many > 100);
    CHECK(barriers > 1000);
    CHECK(without > 1000);
    CHECK(with_k > 20);
    CHECK(without_k > 100);
}

TEST_CASE(
    "split calls: every row with its head's parameters and its token's factor; a norm over a token "
    "in one dispatch or not at all") {
    std::mt19937 random(78);
    std::uint64_t many = 0, split[3] = {}, refused = 0, later_heads = 0;
    for (const Layout layout : layouts) {
        for (Limits limits : small_limits) {
            limits.range = std::max(limits.range, 10'240u);  // the parameters of 12 heads
            for (const bool apart : {false, true}) {
                for (const Steps steps : {Steps::of_heads, Steps::of_tokens}) {
                    CAPTURE(int(layout));
                    CAPTURE(limits.range);
                    CAPTURE(limits.workgroups);
                    CAPTURE(apart);
                    CAPTURE(int(steps));
                    const V v = any_v(layout, random);
                    CAPTURE(int(v));
                    const KernelInfo info = info_for(layout, v, steps);
                    if (apart && info.scatter_k) continue;
                    const KernelHost host(
                        config_for(limits, apart ? 6 : 16, random() % 2 != 0, random));
                    const Owned<Kernel> kernel(create(host.ref, info).value);
                    REQUIRE(kernel);
                    const std::pair<std::uint32_t, std::uint32_t> shapes[] = {
                        {1, 270}, {2, 130}, {20, 9}};
                    for (const auto& [batch, tokens] : shapes) {
                        CAPTURE(batch);
                        CAPTURE(tokens);
                        const Scenario s = scenario_for(host, info, layout, v, batch, tokens,
                                                        random);
                        const Status possible = dispatches(kernel.get(), s.call).status;
                        INFO(possible.what);
                        if (possible) {
                            const Outcome outcome = check(host, *kernel, s);
                            many = std::max(many, outcome.dispatches);
                            split[int(steps)] += outcome.dispatches > 3;
                            for (const Command& command : dispatches(host))
                                later_heads += pushed(command).flags / shader::flag_first_head != 0;
                            continue;
                        }
                        ++refused;
                        CHECK(steps == Steps::of_tokens);
                        CHECK((has_groups(layout) ||
                               (heads_may_be_cut(layout) && limits.range <= 1u << 16)));
                        CHECK(std::string(possible.what).find("a norm over a token") !=
                              std::string::npos);
                        const std::size_t before = fake().commands(host.commands).size();
                        CHECK(record(host.commands, kernel.get(), s.call).code == possible.code);
                        CHECK(fake().commands(host.commands).size() == before);
                    }
                }
            }
        }
    }
    MESSAGE("up to " << many << " dispatches a call; cut: " << split[1] << " calls with norms of "
                     << "heads, " << split[2] << " of tokens; refused: " << refused << "; "
                     << later_heads << " dispatches begin with a later head");
    CHECK(many > 100);
    CHECK(split[1] > 50);
    CHECK(split[2] > 30);
    CHECK(later_heads > 50);
}

TEST_CASE(
    "split calls: parts that are apart in memory do not wait for each other; packed Q and K share "
    "theirs") {
    const KernelHost host(
        {.offset_alignment = 256, .storage_range = 1u << 16, .debug_utils = false});
    const Owned<Kernel> kernel(create(host.ref, kernel_info()).value);
    std::mt19937 random(76);
    const auto outcome = [&](Layout layout) {
        Scenario s = scenario(host, layout, V::absent, 1, 400, random);
        s.call.out_of_range = {};  // every dispatch that counts would write it
        return check(host, *kernel, s);
    };
    const Outcome apart = outcome(Layout::bshd), packed = outcome(Layout::packed);
    CHECK(apart.dispatches == 7 + 4);  // 64 KiB minus alignment: 63 tokens of Q, 127 of K
    CHECK(apart.barriers == 0);
    // Rows of the same length are cut at the same tokens, so that no part touches what another one
    // writes.
    CHECK(packed.dispatches == 13);
    CHECK(packed.barriers == 0);
}

TEST_CASE(
    "a row that does not fit: limit_exceeded, from dispatches() too, and nothing is recorded") {
    const KernelHost host({.offset_alignment = 16, .storage_range = 256, .debug_utils = false});
    const Owned<Kernel> kernel(create(host.ref, kernel_info()).value);
    std::mt19937 random(77);
    const Scenario s = scenario(host, Layout::bshd, V::absent, 2, 5, random);
    for (const Status& status :
         {dispatches(kernel.get(), s.call).status, record(host.commands, kernel.get(), s.call)}) {
        CHECK(status.code == Code::limit_exceeded);
        CHECK(std::string(status.what)
                  .find("q_in: one row spans 256 bytes, but the device binds at most 256") !=
              std::string::npos);
    }
    CHECK(fake().commands(host.commands).empty());
}

}  // namespace vkrope::test
