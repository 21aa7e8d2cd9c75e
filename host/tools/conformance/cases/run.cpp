// SPDX-License-Identifier: MIT
#include "conformance/cases/run.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

#include "conformance/cases/angles.hpp"
#include "conformance/cases/parts.hpp"
#include "conformance/cases/passes.hpp"
#include "conformance/cases/positions.hpp"
#include "conformance/interrupt.hpp"
#include "verify/compare.hpp"
#include "verify/on_device.hpp"

namespace vkrope::conformance {
namespace {

using Parts = std::vector<Part*>;

/// Returns true if cos and sin have one row per token that is the same for all sequences.
bool rows_are_shared(const std::vector<std::uint64_t>& rows, const CaseTensor& shape) {
    const bool shared = rows.size() == 2 || (rows.size() == 3 && rows[0] == 1);
    const bool fits = rows.size() >= 2 && rows.size() <= 3 &&
                      rows[rows.size() - 2] == shape.tokens && (shared || rows[0] == shape.batch);
    if (!fits) {
        wrong_file("cos and sin have shape {} for {} x {} tokens", npy::shape_text(rows),
                   shape.batch, shape.tokens);
    }
    return shared;
}

class Run {
   public:
    Run(DeviceUnderTest& device, const CaseFolder& folder, const CaseDescription& description)
        : device_(device), folder_(folder), description_(description), all_(description.operation) {
        all_.call.out_of_range = memory_.put(std::vector<std::uint32_t>{0});
        for (const TensorIndex which : every_tensor) {
            if (description.tensors[which]) {
                parts_.push_back(read_part(folder, description, which, all_, memory_));
            }
        }
        check_head_dim();
    }

    CaseResult result() {
        Parts together;
        for (Part& part : parts_) {
            if (!together.empty() &&
                !part.actual.tensor.same_tokens(together.front()->actual.tensor)) {
                rotate(std::exchange(together, {}));
            }
            together.push_back(&part);
        }
        rotate(together);
        std::uint32_t uncovered = 0;
        std::memcpy(&uncovered, &memory_.bytes[all_.call.out_of_range.offset], sizeof uncovered);
        if (uncovered != 0 && std::holds_alternative<BaseCase>(description_.angles)) {
            unsupported("{} positions are beyond what the library's tables cover", uncovered);
        }
        CaseResult result = {.tensors = {}, .problem = std::move(problem_)};
        for (Part& part : parts_) {
            const auto first = memory_.bytes.begin() + static_cast<std::ptrdiff_t>(part.out.offset);
            part.actual.bytes.assign(
                first, first + static_cast<std::ptrdiff_t>(part.actual.output.initial.size()));
            result.tensors.push_back(std::move(part.actual));
        }
        return result;
    }

   private:
    void check_head_dim() const {
        const CaseTensor& first = parts_.front().actual.tensor;
        if (description_.head_dim && *description_.head_dim != first.head_dim) {
            wrong_file("head_dim is {}; {} has {} channels a head", *description_.head_dim,
                       first.name, first.head_dim);
        }
        const bool has_planes = std::any_of(parts_.begin(), parts_.end(), [](const Part& part) {
            return part.actual.tensor.has_planes;
        });
        if (has_planes == description_.planes_rotated.empty()) {
            wrong_file("planes_rotated {}", has_planes ? "is missing: a layout has the axis P"
                                                       : "without a layout that has the axis P");
        }
    }

    /// Rotates tensors with the same batch and tokens.
    void rotate(Parts parts) {
        const CaseTensor& shape = parts.front()->actual.tensor;
        if (shape.batch == 0 || shape.tokens == 0) {
            return;
        }
        const auto* cache = std::get_if<CacheCase>(&description_.angles);
        const bool direct = cache != nullptr && cache->direct;
        if (direct &&
            (description_.positions.kind != PositionKind::none || description_.sections)) {
            unsupported("positions or sections together with a row of cos and sin for each token");
        }
        CasePositions positions =
            direct ? row_per_token(shape.batch, shape.tokens,
                                   rows_are_shared(folder_.array(cache->cos).header.shape, shape))
                   : prepare_positions(device_, folder_, description_.positions, shape.batch,
                                       shape.tokens);
        if (positions.source != VKROPE_POSITIONS_IMPLICIT) {
            positions.positions.ids = memory_.put(positions.ids);
        }
        const std::vector<Pass> passes = passes_of(description_, positions);
        for (const Part* part : parts) {
            hold_work(*part, passes.size());
        }
        if (passes.size() > 1 && description_.has_steps) {
            unsupported(
                "windows that overlap, or whose axes are not in order, with schema 'rope-case/2'");
        }
        if (passes.size() > 1 && cache != nullptr) {
            unsupported(
                "windows that overlap, or whose axes are not in order, with cos and sin from "
                "files");
        }
        for (const Pass& pass : passes) {
            if (&pass != passes.data()) {
                read_last_outputs(parts);
            }
            run_pass(parts, operation_of(pass, positions), pass, positions);
        }
    }

