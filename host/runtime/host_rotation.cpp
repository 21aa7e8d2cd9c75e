// SPDX-License-Identifier: MIT
// Implements vkrope_host_rotation, which rotates tensors in host memory.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/defaults.hpp"
#include "base/no_throw.hpp"
#include "base/section_rules.hpp"
#include "runtime/device_impl.hpp"

namespace vkrope {

namespace {

// Q, K or V on the device.
struct HostTensor {
    Owned<vkrope_buffer> in, out;  // in place: `out` is empty
    Tensor shape;                  // strides and heads, without a buffer
    std::size_t bytes = 0;

    vkrope_buffer& output() const noexcept { return out ? *out : *in; }
    Tensor at(const vkrope_buffer& buffer) const noexcept {
        Tensor tensor = shape;
        tensor.where = buffer.whole();
        return tensor;
    }
};

// vkrope_host_shape with defaults filled in, and with the positions of the last run.
struct Shape : HostShape {
    std::vector<std::int32_t> positions;

    explicit Shape(const HostShape& of)
        : HostShape(of), positions(of.positions, of.positions + of.position_count) {
        batch = value_or(batch, 1u);
        HostShape::positions = nullptr;  // that array belongs to the caller
    }
};

// Checks that the last implicit position fits in int32.
Status check_first(const char* owner, std::int32_t first, std::uint32_t tokens) {
    const std::int64_t last = std::int64_t{first} + tokens - 1;
    if (last <= std::numeric_limits<std::int32_t>::max()) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "%s.first_position is %d: with %u tokens the last position, %lld, does not fit in "
                 "int32",
                 owner, first, tokens, static_cast<long long>(last));
}

Status check(const HostShape* given) {
    if (Status s = not_null(given, "shape"); !s) return s;
    const HostShape& shape = *given;
    if (Status s = not_null(shape.positions, "shape.positions"); !s && shape.position_count != 0)
        return s;
    if (shape.positions && shape.position_count == 0 && shape.tokens != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.position_count is 0 although shape.positions is not null");
    if (shape.element > VKROPE_BF16)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.element is %u, %s: it must be f32, f16 or bf16",
                     unsigned(shape.element), element_name(shape.element));
    if (shape.layout > VKROPE_LAYOUT_THD)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "shape.layout is %u: not a valid layout",
                     unsigned(shape.layout));
    if (shape.angles >= VKROPE_ANGLES_COS_SIN_CACHE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.angles is %u: not a valid source of angles here",
                     unsigned(shape.angles));
    if (shape.heads[Q] == 0 && shape.heads[K] == 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.heads[0] and shape.heads[1] are both 0: there is nothing to rotate");
    for (const TensorIndex t : every_tensor) {
        if (shape.heads[t] == 0 && shape.head_dim[t] != 0)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "shape.head_dim[%u] is %u: shape.heads[%u] is 0, so it must be 0",
                         unsigned(t), shape.head_dim[t], unsigned(t));
    }
    if (shape.conversion != VKROPE_CONVERSION_AUTOMATIC && shape.element != VKROPE_F16)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.conversion is %u: shape.element is not f16, so it must be 0",
                     unsigned(shape.conversion));
    if (Status s = check_first("shape", shape.first_position, shape.tokens); !s) return s;
    const std::size_t batch = value_or(shape.batch, 1u), tokens = shape.tokens;
    if (shape.layout == VKROPE_LAYOUT_THD && batch != 1)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.batch is %zu: the layout thd has packed tokens and no batch", batch);
    const std::size_t ids = shape.position_count;
    if (shape.first_position != 0 && ids != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.first_position is %d: positions are given, one for each token",
                     shape.first_position);
    if (shape.axes != 0) {
        if (ids == std::size_t{shape.axes} * batch * tokens) return {};
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.position_count is %zu: with %u axes there must be one for each of the "
                     "%zu tokens on each",
                     ids, shape.axes, batch * tokens);
    }
    if (ids == 0 || ids == tokens || ids == batch * tokens) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "shape.position_count is %zu: there must be one for each of the %zu tokens, or "
                 "for each of the %zu of all sequences",
                 ids, tokens, batch * tokens);
}

