// SPDX-License-Identifier: MIT
#include "conformance/cases/run.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <utility>

#include "conformance/cases/angles.hpp"
#include "conformance/cases/members.hpp"
#include "conformance/cases/passes.hpp"
#include "conformance/cases/positions.hpp"
#include "conformance/interrupt.hpp"

namespace vkrope::conformance {
namespace {

std::vector<std::uint64_t> rotated_planes(const CaseTensor& tensor,
                                          const CaseDescription& description) {
    if (!tensor.has_planes) {
        return {0};
    }
    for (const std::uint64_t plane : description.planes_rotated) {
        if (plane >= tensor.planes) {
            wrong_file("planes_rotated names plane {}; {} has {}", plane, tensor.name,
                       tensor.planes);
        }
    }
    return description.planes_rotated;
}

/// Writes the planes that pass through to the initial output.
void pass_planes_through(const CaseTensor& tensor, const std::vector<std::uint64_t>& rotated,
                         std::vector<std::byte>& output) {
    if (!tensor.has_planes) {
        return;
    }
    const std::size_t bytes = npy::item_bytes(tensor.parent.header.type);
    each_element(tensor, [&](std::uint64_t index, std::uint64_t parent) {
        if (!std::binary_search(rotated.begin(), rotated.end(), plane_of(tensor, index))) {
            std::memcpy(output.data() + index * bytes, tensor.parent.data.data() + parent * bytes,
                        bytes);
        }
    });
}

/// A running case: the state that its calls share.
class Run {
   public:
    Run(DeviceUnderTest& device, const CaseFolder& folder, const CaseDescription& description)
        : device_(device), folder_(folder), description_(description),
          covered_(device.upload("\0\0\0", sizeof(std::uint32_t))) {}

    /// Rotates tensors with the same tokens.
    void rotate(std::list<Resident*> residents) {
        const CaseTensor& shape = residents.front()->tensor;
        if (shape.batch == 0 || shape.tokens == 0) {
            for (Resident* resident : residents) {
                add_output(*resident);
            }
            return;
        }
        const auto* cache = std::get_if<CacheCase>(&description_.angles);
        const bool direct = cache != nullptr && cache->direct;
        if (direct &&
            (description_.positions.kind != PositionKind::none || description_.sections)) {
            unsupported("positions or sections together with a row of cos and sin for each token");
        }
        const CasePositions positions =
            direct ? row_per_token(shape.batch, shape.tokens,
                                   rows_are_shared(folder_.array(cache->cos).header.shape, shape))
                   : prepare_positions(device_, folder_, description_.positions, shape.batch,
                                       shape.tokens);
        const std::vector<Pass> passes = passes_of(description_, positions);
        hold_work(residents, passes.size());
        for (const Pass& pass : passes) {
            for (Resident* resident : residents) {
                add_output(*resident);
            }
            if (passes.size() > 1 && description_.has_steps) {
                unsupported(
                    "windows that overlap, or whose axes are not in order, with schema "
                    "'rope-case/2'");
            }
            if (passes.size() > 1 && cache != nullptr) {
                unsupported(
                    "windows that overlap, or whose axes are not in order, with cos and sin from "
                    "files");
            }
            run_pass(residents, pass, positions, angles_of(pass, positions));
        }
    }

    /// Number of tokens whose position is outside the table.
    std::uint32_t uncovered() {
        std::uint32_t count = 0;
        device_.download(covered_, &count, sizeof count);
        return count;
    }

   private:
    /// A small case may still request much repeated work: windows one after another, planes that
    /// take one call each, sequences that a view repeats.
    void hold_work(const std::list<Resident*>& residents, std::uint64_t passes) const {
        constexpr std::uint64_t max_calls = 1u << 14, max_written = std::uint64_t{1} << 29;
        for (const Resident* resident : residents) {
            const CaseTensor& tensor = resident->tensor;
            const std::uint64_t planes = rotated_planes(tensor, description_).size();
            const std::uint64_t sequences = tensor.in.batch == 0 ? tensor.batch : 1;
            if (passes * planes * sequences > max_calls) {
                unsupported(
                    "tensors.{}: {} windows one after another, {} rotated planes and {} sequences "
                    "that a view repeats take "
                    "{} calls, more than {}",
                    tensor.name, passes, planes, sequences, passes * planes * sequences, max_calls);
            }
            if (passes > 1 && passes * tensor.count > max_written) {
                unsupported(
                    "tensors.{}: {} windows one after another write {} elements, more than {}",
                    tensor.name, passes, passes * tensor.count, max_written);
            }
            hold_elements(tensor, passes);
        }
    }

