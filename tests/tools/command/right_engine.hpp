// SPDX-License-Identifier: MIT
// The right engine of judge_right_test.cpp, in plain loops and in three kinds of arithmetic. It
// shares no code with the oracle but the rounding of elements.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/meaning.hpp"
#include "model_classes.hpp"
#include "operation/operation.hpp"

namespace vkrope::tools::right_engine {

inline constexpr std::uint64_t batch = 2;

// Returns pseudo-random numbers from -1 to 1.
struct Random {
    std::uint32_t state;
    double operator()() {
        state = state * 1664525 + 1013904223;
        return double(std::int32_t(state)) * 0x1p-31;
    }
};

inline float rounded(oracle::Type type, double x) {
    return oracle::widen(type, oracle::narrow(type, x));
}

// One tensor, and the operation that an engine is asked for.
struct Given {
    const ModelClass& model;
    TensorIndex which;
    oracle::Type type;
    std::uint64_t tokens = 3, heads = 2, head_dim = 0;
    OperationInputs inputs = {};  // the rotation, with the offsets of the rows, and the positions
    bool with_ops = false;
    oracle::Ops ops = {};
    std::optional<oracle::Store> store = {};
    std::vector<float> input = {};

    Given(const ModelClass& from, TensorIndex tensor, oracle::Type element, unsigned seed)
        : model(from), which(tensor), type(element) {
        RopeParams& rotation = inputs.rotation = model.rotation;
        std::uint32_t &q = rotation.q_rotary_offset, &k = rotation.k_rotary_offset;
        head_dim = rotation.head_dim;
        if (std::max(q, k) + rotation.rotary_dim > head_dim) {  // latent attention
            if (seed % 2 == 0) q = k = 0;                       // the rotated part alone
            head_dim += which == Q ? q : which == K ? k : 0;
        }
        if (seed % 8 == 0) tokens = 5 + seed / 8 % 5, heads = 3;
        if (head_dim > 1024) tokens = 2, heads = 1;
        if (rotation.head_groups > 1) heads = rotation.head_groups;
        set_positions(rotation, seed);
        Random random = {seed};
        set_ops(rotation.ops, random);
        input.resize(batch * tokens * heads * head_dim);
        for (float& x : input) x = rounded(type, 3 * random() * random());
    }

    double position(std::uint64_t axis, std::uint64_t token) const {
        return inputs.positions.ids[axis * batch * tokens + token];
    }

   private:
    // Sets two sequences that start at different positions, where the angles are below 10000.
    void set_positions(const RopeParams& rotation, unsigned seed) {
        double fastest = 1;
        for (const double each : rotation.inv_freq) fastest = std::max(fastest, std::fabs(each));
        const std::int32_t most = std::int32_t(8000 / fastest), starts[] = {90, 1200, 8000};
        inputs.batch = batch;
        inputs.tokens = std::uint32_t(tokens);
        inputs.positions.axes = rotation.sections.axes;
        for (std::int32_t axis = 0; axis < std::max(1, int(rotation.sections.axes)); ++axis) {
            for (const std::int32_t start :
                 {std::int32_t(seed % 4), std::min(most, starts[seed / 4 % 3])})
                for (std::int32_t t = 0; t < std::int32_t(tokens); ++t)
                    inputs.positions.ids.push_back(start / (1 + axis) + t * (1 + 2 * axis) % 11);
        }
    }

    void set_ops(const ModelOps& model_ops, Random& random) {
        Norm norm = model_ops.tensor[which].norm;
        // The norm of a part is that of a latent row, up to the channels that turn.
        if (norm.channels != 0 && norm.channels != inputs.rotation.k_rotary_offset) norm = {};
        const std::uint64_t normed = norm.channels == 0 ? head_dim : norm.channels;
        const auto parameters = [&](ParameterShape shape, double middle) {
            std::vector<double> made(shape == VKROPE_PARAMETER_NONE ? 0 : normed);
            if (shape == VKROPE_PARAMETER_HEAD_CHANNEL) made.resize(heads * normed);
            for (double& x : made) x = rounded(type, middle + 0.5 * random());
            return made;
        };
        ops.clip = model_ops.tensor[which].clip;
        ops.norm.kind = norm.kind == VKROPE_NORM_RMS     ? oracle::NormKind::rms
                        : norm.kind == VKROPE_NORM_LAYER ? oracle::NormKind::layer
                                                         : oracle::NormKind::none;
        ops.norm.over_token = norm.span == VKROPE_NORM_SPAN_TOKEN;
        ops.norm.channels = norm.channels;
        ops.norm.after = norm.place == VKROPE_NORM_PLACE_AFTER;
        ops.norm.eps = norm.eps;
        ops.norm.weight_offset = norm.weight_offset;
        ops.norm.weight = parameters(norm.weight, norm.weight_offset != 0 ? 0 : 1);
        ops.norm.bias = parameters(norm.bias, 0);
        const QueryScale& by_position = model_ops.query_scale;
        if (which == Q && by_position.kind != VKROPE_QUERY_SCALING_NONE) {
            std::vector<float> scales(batch * tokens);
            const std::int32_t* const positions = inputs.positions.ids.data();
            REQUIRE(status_of(vkrope_query_scales, &by_position, positions, scales.size(),
                              scales.data()));
            ops.scale_tokens.assign(scales.begin(), scales.end());
        }
        with_ops = which == V || norm.kind != VKROPE_NORM_NONE || ops.clip != 0 ||
                   !ops.scale_tokens.empty();
    }
};

// exact         angles in float64, arithmetic in float32, one rounding to the element type
// hugging_face  angles in float32, and every result rounded to the element type
// fast          as `exact`, but with sin and cos of fast hardware
enum class Way { exact, hugging_face, fast };

class Engine {
   public:
    Engine(const Given& given, Way way) : given_(given), way_(way) {}

