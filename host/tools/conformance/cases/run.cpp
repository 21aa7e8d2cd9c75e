// SPDX-License-Identifier: MIT
#include "conformance/cases/run.hpp"

#include <algorithm>
#include <cstring>
#include <list>

#include "conformance/cases/angles.hpp"
#include "conformance/cases/positions.hpp"
#include "conformance/interrupt.hpp"

namespace vkrope::conformance {
namespace {

/// One pass over the tensors: all windows at once, or one window if the library does not take them
/// together.
struct Pass {
    std::vector<WindowCase> windows;  // offsets from channel 0
    std::optional<std::uint32_t>
        axis;  // position axis; none: given by the sections, or there is only one
    Sections sections;

    std::uint32_t rotary_dim() const {
        std::uint32_t sum = 0;
        for (const WindowCase& window : windows) {
            sum += window.rotary_dim;
        }
        return sum;
    }
};

/// A tensor on the device. Each pass reads the result of the previous one and frees its input.
struct Resident {
    CaseTensor tensor;
    Buffer in;  // first pass: the parent buffer of the case
    Buffer out = {};
    std::uint64_t passes = 0;
};

/// A rotated plane of a tensor: Q or K of a call.
struct Part {
    const Resident* resident;
    std::uint64_t plane;
};

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

/// Bits that a rotation does not leave by accident.
constexpr std::byte poison{0xa5};

/// The initial output: the planes that pass through, and poison where the library has to write.
std::vector<std::byte> initial_output(const CaseTensor& tensor,
                                      const std::vector<std::uint64_t>& rotated) {
    const std::size_t bytes = npy::item_bytes(tensor.parent.header.type);
    std::vector<std::byte> output(tensor.count * bytes, poison);
    if (!tensor.has_planes) {
        return output;
    }
    each_element(tensor, [&](std::uint64_t index, std::uint64_t parent) {
        if (!std::binary_search(rotated.begin(), rotated.end(), plane_of(tensor, index))) {
            std::memcpy(output.data() + index * bytes, tensor.parent.data.data() + parent * bytes,
                        bytes);
        }
    });
    return output;
}

// ---- Passes ----

Sections library_sections(const SectionsCase& sections, std::uint32_t axes) {
    Sections made;
    made.order = sections.mode == SectionMode::interleaved ? SectionOrder::interleaved
                                                           : SectionOrder::sequential;
    made.leftover_axis = made.order == SectionOrder::interleaved ? sections.leftover_axis : 0;
    std::size_t used = sections.sizes.size();  // an axis after the last pair needs no positions
    while (sections.sizes[used - 1] == 0) {
        --used;
    }
    if (made.order == SectionOrder::interleaved) {
        used = std::max<std::size_t>({used, 3, made.leftover_axis + std::size_t{1}});
    }
    if (used > max_axes) {
        unsupported("sections over {} axes; the library has {}", used, max_axes);
    }
    if (used > axes) {
        wrong_file("sections over {} axes; the positions have {}", used, axes);
    }
    std::copy_n(sections.sizes.begin(), std::min(used, sections.sizes.size()), made.pairs);
    made.axes = static_cast<std::uint32_t>(used);
    return made;
}

/// Returns true if one kernel takes all the windows: ascending and disjoint.
bool in_order(const std::vector<WindowCase>& windows) {
    const auto follows = [](const WindowCase& a, const WindowCase& b) {
        return b.offset < a.offset + a.rotary_dim;
    };
    return windows.size() <= max_windows &&
           std::adjacent_find(windows.begin(), windows.end(), follows) == windows.end();
}

std::vector<Pass> window_passes(const std::vector<WindowCase>& windows, std::uint32_t axes) {
    for (const WindowCase& window : windows) {
        if (window.axis >= axes) {
            wrong_file("a window of axis {}; the positions have {}", window.axis, axes);
        }
    }
    const std::uint32_t first = windows.front().axis;
    if (in_order(windows)) {
        if (std::all_of(windows.begin(), windows.end(),
                        [first](const WindowCase& window) { return window.axis == first; })) {
            return {{.windows = windows, .axis = first, .sections = {}}};
        }
        Pass together = {.windows = windows, .axis = std::nullopt, .sections = {}};
        for (const WindowCase& window :
             windows) {  // the sections are the windows, one per axis from 0 on
            if (window.axis == together.sections.axes) {
                together.sections.pairs[together.sections.axes++] = window.rotary_dim / 2;
            }
        }
        if (together.sections.axes == windows.size()) {
            return {together};
        }
    }
    std::vector<Pass> passes;
    for (const WindowCase& window : windows) {
        passes.push_back({.windows = {window}, .axis = window.axis, .sections = {}});
    }
    return passes;
}

std::vector<Pass> passes_of(const CaseDescription& description, const CasePositions& positions) {
    if (!description.windows.empty()) {
        if (description.sections) {
            unsupported("sections together with windows");
        }
        return window_passes(description.windows, positions.axes);
    }
    Pass pass = {
        .windows = {{.offset = description.rotary_offset, .rotary_dim = description.rotary_dim}},
        .axis = std::nullopt,
        .sections = {}};
    if (positions.source == PositionSource::axis_ids) {
        if (!description.sections && positions.axes != 1) {
            unsupported("positions on {} axes without sections", positions.axes);
        }
        if (description.sections) {
            pass.sections = library_sections(*description.sections, positions.axes);
        }
        if (pass.sections.axes < 2) {  // all pairs use one axis
            pass.sections = {};
            pass.axis = 0;
        }
    }
    return {pass};
}

// ---- Calls ----

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
        const std::vector<std::byte> initial = initial_output(
            resident.tensor, rotated_planes(resident.tensor, description_));
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
        Rotation rotation;
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
        info.positions = positions.source;
        info.sections = pass.sections;
        if (positions.source == PositionSource::axis_ids && pass.sections.axes == 0) {
            info.positions = PositionSource::ids;
        }
        if (description_.pairing_out && *description_.pairing_out != description_.pairing) {
            info.pairing_out = description_.pairing_out;
        }
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
        for (const Resident* resident : residents) {
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
        common.call.out_of_range = covered_.whole();
        const auto width = [&](const Part& part) {
            return HeadFormat{
                .in = description_.dtype,
                .out = description_.dtype,
                .head_dim = part.resident->tensor.head_dim,
                .rotary_offset = pass.windows.size() > 1 ? 0 : pass.windows.front().offset};
        };
        for (std::size_t index = 0; index < parts.size();) {
            // Two at a time are Q and K of one call, if the library takes them together.
            const std::size_t left = parts.size() - index;
            for (std::size_t count = std::min<std::size_t>(left, 2); count > 0; --count) {
                const Part* q = &parts[index];
                const Part* k = count == 2 ? &parts[index + 1] : nullptr;
                if (k == nullptr && q->resident->tensor.name == "k") {
                    std::swap(q, k);
                }
                DeviceUnderTest::KernelCall call = common;
                call.info.q = q != nullptr ? width(*q) : HeadFormat{};
                call.info.k = k != nullptr ? width(*k) : HeadFormat{};
                if (run_sequences(call, q, k, pass, positions)) {
                    index += count;
                    break;
                }
            }
        }
    }