    void add_output(Resident& resident) {
        if (resident.passes++ > 0) {
            resident.in = std::move(resident.out);
        }
        const std::vector<std::byte>& initial = resident.output.initial;
        resident.out = device_.upload(initial.data(), initial.size());
    }

    static bool rows_are_shared(const std::vector<std::uint64_t>& rows, const CaseTensor& shape) {
        const bool shared = rows.size() == 2 || (rows.size() == 3 && rows[0] == 1);
        const bool fits = rows.size() >= 2 && rows.size() <= 3 &&
                          rows[rows.size() - 2] == shape.tokens &&
                          (shared || rows[0] == shape.batch);
        if (!fits) {
            wrong_file("cos and sin have shape {} for {} x {} tokens", npy::shape_text(rows),
                       shape.batch, shape.tokens);
        }
        return shared;
    }

    CaseAngles angles_of(const Pass& pass, const CasePositions& positions) const {
        const std::uint32_t pairs = pass.rotary_dim() / 2;
        if (const auto* cache = std::get_if<CacheCase>(&description_.angles)) {
            return CaseAngles::cached(device_, folder_, *cache, pairs,
                                      description_.attention_factor, description_.gain);
        }
        RopeParams rotation;
        rotation.pairing = description_.pairing;
        rotation.rotary_dim = rotation.head_dim = pass.rotary_dim();
        for (const WindowCase& window : pass.windows) {  // each window has its own exponents
            const Frequencies frequencies = frequencies_of(
                folder_, std::get<BaseCase>(description_.angles), description_.attention_factor,
                description_.sections, window.rotary_dim / 2);
            rotation.inv_freq.insert(rotation.inv_freq.end(), frequencies.inv_freq.begin(),
                                     frequencies.inv_freq.end());
            rotation.attention_factor = frequencies.attention_factor;
        }
        rotation.sections = pass.sections;
        return CaseAngles::exact(device_, rotation, description_.gain, positions.largest);
    }

    KernelInfo kernel_of(const Pass& pass, const CasePositions& positions,
                         const CaseAngles& angles) const {
        KernelInfo info = {.pairing = description_.pairing, .rotary_dim = pass.rotary_dim()};
        info.angles = angles.source();
        info.table = angles.element();
        info.channel_angles = angles.channel_angles();
        if (info.channel_angles && pass.windows.size() > 1) {
            unsupported("angles.width full with several windows");
        }
        info.positions = positions.source;
        info.sections = pass.sections;
        if (positions.source == VKROPE_POSITIONS_AXIS_IDS && pass.sections.axes == 0) {
            info.positions = VKROPE_POSITIONS_IDS;
        }
        info.pairing_out = description_.pairing_out;
        if (pass.windows.size() > 1) {
            for (std::size_t index = 0; index < pass.windows.size(); ++index) {
                info.windows[index] = {.offset = pass.windows[index].offset,
                                       .rotary_dim = pass.windows[index].rotary_dim};
            }
        }
        return info;
    }

