// SPDX-License-Identifier: MIT
// Which tensors a change of pairing changes, and how.
#include <algorithm>
#include <map>
#include <set>

#include "files/npy.hpp"
#include "permute/names.hpp"
#include "permute/permute.hpp"
#include "shell/failure.hpp"
#include "shell/terminal.hpp"
#include "shell/words.hpp"

namespace vkrope::tools {
namespace {

/// Each layer's RoPE is read from the model file, and a hostile one makes that slow.
constexpr std::size_t max_layers = 256;

/// The heads of Q or of K in one layer, as rows of a projection.
struct HeadRows {
    std::uint64_t heads = 0, channels = 0;
    std::uint32_t rotary_offset = 0;
};

class Planner {
   public:
    Planner(const PermuteOptions& options, const ModelFile& model)
        : options_(options), model_(model), heads_(model.heads()) {}

    void add(const safetensors::Tensor& tensor) {
        const auto named_by = [&tensor](const std::vector<std::string>& patterns) {
            return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
                return matches(pattern, tensor.name);
            });
        };
        const bool q = named_by(options_.q), k = named_by(options_.k);
        if (q && k) {
            fail(ExitCode::usage, "--k: '{}' is named by --q as well", tensor.name);
        }
        TensorName name = tensor_name(tensor.name);
        if (q || k) {
            name = {.kind = NameKind::follows,
                    .key = k,
                    .norm = true,
                    .scale = false,
                    .layer = layer_in(tensor.name)};
        }
        switch (name.kind) {
            case NameKind::other:
            case NameKind::shared: return;
            case NameKind::elsewhere: leave(tensor, name.reason); return;
            case NameKind::unsupported: refuse(tensor, name.reason); break;
            case NameKind::follows: add(tensor, name); return;
        }
    }

    PermutePlan finished() {
        for (const std::string& warning : warnings_) {
            print_warning(fmt::format("{}: {}", options_.model, warning));
        }
        std::vector<std::uint32_t> alone;
        std::set_symmetric_difference(q_layers_.begin(), q_layers_.end(), k_layers_.begin(),
                                      k_layers_.end(), std::back_inserter(alone));
        if (!alone.empty()) {
            print_note(fmt::format(
                "--in: layer {}{} has only {} here; both must be permuted, wherever they are",
                alone.front(),
                alone.size() > 1 ? fmt::format(", as {} others,", alone.size() - 1) : "",
                q_layers_.contains(alone.front()) ? "Q" : "K"));
        }
        return std::move(plan_);
    }

   private:
    [[noreturn]] void refuse(const safetensors::Tensor& tensor, const std::string& reason) const {
        fail(ExitCode::bad_file, "--in: '{}': tensor '{}' {}", options_.in, tensor.name, reason);
    }

    void leave(const safetensors::Tensor& tensor, std::string reason) {
        plan_.left.push_back({&tensor, std::move(reason)});
    }

    /// The RoPE of a layer; of the whole model if there is no number.
    const Result<Rotation>& rotation_of(std::optional<std::uint32_t> layer) {
        const int number = layer ? static_cast<int>(*layer) : -1;
        const auto found = rotations_.find(number);
        if (found != rotations_.end()) {
            return found->second;
        }
        if (rotations_.size() == max_layers) {
            fail(ExitCode::bad_file, "--in: '{}': tensors of more than {} layers", options_.in,
                 max_layers);
        }
        Result<Rotation> rotation = model_.read({.layer = number, .pairing = options_.pairing});
        warnings_.insert(rotation.value.warnings.begin(), rotation.value.warnings.end());
        rotation.value.inv_freq = std::vector<double>();  // not needed, and may be many
        return rotations_.emplace(number, std::move(rotation)).first->second;
    }

    HeadRows rows_of(const safetensors::Tensor& tensor, const Rotation& rotation, bool key) const {
        const std::uint32_t q = rotation.q_rotary_offset, k = rotation.k_rotary_offset,
                            width = rotation.rotary_dim;
        const bool latent = std::max(q, k) + width > rotation.head_dim;
        if (latent && key) {
            return {1, k + width, k};  // one row of the cache, whatever the number of heads
        }
        const std::optional<std::uint64_t> heads = key ? heads_.k : heads_.q;
        if (!heads) {
            fail(ExitCode::bad_file,
                 "--model: '{}': num_attention_heads is missing; it says how many heads '{}' has",
                 options_.model, tensor.name);
        }
        return {*heads, latent ? q + width : rotation.head_dim, key ? k : q};
    }

