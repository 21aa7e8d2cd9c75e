// SPDX-License-Identifier: MIT
// Implements create_positions() and record_positions(), which make what the calls of a step read
// from buffers: ids, slots, factors and the number of tokens.
#include <algorithm>
#include <cinttypes>
#include <iterator>
#include <new>

#include "base/defaults.hpp"
#include "base/query_scale_layout.hpp"
#include "base/status.hpp"
#include "kernel/dispatch_sequence.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

// Software devices end a loop after 65 535 rounds.
constexpr std::uint32_t max_sequences = 32768;
constexpr std::uint32_t outputs = shader::position_output_count;
// Storage buffers that an output binds. `out` alone, without seq_lens, binds fewer.
constexpr std::uint32_t storage_buffers = 6;

// A buffer of numbers that the call reads or writes.
struct Numbers {
    const char* name;
    VkDescriptorBufferInfo where = {};
    std::uint64_t bytes = 0;  // that the call accesses
    Width width = {true, ""};
    VkDescriptorBufferInfo bound = {};
    std::uint32_t offset_words = 0;

    bool given() const { return where.buffer != VK_NULL_HANDLE; }
    bool overlaps(const Numbers& other) const {
        return given() && where.buffer == other.where.buffer &&
               where.offset < other.where.offset + other.bytes &&
               other.where.offset < where.offset + bytes;
    }
};

bool is_ragged(const PositionCall& call) noexcept {
    return call.cu_seqlens.buffer || call.query_lens.buffer;
}
std::uint64_t tokens_of(const PositionCall& call) noexcept {
    return std::uint64_t{call.batch} * call.tokens;
}
// Returns the number of sequences, each of which has an offset, a length and a row of pages.
std::uint64_t row_count(const PositionCall& call) noexcept {
    return is_ragged(call) ? call.sequences : call.batch;
}

// All buffers of a call.
struct Buffers {
    enum Read { source, offsets, seq_lens, block_table, query_scales };

    Numbers read[5];
    Numbers written[outputs + 1];  // shader::position_output_*, and the counter

    explicit Buffers(const PositionCall& call) noexcept
        : read{source_of(call),
               {"offsets",
                call.offsets,
                row_count(call) * (call.offsets_int64 ? 8 : 4),
                {call.offsets_int64 != 0, "set offsets_int64"}},
               {"seq_lens", call.seq_lens, row_count(call) * 4, int32_alone},
               {"block_table", call.block_table,
                multiply_add(multiply_add(row_count(call) - 1, call.block_table_stride, call.pages),
                             4, 0),
                // Rows with a longer stride may be followed by any number of words.
                call.block_table_stride == call.pages ? int32_alone : Width{true, ""}},
               {"query_scales", call.query_scales,
                call.query_scale_layout ? call.query_scale_layout->bytes : 0}},
          written{{"out", call.out, tokens_of(call) * 4},
                  {"slot_mapping", call.slot_mapping, tokens_of(call) * 4},
                  {"scale_tokens", call.scale_tokens, tokens_of(call) * 4},
                  {"token_count", call.token_count, 4},
                  {"out_of_range", call.out_of_range, 4}} {}

    const Numbers& counter() const { return written[outputs]; }
    std::uint32_t dispatches() const {
        return std::uint32_t(std::count_if(
            written, written + outputs, [](const Numbers& of) { return of.given(); }));
    }

   private:
    static constexpr Width int32_alone = {false, "convert them to int32"};

    static Numbers source_of(const PositionCall& call) noexcept {
        if (call.query_lens.buffer)
            return {"query_lens", call.query_lens, std::uint64_t{call.sequences} * 4, int32_alone};
        if (call.cu_seqlens.buffer)
            return {"cu_seqlens",
                    call.cu_seqlens,
                    (std::uint64_t{call.sequences} + 1) * (call.cu_seqlens_int64 ? 8 : 4),
                    {call.cu_seqlens_int64 != 0, "set cu_seqlens_int64"}};
        return {"ids",
                call.ids,
                tokens_of(call) * (call.ids_f32 ? 4 : 8),
                {call.ids_f32 == 0, "clear ids_f32"}};
    }
};

