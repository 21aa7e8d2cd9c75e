// SPDX-License-Identifier: MIT
// Reads the cases of tests/data/models/cases: configurations and keys of GGUF files, each with the
// rotation, the warnings or the error that it must give. The README of that folder describes cases.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/meaning.hpp"
#include "gguf_reading.hpp"

using namespace vkrope;
using namespace vkrope::test;

namespace {

using Json = nlohmann::ordered_json;

// Returns the document of a file. Fails if an object has a key twice.
Json parsed(const std::filesystem::path& path) {
    std::ifstream stream(path);
    REQUIRE_MESSAGE(stream.good(), path.string());
    std::vector<std::set<std::string>> open;  // the keys of each object around a value
    return Json::parse(stream, [&](int, Json::parse_event_t event, const Json& value) {
        if (event == Json::parse_event_t::object_start) open.emplace_back();
        if (event == Json::parse_event_t::object_end) open.pop_back();
        if (event == Json::parse_event_t::key)
            REQUIRE_MESSAGE(open.back().insert(value.get<std::string>()).second, value.dump());
        return true;
    });
}

Json merged(Json base, const Json& more) {
    base.update(more, true);
    return base;
}

std::vector<Json> list_of(const Json& one_or_more) {
    if (!one_or_more.is_array()) return {one_or_more};
    REQUIRE_MESSAGE(!one_or_more.empty(), "an empty list");
    return {one_or_more.begin(), one_or_more.end()};
}

using Keys = std::set<std::string>;

// Fails if `in` has a key that is neither among `known` nor among `more`.
void check_keys(const Json& in, const Keys& known, const Keys& more = {}) {
    for (const auto& item : in.items())
        REQUIRE_MESSAGE((known.count(item.key()) || more.count(item.key())), item.key());
}

// Returns `value`. Fails if it is not a whole number or does not fit in an Integer.
template <class Integer>
Integer integer_of(const Json& value) {
    REQUIRE_MESSAGE(value.is_number_integer(), value.dump());
    const bool fits = value.is_number_unsigned()
                          ? std::in_range<Integer>(value.get<std::uint64_t>())
                          : std::in_range<Integer>(value.get<std::int64_t>());
    REQUIRE_MESSAGE(fits, value.dump());
    return value.get<Integer>();
}

// Returns `in` with `name`, which may be part of a string, replaced by `value`.
Json replaced(const Json& in, const std::string& name, const Json& value) {
    Json out = in;
    if (in.is_string()) {
        std::string text = in.get<std::string>();
        if (text == name) return value;
        const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
        for (std::size_t at = 0; (at = text.find(name, at)) != text.npos; at += word.size())
            text.replace(at, name.size(), word);
        out = text;
    } else if (in.is_array()) {
        for (Json& each : out) each = replaced(each, name, value);
    } else if (in.is_object()) {
        out = Json::object();
        for (const auto& [key, each] : in.items())
            out[replaced(key, name, value).get<std::string>()] = replaced(each, name, value);
    }
    return out;
}

const Keys of_document = {"model", "fields", "architecture", "keys", "file", "tensors", "query"},
           of_people = {"name", "why"},
           errors = {"invalid_data", "not_supported", "invalid_argument", "refused"};

bool has_error(const Json& one) {
    return std::any_of(
        one.items().begin(), one.items().end(),
        [](const auto& item) { return errors.count(item.key()); });
}

// Returns true if `key` states an expectation.
bool is_expectation(const std::string& key) {
    return !of_document.count(key) && !of_people.count(key) && key != "differs";
}

bool has_expectation(const Json& one) {
    return std::any_of(
        one.items().begin(), one.items().end(),
        [](const auto& item) { return is_expectation(item.key()) || item.key() == "file"; });
}

Json document_of(const Json& group) {
    Json document = Json::object();
    for (const std::string& key : of_document)
        if (group.contains(key)) document[key] = group[key];
    return document;
}

// Returns a copy of a pair of group and case for each value of each name of "for" in the pair.
std::vector<Json> for_values(Json pair, const Json& names, Keys& used) {
    std::vector<Json> chosen = {std::move(pair)};
    for (const auto& [name, values] : names.items()) {
        REQUIRE(values.is_array());
        if (chosen[0].dump().find(name) == std::string::npos) continue;
        used.insert(name);
        std::vector<Json> more;
        for (const Json& each : chosen)
            for (const Json& value : list_of(values)) more.push_back(replaced(each, name, value));
        chosen = std::move(more);
    }
    return chosen;
}

std::vector<Json> cases_of(const Json& whole);

// Returns the case combined with its group, once for each element of "fields".
std::vector<Json> joined(const Json& group, Json own) {
    Json common = has_error(own) ? document_of(group) : group;  // errors have no rotation
    Json fields = common.value("fields", Json::object());
    const Json model = own.contains("model") ? own["model"] : common.value("model", Json());
    if (!model.is_null())
        fields = merged(parsed(VKROPE_TEST_MODELS "/" + model.get<std::string>() + ".json"),
                        fields);
    for (const Json& key : own.value("without", Json::array()))
        REQUIRE_MESSAGE(fields.erase(key.get<std::string>()) == 1, key.dump());
    own.erase("without");
    for (const char* key : {"same_inv_freq_as", "other_inv_freq_than", "then"}) {
        if (!own.contains(key)) continue;
        const bool compared = std::string(key) != "then";
        Json nested = compared ? document_of(group) : group;
        nested["cases"] = Json::array({own[key]});
        own[key] = cases_of(nested);
        if (!compared) continue;
        REQUIRE(own[key].size() == 1);
        own[key] = Json(own[key][0]);
        check_keys(own[key], of_document);
    }
    std::vector<Json> all;
    for (const Json& more : list_of(own.value("fields", Json::object()))) {
        Json done = common;
        for (const auto& [key, value] : own.items())
            if (key != "fields") done.update(Json{{key, value}}, true);
        done["fields"] = merged(fields, more);
        REQUIRE_MESSAGE(done.dump().find('$') == std::string::npos, done.dump());
        all.push_back(done);
    }
    return all;
}

// Returns the cases of a group, each combined with the group's keys for all cases.
std::vector<Json> cases_of(const Json& whole) {
    Json group = whole;
    const Json shared = group.value("for", Json::object());
    group.erase("for"), group.erase("cases");
    std::vector<Json> all;
    Keys used_once;
    for (Json one : list_of(whole.at("cases"))) {
        const Json own = one.value("for", Json::object());
        one.erase("for");
        Keys used;
        for (const Json& pair : for_values(Json::array({group, one}), merged(shared, own), used))
            for (const Json& each : joined(pair[0], pair[1])) all.push_back(each);
        check_keys(own, used);
        used_once.merge(used);
    }
    check_keys(shared, used_once);
    if (std::all_of(all.begin(), all.end(), has_error)) check_keys(group, of_document, of_people);
    return all;
}

// Returns a file with a case's keys and tensors. Whole numbers are uint32, others float32.
GgufBuilder gguf_of(const Json& one) {
    GgufBuilder file(one.at("architecture").get<std::string>());
    for (const auto& [key, value] : one.at("keys").items()) {
        const Json& kind = value.is_array() && !value.empty() ? value[0] : value;
        if (value.is_array() && kind.is_boolean()) {
            file.boolean_list(key, value.get<std::vector<bool>>());
        } else if (value.is_array() && kind.is_number_float()) {
            file.f32_list(key, value.get<std::vector<float>>());
        } else if (value.is_array()) {
            std::vector<std::int32_t> list;
            for (const Json& each : value) list.push_back(integer_of<std::int32_t>(each));
            file.i32_list(key, list);
        } else if (value.is_string()) {
            file.text(key, value.get<std::string>());
        } else if (value.is_boolean()) {
            file.boolean(key, value.get<bool>());
        } else if (value.is_number_float()) {
            file.f32(key, value.get<float>());
        } else {
            file.u32(key, integer_of<std::uint32_t>(value));
        }
    }
    const Json tensors = one.value("tensors", Json::object());
    for (const auto& [name, content] : tensors.items()) {
        if (content.is_array()) {
            file.tensor(name, content.get<std::vector<float>>());
        } else if (content.contains("extents")) {
            check_keys(content, {"extents"});
            std::vector<std::uint64_t> extents;
            for (const Json& each : content["extents"])
                extents.push_back(integer_of<std::uint64_t>(each));
            file.tensor_of(name, extents, 0, 0);
        } else {
            check_keys(content, {"count", "of"});
            file.tensor(name, std::vector<float>(integer_of<std::uint32_t>(content.at("count")),
                                                 content.at("of").get<float>()));
        }
    }
    return file;
}

// Returns the query that `said` describes, with pointers to strings in `said`.
ModelQuery query_of(const Json& said, std::vector<const char*>& ignored) {
    ModelQuery query;
    check_keys(said, {"layer", "seq_len", "layer_type", "tower", "pairing", "ignore"});
    for (const auto& [key, value] : said.items()) {
        if (key == "layer") {
            query.by_layer = true, query.layer = integer_of<std::uint32_t>(value);
        } else if (key == "seq_len") {
            query.seq_len = integer_of<std::uint64_t>(value);
        } else if (key == "layer_type") {
            query.layer_type = value.get_ref<const std::string&>().c_str();
        } else if (key == "tower") {
            query.tower = value.get_ref<const std::string&>().c_str();
        } else if (key == "ignore") {
            for (const Json& name : value)
                ignored.push_back(name.get_ref<const std::string&>().c_str());
            query.ignore = ignored.data(), query.ignore_count = ignored.size();
        } else {
            REQUIRE((value == "half_split" || value == "interleaved"));
            query.pairing = value == "half_split" ? VKROPE_HALF_SPLIT : VKROPE_INTERLEAVED;
        }
    }
    return query;
}

Result<RopeParams> read_case(const Json& one, const Json& said) {
    std::vector<const char*> ignored;
    const ModelQuery query = query_of(said, ignored);
    const Json fields = one.value("fields", Json::object());
    if (!one.contains("architecture")) {
        REQUIRE((!one.contains("keys") && !one.contains("tensors")));
        return from_hf_config(fields.dump(), query);
    }
    REQUIRE(fields.empty());
    return read(gguf_of(one), query);
}

// Compares a number exactly, or with {"near": x} up to the relative error "within".
bool agrees(double actual, const Json& said) {
    if (!said.is_object()) return actual == said.get<double>();
    check_keys(said, {"near", "within"});
    const double near = said.at("near").get<double>();
    return std::abs(actual - near) <= said.value("within", 1e-12) * std::abs(near);
}

// Checks base^(-2j / dim) for each window. With several axes, window i belongs to axis i.
void check_formulas(const RopeParams& rotation, const Json& said) {
    std::size_t pair = 0;
    const std::vector<Json> windows = list_of(said);
    for (std::uint32_t axis = 0; axis < windows.size(); ++axis) {
        const Json& window = windows[axis];
        check_keys(window,
                   {"base", "dim", "repeat", "turning", "divided_by", "divided_from", "within"});
        const long double base = window.at("base").get<double>();
        const std::uint32_t dim = window.value("dim", rotation.rotary_dim),
                            repeat = window.value("repeat", 1u),
                            turning = window.value("turning", dim);
        const std::vector<std::uint32_t> from = window.value("divided_from",
                                                             std::vector<std::uint32_t>{dim, 1});
        REQUIRE(from.size() == 2);
        for (std::uint32_t j = 0; j < dim / 2; ++j) {
            for (std::uint32_t again = 0; again < repeat; ++again, ++pair) {
                CAPTURE(pair);
                REQUIRE(pair < rotation.inv_freq.size());
                const long double divisor = window.value("divided_by", 1.0) *
                                            (j >= from[0] ? from[1] : 1);
                const long double expected = j < turning ? std::pow(base, -2.0L * j / dim) / divisor
                                                         : 0;
                CHECK(std::abs(rotation.inv_freq[pair] - expected) <=
                      (window.contains("within") ? window["within"].get<double>()
                                                 : 1e-12L * expected));
                if (windows.size() > 1)
                    CHECK(axis_of(rotation.sections, std::uint32_t(pair)) == axis);
                if (axis != 0 && window == windows[axis - 1])
                    CHECK(rotation.inv_freq[pair] == rotation.inv_freq[pair - dim / 2]);
            }
        }
    }
    CHECK(rotation.inv_freq.size() == pair);
    if (windows.size() > 1) CHECK(plan_angles(rotation, VKROPE_ANGLES_COMPUTED, 4096, 0));
}

void check_inv_freq(const RopeParams& rotation, const Json& said) {
    if (said.is_array() && !said.empty() && said[0].is_number()) {
        check_close(rotation.inv_freq, said.get<std::vector<double>>());
    } else if (said.contains("default")) {
        check_keys(said, {"default", "pairs"});
        const Json& numbers = said["default"];
        REQUIRE(numbers.size() == 2);
        std::vector<double> expected = frequencies(numbers[0].get<double>(),
                                                   integer_of<std::uint32_t>(numbers[1]));
        std::vector<double> actual = rotation.inv_freq;
        REQUIRE(actual.size() == expected.size());
        const std::size_t pairs = said.value("pairs", expected.size());
        REQUIRE((pairs != 0 && pairs <= expected.size()));
        for (std::vector<double>* each : {&actual, &expected}) each->resize(pairs);
        CHECK(actual == expected);
    } else if (said.contains("ggml")) {
        check_keys(said, {"ggml"});
        const Json& numbers = said["ggml"];
        check_keys(numbers, {"base", "dim", "freq_scale", "ext_factor", "beta_fast", "beta_slow",
                             "n_ctx_orig"});
        double magnitude = 0;
        CHECK(rotation.inv_freq == scaled(numbers.at("base").get<double>(),
                                          integer_of<std::uint32_t>(numbers.at("dim")),
                                          {.freq_scale = numbers.at("freq_scale").get<double>(),
                                           .ext_factor = numbers.value("ext_factor", 0.0),
                                           .attn_factor = -1,
                                           .beta_fast = numbers.value("beta_fast", -1.0),
                                           .beta_slow = numbers.value("beta_slow", -1.0),
                                           .n_ctx_orig = numbers.value("n_ctx_orig", 0.0)},
                                          magnitude));
    } else if (said.contains("yarn")) {
        check_keys(said, {"yarn"});
        const Json& numbers = said["yarn"];
        check_keys(numbers, {"base", "dim", "factor", "original_max_position_embeddings"});
        const double base = numbers.at("base").get<double>();
        std::vector<double> expected = frequencies(base,
                                                   integer_of<std::uint32_t>(numbers.at("dim")));
        YarnScaling scaling;
        scaling.factor = numbers.at("factor").get<double>();
        scaling.original_max_position_embeddings =
            numbers.at("original_max_position_embeddings").get<double>();
        double magnitude = 0;
        REQUIRE(scale_yarn(expected, base, scaling, magnitude));
        CHECK(rotation.inv_freq == expected);
    } else {
        check_formulas(rotation, said);
    }
}

constexpr const char *pairings[] = {"none", "half_split", "interleaved"},
                     *orders[] = {"sequential", "interleaved", "sum"},
                     *kinds[] = {"none", "rms", "layer"}, *spans[] = {"head", "token"},
                     *places[] = {"before", "after"},
                     *shapes[] = {"none", "channel", "head_channel"},
                     *query_scalings[] = {"none", "logn", "llama4", "ministral3"};
static_assert(VKROPE_HALF_SPLIT == 1 && VKROPE_INTERLEAVED == 2);
static_assert(VKROPE_SECTIONS_INTERLEAVED == 1 && VKROPE_SECTIONS_SUM == 2);
static_assert(VKROPE_NORM_RMS == 1 && VKROPE_NORM_LAYER == 2);
static_assert(VKROPE_NORM_SPAN_TOKEN == 1 && VKROPE_NORM_PLACE_AFTER == 1);
static_assert(VKROPE_PARAMETER_CHANNEL == 1 && VKROPE_PARAMETER_HEAD_CHANNEL == 2);
static_assert(VKROPE_QUERY_SCALING_LLAMA4 == 2 && VKROPE_QUERY_SCALING_MINISTRAL3 == 3);

template <std::size_t Count>
std::string name_of(const char* const (&names)[Count], std::size_t value) {
    REQUIRE(value < Count);
    return names[value];
}

void check_norm(const Norm& norm, const Json& said) {
    if (said.is_string()) {
        CHECK(name_of(kinds, norm.kind) == said.get<std::string>());
        return;
    }
    Json expected = said;
    if (said.contains("weight"))
        expected = merged(
            {{"weight_offset", 0}, {"bias", "none"}, {"first_channel", 0}, {"channels", 0}}, said);
    const Json actual = {{"kind", name_of(kinds, norm.kind)},
                         {"span", name_of(spans, norm.span)},
                         {"place", name_of(places, norm.place)},
                         {"eps", norm.eps},
                         {"weight", name_of(shapes, norm.weight)},
                         {"weight_offset", norm.weight_offset},
                         {"bias", name_of(shapes, norm.bias)},
                         {"first_channel", norm.first_channel},
                         {"channels", norm.channels}};
    for (const auto& field : expected.items()) {
        CAPTURE(field.key());
        if (field.key() == "eps")
            CHECK(norm.eps == field.value().get<float>());
        else
            CHECK(actual.at(field.key()) == field.value());
    }
}

// The facts that a case may state about a rotation, as JSON values.
const std::map<std::string, Json (*)(const RopeParams&)> facts = {
    {"head_dim", [](const RopeParams& r) { return Json(r.head_dim); }},
    {"rotary_dim", [](const RopeParams& r) { return Json(r.rotary_dim); }},
    {"q_rotary_offset", [](const RopeParams& r) { return Json(r.q_rotary_offset); }},
    {"k_rotary_offset", [](const RopeParams& r) { return Json(r.k_rotary_offset); }},
    {"pairing", [](const RopeParams& r) { return Json(name_of(pairings, r.pairing)); }},
    {"rope_type", [](const RopeParams& r) { return Json(r.rope_type); }},
    {"no_rope", [](const RopeParams& r) { return Json(bool(r.no_rope)); }},
    {"base", [](const RopeParams& r) { return Json(r.base); }},
    {"attention_factor", [](const RopeParams& r) { return Json(r.attention_factor); }},
    {"softmax_scale", [](const RopeParams& r) { return Json(r.softmax_scale); }},
    {"max_position", [](const RopeParams& r) { return Json(r.max_position); }},
    {"longest_seq_len", [](const RopeParams& r) { return Json(r.longest_seq_len); }},
    {"axes", [](const RopeParams& r) { return Json(r.sections.axes); }},
    {"order", [](const RopeParams& r) { return Json(name_of(orders, r.sections.order)); }},
    {"leftover_axis", [](const RopeParams& r) { return Json(r.sections.leftover_axis); }},
    {"sections",
     [](const RopeParams& r) {
         return Json(
             std::vector<std::uint32_t>(r.sections.pairs, r.sections.pairs + r.sections.axes));
     }},
    {"windows",  // [offset, rotary_dim] of each window in use
     [](const RopeParams& r) {
         Json all = Json::array();
         for (const Window& window : r.windows)
             if (window.rotary_dim != 0 || window.offset != 0)
                 all.push_back({window.offset, window.rotary_dim});
         return all;
     }},
    {"axes_alternate",  // the axis of pair j is j mod 2
     [](const RopeParams& r) {
         bool alternate = true;
         for (std::uint32_t pair = 0; pair < r.rotary_dim / 2; ++pair)
             alternate = alternate && axis_of(r.sections, pair) == pair % 2;
         return Json(alternate);
     }},
    {"pairs_that_turn",
     [](const RopeParams& r) {
         return Json(std::count_if(r.inv_freq.begin(), r.inv_freq.end(),
                                   [](double frequency) { return frequency != 0; }));
     }},
    {"norms_known", [](const RopeParams& r) { return Json(bool(r.ops.norms_known)); }},
    {"q_heads", [](const RopeParams& r) { return Json(r.ops.q_heads); }},
    {"k_heads", [](const RopeParams& r) { return Json(r.ops.k_heads); }},
    {"q_clip", [](const RopeParams& r) { return Json(r.ops.tensor[Q].clip); }},
    {"k_clip", [](const RopeParams& r) { return Json(r.ops.tensor[K].clip); }},
    {"v_clip", [](const RopeParams& r) { return Json(r.ops.tensor[V].clip); }},
    {"query_scale",
     [](const RopeParams& r) { return Json(name_of(query_scalings, r.ops.query_scale.kind)); }},
    {"query_scale_length", [](const RopeParams& r) { return Json(r.ops.query_scale.length); }},
    {"query_scale_beta", [](const RopeParams& r) { return Json(r.ops.query_scale.beta); }},
    {"q_scale_tokens",
     [](const RopeParams& r) { return Json(bool(r.ops.tensor[Q].scale_tokens)); }},
    {"k_scale_tokens",
     [](const RopeParams& r) { return Json(bool(r.ops.tensor[K].scale_tokens)); }},
};

void check_fact(const RopeParams& rotation, const std::string& key, const Json& said) {
    CAPTURE(key);
    REQUIRE((!said.is_object() || !said.empty()));
    std::string all;
    for (const std::string& warning : rotation.warnings) all += warning + "\n";
    if (const auto fact = facts.find(key); fact != facts.end()) {
        const Json actual = fact->second(rotation);
        CHECK_MESSAGE((actual.is_number() ? agrees(actual.get<double>(), said) : actual == said),
                      actual.dump());
    } else if (key == "inv_freq") {
        check_inv_freq(rotation, said);
    } else if (key == "inv_freq_at") {  // -1 is the index of the last
        for (const auto& item : said.items()) {
            const int index = std::stoi(item.key());
            const int at = index < 0 ? index + int(rotation.inv_freq.size()) : index;
            CHECK_MESSAGE(agrees(rotation.inv_freq.at(std::size_t(at)), item.value()), index);
        }
    } else if (key == "same_inv_freq_as" || key == "other_inv_freq_than") {
        const Result<RopeParams> other = read_case(said, said.value("query", Json::object()));
        REQUIRE_MESSAGE(other, other.status.what);
        CHECK((rotation.inv_freq == other.value.inv_freq) == (key == "same_inv_freq_as"));
    } else if (key == "warnings" || key == "warns") {
        if (key == "warnings")
            CHECK_MESSAGE(rotation.warnings.size() == (said.is_array() ? Json(said.size()) : said),
                          all);
        if (said.is_number()) return;
        for (const Json& words : list_of(said))
            CHECK_MESSAGE(warns(rotation, words.get<std::string>()), all, words.dump());
    } else if (key == "silent") {
        for (const Json& words : list_of(said))
            CHECK_MESSAGE(!warns(rotation, words.get<std::string>()), all, words.dump());
    } else {
        const std::size_t tensor = key == "q_norm" ? Q : key == "k_norm" ? K : V;
        REQUIRE_MESSAGE((tensor != V || key == "v_norm"), key);
        check_norm(rotation.ops.tensor[tensor].norm, said);
    }
}

bool close_as_float32(double of_config, double of_file) {
    return std::abs(of_config - of_file) <= 0x1p-21 * of_config;
}

void check_same(const Norm& of_config, const Norm& of_file) {
    CHECK(of_config.kind == of_file.kind);
    CHECK(of_config.span == of_file.span);
    CHECK(of_config.place == of_file.place);
    CHECK(of_config.eps == of_file.eps);
    CHECK(of_config.weight == of_file.weight);
    CHECK(of_config.bias == of_file.bias);
    CHECK(of_config.first_channel == of_file.first_channel);
    CHECK(of_config.channels == of_file.channels);
}

// Checks that config.json and GGUF of a model agree, except for the stated difference.
void check_agree(const RopeParams& config, const RopeParams& file, const Json& differs) {
    REQUIRE((differs.is_null() || differs == "pairing" || differs == "ramp"));
    CHECK(!config.no_rope == !file.no_rope);
    CHECK(config.head_dim == file.head_dim);
    CHECK(config.rotary_dim == file.rotary_dim);
    CHECK(config.q_rotary_offset == file.q_rotary_offset);
    CHECK(config.k_rotary_offset == file.k_rotary_offset);
    CHECK(close_as_float32(config.attention_factor, file.attention_factor));
    CHECK(close_as_float32(config.softmax_scale, file.softmax_scale));
    const bool same = std::equal(config.inv_freq.begin(), config.inv_freq.end(),
                                 file.inv_freq.begin(), file.inv_freq.end(), close_as_float32);
    CHECK(same == (differs != "ramp"));
    if (differs == "ramp") CHECK(warns(file, "llama.cpp rounds YaRN config.json truncate"));
    if (differs == "pairing") {
        CHECK(config.pairing == VKROPE_HALF_SPLIT);
        CHECK(file.pairing == VKROPE_INTERLEAVED);
    } else {
        CHECK(config.pairing == file.pairing);
    }
    CHECK(std::equal(std::begin(config.sections.pairs), std::end(config.sections.pairs),
                     std::begin(file.sections.pairs)));
    CHECK(config.sections.order == file.sections.order);
    CHECK(config.ops.query_scale.kind == file.ops.query_scale.kind);
    CHECK(config.ops.query_scale.length == file.ops.query_scale.length);
    CHECK(close_as_float32(config.ops.query_scale.beta, file.ops.query_scale.beta));
    if (!file.ops.norms_known) return;  // a file without tensors
    CHECK(config.ops.norms_known);
    check_same(config.ops.tensor[Q].norm, file.ops.tensor[Q].norm);
    check_same(config.ops.tensor[K].norm, file.ops.tensor[K].norm);
}

void check_error_of(const Result<RopeParams>& result, const std::string& key, const Json& words) {
    CHECK(!result);
    check_names(result.status.what, words.get<std::string>());
    CHECK(result.value.inv_freq.empty());
    const std::map<std::string, ErrorCode> codes = {
        {"invalid_data", VKROPE_ERROR_INVALID_DATA},
        {"not_supported", VKROPE_ERROR_NOT_SUPPORTED},
        {"invalid_argument", VKROPE_ERROR_INVALID_ARGUMENT}};
    if (key != "refused") CHECK_MESSAGE(result.status.code == codes.at(key), result.status.what);
}

void check_read(const Json& one, const Json& query) {
    CAPTURE(query.dump());
    const Result<RopeParams> result = read_case(one, query);
    for (const auto& [key, said] : one.items()) {
        if (!errors.count(key)) continue;
        check_keys(one, of_document, {"name", "why", key, "then"});
        return check_error_of(result, key, said);
    }
    CHECK_MESSAGE(result, result.status.what);
    if (!result) return;
    const RopeParams& rotation = result.value;
    CHECK(rotation.inv_freq.empty() == bool(rotation.no_rope));
    CHECK((rotation.rotary_dim == 0) == bool(rotation.no_rope));
    for (const auto& [key, said] : one.items())
        if (is_expectation(key)) check_fact(rotation, key, said);
    REQUIRE((one.contains("file") || !one.contains("differs")));
    if (one.contains("file")) {
        check_keys(one["file"], {"architecture", "keys", "tensors"});
        const Result<RopeParams> file = read_case(one["file"], query);
        REQUIRE_MESSAGE(file, file.status.what);
        check_agree(rotation, file.value, one.value("differs", Json()));
    }
}

// Checks the numbers of tests/data/models/expected for each length in the file. Warnings are
// checked only for the variant without a length.
void check_expected(const Json& one) {
    REQUIRE((one["expected"] == true && !one.contains("query")));
    const std::string model = one.at("model").get<std::string>();
    const Json expected = parsed(VKROPE_TEST_MODELS "/expected/" + model + ".json");
    CHECK(!expected.at("variants").empty());
    for (const Json& variant : expected.at("variants")) {
        Json some = one;
        some.erase("expected");
        for (const char* key : {"head_dim", "rotary_dim", "pairing", "rope_type"})
            some[key] = expected.at(key);
        some["attention_factor"]["near"] = variant.at("attention_factor");
        some["inv_freq"] = variant.at("inv_freq");
        Json query = Json::object();
        if (!variant.at("seq_len").is_null()) {
            query["seq_len"] = variant["seq_len"];
            some.erase("warnings");
        }
        check_read(some, query);
    }
}

// Returns the layers of a list such as "0 2-4".
std::vector<std::uint32_t> layers_of(const std::string& numbers) {
    std::vector<std::uint32_t> all;
    std::istringstream each(numbers);
    for (std::uint32_t layer = 0; each >> layer;) {
        std::uint32_t last = layer;
        if (each.peek() == '-') REQUIRE_MESSAGE(bool(each.ignore() >> last), numbers);
        REQUIRE_MESSAGE(layer <= last, numbers);
        for (; layer <= last; ++layer) all.push_back(layer);
    }
    REQUIRE_MESSAGE((each.eof() && !all.empty()), numbers);
    return all;
}

void check_case(const Json& one) {
    if (one.contains("expected")) return check_expected(one);
    if (one.contains("layers")) {
        REQUIRE(!one["layers"].empty());
        for (const auto& [numbers, said] : one["layers"].items()) {
            REQUIRE(has_expectation(said));
            Json some = one;
            some.erase("layers");
            some = merged(some, said);
            const Json query = some.value("query", Json::object());
            for (const std::uint32_t layer : layers_of(numbers))
                check_read(some, merged(query, {{"layer", layer}}));
        }
        return;
    }
    for (const Json& query : list_of(one.value("query", Json::object()))) check_read(one, query);
    for (const Json& advised : one.value("then", Json::array())) {
        CHECK(!has_error(advised));
        check_case(advised);
    }
}

}  // namespace

TEST_CASE("cases of models") {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(VKROPE_TEST_MODELS "/cases")) {
        if (entry.path().extension() != ".json") continue;
        ++files;
        const std::string name = entry.path().filename().string();
        SUBCASE(name.c_str()) {
            for (const Json& group : list_of(parsed(entry.path()))) {
                CAPTURE(group.value("name", ""));
                std::vector<Json> cases;
                CHECK_NOTHROW(cases = cases_of(group));
                CHECK(!cases.empty());
                for (const Json& one : cases) {
                    CAPTURE(one.dump());
                    CHECK(has_expectation(one));
                    CHECK_NOTHROW(check_case(one));
                }
            }
        }
    }
    CHECK(files != 0);
}
