// SPDX-License-Identifier: MIT
// The rotations of the config.json files in tests/data/models and of the cases there. The README.md
// of the cases describes groups and cases.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "check/others.hpp"
#include "cli/failure.hpp"
#include "io/model_file.hpp"

namespace vkrope::tools::right_engine {

using Json = nlohmann::ordered_json;

// One rotation that a model file describes: of a layer type, a layer or a tower.
struct ModelClass {
    std::string name;
    RopeParams rotation;
    std::vector<OtherRotation> others;
    std::vector<YarnScaling> yarn;
};

inline std::vector<Json> list_of(const Json& one_or_more) {
    return one_or_more.is_array() ? std::vector<Json>(one_or_more.begin(), one_or_more.end())
                                  : std::vector<Json>{one_or_more};
}

inline Json parsed(const std::filesystem::path& path) {
    std::ifstream stream(path);
    return Json::parse(stream);
}

// Returns a copy of `in` for each value of each name in "for"; a name may be part of a string.
inline std::vector<Json> for_values(const Json& in, const Json& names) {
    std::vector<std::string> texts = {in.dump()};
    for (const auto& [name, values] : names.items()) {
        std::vector<std::string> more;
        for (const std::string& each : texts) {
            for (const Json& value : list_of(values)) {
                std::string text = each;
                const auto replace = [&text](const std::string& from, const std::string& to) {
                    for (std::size_t at = 0; (at = text.find(from, at)) != text.npos;) {
                        text.replace(at, from.size(), to);
                        at += to.size();
                    }
                };
                const std::string word = value.dump();
                replace('"' + name + '"', word);
                replace(name, value.is_string() ? word.substr(1, word.size() - 2) : word);
                more.push_back(text);
            }
        }
        texts = std::move(more);
    }
    std::vector<Json> all;
    for (const std::string& text : texts) all.push_back(Json::parse(text));
    return all;
}

// Returns the documents of a group of cases: the fields of a config.json, and queries.
inline std::vector<Json> documents_of(const Json& whole) {
    std::vector<Json> all;
    for (const Json& one : list_of(whole.at("cases"))) {
        Json names = whole.value("for", Json::object()), group = whole, own = one;
        names.update(own.value("for", Json::object()));
        group.erase("cases"), group.erase("for"), own.erase("for");
        for (const Json& pair : for_values(Json::array({group, own}), names)) {
            Json base = Json::object(), fields = Json::object();
            for (const char* key : {"architecture", "model", "query"}) {
                for (const Json& part : pair)
                    if (part.contains(key)) base.update(Json{{key, part[key]}}, true);
            }
            if (base.contains("architecture")) continue;  // a GGUF file
            if (base.contains("model")) {
                fields = parsed(VKROPE_TEST_MODELS "/" + base["model"].get<std::string>() +
                                ".json");
            }
            fields.update(pair[0].value("fields", Json::object()), true);
            for (const Json& key : pair[1].value("without", Json::array()))
                fields.erase(key.get<std::string>());
            for (const Json& more : list_of(pair[1].value("fields", Json::object()))) {
                base["fields"] = fields;
                base["fields"].update(more, true);
                all.push_back(base);
            }
        }
    }
    return all;
}

// The classes of all files that are read without an error. Classes with the same numbers are one.
class ModelClasses {
   public:
    std::vector<ModelClass> all;

    ModelClasses() {
        namespace fs = std::filesystem;
        std::set<fs::path> files, cases;  // in the order of their names
        for (const auto& entry : fs::recursive_directory_iterator(VKROPE_TEST_MODELS)) {
            const fs::path folder = entry.path().parent_path().filename();
            if (entry.path().extension() != ".json" || folder == "expected") continue;
            (folder == "cases" ? cases : files).insert(entry.path());
        }
        for (const fs::path& path : files) add(path.stem().string(), parsed(path), Json::object());
        for (const fs::path& path : cases) {
            for (const Json& group : list_of(parsed(path))) {
                for (const Json& one : documents_of(group)) {
                    const Json& fields = one["fields"];
                    const Json type = fields.value("model_type",
                                                   fields.value("_class_name", Json()));
                    add(fmt::format("{}: {}: {}", path.stem().string(), group.value("name", ""),
                                    type.dump()),
                        fields, one.value("query", Json::object()));
                }
            }
        }
    }

