// SPDX-License-Identifier: MIT
// The second step of vkrope rotate: upload, rotate and time, download.

#include "roof/copy_roof.hpp"
#include "roof/median.hpp"
#include "rotate/rotate.hpp"
#include "shell/device_text.hpp"
#include "shell/failure.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

/// Treats an empty tensor as absent: there is nothing to bind.
std::uint32_t heads_of(const std::optional<TensorFile>& tensor) {
    return tensor && !tensor->array.data.empty() ? static_cast<std::uint32_t>(tensor->view.heads)
                                                 : 0;
}

HostShape shape_of(const RotateOptions& options, const RotateInputs& inputs) {
    HostShape shape;
    shape.batch = inputs.batch;
    shape.tokens = inputs.tokens;
    const auto& tensors = inputs.tensors;
    const auto head_dim_of = [](const std::optional<TensorFile>& tensor) {
        return tensor ? static_cast<std::uint32_t>(tensor->view.head_dim) : 0;
    };
    shape.q_heads = heads_of(tensors[Q]);
    shape.k_heads = heads_of(tensors[K]);
    shape.v_heads = heads_of(tensors[V]);
    shape.q_head_dim = head_dim_of(tensors[Q]);
    shape.k_head_dim = head_dim_of(tensors[K]);
    shape.v_head_dim = head_dim_of(tensors[V]);
    shape.element = inputs.element;
    shape.layout = options.layout;
    shape.positions = inputs.positions.ids;
    shape.axes = inputs.positions.axes;
    shape.first_position = inputs.positions.first;
    shape.angles = options.angles;
    return shape;
}

std::optional<bench::CopyRoof> make_roof(const RotateOptions& options, Device& device,
                                         const HostRotation& rotation) {
    if (!options.roof) {
        return std::nullopt;
    }
    auto roof = value_of(bench::CopyRoof::make(device, rotation.buffers()), Subject::device,
                         "--roof: ");
    const Status status = roof.settle();
    if (status.code == VKROPE_ERROR_NOT_SUPPORTED) {
        return std::nullopt;
    }
    check(status, Subject::device, "--roof: ");
    return roof;
}

void time_rotations(const RotateOptions& options, Device& device, HostRotation& rotation,
                    Measured& measured) {
    std::optional<bench::CopyRoof> roof = make_roof(options, device, rotation);
    const Direction direction = options.inverse ? VKROPE_INVERSE : VKROPE_FORWARD;
    std::vector<double> nanoseconds;
    ProgressLine progress("rotating");
    if (warms_up(options)) {
        value_of(rotation.run(direction), Subject::device);
    }
    for (std::uint32_t repetition = 0; repetition < options.repetitions; ++repetition) {
        progress.update(double(repetition) / options.repetitions);
        if (roof) {
            // The copy runs first, so that the final download gets the output of the rotation.
            check(roof->round(), Subject::device, "--roof: ");
        }
        const auto time = value_of(rotation.run(direction), Subject::device);
        if (time && *time > 0) {
            nanoseconds.push_back(*time);
        }
    }
    if (!nanoseconds.empty()) {
        measured.nanoseconds = bench::median(nanoseconds);
    }
    if (roof) {
        measured.copy = {.nanoseconds = roof->best_ns(), .shader = roof->best_name()};
    }
}

void rotate_tensors(const RotateOptions& options, const RotateInputs& inputs, Device& device,
                    Measured& measured) {
    std::optional<ProgressLine> preparing(std::in_place, "preparing the table");
    preparing->update(0);
    HostRotation rotation = value_of(
        HostRotation::make(device, inputs.rotation, shape_of(options, inputs)), Subject::device);
    const OfEachTensor<std::size_t> expected = {rotation.q_bytes(), rotation.k_bytes(),
                                                rotation.v_bytes()};
    OfEachTensor<const void*> from = {};
    OfEachTensor<void*> to = {};
    for (const TensorIndex which : every_tensor) {
        std::vector<std::byte>& output = measured.outputs[which];
        if (expected[which] != output.size()) {
            fail(ExitCode::device_failed, "the library expects {} bytes of {}, the file has {}",
                 expected[which], tensor_names[which].name, output.size());
        }
        if (!output.empty()) {
            from[which] = inputs.tensors[which]->array.data.data();
            to[which] = output.data();
        }
    }
    check(rotation.upload(from[Q], from[K], from[V]), Subject::device);
    preparing.reset();
    time_rotations(options, device, rotation, measured);
    check(rotation.download(to[Q], to[K], to[V]), Subject::device);
    measured.angles = rotation.angle_plan();
}

}  // namespace

// Checked here rather than by HostRotation::make, because another angle source may help.
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

Device open_device(const RotateOptions& options) {
    DeviceOptions device_options;
    device_options.select = options.device;
    device_options.on_message = print_message;
    device_options.pipeline_cache_folder = options.pipeline_cache;
    return value_of(Device::open(device_options), Subject::device);
}

Measured rotate_on_device(const RotateOptions& options, const RotateInputs& inputs) {
    Device device = open_device(options);
    Measured measured;
    measured.device = device.info();
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.tensors[which];
        measured.outputs[which].resize(tensor ? tensor->array.data.size() : 0);
        measured.bytes += 2 * std::uint64_t{measured.outputs[which].size()};
    }
    if (measured.bytes > 0 && inputs.rotation.no_rope) {
        for (const TensorIndex which : every_tensor) {
            if (inputs.tensors[which]) {
                measured.outputs[which] = inputs.tensors[which]->array.data;
            }
        }
    } else if (measured.bytes > 0) {
        check_table_fits(options, inputs, measured.device.limits);
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
