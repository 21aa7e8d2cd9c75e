// SPDX-License-Identifier: MIT
#include "verify/oracle/ops.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "verify/oracle/quantise.hpp"
#include "verify/oracle/rows.hpp"
#include "verify/oracle/turns.hpp"

namespace vkrope::oracle {
namespace {

constexpr long double unit = 0x1p-24L;  // u: half an ulp of 1 in f32

// Errors below are sums of first-order terms; this factor covers products of two of them.
constexpr long double second_order = 1.001L;

// Adds the rounding error of `roundings` f32 operations to the error of their result.
void round_off(Approximate& channel, long double roundings, long double allowance) {
    channel.error += roundings * unit * (std::fabs(channel.value) + channel.error) + allowance;
}

long double clamped(long double value, long double limit) {
    return std::isnan(value) ? value : std::min(std::max(value, -limit), limit);
}

// Rounds to a stored type. Rounding is monotonic, so the ends of an interval stay its ends.
void round_to(Type type, Approximate& channel) {
    if (type == Type::f32 || std::isnan(channel.value)) return;
    const auto stored = [type](long double value) -> long double {
        return widen(type, narrow(type, value));
    };
    const long double value = stored(channel.value);
    channel.error = channel.error == 0 ? 0
                                       : std::max(stored(channel.value + channel.error) - value,
                                                  value - stored(channel.value - channel.error));
    channel.value = value;
}

int ceil_log2(std::uint64_t number) {
    return int(std::bit_width(number - 1));
}

// 1 / sqrt(square + eps), and its relative error if the square is off by up to `spread`.
struct Root {
    long double value = 0, relative_error = 0;
};

Root reciprocal_root(const Norm& norm, long double square, long double spread, std::uint64_t n) {
    if (norm.reciprocal_root) return {norm.reciprocal_root(square, n), 0};
    const auto root = [&norm](long double of) {
        return 1 / std::sqrt(of + static_cast<long double>(norm.eps));
    };
    const long double value = root(square);
    const long double high = root(std::max(square - spread, 0.0L)), low = root(square + spread);
    return {value, std::max(high / value - 1, 1 - low / value)};
}

// Returns the number of channels of a head row that the norm takes.
std::uint64_t normed_channels(const Norm& norm, const Tensor& in) {
    return norm.channels == 0 ? in.head_dim : norm.channels;
}

// Applies the ops to the channels of a token.
class Token {
   public:
    explicit Token(const Definition& definition)
        : definition_(definition), in_(definition.in), operation_(definition.operation),
          steps_(definition.ops), bound_u_(definition.bound_u),
          allowance_(operation_.absolute_allowance),
          flushed_(has_steps(steps_) && allowance_ > 0x1p-148L ? 0x1p-123L : 0),
          factor_(factor_of(operation_)), pairs_(pairs_of(operation_)),
          normed_(normed_channels(steps_.norm, in_)), channels_(in_.heads * in_.head_dim) {}

    std::span<const Approximate> finished(std::uint64_t batch, std::uint64_t token,
                                          const void* input) {
        load_rows(batch, token, input);
        transform(steps_.hadamard_of_input);
        const std::uint64_t index = batch * in_.tokens + token;
        second_ = steps_.second && token >= steps_.second->from_token ? &*steps_.second : nullptr;
        if (!steps_.bias.empty()) {
            const std::vector<double>& bias = second_ ? second_->bias : steps_.bias;
            for (std::size_t i = 0; i < channels_.size(); ++i) {
                channels_[i].value += of_channel(bias, i);
                round_off(channels_[i], 1, allowance_);
            }
        }
        if (!steps_.norm.after) norm();
        if (steps_.clip != 0) {
            for (Approximate& channel : channels_) {
                if (std::isinf(channel.value))
                    channel.error = 0;  // the error of the bias does not change an infinity
                channel.value = clamped(channel.value, steps_.clip);
            }
        }
        rotate(index);
        if (steps_.norm.after) norm();
        scale(index);
        transform(steps_.hadamard);
        return channels_;
    }

   private:
    void load_rows(std::uint64_t batch, std::uint64_t token, const void* input) {
        for (std::uint64_t head = 0; head < in_.heads; ++head) {
            const auto row = std::span(channels_).subspan(head * in_.head_dim, in_.head_dim);
            read_row(definition_, input, {batch, token, head, 0}, row);
            for (Approximate& channel : row) channel.error += flushed_;
        }
    }

