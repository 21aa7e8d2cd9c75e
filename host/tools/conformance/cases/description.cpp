// SPDX-License-Identifier: MIT
#include "conformance/cases/description.hpp"

#include <algorithm>
#include <limits>

#include "conformance/cases/fields.hpp"
#include "model/import_error.hpp"
#include "model/json_document.hpp"

namespace vkrope::conformance {
namespace {

constexpr std::int64_t max_channels = 65534, max_positions = std::int64_t{1} << 53;
constexpr std::int64_t any_low = std::numeric_limits<std::int64_t>::min(),
                       any_high = std::numeric_limits<std::int64_t>::max();

/// Limits on items that each require a pass over the tensors or are scanned for each pair. The
/// limits are far higher than the numbers of any model.
constexpr std::size_t max_windows = 64, max_planes_rotated = 256, max_sections = 256;

void hold_count(const std::string& name, std::size_t count, std::size_t most) {
    if (count > most) {
        unsupported("{} has {} entries, more than {}", name, count, most);
    }
}

constexpr tools::Choice<Pairing> pairings[] = {{"half", VKROPE_HALF_SPLIT},
                                               {"interleaved", VKROPE_INTERLEAVED}};
constexpr tools::Choice<Direction> directions[] = {{"forward", VKROPE_FORWARD},
                                                   {"inverse", VKROPE_INVERSE}};
constexpr tools::Choice<PositionKind> position_kinds[] = {
    {"none", PositionKind::none},
    {"offset", PositionKind::offset},
    {"per_batch_offset", PositionKind::per_batch_offset},
    {"explicit", PositionKind::explicit_ids},
    {"varlen", PositionKind::varlen},
    {"context_parallel", PositionKind::context_parallel}};
constexpr tools::Choice<SectionMode> section_modes[] = {{"sequential", SectionMode::sequential},
                                                        {"interleaved", SectionMode::interleaved},
                                                        {"independent", SectionMode::independent}};
constexpr tools::Choice<bool> row_kinds[] = {{"indexed", false}, {"direct", true}};
constexpr tools::Choice<TableWidth> widths[] = {{"half", TableWidth::half},
                                                {"full_first_half", TableWidth::full_first_half},
                                                {"full", TableWidth::full}};

std::uint32_t channels(Fields& fields, const char* key) {
    return static_cast<std::uint32_t>(fields.required_integer(key, 0, max_channels));
}

TensorCase tensor_in(Fields fields, const std::optional<std::string>& layout,
                     std::optional<std::int64_t> num_heads) {
    TensorCase tensor;
    tensor.file = fields.file("file");
    for (const std::int64_t dimension : fields.required_integers("shape", 0, any_high)) {
        tensor.shape.push_back(static_cast<std::uint64_t>(dimension));
    }
    const auto own_layout = fields.optional_text("layout");
    if (!own_layout && !layout) {
        wrong_file("{} is missing, and there is no value for all tensors",
                   fields.name_of("layout"));
    }
    tensor.layout = own_layout ? *own_layout : *layout;
    const auto own_heads = fields.integer("num_heads", 1, any_high);
    if (own_heads || num_heads) {
        tensor.num_heads = static_cast<std::uint64_t>(own_heads ? *own_heads : *num_heads);
    }
    if (auto view = fields.object("view")) {
        tensor.view = ParentView{.offset = view->integer("offset", any_low, any_high).value_or(0),
                                 .strides = view->required_integers("strides", any_low, any_high)};
        view->done();
    }
    fields.done();
    return tensor;
}

void read_tensors(Fields& root, CaseDescription& description) {
    const auto layout = root.optional_text("layout");
    const auto num_heads = root.integer("num_heads", 1, any_high);
    Fields tensors = root.required_object("tensors");
    std::optional<Fields> expected = root.object("expected");
    for (const TensorIndex which : every_tensor) {
        if (which == V && !description.has_steps) {
            continue;
        }
        const char* name = tensor_names[which];
        std::optional<TensorCase>& tensor = description.tensors[which];
        if (tensors.find(name) != nullptr) {
            tensor = tensor_in(tensors.required_object(name), layout, num_heads);
        }
        std::string file = expected ? expected->optional_file(name) : std::string();
        if (!file.empty() && !tensor) {
            wrong_file("expected.{} has no tensor of that name", name);
        }
        if (tensor) {
            tensor->expected = std::move(file);
        }
    }
    tensors.done();
    if (expected) {
        expected->done();
    }
    if (!description.tensors[Q] && !description.tensors[K] && !description.tensors[V]) {
        wrong_file("tensors has neither q nor k");
    }
}

void read_windows(Fields& root, CaseDescription& description) {
    const nlohmann::json* list = root.find("windows");
    if (list == nullptr) {
        description.rotary_dim = channels(root, "rotary_dim");
        description.rotary_offset = static_cast<std::uint32_t>(
            root.integer("rotary_offset", 0, max_channels).value_or(0));
        return;
    }
    if (!list->is_array() || list->empty()) {
        wrong_file("windows is {}: it must be an array of at least one window", shown(*list));
    }
    hold_count("windows", list->size(), max_windows);
    for (const nlohmann::json& entry : *list) {
        Fields window(entry, fmt::format("windows[{}]", description.windows.size()));
        description.windows.push_back(
            {.offset = channels(window, "offset"),
             .rotary_dim = channels(window, "rotary_dim"),
             .axis = static_cast<std::uint32_t>(window.integer("axis", 0, 255).value_or(0))});
        window.done();
    }
    if (root.find("rotary_dim") != nullptr || root.find("rotary_offset") != nullptr) {
        wrong_file("rotary_dim and rotary_offset must be null where there are windows");
    }
}

void read_planes(Fields& root, CaseDescription& description) {
    const auto planes = root.integers("planes_rotated", 0, any_high);
    if (!planes) {
        return;
    }
    hold_count("planes_rotated", planes->size(), max_planes_rotated);
    for (const std::int64_t plane : *planes) {
        description.planes_rotated.push_back(static_cast<std::uint64_t>(plane));
    }
    std::vector<std::uint64_t>& sorted = description.planes_rotated;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
        wrong_file("planes_rotated names a plane twice");
    }
}

PositionsCase read_positions(Fields fields) {
    PositionsCase positions;
    positions.kind = meaning(fields.text("kind"), "positions.kind", position_kinds);
    const auto one_each = [&](const char* key, bool required) {
        positions.numbers = fields.integers_or_file(key);
        if (required) {
            fields.required(key);
        }
    };
    switch (positions.kind) {
        case PositionKind::none: break;
        case PositionKind::offset:
            positions.value = fields.required_integer("value", -max_positions, max_positions);
            break;
        case PositionKind::per_batch_offset: one_each("file", true); break;
        case PositionKind::explicit_ids:
            one_each("file", true);
            positions.axes = fields.text("axes");
            break;
        case PositionKind::varlen: {
            fields.required("cu_seqlens");
            positions.cu_seqlens = fields.integers_or_file("cu_seqlens");
            const nlohmann::json* offsets = fields.find("seqlen_offsets");
            if (offsets != nullptr && offsets->is_number()) {  // the same offset for all sequences
                positions.value = *fields.integer("seqlen_offsets", -max_positions, max_positions);
            } else {
                one_each("seqlen_offsets", false);
            }
            break;
        }
        case PositionKind::context_parallel:
            positions.cp_size = static_cast<std::uint32_t>(
                fields.required_integer("cp_size", 1, 1 << 20));
            positions.cp_rank = static_cast<std::uint32_t>(
                fields.required_integer("cp_rank", 0, positions.cp_size - 1));
            one_each("start_positions", false);
            positions.cu_seqlens = fields.integers_or_file("cu_seqlens");
            break;
    }
    positions.resolved = fields.optional_file("resolved");
    fields.done();
    return positions;
}

ScalingCase read_scaling(Fields fields) {
    const std::string type = fields.text("type");
    const auto number = [&fields](const char* key) { return fields.required_number(key); };
    const auto number_or = [&fields](const char* key, double absent) {
        return fields.number(key).value_or(absent);
    };
    ScalingCase made;
    made.needs_all_pairs = type == "dynamic" || type == "yarn" || type == "proportional";
    made.by_pair = type == "ggml";
    if (type == "default" || type == "none") {
        // means no scaling
    } else if (type == "linear") {
        made.scale = [factor = number("factor")](const Scaled& of) {
            return scale_linear(of.inv_freq, factor);
        };
    } else if (type == "dynamic") {
        const DynamicNtkScaling scaling = {
            .factor = number("factor"),
            .max_position_embeddings = number("max_position_embeddings")};
        const double seq_len = number_or("seq_len", 0);
        if (seq_len < 0 || seq_len > 0x1p53) {
            unsupported("angles.scaling.seq_len is {}", seq_len);
        }
        made.scale = [scaling, seq_len](const Scaled& of) {
            return scale_dynamic_ntk(of.inv_freq, scaling, static_cast<std::uint64_t>(seq_len));
        };
    } else if (type == "yarn") {
        const YarnScaling scaling = {
            .factor = number("factor"),
            .original_max_position_embeddings = number("original_max_position_embeddings"),
            .beta_fast = number_or("beta_fast", 32),
            .beta_slow = number_or("beta_slow", 1),
            .no_truncate = !fields.truth("truncate").value_or(true)};
        made.scale = [scaling](const Scaled& of) {
            double implied = 0;  // unused: the attention_factor of the case contains it
            return scale_yarn(of.inv_freq, of.base, scaling, implied);
        };
    } else if (type == "longrope") {
        fields.required("factors");
        made.scale = [factors = *fields.numbers("factors")](const Scaled& of) {
            return scale_divisors(of.inv_freq, factors.data(), factors.size());
        };
    } else if (type == "llama3") {
        const Llama3Scaling scaling = {
            .factor = number("factor"),
            .low_freq_factor = number("low_freq_factor"),
            .high_freq_factor = number("high_freq_factor"),
            .original_max_position_embeddings = number("original_max_position_embeddings")};
        made.scale = [scaling](const Scaled& of) { return scale_llama3(of.inv_freq, scaling); };
    } else if (type == "proportional") {
        const ProportionalScaling scaling = {
            .factor = number_or("factor", 1),
            .partial_rotary_factor = number("partial_rotary_factor")};
        made.scale = [scaling](const Scaled& of) {
            of.inv_freq.assign((of.exponent_dim + 1) / 2, 0);
            return proportional_inv_freq(of.base, of.exponent_dim, scaling, of.inv_freq.data());
        };
    } else if (type == "ggml") {
        const GgmlScaling scaling = {.freq_scale = number("freq_scale"),
                                     .ext_factor = number_or("ext_factor", 0),
                                     .beta_fast = number_or("beta_fast", 32),
                                     .beta_slow = number_or("beta_slow", 1),
                                     .n_ctx_orig = number_or("n_ctx_orig", 0)};
        made.freq_factors = fields.optional_file("freq_factors");
        made.scale = [scaling](const Scaled& of) {
            GgmlScaling filled = scaling;
            filled.attn_factor = of.attention_factor;
            filled.n_dims = of.exponent_dim;
            filled.freq_factors = of.divisors.data();
            // ggml accepts more divisors than pairs, but not fewer
            filled.freq_factor_count = std::min(of.divisors.size(), of.inv_freq.size());
            return scale_ggml(of.inv_freq, of.base, filled, of.attention_factor);
        };
    } else if (type == "te_interp") {
        made.scale = [seq_scale = number("seq_scale")](const Scaled& of) {
            return scale_positions(of.inv_freq, seq_scale);
        };
    } else {
        unsupported("scaling type '{}'", shown_text(type));
    }
    fields.done();
    return made;
}

std::variant<CacheCase, BaseCase> read_angles(Fields fields) {
    const std::string kind = fields.text("kind");
    std::variant<CacheCase, BaseCase> angles;
    if (kind == "cache") {
        CacheCase cache = {.cos = fields.file("cos"), .sin = fields.file("sin")};
        cache.direct = meaning(fields.text("rows"), "angles.rows", row_kinds);
        cache.width = meaning(fields.text("width"), "angles.width", widths);
        if (const auto dtype = fields.optional_text("dtype")) {
            cache.dtype = meaning(*dtype, "angles.dtype", tools::elements);
        }
        angles = std::move(cache);
    } else if (kind == "base") {
        BaseCase base;
        base.base = fields.required_number("base");
        if (const auto dim = fields.integer("exponent_dim", 1, std::int64_t{1} << 31)) {
            base.exponent_dim = static_cast<std::uint32_t>(*dim);
        }
        if (auto scaling = fields.object("scaling")) {
            base.scaling = read_scaling(std::move(*scaling));
        }
        angles = std::move(base);
    } else {
        unsupported("angles.kind '{}'", shown_text(kind));
    }
    fields.done();
    return angles;
}

std::optional<SectionsCase> read_sections(std::optional<Fields> fields) {
    if (!fields) {
        return std::nullopt;
    }
    SectionsCase sections;
    sections.mode = meaning(fields->text("mode"), "sections.mode", section_modes);
    const std::vector<std::int64_t> sizes = fields->required_integers("sizes", 0, max_channels);
    hold_count("sections.sizes", sizes.size(), max_sections);
    for (const std::int64_t size : sizes) {
        sections.sizes.push_back(static_cast<std::uint32_t>(size));
    }
    sections.leftover_axis = static_cast<std::uint32_t>(
        fields->integer("leftover_axis", 0, 255).value_or(0));
    fields->done();
    if (std::all_of(sections.sizes.begin(), sections.sizes.end(),
                    [](std::uint32_t size) { return size == 0; })) {
        wrong_file("sections.sizes has no pair");
    }
    return sections;
}

}  // namespace

