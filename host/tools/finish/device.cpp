// SPDX-License-Identifier: MIT
// The second step of vkrope finish: upload, finish and time, download.
#include <algorithm>

#include "finish/finish.hpp"
#include "roof/median.hpp"
#include "shell/device_text.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

/// A tensor on the device; an empty one is absent.
struct Resident {
    Tensor shape;  // without the buffer
    Buffer in, out, scales;

    Tensor at(const Buffer& buffer) const {
        Tensor tensor = shape;
        if (shape.heads != 0) {
            tensor.where = buffer.whole();
        }
        return tensor;
    }
};

Buffer buffer_of(Device& device, const void* data, std::size_t bytes) {
    Buffer buffer = value_of(Buffer::make(device, std::max<std::size_t>(bytes, 4)),
                             Subject::device);
    if (data != nullptr && bytes > 0) {
        check(buffer.upload(data, bytes), Subject::device);
    }
    return buffer;
}

Resident resident_of(Device& device, const TensorFile& tensor, std::size_t output_bytes,
                     std::size_t scales_bytes) {
    const reference::Tensor& view = tensor.view;
    if (tensor.array.data.empty()) {
        return {};
    }
    return {.shape = {.heads = static_cast<std::uint32_t>(view.heads),
                      .token_stride = static_cast<std::int64_t>(view.token_stride),
                      .head_stride = static_cast<std::int64_t>(view.head_stride),
                      .batch_stride = static_cast<std::int64_t>(view.batch_stride)},
            .in = buffer_of(device, tensor.array.data.data(), tensor.array.data.size()),
            .out = buffer_of(device, nullptr, output_bytes),
            .scales = scales_bytes == 0 ? Buffer{} : buffer_of(device, nullptr, scales_bytes)};
}

KernelInfo kernel_of(const FinishInputs& inputs, const Rotation& rotation, const AnglePlan& plan) {
    const auto& tensors = inputs.rotate.tensors;
    const auto stored = [&](TensorIndex which) {
        const bool present = tensors[which] && !tensors[which]->array.data.empty();
        return present ? std::optional(inputs.rotate.element) : std::nullopt;
    };
    KernelInfo info = value_of(kernel_info(rotation, plan, stored(Q), stored(K)), Subject::device);
    const OfEachTensor<TensorInfo*> formats = {&info.tensor[Q], &info.tensor[K], &info.tensor[V]};
    const OfEachTensor<std::uint32_t*> heads = {&info.tensor[Q].heads, &info.tensor[K].heads,
                                                &info.tensor[V].heads};
    const OfEachTensor<Finish*> finishes = {&info.tensor[Q].ops, &info.tensor[K].ops,
                                            &info.tensor[V].ops};
    for (const TensorIndex which : every_tensor) {
        if (!stored(which)) {
            continue;
        }
        formats[which]->in = inputs.rotate.element;
        formats[which]->out = inputs.steps[which].store.type;
        formats[which]->head_dim = static_cast<std::uint32_t>(tensors[which]->view.head_dim);
        *heads[which] = static_cast<std::uint32_t>(tensors[which]->view.heads);
        *finishes[which] = inputs.steps[which].finish;
    }
    if (!inputs.rotate.positions.ids.empty() && inputs.rotate.positions.axes == 0) {
        info.positions = VKROPE_POSITIONS_IDS;
    }
    info.two_parameter_sets = inputs.first_set_tokens != 0;
    return info;
}

std::vector<float> parameters_of(const FinishInputs& inputs, const KernelInfo& info) {
    const ParameterPlan plan = value_of(plan_parameters(info), Subject::device);
    const std::size_t floats = plan.bytes / sizeof(float);
    std::vector<float> parameters(info.two_parameter_sets ? 2 * floats : floats);
    for (std::size_t first = 0; first < parameters.size(); first += floats) {
        const auto sources = [&](TensorIndex which) -> TensorParameterSources {
            const TensorSteps& steps = inputs.steps[which];
            const bool second = first != 0;
            const std::vector<float>& scales = steps.store.given_scales;
            return {(second ? steps.second_bias : steps.bias).source(),
                    (second ? steps.second_weight : steps.weight).source(),
                    (second ? steps.second_norm_bias : steps.norm_bias).source(),
                    scales.empty() ? ParameterSource{}
                                   : ParameterSource{scales.data(), VKROPE_F32, scales.size()}};
        };
        check(fill_parameters(plan, {sources(Q), sources(K), sources(V)}, &parameters[first],
                              plan.bytes),
              Subject::device);
    }
    return parameters;
}

/// Everything that the commands refer to.
struct Work {
    OfEachTensor<Resident> tensors;
    Buffer ids, parameters, scales;
    AngleTable table;
    Owned<Kernel> kernel;
    Owned<DescriptorArena> arena;
    Call call;
};

void place_positions(const RotateInputs& inputs, Device& device, Work& work) {
    const std::vector<std::int32_t>& ids = inputs.positions.ids;
    if (ids.empty()) {
        work.call.positions = {.first = inputs.positions.first, .batch_stride = broadcast};
        return;
    }
    work.ids = buffer_of(device, ids.data(), ids.size() * sizeof(std::int32_t));
    work.call.positions.ids = work.ids.whole();
    if (ids.size() == inputs.tokens) {
        work.call.positions.batch_stride = broadcast;
    }
}

