// SPDX-License-Identifier: MIT
#include "verify.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/meaning.hpp"
#include "shapes.hpp"
#include "verify/definition.hpp"
#include "verify/memory.hpp"
#include "verify/oracle/verdict.hpp"

namespace vkrope::bench {
namespace {

// Primes, so that all rows of a tensor differ.
constexpr std::uint64_t period = 262147, period_of_blocks = 8209;
// Most elements that are compared; ops cost more time.
constexpr std::uint64_t max_elements = std::uint64_t{1} << 20, max_elements_of_ops = 1 << 15;
constexpr std::uint64_t max_blocks = 8;

// Consecutive tokens of all sequences.
struct Block {
    std::uint64_t first = 0, tokens = 0;
};

std::vector<Block> blocks_of(std::uint64_t tokens, std::uint64_t fit) {
    if (tokens <= fit) return {{0, tokens}};
    const std::uint64_t count = std::min(max_blocks, std::max<std::uint64_t>(fit, 2)),
                        each = std::max<std::uint64_t>(fit / count, 1);
    std::vector<Block> blocks;
    for (std::uint64_t b = 0; b < count; ++b)
        blocks.push_back({(tokens - each) * b / (count - 1), each});
    return blocks;
}

// Returns the operation of only these tokens, as one sequence with ids.
verify::Operation part_of(const verify::Operation& whole, TensorIndex which, const Block& block) {
    const auto chosen = [&](const std::vector<std::int64_t>& numbers) {
        std::vector<std::int64_t> some;
        for (std::size_t at = block.first; at < numbers.size(); at += verify::tokens_of(whole))
            some.insert(some.end(), &numbers[at], &numbers[at] + block.tokens);
        return some;
    };
    verify::Operation part = with_packed_weights(whole);  // the part has other memory
    verify::Memory memory(1);
    part.call.batch = 1;
    part.call.tokens = std::uint32_t(block.tokens);
    part.call.positions = {};
    if (whole.info.rotary_dim != 0) {
        part.info.positions = VKROPE_POSITIONS_IDS;
        part.call.positions.ids = memory.put(chosen(verify::positions_of(whole)), true);
        part.call.positions.int64 = true;
    }
    vkrope_paged_cache& paged = part.call.paged_cache;
    for (const bool output : {false, true}) {
        const auto cache = verify::rows_of(whole, which, output).cache;
        if (!cache) continue;
        (output ? paged.slot_mapping : paged.source_mapping) = memory.put(
            chosen(cache->slot_mapping), true);
        paged.int64 = true;
    }
    part.memory = std::move(memory.bytes);
    return part;
}

}  // namespace

Pattern::Pattern(Element element)
    : channels_(block_channels(element)), bytes_(element_bytes(element)) {
    std::mt19937 generator(3);
    std::uniform_real_distribution<float> values(-4, 4);
    std::vector<float> numbers(channels_ == 1 ? period : period_of_blocks * channels_);
    for (float& number : numbers) number = values(generator);
    period_.resize(numbers.size() / channels_ * bytes_);
    if (has_blocks(element)) {
        const auto blocks = oracle::quantise_blocks(verify::store_of(element), numbers);
        std::memcpy(period_.data(), blocks.data(), blocks.size());
        return;
    }
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::uint32_t bits = oracle::narrow(verify::type_of(element), numbers[i]);
        std::memcpy(period_.data() + i * bytes_, &bits, bytes_);
    }
}

verify::Bytes Pattern::at(std::uint64_t first, std::uint64_t count) const {
    const std::uint64_t from = first / channels_ * bytes_;
    verify::Bytes bytes(count / channels_ * bytes_);
    for (std::uint64_t done = 0; done < bytes.size();) {
        const std::uint64_t at = (from + done) % period_.size(),
                            run = std::min(period_.size() - at, bytes.size() - done);
        std::memcpy(bytes.data() + done, period_.data() + at, run);
        done += run;
    }
    return bytes;
}

Checked check_output(const verify::Operation& operation, TensorIndex which, const ReadBytes& output,
                     std::optional<double> bound_u, bool second, const ReadBytes& scales) {
    const TensorInfo& info = operation.info.tensor[which];
    const Pattern pattern(info.in);
    const std::uint64_t channels = std::uint64_t{info.heads} * info.head_dim;
    const Element stored = second ? info.second : info.out;
    const bool ops = verify::has_steps(operation, which) || verify::is_quantised(stored),
               cached = operation.info.scatter_kv && which != Q && !second,
               gathered = operation.info.gather_kv && which != Q;
    const std::uint64_t fit = (ops ? max_elements_of_ops : max_elements) / channels;
    Checked checked;
    for (const Block& block :
         blocks_of(verify::tokens_of(operation), std::max<std::uint64_t>(fit, 1))) {
        const std::uint64_t first = block.first * channels, count = block.tokens * channels;
        const verify::Operation part = part_of(operation, which, block);
        const verify::Bytes got = cached ? output(0, operation.call.out[which].where.range)
                                         : output(verify::stored_bytes(stored, first),
                                                  verify::stored_bytes(stored, count));
        // Devices may flush subnormals.
        oracle::Definition definition = second ? verify::second_definition_of(part, which, true)
                                               : verify::definition_of(part, which, true);
        if (bound_u) definition.bound_u = *bound_u;
        const verify::Bytes rows = gathered ? pattern.at(0, verify::tokens_of(operation) * channels)
                                            : pattern.at(first, count);
        std::vector<float> made;
        if (is_made(info.ops.store_scale) && !second) {  // a row of the cache is that of a token
            const std::uint64_t of_token = info.heads * scale_groups(info) * sizeof(float);
            const verify::Bytes read = scales(block.first * of_token, block.tokens * of_token);
            made.resize(read.size() / sizeof(float));
            std::memcpy(made.data(), read.data(), read.size());
        }
        const oracle::Verdict verdict = oracle::compare(definition, rows.data(), got.data(), made);
        checked.elements += verdict.elements;
        checked.error_u = std::max(checked.error_u, verdict.largest_error_u);
        if (checked.failure.empty()) checked.failure = problem_of(definition, verdict);
    }
    if (checked.elements == 0) checked.failure = "there was nothing to compare";
    return checked;
}

}  // namespace vkrope::bench
