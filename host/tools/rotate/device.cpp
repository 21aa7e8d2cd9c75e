// SPDX-License-Identifier: MIT
// The second step of vkrope rotate: uploads, rotates and times, downloads.
#include <algorithm>

#include "base/meaning.hpp"
#include "cli/device_text.hpp"
#include "cli/failure.hpp"
#include "cli/terminal.hpp"
#include "copy_roof/copy_roof.hpp"
#include "copy_roof/median.hpp"
#include "rotate/rotate.hpp"
#include "verify/on_device.hpp"

namespace vkrope::tools {
namespace {

// Returns the source of angles to use, if anything rotates. Fails if the table of the requested
// source does not reach all positions on a device with these limits. Another source may reach them.
AngleSource source_of_angles(const RotateOptions& options, const OperationInputs& inputs,
                             const verify::Operation& operation,
                             const VkPhysicalDeviceLimits& limits) {
    if (inputs.rotation.no_rope) return VKROPE_ANGLES_AUTOMATIC;
    const auto plan = plan_angles(verify::rotation_of(operation), options.angles,
                                  operation.max_position, limits.maxImageDimension2D);
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
    return plan->source;
}

// Opens the requested device.
Device open_device(const RotateOptions& options) {
    DeviceOptions device_options;
    device_options.select = options.device.c_str();
    device_options.on_message = print_message;
    device_options.pipeline_cache_folder = options.pipeline_cache.c_str();
    return value_of(Device::open(device_options), Subject::device);
}

// Everything that the recorded commands refer to.
struct Work {
    verify::OnDevice there;
    Call call;
    Owned<Kernel> kernel;
    Owned<DescriptorArena> arena;
};

void prepare(Device& device, const verify::Operation& operation, Work& work) {
    work.there = value_of(verify::OnDevice::make(device, operation), Subject::device);
    work.call = work.there.call(operation.call);
    work.kernel = value_of(own(create(device.ref(), operation.info)), Subject::device);
}

void make_arena(Device& device, Work& work) {
    if (device.ref().enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR) return;
    const std::uint64_t dispatched = value_of(dispatches(work.kernel.get(), work.call),
                                              Subject::device);
    if (dispatched > max_calls) {
        fail(ExitCode::no_device, "it takes {} dispatches on this device, an arena holds {}",
             dispatched, max_calls);
    }
    work.arena = value_of(
        own(create_arena(work.kernel.get(), std::max(std::uint32_t(dispatched), std::uint32_t{1}))),
        Subject::device);
}

std::optional<CopyRoof> make_roof(const RotateOptions& options, Device& device, const Work& work) {
    if (!options.roof) return std::nullopt;
    std::vector<Copied> copies;
    for (const TensorIndex which : every_tensor)
        if (work.call.in[which].heads != 0)
            copies.push_back({work.call.in[which].where, work.call.out[which].where});
    auto roof = value_of(CopyRoof::make(device), Subject::device, "--roof: ");
    roof.aim(std::move(copies));
    const Status status = roof.settle();
    if (status.code == VKROPE_ERROR_NOT_SUPPORTED) return std::nullopt;
    check(status, Subject::device, "--roof: ");
    return roof;
}

void run(const RotateOptions& options, Device& device, Work& work, Measured& measured) {
    make_arena(device, work);
    std::optional<CopyRoof> roof = make_roof(options, device, work);
    const auto once = [&] {
        vkrope_arena_reset(work.arena.get());
        return value_of(device.submit([&work](VkCommandBuffer commands) {
            return record(commands, work.kernel.get(), work.call, work.arena.get());
        }),
                        Subject::device);
    };
    std::vector<double> nanoseconds;
    ProgressLine progress("rotating");
    if (warms_up(options)) once();
    for (std::uint32_t repetition = 0; repetition < options.repetitions; ++repetition) {
        progress.update(double(repetition) / options.repetitions);
        if (roof) {
            // The copy runs first, so that the final download gets the output of the rotation.
            check(roof->round(), Subject::device, "--roof: ");
        }
        const auto time = once();
        if (time && *time > 0) nanoseconds.push_back(*time);
    }
    if (!nanoseconds.empty()) measured.nanoseconds = median(std::move(nanoseconds));
    if (roof) measured.copy = {.nanoseconds = roof->best_ns(), .shader = roof->best_name()};
}

void rotate_tensors(const RotateOptions& options, const OperationInputs& inputs, Device& device,
                    Measured& measured) {
    verify::Operation& operation = measured.operation;
    operation.info.angles = source_of_angles(options, inputs, operation, measured.device.limits);
    std::optional<ProgressLine> preparing(std::in_place, "preparing the table");
    preparing->update(0);
    Work work;
    prepare(device, operation, work);
    preparing.reset();
    run(options, device, work, measured);
    for (const TensorIndex which : every_tensor) {
        for (const VkDescriptorBufferInfo& part :
             {operation.call.out[which].where, operation.call.scales_out[which],
              operation.call.second[which]})
            if (part.range != 0)
                check(work.there.download(part, operation.memory), Subject::device);
    }
    measured.angles = work.there.angles();
}

}  // namespace

Measured rotate_on_device(const RotateOptions& options, OperationInputs& inputs) {
    Device device = open_device(options);
    Measured measured;
    measured.device = device.info();
    measured.operation = operation_of(options, inputs, true);
    const verify::Operation& operation = measured.operation;
    for (const TensorIndex which : every_tensor)
        for (const VkDescriptorBufferInfo& part :
             {operation.call.in[which].where, operation.call.out[which].where,
              operation.call.scales_in[which], operation.call.scales_out[which],
              operation.call.second[which]})
            measured.bytes += part.range;
    if (measured.bytes > 0) rotate_tensors(options, inputs, device, measured);
    if (options.roof && !measured.copy) {
        print_note(
            "--roof: nothing can be compared: the device has no timestamps, or the tensors are "
            "empty");
    }
    return measured;
}

}  // namespace vkrope::tools
