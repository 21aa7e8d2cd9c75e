// SPDX-License-Identifier: MIT
// Compares an output with apply_ops(), element by element.
#include <cmath>
#include <cstdio>
#include <limits>

#include "verify/oracle/ops.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::oracle {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

/// Fills a verdict, element by element.
class Judge {
   public:
    Judge(const Tensor& out, const Operation& operation, const Ops& steps, const void* output)
        : out_(out), output_(output), elements_(table_of(out.type)),
          touched_(out.head_dim, has_steps(steps)) {
        for (const Pair& pair : pairs_of(operation)) {
            touched_[pair.out[0]] = touched_[pair.out[1]] = true;
        }
    }

    void element(const Place& place, std::uint64_t index, const Approximate& exact) {
        ++verdict_.elements;
        const std::uint32_t got = load(output_, bytes_of(out_.type), index);
        const bool got_nan = std::isnan(elements_.widen(got)), nan = std::isnan(exact.value);
        long double share = 0;
        if (nan || got_nan) {
            share = nan && got_nan ? 0 : infinity;
            verdict_.nan_mismatch = verdict_.nan_mismatch || share != 0;
        } else if (!touched_[place.channel]) {
            share = got == narrow(out_.type, exact.value) ? 0 : infinity;
            verdict_.bits_changed = verdict_.bits_changed || share != 0;
        } else if (const long double distance = elements_.distance(got, exact.value);
                   distance > 0) {
            // An infinity has no neighbours, so the output must be equal.
            share = std::isinf(exact.value) || exact.error == 0 ? infinity : distance / exact.error;
        }
        // This form of the comparison makes a NaN error a failure.
        verdict_.within += share <= 1 ? 1 : 0;
        if (!(share <= verdict_.largest_share)) {
            verdict_.largest_share = double(share);
            verdict_.worst_place = place;
            describe(place, got, exact);
        }
    }

    OpsVerdict& verdict() { return verdict_; }

   private:
    void describe(const Place& place, std::uint32_t got, const Approximate& exact) {
        using ull = unsigned long long;
        char text[240];
        std::snprintf(text, sizeof text,
                      "batch %llu token %llu head %llu channel %llu: got %.9g (0x%0*x), exact "
                      "%.12Lg, which may be %.3Lg off",
                      ull{place.batch}, ull{place.token}, ull{place.head}, ull{place.channel},
                      double(elements_.widen(got)), int(2 * bytes_of(out_.type)), got, exact.value,
                      exact.error);
        verdict_.worst = text;
    }

    const Tensor& out_;
    const void* output_;
    const ElementTable& elements_;
    std::vector<bool> touched_;  // channels that an op or the rotation computes
    OpsVerdict verdict_;
};

}  // namespace

OpsVerdict compare(const Tensor& in, const Tensor& out, const Operation& operation,
                   const Ops& steps, double bound_u, const void* input, const void* output,
                   const std::function<void(double)>& progress) {
    check_tensors(in, out);
    Judge judge(out, operation, steps, output);
    const auto total = double(in.batch * in.tokens);
    apply_ops(in, operation, steps, bound_u, input,
              [&](std::uint64_t batch, std::uint64_t token, std::span<const Approximate> channels) {
                  const std::uint64_t index = batch * in.tokens + token;
                  const bool slot_outside = out.cache && out.cache->slot_mapping[index] != -1 &&
                                            !has_row(*out.cache, out.cache->slot_mapping[index]);
                  const bool covered = is_covered(operation, operation.positions[index]);
                  judge.verdict().out_of_range += !covered || slot_outside ? 1 : 0;
                  for (std::size_t i = 0; i < channels.size(); ++i) {
                      const Place place = {batch, token, i / in.head_dim, i % in.head_dim};
                      const std::uint64_t row = row_of(out, place);
                      if (row != nowhere) {
                          judge.element(place, row + place.channel, channels[i]);
                      }
                  }
                  if (progress) {
                      progress(double(index + 1) / total);
                  }
              });
    return judge.verdict();
}

}  // namespace vkrope::oracle