    /// Swaps inputs and outputs, and resets the new outputs to the contents before the first pass.
    void read_last_outputs(const Parts& parts) {
        for (Part* part : parts) {
            const std::vector<std::byte>& initial = part->actual.output.initial;
            std::swap(part->in, part->out);
            part->strides = part->actual.tensor.out;
            if (part->out.range < initial.size()) {
                part->out = memory_.put(initial);
            }
            std::copy(initial.begin(), initial.end(), &memory_.bytes[part->out.offset]);
            part->out.range = part->in.range;
        }
    }

    /// Returns the part of the operation that all calls of a pass share.
    verify::Operation operation_of(const Pass& pass, const CasePositions& positions) {
        verify::Operation operation = all_;
        KernelInfo& info = operation.info;
        info.rotary_dim = pass.rotary_dim();
        info.sections = pass.sections;
        info.positions = positions.source == VKROPE_POSITIONS_AXIS_IDS && pass.sections.axes == 0
                             ? VKROPE_POSITIONS_IDS
                             : positions.source;
        for (std::size_t index = 0; pass.windows.size() > 1 && index < pass.windows.size();
             ++index) {
            info.windows[index] = {.offset = pass.windows[index].offset,
                                   .rotary_dim = pass.windows[index].rotary_dim};
        }
        if (const auto* cache = std::get_if<CacheCase>(&description_.angles)) {
            add_cos_sin_cache(folder_, *cache, operation, memory_);
            if (info.channel_angles && pass.windows.size() > 1) {
                unsupported("angles.width full with several windows");
            }
            return operation;
        }
        for (const WindowCase& window : pass.windows) {  // each window has its own exponents
            const Frequencies frequencies = frequencies_of(
                folder_, std::get<BaseCase>(description_.angles), all_.attention_factor,
                description_.sections, window.rotary_dim / 2);
            operation.inv_freq.insert(operation.inv_freq.end(), frequencies.inv_freq.begin(),
                                      frequencies.inv_freq.end());
            operation.attention_factor = frequencies.attention_factor;
        }
        add_table(operation, positions.largest);
        return operation;
    }

    /// Selects an angle source and a table that cover every |position| up to `largest`.
    void add_table(verify::Operation& operation, std::uint64_t largest) {
        operation.max_position = static_cast<std::uint32_t>(largest + 1);
        operation.info.angles = value_of(plan_angles(verify::rotation_of(operation),
                                                     VKROPE_ANGLES_AUTOMATIC, largest + 1,
                                                     device_.info().limits->maxImageDimension2D),
                                         "angles: ")
                                    .source;
    }

    void run_pass(const Parts& parts, const verify::Operation& common, const Pass& pass,
                  const CasePositions& positions) {
        Parts rotated;
        Part* v = nullptr;
        for (Part* part : parts) {
            if (part->actual.tensor.heads > 0) {
                part->actual.which == V ? void(v = part) : rotated.push_back(part);
            }
        }
        if (v != nullptr && !rotated.empty() && rotated.back()->actual.which == K &&
            same_slots(rotated.back()->cache, v->cache)) {
            rotated.push_back(std::exchange(v, nullptr));
        }
        run(rotated, common, pass, positions);
        if (v != nullptr) {
            run_v_alone(*v);
        }
    }

    /// Runs V alone. A kernel must rotate at least one tensor, but a call may omit that tensor.
    /// This kernel has a K of one pair, which its calls omit.
    void run_v_alone(Part& v) {
        verify::Operation operation = all_;
        operation.info.rotary_dim = 2;
        operation.inv_freq = {1};
        operation.attention_factor = 1;
        operation.call.gain = VKROPE_GAIN_APPLY;
        CasePositions from_0;
        from_0.positions.batch_stride = broadcast;
        add_table(operation, v.actual.tensor.tokens);
        const std::vector<Call> calls = add_tensors({&v}, operation, {.windows = {{}}}, from_0);
        operation.info.tensor[K].head_dim = 2;
        run({&v}, operation, calls);
    }