/// The kernel rotates at least one pair. That of a layer without RoPE has the angle 0, which leaves
/// it as it is.
Rotation rotation_of(const RotateInputs& inputs) {
    Rotation rotation = inputs.rotation;
    if (rotation.no_rope) {
        rotation.no_rope = false;
        rotation.rotary_dim = 2;
        rotation.inv_freq = {0};
        rotation.q_rotary_offset = rotation.k_rotary_offset = 0;
    }
    if (inputs.positions.axes == 0 && rotation.sections.order != VKROPE_SECTIONS_SUM) {
        rotation.sections = {};  // one position rotates all pairs
    }
    return rotation;
}

Work prepare(const FinishOptions& options, const FinishInputs& inputs, Device& device,
             const MeasuredFinish& measured) {
    const RotateInputs& given = inputs.rotate;
    Work work;
    const Rotation rotation = rotation_of(given);
    work.table = value_of(AngleTable::make(device, rotation, options.given.angles,
                                           largest_distance(given.positions) + 1),
                          Subject::device);
    for (const TensorIndex which : every_tensor) {
        if (given.tensors[which]) {
            work.tensors[which] = resident_of(device, *given.tensors[which],
                                              measured.outputs[which].size(),
                                              measured.scales[which].size() * sizeof(float));
        }
    }
    const KernelInfo info = kernel_of(inputs, rotation, work.table.plan());
    work.kernel = value_of(own(create(device.ref(), info)), Subject::device);
    Call& call = work.call;
    call.batch = given.batch;
    call.tokens = given.tokens;
    call.first_set_tokens = inputs.first_set_tokens;
    const auto place = [&](TensorIndex which, Tensor& in, Tensor& out,
                           VkDescriptorBufferInfo& scales) {
        const Resident& tensor = work.tensors[which];
        in = tensor.at(tensor.in);
        out = tensor.at(tensor.out);
        if (in.heads != 0 && !measured.scales[which].empty()) {
            scales = tensor.scales.whole();
        }
    };
    place(Q, call.in[Q], call.out[Q], call.scales_out[Q]);
    place(K, call.in[K], call.out[K], call.scales_out[K]);
    place(V, call.in[V], call.out[V], call.scales_out[V]);
    place_positions(given, device, work);
    if (const std::vector<float> floats = parameters_of(inputs, info); !floats.empty()) {
        work.parameters = buffer_of(device, floats.data(), floats.size() * sizeof(float));
        call.parameters = work.parameters.whole();
    }
    if (info.tensor[Q].ops.scale_tokens) {
        work.scales = buffer_of(device, inputs.q_scale_tokens.data(),
                                inputs.q_scale_tokens.size() * sizeof(float));
        call.scale_tokens[Q] = work.scales.whole();
    }
    call.q_scale = info.tensor[Q].ops.scale_call ? inputs.q_scale : 1;
    return work;
}

void run(const FinishOptions& options, Device& device, Work& work, Measured& measured) {
    work.call.angles = work.table.angles();
    const std::uint64_t dispatched = value_of(dispatches(work.kernel.get(), work.call),
                                              Subject::device);
    if (!(device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR)) {
        if (dispatched > max_calls) {
            fail(ExitCode::no_device, "it takes {} dispatches on this device, an arena holds {}",
                 dispatched, max_calls);
        }
        work.arena = value_of(
            own(create_arena(work.kernel.get(),
                             std::max(static_cast<std::uint32_t>(dispatched), std::uint32_t{1}))),
            Subject::device);
    }
    std::vector<double> nanoseconds;
    ProgressLine progress("finishing");
    const std::uint32_t warm_up = warms_up(options.given) ? 1 : 0;
    for (std::uint32_t n = 0; n < options.given.repetitions + warm_up; ++n) {
        progress.update(double(n) / (options.given.repetitions + warm_up));
        reset(work.arena.get());
        const auto time = value_of(device.submit([&work](VkCommandBuffer commands) {
            return record(commands, work.kernel.get(), work.call, work.arena.get());
        }),
                                   Subject::device);
        if (n >= warm_up && time && *time > 0) {
            nanoseconds.push_back(*time);
        }
    }
    if (!nanoseconds.empty()) {
        measured.nanoseconds = bench::median(std::move(nanoseconds));
    }
}

}  // namespace

MeasuredFinish finish_on_device(const FinishOptions& options, const FinishInputs& inputs) {
    Device device = open_device(options.given);
    MeasuredFinish measured;
    measured.device = device.info();
    const RotateInputs& given = inputs.rotate;
    for (const TensorIndex which : every_tensor) {
        if (const std::optional<TensorFile>& tensor = given.tensors[which]) {
            const std::size_t bytes = tensor->array.data.size();
            const StoreSteps& store = inputs.steps[which].store;
            measured.outputs[which].resize(store.bytes(bytes / element_bytes(given.element)));
            measured.bytes += bytes + measured.outputs[which].size();
            if (is_made(store.scale)) {
                measured.scales[which].resize(bytes / element_bytes(given.element) /
                                              tensor->view.head_dim);
                measured.bytes += measured.scales[which].size() * sizeof(float);
            }
        }
    }
    if (measured.bytes == 0) {
        return measured;
    }
    if (!given.rotation.no_rope) {
        check_table_fits(options.given, given, measured.device.limits);
    }
    Work work = prepare(options, inputs, device, measured);
    run(options, device, work, measured);
    for (const TensorIndex which : every_tensor) {
        std::vector<std::byte>& output = measured.outputs[which];
        if (!output.empty()) {
            check(work.tensors[which].out.download(output.data(), output.size()), Subject::device);
        }
        std::vector<float>& scales = measured.scales[which];
        if (!scales.empty()) {
            check(work.tensors[which].scales.download(scales.data(), scales.size() * sizeof(float)),
                  Subject::device);
        }
    }
    measured.angles = work.table.plan();
    return measured;
}

}  // namespace vkrope::tools
