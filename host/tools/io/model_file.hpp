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
    Pairing pairing = VKROPE_PAIRING_NONE;  ///< replaces the model's
};

/// Adds --model, which is required, --seq-len, --layer-type, --layer, --tower and --pairing, for
/// weights that were permuted and for models whose pairing is not known.
void add_model_options(CommandLine& command, ModelOptions& options);

/// The head counts of the language model; none if the file does not give them. Not read from GGUF
/// files.
struct HeadCounts {
    std::optional<std::uint64_t> q, k;
};

/// A model file, read once and queried for several of its RoPEs. A config.json may come through a
/// pipe.
class ModelFile {
   public:
    /// path  "-" is the standard input
    /// Throws Failure if it cannot be read.
    explicit ModelFile(const std::string& path);

    Result<RopeParams> read(const ModelQuery& query) const;

    HeadCounts heads() const;

    /// Names of layer types that a query may ask for; not all are of this model.
    std::vector<std::string> layer_types() const;

    /// Parameters of YaRN as the objects of a config.json may have them, each with every length
    /// that the file gives. Which of them belong together is for the caller to find out.
    std::vector<YarnScaling> yarn_scalings() const;

   private:
    std::optional<HfConfig> config_;  // exactly one of the two is set
    std::optional<GgufModel> gguf_;
};

struct Model {
    RopeParams rotation;
    HeadCounts heads;
    ModelFile file;
};

/// The windows of a rotation; if it names none, the one that it has.
std::vector<Window> windows_of(const RopeParams& rotation);

ModelQuery query_of(const ModelOptions& options);

/// Reads the file. Throws Failure. Warnings of the reader go to stderr.
Model load_model(const ModelOptions& options);

}  // namespace vkrope::tools
