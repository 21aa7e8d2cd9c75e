// SPDX-License-Identifier: MIT
#include "io/model_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/command_line.hpp"
#include "cli/failure.hpp"
#include "cli/system.hpp"
#include "cli/terminal.hpp"
#include "model/json_document.hpp"

namespace vkrope::tools {
namespace {

constexpr Choice<std::string_view> towers[] = {{"text", "text"}, {"vision", "vision"}};

// Returns true for a pipe, the standard input, or `<(command)` in a shell. Such streams have no
// size and cannot be read twice.
bool is_stream(const std::filesystem::path& path) {
    std::error_code ignored;
    return std::filesystem::is_fifo(path, ignored) ||
           std::filesystem::is_character_file(path, ignored);
}

std::ifstream open_model(const std::string& path) {
    const std::filesystem::path file_path = path_of(path);
    std::error_code ignored;
    if (std::filesystem::is_directory(file_path, ignored))
        fail(ExitCode::bad_file, "--model: '{}' is a directory; name the config.json in it", path);
    if (std::filesystem::exists(file_path, ignored) &&
        !std::filesystem::is_regular_file(file_path, ignored) && !is_stream(file_path))
        fail(ExitCode::bad_file, "--model: '{}' is neither a regular file nor a pipe", path);
    std::ifstream file(file_path, std::ios::binary);
    if (!file)
        fail(ExitCode::bad_file, "--model: '{}' cannot be read: {}", path, std::strerror(errno));
    return file;
}

// Detects a GGUF file by its first bytes, whatever its name.
bool begins_as_gguf(std::ifstream& file) {
    char magic[4] = {};
    file.read(magic, sizeof magic);
    const bool found = file.gcount() == sizeof magic &&
                       std::memcmp(magic, "GGUF", sizeof magic) == 0;
    file.clear();
    file.seekg(0);
    return found;
}

std::string read_text(std::istream& file, const std::string& path) {
    std::string text;
    for (char piece[65536]; file.read(piece, sizeof piece), file.gcount() > 0;) {
        text.append(piece, std::size_t(file.gcount()));
        if (text.size() > max_json_bytes) {
            fail(ExitCode::bad_file,
                 "--model: '{}' has more than {} bytes, so it is not a config.json", path,
                 max_json_bytes);
        }
    }
    if (file.bad())
        fail(ExitCode::bad_file, "--model: '{}' cannot be read: {}", path, std::strerror(errno));
    return text;
}

HeadCounts head_counts(const nlohmann::json& json) {
    const auto count = [&json](const char* key) -> std::optional<std::uint64_t> {
        const auto found = json.is_object() ? json.find(key) : json.end();
        return found != json.end() && found->is_number_unsigned()
                   ? std::optional(found->get<std::uint64_t>())
                   : std::nullopt;
    };
    auto q = count("num_attention_heads");
    for (const char* key : {"n_head", "n_heads"}) q = q ? q : count(key);
    auto k = count("num_key_value_heads");
    for (const char* key : {"num_kv_heads", "kv_n_heads", "n_kv_heads"}) k = k ? k : count(key);
    return {.q = q,
            .k = k ? k : q};  // without the second key every query head has its own key head
}

// Calls visit(object) for the objects of a document and, recursively, for the objects in them.
template <class Visit>
void each_object(const nlohmann::json& json, const Visit& visit) {
    if (json.is_object()) visit(json);
    if (json.is_structured())
        for (const nlohmann::json& inside : json) each_object(inside, visit);
}

double number_or(const nlohmann::json& object, const char* key, double otherwise) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

}  // namespace

void add_model_options(CommandLine& command, ModelOptions& options) {
    command
        .add_text("--model", "FILE", options.path,
                  "The model's config.json (Hugging Face), a pipe with one (- is stdin), or a GGUF "
                  "file.")
        .required();
    command.add_integer("--seq-len", options.sequence_length, std::uint64_t{1}, max_positions,
                        "Length of the sequence, for scalings that depend on it.");
    const Option layer_type = command.add_text(
        "--layer-type", "NAME", options.layer_type,
        "Which of the model's layer types, if it has several.");
    command
        .add_integer("--layer", options.layer, std::uint32_t{0}, std::uint32_t{65535},
                     "Which layer, if the model has layer types.")
        .excludes(layer_type);
    command.add_choice("--tower", options.tower, towers,
                       "Which part of a model, if it has several.");
    command.add_choice("--pairing", options.pairing, pairings,
                       "Which channels form a pair, instead of the model's.");
    command.add_texts("--ignore", "KEY", options.ignore,
                      "A key of the file that the model's own code does not use.");
}

ModelFile::ModelFile(const std::string& path) {
    // Does not open /dev/stdin, which would reopen a file that may have been written to and closed.
    const bool standard_input = path == "-";
    std::ifstream file;
    if (!standard_input) file = open_model(path);
    if (standard_input || is_stream(path_of(path))) {
        const std::string text = read_text(standard_input ? std::cin : file, path);
        if (text.starts_with("GGUF")) {
            fail(ExitCode::bad_file,
                 "--model: '{}' is a GGUF file, which is not read through a pipe: give its name",
                 path);
        }
        config_.emplace(text);
        return;
    }
    const bool called_gguf = path_of(path).extension() ==
                             ".gguf";  // the GGUF reader reports the error
    if (begins_as_gguf(file) || called_gguf)
        gguf_.emplace(path);
    else
        config_.emplace(read_text(file, path));
}

Result<RopeParams> ModelFile::read(const ModelQuery& query) const {
    return config_ ? config_->rotation(query) : gguf_->rotation(query);
}

std::vector<std::string> ModelFile::layer_types() const {
    std::vector<std::string> types = {"full_attention",
                                      "sliding_attention",
                                      "chunked_attention",
                                      "windowed_attention",
                                      "compressed_sparse_attention",
                                      "heavily_compressed_attention",
                                      "indexer"};
    const auto add = [&types](const std::string& type) {
        if (std::find(types.begin(), types.end(), type) == types.end()) {
            types.push_back(type);
        }
    };
    if (config_) {
        each_object(
            config_->document(),
            [&add](const nlohmann::json& object) {
                if (const auto list = object.find("layer_types"); list != object.end()) {
                    for (const nlohmann::json& type : *list)
                        if (type.is_string()) add(type.get<std::string>());
                }
                const auto own = object.find("rope_parameters");
                if (own != object.end() && own->is_object()) {
                    for (const auto& [type, parameters] : own->items())
                        if (parameters.is_object()) add(type);
                }
            });
    }
    return types;
}

std::vector<YarnScaling> ModelFile::yarn_scalings() const {
    std::vector<double> lengths;
    std::vector<YarnScaling> found, each;
    if (config_) {
        each_object(
            config_->document(),
            [&](const nlohmann::json& object) {
                for (const char* key : {"original_max_position_embeddings",
                                        "initial_context_length", "max_position_embeddings"})
                    if (const double length = number_or(object, key, 0); length > 0)
                        lengths.push_back(length);
                if (const double factor = number_or(object, "factor", 0); factor > 0)
                    found.push_back({.factor = factor,
                                     .beta_fast = number_or(object, "beta_fast", 32),
                                     .beta_slow = number_or(object, "beta_slow", 1)});
            });
    }
    for (YarnScaling yarn : found) {
        for (const double length : lengths) {
            yarn.original_max_position_embeddings = length;
            each.push_back(yarn);
        }
    }
    return each;
}

std::vector<ModelNumber> ModelFile::numbers() const {
    std::vector<ModelNumber> numbers;
    if (config_) {
        const nlohmann::json flat = config_->document().flatten();
        for (const auto& [pointer, value] : flat.items()) {
            const std::string key = pointer.substr(pointer.rfind('/') + 1);
            const bool in_list = key.find_first_not_of("0123456789") == std::string::npos;
            if (value.is_number() && !in_list)
                numbers.push_back({pointer, key, value.get<double>()});
        }
    }
    return numbers;
}

ModelFile ModelFile::with(const ModelNumber& number, double value) const {
    nlohmann::json document = config_->document();
    nlohmann::json& changed = document[nlohmann::json::json_pointer(number.pointer)];
    if (changed.is_number_integer() && value == std::floor(value))
        changed = std::int64_t(value);
    else
        changed = value;
    return ModelFile(HfConfig(document.dump()));
}

HeadCounts ModelFile::heads() const {
    return config_ ? head_counts(config_->language_model()) : HeadCounts();
}

ModelQuery query_of(const ModelOptions& options, std::vector<const char*>& ignored) {
    ignored.clear();
    for (const std::string& name : options.ignore) ignored.push_back(name.c_str());
    return {.layer_type = options.layer_type.c_str(),
            .seq_len = options.sequence_length.value_or(0),
            .by_layer = options.layer.has_value(),
            .layer = std::uint32_t(options.layer.value_or(0)),
            .tower = options.tower.data(),
            .pairing = options.pairing,
            .ignore = ignored.data(),
            .ignore_count = ignored.size()};
}

std::vector<Window> windows_of(const RopeParams& rotation) {
    std::vector<Window> windows;
    for (const Window& window : rotation.windows)
        if (window.rotary_dim != 0) windows.push_back(window);
    if (windows.empty()) windows.push_back({0, rotation.rotary_dim});
    return windows;
}

Model load_model(const ModelOptions& options) {
    const std::string prefix = fmt::format("--model: '{}': ", options.path);
    ModelFile file(options.path);
    std::vector<const char*> ignored;
    RopeParams rotation = value_of(file.read(query_of(options, ignored)), Subject::model_file,
                                   prefix);
    // The head counts of a vision tower are not read.
    const HeadCounts heads = options.tower == "text" ? file.heads() : HeadCounts();
    Model model = {.rotation = std::move(rotation), .heads = heads, .file = std::move(file)};
    for (const std::string& warning : model.rotation.warnings)
        print_warning(fmt::format("{}: {}", options.path, warning));
    return model;
}

}  // namespace vkrope::tools