Status resolve(Numbers& numbers, const StorageLimits& limits) noexcept {
    if (!numbers.given()) return {};
    if (Status s = check_numbers(numbers.name, numbers.where, numbers.width, numbers.bytes,
                                 numbers.bytes);
        !s)
        return s;
    return bind_words(numbers.name, numbers.where, numbers.bytes, limits, numbers.bound,
                      numbers.offset_words);
}

// Checks which fields are set together.
Status check_fields(const PositionCall& call) noexcept {
    const bool ids = call.ids.buffer, ids_f32 = call.ids_f32, offsets = call.offsets.buffer,
               cu_seqlens = call.cu_seqlens.buffer, query_lens = call.query_lens.buffer,
               seq_lens = call.seq_lens.buffer, table = call.block_table.buffer,
               slots = call.slot_mapping.buffer, factors = call.query_scales.buffer,
               layout = call.query_scale_layout, scaled = call.scale_tokens.buffer,
               token_count = call.token_count.buffer, sharded = call.cp_size != 1;
    const struct {
        const char* name;
        const VkDescriptorBufferInfo& where;
    } buffers[] = {{"ids", call.ids},
                   {"offsets", call.offsets},
                   {"cu_seqlens", call.cu_seqlens},
                   {"query_lens", call.query_lens},
                   {"seq_lens", call.seq_lens},
                   {"out", call.out},
                   {"block_table", call.block_table},
                   {"slot_mapping", call.slot_mapping},
                   {"query_scales", call.query_scales},
                   {"scale_tokens", call.scale_tokens},
                   {"token_count", call.token_count},
                   {"out_of_range", call.out_of_range}};
    for (const auto& [name, where] : buffers) {
        if (!where.buffer && is_given(where))
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.buffer is null: its offset and range must then be 0", name);
    }
    const struct {
        const char* field;
        bool set;
        const char* others;
        bool others_set;
    } excludes[] = {{"ids", ids, "cu_seqlens, query_lens, seq_lens, offsets, first and cp_size",
                     is_ragged(call) || seq_lens || offsets || call.first || sharded},
                    {"query_lens", query_lens, "cu_seqlens", cu_seqlens},
                    {"seq_lens", seq_lens, "cp_size", sharded},
                    {"block_table", table, "ids_f32 and cp_size", ids_f32 || sharded},
                    {"query_scales", factors, "ids_f32", ids_f32}};
    for (const auto& [field, set, others, others_set] : excludes) {
        if (set && others_set)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is given: %s must then not be set",
                         field, others);
    }
    const struct {
        const char* field;
        bool set;
        const char* needed;
        bool given;
    } needs[] = {{"offsets_int64", call.offsets_int64 != 0, "offsets", offsets},
                 {"cu_seqlens_int64", call.cu_seqlens_int64 != 0, "cu_seqlens", cu_seqlens},
                 {"ids_f32", ids_f32, "ids", ids},
                 {"slot_mapping", slots, "block_table", table},
                 {"block_table", table, "slot_mapping", slots},
                 {"pages", call.pages != 0, "block_table", table},
                 {"block_table_stride", call.block_table_stride != 0, "block_table", table},
                 {"page_size", call.page_size != 0, "block_table", table},
                 {"cache_pages", call.cache_pages != 0, "block_table", table},
                 {"scale_tokens", scaled, "query_scales", factors},
                 {"query_scales", factors, "scale_tokens", scaled},
                 {"query_scales", factors, "query_scale_layout", layout},
                 {"query_scale_layout", layout, "query_scales", factors},
                 {"token_count", token_count, "cu_seqlens or query_lens", is_ragged(call)}};
    for (const auto& [field, set, needed, given] : needs) {
        if (set && !given)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is set: %s must then be given", field,
                         needed);
    }
    return {};
}

