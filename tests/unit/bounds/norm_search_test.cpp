// SPDX-License-Identifier: MIT
// Checks the bound of every kind of norm, as the oracle computes it from step to step: RMS and
// layer norms, of a head and of a token, with a bias before, up to 4096 channels. Hill climbing
// looks for the rows that come nearest to it, with the shader's own source compiled as C++.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>

#include "norm_rows.hpp"
#include "search.hpp"
#include "verify/oracle/ops.hpp"

using namespace vkrope::bounds;
namespace oracle = vkrope::oracle;
namespace shader = vkrope::shader;

namespace {

struct Kind {
    const char* name;
    NormOf norm;
    std::size_t head_dim;
    bool bias = false;
};

// The values that the search varies.
struct Row {
    std::vector<float> x, bias;
    float w = 0;
};

// Returns the largest error of a channel as a share of the error that the oracle allows.
double share_of(const Kind& kind, const Row& row) {
    std::vector<float> biased = row.x;
    for (std::size_t i = 0; i < row.bias.size(); ++i) biased[i] += row.bias[i];
    const std::vector<float> got = normed(kind.norm, biased, 2, row.w);

    const std::size_t heads = kind.norm.heads, count = row.x.size();
    oracle::Definition definition = {.in = {.type = oracle::Type::f32,
                                            .batch = 1,
                                            .tokens = 1,
                                            .heads = heads,
                                            .head_dim = kind.head_dim,
                                            .batch_stride = count,
                                            .token_stride = count,
                                            .head_stride = kind.head_dim},
                                     .out = {},
                                     .operation = {}};
    definition.operation.positions = {0};
    oracle::Ops& ops = definition.ops;
    ops.bias.assign(row.bias.begin(), row.bias.end());
    ops.norm.kind = kind.norm.layer ? oracle::NormKind::layer : oracle::NormKind::rms;
    ops.norm.over_token = heads > 1;
    ops.norm.eps = double{kind.norm.eps};
    ops.norm.weight.assign(kind.head_dim, double{row.w});
    ops.norm.weight_offset = 1;
    double worst = 0;
    oracle::apply_ops(definition, row.x.data(),
                      [&](auto, auto, std::span<const oracle::Approximate> channels) {
                          for (std::size_t i = 0; i < count; ++i) {
                              const long double off = std::fabs(got[i] - channels[i].value);
                              worst = std::fmax(worst, double(off / channels[i].error));
                          }
                      });
    return worst;
}

// Returns numbers around 0, tiny ones, for which eps matters, or ones that hardly differ.
Row first_row(const Kind& kind, int start, Random& random) {
    const auto number = [&] {
        const double x = uniform(random) * 2 - 1;
        return float(start % 3 == 0 ? 4 * x : start % 3 == 1 ? 1e-3 * x : 3 + x / 64);
    };
    Row row;
    for (std::size_t i = 0; i < kind.head_dim * kind.norm.heads; ++i) row.x.push_back(number());
    for (std::size_t i = 0; kind.bias && i < row.x.size(); ++i) row.bias.push_back(number());
    row.w = float(uniform(random));
    return row;
}

double worst_share(const Kind& kind, int starts, int steps) {
    Random random(kind.head_dim * kind.norm.heads);
    double most = 0;
    for (int start = 0; start < starts; ++start) {
        Row row = first_row(kind, start, random);
        double share = share_of(kind, row);
        for (int step = 0; step < steps; ++step) {
            Row next = row;
            for (std::uint64_t i = 0, changes = 1 + random() % row.x.size(); i < changes; ++i) {
                std::vector<float>& of = kind.bias && random() % 2 == 0 ? next.bias : next.x;
                float& x = of[random() % of.size()];
                x = varied(random, x);
            }
            if (random() % 4 == 0) next.w = std::clamp(varied(random, next.w), -0.5f, 4.f);
            const double found = share_of(kind, next);
            if (found <= share) continue;
            share = found;
            row = next;
        }
        most = std::fmax(most, share);
    }
    return most;
}

}  // namespace

TEST_CASE("norm: no kind exceeds its bound, in the worst rows that a search finds") {
    const NormOf rms, layer = {.layer = true};
    const Kind kinds[] = {{"RMS", rms, 2},
                          {"RMS", rms, 80},
                          {"RMS", rms, 128},
                          {"RMS", rms, 4096},
                          {"RMS of a token", {.heads = 32}, 128},
                          {"RMS of a token", {.heads = 5}, 18},
                          {"RMS after a bias", rms, 64, true},
                          {"RMS of a token after a bias", {.heads = 3}, 96, true},
                          {"layer", layer, 2},
                          {"layer", layer, 64},
                          {"layer", layer, 80},
                          {"layer", layer, 4096},
                          {"layer, of a token", {.layer = true, .heads = 8}, 64},
                          {"layer, after a bias", layer, 128, true}};
    for (const Kind& kind : kinds) {
        const std::size_t count = kind.head_dim * kind.norm.heads;
        // The short search takes a time that does not grow with the row.
        const int steps = all ? 3000 : int(std::min<std::size_t>(300, 60000 / count));
        const double share = worst_share(kind, all ? 12 : 3, steps);
        std::printf("%s norm of %zu channels: %.2f of the bound\n", kind.name, count, share);
        CAPTURE(kind.name);
        CAPTURE(count);
        CHECK(share <= 1);
        CHECK(share > 0.1);  // the bound is not loose
    }
}
