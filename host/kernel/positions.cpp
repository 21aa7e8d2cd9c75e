// SPDX-License-Identifier: MIT
// Implements create_positions() and record_positions(), which convert positions to int32 ids once
// per step.
#include <algorithm>
#include <cinttypes>
#include <new>

#include "base/defaults.hpp"
#include "base/status.hpp"
#include "kernel/kernel_object.hpp"
#include "kernel/resolve/rules.hpp"

namespace vkrope {

namespace {

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

// All buffers of a call.
struct Buffers {
    Numbers out, source, offsets, counter;

    explicit Buffers(const PositionCall& call) noexcept
        : out{"out", call.out, tokens(call) * 4}, source{"ids",
                                                         call.ids,
                                                         tokens(call) * (call.ids_f32 ? 4 : 8),
                                                         {call.ids_f32 == 0, "clear ids_f32"}},
          offsets{"offsets",
                  call.offsets,
                  std::uint64_t{call.cu_seqlens.buffer ? call.sequences : call.batch} *
                      (call.offsets_int64 ? 8 : 4),
                  {call.offsets_int64 != 0, "set offsets_int64"}},
          counter{"out_of_range", call.out_of_range, 4} {
        if (!call.cu_seqlens.buffer) return;
        source = {"cu_seqlens",
                  call.cu_seqlens,
                  (std::uint64_t{call.sequences} + 1) * (call.cu_seqlens_int64 ? 8 : 4),
                  {call.cu_seqlens_int64 != 0, "set cu_seqlens_int64"}};
    }

    static std::uint64_t tokens(const PositionCall& call) {
        return std::uint64_t{call.batch} * call.tokens;
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

Status check(const PositionCall& call) noexcept {
    const bool ragged = call.cu_seqlens.buffer, ids = call.ids.buffer;
    if (ids && (ragged || call.offsets.buffer || call.first != 0 || call.cp_size != 1)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "ids is given: cu_seqlens, offsets, first and cp_size must then not be set");
    }
    if (call.ids_f32 && !ids)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "ids_f32 is set: ids must then be given");
    const struct {
        const char* name;
        const VkDescriptorBufferInfo& where;
        bool int64;
    } optional[] = {{"ids", call.ids, false},
                    {"offsets", call.offsets, call.offsets_int64 != 0},
                    {"cu_seqlens", call.cu_seqlens, call.cu_seqlens_int64 != 0},
                    {"out_of_range", call.out_of_range, false}};
    for (const auto& [name, where, int64] : optional) {
        if (where.buffer) continue;
        if (int64)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s_int64 is set: %s must then be given",
                         name, name);
        if (where.offset != 0 || where.range != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s.buffer is null: its offset and range must then be 0", name);
    }
    if (call.fraction_bits > 63 || (call.fraction_bits != 0 && !call.ids_f32))
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "fraction_bits is %u: it must be 0 to 63, and 0 without ids_f32",
                     call.fraction_bits);
    if (ragged != (call.sequences != 0)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "sequences is %u: it must be %s",
                     call.sequences,
                     ragged ? "at least 1 with cu_seqlens" : "0 without cu_seqlens");
    }
    if (ragged && call.batch != 1)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "batch is %u: with cu_seqlens it must be 1",
                     call.batch);
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
    return {};
}

Status resolve(const PositionKernel& kernel, const PositionCall& call, Buffers& buffers) noexcept {
    for (Numbers* numbers : {&buffers.out, &buffers.source, &buffers.offsets, &buffers.counter})
        if (Status s = resolve(*numbers, kernel.storage_limits); !s) return s;
    for (const Numbers* other : {&buffers.source, &buffers.offsets, &buffers.counter}) {
        if (buffers.out.overlaps(*other))
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "out and %s overlap: they must be disjoint",
                         other->name);
        if (other != &buffers.counter && buffers.counter.overlaps(*other))
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "%s and out_of_range overlap: they must be disjoint", other->name);
    }
    const std::uint64_t most = max_in_a_row(kernel.workgroup_size, kernel.dispatch_limits);
    if (Buffers::tokens(call) <= most) return {};
    return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                 "tokens is %u: %" PRIu64
                 " ids need as many invocations, but the device dispatches at most %" PRIu64,
                 call.tokens, Buffers::tokens(call), most);
}

