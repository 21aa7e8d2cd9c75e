// SPDX-License-Identifier: MIT
#include "spirv/kernel_info_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>

#include "shell/failure.hpp"
#include "shell/words.hpp"

namespace vkrope::tools {
namespace {

using Json = nlohmann::json;

constexpr std::size_t most_bytes = 1 << 20;

constexpr Choice<AngleSource> sources[] = {{"factored_texture", AngleSource::factored_texture},
                                           {"computed", AngleSource::computed},
                                           {"direct_texture", AngleSource::direct_texture},
                                           {"direct_buffer", AngleSource::direct_buffer},
                                           {"cos_sin_cache", AngleSource::cos_sin_cache}};
constexpr Choice<PositionSource> positions[] = {{"implicit", PositionSource::implicit},
                                                {"ids", PositionSource::ids},
                                                {"axis_ids", PositionSource::axis_ids}};
constexpr Choice<Mapping> mappings[] = {{"gpu", Mapping::gpu}, {"cpu", Mapping::cpu}};
constexpr Choice<SectionOrder> orders[] = {{"sequential", SectionOrder::sequential},
                                           {"interleaved", SectionOrder::interleaved}};
constexpr Choice<NormKind> norm_kinds[] = {
    {"none", NormKind::none}, {"rms", NormKind::rms}, {"layer", NormKind::layer}};
constexpr Choice<NormSpan> spans[] = {{"head", NormSpan::head}, {"token", NormSpan::token}};
constexpr Choice<NormPlace> places[] = {{"before", NormPlace::before}, {"after", NormPlace::after}};
constexpr Choice<ParameterShape> shapes[] = {{"none", ParameterShape::none},
                                             {"channel", ParameterShape::channel},
                                             {"head_channel", ParameterShape::head_channel}};
constexpr Choice<StoreScale> store_scales[] = {
    {"none", StoreScale::none},
    {"given", StoreScale::given},
    {"given_head", StoreScale::given_head},
    {"made", StoreScale::made},
    {"made_power_of_two", StoreScale::made_power_of_two}};
constexpr Choice<ScaleLayout> scale_layouts[] = {{"slots_heads", ScaleLayout::slots_heads},
                                                 {"pages_heads", ScaleLayout::pages_heads}};

// The fields of an object, each read once; a field that nobody reads is an error.
class Fields {
   public:
    Fields(const Json& object, std::string path, const std::string& file)
        : object_(object), path_(std::move(path)), file_(file) {
        if (!object.is_object()) refuse(path_, object, "an object");
    }
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;

    const Json* find(const char* field) {
        known_.emplace_back(field);
        const auto found = object_.find(field);
        return found == object_.end() ? nullptr : &*found;
    }

    void read(const char* field, std::uint32_t& target) {
        const Json* value = find(field);
        if (!value) return;
        if (!value->is_number_unsigned() ||
            value->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max())
            refuse(path_of(field), *value, "an integer from 0 to 4294967295");
        target = value->get<std::uint32_t>();
    }

    void read(const char* field, bool& target) {
        const Json* value = find(field);
        if (!value) return;
        if (!value->is_boolean()) refuse(path_of(field), *value, "true or false");
        target = value->get<bool>();
    }

    void read(const char* field, float& target) {
        const Json* value = find(field);
        if (!value) return;
        if (!value->is_number() ||
            !(std::fabs(value->get<double>()) <= std::numeric_limits<float>::max()))
            refuse(path_of(field), *value, "a number that a float holds");
        target = value->get<float>();
    }

    template <class Target, class T, std::size_t count>
    void read(const char* field, Target& target, const Choice<T> (&choices)[count]) {
        const Json* value = find(field);
        if (!value) return;
        std::string words;
        for (const Choice<T>& choice : choices) {
            if (*value == choice.word) {
                target = choice.value;
                return;
            }
            words += words.empty() ? "" : "|";
            words += choice.word;
        }
        refuse(path_of(field), *value, words.c_str());
    }

    /// The elements of an array of at most `most`.
    template <class Read>
    void read_each(const char* field, std::size_t most, const Read& read) {
        const Json* value = find(field);
        if (!value) return;
        if (!value->is_array() || value->size() > most)
            refuse(path_of(field), *value,
                   fmt::format("an array of at most {} elements", most).c_str());
        for (std::size_t i = 0; i < value->size(); ++i)
            read(i, (*value)[i], fmt::format("{}[{}]", path_of(field), i));
    }

    std::string path_of(const char* field) const {
        return path_.empty() ? field : path_ + '.' + field;
    }

    void end() const {
        for (const auto& [key, value] : object_.items()) {
            if (std::find(known_.begin(), known_.end(), key) == known_.end())
                fail(ExitCode::bad_file, "--info: '{}': {} is not a field of KernelInfo", file_,
                     path_of(key.c_str()));
        }
    }

    [[noreturn]] void refuse(const std::string& path, const Json& value, const char* rule) const {
        fail(ExitCode::bad_file, "--info: '{}': {} is {}; it must be {}", file_,
             path.empty() ? "the kernel" : path, value.dump(), rule);
    }

   private:
    const Json& object_;
    std::string path_;
    const std::string& file_;
    std::vector<std::string> known_;
};

class Reader {
   public:
    explicit Reader(const std::string& file) : file_(file) {}