    // Returns the output before it is stored.
    std::vector<float> run() {
        std::vector<float> out = given_.input;
        const oracle::Ops& ops = given_.ops;
        const std::uint64_t size = given_.heads * given_.head_dim;
        const float clip = ops.clip == 0 ? HUGE_VALF : float(ops.clip);
        for (std::uint64_t token = 0; token < batch * given_.tokens; ++token) {
            const std::span<float> rows = std::span(out).subspan(token * size, size);
            if (!ops.norm.after) normalise(rows);
            for (float& x : rows) x = std::clamp(x, -clip, clip);
            if (given_.which != V && !given_.model.rotation.no_rope) rotate(rows, token);
            if (ops.norm.after) normalise(rows);
            if (ops.scale_tokens.empty()) continue;
            for (float& x : rows) x = step(x * float(ops.scale_tokens[token]));
        }
        return out;
    }

   private:
    // Rounds the result of an operation, in an engine that stores each result.
    float step(float x) const { return way_ == Way::hugging_face ? rounded(given_.type, x) : x; }

    void normalise(std::span<float> rows) const {
        const oracle::Norm& norm = given_.ops.norm;
        if (norm.kind == oracle::NormKind::none) return;
        const bool rms = norm.kind == oracle::NormKind::rms;
        const std::uint64_t row = norm.over_token ? rows.size() : given_.head_dim,
                            n = norm.channels == 0 ? row : norm.channels;
        for (std::uint64_t first = 0; first < rows.size(); first += row) {
            double sum = 0, squares = 0;
            for (const float x : rows.subspan(first, n)) sum += x;
            const double mean = rms ? 0 : sum / double(n);
            for (const float x : rows.subspan(first, n)) squares += (x - mean) * (x - mean);
            const float root = 1 / std::sqrt(float(squares / double(n)) + float(norm.eps));
            for (std::uint64_t i = first; i < first + n; ++i) {
                float y = (rows[i] - float(mean)) * root;
                y = rms && norm.weight_offset == 0 ? step(y) : y;
                const std::uint64_t at = first / row * n + i - first;  // of its parameters
                if (!norm.weight.empty())
                    y *= float(norm.weight_offset + norm.weight[at % norm.weight.size()]);
                rows[i] = step(norm.bias.empty() ? y : y + float(norm.bias[at % norm.bias.size()]));
            }
        }
    }

    void rotate(std::span<float> rows, std::uint64_t token) {
        const RopeParams& rotation = given_.inputs.rotation;
        const bool interleaved = rotation.pairing == VKROPE_INTERLEAVED;
        const std::uint64_t offset = given_.which == Q ? rotation.q_rotary_offset
                                                       : rotation.k_rotary_offset;
        for (std::uint64_t head = 0; head < given_.heads; ++head) {
            const std::uint64_t group = head / (given_.heads / rotation.head_groups);
            random_ = {std::uint32_t(token * 977 + group)};  // heads share cos and sin
            std::uint64_t pair = 0;
            for (const Window& window : windows_of(rotation)) {
                float* const row = &rows[head * given_.head_dim + offset + window.offset];
                for (std::uint64_t i = 0; i < window.rotary_dim / 2; ++i, ++pair) {
                    const auto [c, s] = turn(token, group, pair);
                    float& x0 = row[interleaved ? 2 * i : i];
                    float& x1 = row[interleaved ? 2 * i + 1 : i + window.rotary_dim / 2];
                    const float y0 = step(step(x0 * c) - step(x1 * s));
                    x1 = step(step(x0 * s) + step(x1 * c));
                    x0 = y0;
                }
            }
        }
    }

    std::pair<float, float> turn(std::uint64_t token, std::uint64_t group, std::uint64_t pair) {
        const RopeParams& rotation = given_.inputs.rotation;
        const std::uint64_t axes = summed_axes(rotation.sections), pairs = rotation.rotary_dim / 2;
        double angle = 0;
        float rough = 0;
        for (std::uint64_t axis = 0; axis < axes; ++axis) {
            const double inv_freq = rotation.inv_freq[(group * axes + axis) * pairs + pair],
                         position = given_.position(
                             axes > 1 ? axis : axis_of(rotation.sections, std::uint32_t(pair)),
                             token);
            angle += position * inv_freq;
            rough += float(position) * float(inv_freq);
        }
        if (!rotation.phase.empty()) {
            angle += rotation.phase[group * pairs + pair];
            rough += float(rotation.phase[group * pairs + pair]);
        }
        const double factor = rotation.attention_factor;
        if (way_ == Way::hugging_face)
            return {step(std::cos(rough) * float(factor)), step(std::sin(rough) * float(factor))};
        const double error = way_ == Way::fast ? 0x1p-21 * angle : 0,
                     c = std::cos(angle) + error * random_(),
                     s = std::sin(angle) + error * random_();
        return {float(c * factor), float(s * factor)};
    }

    const Given& given_;
    Way way_;
    Random random_ = {1};
};

}  // namespace vkrope::tools::right_engine
