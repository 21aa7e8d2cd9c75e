// SPDX-License-Identifier: MIT
// The command line of vkrope permute, and the order of its steps.
#include "permute/permute.hpp"

#include <algorithm>
#include <cctype>
#include <memory>

#include "files/model_options.hpp"
#include "shell/commands.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

/// One of several files of a checkpoint, "model-00001-of-00004.safetensors": it may have neither Q
/// nor K.
bool is_shard(const std::string& path) {
    const std::string name = std::filesystem::path(path).stem();
    const std::size_t of = name.rfind("-of-");
    return of != name.npos && of > 0 && std::isdigit(static_cast<unsigned char>(name[of - 1])) &&
           name.size() > of + 4 && name.find_first_not_of("0123456789", of + 4) == name.npos;
}

void check_options(const PermuteOptions& options) {
    if (options.out.empty() && !options.dry_run) {
        fail(ExitCode::usage, "--out is missing; --dry-run lists what would change without it");
    }
    if (options.in.ends_with(".json")) {
        fail(ExitCode::usage,
             "--in: '{}' is not a tensor file; each .safetensors file that an index names is "
             "permuted "
             "by itself",
             options.in);
    }
}

void check_something_changes(const PermuteOptions& options, const PermutePlan& plan) {
    if (!plan.permuted.empty()) {
        return;
    }
    if (is_shard(options.in)) {
        print_note(fmt::format("--in: '{}' has nothing of Q or K; it stays as it is", options.in));
        return;
    }
    fail(ExitCode::bad_file,
         "--in: '{}': no tensor is known to be of Q or K{}; --q and --k say which are", options.in,
         plan.left.empty() ? ""
                           : fmt::format(" ('{}', for one: {})", plan.left.front().tensor->name,
                                         plan.left.front().reason));
}

ExitCode permute(const PermuteOptions& options) {
    check_options(options);
    const ModelFile model(options.model);
    if (model.is_gguf()) {
        fail(ExitCode::usage,
             "--model: '{}' is a GGUF file, and GGUF weights have their own pairing; give the "
             "config.json",
             options.model);
    }
    try {
        const safetensors::File file(options.in);
        const PermutePlan plan = plan_permutation(options, model, file.header());
        check_something_changes(options, plan);
        std::vector<OutputFile> outputs;
        if (!options.dry_run) {
            outputs.emplace_back("--out", options.out, file.bytes());
            outputs.front().check_distinct_from("--in", options.in);
            outputs.front().check_distinct_from("--model", options.model);
            write_permuted(file, plan, options.to, outputs.front());
            OutputFile::publish(outputs);
        }
        report(options, file, plan);
    } catch (const safetensors::Error& error) {
        fail(ExitCode::bad_file, "--in: '{}': {}", options.in, error.what());
    }
    return ExitCode::success;
}

}  // namespace

void add_permute(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "permute",
        "Rearrange the rows of a checkpoint's Q and K weights for the other pairing; needs no "
        "device.");
    const auto options = std::make_shared<PermuteOptions>();
    command
        .add_text("--model", "FILE", options->model,
                  "The model's config.json (Hugging Face), or a pipe with one (- is stdin).")
        .required();
    command.add_choice("--pairing-to", options->to, pairings, "Which channels shall form a pair.")
        .required();
    add_pairing(command, options->pairing);
    command.add_text("--in", "FILE", options->in, "The checkpoint, .safetensors.").required();
    command.add_text("--out", "FILE", options->out,
                     "File for the rearranged checkpoint, with the same header.");
    command.add_flag("--dry-run", options->dry_run,
                     "List the tensors that would change, and write nothing.");
    command.add_texts("--q", "PATTERN", options->q,
                      "Tensors of Q by their names, where those are not Hugging Face's; * stands "
                      "for any characters. May be repeated.");
    command.add_texts("--k", "PATTERN", options->k, "Tensors of K by their names.");
    command.add_flag("--json", options->json, "Write JSON.");
    command.on_run([options] { return permute(*options); });
}

}  // namespace vkrope::tools
