// SPDX-License-Identifier: MIT
// vkrope accuracy: RoPE in float32, as other implementations compute it.
#include <cmath>
#include <utility>

#include "accuracy/accuracy.hpp"
#include "reference/oracle.hpp"

namespace vkrope::tools {
namespace {

// A product, sum or difference of floats computed in double and then rounded equals the float
// result, and no compiler can contract it.
float times(float a, float b) {
    return static_cast<float>(double(a) * double(b));
}
float plus(float a, float b) {
    return static_cast<float>(double(a) + double(b));
}

FloatAngles product_with(std::string name, std::string label, std::vector<float> inv_freq) {
    const auto fill = [inv_freq = std::move(inv_freq)](std::int32_t position,
                                                       std::vector<float>& angles) {
        for (std::size_t j = 0; j < inv_freq.size(); ++j) {
            angles[j] = times(static_cast<float>(position), inv_freq[j]);
        }
    };
    return {std::move(name), std::move(label), fill};
}

/// The rope shaders of the Vulkan backend of ggml: position * pow(theta_scale, pair), here with a
/// correctly rounded pow, which a driver need not have. The freq_factor holds the scaling of each
/// pair.
FloatAngles ggml_angles(const Rotation& rotation, std::vector<double> freq_factors) {
    const auto pairs = static_cast<double>(rotation.inv_freq.size());
    const auto theta_scale = static_cast<float>(std::pow(rotation.base, -1 / pairs));
    for (std::size_t j = 0; j < freq_factors.size(); ++j) {
        freq_factors[j] /= rotation.inv_freq[j];
    }
    const auto fill = [theta_scale, freq_factors](std::int32_t position,
                                                  std::vector<float>& angles) {
        for (std::size_t j = 0; j < angles.size(); ++j) {
            const auto power = static_cast<float>(std::pow(double(theta_scale), double(j)));
            angles[j] = times(static_cast<float>(position), power) /
                        static_cast<float>(freq_factors[j]);
        }
    };
    return {"ggml_pow", "float32 with pow (ggml)", fill};
}

}  // namespace

std::vector<FloatAngles> float_angles(const Rotation& rotation) {
    std::vector<float> nearest, bf16;
    for (const double frequency : rotation.inv_freq) {
        nearest.push_back(static_cast<float>(frequency));
        bf16.push_back(reference::widen(reference::Type::bf16,
                                        reference::narrow(reference::Type::bf16, frequency)));
    }
    std::vector<FloatAngles> ways;
    ways.push_back(
        product_with("float32_product", "float32 product (Hugging Face)", std::move(nearest)));
    std::vector<double> unscaled(rotation.inv_freq.size());
    if (rotation.base > 0 &&
        default_inv_freq(rotation.base, rotation.rotary_dim, unscaled.data())) {
        ways.push_back(ggml_angles(rotation, std::move(unscaled)));
    }
    ways.push_back(
        product_with("bf16_inv_freq", "inv_freq in bf16, float32 product", std::move(bf16)));
    return ways;
}

std::vector<float> rotated_by(const FloatAngles& way, const Rotation& rotation,
                              const std::vector<std::int32_t>& positions, std::uint32_t heads,
                              const std::vector<float>& input) {
    const std::size_t pairs = rotation.inv_freq.size();
    const auto factor = static_cast<float>(rotation.attention_factor);
    std::vector<float> output(input.size()), angles(pairs);
    std::size_t row = 0;
    for (const std::int32_t position : positions) {
        way.fill(position, angles);
        for (std::size_t j = 0; j < pairs; ++j) {
            const long double angle = angles[j];
            const float c = times(static_cast<float>(std::cos(angle)), factor);
            const float s = times(static_cast<float>(std::sin(angle)), factor);
            for (std::size_t head = 0; head < heads; ++head) {
                const std::size_t first = row + head * 2 * pairs + j, second = first + pairs;
                output[first] = plus(times(input[first], c), -times(input[second], s));
                output[second] = plus(times(input[first], s), times(input[second], c));
            }
        }
        row += heads * 2 * pairs;
    }
    return output;
}

}  // namespace vkrope::tools
