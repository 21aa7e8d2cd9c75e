// SPDX-License-Identifier: MIT
// The contents of a case.json, "rope-case/1" or "rope-case/2": an operation without its memory, and
// the names and formats of the files with its data, which are not read here.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "conformance/cases/steps.hpp"
#include "conformance/cases/tolerance.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::conformance {

/// A view of a flat buffer, in elements.
struct ParentView {
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;
};

struct TensorCase {
    std::string file;
    std::vector<std::uint64_t> shape;
    std::string layout;  // that of the tensor, or the common layout
    std::optional<std::uint64_t> num_heads;
    std::optional<ParentView> view;
    std::string expected;  // file; empty: no expected output
};

struct WindowCase {
    std::uint32_t offset = 0, rotary_dim = 0, axis = 0;
};

enum class PositionKind { none, offset, per_batch_offset, explicit_ids, varlen, context_parallel };

struct PositionsCase {
    PositionKind kind = PositionKind::none;
    std::int64_t value = 0;  // for offset
    std::string axes;        // for explicit
    std::optional<Integers>
        numbers;  // for explicit: ids; for the other kinds: the first position of each sequence
    std::optional<Integers> cu_seqlens;  // for varlen, context_parallel
    std::uint32_t cp_size = 1, cp_rank = 0;
    std::string resolved;  // file; empty: not given
};

/// The number of columns of cos and sin.
enum class TableWidth {
    half,             // rotary_dim / 2, one for each pair
    full_first_half,  // rotary_dim, of which only the first half is used
    full,             // rotary_dim, one for each channel
};

/// The files of cos and sin, with one row for each position or for each token.
struct CacheCase {
    std::string cos, sin;
    bool direct = false;  // one row per token
    TableWidth width = TableWidth::half;
    std::optional<Element> dtype = {};  // type of the files
};

/// The values that a scaling reads and changes.
struct Scaled {
    double base;
    std::uint32_t exponent_dim;
    std::vector<double>& inv_freq;
    double& attention_factor;
    const std::vector<double>& divisors;  // freq_factors of ggml
};
struct ScalingCase {
    std::function<Status(const Scaled&)> scale = {};  // empty: no scaling
    /// True if the formula depends on the number of pairs as well as on the exponent of each pair.
    bool needs_all_pairs = false;
    bool by_pair = false;           // the formula uses the pair's index, not its exponent: ggml
    std::string freq_factors = {};  // file; empty: none
};

struct BaseCase {
    double base = 0;
    std::optional<std::uint32_t> exponent_dim;
    ScalingCase scaling;
};

enum class SectionMode { sequential, interleaved, independent };

struct SectionsCase {
    SectionMode mode = SectionMode::sequential;
    std::vector<std::uint32_t> sizes;  // in pairs
    std::uint32_t leftover_axis = 0;
};

struct CaseDescription {
    std::string id;
    verify::Operation operation;  // only the fields that the document itself gives
    Element dtype = VKROPE_F32;
    OfEachTensor<std::optional<TensorCase>> tensors;
    bool has_steps = false;  // "rope-case/2": V, the ops around the rotation, caches
    OfEachTensor<StepsCase> steps;
    std::optional<std::uint32_t> head_dim;
    std::uint32_t rotary_dim = 0, rotary_offset = 0;  // used if there are no windows
    std::vector<WindowCase> windows;
    std::vector<std::uint64_t> planes_rotated;
    PositionsCase positions;
    std::variant<CacheCase, BaseCase> angles;
    std::optional<SectionsCase> sections;
    std::optional<Tolerance> tolerance, tolerance_exact_angles;
    std::string quirk;
};

/// Parses JSON text. Throws Refusal with an error if the text is invalid.
nlohmann::json parse_document(std::string_view text);

/// Returns the id after checking that it is relative, without "..", and printable, because it
/// becomes a path below the folder of outputs.
std::string id_of(const nlohmann::json& document);

/// Reads the whole case. Throws Refusal.
CaseDescription describe(const nlohmann::json& document);

}  // namespace vkrope::conformance
