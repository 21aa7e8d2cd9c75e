// SPDX-License-Identifier: MIT
// Rotation of tensors in host memory: from a model's rotation to the rotated bytes.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "runtime/device_impl.hpp"
#include "runtime/no_throw.hpp"
#include "status.hpp"

namespace vkrope {

namespace {

// Q, K or V on the device.
struct HostTensor {
    Buffer in, out;  // in place: `out` is empty
    Tensor shape;    // strides and heads, without a buffer
    std::size_t bytes = 0;

    Tensor at(const Buffer& buffer) const {
        Tensor tensor = shape;
        tensor.where = buffer.whole();
        return tensor;
    }
    Tensor input() const { return at(in); }
    Tensor output() const { return at(out.handle() ? out : in); }
};

Status check(const HostShape& shape) {
    if (shape.element > VKROPE_BF16)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "element is %u: not a valid type",
                     unsigned(shape.element));
    if (shape.layout > VKROPE_LAYOUT_THD)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "layout is %u: not a valid layout",
                     unsigned(shape.layout));
    if (shape.angles >= VKROPE_ANGLES_COS_SIN_CACHE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "angles is %u: not a valid source of angles here", unsigned(shape.angles));
    if (shape.layout == VKROPE_LAYOUT_THD && shape.batch != 1) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "batch is %u: the layout thd has packed tokens and no batch", shape.batch);
    }
    if (shape.first_position != 0 && !shape.positions.empty())
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "first_position is %d: positions are given, one for each token",
                     shape.first_position);
    const std::size_t ids = shape.positions.size(), tokens = shape.tokens;
    if (shape.axes != 0) {
        if (ids == std::size_t{shape.axes} * shape.batch * tokens) return {};
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "positions has %zu elements: with %u axes it must have one for each of the "
                     "%zu tokens on each",
                     ids, shape.axes, std::size_t{shape.batch} * tokens);
    }
    if (ids != 0 && ids != tokens && ids != std::size_t{shape.batch} * tokens) {
        return error(
            VKROPE_ERROR_INVALID_ARGUMENT,
            "positions has %zu elements: it must have one for each of the %zu tokens, or for each "
            "of the %zu of all sequences",
            ids, tokens, std::size_t{shape.batch} * tokens);
    }
    return {};
}

// Element strides of a layout; see enum Layout.
Tensor strides_of(const HostShape& shape, std::uint32_t heads, std::uint32_t head_dim) {
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

// One past the largest |position| in use: the table need not cover more.
std::uint64_t table_length(const HostShape& shape) {
    std::uint64_t largest = 0;
    const auto see = [&](std::int64_t position) {
        largest = std::max<std::uint64_t>(largest, std::uint64_t(std::llabs(position)));
    };
    for (const std::int32_t position : shape.positions) see(position);
    if (shape.positions.empty()) {
        see(shape.first_position);
        see(std::int64_t{shape.first_position} + shape.tokens - 1);
    }
    return largest + 1;
}

Status check(const HostShape& shape, const HostRun& run) {
    if (run.first_position && !shape.positions.empty()) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "run.first_position is %d: the shape has a position for each token",
                     *run.first_position);
    }
    const std::int64_t last = std::int64_t{run.first_position.value_or(0)} + shape.tokens - 1;
    if (last > std::numeric_limits<std::int32_t>::max()) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "run.first_position is %d: with %u tokens the last position, %lld, does not "
                     "fit in int32",
                     *run.first_position, shape.tokens, static_cast<long long>(last));
    }
    if (run.direction > VKROPE_INVERSE)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "run.direction is %u: not a valid direction",
                     unsigned(run.direction));
    if (run.positions.empty() || run.positions.size() == shape.positions.size()) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "run.positions has %zu elements: it must have as many as the shape, %zu, or none",
                 run.positions.size(), shape.positions.size());
}

}  // namespace

struct HostRotation::Impl {
    Device::Impl* device = nullptr;
    RopeParams rotation;
    HostShape shape;                 // with the positions of the last run
    const Kernel* kernel = nullptr;  // belongs to the device
    Owned<DescriptorArena> arena;
    AngleTable table;
    HostTensor q, k, v;
    Buffer ids;

    ~Impl() {
        if (arena && device->pending)
            device->abandon({.arena = arena.release()});  // the queue may be using its sets
    }

