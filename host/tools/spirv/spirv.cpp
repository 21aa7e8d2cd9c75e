// SPDX-License-Identifier: MIT
// vkrope spirv: the modules of kernels as files, with a manifest, for hosts in any language.
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>

#include "files/model_options.hpp"
#include "shell/command_line.hpp"
#include "shell/commands.hpp"
#include "shell/output_file.hpp"
#include "spirv/manifest.hpp"

namespace vkrope::tools {
namespace {

constexpr const char* manifest_name = "manifest.json";

struct SpirvOptions {
    std::vector<std::string> infos;
    std::string out;
    ModelOptions model;
    std::optional<std::uint64_t> max_position;
};

std::filesystem::path made_folder(const std::string& path) {
    std::error_code failed;
    std::filesystem::create_directories(path, failed);
    if (failed) fail(ExitCode::bad_file, "--out: '{}': {}", path, failed.message());
    return path;
}

// One by one: a kernel may have more files than a command can publish together.
void write_file(const SpirvOptions& options, const std::filesystem::path& folder,
                const ModuleFile& content) {
    std::vector<OutputFile> file;
    file.emplace_back("--out", (folder / content.name).string(), content.bytes.size());
    for (const std::string& info : options.infos) {
        if (info != "-") file.front().check_distinct_from("--info", info);
    }
    file.front().write(content.bytes);
    OutputFile::publish(file);
}

ExitCode write_spirv(const SpirvOptions& options) {
    std::vector<NamedInfo> kernels;
    for (const std::string& path : options.infos) {
        for (NamedInfo& named : read_kernel_infos(path)) kernels.push_back(std::move(named));
    }
    std::optional<TableRequest> tables;
    if (options.max_position) tables = {load_model(options.model).rotation, *options.max_position};
    std::vector<ModuleFile> contents;
    const nlohmann::ordered_json manifest = make_manifest(kernels, tables, contents);
    // Last, when all that it names is there.
    contents.push_back({manifest_name, manifest.dump(1) + '\n'});
    const std::filesystem::path folder = made_folder(options.out);
    for (const ModuleFile& content : contents) write_file(options, folder, content);
    return ExitCode::success;
}

}  // namespace

void add_spirv(CommandLine& vkrope) {
    CommandLine& command = vkrope.add_command(
        "spirv",
        "Write the SPIR-V modules of kernels with a manifest, for a Vulkan host in any language.");
    const auto options = std::make_shared<SpirvOptions>();
    command
        .add_texts("--info", "FILE", options->infos,
                   "The kernels: a KernelInfo in JSON or an array of them, each with a \"name\"; - "
                   "is the standard input. May be repeated.")
        .required();
    command
        .add_text("--out", "FOLDER", options->out,
                  "Receives a .spv file for each module, and manifest.json.")
        .required();
    Option model = add_model_options(command, options->model);
    model.required(false).append_help(" Writes the kernels' angle tables as well.");
    for (const char* part : {"--seq-len", "--layer-type", "--layer", "--tower", "--pairing"})
        command.option(part).needs(model);
    Option reach = command.add_integer("--max-position", options->max_position, std::uint64_t{1},
                                       std::uint64_t{1} << 31,
                                       "The angle tables cover positions below N in magnitude.");
    reach.needs(model);
    model.needs(reach);
    command.on_run([options] { return write_spirv(*options); });
}

}  // namespace vkrope::tools
