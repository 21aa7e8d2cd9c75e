// SPDX-License-Identifier: MIT
#include "check/observe.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "verify/oracle/element.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::tools {
namespace {

using oracle::Approximate;

// Returns the same hypothesis without the rotation and the ops after it.
Hypothesis until_rotation(const Hypothesis& hypothesis) {
    Hypothesis before = hypothesis;
    oracle::Operation& operation = before.operation;
    operation.inv_freq.clear();
    operation.windows.clear();
    operation.phase.clear();
    operation.cos_sin = {};
    before.operation.further = {};
    before.ops.scale = 1;
    before.ops.scale_tokens.clear();
    before.ops.hadamard = 0;
    if (before.ops.norm.after) before.ops.norm = {};
    return before;
}

// Loads the rows of the output, and undoes the ops after the rotation.
class Output {
   public:
    Output(const Observation& observation, const Hypothesis& hypothesis)
        : observation_(observation), hypothesis_(hypothesis),
          elements_(oracle::table_of(hypothesis.out.type)), row_(hypothesis.out.head_dim),
          transformed_(hypothesis.out.head_dim) {}

    bool can_undo() const {
        const oracle::Norm& norm = hypothesis_.ops.norm;
        return norm.kind == oracle::NormKind::none || !norm.after ||
               (norm.kind == oracle::NormKind::rms && !norm.reciprocal_root);
    }

    // channels  [heads, head_dim] of the token before the rotation
    std::span<const double> row(const oracle::Place& place, std::span<const Approximate> channels) {
        load(place);
        const oracle::Ops& ops = hypothesis_.ops;
        const std::uint64_t token = place.batch * hypothesis_.in.tokens + place.token;
        if (ops.hadamard != 0) {  // the transform is its own inverse
            for (std::size_t c = 0; c < row_.size(); ++c) transformed_[c] = {row_[c], 0};
            oracle::hadamard(transformed_, ops.hadamard, 0);
            for (std::size_t c = 0; c < row_.size(); ++c) row_[c] = double(transformed_[c].value);
        }
        const double scale = ops.scale * (ops.scale_tokens.empty() ? 1.0 : ops.scale_tokens[token]);
        for (double& x : row_) x /= scale;
        if (ops.norm.kind != oracle::NormKind::none && ops.norm.after) undo_norm(place, channels);
        return row_;
    }

   private:
    void load(const oracle::Place& place) {
        const std::uint64_t first = hypothesis_.first_out + oracle::row_of(hypothesis_.out, place);
        if (hypothesis_.store) {
            load_codes(place, first);
            return;
        }
        for (std::size_t c = 0; c < row_.size(); ++c) {
            row_[c] = elements_.widen(oracle::load(
                observation_.output, oracle::bytes_of(hypothesis_.out.type), first + c));
        }
    }

    void load_codes(const oracle::Place& place, std::uint64_t first) {
        const oracle::QuantisedStore& store = *hypothesis_.store;
        const std::uint64_t channels = oracle::block_channels(store.type),
                            bytes = oracle::block_bytes(store.type),
                            row = (place.batch * hypothesis_.in.tokens + place.token) *
                                      hypothesis_.in.heads +
                                  place.head;
        std::vector<std::uint8_t> codes(row_.size() / channels * bytes);
        std::copy_n(observation_.codes.begin() + std::ptrdiff_t(first / channels * bytes),
                    codes.size(), codes.begin());
        const std::vector<float>& given = store.given;
        const std::size_t groups = store.made ? store.groups(row_.size()) : 1,
                          size = codes.size() / groups;
        for (std::size_t group = 0; group < groups; ++group) {
            const float scale = store.made      ? hypothesis_.scales[row * groups + group]
                                : given.empty() ? 1
                                                : 1 / given[place.head % given.size()];
            const std::vector<float> values = oracle::dequantise(
                store.type, std::span(codes).subspan(group * size, size), scale);
            std::copy(values.begin(), values.end(),
                      row_.begin() + std::ptrdiff_t(group * values.size()));
        }
    }