    void transform(std::uint64_t block) {
        for (std::size_t first = 0; block != 0 && first < channels_.size(); first += in_.head_dim)
            hadamard(std::span(channels_).subspan(first, in_.head_dim), block,
                     operation_.absolute_allowance);
    }

    // Returns the parameter of channel i of the token; heads have one each or share one.
    static long double of_channel(const std::vector<double>& parameter, std::size_t i) {
        return parameter[i % parameter.size()];
    }

    void norm() {
        if (steps_.norm.kind == NormKind::none) return;
        const std::size_t together = steps_.norm.over_token ? in_.heads : 1;
        for (std::size_t first = 0; first < in_.heads; first += together) {
            row_.clear();
            for (std::size_t head = first; head < first + together; ++head) {
                const std::span<Approximate> part = normed_part(head);
                row_.insert(row_.end(), part.begin(), part.end());
            }
            const bool finite = std::all_of(
                row_.begin(), row_.end(),
                [](const Approximate& channel) { return std::isfinite(channel.value); });
            if (steps_.norm.kind == NormKind::rms)
                rms_norm(row_, finite);
            else
                layer_norm(row_, finite);
            weigh(row_, first * normed_);
            for (std::size_t i = 0; i < together; ++i)
                std::copy_n(row_.begin() + std::ptrdiff_t(i * normed_), normed_,
                            normed_part(first + i).begin());
        }
    }

    // Returns the channels of a head row that the norm takes.
    std::span<Approximate> normed_part(std::size_t head) {
        return std::span(channels_).subspan(head * in_.head_dim + steps_.norm.first_channel,
                                            normed_);
    }

    // Returns the number of successive roundings in a sum over the row.
    int adds() const {
        return ceil_log2(normed_) + (steps_.norm.over_token ? ceil_log2(in_.heads) : 0);
    }

    void rms_norm(std::span<Approximate> row, bool finite) {
        const auto n = static_cast<long double>(row.size());
        long double square = 0, spread = 0;
        for (const auto& [value, error] : row) {
            square += value * value / n;
            spread += (2 * std::fabs(value) + error) * error / n;
        }
        const Root root = reciprocal_root(steps_.norm, square, finite ? spread : 0, row.size());
        for (Approximate& channel : row) {
            // An infinity becomes NaN, and every other channel becomes 0.
            const long double size = std::fabs(channel.value) + channel.error;
            channel.error = root.value * (channel.error + size * root.relative_error);
            channel.value *= root.value;
            round_off(channel, adds() / 2.0L + 5, allowance_);
            settle(channel, finite);
        }
    }

    // The mean m and the sums of d = x - m and of d^2 are rounded; the mean of d is subtracted
    // from d, and the square of this mean from the variance.
    void layer_norm(std::span<Approximate> row, bool finite) {
        const auto n = static_cast<long double>(row.size());
        long double mean = 0, size = 0, error = 0;
        for (const Approximate& channel : row) {
            mean += channel.value / n;
            size += (std::fabs(channel.value) + channel.error) / n;
            error += channel.error / n;
        }
        long double square = 0, off_square = 0, spread = 0, deviation = 0;
        for (const Approximate& channel : row) {
            const long double d = channel.value - mean, off = channel.error + error;
            square += d * d / n;
            deviation += (std::fabs(d) + off) / n;
            off_square += off * off / n;
            spread += (2 * std::fabs(d) + off) * off / n;
        }
        const long double k = adds();
        // The computed mean is off by at most `shift`, the mean of d differs from zero by at most
        // `left`, and the computed mean of d differs from the mean of d by at most `missed`.
        const long double shift = (k + 2) * unit * size;
        const long double left = shift + unit * (deviation + shift);
        const long double missed = (k + 2) * unit * (deviation + left);
        const long double width = std::sqrt(square) + std::sqrt(off_square);  // of all d
        const long double loose = unit * (width + shift);  // rounding d adds this to the width
        spread += second_order *
                  ((2 * width + loose) * loose + (k + 3) * unit * (width * width + left * left) +
                   (2 * left + missed) * missed + unit * (left + missed) * (left + missed) +
                   unit * (width * width + steps_.norm.eps));
        const Root root = reciprocal_root(steps_.norm, square, finite ? spread : 0, row.size());
        // The products of a sum and 1 / n that give the mean and the mean of d are rounded to
        // multiples of 2^-149 if they are subnormal, or to zero if the device flushes subnormals.
        const long double underflow = 2 * (0x1p-150L + flushed_);
        for (Approximate& channel : row) {
            const long double d = channel.value - mean;
            const long double far = std::fabs(d) + channel.error + error;
            const long double off = channel.error + error + underflow +
                                    second_order * unit *
                                        (2 * far + shift + (k + 3) * (deviation + left));
            channel.value = d * root.value;
            channel.error = root.value * (off + (far + off) * root.relative_error);
            round_off(channel, 3, allowance_);  // 1.8 for the root, 1 for the product
            settle(channel, finite);
        }
    }

