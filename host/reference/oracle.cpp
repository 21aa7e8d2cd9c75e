// SPDX-License-Identifier: MIT
#include "reference/oracle.hpp"

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "reference/element.hpp"

static_assert(LDBL_MANT_DIG >= 64, "the oracle needs a long double that is wider than double");

namespace vkrope::reference {
namespace {

constexpr double unit = 0x1p-24;  // u: half an ulp of 1 in f32

struct Place {
    std::uint64_t batch = 0, token = 0, head = 0, channel = 0;
};

/// cos and sin of one pair at one position, with the attention factor and the direction's sign.
struct Angle {
    long double cos = 0, sin = 0;
};

std::uint32_t load(const void* elements, std::size_t bytes, std::uint64_t index) {
    if (bytes == 4) {
        std::uint32_t bits;
        std::memcpy(&bits, static_cast<const char*>(elements) + index * 4, 4);
        return bits;
    }
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const char*>(elements) + index * 2, 2);
    return bits;
}

class Comparison {
   public:
    Comparison(const Tensor& tensor, const Operation& operation, const void* input, const void* output)
        : tensor_(tensor), operation_(operation), input_(input), output_(output), element_(tensor.type),
          bytes_(tensor.type == Type::f32 ? 4 : 2), angles_(operation.inv_freq.size()) {}

    void token(std::uint64_t batch, std::uint64_t token) {
        turn_to(operation_.positions[batch * tensor_.tokens + token]);
        for (std::uint64_t head = 0; head < tensor_.heads; ++head) {
            row({batch, token, head, 0});
        }
    }

    Verdict finish() {
        if (!first_wrong_.empty()) {
            verdict_.worst = first_wrong_;
        } else if (verdict_.largest_error_u > 0) {
            verdict_.worst = describe(worst_place_, worst_got_, worst_exact_);
        }
        return verdict_;
    }

   private:
    void turn_to(std::int64_t position) {
        const long double gain = operation_.attention_factor;
        for (std::size_t j = 0; j < angles_.size(); ++j) {
            // 31 bits times 53 are more than a long double holds: `rest` is what the product lost, exactly, and turns cos and sin
            // by what is then a tiny angle.
            const long double inv_freq = operation_.inv_freq[j];
            const long double angle = static_cast<long double>(position) * inv_freq;
            const long double rest = std::fma(static_cast<long double>(position), inv_freq, -angle);
            const long double c = std::cos(angle), s = std::sin(angle);
            const long double cosine = gain * (c - rest * s), sine = gain * (s + rest * c);
            angles_[j] = {cosine, operation_.inverse ? -sine : sine};
        }
    }

    void row(Place place) {
        const std::uint64_t first =
            place.batch * tensor_.batch_stride + place.token * tensor_.token_stride + place.head * tensor_.head_stride;
        const std::uint64_t pairs = angles_.size();
        const std::uint64_t window = operation_.rotary_offset;
        for (std::uint64_t j = 0; j < pairs; ++j) {
            const std::uint64_t c0 = window + (operation_.interleaved ? 2 * j : j);
            const std::uint64_t c1 = operation_.interleaved ? c0 + 1 : c0 + pairs;
            const long double x0 = element_.widen(load(input_, bytes_, first + c0));
            const long double x1 = element_.widen(load(input_, bytes_, first + c1));
            const Angle& a = angles_[j];
            const double scale = unit * operation_.attention_factor * double(std::fabs(x0) + std::fabs(x1));
            place.channel = c0;
            rotated(place, first + c0, x0 * a.cos - x1 * a.sin, scale);
            place.channel = c1;
            rotated(place, first + c1, x0 * a.sin + x1 * a.cos, scale);
        }
        for (place.channel = 0; place.channel < tensor_.head_dim; ++place.channel) {
            if (place.channel == window) {
                place.channel += 2 * pairs;
                if (place.channel >= tensor_.head_dim) {
                    break;
                }
            }
            passed_through(place, first + place.channel);
        }
    }

    void rotated(const Place& place, std::uint64_t index, long double exact, double scale) {
        ++verdict_.elements;
        const std::uint32_t got = load(output_, bytes_, index);
        const bool got_nan = std::isnan(element_.widen(got));
        if (std::isnan(exact) || got_nan) {
            if (!std::isnan(exact) || !got_nan) {
                verdict_.nan_mismatch = true;
                wrong(place, got, exact);
            }
            return;
        }
        const double error = double(element_.distance(got, exact)) - operation_.absolute_allowance;
        // Divides only where a new maximum is in sight. The scale may be infinite with the input; 0 * infinity compares false.
        const bool infinite = std::isinf(error) && !std::isinf(verdict_.largest_error_u);
        if (infinite || (error > 0 && error > verdict_.largest_error_u * scale)) {
            verdict_.largest_error_u = infinite ? error : error / scale;
            worst_place_ = place;
            worst_got_ = got;
            worst_exact_ = exact;
        }
    }

    void passed_through(const Place& place, std::uint64_t index) {
        ++verdict_.elements;
        ++verdict_.passed_through;
        const std::uint32_t expected = load(input_, bytes_, index);
        const std::uint32_t got = load(output_, bytes_, index);
        if (got != expected) {
            verdict_.bits_changed = true;
            wrong(place, got, element_.widen(expected));
        }
    }

    void wrong(const Place& place, std::uint32_t got, long double exact) {
        if (first_wrong_.empty()) {
            first_wrong_ = describe(place, got, exact);
        }
    }

    std::string describe(const Place& place, std::uint32_t got, long double exact) const {
        using ull = unsigned long long;
        char text[200];
        std::snprintf(text, sizeof text, "batch %llu token %llu head %llu channel %llu: got %.9g (0x%0*x), exact %.12Lg",
                      ull{place.batch}, ull{place.token}, ull{place.head}, ull{place.channel}, double(element_.widen(got)),
                      int(2 * bytes_), got, exact);
        return text;
    }

    const Tensor& tensor_;
    const Operation& operation_;
    const void* input_;
    const void* output_;
    const ElementTable element_;
    const std::size_t bytes_;
    std::vector<Angle> angles_;  // of the current token
    Verdict verdict_;
    std::string first_wrong_;
    Place worst_place_;
    std::uint32_t worst_got_ = 0;
    long double worst_exact_ = 0;
};

}  // namespace

Verdict compare(const Tensor& tensor, const Operation& operation, const void* input, const void* output,
                const std::function<void(double)>& progress) {
    if (operation.positions.size() != tensor.batch * tensor.tokens) {
        throw std::invalid_argument("oracle: positions must have batch * tokens elements");
    }
    if (operation.rotary_offset + 2 * operation.inv_freq.size() > tensor.head_dim) {
        throw std::invalid_argument("oracle: the window must lie inside head_dim");
    }
    Comparison comparison(tensor, operation, input, output);
    const std::uint64_t total = tensor.batch * tensor.tokens;
    for (std::uint64_t i = 0; i < total; ++i) {
        comparison.token(i / tensor.tokens, i % tensor.tokens);
        if (progress) {
            progress(double(i + 1) / double(total));
        }
    }
    return comparison.finish();
}

}  // namespace vkrope::reference
