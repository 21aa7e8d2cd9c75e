// SPDX-License-Identifier: MIT
// The model file given on the command line, as `vkrope frequencies` and `vkrope rotate` read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf/model.hpp"
#include "model/hf/config.hpp"

namespace vkrope::tools {

class CommandLine;

struct ModelOptions {
    std::string path;
    std::optional<std::uint64_t> sequence_length;
    std::string layer_type;
    std::optional<std::uint32_t> layer;
    std::string_view tower = "text";
    Pairing pairing = VKROPE_PAIRING_NONE;  // replaces the model's
    std::vector<std::string> ignore;        // names of keys
};

// Adds --model, which is required, --seq-len, --layer-type, --layer, --tower and --ignore. Also
// adds --pairing, for weights that were permuted and for models whose pairing is not known.
void add_model_options(CommandLine& command, ModelOptions& options);

// The head counts of the language model; none if the file does not give them. They are not read
// from GGUF files.
struct HeadCounts {
    std::optional<std::uint64_t> q, k;
};

// A model file, read once and queried for several of its RoPEs. A config.json may come through a
// pipe.
// A number in a config.json.
struct ModelNumber {
    std::string pointer;  // a JSON pointer, RFC 6901
    std::string name;     // its key
    double value = 0;
};

class ModelFile {
   public:
    // path  "-" is the standard input
    // Throws Failure if the file cannot be read.
    explicit ModelFile(const std::string& path);

    Result<RopeParams> read(const ModelQuery& query) const;

    HeadCounts heads() const;

    // Returns the layer types that a query may name, not all of which are types of this model.
    std::vector<std::string> layer_types() const;

    // Returns the parameters of YaRN that the objects of a config.json may state, each with every
    // length in the file. The caller must find out which parameters and lengths belong together.
    std::vector<YarnScaling> yarn_scalings() const;

    // Returns the numbers of a config.json; none of a GGUF file.
    std::vector<ModelNumber> numbers() const;

    // Returns the same config.json with another number.
    ModelFile with(const ModelNumber& number, double value) const;

   private:
    explicit ModelFile(HfConfig config) : config_(std::move(config)) {}

    std::optional<HfConfig> config_;  // exactly one of config_ and gguf_ is set
    std::optional<GgufModel> gguf_;
};

struct Model {
    RopeParams rotation;
    HeadCounts heads;
    ModelFile file;
};

// Returns the windows of a rotation. If the rotation lists none, returns its only window.
std::vector<Window> windows_of(const RopeParams& rotation);

// Returns the query, which refers to the options and to `ignored`.
ModelQuery query_of(const ModelOptions& options, std::vector<const char*>& ignored);

// Reads the file. Throws Failure. Prints the warnings of the reader to stderr.
Model load_model(const ModelOptions& options);

}  // namespace vkrope::tools