    /// Runs all sequences in one call or, if a view repeats one of them, each in its own. Returns
    /// false if the library takes Q and K only separately.
    bool run_sequences(DeviceUnderTest::KernelCall& call, const Part* q, const Part* k,
                       const Pass& pass, const CasePositions& positions) {
        const CaseTensor& shape = (q != nullptr ? q : k)->resident->tensor;
        const auto repeated = [](const Part* part) {
            return part != nullptr && input_strides(*part).batch == 0;
        };
        const bool repeats = repeated(q) || repeated(k);
        const std::uint32_t step = repeats && shape.batch > 1 ? 1 : shape.batch;
        for (std::uint32_t first = 0; first < shape.batch; first += step) {
            leave_off_if_interrupted();
            call.call.batch = step;
            call.call.tokens = shape.tokens;
            call.call.positions = positions.of(first, pass.axis);
            if (q != nullptr) {
                call.call.q_in = input(*q, first);
                call.call.q_out = output(*q, first);
            }
            if (k != nullptr) {
                call.call.k_in = input(*k, first);
                call.call.k_out = output(*k, first);
            }
            if (q != nullptr && k != nullptr &&
                device_.accepts(call.info, call.call).code == Code::invalid_argument) {
                return false;
            }
            device_.rotate(call);
        }
        return true;
    }