    NamedInfo read(const Json& json, const std::string& path) const {
        Fields fields(json, path, file_);
        NamedInfo read{name_of(fields), {}};
        KernelInfo& info = read.info;
        info.mapping = Mapping::gpu;
        info.conversion = Conversion::integer;  // the modules serve every device
        fields.read("pairing", info.pairing, pairings);
        fields.read("pairing_out", info.pairing_out, pairings);
        fields.read("rotary_dim", info.rotary_dim);
        read_format(fields, "q", info.q);
        read_format(fields, "k", info.k);
        read_format(fields, "v", info.v);
        fields.read("angles", info.angles, sources);
        fields.read("positions", info.positions, positions);
        fields.read("mapping", info.mapping, mappings);
        fields.read("scatter_k", info.scatter_k);
        fields.read_each("windows", max_windows,
                         [&](std::size_t i, const Json& one, const std::string& where) {
                             Fields window(one, where, file_);
                             window.read("offset", info.windows[i].offset);
                             window.read("rotary_dim", info.windows[i].rotary_dim);
                             window.end();
                         });
        if (const Json* one = fields.find("sections")) read_sections(fields, *one, info.sections);
        fields.read("phase", info.phase);
        fields.read("head_groups", info.head_groups);
        fields.read("table", info.table, elements);
        fields.read("channel_angles", info.channel_angles);
        fields.read("q_heads", info.q_heads);
        fields.read("k_heads", info.k_heads);
        fields.read("v_heads", info.v_heads);
        read_finish(fields, "q_finish", info.q_finish);
        read_finish(fields, "k_finish", info.k_finish);
        read_finish(fields, "v_finish", info.v_finish);
        fields.read("two_parameter_sets", info.two_parameter_sets);
        fields.end();
        return read;
    }

   private:
    static std::string name_of(Fields& fields) {
        const Json* name = fields.find("name");
        if (!name) fields.refuse(fields.path_of("name"), nullptr, "the name of the files");
        std::string text = name->is_string() ? name->get<std::string>() : "";
        const bool plain = !text.empty() && text[0] != '.' && text[0] != '-' &&
                           text.find_first_not_of(
                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTU"
                               "VWXYZ0123456789_-.") == std::string::npos;
        if (!plain || text.size() > 100)
            fields.refuse(fields.path_of("name"), *name,
                          "a file name of at most 100 letters, digits, '_', '-' and '.'");
        return text;
    }

    void read_format(Fields& fields, const char* field, HeadFormat& format) const {
        const Json* one = fields.find(field);
        if (!one) return;
        Fields inner(*one, fields.path_of(field), file_);
        inner.read("head_dim", format.head_dim);
        inner.read("in", format.in, elements);
        format.out = format.in;
        inner.read("out", format.out, stored_elements);
        inner.read("rotary_offset", format.rotary_offset);
        inner.end();
    }

    void read_sections(Fields& fields, const Json& one, Sections& sections) const {
        Fields inner(one, fields.path_of("sections"), file_);
        inner.read("order", sections.order, orders);
        inner.read("axes", sections.axes);
        inner.read("leftover_axis", sections.leftover_axis);
        inner.read_each("pairs", max_axes,
                        [&](std::size_t i, const Json& count, const std::string& where) {
                            if (!count.is_number_unsigned() || count.get<std::uint64_t>() > 65535)
                                inner.refuse(where, count, "an integer from 0 to 65535");
                            sections.pairs[i] = count.get<std::uint32_t>();
                        });
        inner.end();
    }

    void read_norm(Fields& fields, Norm& norm) const {
        const Json* one = fields.find("norm");
        if (!one) return;
        Fields inner(*one, fields.path_of("norm"), file_);
        inner.read("kind", norm.kind, norm_kinds);
        inner.read("span", norm.span, spans);
        inner.read("place", norm.place, places);
        inner.read("eps", norm.eps);
        inner.read("weight", norm.weight, shapes);
        inner.read("weight_offset", norm.weight_offset);
        inner.read("bias", norm.bias, shapes);
        inner.read("round_between", norm.round_between);
        inner.end();
    }

    void read_finish(Fields& fields, const char* field, Finish& finish) const {
        const Json* one = fields.find(field);
        if (!one) return;
        Fields inner(*one, fields.path_of(field), file_);
        inner.read("bias", finish.bias, shapes);
        read_norm(inner, finish.norm);
        inner.read("clip", finish.clip);
        inner.read("scale", finish.scale);
        inner.read("scale_call", finish.scale_call);
        inner.read("scale_tokens", finish.scale_tokens);
        inner.read("hadamard", finish.hadamard);
        inner.read("store_scale", finish.store_scale, store_scales);
        inner.read("scale_floor", finish.scale_floor);
        inner.read("scale_layout", finish.scale_layout, scale_layouts);
        inner.end();
    }

    const std::string& file_;
};

std::string read_text(const std::string& path) {
    std::ifstream file;
    if (path != "-") {
        file.open(path, std::ios::binary);
        if (!file) fail(ExitCode::bad_file, "--info: '{}': cannot be read", path);
    }
    std::istream& in = path == "-" ? std::cin : file;
    std::string text(most_bytes + 1, '\0');
    in.read(text.data(), std::streamsize(text.size()));
    text.resize(std::size_t(in.gcount()));
    if (in.bad()) fail(ExitCode::bad_file, "--info: '{}': cannot be read", path);
    if (text.size() > most_bytes)
        fail(ExitCode::bad_file, "--info: '{}' has more than {} bytes", path, most_bytes);
    return text;
}

}  // namespace

std::vector<NamedInfo> read_kernel_infos(const std::string& path) {
    const Json json = Json::parse(read_text(path), nullptr, false);
    if (json.is_discarded()) fail(ExitCode::bad_file, "--info: '{}' is not JSON", path);
    const Reader reader(path);
    if (!json.is_array()) return {reader.read(json, "")};
    if (json.empty()) fail(ExitCode::bad_file, "--info: '{}' is an empty array", path);
    std::vector<NamedInfo> all;
    for (std::size_t i = 0; i < json.size(); ++i)
        all.push_back(reader.read(json[i], fmt::format("[{}]", i)));
    return all;
}

}  // namespace vkrope::tools