    // Clears the error if all results are infinity, 0 or NaN; rounds if the norm rounds here.
    void settle(Approximate& channel, bool finite) const {
        if (!finite) channel.error = 0;
        if (steps_.norm.round_between) round_to(*steps_.norm.round_between, channel);
    }

    void weigh(std::span<Approximate> row, std::size_t first) {
        const Norm& norm = steps_.norm;
        const std::vector<double>&weights = second_ ? second_->weight : norm.weight,
              &biases = second_ ? second_->norm_bias : norm.bias;
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (!norm.weight.empty()) {
                const long double weight = of_channel(weights, first + i) + norm.weight_offset;
                row[i].value *= weight;
                row[i].error *= std::fabs(weight);
                round_off(row[i], 2, allowance_);
                if (norm.round_between) round_to(*norm.round_between, row[i]);
            }
            if (!norm.bias.empty()) {
                row[i].value += of_channel(biases, first + i);
                round_off(row[i], 1, allowance_);
            }
        }
    }

    void rotate(std::size_t token) {
        if (pairs_.empty()) return;
        const bool covered = is_covered(operation_, token);
        if (covered) turn_to(operation_, token, turns_);
        for (std::uint64_t head = 0; head < in_.heads; ++head) {
            const std::span<Approximate> row = std::span(channels_).subspan(head * in_.head_dim,
                                                                            in_.head_dim);
            const std::size_t group = head / (in_.heads / operation_.head_groups);
            row_.assign(row.begin(), row.end());
            for (std::size_t j = 0; j < pairs_.size(); ++j) {
                const Approximate &x0 = row_[pairs_[j].in[0]], &x1 = row_[pairs_[j].in[1]];
                Approximate &y0 = row[pairs_[j].out[0]], &y1 = row[pairs_[j].out[1]];
                if (!covered) {
                    y0 = x0;
                    y1 = x1;
                    continue;
                }
                const auto [c, s] = turns_[group * pairs_.size() + j];
                const long double size = std::fabs(x0.value) + x0.error + std::fabs(x1.value) +
                                         x1.error;
                const long double rounding = bound_u_ * unit * factor_ * size + allowance_;
                y0 = {x0.value * c - x1.value * s,
                      std::fabs(c) * x0.error + std::fabs(s) * x1.error + rounding};
                y1 = {x0.value * s + x1.value * c,
                      std::fabs(s) * x0.error + std::fabs(c) * x1.error + rounding};
            }
        }
    }

    void scale(std::uint64_t index) {
        const long double factor = steps_.scale *
                                   (steps_.scale_tokens.empty()
                                        ? 1.0L
                                        : static_cast<long double>(steps_.scale_tokens[index]));
        const int roundings = (steps_.scale != 1 ? 1 : 0) +
                              (steps_.scale != double(float(steps_.scale)) ? 1 : 0) +
                              (steps_.scale_tokens.empty() ? 0 : 1);
        if (roundings == 0) return;
        for (Approximate& channel : channels_) {
            channel.value *= factor;
            channel.error *= std::fabs(factor);
            round_off(channel, roundings, allowance_ * (1 + std::fabs(factor)));
        }
    }

