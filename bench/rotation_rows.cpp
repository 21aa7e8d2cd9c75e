// SPDX-License-Identifier: MIT
// Rotations of Q and K by vkrope, by rivals and on the processor, and copies of the same bytes.
#include <algorithm>

#include "base/meaning.hpp"
#include "cli/words.hpp"
#include "rows.hpp"
#include "verify/definition.hpp"

namespace vkrope::bench {
namespace {

using tools::Subject;
using tools::value_of;

std::string type_name(const Shape& shape) {
    return tools::word_for(tools::elements, shape.operation.info.tensor[Q].in);
}

std::uint64_t elements_of(const verify::Operation& operation) {
    std::uint64_t sum = 0;
    for (const TensorInfo& tensor : operation.info.tensor)
        sum += verify::tokens_of(operation) * tensor.heads * tensor.head_dim;
    return sum;
}

std::vector<Shape> typed_shapes() {
    std::vector<Shape> all(shapes().begin(), shapes().end()), typed;
    for (Shape& shape : in_place_prefills()) all.push_back(std::move(shape));
    for (Shape shape : all) {
        for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16}) {
            shape.operation = of_type(shape.operation, element);
            typed.push_back(shape);
        }
    }
    return typed;
}

// Most calls in a command buffer.
constexpr std::uint32_t max_calls = 64;

std::uint32_t calls_at(Pace pace) {
    return pace == Pace::chained ? max_calls : 1;
}

}  // namespace

Bench::Repeatable Bench::recording(const std::shared_ptr<Pass>& pass) {
    return {[=] {
                pass->begin();
                return Status{};
            },
            [=](VkCommandBuffer commands) { return pass->record_next(commands); }};
}

std::shared_ptr<Pass> Bench::pass_of(const Shape& shape, const Layer& layer) {
    return std::make_shared<Pass>(device_, layer.operation(), calls_at(shape.pace));
}

tools::Repeat Bench::repeat_of(Pace pace, const std::vector<tools::Copied>& copies) {
    if (pace == Pace::cold) return {.before = [this] { return evict(); }};
    if (pace == Pace::single) return {};
    constexpr double most_ns = 20e6;  // for slow devices, which would take a second
    double ns = 0;
    roof().aim(copies);
    for (int i = 0; i < 2; ++i)  // software devices compile in the first run
        ns = value_of(roof().copy(0), Subject::device);
    return {.calls = std::uint32_t(std::clamp(most_ns / ns, 1.0, double(max_calls))),
            .between = barrier(device_)};
}

// A copy reads and writes, because a cache may let a fill pass.
Status Bench::evict() {
    constexpr std::uint64_t most = std::uint64_t{512} << 20;
    if (evicting_.handle() == VK_NULL_HANDLE) {
        Result<Buffer> made = Buffer::make(device_, std::min(most, memory() / 2) / 512 * 512);
        if (!made) return made.status;
        evicting_ = std::move(made.value);
    }
    const VkDescriptorBufferInfo whole = evicting_.whole();
    const auto copy = function_of<PFN_vkCmdCopyBuffer>(device_, "vkCmdCopyBuffer");
    return device_
        .submit([&](VkCommandBuffer commands) {
            const VkBufferCopy region = {0, whole.range / 2, whole.range / 2};
            copy(commands, whole.buffer, whole.buffer, 1, &region);
            return Status{};
        })
        .status;
}

Bench::Row Bench::copy_row(const Shape& shape, const std::shared_ptr<Layer>& layer) {
    Row row{.label = shape.model,
            .tensors = layer,
            .bytes = 2 * double(layer->bytes_read()),
            .copies = layer->copies()};
    row.repeat = repeat_of(shape.pace, row.copies);
    if (row.repeat.calls > 1) row.label += fmt::format(", {} calls", row.repeat.calls);
    return row;
}