    std::uint64_t row_bytes(const safetensors::Tensor& tensor, std::uint64_t rows) const {
        if (!safetensors::element_bits(tensor.dtype)) {
            refuse(tensor, fmt::format("has dtype {}, which is not known", tensor.dtype));
        }
        const std::uint64_t bytes = tensor.end - tensor.begin;
        if (bytes % rows != 0) {
            refuse(tensor, fmt::format("has {} rows in {} bytes; a row must fill whole bytes", rows,
                                       bytes));
        }
        return bytes / rows;
    }

    void add(const safetensors::Tensor& tensor, const TensorName& name) {
        if (name.of_meta && !options_.pairing) {
            fail(ExitCode::usage,
                 "--pairing: missing; '{}' is a name of Meta's own files, whose pairing no "
                 "config.json states",
                 tensor.name);
        }
        const Result<Rotation>& read = rotation_of(name.layer);
        if (name.layer && read.status.code == Code::invalid_argument) {  // no layer of the model
            leave(tensor, static_cast<const char*>(read.status.what));
            return;
        }
        check(read.status, Subject::model_file, fmt::format("--model: '{}': ", options_.model));
        const Rotation& rotation = read.value;
        if (!rotation.rotates) {
            leave(tensor, name.layer ? fmt::format("layer {} has no RoPE", *name.layer)
                                     : std::string("the model has no RoPE"));
            return;
        }
        if (rotation.pairing == options_.to) {
            fail(ExitCode::usage,
                 "--pairing-to: the weights are {} already; give --pairing if they are not",
                 word_for(pairings, options_.to));
        }
        const std::vector<std::uint64_t>& shape = tensor.shape;
        if (name.scale && tensor.end - tensor.begin > 0 &&
            std::all_of(shape.begin(), shape.end(), [](std::uint64_t n) { return n == 1; })) {
            return;  // one number for all rows
        }
        HeadRows rows = rows_of(tensor, rotation, name.key);
        using Shape = std::vector<std::uint64_t>;
        if (name.norm && shape == Shape{rows.channels}) {
            rows.heads = 1;
        } else if (!(name.norm && shape == Shape{rows.heads, rows.channels}) &&
                   (shape.empty() || shape[0] % rows.channels != 0 ||
                    shape[0] / rows.channels != rows.heads)) {
            refuse(
                tensor,
                fmt::format("has shape {}; {} {} of {} channels {} {} rows", npy::shape_text(shape),
                            rows.heads, rows.heads == 1 ? "head" : "heads", rows.channels,
                            rows.heads == 1 ? "has" : "have", rows.heads * rows.channels));
        }
        if (tensor.begin == tensor.end) {
            return;
        }
        plan_.from = rotation.pairing;
        plan_.permuted.push_back({.tensor = &tensor,
                                  .key = name.key,
                                  .heads = rows.heads,
                                  .channels = rows.channels,
                                  .rotary_offset = rows.rotary_offset,
                                  .rotary_dim = rotation.rotary_dim,
                                  .windows = windows_of(rotation),
                                  .row_bytes = row_bytes(tensor, rows.heads * rows.channels)});
        if (name.layer && shape.size() > 1 && !name.norm) {
            (name.key ? k_layers_ : q_layers_).insert(*name.layer);
        }
    }

    const PermuteOptions& options_;
    const ModelFile& model_;
    HeadCounts heads_;
    std::map<int, Result<Rotation>> rotations_;  // by layer; -1: without a number
    std::set<std::string> warnings_;
    std::set<std::uint32_t> q_layers_, k_layers_;
    PermutePlan plan_;
};

/// A pattern that names nothing is a mistake in it.
void check_patterns(const char* option, const std::vector<std::string>& patterns,
                    const safetensors::Header& header) {
    for (const std::string& pattern : patterns) {
        if (std::none_of(header.tensors.begin(), header.tensors.end(),
                         [&pattern](const safetensors::Tensor& tensor) {
                             return matches(pattern, tensor.name);
                         })) {
            fail(ExitCode::usage, "{}: no tensor in the file is named as '{}'", option, pattern);
        }
    }
}

}  // namespace

PermutePlan plan_permutation(const PermuteOptions& options, const ModelFile& model,
                             const safetensors::Header& header) {
    check_patterns("--q", options.q, header);
    check_patterns("--k", options.k, header);
    Planner planner(options, model);
    for (const safetensors::Tensor& tensor : header.tensors) {
        planner.add(tensor);
    }
    return planner.finished();
}

}  // namespace vkrope::tools
