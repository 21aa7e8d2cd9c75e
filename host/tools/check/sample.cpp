// SPDX-License-Identifier: MIT
#include "check/sample.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "divide_up.hpp"

namespace vkrope::tools {
namespace {

void keep(oracle::Tensor& tensor, std::uint64_t& first, const Every& batch, const Every& tokens,
          const Every& heads) {
    first += batch.first * tensor.batch_stride + tokens.first * tensor.token_stride +
             heads.first * tensor.head_stride;
    tensor.batch = batch.count;
    tensor.tokens = tokens.count;
    tensor.heads = heads.count;
    tensor.batch_stride *= batch.step;
    tensor.token_stride *= tokens.step;
    tensor.head_stride *= heads.step;
}

}  // namespace

Every at_most(std::uint64_t most, std::uint64_t count) {
    const std::uint64_t step = std::max<std::uint64_t>(1, divide_up(count, most));
    return {step, (count - 1) % step, divide_up(count, step)};
}

Trial sampled(Trial trial, std::uint64_t wanted) {
    const oracle::Tensor in = trial.in;
    const std::uint64_t rows = std::max<std::uint64_t>(1, wanted / in.head_dim);
    if (in.batch * in.tokens * in.heads <= rows) {
        return trial;
    }
    constexpr std::uint64_t max_heads = 16;  // positions show more mistakes than heads do
    const Every heads = at_most(std::min(rows, max_heads), in.heads);
    const Every tokens = at_most(std::max<std::uint64_t>(1, rows / heads.count), in.tokens);
    const Every batch = at_most(std::max<std::uint64_t>(1, rows / heads.count / tokens.count),
                                in.batch);
    keep(trial.in, trial.first_in, batch, tokens, heads);
    keep(trial.out, trial.first_out, batch, tokens, heads);
    each_axis(trial, [&](std::vector<std::int64_t>& positions) {
        const std::vector<std::int64_t> all = std::move(positions);
        positions.clear();
        for (std::uint64_t row = 0; row < batch.count * tokens.count; ++row) {
            positions.push_back(all[(batch.first + row / tokens.count * batch.step) * in.tokens +
                                    tokens.first + row % tokens.count * tokens.step]);
        }
    });
    return trial;
}

}  // namespace vkrope::tools
