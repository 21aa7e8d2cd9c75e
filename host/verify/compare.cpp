// SPDX-License-Identifier: MIT
#include "verify/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "verify/oracle/rows.hpp"
#include "verify/oracle/verdict.hpp"

namespace vkrope::verify {
namespace {

constexpr char names[] = {'Q', 'K', 'V'};

std::size_t row_bytes_of(const Operation& operation, vkrope_tensor_index which) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    return stored_bytes(info.out, info.head_dim);
}

// Calls visit(first, bytes) for each row of the second destination, with its first byte there.
void each_second_row(const Operation& operation, vkrope_tensor_index which,
                     const std::function<void(std::size_t first, std::size_t bytes)>& visit) {
    const vkrope_element element = operation.info.tensor[which].second;
    const oracle::Tensor rows = second_rows_of(operation, which);
    oracle::each_row(rows, [&](std::uint64_t, std::uint64_t first) {
        visit(stored_bytes(element, first), stored_bytes(element, rows.head_dim));
    });
}

bool makes_scales(const Operation& operation, vkrope_tensor_index which) {
    return has(operation, which) &&
           operation.info.tensor[which].ops.store_scale >= VKROPE_STORE_SCALE_MADE;
}

// Describes the first error in one destination of a tensor, whose rows start at `out`. Empty:
// there is none.
std::string problem_of(const oracle::Definition& definition, const std::byte* in,
                       const std::byte* out, const std::vector<float>& scales,
                       std::optional<double>& largest_error_u) {
    const bool is_plain = !definition.store && !oracle::has_steps(definition.ops);
    if (definition.any_angles && !is_plain) return {};
    const oracle::Verdict verdict = oracle::compare(definition, in, out, scales);
    if (is_plain && !definition.any_angles)
        largest_error_u = std::max(largest_error_u.value_or(0), verdict.largest_error_u);
    return problem_of(definition, verdict);
}

// Finds a row of which two destinations of one type have different bits. Empty: there is none.
std::string difference_of_second(const Operation& operation, vkrope_tensor_index which,
                                 const Bytes& after) {
    const vkrope_tensor_info& info = operation.info.tensor[which];
    std::string difference;
    if (info.second_of != VKROPE_SECOND_RESULT || info.second != info.out) return difference;
    const std::size_t bytes = row_bytes_of(operation, which);
    const Bytes second = second_rows(operation, which, after);
    each_stored_row(operation, which, [&](std::uint64_t row, std::size_t byte) {
        if (difference.empty() && std::memcmp(&after[byte], &second[row * bytes], bytes) != 0)
            difference = "row " + std::to_string(row) + " has other bits than the first has";
    });
    return difference;
}

// Describes the first error in one tensor. Empty: there is none.
std::string problem_of(const Operation& operation, vkrope_tensor_index which, const Bytes& after,
                       bool flushes, std::optional<double>& largest_error_u) {
    const vkrope_call& call = operation.call;
    const std::byte* const in = &operation.memory[call.in[which].where.offset];
    const std::string name(1, names[which]);
    std::string problem = problem_of(definition_of(operation, which, flushes), in,
                                     &after[call.out[which].where.offset],
                                     made_scales(operation, which, after), largest_error_u);
    if (problem.empty()) problem = change_of_kept(operation, which, after);
    if (!problem.empty()) return name + ": " + problem;
    if (!has_second(operation, which)) return {};
    problem = problem_of(second_definition_of(operation, which, flushes), in,
                         &after[call.second[which].offset], {}, largest_error_u);
    if (problem.empty()) problem = difference_of_second(operation, which, after);
    return problem.empty() ? "" : "second destination of " + name + ": " + problem;
}

// Copies from `before` the bytes that a call may write.
void leave_out_outputs(const Operation& operation, Bytes& rest) {
    const auto leave_out = [&](std::size_t first, std::size_t bytes) {
        oracle::require(first + bytes <= rest.size(), "an output must lie inside the memory");
        std::copy_n(&operation.memory[first], bytes, &rest[first]);
    };
    if (operation.call.out_of_range.range != 0)
        leave_out(operation.call.out_of_range.offset, sizeof(std::uint32_t));
    for (const vkrope_tensor_index which : every_tensor) {
        if (!has(operation, which)) continue;
        const oracle::Tensor out = rows_of(operation, which, true);
        if (has_second(operation, which))
            each_second_row(operation, which, [&](std::size_t first, std::size_t bytes) {
                leave_out(operation.call.second[which].offset + first, bytes);
            });
        each_stored_row(operation, which, [&](std::uint64_t row, std::size_t byte) {
            leave_out(byte, row_bytes_of(operation, which));
            if (makes_scales(operation, which)) {
                const std::size_t bytes = scale_bytes(operation, which);
                leave_out(operation.call.scales_out[which].offset +
                              *scale_of(operation, which, out, row) * bytes,
                          scales_of_row(operation, which) * bytes);
            }
        });
    }
}

}  // namespace