Bench::Row Bench::checked_row(const Shape& shape, const std::shared_ptr<Layer>& layer,
                              const Repeatable& repeatable, std::optional<double> bound_u) {
    Row row = copy_row(shape, layer);
    row.tokens = double(verify::tokens_of(shape.operation));
    row.time = running(repeatable, row.repeat);
    row.first_ns = running(repeatable, {})();
    const Checked checked = layer->check_outputs(layer->operation(), bound_u);
    row.counters = {{"error_u", checked.error_u},
                    {"checked", double(checked.elements) / double(elements_of(shape.operation))}};
    return row;
}

Bench::Row Bench::rope_row(const Shape& shape, bool in_place) {
    const auto layer = std::make_shared<Layer>(device_, shape.operation, in_place);
    return checked_row(shape, layer, recording(pass_of(shape, *layer)));
}

Bench::Row Bench::rival_row(const Shape& shape, std::optional<Way> way) {
    const auto layer = std::make_shared<Layer>(device_, shape.operation, shape.in_place());
    const auto pass = pass_of(shape, *layer);
    Repeatable repeatable = recording(pass);
    repeatable.next = [=](VkCommandBuffer commands) { return pass->record_next_unfused(commands); };
    std::optional<double> bound_u;
    if (way) {
        const auto rival = std::make_shared<Rival>(device_, shape.operation, *way);
        repeatable = {
            [=, calls = calls_at(shape.pace)] { return rival->begin(calls); },
            [=](VkCommandBuffer commands) { return rival->record(commands, layer->call()); }};
        bound_u = rival->bound_u();
    }
    Row row = checked_row(shape, layer, repeatable, bound_u);
    row.others = {{"vkrope_speedup", running(recording(pass), row.repeat), true}};
    return row;
}

Bench::Row Bench::copy_buffer_row(const Shape& shape) {
    const auto layer = std::make_shared<Layer>(device_, shape.operation);
    Row row = copy_row(shape, layer);
    row.label = "vkCmdCopyBuffer";
    row.tokens = double(verify::tokens_of(shape.operation));
    const auto copy = function_of<PFN_vkCmdCopyBuffer>(device_, "vkCmdCopyBuffer");
    row.time = running([=, copies = row.copies](VkCommandBuffer commands) {
        for (const tools::Copied& copied : copies) {
            const VkBufferCopy region = {copied.from.offset, copied.to.offset, copied.from.range};
            copy(commands, copied.from.buffer, copied.to.buffer, 1, &region);
        }
        return Status{};
    });
    return row;
}

// A dispatch with the same number and size of workgroups that do nothing.
Bench::Row Bench::empty_row(const Shape& shape) {
    const auto layer = std::make_shared<Layer>(device_, shape.operation, shape.in_place());
    const auto pass = pass_of(shape, *layer);
    const Pass::Grid grid = pass->grid();
    const auto idle = std::make_shared<Idle>(device_, grid.workgroup_size);
    Row row = copy_row(shape, layer);
    row.bytes = 0;
    row.copies.clear();
    row.time = running({[=, calls = calls_at(shape.pace)] { return idle->begin(calls); },
                        [=](VkCommandBuffer commands) {
                            return idle->record(commands, layer->call().in[Q].where,
                                                grid.workgroups);
                        }},
                       row.repeat);
    row.others = {{"vkrope_over_empty", running(recording(pass), row.repeat)}};
    return row;
}

