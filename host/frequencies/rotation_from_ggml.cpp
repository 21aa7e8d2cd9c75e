// SPDX-License-Identifier: MIT
// Converts ggml's arguments, or the numbers of a node of its graph, to a rotation.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "base/defaults.hpp"
#include "base/status.hpp"
#include "frequencies/scaling_rules.hpp"

namespace vkrope {
namespace {

// GGML_ROPE_TYPE_... of ggml.h.
enum Mode : std::uint32_t { normal = 0, neox = 2, mrope = 8, vision = 24, imrope = 40 };

Status check_ggml_sections(const GgmlRope& rope) noexcept {
    std::uint64_t sum = 0;
    for (const std::uint32_t pairs : rope.sections) sum += pairs;
    const bool several = rope.mode != normal && rope.mode != neox;
    if (!several && sum != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "sections are set: mode %u has none",
                     rope.mode);
    }
    if (several && (sum == rope.sections[3] || sum > rope.head_dim)) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "sections have %llu pairs: one of the first three must have some, and all at "
                     "most head_dim, which is %u",
                     static_cast<unsigned long long>(sum), rope.head_dim);
    }
    return {};
}

// Sets the sections that rotate a pair and removes the others.
void set_sections(const GgmlRope& rope, vkrope_rope_params& rotation) noexcept {
    Sections& sections = rotation.sections;
    const std::uint32_t pairs = rotation.rotary_dim / 2;
    std::copy(std::begin(rope.sections), std::end(rope.sections), sections.pairs);
    if (rope.mode == imrope) {
        // The fourth id rotates a pair beyond the section of its axis.
        sections.order = VKROPE_SECTIONS_INTERLEAVED;
        sections.leftover_axis = 3;
        sections.axes = 3;
        for (std::uint32_t j = 0; j < pairs; ++j)
            if (axis_of(sections, j) == 3) sections.axes = 4;
        if (sections.pairs[3] != 0) sections.axes = 4;
        if (sections.axes == 3) sections.leftover_axis = 0;
        return;
    }
    std::uint32_t covered = 0;
    while (sections.axes < 4 && (sections.axes < 2 || covered < pairs))
        covered += sections.pairs[sections.axes++];
    if (covered >= pairs) std::fill(sections.pairs + sections.axes, std::end(sections.pairs), 0u);
    while (sections.axes > 2 && sections.pairs[sections.axes - 1] == 0) --sections.axes;
}

// Sets the frequencies of vision mode: spaced as for n_dims channels, and equal in each section.
Status restart_in_sections(const GgmlRope& rope, double* inv_freq) noexcept {
    std::uint32_t j = 0;
    for (const std::uint32_t pairs : rope.sections) {
        if (pairs == 0) break;
        const std::uint32_t begin = j;
        for (; j < rope.n_dims && j - begin < pairs; ++j)
            inv_freq[j] = std::pow(rope.freq_base, -2.0 * (j - begin) / rope.n_dims);
    }
    if (j == rope.n_dims) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "sections are %u, %u, %u, %u: in vision mode the sections in use must be above "
                 "0, and cover n_dims pairs, %u",
                 rope.sections[0], rope.sections[1], rope.sections[2], rope.sections[3],
                 rope.n_dims);
}

// Sets the rotation without its frequencies. In vision mode all channels rotate.
Status plain_rotation(const GgmlRope& rope, vkrope_rope_params& rotation) noexcept {
    const bool whole = rope.mode == vision;
    const std::uint32_t rotary_dim = whole ? rope.head_dim : rope.n_dims;
    if (rope.head_dim < 2 || rope.head_dim > max_head_dim) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "head_dim is %u: it must be 2 to %u",
                     rope.head_dim, max_head_dim);
    }
    if (rotary_dim < 2 || rotary_dim > rope.head_dim || rotary_dim % 2 != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "%s is %u: it must be even, 2 to %u",
                     whole ? "head_dim" : "n_dims", rotary_dim, rope.head_dim);
    }
    if (Status status = require_positive(rope.freq_base, "freq_base"); !status) return status;
    rotation.pairing = rope.mode == normal ? VKROPE_INTERLEAVED : VKROPE_HALF_SPLIT;
    rotation.head_dim = rope.head_dim;
    rotation.rotary_dim = rotary_dim;
    rotation.base = whole ? 0 : rope.freq_base;
    rotation.inv_freq_count = rotary_dim / 2;
    rotation.attention_factor = rotation.softmax_scale = 1;
    rotation.head_groups = 1;
    return {};
}