    /// Runs tensors in one call or, if the library does not support that, in several calls.
    void run(const Parts& parts, const verify::Operation& common, const Pass& pass,
             const CasePositions& positions) {
        if (parts.empty()) {
            return;
        }
        if (parts.front()->actual.which == V) {
            return run_v_alone(*parts.front());
        }
        const Parts first(parts.begin(), parts.begin() + 1), rest(parts.begin() + 1, parts.end());
        const bool planes = std::any_of(parts.begin(), parts.end(), [](const Part* part) {
            return part->actual.tensor.has_planes;
        });
        if (rest.empty() || !planes) {
            verify::Operation operation = common;
            const std::vector<Call> calls = add_tensors(parts, operation, pass, positions);
            if (run(parts, operation, calls)) {
                return;
            }
        }
        run(first, common, pass, positions);
        run(rest, common, pass, positions);
    }

    /// Adds some tensors to an operation. Returns its calls: one for each plane, and for each
    /// sequence if a view repeats a sequence.
    std::vector<Call> add_tensors(const Parts& parts, verify::Operation& operation,
                                  const Pass& pass, const CasePositions& positions) {
        KernelInfo& info = operation.info;
        bool repeats = false;
        OfEachTensor<bool> present = {};
        for (const Part* part : parts) {
            present[part->actual.which] = true;
            repeats = repeats || part->strides.batch == 0;
            info.scatter_kv = info.scatter_kv || part->cache;
            if (part->cache) {
                operation.call.paged_cache = part->cache->paged;
            }
            if (part->actual.which != V) {
                info.tensor[part->actual.which].rotary_offset = pass.windows.size() > 1
                                                                    ? 0
                                                                    : pass.windows.front().offset;
            }
        }
        for (const TensorIndex which : every_tensor) {
            if (!present[which]) {
                info.tensor[which] = {};
                operation.call.scale_tokens[which] = operation.call.scales_out[which] = {};
            }
        }
        const CaseTensor& shape = parts.front()->actual.tensor;
        const std::uint32_t step = repeats && shape.batch > 1 ? 1 : shape.batch;
        if (step != shape.batch && description_.has_steps) {
            unsupported("sequences that a view repeats with schema 'rope-case/2'");
        }
        operation.call.batch = step;
        operation.call.tokens = shape.tokens;
        std::vector<Call> calls;
        for (const std::uint64_t plane : parts.front()->planes) {
            for (std::uint32_t sequence = 0; sequence < shape.batch; sequence += step) {
                Call& call = calls.emplace_back(operation.call);
                call.positions = positions.of(sequence, step, pass.sections.axes, pass.axis);
                for (const Part* part : parts) {
                    const TensorIndex which = part->actual.which;
                    call.in[which] = rows(*part, part->in, part->strides, description_.dtype, plane,
                                          sequence);
                    call.out[which] = part->cache
                                          ? Tensor{.where = part->out,
                                                   .heads = part->actual.tensor.heads,
                                                   .head_stride = part->cache->head_stride}
                                          : rows(*part, part->out, part->actual.tensor.out,
                                                 part->actual.output.element, plane, sequence);
                }
                const bool slots = info.scatter_kv && (present[K] || present[V]);
                const bool rotates = present[Q] || present[K],
                           counts = info.angles != VKROPE_ANGLES_COMPUTED || call.positions.int64;
                if (!(rotates && counts) && !slots) {
                    call.out_of_range = {};  // nothing can be out of range
                }
            }
        }
        return calls;
    }

    /// Returns false if the library supports the tensors only in separate calls.
    bool run(const Parts& parts, verify::Operation& operation, const std::vector<Call>& calls) {
        operation.memory = memory_.bytes;
        verify::OnDevice there = value_of(verify::OnDevice::make(device_.device(), operation));
        for (const Call& call : calls) {
            leave_off_if_interrupted();
            const Call placed = there.call(call);
            if (parts.size() > 1 &&
                device_.accepts(operation.info, placed).code == VKROPE_ERROR_INVALID_ARGUMENT) {
                return false;
            }
            device_.rotate({operation.info, placed});
        }
        verify::Bytes& after = memory_.bytes;
        device_.download(there.memory(), after.data(), after.size());
        const std::string problem =
            verify::compare(operation, after, device_.traits().flushes_subnormals, calls).problem;
        problem_ = problem_.empty() ? problem : problem_;
        operation.call = calls.front();
        for (Part* part : parts) {
            note_stored(operation, memory_.bytes, *part);
        }
        return true;
    }

    DeviceUnderTest& device_;
    const CaseFolder& folder_;
    const CaseDescription& description_;
    verify::Operation all_;  // fields common to all passes, with all tensors
    verify::Memory memory_{1};
    std::list<Part> parts_;
    std::string problem_;
};

}  // namespace

CaseResult run_case(DeviceUnderTest& device, const CaseFolder& folder,
                    const CaseDescription& description) {
    return Run(device, folder, description).result();
}

}  // namespace vkrope::conformance
