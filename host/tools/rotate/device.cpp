// SPDX-License-Identifier: MIT
// The second step of vkrope rotate: uploads, rotates and times, downloads.
#include <algorithm>

#include "cli/device_text.hpp"
#include "cli/failure.hpp"
#include "cli/terminal.hpp"
#include "meaning.hpp"
#include "roof/copy_roof.hpp"
#include "roof/median.hpp"
#include "rotate/rotate.hpp"

namespace vkrope::tools {
namespace {

/// Fails if the table of the requested source of angles does not reach all positions on a device
/// with these limits. Another source may reach them.
void check_table_fits(const RotateOptions& options, const RotateInputs& inputs,
                      const VkPhysicalDeviceLimits& limits) {
    const auto plan = plan_angles(inputs.rotation, options.angles,
                                  largest_distance(inputs.positions) + 1,
                                  limits.maxImageDimension2D);
    std::string problem = static_cast<const char*>(plan.status.what);
    if (plan && plan->source == VKROPE_ANGLES_DIRECT_BUFFER &&
        plan->bytes > limits.maxStorageBufferRange) {
        problem = fmt::format("the table has {} bytes, but the device binds at most {}",
                              plan->bytes, limits.maxStorageBufferRange);
    }
    if (!problem.empty()) {
        const char* advice = options.float32_angles ? ""
                                                    : "; without --angles there is one that does";
        fail(ExitCode::usage, "--angles: {} does not reach from position {} to {}{}: {}",
             options.angles == VKROPE_ANGLES_AUTOMATIC ? "direct_texture"
                                                       : word_for(angle_sources, options.angles),
             inputs.positions.lowest, inputs.positions.highest, advice, problem);
    }
}

/// Opens the requested device.
Device open_device(const RotateOptions& options) {
    DeviceOptions device_options;
    device_options.select = options.device.c_str();
    device_options.on_message = print_message;
    device_options.pipeline_cache_folder = options.pipeline_cache.c_str();
    return value_of(Device::open(device_options), Subject::device);
}

/// A tensor on the device, or an empty one if the tensor is absent.
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
    const oracle::Tensor& view = tensor.view;
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

/// Returns false if the tensor is absent or empty, since then there is nothing to bind.
bool has_rows(const RotateInputs& inputs, TensorIndex which) {
    return inputs.tensors[which] && !inputs.tensors[which]->array.data.empty();
}

KernelInfo kernel_of(const RotateInputs& inputs, const RopeParams& rotation,
                     const AngleTableLayout& plan) {
    const auto stored = [&](TensorIndex which) {
        return has_rows(inputs, which) ? std::optional(inputs.element) : std::nullopt;
    };
    KernelInfo info = value_of(kernel_info(rotation, plan, stored(Q), stored(K)), Subject::device);
    for (const TensorIndex which : every_tensor) {
        if (!has_rows(inputs, which)) {
            continue;
        }
        const oracle::Tensor& view = inputs.tensors[which]->view;
        const TensorOps& ops = inputs.ops[which];
        TensorInfo& tensor = info.tensor[which];
        tensor.in = inputs.element;
        tensor.out = ops.stored;
        tensor.head_dim = static_cast<std::uint32_t>(view.head_dim);
        // A kernel that only rotates accepts any number of heads.
        const bool counted = ops.any() || is_quantised(ops.stored);
        tensor.heads = counted ? static_cast<std::uint32_t>(view.heads) : 0;
        tensor.ops = ops;
    }
    if (!inputs.positions.ids.empty() && inputs.positions.axes == 0) {
        info.positions = VKROPE_POSITIONS_IDS;
    }
    info.two_parameter_sets = inputs.first_set_tokens != 0;
    return info;
}

std::vector<float> parameters_of(const RotateInputs& inputs, const KernelInfo& info) {
    const ParameterLayout plan = value_of(plan_parameters(info), Subject::device);
    const std::size_t floats = plan.bytes / sizeof(float);
    const std::size_t taken = info.two_parameter_sets ? sets : 1;
    std::vector<float> parameters(taken * floats);
    for (std::size_t set = 0; floats != 0 && set < taken; ++set) {
        ParameterSources sources;
        for (const TensorIndex which : every_tensor) {
            const TensorOps& ops = inputs.ops[which];
            const OfEachParameter<ParameterFile>& files = ops.parameters[set];
            const std::vector<float>& scales = ops.given_scales;
            sources.tensor[which] = {
                files[parameter_bias].source(), files[parameter_weight].source(),
                files[parameter_norm_bias].source(),
                scales.empty() ? ParameterSource{}
                               : ParameterSource{scales.data(), VKROPE_F32, scales.size()}};
        }
        check(fill_parameters(plan, sources, &parameters[set * floats], plan.bytes),
              Subject::device);
    }
    return parameters;
}

/// Everything that the recorded commands refer to.
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

/// Returns a rotation of at least one pair, which the kernel requires. For a layer without RoPE the
/// pair has the angle 0, which leaves it unchanged.
RopeParams rotation_of(const RotateInputs& inputs) {
    RopeParams rotation = inputs.rotation;
    if (rotation.no_rope) {
        rotation.no_rope = false;
        rotation.rotary_dim = 2;
        rotation.inv_freq = {0};
        rotation.phase = {0};
        rotation.q_rotary_offset = rotation.k_rotary_offset = 0;
    }
    if (inputs.positions.axes == 0 && rotation.sections.order != VKROPE_SECTIONS_SUM) {
        rotation.sections = {};  // one position rotates all pairs
    }
    return rotation;
}

Work prepare(const RotateOptions& options, const RotateInputs& inputs, Device& device,
             const Measured& measured) {
    Work work;
    const RopeParams rotation = rotation_of(inputs);
    work.table = value_of(
        AngleTable::make(device, rotation, options.angles, largest_distance(inputs.positions) + 1),
        Subject::device);
    const KernelInfo info = kernel_of(inputs, rotation, work.table.layout());
    work.kernel = value_of(own(create(device.ref(), info)), Subject::device);
    Call& call = work.call;
    call.batch = inputs.batch;
    call.tokens = inputs.tokens;
    call.first_set_tokens = inputs.first_set_tokens;
    call.direction = options.inverse ? VKROPE_INVERSE : VKROPE_FORWARD;
    for (const TensorIndex which : every_tensor) {
        if (!has_rows(inputs, which)) {
            continue;
        }
        Resident& tensor = work.tensors[which];
        tensor = resident_of(device, *inputs.tensors[which], measured.outputs[which].size(),
                             measured.scales[which].size() * sizeof(float));
        call.in[which] = tensor.at(tensor.in);
        call.out[which] = tensor.at(tensor.out);
        if (!measured.scales[which].empty()) {
            call.scales_out[which] = tensor.scales.whole();
        }
    }
    place_positions(inputs, device, work);
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

void make_arena(Device& device, Work& work) {
    if (device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) {
        return;
    }
    const std::uint64_t dispatched = value_of(dispatches(work.kernel.get(), work.call),
                                              Subject::device);
    if (dispatched > max_calls) {
        fail(ExitCode::no_device, "it takes {} dispatches on this device, an arena holds {}",
             dispatched, max_calls);
    }
    work.arena = value_of(
        own(create_arena(work.kernel.get(),
                         std::max(static_cast<std::uint32_t>(dispatched), std::uint32_t{1}))),
        Subject::device);
}

std::optional<bench::CopyRoof> make_roof(const RotateOptions& options, Device& device,
                                         const Work& work) {
    if (!options.roof) {
        return std::nullopt;
    }
    std::vector<bench::Copied> copies;
    for (const Resident& tensor : work.tensors) {
        if (tensor.shape.heads != 0) {
            copies.push_back({tensor.in.whole(), tensor.out.whole()});
        }
    }
    auto roof = value_of(bench::CopyRoof::make(device), Subject::device, "--roof: ");
    roof.aim(std::move(copies));
    const Status status = roof.settle();
    if (status.code == VKROPE_ERROR_NOT_SUPPORTED) {
        return std::nullopt;
    }
    check(status, Subject::device, "--roof: ");
    return roof;
}

void run(const RotateOptions& options, Device& device, Work& work, Measured& measured) {
    work.call.angles = work.table.angles();  // the table must not move from here on
    make_arena(device, work);
    std::optional<bench::CopyRoof> roof = make_roof(options, device, work);
    const auto once = [&] {
        vkrope_arena_reset(work.arena.get());
        return value_of(device.submit([&work](VkCommandBuffer commands) {
            return record(commands, work.kernel.get(), work.call, work.arena.get());
        }),
                        Subject::device);
    };
    std::vector<double> nanoseconds;
    ProgressLine progress("rotating");
    if (warms_up(options)) {
        once();
    }
    for (std::uint32_t repetition = 0; repetition < options.repetitions; ++repetition) {
        progress.update(double(repetition) / options.repetitions);
        if (roof) {
            // The copy runs first, so that the final download gets the output of the rotation.
            check(roof->round(), Subject::device, "--roof: ");
        }
        const auto time = once();
        if (time && *time > 0) {
            nanoseconds.push_back(*time);
        }
    }
    if (!nanoseconds.empty()) {
        measured.nanoseconds = bench::median(std::move(nanoseconds));
    }
    if (roof) {
        measured.copy = {.nanoseconds = roof->best_ns(), .shader = roof->best_name()};
    }
}

void rotate_tensors(const RotateOptions& options, const RotateInputs& inputs, Device& device,
                    Measured& measured) {
    if (!inputs.rotation.no_rope) {
        check_table_fits(options, inputs, measured.device.limits);
    }
    std::optional<ProgressLine> preparing(std::in_place, "preparing the table");
    preparing->update(0);
    Work work = prepare(options, inputs, device, measured);
    preparing.reset();
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
    measured.angles = work.table.layout();
}

}  // namespace

Measured rotate_on_device(const RotateOptions& options, const RotateInputs& inputs) {
    Device device = open_device(options);
    Measured measured;
    measured.device = device.info();
    bool changes = !inputs.rotation.no_rope;  // false: the outputs equal the inputs
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.tensors[which];
        if (!tensor) {
            continue;
        }
        const std::size_t bytes = tensor->array.data.size(),
                          channels = bytes / element_bytes(inputs.element);
        const TensorOps& ops = inputs.ops[which];
        changes = changes || ops.any() || ops.stored != inputs.element;
        measured.outputs[which].resize(ops.stored_bytes(channels));
        if (is_made(ops.store_scale)) {
            measured.scales[which].resize(channels / tensor->view.head_dim);
        }
        measured.bytes += bytes + measured.outputs[which].size() +
                          measured.scales[which].size() * sizeof(float);
    }
    if (measured.bytes > 0 && !changes) {
        for (const TensorIndex which : every_tensor) {
            if (inputs.tensors[which]) {
                measured.outputs[which] = inputs.tensors[which]->array.data;
            }
        }
    } else if (measured.bytes > 0) {
        rotate_tensors(options, inputs, device, measured);
    }
    if (options.roof && !measured.copy) {
        print_note(
            "--roof: nothing can be compared: the device has no timestamps, or the tensors are "
            "empty");
    }
    return measured;
}

}  // namespace vkrope::tools