    /// A pass after the first reads the output of the previous one, which is contiguous.
    static const RowStrides& input_strides(const Part& part) {
        return part.resident->passes == 1 ? part.resident->tensor.in : part.resident->tensor.out;
    }

    Tensor input(const Part& part, std::uint32_t sequence) const {
        return rows(part, input_strides(part), part.resident->in, sequence);
    }
    Tensor output(const Part& part, std::uint32_t sequence) const {
        return rows(part, part.resident->tensor.out, part.resident->out, sequence);
    }

    Tensor rows(const Part& part, const RowStrides& strides, const Buffer& buffer,
                std::uint32_t sequence) const {
        const CaseTensor& shape = part.resident->tensor;
        const VkDescriptorBufferInfo whole = buffer.whole();
        const std::uint64_t bytes = element_bytes(description_.dtype);
        const std::int64_t first = strides.offset +
                                   strides.plane * static_cast<std::int64_t>(part.plane) +
                                   strides.batch * sequence;
        Tensor tensor = {.where = {whole.buffer, static_cast<VkDeviceSize>(first) * bytes, 0},
                         .heads = shape.heads};
        tensor.where.range = whole.range - tensor.where.offset;
        tensor.buffer_size = whole.range;
        // The library takes a stride of 0 to mean "packed", which makes no difference for an axis
        // of length 1.
        tensor.token_stride = strides.token;
        tensor.batch_stride = strides.batch;
        tensor.head_stride = strides.head == 0 && shape.heads > 1 ? broadcast : strides.head;
        if (strides.token == 0 && shape.tokens > 1) {
            unsupported("tensors.{}.view: all tokens are one row", shape.name);
        }
        return tensor;
    }

    DeviceUnderTest& device_;
    const CaseFolder& folder_;
    const CaseDescription& description_;
    Buffer covered_;
};

void check_head_dim(const CaseDescription& description, const std::vector<Resident>& residents) {
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
    std::vector<Resident> residents;
    const auto add = [&](const char* name, const std::optional<TensorCase>& tensor) {
        if (tensor) {
            CaseTensor read = read_tensor(folder, name, *tensor, description.dtype);
            Buffer parent = device.upload(read.parent.data.data(), read.parent.data.size());
            residents.push_back({.tensor = std::move(read), .in = std::move(parent)});
        }
    };
    add("q", description.q);
    add("k", description.k);
    check_head_dim(description, residents);

    Run run(device, folder, description);
    if (residents.size() == 2 && residents[0].tensor.same_tokens(residents[1].tensor)) {
        run.rotate({&residents[0], &residents[1]});
    } else {
        for (Resident& resident : residents) {
            run.rotate({&resident});
        }
    }
    const std::uint32_t uncovered = run.uncovered();
    if (uncovered != 0 && std::holds_alternative<BaseCase>(description.angles)) {
        unsupported("{} positions are beyond what the library's tables cover", uncovered);
    }
    std::vector<Actual> actual;
    for (Resident& resident : residents) {
        std::vector<std::byte> bytes(resident.tensor.count * element_bytes(description.dtype));
        if (!bytes.empty()) {
            device.download(resident.out, bytes.data(), bytes.size());
        }
        actual.push_back({.tensor = std::move(resident.tensor), .bytes = std::move(bytes)});
    }
    return actual;
}

}  // namespace vkrope::conformance