// Returns the element strides of a layout; see vkrope_layout.
Tensor strides_of(const Shape& shape, std::uint32_t heads, std::uint32_t head_dim) {
    const std::int64_t row = head_dim, H = heads, S = shape.tokens, B = shape.batch;
    Tensor tensor{.heads = heads};
    switch (shape.layout) {
        case VKROPE_LAYOUT_BHSD:
            tensor.token_stride = row, tensor.head_stride = S * row,
            tensor.batch_stride = H * S * row;
            break;
        case VKROPE_LAYOUT_SBHD:
            tensor.token_stride = B * H * row, tensor.head_stride = row,
            tensor.batch_stride = H * row;
            break;
        default:
            tensor.token_stride = H * row, tensor.head_stride = row,
            tensor.batch_stride = S * H * row;
    }
    return tensor;
}

// Returns one past the largest |position| in use, which is all that the table need cover.
std::uint64_t table_length(std::int32_t first, std::uint32_t tokens, const std::int32_t* positions,
                           std::size_t count) {
    std::uint64_t largest = 0;
    const auto see = [&](std::int64_t position) {
        largest = std::max<std::uint64_t>(largest, std::uint64_t(std::llabs(position)));
    };
    for (std::size_t i = 0; i < count; ++i) see(positions[i]);
    if (count == 0) {
        see(first);
        see(std::int64_t{first} + tokens - 1);
    }
    return largest + 1;
}

// Adds the name of the positions to the error of a table that does not cover them.
Status about_position(const char* owner, bool implicit, std::uint64_t length,
                      const Status& of) noexcept {
    if (std::strncmp(of.what, "max_position", 12) != 0) return of;
    return error(of.code, "%s.%s reach position %llu: %s", owner,
                 implicit ? "first_position" : "positions",
                 static_cast<unsigned long long>(length - 1), of.what);
}

Status check(const Shape& shape, const HostRun& run) {
    if (Status s = not_null(run.positions, "run.positions"); !s && run.position_count != 0)
        return s;
    if (run.positions && run.position_count == 0 && shape.tokens != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "run.position_count is 0 although run.positions is not null");
    if (!run.moves && run.first_position != 0)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "run.first_position is %d: without run.moves it must be 0",
                     run.first_position);
    if (run.moves && !shape.positions.empty())
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "run.first_position is %d: the shape has a position for each token",
                     run.first_position);
    if (Status s = check_first("run", run.first_position, shape.tokens); !s) return s;
    if (run.direction > VKROPE_INVERSE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "run.direction is %u: not a valid direction",
                     unsigned(run.direction));
    if (run.position_count == 0 || run.position_count == shape.positions.size()) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "run.position_count is %zu: there must be as many as the shape has, %zu, or none",
                 run.position_count, shape.positions.size());
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

struct vkrope_host_rotation {
    DeviceState* device;
    RopeParams rotation;
    Shape shape;
    const Kernel* kernel = nullptr;  // belongs to the device
    Owned<DescriptorArena> arena;
    Owned<vkrope_angle_table> table;
    HostTensor tensors[tensor_count];
    Owned<vkrope_buffer> ids;

    vkrope_host_rotation(DeviceState& on, const HostShape& of) : device(&on), shape(of) {}
    ~vkrope_host_rotation() {
        if (arena && device->pending)
            device->abandon({.arena = arena.release()});  // the queue may be using its sets
    }
    vkrope_host_rotation(const vkrope_host_rotation&) = delete;
    vkrope_host_rotation& operator=(const vkrope_host_rotation&) = delete;

