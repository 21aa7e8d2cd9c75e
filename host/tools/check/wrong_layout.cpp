// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdint>
#include <utility>

#include "check/attempts.hpp"

namespace vkrope::tools {
namespace {

using oracle::Operation;
using oracle::Tensor;

Attempt with_offset(const Evidence& evidence, std::uint64_t offset) {
    const Operation& operation = evidence.operation;
    const bool fits = offset + channels_to_end(operation) <= evidence.in.head_dim;
    return if_any(fits && offset != operation.rotary_offset,
                  with(evidence, [offset](Operation& changed) { changed.rotary_offset = offset; }));
}

void exchange_tokens_and_heads(Tensor& tensor) {
    std::swap(tensor.tokens, tensor.heads);
    std::swap(tensor.token_stride, tensor.head_stride);
}

void exchange_tokens_and_batch(Tensor& tensor) {
    std::swap(tensor.tokens, tensor.batch);
    std::swap(tensor.token_stride, tensor.batch_stride);
}

/// Beyond the last token, positions continue from the position of the last one.
std::int64_t continued(const Positions& positions, std::uint64_t tokens, std::uint64_t batch,
                       std::uint64_t token) {
    const std::uint64_t last = tokens - 1;
    const std::int64_t position = positions[batch * tokens + std::min(token, last)];
    return token <= last ? position : position + static_cast<std::int64_t>(token - last);
}

/// Sets the strides as if two axes adjacent in memory had been exchanged in memory but not in the
/// shape. Returns false if they are not adjacent.
bool exchange_in_memory(std::uint64_t& a_stride, std::uint64_t a, std::uint64_t& b_stride,
                        std::uint64_t b) {
    if (a_stride < b_stride) {
        return exchange_in_memory(b_stride, b, a_stride, a);
    }
    if (a < 2 || b < 2 || a_stride != b_stride * b) {
        return false;
    }
    a_stride = b_stride;
    b_stride *= a;
    return true;
}

}  // namespace

Attempt window_of_the_other_tensor(const Evidence& evidence) {
    return if_any(evidence.other_offset != 0, with_offset(evidence, evidence.other_offset));
}

Attempt window_at_start(const Evidence& evidence) {
    return with_offset(evidence, 0);
}

Attempt window_at_end(const Evidence& evidence) {
    const std::uint64_t width = channels_to_end(evidence.operation);
    return width > evidence.in.head_dim || evidence.in.head_dim - width == evidence.other_offset
               ? std::nullopt
               : with_offset(evidence, evidence.in.head_dim - width);
}

Attempt windows_joined(const Evidence& evidence) {
    const Operation& right = evidence.operation;
    // Interleaved pairs of windows without a gap are the same.
    const bool gaps = channels_to_end(right) != 2 * right.inv_freq.size() / right.head_groups;
    return if_any(right.windows.size() > 1 && (gaps || !right.interleaved),
                  with(evidence, [](Operation& changed) { changed.windows.clear(); }));
}

Attempt positions_along_heads(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    exchange_tokens_and_heads(attempt->in);
    exchange_tokens_and_heads(attempt->out);
    each_axis(*attempt, [&in = evidence.in](Positions& positions) {
        const Positions right = std::move(positions);
        positions.clear();
        for (std::uint64_t row = 0; row < in.batch * in.heads; ++row) {
            positions.push_back(continued(right, in.tokens, row / in.heads, row % in.heads));
        }
    });
    return if_any(evidence.in.heads > 1, attempt);
}

Attempt positions_along_batch(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    exchange_tokens_and_batch(attempt->in);
    exchange_tokens_and_batch(attempt->out);
    each_axis(*attempt, [&in = evidence.in](Positions& positions) {
        const Positions right = std::move(positions);
        positions.clear();
        for (std::uint64_t row = 0; row < in.batch * in.tokens; ++row) {
            positions.push_back(continued(right, in.tokens, 0, row % in.batch));
        }
    });
    return if_any(evidence.in.batch > 1, attempt);
}

Attempt tokens_and_heads_exchanged(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Tensor& out = attempt->out;
    const bool neighbours = exchange_in_memory(out.token_stride, out.tokens, out.head_stride,
                                               out.heads);
    return if_any(neighbours, attempt);
}

Attempt tokens_and_sequences_exchanged(const Evidence& evidence) {
    Attempt attempt = right(evidence);
    Tensor& out = attempt->out;
    const bool neighbours = exchange_in_memory(out.token_stride, out.tokens, out.batch_stride,
                                               out.batch);
    return if_any(neighbours, attempt);
}

}  // namespace vkrope::tools