Bench::Row Bench::cpu_row(const Shape& shape) {
    const verify::Operation& operation = shape.operation;
    const Element element = operation.info.tensor[Q].in;
    struct Tensors {
        std::vector<float> table;
        verify::Bytes in[2], out[2];
    };
    const auto tensors = std::make_shared<Tensors>();
    tensors->table = cpu_table(operation);
    for (const TensorIndex which : {Q, K}) {
        const std::uint64_t bytes = input_bytes(operation, which);
        tensors->in[which] = Pattern(element).at(0, bytes / element_bytes(element));
        tensors->out[which].resize(bytes);
    }
    const Time time = [tensors, info = operation.info, tokens = operation.call.tokens, element] {
        const double start = now_ns();
        for (const TensorIndex which : {Q, K})
            rotate_on_cpu(element, tensors->in[which].data(), tensors->out[which].data(),
                          tensors->table.data(), tokens, info.tensor[which].heads, info.rotary_dim);
        return now_ns() - start;
    };
    time();
    for (const TensorIndex which : {Q, K}) {
        const auto read = [&](std::uint64_t first, std::uint64_t bytes) {
            const auto start = tensors->out[which].begin() + std::ptrdiff_t(first);
            return verify::Bytes(start, start + std::ptrdiff_t(bytes));
        };
        const Checked checked = check_output(operation, which, read,
                                             error_bound(VKROPE_ANGLES_DIRECT_BUFFER, 1));
        if (!checked.failure.empty())
            tools::fail(tools::ExitCode::verification_failed, "{}: {}", "QK"[which],
                        checked.failure);
    }
    Row row = rope_row(shape, false);
    row.others = {{"vkrope_speedup", std::move(row.time), true}};
    row.time = time;
    row.copies.clear();
    row.counters.clear();
    return row;
}

void Bench::register_ropes() {
    for (Shape shape : typed_shapes()) {
        if (shape.in_place() && takes_minutes(shape)) continue;
        // Fewer tokens would change the ids. With ascending positions, a shorter prefill is still a
        // long prefill.
        const std::uint32_t tokens = shape.operation.call.tokens;
        if (shape.operation.info.positions == VKROPE_POSITIONS_IMPLICIT)
            shape.operation = reduced(shape.operation, memory());
        if (!fits(shape)) continue;
        const std::uint32_t shown = shape.operation.call.tokens;
        const std::string cut = shown == tokens
                                    ? ""
                                    : fmt::format(", {} of {} tokens: memory", shown, tokens);
        const std::string suffix = shape.name + "/" + type_name(shape);
        for (const auto& [word, angles] : tools::angle_sources) {
            Shape with_angles = shape;
            with_angles.operation.info.angles = angles;
            for (const bool in_place : {false, true}) {
                if (shape.in_place() && !in_place) continue;
                add_call(fmt::format("rope/{}/{}/{}", suffix, word,
                                     in_place ? "in_place" : "out_of_place"),
                         [=, this] {
                             Row row = rope_row(with_angles, in_place);
                             row.label += cut;
                             return row;
                         });
            }
        }
        if (shape.operation.info.scatter_kv)
            add_row(
                "empty/" + suffix, [=, this] { return empty_row(shape); });
        add_row("copy/" + suffix, [=, this] {
            return copy_row(shape,
                            std::make_shared<Layer>(device_, shape.operation, shape.in_place()));
        });
        if (!shape.in_place())  // vkCmdCopyBuffer cannot copy in place
            add_row("copy_buffer/" + suffix, [=, this] { return copy_buffer_row(shape); });
    }
}

void Bench::register_rivals() {
    for (const Shape& shape : typed_shapes()) {
        if (device_bytes(shape.operation) > memory()) continue;
        const std::string suffix = shape.name + "/" + type_name(shape);
        add_row("rival/unfused/" + suffix, [=, this] { return rival_row(shape); });
        if (!is_plain(shape.operation)) continue;
        // Long tensors exceed many devices' binding size, and the rivals do not split tensors.
        if (input_bytes(shape.operation, Q) <= device_.info().limits->maxStorageBufferRange) {
            for (const Way way : {Way::ggml, Way::ggml_along_x, Way::onnxruntime, Way::ncnn})
                add_row(
                    fmt::format("rival/{}/{}", word_for(way), suffix),
                    [=, this] { return rival_row(shape, way); });
        }
        if (!shape.in_place()) add_row("cpu/" + suffix, [=, this] { return cpu_row(shape); });
    }
}

}  // namespace vkrope::bench