    // A rotation keeps the mean of the squares, unless the norm takes one channel of a pair. So the
    // mean of the channels before it tells by what the norm divided.
    void undo_norm(const oracle::Place& place, std::span<const Approximate> channels) {
        const oracle::Norm& norm = hypothesis_.ops.norm;
        const std::size_t head_dim = row_.size(), normed = normed_channels(hypothesis_),
                          heads = norm.over_token ? channels.size() / head_dim : 1,
                          first = norm.over_token ? 0 : place.head;
        long double square = 0;
        for (std::size_t head = first; head < first + heads; ++head)
            for (const Approximate& channel :
                 channels.subspan(head * head_dim + norm.first_channel, normed))
                square += channel.value * channel.value / static_cast<long double>(heads * normed);
        const double root = std::sqrt(double(square) + norm.eps);
        const std::vector<double>& weight = norm.weight;
        for (std::size_t c = 0; c < normed; ++c) {
            double& x = row_[norm.first_channel + c];
            x *= root;
            if (!weight.empty())
                x /= weight[(place.head * normed + c) % weight.size()] + norm.weight_offset;
        }
    }

    const Observation& observation_;
    const Hypothesis& hypothesis_;
    const oracle::ElementTable& elements_;
    std::vector<double> row_;
    std::vector<Approximate> transformed_;
};

bool finite(const std::complex<double>& x) {
    return std::isfinite(x.real()) && std::isfinite(x.imag());
}

}  // namespace

std::optional<SeenPairs> see_pairs(const Observation& observation, const Hypothesis& hypothesis,
                                   const Sample& sample, const std::vector<bool>& rows) {
    Output output(observation, hypothesis);
    if (!output.can_undo()) return std::nullopt;
    const oracle::Tensor& in = hypothesis.in;
    const std::vector<oracle::Pair> pairs = oracle::pairs_of(hypothesis.operation);
    std::vector<bool> unpaired(in.head_dim, true);
    for (const oracle::Pair& pair : pairs) unpaired[pair.out[0]] = unpaired[pair.out[1]] = false;
    SeenPairs seen;
    seen.pairs = pairs.size();
    const std::uint64_t groups = std::max<std::uint64_t>(1, hypothesis.operation.head_groups);
    each_token(
        observation, until_rotation(hypothesis), sample,
        [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels) {
            for (std::uint64_t head = 0; head < in.heads; ++head) {
                const std::uint64_t index = batch * in.tokens + token;
                if (!rows.empty() && !rows[index * in.heads + head]) continue;
                const std::span<const double> is = output.row({batch, token, head, 0}, channels);
                const std::span<const Approximate> was = channels.subspan(head * in.head_dim,
                                                                          in.head_dim);
                seen.rows.push_back({index, batch, head, head / (in.heads / groups)});
                for (const oracle::Pair& pair : pairs) {
                    const std::complex<double> before = {double(was[pair.in[0]].value),
                                                         double(was[pair.in[1]].value)},
                                               after = {is[pair.out[0]], is[pair.out[1]]};
                    const bool usable = finite(before) && finite(after);
                    seen.before.push_back(usable ? before : 0);
                    seen.after.push_back(usable ? after : 0);
                }
                for (std::uint64_t c = 0; c < in.head_dim; ++c) {
                    const double distance = is[c] - double(was[c].value);
                    if (unpaired[c] && std::isfinite(distance)) {
                        seen.still += is[c] * is[c];
                        seen.still_distance += distance * distance;
                    }
                }
            }
        });
    return seen;
}

double misfit_of_pairs(const SeenPairs& seen) {
    double product = 0, before = 0, after = 0;
    for (std::size_t i = 0; i < seen.before.size(); ++i) {
        product += std::sqrt(std::norm(seen.before[i]) * std::norm(seen.after[i]));
        before += std::norm(seen.before[i]);
        after += std::norm(seen.after[i]);
    }
    const double all = after + seen.still;
    if (!(all > 0)) return 0;
    const double turned = before > 0 ? after - product * product / before : after;
    return (std::max(0.0, turned) + seen.still_distance) / all;
}

}  // namespace vkrope::tools