    Status make_table(const vkrope_rope_params& given) {
        if (Status s = check_sections("rotation.", given.sections); !s) return s;
        vkrope_rope_params of = given;
        if (shape.axes == 0 && of.sections.order != VKROPE_SECTIONS_SUM)
            of.sections = {};  // one position rotates all pairs
        if (shape.axes != of.sections.axes)
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "shape.axes is %u: the rotation's sections have %u", shape.axes,
                         given.sections.axes);
        const std::uint64_t length = table_length(shape.first_position, shape.tokens,
                                                  shape.positions.data(), shape.positions.size());
        auto made = make_angle_table(*device, of, shape.angles, length);
        if (!made) return about_position("shape", shape.positions.empty(), length, made.status);
        table = std::move(made.value);
        shape.angles = table->layout.source;
        of.rope_type = nullptr;
        of.warnings = nullptr;
        rotation = RopeParams(of);  // copied after its counts were checked
        if (shape.head_dim[Q] == 0)
            shape.head_dim[Q] = vkrope_row_channels(&of, of.q_rotary_offset);
        if (shape.head_dim[K] == 0)
            shape.head_dim[K] = vkrope_row_channels(&of, of.k_rotary_offset);
        if (shape.head_dim[V] == 0) shape.head_dim[V] = shape.head_dim[K];
        return {};
    }

    Status make_kernel() {
        const vkrope_rope_params params = rotation.view();
        const auto stored = [&](TensorIndex t) {
            return shape.heads[t] ? &shape.element : nullptr;
        };
        KernelInfo info;
        if (Status s = status_of(vkrope_get_kernel_info, &params, &table->layout, stored(Q),
                                 stored(K), nullptr, &info);
            !s)
            return s;
        for (const TensorIndex t : every_tensor) {  // no ops, only the rotation
            if (!shape.heads[t]) continue;
            info.tensor[t].in = info.tensor[t].out = shape.element;
            info.tensor[t].head_dim = shape.head_dim[t];
            info.tensor[t].heads = 0;
            info.tensor[t].ops = {};
        }
        if (!shape.positions.empty() && shape.axes == 0) info.positions = VKROPE_POSITIONS_IDS;
        info.mapping = shape.mapping;
        info.conversion = shape.conversion;
        const Result<const Kernel*> made = device->kernel_for(info);
        kernel = made.value;
        return made.status;
    }

    Status make_tensor(TensorIndex t) {
        HostTensor& tensor = tensors[t];
        const std::uint32_t heads = shape.heads[t], head_dim = shape.head_dim[t];
        tensor.shape = strides_of(shape, heads, head_dim);
        constexpr std::uint64_t max_rows =
            // More rows than fit in any device; rows of 2^16 channels cannot overflow 64 bits.
            std::uint64_t{1} << 44;
        const std::uint64_t sequences = std::uint64_t{shape.batch} * heads;
        if (shape.tokens != 0 && sequences > max_rows / shape.tokens)
            return error(
                VKROPE_ERROR_LIMIT_EXCEEDED,
                "batch %u x tokens %u x heads %u: these are more rows than fit in any device",
                shape.batch, shape.tokens, heads);
        const std::uint64_t rows = sequences * shape.tokens;
        tensor.bytes = rows * head_dim * element_bytes(shape.element);
        if (tensor.bytes == 0) return {};
        auto in = make_buffer(*device, tensor.bytes);
        if (!in) return in.status;
        tensor.in = std::move(in.value);
        if (shape.in_place) return {};
        auto out = make_buffer(*device, tensor.bytes);
        tensor.out = std::move(out.value);
        return out.status;
    }

    Status make_ids() {
        if (shape.positions.empty()) return {};
        const std::size_t bytes = shape.positions.size() * sizeof(std::int32_t);
        auto made = make_buffer(*device, bytes);
        if (!made) return made.status;
        ids = std::move(made.value);
        return ids->upload(shape.positions.data(), bytes);
    }

    Status make_arena() {
        if (device->ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return {};
        const Result<std::uint64_t> needed = dispatches(kernel, call(VKROPE_FORWARD));
        if (!needed) return needed.status;
        if (needed.value > max_calls)
            return error(
                VKROPE_ERROR_LIMIT_EXCEEDED,
                "shape: it takes %llu dispatches on this device, but an arena holds at most %u",
                static_cast<unsigned long long>(needed.value), max_calls);
        const Result<DescriptorArena*> sets = create_arena(
            kernel, std::max(std::uint32_t(needed.value), 1u));
        arena.reset(sets.value);
        return sets.status;
    }

    Status make(const vkrope_rope_params& of) {
        if (Status s = make_table(of); !s) return s;
        if (Status s = make_kernel(); !s) return s;
        for (const TensorIndex t : every_tensor)
            if (Status s = make_tensor(t); !s) return s;
        if (Status s = make_ids(); !s) return s;
        return make_arena();
    }

    // The table grows first, so that nothing has changed if this fails.
    Status apply(const HostRun& run) {
        if (Status s = check(shape, run); !s) return s;
        if (!run.moves && run.position_count == 0) return {};
        const std::uint64_t length = table_length(run.first_position, shape.tokens, run.positions,
                                                  run.position_count);
        if (Status s = table->reach(rotation.view(), length); !s)
            return about_position("run", run.position_count == 0, length, s);
        if (run.moves) shape.first_position = run.first_position;
        if (run.position_count == 0) return {};
        std::vector<std::int32_t> next(run.positions, run.positions + run.position_count);
        if (Status s = ids->upload(next.data(), next.size() * sizeof(std::int32_t)); !s) return s;
        shape.positions = std::move(next);
        return {};
    }

    Call call(Direction direction) const {
        Call c{.batch = shape.batch, .tokens = shape.tokens};
        for (const TensorIndex t : every_tensor) {
            const HostTensor& tensor = tensors[t];
            if (tensor.bytes)
                c.in[t] = tensor.at(*tensor.in), c.out[t] = tensor.at(tensor.output());
        }
        if (shape.positions.empty()) {
            c.positions = {.first = shape.first_position, .batch_stride = broadcast};
        } else {
            c.positions.ids = ids->whole();
            if (shape.positions.size() == shape.tokens) c.positions.batch_stride = broadcast;
        }
        c.angles = table->angles;
        c.direction = direction;
        return c;
    }

    // Checks that the caller provides every tensor of the shape, and no other.
    Status check_given(const void* const (&given)[tensor_count]) const {
        static constexpr const char* names[] = {"q", "k", "v"};
        for (const TensorIndex t : every_tensor) {
            if (given[t] && shape.heads[t] == 0)
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "%s is given: the shape has no such heads", names[t]);
            if (tensors[t].bytes == 0 || given[t]) continue;
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null: the shape has %u such heads",
                         names[t], shape.heads[t]);
        }
        return {};
    }
};