    const Definition& definition_;
    const Tensor& in_;
    const Operation& operation_;
    const Ops& steps_;
    const long double bound_u_, allowance_;
    const long double flushed_;  // error of an input on a device that flushes subnormals
    const long double factor_;
    const std::vector<Pair> pairs_;
    const std::size_t normed_;  // channels of a head row that the norm takes
    std::vector<CosSin> turns_;
    std::vector<Approximate> channels_;    // [heads, head_dim]
    std::vector<Approximate> row_;         // before its rotation, or in a norm
    const Ops::Second* second_ = nullptr;  // only for tokens that use the second set
};

void check_parameter(const std::vector<double>& parameter, std::uint64_t channels,
                     std::uint64_t heads, const char* rule) {
    require(
        parameter.empty() || parameter.size() == channels || parameter.size() == heads * channels,
        rule);
}

void check_steps(const Tensor& in, const Ops& steps) {
    const std::uint64_t normed = normed_channels(steps.norm, in);
    require(steps.norm.first_channel + normed <= in.head_dim,
            "oracle: the norm's channels must lie inside head_dim");
    check_parameter(steps.bias, in.head_dim, in.heads,
                    "oracle: bias must be [head_dim] or [heads, head_dim]");
    check_parameter(steps.norm.weight, normed, in.heads,
                    "oracle: norm.weight must be [channels] or [heads, channels]");
    check_parameter(steps.norm.bias, normed, in.heads,
                    "oracle: norm.bias must be [channels] or [heads, channels]");
    if (steps.second) {
        require((steps.bias.empty() || steps.second->bias.size() == steps.bias.size()) &&
                    (steps.norm.weight.empty() ||
                     steps.second->weight.size() == steps.norm.weight.size()) &&
                    (steps.norm.bias.empty() ||
                     steps.second->norm_bias.size() == steps.norm.bias.size()),
                "oracle: the second parameters must have the shapes of the first");
    }
    require(steps.scale_tokens.empty() || steps.scale_tokens.size() == in.batch * in.tokens,
            "oracle: scale_tokens must have batch * tokens elements");
}

}  // namespace

bool has_steps(const Ops& steps) {
    return !steps.bias.empty() || steps.norm.kind != NormKind::none || steps.clip != 0 ||
           steps.scale != 1 || !steps.scale_tokens.empty() || steps.hadamard != 0 ||
           steps.hadamard_of_input != 0;
}

void read_row(const Definition& definition, const void* input, const Place& place,
              std::span<Approximate> row) {
    const Tensor& in = definition.in;
    const std::uint64_t first = row_of(in, place);
    if (!definition.read) {
        const ElementTable& elements = table_of(in.type);
        for (std::uint64_t c = 0; c < row.size(); ++c)
            row[c] = {elements.widen(load(input, bytes_of(in.type), first + c)), 0};
        return;
    }
    const QuantisedInput& read = *definition.read;
    const bool flushes = definition.operation.absolute_allowance > 0x1p-148;
    const std::uint64_t channels = block_channels(read.type), size = block_bytes(read.type),
                        group = read.group == 0 ? row.size() : read.group,
                        index = (place.batch * in.tokens + place.token) * in.heads + place.head;
    const std::span bytes(static_cast<const std::uint8_t*>(input) + first / channels * size,
                          row.size() / channels * size);
    for (std::uint64_t start = 0; start < row.size(); start += group) {
        const float scale = read.scales.empty() ? 1.f
                                                : read.scales[(index * row.size() + start) / group];
        const std::vector<float> values = dequantise(
            read.type, bytes.subspan(start / channels * size, group / channels * size), scale);
        for (std::uint64_t c = 0; c < group; ++c) {
            const bool lost = flushes && (std::fpclassify(scale) == FP_SUBNORMAL ||
                                          std::fpclassify(values[c]) == FP_SUBNORMAL);
            row[start + c] = {values[c], lost ? std::fabs(values[c]) : 0.f};
        }
    }
}

void apply_ops(const Definition& definition, const void* input,
               const std::function<void(std::uint64_t batch, std::uint64_t token,
                                        std::span<const Approximate> channels)>& visit) {
    const Tensor& in = definition.in;
    check_operation(definition.operation, in);
    check_steps(in, definition.ops);
    Token token(definition);
    for (std::uint64_t i = 0; i < in.batch * in.tokens; ++i)
        if (row_of(in, {i / in.tokens, i % in.tokens, 0, 0}) != nowhere)
            visit(i / in.tokens, i % in.tokens,
                  token.finished(i / in.tokens, i % in.tokens, input));
}

}  // namespace vkrope::oracle
