// SPDX-License-Identifier: MIT
// The contents of a case.json, "rope-case/1" or "rope-case/2": an operation without its memory, and
// what the files have that go into it. None of them is read.
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

/// A part of a flat buffer, in elements.
struct ParentView {
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;
};

struct TensorCase {
    std::string file;
    std::vector<std::uint64_t> shape;
    std::string layout;  // its own, or the common layout
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
    std::int64_t value = 0;  // offset
    std::string axes;        // explicit
    std::optional<Integers>
        numbers;  // explicit: ids; the other kinds: the position that each sequence starts at
    std::optional<Integers> cu_seqlens;  // varlen, context_parallel
    std::uint32_t cp_size = 1, cp_rank = 0;
    std::string resolved;  // file; empty: not given
};

/// Columns of cos and sin.
enum class TableWidth {
    half,             // one for each pair
    full_first_half,  // rotary_dim, of which only the first half is used
    full,             // rotary_dim: each channel uses its own
};

/// cos and sin, one row for each position or for each token.
struct CacheCase {
    std::string cos, sin;
    bool direct = false;  // one row per token
    TableWidth width = TableWidth::half;
    std::optional<Element> dtype = {};  // of the files
};

/// What a scaling changes.
struct Scaled {
    double base;
    std::uint32_t exponent_dim;
    std::vector<double>& inv_freq;
    double& attention_factor;
    const std::vector<double>& divisors;  // freq_factors of ggml
};
struct ScalingCase {
    std::function<Status(const Scaled&)> scale = {};  // empty: none
    /// The formula depends on the number of pairs in addition to the exponent of each.
    bool needs_all_pairs = false;
    bool by_pair = false;           // it indexes by pair, whatever the exponent: ggml
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
    std::vector<std::uint32_t> sizes;  // pairs
    std::uint32_t leftover_axis = 0;
};

struct CaseDescription {
    std::string id;
    verify::Operation operation;  // what the document itself has of it
    Element dtype = VKROPE_F32;
    OfEachTensor<std::optional<TensorCase>> tensors;
    bool has_steps = false;  // "rope-case/2": V, the steps around the rotation, caches
    OfEachTensor<StepsCase> steps;
    std::optional<std::uint32_t> head_dim;
    std::uint32_t rotary_dim = 0, rotary_offset = 0;  // if there are no windows
    std::vector<WindowCase> windows;
    std::vector<std::uint64_t> planes_rotated;
    PositionsCase positions;
    std::variant<CacheCase, BaseCase> angles;
    std::optional<SectionsCase> sections;
    std::optional<Tolerance> tolerance, tolerance_exact_angles;
    std::string quirk;
};

/// Parses JSON text. Throws Refusal with an error if it is invalid.
nlohmann::json parse_document(std::string_view text);

/// Returns the id after checking it: relative, without "..", printable. It becomes a path below the
/// folder of outputs.
std::string id_of(const nlohmann::json& document);

/// Reads the whole case. Throws Refusal.
CaseDescription describe(const nlohmann::json& document);

}  // namespace vkrope::conformance