    Status make_tensor(Device& on, HostTensor& tensor, std::uint32_t heads,
                       std::uint32_t head_dim) {
        tensor.shape = strides_of(shape, heads, head_dim);
        constexpr std::uint64_t max_rows =
            std::uint64_t{1} << 44;  // rows of up to 2^16 channels: more than any device holds
        const std::uint64_t sequences = std::uint64_t{shape.batch} * heads;
        if (shape.tokens != 0 && sequences > max_rows / shape.tokens) {
            return error(
                VKROPE_ERROR_LIMIT_EXCEEDED,
                "batch %u x tokens %u x heads %u: these are more rows than any device can hold",
                shape.batch, shape.tokens, heads);
        }
        const std::uint64_t rows = sequences * shape.tokens;
        tensor.bytes = rows * head_dim * element_bytes(shape.element);
        if (tensor.bytes == 0) return {};
        auto in = Buffer::make(on, tensor.bytes);
        if (!in) return in.status;
        tensor.in = std::move(in.value);
        if (shape.in_place) return {};
        auto out = Buffer::make(on, tensor.bytes);
        tensor.out = std::move(out.value);
        return out.status;
    }

    Status make_ids(Device& on) {
        if (shape.positions.empty()) return {};
        auto made = Buffer::make(on, shape.positions.size() * sizeof(std::int32_t));
        if (!made) return made.status;
        ids = std::move(made.value);
        return ids.upload(shape.positions.data(), shape.positions.size() * sizeof(std::int32_t));
    }

    Status make_kernel() {
        const auto stored = [&](std::uint32_t heads) {
            return heads == 0 ? std::optional<Element>() : shape.element;
        };
        Result<KernelInfo> info = kernel_info(rotation, table.layout(), stored(shape.q_heads),
                                              stored(shape.k_heads));
        if (!info) return info.status;
        info->tensor[Q].ops = info->tensor[K].ops = {};  // rotates, and does nothing else
        info->tensor[Q].heads = info->tensor[K].heads = 0;
        if (shape.q_heads != 0) info->tensor[Q].head_dim = shape.q_head_dim;
        if (shape.k_heads != 0) info->tensor[K].head_dim = shape.k_head_dim;
        if (shape.v_heads != 0)
            info->tensor[V] = {
                .in = shape.element, .out = shape.element, .head_dim = shape.v_head_dim};
        if (!shape.positions.empty() && shape.axes == 0) info->positions = VKROPE_POSITIONS_IDS;
        info->mapping = shape.mapping;
        info->conversion = shape.conversion;
        const Result<const Kernel*> made = device->kernel_for(info.value);
        kernel = made.value;
        return made.status;
    }

