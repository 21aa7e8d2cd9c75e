// SPDX-License-Identifier: MIT
// Rotations of Q and K by vkrope, by rivals and on the processor, and copies of the same bytes.
#include "base/meaning.hpp"
#include "cli/words.hpp"
#include "rows.hpp"
#include "verify/definition.hpp"

namespace vkrope::bench {
namespace {

std::string type_name(const Shape& shape) {
    return tools::word_for(tools::elements, shape.operation.info.tensor[Q].in);
}

std::uint64_t elements_of(const verify::Operation& operation) {
    std::uint64_t sum = 0;
    for (const TensorInfo& tensor : operation.info.tensor)
        sum += verify::tokens_of(operation) * tensor.heads * tensor.head_dim;
    return sum;
}

Record recording(const std::shared_ptr<Pass>& pass) {
    return [=](VkCommandBuffer commands) { return pass->record(commands); };
}

std::vector<Shape> typed_shapes() {
    std::vector<Shape> all;
    for (const Shape& shape : shapes())
        for (const Element element : {VKROPE_F32, VKROPE_F16, VKROPE_BF16})
            all.push_back({shape.name, shape.model, of_type(shape.operation, element)});
    return all;
}

}  // namespace

Bench::Row Bench::copy_row(const Shape& shape, const std::shared_ptr<Layer>& layer) const {
    return {.label = shape.model,
            .tensors = layer,
            .bytes = 2 * double(layer->bytes_read()),
            .copies = layer->copies()};
}

Bench::Row Bench::checked_row(const Shape& shape, const std::shared_ptr<Layer>& layer,
                              const Record& record, std::optional<double> bound_u) {
    Row row = copy_row(shape, layer);
    row.tokens = double(verify::tokens_of(shape.operation));
    row.time = running(record);
    row.first_ns = row.time();
    const Checked checked = layer->check_outputs(layer->operation(), bound_u);
    row.counters = {{"error_u", checked.error_u},
                    {"checked", double(checked.elements) / double(elements_of(shape.operation))}};
    return row;
}

Bench::Row Bench::rope_row(const Shape& shape, bool in_place) {
    const auto layer = std::make_shared<Layer>(device_, shape.operation, in_place);
    return checked_row(shape, layer,
                       recording(std::make_shared<Pass>(device_, layer->operation())));
}

Bench::Row Bench::rival_row(const Shape& shape, std::optional<Way> way) {
    const auto layer = std::make_shared<Layer>(device_, shape.operation,
                                               shape.operation.info.scatter_kv);
    const auto pass = std::make_shared<Pass>(device_, layer->operation());
    Record record = [=](VkCommandBuffer commands) { return pass->record_unfused(commands); };
    std::optional<double> bound_u;
    if (way) {
        const auto rival = std::make_shared<Rival>(device_, shape.operation, *way);
        record = [=](VkCommandBuffer commands) { return rival->record(commands, layer->call()); };
        bound_u = rival->bound_u();
    }
    Row row = checked_row(shape, layer, record, bound_u);
    row.others = {{"vkrope_speedup", running(recording(pass)), true}};
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
    const auto layer = std::make_shared<Layer>(device_, shape.operation, true);
    const auto pass = std::make_shared<Pass>(device_, layer->operation());
    const Pass::Grid grid = pass->grid();
    const auto idle = std::make_shared<Idle>(device_, grid.workgroup_size);
    Row row{.label = shape.model};
    row.time = running([=](VkCommandBuffer commands) {
        return idle->record(commands, layer->call().in[Q].where, grid.workgroups);
    });
    row.others = {{"vkrope_over_empty", running(recording(pass))}};
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
    Row row = rope_row(shape);
    row.others = {{"vkrope_speedup", std::move(row.time), true}};
    row.time = time;
    row.copies.clear();
    row.counters.clear();
    return row;
}

void Bench::register_ropes() {
    for (Shape shape : typed_shapes()) {
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
        const bool scatters = shape.operation.info.scatter_kv;
        for (const auto& [word, angles] : tools::angle_sources) {
            Shape with_angles = shape;
            with_angles.operation.info.angles = angles;
            for (const bool in_place : {false, true}) {
                if (scatters && !in_place)
                    continue;  // engines rotate the queries of a decode step in place
                add_row(fmt::format("rope/{}/{}/{}", suffix, word,
                                    in_place ? "in_place" : "out_of_place"),
                        [=, this] {
                            Row row = rope_row(with_angles, in_place);
                            row.label += cut;
                            return row;
                        });
            }
        }
        if (scatters)
            add_row(
                "empty/" + suffix, [=, this] { return empty_row(shape); });
        add_row(
            "copy/" + suffix,
            [=, this] {
                return copy_row(shape, std::make_shared<Layer>(device_, shape.operation));
            });
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
        add_row("cpu/" + suffix, [=, this] { return cpu_row(shape); });
    }
}

}  // namespace vkrope::bench