// Checks the numbers of a call whose fields fit together.
Status check(const PositionCall& call) noexcept {
    if (Status s = check_fields(call); !s) return s;
    const bool ragged = is_ragged(call);
    if (call.fraction_bits > 63 || (call.fraction_bits != 0 && !call.ids_f32))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "fraction_bits is %u: it must be 0 to 63, and 0 without ids_f32",
                     call.fraction_bits);
    if (ragged != (call.sequences != 0)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "sequences is %u: it must be %s",
                     call.sequences,
                     ragged ? "at least 1 with cu_seqlens or query_lens"
                            : "0 without cu_seqlens and query_lens");
    }
    if (call.sequences > max_sequences)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "sequences is %u: it must be at most %u",
                     call.sequences, max_sequences);
    if (ragged && call.batch != 1)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "batch is %u: with cu_seqlens or query_lens it must be 1", call.batch);
    if (call.cp_size > 65536)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "cp_size is %u: it must be 1 to 65536",
                     call.cp_size);
    if (call.cp_rank >= call.cp_size)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "cp_rank is %u: it must be below cp_size, %u",
                     call.cp_rank, call.cp_size);
    if (call.cp_size > 1 && !ragged && call.tokens % 2 != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "tokens is %u: a rank holds two chunks of a sequence, so it must be even",
                     call.tokens);
    }
    if (std::uint64_t{call.tokens} * call.cp_size > std::uint64_t{1} << 31) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "tokens is %u: with cp_size %u the whole sequence has more than 2^31 tokens",
                     call.tokens, call.cp_size);
    }
    if (call.block_table.buffer) {
        if (call.pages == 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "pages is 0: with block_table it must be at least 1");
        if (call.block_table_stride < call.pages)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "block_table_stride is %u: it must be 0 or at least pages, %u",
                         call.block_table_stride, call.pages);
        if (call.page_size > std::uint32_t{1} << 31)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "page_size is %u: it must be 1 to 2^31",
                         call.page_size);
        const std::uint64_t most = (std::uint64_t{1} << 31) / call.page_size;
        if (call.cache_pages == 0 || call.cache_pages > most)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "cache_pages is %u: with page_size %u it must be 1 to %" PRIu64,
                         call.cache_pages, call.page_size, most);
    }
    return call.query_scale_layout ? check_layout("query_scale_layout->", *call.query_scale_layout)
                                   : Status{};
}

// Checks that there is an output, and that it can follow from the other fields on this device.
Status check_outputs(const PositionKernel& kernel, const PositionCall& call) noexcept {
    const bool offsets = call.offsets.buffer, seq_lens = call.seq_lens.buffer,
               slots = call.slot_mapping.buffer, scaled = call.scale_tokens.buffer,
               token_count = call.token_count.buffer,
               of_tokens = call.out.buffer || slots || scaled;
    if (!of_tokens && !token_count)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "out.buffer is null, and so are those of slot_mapping, scale_tokens and "
                     "token_count: one must be given");
    const struct {
        const char* field;
        bool set;
    } needless[] = {{"offsets", offsets},
                    {"seq_lens", seq_lens},
                    {"first", call.first != 0},
                    {"cp_rank", call.cp_rank != 0}};
    for (const auto& [field, set] : needless) {
        if (set && !of_tokens)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s is set: token_count, the only output, does not follow from it", field);
    }
    const struct {
        const char* field;
        bool set;
    } needing[] = {{"seq_lens", seq_lens},
                   {"slot_mapping", slots},
                   {"scale_tokens", scaled},
                   {"token_count", token_count}};
    for (const auto& [field, set] : needing) {
        if (set && kernel.max_storage_buffers < storage_buffers)
            return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                         "%s is given: the kernel then binds %u storage buffers, but the device "
                         "allows %u (maxPerStageDescriptorStorageBuffers)",
                         field, storage_buffers, kernel.max_storage_buffers);
    }
    return {};
}

Status resolve(const PositionKernel& kernel, const PositionCall& call, Buffers& buffers) noexcept {
    for (Numbers& numbers : buffers.written)
        if (Status s = resolve(numbers, kernel.storage_limits); !s) return s;
    for (Numbers& numbers : buffers.read)
        if (Status s = resolve(numbers, kernel.storage_limits); !s) return s;
    const auto overlap = [](const Numbers& a, const Numbers& b) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s and %s overlap: they must be disjoint",
                     a.name, b.name);
    };
    for (const Numbers& written : buffers.written) {
        for (const Numbers& other : buffers.read)
            if (written.overlaps(other)) return overlap(written, other);
        for (const Numbers* other = &written + 1; other != std::end(buffers.written); ++other)
            if (written.overlaps(*other)) return overlap(written, *other);
    }
    const std::uint64_t most = max_in_a_row(kernel.workgroup_size, kernel.dispatch_limits);
    if (tokens_of(call) <= most) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "tokens is %u: %" PRIu64
                 " ids need as many invocations, but the device dispatches at most %" PRIu64,
                 call.tokens, tokens_of(call), most);
}

