// SPDX-License-Identifier: MIT
#include "verify/oracle/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::oracle {
namespace {

constexpr double unit = 0x1p-24;  // u: half an ulp of 1 in f32

class Comparison {
   public:
    Comparison(const Tensor& in, const Tensor& out, const Operation& operation, const void* input,
               const void* output)
        : in_(in), out_(out), operation_(operation), input_(input), output_(output),
          in_element_(table_of(in.type)), out_element_(table_of(out.type)),
          pairs_(pairs_of(operation)), factor_(factor_of(operation)) {
        std::vector<bool> paired(in.head_dim);
        for (const Pair& pair : pairs_) {
            paired[pair.in[0]] = paired[pair.in[1]] = true;
        }
        for (std::uint64_t channel = 0; channel < in.head_dim; ++channel) {
            if (!paired[channel]) {
                unpaired_.push_back(channel);
            }
        }
    }

    void token(std::uint64_t batch, std::uint64_t token) {
        const std::int64_t position = operation_.positions[batch * in_.tokens + token];
        const bool covered = is_covered(operation_, position);
        const std::int64_t slot = out_.cache ? out_.cache->slot_mapping[batch * in_.tokens + token]
                                             : 0;
        const bool slot_outside = out_.cache && slot != -1 && !has_row(*out_.cache, slot);
        verdict_.out_of_range += !covered || slot_outside ? 1 : 0;
        if (covered) {
            turn_to(operation_, position, angles_);
        }
        for (std::uint64_t head = 0; head < in_.heads; ++head) {
            row({batch, token, head, 0}, covered);
        }
    }

    Verdict finish() {
        if (found_wrong_ || verdict_.largest_error_u > 0) {
            verdict_.worst = describe(verdict_.worst_place, worst_got_, worst_exact_);
        }
        return verdict_;
    }

   private:
    void row(Place place, bool covered) {
        const std::uint64_t from = row_of(in_, place), to = row_of(out_, place);
        if (to == nowhere) {
            return;
        }
        const auto input = [&](std::uint64_t channel) -> long double {
            return in_element_.widen(load(input_, bytes_of(in_.type), from + channel));
        };
        const std::uint64_t group = place.head / (in_.heads / operation_.head_groups);
        for (std::size_t j = 0; j < pairs_.size(); ++j) {
            const Pair& pair = pairs_[j];
            if (!covered) {
                for (std::size_t member = 0; member < 2; ++member) {
                    place.channel = pair.out[member];
                    passed_through(place, from + pair.in[member], to + pair.out[member]);
                }
                continue;
            }
            const long double x0 = input(pair.in[0]), x1 = input(pair.in[1]);
            const CosSin& a = angles_[group * pairs_.size() + j];
            const double scale = unit * double(factor_) * double(std::fabs(x0) + std::fabs(x1));
            place.channel = pair.out[0];
            rotated(place, to + pair.out[0], x0 * a.cos - x1 * a.sin, scale);
            place.channel = pair.out[1];
            rotated(place, to + pair.out[1], x0 * a.sin + x1 * a.cos, scale);
        }
        for (const std::uint64_t channel : unpaired_) {
            place.channel = channel;
            passed_through(place, from + channel, to + channel);
        }
    }

    void rotated(const Place& place, std::uint64_t index, long double exact, double scale) {
        ++verdict_.elements;
        const std::uint32_t got = load(output_, bytes_of(out_.type), index);
        const bool got_nan = std::isnan(out_element_.widen(got));
        if (std::isnan(exact) || got_nan) {
            if (!std::isnan(exact) || !got_nan) {
                verdict_.nan_mismatch = true;
                wrong(place, got, exact);
            }
            return;
        }
        const double error = double(out_element_.distance(got, exact)) -
                             operation_.absolute_allowance;
        // Divides only for a new maximum. If the input is infinite, so is the scale, and 0 *
        // infinity compares false.
        const bool infinite = std::isinf(error) && !std::isinf(verdict_.largest_error_u);
        if (infinite || (error > 0 && error > verdict_.largest_error_u * scale)) {
            verdict_.largest_error_u = infinite ? error : error / scale;
            if (!found_wrong_) {
                worst(place, got, exact);
            }
        }
    }

    /// A NaN that changes its type must stay a NaN; its payload may change.
    void passed_through(const Place& place, std::uint64_t from, std::uint64_t to) {
        ++verdict_.elements;
        ++verdict_.passed_through;
        const std::uint32_t given = load(input_, bytes_of(in_.type), from);
        const std::uint32_t got = load(output_, bytes_of(out_.type), to);
        const float exact = in_element_.widen(given);
        const bool same_type = in_.type == out_.type;
        const bool right = std::isnan(exact) && !same_type
                               ? std::isnan(out_element_.widen(got))
                               : got == (same_type ? given : narrow(out_.type, exact));
        if (!right) {
            verdict_.bits_changed = true;
            wrong(place, got, exact);
        }
    }

    /// Records an element that is wrong whatever the bound. The first one counts as the worst.
    void wrong(const Place& place, std::uint32_t got, long double exact) {
        if (!found_wrong_) {
            found_wrong_ = true;
            worst(place, got, exact);
        }
    }

    void worst(const Place& place, std::uint32_t got, long double exact) {
        verdict_.worst_place = place;
        worst_got_ = got;
        worst_exact_ = exact;
    }

    std::string describe(const Place& place, std::uint32_t got, long double exact) const {
        using ull = unsigned long long;
        char text[200];
        std::snprintf(
            text, sizeof text,
            "batch %llu token %llu head %llu channel %llu: got %.9g (0x%0*x), exact %.12Lg",
            ull{place.batch}, ull{place.token}, ull{place.head}, ull{place.channel},
            double(out_element_.widen(got)), int(2 * bytes_of(out_.type)), got, exact);
        return text;
    }

    const Tensor& in_;
    const Tensor& out_;
    const Operation& operation_;
    const void* input_;
    const void* output_;
    const ElementTable& in_element_;
    const ElementTable& out_element_;
    const std::vector<Pair> pairs_;
    const long double factor_;             // multiplies cos and sin
    std::vector<std::uint64_t> unpaired_;  // indices of channels without a partner
    std::vector<CosSin> angles_;           // of the current token, with factor and direction
    Verdict verdict_;
    bool found_wrong_ = false;
    std::uint32_t worst_got_ = 0;
    long double worst_exact_ = 0;
};

}  // namespace

Verdict compare(const Tensor& in, const Tensor& out, const Operation& operation, const void* input,
                const void* output, const std::function<void(double)>& progress) {
    check_tensors(in, out);
    check_operation(operation, in);
    Comparison comparison(in, out, operation, input, output);
    const std::uint64_t total = in.batch * in.tokens;
    for (std::uint64_t i = 0; i < total; ++i) {
        comparison.token(i / in.tokens, i % in.tokens);
        if (progress) {
            progress(double(i + 1) / double(total));
        }
    }
    return comparison.finish();
}

}  // namespace vkrope::oracle
