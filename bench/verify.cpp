// SPDX-License-Identifier: MIT
#include "verify.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "meaning.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::bench {
namespace {

/// A prime, so that all rows of a tensor differ.
constexpr std::uint64_t period = 262147;
constexpr std::uint64_t max_elements = std::uint64_t{1} << 20, max_blocks = 8;

/// Consecutive tokens of all sequences.
struct Block {
    std::uint64_t first = 0, tokens = 0;
};

std::vector<Block> blocks_of(std::uint64_t tokens, std::uint64_t elements_a_token) {
    const std::uint64_t fit = std::max<std::uint64_t>(max_elements / elements_a_token, 1);
    if (tokens <= fit) return {{0, tokens}};
    const std::uint64_t count = std::min(max_blocks, std::max<std::uint64_t>(fit, 2)),
                        each = std::max<std::uint64_t>(fit / count, 1);
    std::vector<Block> blocks;
    for (std::uint64_t b = 0; b < count; ++b)
        blocks.push_back({(tokens - each) * b / (count - 1), each});
    return blocks;
}

/// Returns the axis of each pair for sequential sections.
std::vector<std::uint32_t> axis_of_pairs(const Sections& sections, std::size_t pairs) {
    std::vector<std::uint32_t> axes;
    for (std::uint32_t axis = 0; axis < sections.axes; ++axis)
        axes.insert(axes.end(), sections.pairs[axis], axis);
    axes.resize(pairs);
    return axes;
}

oracle::Operation operation_of(const Shape& shape, bool key) {
    oracle::Operation operation;
    operation.interleaved = shape.pairing == VKROPE_INTERLEAVED;
    operation.rotary_offset = key ? shape.k_offset : shape.q_offset;
    operation.inv_freq = rotation_of(shape).inv_freq;
    for (const Window& window : shape.windows)
        operation.windows.push_back({window.offset, window.rotary_dim / 2});
    // Devices do not report whether they flush subnormals.
    operation.absolute_allowance = oracle::flushing_allowance(operation);
    if (shape.sections.axes != 0)
        operation.further.axes = axis_of_pairs(shape.sections, operation.inv_freq.size());
    return operation;
}

/// Sets the positions of a block on every axis.
void set_positions(const Shape& shape, const Block& block, oracle::Operation& operation) {
    const std::vector<std::int32_t> ids = ids_of(shape);
    std::vector<std::vector<std::int64_t>> axes(std::max(shape.sections.axes, 1u));
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        for (std::uint64_t t = 0; t < block.tokens; ++t) {
            const std::uint64_t token = (block.first + t) % shape.tokens;
            axes[axis].push_back(ids.empty() ? std::int64_t(token)
                                             : ids[axis * shape.tokens + token]);
        }
    }
    operation.positions = axes[0];
    operation.further.positions.assign(axes.begin() + 1, axes.end());
}

}  // namespace

Pattern::Pattern(Element element) : bytes_(element_bytes(element)), period_(period * bytes_) {
    std::mt19937 generator(3);
    std::uniform_real_distribution<float> values(-4, 4);
    for (std::uint64_t i = 0; i < period; ++i) {
        const std::uint32_t bits = oracle::narrow(oracle::Type(std::uint32_t(element)),
                                                  values(generator));
        std::memcpy(period_.data() + i * bytes_, &bits, bytes_);
    }
}

std::vector<std::byte> Pattern::at(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::byte> bytes(count * bytes_);
    for (std::uint64_t done = 0; done < count;) {
        const std::uint64_t from = (first + done) % period,
                            run = std::min(period - from, count - done);
        std::memcpy(bytes.data() + done * bytes_, period_.data() + from * bytes_, run * bytes_);
        done += run;
    }
    return bytes;
}

Checked verify(const Shape& shape, Element element, bool key, const ReadElements& output,
               double bound_u) {
    const Pattern pattern(element);
    oracle::Tensor tensor{.type = oracle::Type(std::uint32_t(element)),
                          .heads = key ? shape.k_heads : shape.q_heads,
                          .head_dim = key ? shape.k_head_dim : shape.q_head_dim};
    const std::uint64_t elements_a_token = tensor.heads * tensor.head_dim;
    tensor.token_stride = elements_a_token;
    tensor.head_stride = tensor.head_dim;
    const bool scattered = key && shape.scatters();
    oracle::Operation operation = operation_of(shape, key);
    Checked checked;
    for (const Block& block : scattered ? std::vector<Block>{{0, shape.rows()}}
                                        : blocks_of(shape.rows(), elements_a_token)) {
        tensor.tokens = block.tokens;
        set_positions(shape, block, operation);
        oracle::Tensor out = tensor;
        std::uint64_t first = block.first * elements_a_token,
                      count = block.tokens * elements_a_token;
        const std::vector<std::byte> input = pattern.at(first, count);
        if (scattered) {
            const std::vector<std::int32_t> slots = slots_of(shape);
            out.cache = {.slot_mapping = {slots.begin(), slots.end()},
                         .pages = shape.pages,
                         .page_size = shape.page_size,
                         .page_stride = shape.page_size * elements_a_token,
                         .row_stride = elements_a_token};
            first = 0, count = shape.k_out_elements();
        }
        const std::vector<std::byte> got = output(first, count);
        const oracle::Definition definition = {
            .in = tensor, .out = out, .operation = operation, .bound_u = bound_u};
        const oracle::Verdict verdict = oracle::compare(definition, input.data(), got.data());
        checked.elements += verdict.elements;
        checked.error_u = std::max(checked.error_u, verdict.largest_error_u);
        if (checked.failure.empty()) {
            checked.failure = problem_of(definition, verdict);
        }
    }
    if (checked.elements == 0) checked.failure = "there was nothing to compare";
    checked.share = double(checked.elements) /
                    double(key ? shape.k_elements() : shape.q_elements());
    return checked;
}

}  // namespace vkrope::bench
