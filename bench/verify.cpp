// SPDX-License-Identifier: MIT
#include "verify.hpp"

#include <fmt/format.h>

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
    if (shape.sections.axes != 0) {
        operation.cos_sin = [ids = ids_of(shape),
                             axes = axis_of_pairs(shape.sections, operation.inv_freq.size()),
                             tokens = shape.tokens,
                             inv_freq = operation.inv_freq](std::int64_t token, std::size_t pair) {
            return oracle::exact_cos_sin(ids[std::size_t{axes[pair]} * tokens + std::size_t(token)],
                                         inv_freq[pair]);
        };
    }
    return operation;
}

/// With several axes, the position passed to the oracle is the index of the token in its sequence,
/// which operation_of() maps to the positions.
std::vector<std::int64_t> positions_of(const Shape& shape, const Block& block) {
    const std::vector<std::int32_t> ids = shape.sections.axes != 0 ? std::vector<std::int32_t>()
                                                                   : ids_of(shape);
    std::vector<std::int64_t> positions(block.tokens);
    for (std::uint64_t t = 0; t < block.tokens; ++t) {
        const std::uint64_t token = (block.first + t) % shape.tokens;
        positions[t] = ids.empty() ? std::int64_t(token) : ids[token];
    }
    return positions;
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

std::string failure_of(const oracle::Verdict& verdict, double bound_u) {
    const char* what = verdict.nan_mismatch
                           ? "a value is NaN but the exact one is not, or the reverse"
                       : verdict.bits_changed ? "a channel that is not rotated changed"
                       // Negated, so that a NaN error is a failure.
                       : !(verdict.largest_error_u <= bound_u)
                           ? "a value is too far from the exact one"
                           : nullptr;
    if (what == nullptr) return verdict.elements == 0 ? "there was nothing to compare" : "";
    return fmt::format("{} ({:.3g} u, allowed {} u): {}", what, verdict.largest_error_u, bound_u,
                       verdict.worst);
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
        operation.positions = positions_of(shape, block);
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
        const oracle::Verdict verdict = oracle::compare(tensor, out, operation, input.data(),
                                                        got.data());
        checked.elements += verdict.elements;
        checked.error_u = std::max(checked.error_u, verdict.largest_error_u);
        if (checked.failure.empty()) checked.failure = failure_of(verdict, bound_u);
    }
    checked.share = double(checked.elements) /
                    double(key ? shape.k_elements() : shape.q_elements());
    return checked;
}

}  // namespace vkrope::bench
