// SPDX-License-Identifier: MIT
#include "conformance/builtin/trial_oracle.hpp"

namespace vkrope::conformance {

namespace {

double bound_of(const Trial& trial) {
    const bool factor = trial.attention_factor != 1;
    return error_bound(trial.info.angles, trial.attention_factor) +
           (factor && trial.precision == VKROPE_ANGLE_PRECISION_FLOAT32 ? 1.5 : 0) +
           (factor && trial.gain != VKROPE_GAIN_APPLY ? 2 : 0);
}

}  // namespace

std::uint32_t axis_turning(const Sections& sections, std::uint32_t j) {
    std::uint32_t sum = 0;
    for (const std::uint32_t pairs : sections.pairs) {
        sum += pairs;
    }
    if (sections.axes == 0 || sections.order == VKROPE_SECTIONS_SUM) {
        return 0;
    }
    std::uint32_t m = j % sum;
    if (sections.order == VKROPE_SECTIONS_INTERLEAVED) {
        return m < 3 * sections.pairs[m % 3] ? m % 3 : sections.leftover_axis;
    }
    std::uint32_t axis = 0;
    for (; m >= sections.pairs[axis]; ++axis) {
        m -= sections.pairs[axis];
    }
    return axis;
}

ExactAngles::ExactAngles(const Trial& trial, const std::vector<std::int64_t>& positions)
    : trial_(trial), positions_(positions), pairs_(trial.info.rotary_dim / 2),
      summed_(summed_axes(trial.info.sections)), inv_freq_(inv_freq_of(trial)) {}

reference::CosSin ExactAngles::at(std::size_t token, std::size_t pair) const {
    const std::size_t j = pair % pairs_, group = pair / pairs_;
    const auto on_axis = [&](std::size_t axis, double inv_freq) {
        const std::int64_t position = positions_[axis * trial_.shape.rows() + token];
        return trial_.precision == VKROPE_ANGLE_PRECISION_FLOAT32
                   ? float32_cos_sin(position, inv_freq)
                   : reference::exact_cos_sin(position, inv_freq);
    };
    const double* inv_freq = &inv_freq_[group * summed_ * pairs_ + j];
    reference::CosSin angle = on_axis(
        axis_turning(trial_.info.sections, static_cast<std::uint32_t>(j)), *inv_freq);
    for (std::uint32_t axis = 1; axis < summed_; ++axis)
        angle = reference::sum_of(angle, on_axis(axis, inv_freq[axis * pairs_]));
    if (trial_.info.phase)
        angle = reference::sum_of(angle, reference::exact_cos_sin(1, trial_.phase[pair]));
    return angle;
}

reference::Operation operation_of(const Trial& trial, const TensorInfo& width, bool flushes) {
    const KernelInfo& info = trial.info;
    reference::Operation operation;
    operation.interleaved = info.pairing == VKROPE_INTERLEAVED;
    operation.interleaved_out = output_pairing(info) == VKROPE_INTERLEAVED;
    operation.inverse = trial.direction == VKROPE_INVERSE;
    operation.rotary_offset = width.rotary_offset;
    for (const Window& window : info.windows) {
        if (window.rotary_dim > 0) {
            operation.windows.push_back({window.offset, window.rotary_dim / 2});
        }
    }
    operation.inv_freq = inv_freq_of(trial);
    // Of a sum the oracle is told each angle, so that only the number of these counts.
    operation.inv_freq.resize(operation.inv_freq.size() / summed_axes(info.sections));
    operation.phase = trial.phase;
    operation.head_groups = head_groups_of(info);
    operation.attention_factor = trial.attention_factor;
    operation.gain = reference::Gain(static_cast<std::uint32_t>(trial.gain));
    operation.absolute_allowance = 0x1p-148 + (flushes ? 0x1p-123 : 0);
    if (trial.precision == VKROPE_ANGLE_PRECISION_FLOAT32) {
        operation.cos_sin = [inv_freq = operation.inv_freq](std::int64_t position,
                                                            std::size_t pair) {
            return float32_cos_sin(position, inv_freq[pair]);
        };
    }
    return operation;
}

reference::Operation move_of(const Trial& trial) {
    reference::Operation operation;
    operation.attention_factor = trial.attention_factor;
    return operation;
}

void hold_against_oracle(const Trial& trial, reference::Operation operation,
                         const std::vector<std::int64_t>& positions, const TensorRows& tensor,
                         const Memory& memory, char name, Findings& findings,
                         std::uint64_t& outside) {
    const std::byte *input = &memory.before[tensor.first_in()],
                    *output = &memory.after[tensor.first_out()];
    const auto judge = [&](const reference::Verdict& verdict) {
        outside += verdict.out_of_range;
        findings.measure_u(verdict.largest_error_u);
        findings.hold(!verdict.nan_mismatch,
                      "{}: NaN but the exact value is not NaN, or the reverse: {}", name,
                      verdict.worst);
        findings.hold(!verdict.bits_changed, "{}: a channel that is not rotated has changed: {}",
                      name, verdict.worst);
        findings.hold(verdict.largest_error_u <= bound_of(trial),
                      "{}: the error is {:.4g} u, but the contract allows {} u: {}", name,
                      verdict.largest_error_u, bound_of(trial), verdict.worst);
    };
    const Sections& sections = trial.info.sections;
    constexpr std::int64_t beyond = std::int64_t{1}
                                    << 40;  // represents every position that is not covered
    operation.covered = beyond;
    if (sections.axes == 0) {
        for (const std::int64_t position : positions) {
            operation.positions.push_back(covers(trial, position) ? position : beyond);
        }
        judge(reference::compare(tensor.in.rows, tensor.out.rows, operation, input, output));
        return;
    }
    const ExactAngles angles(trial, positions);
    const std::size_t rows = trial.shape.rows();
    for (std::size_t i = 0; i < rows; ++i) {
        operation.positions = {0};
        for (std::uint32_t axis = 0; axis < sections.axes; ++axis) {
            if (!covers(trial, positions[axis * rows + i])) {
                operation.positions = {beyond};
            }
        }
        operation.cos_sin = [&](std::int64_t, std::size_t pair) { return angles.at(i, pair); };
        const auto token = [&](reference::Tensor all, const std::byte* start) {
            const std::uint64_t first = i / trial.shape.tokens * all.batch_stride +
                                        i % trial.shape.tokens * all.token_stride;
            all.batch = all.tokens = 1;
            return std::pair(all, start + first * reference::bytes_of(all.type));
        };
        const auto [in, from] = token(tensor.in.rows, input);
        const auto [out, to] = token(tensor.out.rows, output);
        judge(reference::compare(in, out, operation, from, to));
    }
}

}  // namespace vkrope::conformance