// Writes the frequencies, and the rotation of the arguments.
Status convert(const GgmlRope& given, double* inv_freq, std::size_t count,
               vkrope_rope_params& made) noexcept {
    GgmlRope rope = given;
    rope.freq_base = value_or(given.freq_base, 10000.0);
    if (rope.mode != normal && rope.mode != neox && rope.mode != mrope && rope.mode != vision &&
        rope.mode != imrope)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "mode is %u: it must be 0, 2, 8, 24 or 40",
                     rope.mode);
    const bool whole = rope.mode == vision;
    if (whole && rope.n_dims != rope.head_dim / 2)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "n_dims is %u: in vision mode it must be head_dim / 2, %u", rope.n_dims,
                     rope.head_dim / 2);
    vkrope_rope_params rotation;
    if (Status s = plain_rotation(rope, rotation); !s) return s;
    if (Status s = check_ggml_sections(rope); !s) return s;
    if (rope.ext_factor > 0) {
        if (Status s = require_above_one(rope.freq_base, "freq_base"); !s) return s;
    }
    if (Status s = not_null(inv_freq, "inv_freq"); !s) return s;
    if (count < rotation.inv_freq_count)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "count is %llu: the rotation has %llu frequencies",
                     static_cast<unsigned long long>(count),
                     static_cast<unsigned long long>(rotation.inv_freq_count));
    rotation.inv_freq = inv_freq;
    if (Status s = status_of(vkrope_default_inv_freq, rope.freq_base, rotation.rotary_dim,
                             inv_freq);
        !s)
        return s;
    if (whole) {
        if (Status s = restart_in_sections(rope, inv_freq); !s) return s;
    }
    if (rope.mode != normal && rope.mode != neox) set_sections(rope, rotation);
    GgmlScaling scaling;
    scaling.freq_scale = rope.freq_scale;
    scaling.ext_factor = rope.ext_factor;
    scaling.attn_factor = rope.attn_factor;
    scaling.beta_fast = rope.beta_fast;
    scaling.beta_slow = rope.beta_slow;
    scaling.n_ctx_orig = rope.n_ctx_orig;
    scaling.n_dims = rope.n_dims;
    scaling.freq_factors = rope.freq_factors;
    scaling.freq_factor_count = rope.freq_factor_count;
    rotation.rope_type = "default";
    if (rope.ext_factor > 0)
        rotation.rope_type = "yarn";
    else if (rope.freq_factor_count != 0)
        rotation.rope_type = "rope_freqs";
    else if (rope.freq_scale != 1 && rope.freq_scale != 0)
        rotation.rope_type = "linear";
    if (Status s = scale_as_ggml(inv_freq, rotation.inv_freq_count, rope.freq_base, scaling, !whole,
                                 rotation.attention_factor);
        !s)
        return s;
    made = rotation;
    return {};
}

// Words of op_params: what ggml calls them, and the places of some.
constexpr const char* name_of_word[16] = {
    "n_past",      "n_dims",      "mode",        "n_ctx",     "n_ctx_orig", "freq_base",
    "freq_scale",  "ext_factor",  "attn_factor", "beta_fast", "beta_slow",  "sections[0]",
    "sections[1]", "sections[2]", "sections[3]", "n_offs"};
constexpr int first_float = 5, first_section = 11, word_n_offs = 15;