vkrope_result vkrope_host_rotation_create(vkrope_device* device, const vkrope_rope_params* rotation,
                                          const vkrope_host_shape* shape,
                                          vkrope_host_rotation** host_rotation,
                                          vkrope_error* failure) {
    return make_all(
        host_rotation, "host_rotation", failure,
        [&]() -> Result<std::unique_ptr<vkrope_host_rotation>> {
            if (Status s = not_null(device, "device"); !s) return {s, {}};
            if (Status s = not_null(rotation, "rotation"); !s) return {s, {}};
            if (Status s = check(shape); !s) return {s, {}};
            auto made = std::make_unique<vkrope_host_rotation>(*device, *shape);
            const Status status = made->make(*rotation);
            return {status, std::move(made)};
        });
}

size_t vkrope_host_rotation_bytes(const vkrope_host_rotation* host_rotation,
                                  vkrope_tensor_index tensor) {
    return host_rotation && tensor < VKROPE_TENSORS ? host_rotation->tensors[tensor].bytes : 0;
}

vkrope_result vkrope_host_rotation_upload(vkrope_host_rotation* host_rotation, const void* q,
                                          const void* k, const void* v, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
            const void* const given[] = {q, k, v};
            if (Status s = host_rotation->check_given(given); !s) return s;
            for (const TensorIndex t : every_tensor) {
                HostTensor& tensor = host_rotation->tensors[t];
                if (tensor.bytes == 0) continue;
                if (Status s = tensor.in->upload(given[t], tensor.bytes); !s) return s;
            }
            return {};
        });
}

vkrope_result vkrope_host_rotation_run(vkrope_host_rotation* host_rotation,
                                       const vkrope_host_run* run, double* nanoseconds,
                                       vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
            vkrope_host_rotation& work = *host_rotation;
            const HostRun wanted = run ? *run : HostRun{};
            // This is checked before positions change.
            if (Status s = work.device->check_not_recording(); !s) return s;
            if (Status s = work.apply(wanted); !s) return s;
            vkrope_arena_reset(work.arena.get());
            const auto spent = work.device->submit([&](VkCommandBuffer commands) {
                return record(commands, work.kernel, work.call(wanted.direction), work.arena.get());
            });
            if (nanoseconds) *nanoseconds = spent.value.value_or(-1);
            return spent.status;
        });
}

vkrope_result vkrope_host_rotation_download(vkrope_host_rotation* host_rotation, void* q, void* k,
                                            void* v, vkrope_error* failure) {
    return answer_all(
        failure,
        [&]() -> Status {
            if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
            void* const to[] = {q, k, v};
            if (Status s = host_rotation->check_given({q, k, v}); !s) return s;
            for (const TensorIndex t : every_tensor) {
                const HostTensor& tensor = host_rotation->tensors[t];
                if (tensor.bytes == 0) continue;
                if (Status s = tensor.output().download(to[t], tensor.bytes); !s) return s;
            }
            return {};
        });
}

void vkrope_host_rotation_destroy(vkrope_host_rotation* host_rotation) {
    delete host_rotation;
}