// first  no earlier dispatch counts tokens without a position
shader::PositionPush push_of(const PositionCall& call, const Buffers& buffers, std::uint32_t output,
                             bool first) noexcept {
    const bool counts = call.out_of_range.buffer,
               factors = output == shader::position_output_factors;
    shader::PositionPush push = {};
    push.total = output == shader::position_output_token_count ? 1u
                                                               : std::uint32_t(tokens_of(call));
    push.tokens = call.tokens;
    push.flags = (call.ids.buffer && !call.ids_f32 ? shader::position_flag_ids : 0) |
                 (call.ids_f32 ? shader::position_flag_ids_f32 : 0) |
                 call.fraction_bits * shader::position_flag_fraction_bits |
                 (call.offsets.buffer ? shader::position_flag_offsets : 0) |
                 (call.offsets_int64 ? shader::position_flag_offsets_64 : 0) |
                 (is_ragged(call) ? shader::position_flag_ragged : 0) |
                 (call.cu_seqlens_int64 ? shader::position_flag_ragged_64 : 0) |
                 (call.query_lens.buffer ? shader::position_flag_query_lens : 0) |
                 (call.seq_lens.buffer ? shader::position_flag_seq_lens : 0) |
                 (call.token_count.buffer ? shader::position_flag_token_count : 0) |
                 (counts && first ? shader::position_flag_count_positions : 0) |
                 (counts ? shader::position_flag_count_own : 0);
    push.first = std::uint32_t(call.first);
    push.sequences = call.sequences;
    push.cp_size = call.cp_size;
    push.cp_rank = call.cp_rank;
    const Numbers& table = buffers.read[factors ? Buffers::query_scales : Buffers::block_table];
    const std::uint32_t starts[] = {
        buffers.read[Buffers::source].offset_words,   buffers.read[Buffers::offsets].offset_words,
        buffers.read[Buffers::seq_lens].offset_words, table.offset_words,
        buffers.written[output].offset_words,         buffers.counter().offset_words};
    for (std::uint32_t i = 0; i < std::size(starts); ++i)
        push.starts[i / 4] |= starts[i] << i % 4 * 8;
    push.table_items = factors ? call.query_scale_layout->rows : call.pages;
    push.item_positions = factors ? call.query_scale_layout->positions_per_row : call.page_size;
    push.table_stride = call.block_table_stride;
    push.cache_pages = call.cache_pages;
    push.shift = factors ? call.query_scale_layout->shift : 0;
    return push;
}

// Returns the buffers of a dispatch. The binding of an absent buffer gets that of the output.
Bindings bindings_of(const Buffers& buffers, std::uint32_t output) noexcept {
    const Numbers& written = buffers.written[output];
    const auto or_written = [&](const Numbers& numbers, bool used = true) {
        return numbers.given() && used ? numbers.bound : written.bound;
    };
    Bindings bindings = {};
    using namespace shader;
    bindings.of[position_binding_source] = or_written(buffers.read[Buffers::source]);
    bindings.of[position_binding_offsets] = or_written(buffers.read[Buffers::offsets]);
    bindings.of[position_binding_seq_lens] = or_written(buffers.read[Buffers::seq_lens]);
    bindings.of[position_binding_table] = output == position_output_factors
                                              ? or_written(buffers.read[Buffers::query_scales])
                                              : or_written(buffers.read[Buffers::block_table],
                                                           output == position_output_slots);
    bindings.of[position_binding_out] = written.bound;
    bindings.of[position_binding_out_of_range] = or_written(buffers.counter());
    return bindings;
}