// Reads the words. Refuses those without a meaning that are not 0, and those that a GgmlRope would
// replace by a default.
Status read(const std::int32_t* words, GgmlRope& rope) noexcept {
    double* const numbers[] = {&rope.freq_base,   &rope.freq_scale, &rope.ext_factor,
                               &rope.attn_factor, &rope.beta_fast,  &rope.beta_slow};
    for (int i = 0; i < 16; ++i) {
        if (i >= first_float && i < first_section) {
            float number;
            std::memcpy(&number, words + i, sizeof number);
            *numbers[i - first_float] = number;
            if (std::isfinite(number)) continue;
            return error(VKROPE_ERROR_INVALID_ARGUMENT,
                         "op_params[%d], %s, is %g: it must be finite", i, name_of_word[i],
                         double(number));
        }
        const bool unused = i == 0 || i == 3;
        if (unused ? words[i] == 0 : words[i] >= 0) continue;
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "op_params[%d], %s, is %d: it must be %s0", i,
                     name_of_word[i], int(words[i]), unused ? "" : "at least ");
    }
    rope.n_dims = std::uint32_t(words[1]);
    rope.mode = std::uint32_t(words[2]);
    rope.n_ctx_orig = words[4];
    std::copy_n(words + first_section, 4, rope.sections);
    if (Status s = require_positive(rope.freq_base, "op_params[5], freq_base,"); !s) return s;
    if (Status s = require_positive(rope.freq_scale, "op_params[6], freq_scale,"); !s) return s;
    if (Status s = require_not_negative(rope.ext_factor, "op_params[7], ext_factor,"); !s) return s;
    if (Status s = require_positive(rope.attn_factor, "op_params[8], attn_factor,"); !s) return s;
    if (rope.ext_factor == 0) return {};  // then the betas have no effect
    if (Status s = require_positive(rope.beta_fast, "op_params[9], beta_fast,"); !s) return s;
    return require_positive(rope.beta_slow, "op_params[10], beta_slow,");
}

// Checks the offset of the rotated channels.
Status check_n_offs(const GgmlRope& rope, std::uint32_t n_offs) noexcept {
    if (n_offs == 0) return {};
    if (rope.mode == vision)
        return error(VKROPE_ERROR_INVALID_ARGUMENT, "n_offs is %u: in vision mode it must be 0",
                     n_offs);
    if (n_offs % 2 == 0 && n_offs <= rope.head_dim - rope.n_dims) return {};
    return error(VKROPE_ERROR_INVALID_ARGUMENT,
                 "n_offs is %u: it must be even and at most head_dim - n_dims, %u - %u", n_offs,
                 rope.head_dim, rope.n_dims);
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_rope_params_from_ggml(const vkrope_ggml_rope* rope, double* inv_freq,
                                           size_t count, vkrope_rope_params* made,
                                           vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(rope, "rope"); !s) return s;
            if (Status s = not_null(made, "rotation"); !s) return s;
            return convert(*rope, inv_freq, count, *made);
        });
}

vkrope_result vkrope_rope_params_from_ggml_op(const int32_t op_params[16], uint32_t head_dim,
                                              const float* freq_factors, size_t freq_factor_count,
                                              double* inv_freq, size_t count,
                                              vkrope_rope_params* made, vkrope_error* failure) {
    return answer(
        failure,
        [&]() -> Status {
            if (Status s = not_null(op_params, "op_params"); !s) return s;
            if (Status s = not_null(made, "rotation"); !s) return s;
            if ((freq_factors == nullptr) != (freq_factor_count == 0))
                return error(VKROPE_ERROR_INVALID_ARGUMENT,
                             "freq_factor_count is %llu: freq_factors is %s",
                             static_cast<unsigned long long>(freq_factor_count),
                             freq_factors ? "given" : "null");
            GgmlRope rope;
            rope.head_dim = head_dim;
            if (Status s = read(op_params, rope); !s) return s;
            // A rotation has at most so many pairs.
            const std::size_t factors = std::min<std::size_t>(freq_factor_count, max_head_dim / 2);
            const std::unique_ptr<double[]> wide(new (std::nothrow) double[factors + 1]);
            if (!wide)
                return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "there is not enough host memory");
            std::copy_n(freq_factors, factors, wide.get());
            rope.freq_factors = wide.get();
            rope.freq_factor_count = factors;
            vkrope_rope_params rotation;
            if (Status s = convert(rope, inv_freq, count, rotation); !s) return s;
            const std::uint32_t n_offs = std::uint32_t(op_params[word_n_offs]);
            if (Status s = check_n_offs(rope, n_offs); !s) return s;
            rotation.q_rotary_offset = rotation.k_rotary_offset = n_offs;
            *made = rotation;
            return {};
        });
}