nlohmann::json parse_document(std::string_view text) {
    try {
        return parse_json(text);
    } catch (const ImportError& problem) {
        throw Refusal(Verdict::error, tools::ExitCode::bad_file,
                      static_cast<const char*>(problem.status.what));
    } catch (const nlohmann::json::exception&) {
        wrong_file("not valid JSON");
    }
}

std::string id_of(const nlohmann::json& document) {
    Fields root(document, "");
    return checked_path(root.text("id"), "id");
}

CaseDescription describe(const nlohmann::json& document) {
    Fields root(document, "");
    CaseDescription description;
    const std::string schema = root.text("schema");
    if (schema != "rope-case/1" && schema != "rope-case/2") {
        unsupported("schema is '{}'; this version reads 'rope-case/1' and 'rope-case/2'",
                    shown_text(schema));
    }
    description.has_steps = schema == "rope-case/2";
    description.id = checked_path(root.text("id"), "id");
    for (const char* for_people : {"source", "notes", "live"}) {
        root.skip(for_people);
    }
    if (const nlohmann::json* quirk = root.find("quirk"); quirk != nullptr && quirk->is_string()) {
        description.quirk = shown_text(quirk->get<std::string>());
    }
    KernelInfo& info = description.operation.info;
    Call& call = description.operation.call;
    info.pairing = meaning(root.text("pairing"), "pairing", pairings);
    if (const auto out = root.optional_text("pairing_out")) {
        info.pairing_out = meaning(*out, "pairing_out", pairings);
    }
    call.direction = meaning(root.text("direction"), "direction", directions);
    call.gain = meaning(root.optional_text("gain").value_or("apply"), "gain", tools::gains);
    description.dtype = meaning(root.text("dtype"), "dtype", tools::elements);
    if (const auto head_dim = root.integer("head_dim", 1, max_channels)) {
        description.head_dim = static_cast<std::uint32_t>(*head_dim);
    }
    read_tensors(root, description);
    if (description.has_steps) {
        OfEachTensor<bool> present = {};
        for (const TensorIndex which : every_tensor) {
            present[which] = description.tensors[which].has_value();
        }
        description.steps = read_steps(root, present, description.operation);
    }
    read_windows(root, description);
    read_planes(root, description);
    description.positions = read_positions(root.required_object("positions"));
    description.angles = read_angles(root.required_object("angles"));
    description.operation.attention_factor = root.number("attention_factor").value_or(1);
    description.sections = read_sections(root.object("sections"));
    description.tolerance = read_tolerance(root.object("tolerance"), root.object("atol_files"));
    description.tolerance_exact_angles = read_tolerance(root.object("tolerance_exact_angles"),
                                                        std::nullopt);
    root.done();
    return description;
}

}  // namespace vkrope::conformance