   private:
    void add(const std::string& name, const Json& fields, const Json& queries) {
        ModelOptions asked;
        asked.path = VKROPE_TEST_SCRATCH "/judge_right_model.json";
        std::ofstream(asked.path, std::ios::binary) << fields.dump();
        std::optional<ModelFile> file;
        try {
            file.emplace(asked.path);
        } catch (const Failure&) {
            return;
        }
        const std::size_t before = all.size();
        std::set<std::string> of_file;
        std::vector<ModelOptions> options;
        for (const Json& query : list_of(queries)) {
            asked.tower = query.value("tower", "text") == "text" ? "text" : "vision";
            asked.layer_type = query.value("layer_type", "");
            asked.layer.reset();
            if (query.contains("layer")) asked.layer = query["layer"].get<std::uint32_t>();
            if (query.contains("seq_len"))
                asked.sequence_length = query["seq_len"].get<std::uint64_t>();
            if (query.contains("pairing")) {
                asked.pairing = query["pairing"] == "half_split" ? VKROPE_HALF_SPLIT
                                                                 : VKROPE_INTERLEAVED;
            }
            asked.ignore = query.value("ignore", std::vector<std::string>());
            keep(name, *file, asked, of_file, options);
        }
        const bool first_time = searched_.insert(fields.dump()).second;
        asked.layer.reset();
        for (const char* tower : {"text", "vision"}) {
            asked.tower = tower;
            asked.layer_type.clear();
            if (!keep(name, *file, asked, of_file, options) || !first_time) continue;
            for (const std::string& type : file->layer_types()) {
                asked.layer_type = type;
                keep(name, *file, asked, of_file, options);
            }
        }
        Json counted = fields;  // without a number of layers, other_rotations() tries 512
        if (!fields.contains("num_hidden_layers")) counted["num_hidden_layers"] = 6;
        std::ofstream(asked.path, std::ios::binary) << counted.dump();
        const ModelFile with_count(asked.path);
        for (std::size_t i = before; i < all.size(); ++i) {
            const RopeParams& rotation = all[i].rotation;
            all[i].yarn = yarn_scalings(*file, rotation);
            // If all layers and lengths of a file have the same numbers, it has no other rotation.
            if (of_file.size() > 1 || rotation.longest_seq_len != 0)
                all[i].others = other_rotations(with_count, options[i - before], rotation);
        }
    }

    // Returns false if this rotation cannot be read.
    bool keep(const std::string& name, const ModelFile& file, const ModelOptions& asked,
              std::set<std::string>& of_file, std::vector<ModelOptions>& options) {
        std::vector<const char*> ignored;
        Result<RopeParams> read = file.read(query_of(asked, ignored));
        if (read) {
            const std::string key = key_of(read.value);
            of_file.insert(key);
            if (known_.insert(key).second) {
                const std::string layer = asked.layer ? fmt::format("{}", *asked.layer) : "";
                all.push_back(
                    {fmt::format("{} [{} {}{}]", name, asked.tower, asked.layer_type, layer),
                     std::move(read.value),
                     {},
                     {}});
                options.push_back(asked);
            }
        }
        return bool(read);
    }

    // Returns the numbers that a check uses.
    static std::string key_of(const RopeParams& r) {
        std::string key = fmt::format("{} {} {} {} {} {} {} {} {}", int(r.pairing), r.head_dim,
                                      r.rotary_dim, r.q_rotary_offset, r.k_rotary_offset, r.no_rope,
                                      r.attention_factor, r.head_groups,
                                      int(r.ops.query_scale.kind));
        const auto add_bytes = [&key](const void* bytes, std::size_t size) {
            key.append(static_cast<const char*>(bytes), size);
        };
        add_bytes(r.inv_freq.data(), r.inv_freq.size() * sizeof(double));
        add_bytes(r.phase.data(), r.phase.size() * sizeof(double));
        add_bytes(&r.sections, sizeof r.sections);
        add_bytes(&r.windows, sizeof r.windows);
        add_bytes(&r.ops.tensor, sizeof r.ops.tensor);
        return key;
    }

    std::set<std::string> known_, searched_;  // the keys of `all`, and documents
};

}  // namespace vkrope::tools::right_engine
