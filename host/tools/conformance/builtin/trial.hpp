// SPDX-License-Identifier: MIT
// One rotation of Q and K, with the move of V, run on the device and compared with:
//
//   the oracle        every rotated element is within the bound of the contract, every other one
//                     and all of V equals its input
//   the definition    every element has the bits of the shader source evaluated with each f32
//                     operation rounded to nearest even
//   the guard zones   no byte around the rows has changed
//   the counter       has grown by one for each token whose position or slot is out of range
#pragma once

#include "cli/words.hpp"
#include "conformance/builtin/arrangement.hpp"
#include "conformance/builtin/check.hpp"
#include "conformance/builtin/element_array.hpp"

namespace vkrope::conformance {

struct Trial {
    KernelInfo info{
        .pairing = VKROPE_HALF_SPLIT,
        .angles = VKROPE_ANGLES_FACTORED_TEXTURE};  // a tensor with head_dim 0 is absent
    Shape shape = {};
    Arrangement in = Arrangement::bshd, out = Arrangement::bshd;
    bool in_place = false;
    Bytes q = {}, k = {}, v = {};  // [batch, tokens, heads, head_dim]; empty: random
    bool only_v = false;           // the call has neither Q nor K
    std::uint32_t seed = 1;

    // [head groups, summed axes, pairs]; empty: 10000^(-2j / rotary_dim), each set after the first
    // slower than the one before
    std::vector<double> inv_freq = {};
    std::vector<double> phase = {};  // [head groups, pairs], if info.phase
    double attention_factor = 1;
    AnglePrecision precision = VKROPE_ANGLE_PRECISION_EXACT;
    std::uint32_t table_rows = 64;  // see covers()
    Bytes cos = {}, sin = {};       // cos_sin_cache: [table_rows, row_stride] of info.table
    std::uint32_t row_stride = 0;

    std::int64_t first = 0,
                 batch_step = 0;  // implicit positions: first + sequence * batch_step + token
    std::vector<std::int64_t> ids = {};  // [axes, batch, tokens], if info.positions uses ids
    bool ids_64 = false;
    Direction direction = VKROPE_FORWARD;
    Gain gain = VKROPE_GAIN_APPLY;
    std::uint32_t page_size = 0;  // with info.scatter_kv
    bool pages_by_head = false, slots_64 = false;
    ReportedLimits limits = {};
};

/// The output rows, packed as [batch, tokens, heads, head_dim]; in pages, rows that no token names
/// are 0.
struct Rotated {
    Bytes q, k, v;
    std::uint64_t dispatches = 0;
    std::uint32_t outside = 0;  // value of the counter
};

/// Runs the trial. Throws Refusal if the library refuses it or the device fails.
Rotated run(DeviceUnderTest& device, const Trial& trial, Findings& findings);

// ---- For writing trials ----

/// A trial with only Q, `head_dim` channels, all rotated.
Trial trial_of(Element element, std::uint32_t head_dim, std::uint32_t tokens,
               Pairing pairing = VKROPE_HALF_SPLIT);

/// Returns true if the angles cover a position: |position| < table_rows; for a cos_sin_cache also
/// position >= 0; for computed angles every int32.
bool covers(const Trial& trial, std::int64_t position);

std::vector<double> inv_freq_of(const Trial& trial);
/// Returns cos and sin of the float32 product of position and frequency, each converted to float.
reference::CosSin float32_cos_sin(std::int64_t position, double inv_freq);

/// True if a kernel with this angle source has a binding left for the counter on this device.
bool has_counter(const DeviceUnderTest& device, const KernelInfo& info,
                 const ReportedLimits& limits = {});

inline const char* name_of(Element element) {
    return tools::word_for(tools::elements, element);
}
inline const char* name_of(Pairing pairing) {
    return tools::word_for(tools::pairings, pairing);
}
/// The sources of a command line, and the cos_sin_cache.
inline const char* name_of(AngleSource source) {
    return source == VKROPE_ANGLES_COS_SIN_CACHE ? "cos_sin_cache"
                                                 : tools::word_for(tools::angle_sources, source);
}
inline constexpr Element elements[] = {VKROPE_F32, VKROPE_F16, VKROPE_BF16};
inline constexpr AngleSource our_sources[] = {VKROPE_ANGLES_FACTORED_TEXTURE,
                                              VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_TEXTURE,
                                              VKROPE_ANGLES_DIRECT_BUFFER};
inline constexpr Pairing pairings[] = {VKROPE_HALF_SPLIT, VKROPE_INTERLEAVED};

std::vector<std::int64_t> random_positions(std::size_t count, std::int64_t lowest,
                                           std::int64_t highest, std::uint32_t seed);

/// Number of elements of Q, and of V, in `trial`.
std::size_t q_elements(const Trial& trial);
std::size_t v_elements(const Trial& trial);

/// Adds a phase of each head group and pair, up to some turns.
void add_phases(Trial& trial, std::uint32_t seed);

/// Adds a cos_sin_cache [table_rows, row_stride] to the trial, with columns after the pairs, or
/// after the channels if they have angles of their own, that must not be read.
///
/// ours  true: the values of fill_angles for this trial, for both channels of a pair; false:
///       arbitrary values
void add_cos_sin_cache(Trial& trial, Element table, std::uint32_t row_stride, bool ours);

}  // namespace vkrope::conformance