    Status make_arena() {
        if (device->ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return {};
        const Result<std::uint64_t> needed = dispatches(kernel, call(VKROPE_FORWARD));
        if (!needed) return needed.status;
        if (needed.value > max_calls) {
            return error(
                VKROPE_ERROR_LIMIT_EXCEEDED,
                "shape: it takes %llu dispatches on this device, but an arena holds at most %u",
                static_cast<unsigned long long>(needed.value), max_calls);
        }
        const Result<DescriptorArena*> sets = create_arena(
            kernel, std::max(std::uint32_t(needed.value), 1u));
        arena.reset(sets.value);
        return sets.status;
    }

    // The table grows first: if it fails, nothing has changed.
    Status apply(const HostRun& run) {
        if (Status s = check(shape, run); !s) return s;
        HostShape next = shape;
        if (run.first_position) next.first_position = *run.first_position;
        if (!run.positions.empty()) next.positions = run.positions;
        if (Status s = table.reach(*device, rotation, table_length(next)); !s) return s;
        if (!run.positions.empty()) {
            if (Status s = ids.upload(next.positions.data(),
                                      next.positions.size() * sizeof(std::int32_t));
                !s)
                return s;
        }
        shape = std::move(next);
        return {};
    }

    Call call(Direction direction) const {
        Call c{.batch = shape.batch, .tokens = shape.tokens};
        if (q.bytes) c.in[Q] = q.input(), c.out[Q] = q.output();
        if (k.bytes) c.in[K] = k.input(), c.out[K] = k.output();
        if (v.bytes) c.in[V] = v.input(), c.out[V] = v.output();
        if (shape.positions.empty()) {
            c.positions = {.first = shape.first_position, .batch_stride = broadcast};
        } else {
            c.positions.ids = ids.whole();
            if (shape.positions.size() == shape.tokens) c.positions.batch_stride = broadcast;
        }
        c.angles = table.angles();
        c.direction = direction;
        return c;
    }
};

HostRotation::HostRotation() noexcept = default;
HostRotation::~HostRotation() = default;
HostRotation::HostRotation(HostRotation&&) noexcept = default;
HostRotation& HostRotation::operator=(HostRotation&&) noexcept = default;

Result<HostRotation> HostRotation::make(Device& device, const RopeParams& rotation,
                                        const HostShape& shape) {
    return no_throw([&]() -> Result<HostRotation> {
        if (Status s = check(shape); !s) return {s, {}};
        Result<HostRotation> made;
        made->impl_ = std::make_unique<Impl>();
        Impl& impl = *made->impl_;
        impl.device = &device.impl();
        impl.rotation = rotation;
        impl.shape = shape;
        if (shape.axes == 0 && rotation.sections.order != VKROPE_SECTIONS_SUM)
            impl.rotation.sections = {};  // one position rotates all pairs
        if (shape.axes != impl.rotation.sections.axes) {
            return {
                error(VKROPE_ERROR_INVALID_ARGUMENT, "axes is %u: the rotation's sections have %u",
                      shape.axes, rotation.sections.axes),
                {}};
        }
        if (impl.shape.q_head_dim == 0)
            impl.shape.q_head_dim = row_channels(rotation, rotation.q_rotary_offset);
        if (impl.shape.k_head_dim == 0)
            impl.shape.k_head_dim = row_channels(rotation, rotation.k_rotary_offset);
        if (impl.shape.v_head_dim == 0) impl.shape.v_head_dim = impl.shape.k_head_dim;
        Status& status = made.status;
        auto table = AngleTable::make(device, impl.rotation, impl.shape.angles,
                                      table_length(shape));
        if (status = table.status; !status) return made;
        impl.table = std::move(table.value);
        impl.shape.angles = impl.table.layout().source;
        if (status = impl.make_kernel(); !status) return made;
        if (status = impl.make_tensor(device, impl.q, shape.q_heads, impl.shape.q_head_dim);
            !status)
            return made;
        if (status = impl.make_tensor(device, impl.k, shape.k_heads, impl.shape.k_head_dim);
            !status)
            return made;
        if (status = impl.make_tensor(device, impl.v, shape.v_heads, impl.shape.v_head_dim);
            !status)
            return made;
        if (status = impl.make_ids(device); !status) return made;
        status = impl.make_arena();
        return made;
    });
}

std::size_t HostRotation::q_bytes() const noexcept {
    return impl_->q.bytes;
}
std::size_t HostRotation::k_bytes() const noexcept {
    return impl_->k.bytes;
}
std::size_t HostRotation::v_bytes() const noexcept {
    return impl_->v.bytes;
}
const AngleTableLayout& HostRotation::angle_layout() const noexcept {
    return impl_->table.layout();
}

Status HostRotation::upload(const void* q, const void* k, const void* v) {
    const struct {
        HostTensor& tensor;
        const void* source;
        const char *name, *kind;
    } given[] = {{impl_->q, q, "q", "query heads"},
                 {impl_->k, k, "k", "key heads"},
                 {impl_->v, v, "v", "value heads"}};
    for (const auto& [tensor, source, name, kind] : given) {
        if (tensor.bytes == 0 || source) continue;
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null: the shape has %u %s", name,
                     tensor.shape.heads, kind);
    }
    for (const auto& [tensor, source, name, kind] : given) {
        if (tensor.bytes == 0) continue;
        if (Status s = tensor.in.upload(source, tensor.bytes); !s) return s;
    }
    return {};
}

Result<std::optional<double>> HostRotation::run(Direction direction) {
    return run(HostRun{.direction = direction});
}

Result<std::optional<double>> HostRotation::run(const HostRun& run) {
    return no_throw([&]() -> Result<std::optional<double>> {
        if (Status s = impl_->device->check_not_recording(); !s)
            return {s, {}};  // before positions change
        if (Status s = impl_->apply(run); !s) return {s, {}};
        reset(impl_->arena.get());
        return impl_->device->submit([&](VkCommandBuffer commands) {
            return record(commands, impl_->kernel, impl_->call(run.direction), impl_->arena.get());
        });
    });
}

Status HostRotation::download(void* q, void* k, void* v) {
    const auto fetch = [](HostTensor& tensor, void* target, const char* name) {
        if (tensor.bytes && !target)
            return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is null: the shape has such heads",
                         name);
        return tensor.bytes
                   ? (tensor.out.handle() ? tensor.out : tensor.in).download(target, tensor.bytes)
                   : Status{};
    };
    if (Status s = fetch(impl_->q, q, "q"); !s) return s;
    if (Status s = fetch(impl_->k, k, "k"); !s) return s;
    return fetch(impl_->v, v, "v");
}

HostRotation::Buffers HostRotation::buffers() const noexcept {
    Buffers all = {};
    if (impl_->q.bytes) all.q_in = impl_->q.input().where, all.q_out = impl_->q.output().where;
    if (impl_->k.bytes) all.k_in = impl_->k.input().where, all.k_out = impl_->k.output().where;
    if (impl_->v.bytes) all.v_in = impl_->v.input().where, all.v_out = impl_->v.output().where;
    return all;
}

}  // namespace vkrope