std::string change_of_kept(const Operation& operation, vkrope_tensor_index which,
                           const Bytes& after) {
    const std::vector<bool> kept = kept_tokens(operation, which);
    std::string change;
    if (kept.empty()) return change;
    const oracle::Tensor in = rows_of(operation, which, false),
                         out = rows_of(operation, which, true);
    const auto scale_byte = [&](const VkDescriptorBufferInfo& scales, const oracle::Tensor& rows,
                                std::uint64_t row) {
        return scales.offset +
               *scale_of(operation, which, rows, row) * scale_bytes(operation, which);
    };
    each_stored_row(operation, which, [&](std::uint64_t row, std::size_t byte) {
        const std::uint64_t token = row / in.heads;
        if (!change.empty() || !kept[token]) return;
        const std::uint64_t first = oracle::row_of(
            in, {token / in.tokens, token % in.tokens, row % in.heads, 0});
        const auto differ = [&](std::size_t to, std::size_t from, std::size_t bytes) {
            return std::memcmp(&after[to], &operation.memory[from], bytes) != 0;
        };
        const std::size_t bytes = scales_of_row(operation, which) * scale_bytes(operation, which);
        if (differ(byte, byte_of(operation, which, first, false), row_bytes_of(operation, which)))
            change = "row " + std::to_string(row) + ", which nothing changes, has other bytes";
        else if (makes_scales(operation, which) &&
                 differ(scale_byte(operation.call.scales_out[which], out, row),
                        scale_byte(operation.call.scales_in[which], in, row), bytes))
            change = "row " + std::to_string(row) + ", which nothing changes, has another scale";
    });
    return change;
}

void each_stored_row(const Operation& operation, vkrope_tensor_index which,
                     const std::function<void(std::uint64_t row, std::size_t byte)>& visit) {
    oracle::each_row(
        rows_of(operation, which, true),
        [&](std::uint64_t row, std::uint64_t first) {
            visit(row, byte_of(operation, which, first));
        });
}

Bytes packed_rows(const Operation& operation, vkrope_tensor_index which, const Bytes& after) {
    if (!has(operation, which)) return {};
    const std::size_t bytes = row_bytes_of(operation, which);
    Bytes packed(tokens_of(operation) * operation.call.out[which].heads * bytes);
    each_stored_row(operation, which, [&](std::uint64_t row, std::size_t byte) {
        std::copy_n(&after[byte], bytes, &packed[row * bytes]);
    });
    return packed;
}

Bytes second_rows(const Operation& operation, vkrope_tensor_index which, const Bytes& after) {
    if (!has_second(operation, which)) return {};
    const vkrope_tensor_info& info = operation.info.tensor[which];
    Bytes packed(tokens_of(operation) * operation.call.in[which].heads *
                 stored_bytes(info.second, info.head_dim));
    each_second_row(operation, which, [&](std::size_t first, std::size_t bytes) {
        std::copy_n(&after[operation.call.second[which].offset + first], bytes, &packed[first]);
    });
    return packed;
}

std::vector<float> made_scales(const Operation& operation, vkrope_tensor_index which,
                               const Bytes& after) {
    if (!makes_scales(operation, which)) return {};
    const oracle::Tensor out = rows_of(operation, which, true);
    const std::uint64_t groups = scales_of_row(operation, which);
    std::vector<float> scales;
    for (std::size_t row = 0; row < tokens_of(operation) * out.heads; ++row) {
        const auto at = scale_of(operation, which, out, row);
        for (std::uint64_t group = 0; group < groups; ++group)
            scales.push_back(at ? scale_at(operation, which, after,
                                           operation.call.scales_out[which].offset, *at + group,
                                           HUGE_VALF)
                                : 0);
    }
    return scales;
}

Verdict compare(const Operation& operation, const Bytes& after, bool flushes,
                std::span<const vkrope_call> calls) {
    Verdict verdict;
    const auto wrong = [&verdict](const std::string& problem) {
        if (verdict.problem.empty()) verdict.problem = problem;
    };
    Operation one = operation;
    Bytes rest = after;
    std::uint32_t expected = 0;
    std::string of_tensors;
    for (const vkrope_call& call : calls.empty() ? std::span(&operation.call, 1) : calls) {
        one.call = call;
        leave_out_outputs(one, rest);
        expected += call.out_of_range.range != 0 ? tokens_out_of_range(one) : 0;
        for (const vkrope_tensor_index which : every_tensor) {
            const std::string problem = has(one, which) ? problem_of(one, which, after, flushes,
                                                                     verdict.largest_error_u)
                                                        : "";
            if (of_tensors.empty()) of_tensors = problem;
        }
    }
    const auto stray = std::mismatch(rest.begin(), rest.end(), operation.memory.begin()).first;
    if (stray != rest.end()) {
        wrong("byte " + std::to_string(stray - rest.begin()) +
              " of the buffer has changed, which belongs to no row of the output");
    }
    wrong(of_tensors);
    if (operation.call.out_of_range.range != 0) {
        std::uint32_t count[2] = {};
        const std::size_t at = operation.call.out_of_range.offset;
        std::memcpy(&count[0], &operation.memory[at], sizeof count[0]);
        std::memcpy(&count[1], &after[at], sizeof count[1]);
        const std::uint32_t grown = count[1] - count[0];
        if (grown != expected) {
            wrong("the counter has grown by " + std::to_string(grown) + " where " +
                  std::to_string(expected) + " tokens are outside");
        }
    }
    return verdict;
}

}  // namespace vkrope::verify