shader::PositionPush push_of(const PositionCall& call, const Buffers& buffers) noexcept {
    shader::PositionPush push = {};
    push.total = std::uint32_t(Buffers::tokens(call));
    push.tokens = call.tokens;
    push.flags = (call.ids.buffer && !call.ids_f32 ? shader::position_flag_ids : 0) |
                 (call.ids_f32 ? shader::position_flag_ids_f32 : 0) |
                 call.fraction_bits * shader::position_flag_fraction_bits |
                 (call.offsets.buffer ? shader::position_flag_offsets : 0) |
                 (call.offsets_int64 ? shader::position_flag_offsets_64 : 0) |
                 (call.cu_seqlens.buffer ? shader::position_flag_ragged : 0) |
                 (call.cu_seqlens_int64 ? shader::position_flag_ragged_64 : 0) |
                 (call.out_of_range.buffer ? shader::position_flag_count : 0);
    push.first = std::uint32_t(call.first);
    push.sequences = call.sequences;
    push.cp_size = call.cp_size;
    push.cp_rank = call.cp_rank;
    push.offsets = buffers.source.offset_words | buffers.offsets.offset_words << 8 |
                   buffers.counter.offset_words << 16 | buffers.out.offset_words << 24;
    return push;
}

// Returns the descriptors. The binding of an absent buffer gets the buffer `out`.
Descriptors descriptors_of(const Buffers& buffers) noexcept {
    const auto or_out = [&](const Numbers& numbers) {
        return numbers.given() ? numbers.bound : buffers.out.bound;
    };
    Descriptors descriptors;
    descriptors.buffers[shader::position_binding_out] = buffers.out.bound;
    descriptors.buffers[shader::position_binding_source] = or_out(buffers.source);
    descriptors.buffers[shader::position_binding_offsets] = or_out(buffers.offsets);
    descriptors.buffers[shader::position_binding_out_of_range] = or_out(buffers.counter);
    return descriptors;
}

Status build(PositionKernel& kernel) {
    kernel.workgroup_size = std::min(64u, kernel.dispatch_limits.workgroup_invocations);
    Result<Specializer> module = Specializer::of(
        unpack(position_module.bytes, position_module.size));
    if (!module) return module.status;
    const Result<Spirv> words = module->specialize(&kernel.workgroup_size, 1, 0,
                                                   LoopControls::as_written, kernel.binds);
    if (!words) return words.status;
    if (Status s = create_layouts(kernel, sizeof(shader::PositionPush)); !s) return s;
    return create_pipeline(kernel, words.value, "vkrope, positions", kernel.pipeline);
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
    kernel->vk.vkDestroyPipeline(kernel->device.device, kernel->pipeline, kernel->device.allocator);
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
            if (Status s = check(call); !s) return s;
            if (call.tokens == 0) return {};
            if (!call.out.buffer) return error(VKROPE_ERROR_INVALID_ARGUMENT, "out.buffer is null");
            Buffers buffers(call);
            if (Status s = resolve(*kernel, call, buffers); !s) return s;
            if (Status s = check_arena(*kernel, arena, 1); !s) return s;

            const shader::PositionPush push = push_of(call, buffers);
            begin_label(commands, *kernel);
            bind(commands, *kernel, descriptors_of(buffers), arena);
            dispatch(commands, *kernel, kernel->pipeline, &push, sizeof push,
                     shape_in_a_row(Buffers::tokens(call), kernel->workgroup_size,
                                    kernel->dispatch_limits));
            end_label(commands, *kernel);
            return {};
        });
}