    void run_pass(const std::list<Resident*>& residents, const Pass& pass,
                  const CasePositions& positions, const CaseAngles& angles) {
        std::vector<Part> parts;
        const Resident* v = nullptr;
        for (const Resident* resident : residents) {
            if (resident->which == V) {
                v = resident->tensor.heads > 0 ? resident : nullptr;
                continue;
            }
            for (const std::uint64_t plane : rotated_planes(resident->tensor, description_)) {
                if (resident->tensor.heads > 0) {
                    parts.push_back({.resident = resident, .plane = plane});
                }
            }
        }
        DeviceUnderTest::KernelCall common = {.info = kernel_of(pass, positions, angles),
                                              .call = {}};
        common.call.angles = angles.angles();
        common.call.direction = description_.direction;
        common.call.gain = angles.gain();
        if (common.info.angles != VKROPE_ANGLES_COMPUTED ||
            common.info.positions != VKROPE_POSITIONS_IMPLICIT) {
            common.call.out_of_range = covered_.whole();
        }
        const std::uint32_t first = pass.windows.size() > 1 ? 0 : pass.windows.front().offset;
        for (std::size_t index = 0; index < parts.size();) {
            // Two at a time are Q and K of one call, if the library takes them together. V goes
            // along with K.
            const std::size_t left = parts.size() - index;
            for (std::size_t count = std::min<std::size_t>(left, 2); count > 0; --count) {
                Members members = {.q = &parts[index],
                                   .k = count == 2 ? &parts[index + 1] : nullptr};
                if (members.k == nullptr && members.q->resident->which == K) {
                    std::swap(members.q, members.k);
                }
                const bool v_fits = v != nullptr && parts.size() <= 2 && members.k != nullptr &&
                                    same_slots(members.k->resident->ops.cache(), v->ops.cache());
                const Part v_part = {.resident = v, .plane = 0};
                bool taken = false;
                for (const bool with_v : {true, false}) {
                    members.v = with_v && v_fits ? &v_part : nullptr;
                    taken = (!with_v || v_fits) &&
                            run_sequences(common, members, first, pass, positions);
                    if (taken) {
                        v = members.v != nullptr ? nullptr : v;
                        break;
                    }
                }
                if (taken) {
                    index += count;
                    break;
                }
            }
        }
        if (v != nullptr) {
            run_v_alone(*v);
        }
    }

    /// Runs all sequences in one call or, if a view repeats one of them, each in its own. Returns
    /// false if the library takes the tensors only separately.
    bool run_sequences(const DeviceUnderTest::KernelCall& common, const Members& members,
                       std::uint32_t rotary_offset, const Pass& pass,
                       const CasePositions& positions) {
        const CaseTensor& shape = (members.q != nullptr ? members.q : members.k)->resident->tensor;
        bool repeats = false;
        for (const Part* part : {members.q, members.k, members.v}) {
            repeats = repeats || (part != nullptr && input_strides(*part).batch == 0);
        }
        const std::uint32_t step = repeats && shape.batch > 1 ? 1 : shape.batch;
        if (step != shape.batch && description_.has_steps) {
            unsupported("sequences that a view repeats with schema 'rope-case/2'");
        }
        DeviceUnderTest::KernelCall call = common;
        const Buffer parameters = add_formats(device_, description_, call, members, rotary_offset);
        for (std::uint32_t first = 0; first < shape.batch; first += step) {
            leave_off_if_interrupted();
            call.call.batch = step;
            call.call.tokens = shape.tokens;
            call.call.positions = positions.of(first, pass.axis);
            place(description_, members.q, first, call.call.in[Q], call.call.out[Q]);
            place(description_, members.k, first, call.call.in[K], call.call.out[K]);
            place(description_, members.v, first, call.call.in[V], call.call.out[V]);
            const bool several = members.v != nullptr ||
                                 (members.q != nullptr && members.k != nullptr);
            if (several &&
                device_.accepts(call.info, call.call).code == VKROPE_ERROR_INVALID_ARGUMENT) {
                return false;
            }
            device_.rotate(call);
        }
        return true;
    }

