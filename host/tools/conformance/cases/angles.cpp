// SPDX-License-Identifier: MIT
#include "conformance/cases/angles.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "conformance/suite.hpp"
#include "io/element_type.hpp"

namespace vkrope::conformance {
namespace {

/// Returns the exponents e_j of a case.json: the frequency of pair j is base^(-2 e_j / n).
std::vector<std::uint32_t> exponents_of(const std::optional<SectionsCase>& sections,
                                        std::uint32_t pairs) {
    std::vector<std::uint32_t> exponents(pairs);
    std::iota(exponents.begin(), exponents.end(), 0);
    if (!sections || sections->mode != SectionMode::independent) {
        return exponents;
    }
    for (std::size_t pair = 0; pair < pairs;) {
        for (const std::uint32_t size : sections->sizes) {  // at least one size is above 0
            for (std::uint32_t exponent = 0; exponent < size && pair < pairs; ++exponent) {
                exponents[pair++] = exponent;
            }
        }
    }
    return exponents;
}

/// Returns the unscaled frequencies of the exponents 0 to count - 1 or more.
std::vector<double> unscaled(double base, std::uint32_t exponent_dim, std::uint32_t count) {
    if (exponent_dim % 2 == 0 && exponent_dim / 2 >= count && exponent_dim <= 65534) {
        std::vector<double> frequencies(exponent_dim / 2);
        check(default_inv_freq(base, exponent_dim, frequencies.data()), "angles: ");
        return frequencies;
    }
    // Beyond n / 2, base^(-2e / n) equals (base^(2 count / n))^(-2e / (2 count)).
    std::vector<double> frequencies(count);
    check(
        default_inv_freq(std::pow(base, 2.0 * count / exponent_dim), 2 * count, frequencies.data()),
        "angles: ");
    return frequencies;
}

std::uint64_t product(const std::vector<std::uint64_t>& numbers) noexcept {
    return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{1}, std::multiplies<>());
}

}  // namespace

Frequencies frequencies_of(const CaseFolder& folder, const BaseCase& base, double attention_factor,
                           const std::optional<SectionsCase>& sections, std::uint32_t pairs) {
    if (pairs == 0) {
        unsupported("rotary_dim is below 2");
    }
    const std::vector<std::uint32_t> exponents = exponents_of(sections, pairs);
    const std::uint32_t count = *std::max_element(exponents.begin(), exponents.end()) + 1;
    const std::uint32_t exponent_dim = base.exponent_dim.value_or(2 * pairs);
    std::vector<double> by_exponent = unscaled(base.base, exponent_dim, count);
    const ScalingCase& scaling = base.scaling;
    if (by_exponent.size() * 2 != exponent_dim && scaling.needs_all_pairs) {
        unsupported("angles.exponent_dim is {} for {} pairs: a scaling of this type needs them all",
                    exponent_dim, count);
    }
    if (!scaling.needs_all_pairs) {
        by_exponent.resize(count);
    }
    std::vector<double> divisors;
    if (!scaling.freq_factors.empty()) {
        constexpr std::uint64_t max_bytes = 1u << 20;  // small, since each window reads the file
        const npy::Array file = folder.array(scaling.freq_factors, max_bytes);
        for (std::size_t index = 0; index < std::min<std::size_t>(count_of(file), pairs); ++index) {
            divisors.push_back(value_at(file, index));
        }
    }
    Frequencies frequencies = {.inv_freq = {}, .attention_factor = attention_factor};
    const auto scale = [&](std::vector<double>& list) {
        if (scaling.scale) {
            check(scaling.scale(
                      {base.base, exponent_dim, list, frequencies.attention_factor, divisors}),
                  "angles.scaling: ");
        }
    };
    // The other scalings are applied before exponents are assigned to pairs.
    const bool scale_pairs = scaling.by_pair && sections &&
                             sections->mode == SectionMode::independent;
    if (!scale_pairs) {
        scale(by_exponent);
    }
    if (by_exponent.size() < count) {
        unsupported("angles: {} frequencies for {} pairs", by_exponent.size(), count);
    }
    for (const std::uint32_t exponent : exponents) {
        frequencies.inv_freq.push_back(by_exponent[exponent]);
    }
    if (scale_pairs) {
        scale(frequencies.inv_freq);
    }
    return frequencies;
}

std::vector<std::uint64_t> add_cos_sin_cache(const CaseFolder& folder, const CacheCase& cache,
                                             verify::Operation& operation, verify::Memory& memory) {
    const npy::Array cos = folder.array(cache.cos), sin = folder.array(cache.sin);
    if (cos.header.shape != sin.header.shape || cos.header.type != sin.header.type) {
        wrong_file("cos has shape {} of {}, sin {} of {}: they must be alike",
                   npy::shape_text(cos.header.shape), npy::name(cos.header.type),
                   npy::shape_text(sin.header.shape), npy::name(sin.header.type));
    }
    const std::vector<std::uint64_t>& shape = cos.header.shape;
    const std::optional<Element> element = tools::element_of(cos.header.type);
    if (!element) {
        unsupported("cos and sin of {}; the library's tables are f32, f16 or bf16",
                    npy::name(cos.header.type));
    }
    if (cache.dtype && *cache.dtype != *element) {
        wrong_file("cos and sin have data of type {}; angles.dtype needs {}",
                   npy::name(cos.header.type), npy::name(tools::npy_type(*cache.dtype)));
    }
    const std::uint32_t pairs = operation.info.rotary_dim / 2;
    const std::uint64_t width = cache.width == TableWidth::half ? pairs : 2 * std::uint64_t{pairs};
    const bool right_rank = cache.direct ? shape.size() == 2 || shape.size() == 3
                                         : shape.size() == 2;
    if (!right_rank || shape.back() != width) {
        wrong_file("cos and sin have shape {}; it must be ({}, {})", npy::shape_text(shape),
                   cache.direct ? "[batch,] tokens" : "positions", width);
    }
    const std::uint64_t rows = product({shape.begin(), shape.end() - 1});
    if (rows > max_positions) {
        unsupported("cos and sin have {} rows", rows);
    }
    operation.info.angles = VKROPE_ANGLES_COS_SIN_CACHE;
    operation.info.table = *element;
    operation.info.channel_angles = cache.width == TableWidth::full;
    operation.max_position = static_cast<std::uint32_t>(rows);
    operation.row_stride = static_cast<std::uint32_t>(width);
    check(plan_cos_sin_cache(pairs, operation.max_position, operation.row_stride, *element,
                             operation.info.channel_angles)
              .status,
          "angles: ");
    operation.call.angles.buffer = memory.put(cos.data);
    operation.call.angles.sin = memory.put(sin.data);
    // The files do not contain the attention factor f. To apply f, the operation declares that the
    // table contains 1 / f, and VKROPE_GAIN_OMIT removes 1 / f.
    const double factor = operation.attention_factor;
    const double wanted = operation.call.gain == VKROPE_GAIN_APPLY  ? factor
                          : operation.call.gain == VKROPE_GAIN_OMIT ? 1
                                                                    : 1 / factor;
    operation.attention_factor = 1 / wanted;
    operation.call.gain = wanted == 1 ? VKROPE_GAIN_APPLY : VKROPE_GAIN_OMIT;
    return shape;
}

}  // namespace vkrope::conformance