Status build(PositionKernel& kernel) {
    kernel.workgroup_size = std::min(64u, kernel.dispatch_limits.workgroup_invocations);
    Result<Specializer> module = Specializer::of(
        unpack(position_module.bytes, position_module.size));
    if (!module) return module.status;
    const bool all = kernel.max_storage_buffers >= storage_buffers;
    const std::uint32_t count = all ? outputs : 1;
    Spirv words[outputs];
    for (std::uint32_t output = 0; output < count; ++output) {
        const std::uint32_t values[] = {kernel.workgroup_size, output, all};
        Result<Spirv> made = module->specialize(values, std::uint32_t(std::size(values)), 0,
                                                LoopControls::as_written, kernel.binds);
        if (!made) return made.status;
        words[output] = std::move(made.value);
    }
    if (Status s = create_layouts(kernel, sizeof(shader::PositionPush)); !s) return s;
    constexpr const char* names[outputs] = {"vkrope, ids", "vkrope, slots", "vkrope, query scales",
                                            "vkrope, number of tokens"};
    for (std::uint32_t output = 0; output < count; ++output)
        if (Status s = create_pipeline(kernel, words[output], names[output],
                                       kernel.pipelines[output]);
            !s)
            return s;
    return {};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_position_kernel_create(const vkrope_device_ref* device,
                                            vkrope_position_kernel** made, vkrope_error* failure) {
    return make(
        made, "kernel", failure,
        [&]() -> Status {
            if (Status s = not_null(device, "device"); !s) return s;
            if (Status s = check(*device); !s) return s;
            auto* kernel = new (std::nothrow) PositionKernel;
            if (!kernel)
                return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                             "not enough memory for a vkrope_position_kernel");
            if (Status s = borrow(*kernel, *device); !s) {
                delete kernel;  // nothing was created, and the functions to destroy it may be
                                // missing
                return s;
            }
            if (Status s = build(*kernel); !s) {
                vkrope_position_kernel_destroy(kernel);
                return s;
            }
            *made = kernel;
            return {};
        });
}

void vkrope_position_kernel_destroy(vkrope_position_kernel* kernel) {
    if (!kernel) return;
    for (const VkPipeline pipeline : kernel->pipelines)
        kernel->vk.vkDestroyPipeline(kernel->device.device, pipeline, kernel->device.allocator);
    destroy_layouts(*kernel);
    delete kernel;
}

vkrope_result vkrope_record_positions(VkCommandBuffer commands,
                                      const vkrope_position_kernel* kernel,
                                      const vkrope_position_call* given, vkrope_arena* arena,
                                      vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(commands, "commands"); !s) return s;
            if (Status s = not_null(kernel, "kernel"); !s) return s;
            if (Status s = not_null(given, "call"); !s) return s;
            PositionCall call = *given;
            call.batch = value_or(given->batch, 1u);
            call.cp_size = value_or(given->cp_size, 1u);
            if (call.block_table.buffer) {
                call.page_size = value_or(given->page_size, 1u);
                call.block_table_stride = value_or(given->block_table_stride, given->pages);
            }
            if (Status s = check(call); !s) return s;
            if (call.tokens == 0) return {};
            if (Status s = check_outputs(*kernel, call); !s) return s;
            Buffers buffers(call);
            if (Status s = resolve(*kernel, call, buffers); !s) return s;
            if (Status s = check_arena(*kernel, arena, buffers.dispatches()); !s) return s;

            begin_label(commands, *kernel);
            Bindings since_barrier[outputs];
            std::uint32_t count = 0;
            bool first = true;
            for (std::uint32_t output = 0; output < outputs; ++output) {
                if (!buffers.written[output].given()) continue;
                const shader::PositionPush push = push_of(call, buffers, output, first);
                const Bindings bindings = bindings_of(buffers, output);
                if (std::any_of(
                        since_barrier, since_barrier + count,
                        [&](const Bindings& earlier) { return conflict(earlier, bindings); })) {
                    record_barrier(commands, *kernel);
                    count = 0;
                }
                since_barrier[count++] = bindings;
                first = false;
                Descriptors descriptors;
                std::copy(std::begin(bindings.of), std::end(bindings.of), descriptors.buffers);
                bind(commands, *kernel, descriptors, arena);
                dispatch(
                    commands, *kernel, kernel->pipelines[output], &push, sizeof push,
                    shape_in_a_row(push.total, kernel->workgroup_size, kernel->dispatch_limits));
            }
            end_label(commands, *kernel);
            return {};
        });
}