    /// The kernel moves V along with a tensor that it rotates: here a K of one pair of zeros, which
    /// goes to a cache of its own if V goes to one.
    void run_v_alone(const Resident& v) {
        const CaseTensor& shape = v.tensor;
        RopeParams rotation;
        rotation.head_dim = rotation.rotary_dim = 2;
        rotation.inv_freq = {1};
        const CaseAngles angles = CaseAngles::exact(device_, rotation, VKROPE_GAIN_APPLY,
                                                    shape.tokens);
        DeviceUnderTest::KernelCall call = {.info = {.pairing = VKROPE_HALF_SPLIT, .rotary_dim = 2},
                                            .call = {}};
        call.info.angles = angles.source();
        call.info.tensor[K].head_dim = 2;
        call.call.angles = angles.angles();
        call.call.batch = shape.batch;
        call.call.tokens = shape.tokens;
        call.call.positions.batch_stride = broadcast;
        const Part part = {.resident = &v, .plane = 0};
        const Buffer parameters = add_formats(device_, description_, call, {.v = &part}, 0);
        place(description_, &part, 0, call.call.in[V], call.call.out[V]);
        const std::vector<float> zeros(std::size_t{2} * shape.batch * shape.tokens);
        const Buffer from = device_.upload(zeros.data(), zeros.size() * sizeof(float));
        const std::uint64_t rows = v.output.initial.size() /
                                   std::max<std::uint64_t>(v.output.row_bytes, 1);
        const std::vector<float> room(
            std::max<std::size_t>(zeros.size(), rows * v.tensor.head_dim));
        const Buffer to = device_.upload(room.data(), room.size() * sizeof(float));
        call.call.in[K] = {.where = from.whole(), .heads = 1};
        call.call.out[K] = {.where = to.whole(), .heads = 1};
        device_.rotate(call);
    }

    DeviceUnderTest& device_;
    const CaseFolder& folder_;
    const CaseDescription& description_;
    Buffer covered_;
};

void check_head_dim(const CaseDescription& description, const std::list<Resident>& residents) {
    const CaseTensor& first = residents.front().tensor;
    if (description.head_dim && *description.head_dim != first.head_dim) {
        wrong_file("head_dim is {}; {} has {} channels a head", *description.head_dim, first.name,
                   first.head_dim);
    }
    const bool has_planes = std::any_of(
        residents.begin(), residents.end(),
        [](const Resident& resident) { return resident.tensor.has_planes; });
    if (has_planes == description.planes_rotated.empty()) {
        wrong_file("planes_rotated {}", has_planes ? "is missing: a layout has the axis P"
                                                   : "without a layout that has the axis P");
    }
}

}  // namespace

std::vector<Actual> run_case(DeviceUnderTest& device, const CaseFolder& folder,
                             const CaseDescription& description) {
    std::list<Resident> residents;
    for (const TensorIndex which : every_tensor) {
        if (!description.tensors[which]) {
            continue;
        }
        CaseTensor tensor = read_tensor(folder, tensor_names[which], *description.tensors[which],
                                        description.dtype);
        if (description.has_steps && tensor.has_planes) {
            unsupported("the axis P with schema 'rope-case/2'");
        }
        CaseOps ops(device, folder, description.steps[which], tensor, description.dtype);
        CaseOutput output = ops.output(device, tensor);
        pass_planes_through(tensor, rotated_planes(tensor, description), output.initial);
        Buffer parent = device.upload(tensor.parent.data.data(), tensor.parent.data.size());
        residents.push_back({.which = which,
                             .tensor = std::move(tensor),
                             .ops = std::move(ops),
                             .output = std::move(output),
                             .in = std::move(parent)});
    }
    check_head_dim(description, residents);

    Run run(device, folder, description);
    std::list<Resident*> together;
    for (Resident& resident : residents) {
        if (!together.empty() && !resident.tensor.same_tokens(together.front()->tensor)) {
            run.rotate(std::exchange(together, {}));
        }
        together.push_back(&resident);
    }
    run.rotate(together);
    const std::uint32_t uncovered = run.uncovered();
    if (uncovered != 0 && std::holds_alternative<BaseCase>(description.angles)) {
        unsupported("{} positions are beyond what the library's tables cover", uncovered);
    }
    std::vector<Actual> actual;
    for (Resident& resident : residents) {
        std::vector<std::byte> bytes(resident.output.initial.size());
        if (!bytes.empty()) {
            device.download(resident.out, bytes.data(), bytes.size());
        }
        actual.push_back({.which = resident.which,
                          .tensor = std::move(resident.tensor),
                          .output = std::move(resident.output),
                          .bytes = std::move(bytes),
                          .scales = resident.ops.made_scales(device)});
    }
    return actual;
}

}  // namespace vkrope::conformance
