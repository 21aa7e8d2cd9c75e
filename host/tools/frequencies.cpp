// SPDX-License-Identifier: MIT
// vkrope frequencies: what a model's RoPE is, as numbers.
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>

#include "commands.hpp"
#include "model_file.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace vkrope::tools {
namespace {

enum class Tower { text };
constexpr Choice<Tower> towers[] = {{"text", Tower::text}, {"vision", std::nullopt}};

struct FrequenciesOptions {
    ModelOptions model;
    Tower tower = Tower::text;
    bool json = false;
};

nlohmann::ordered_json json_of(const Rotation& rotation) {
    return {{"head_dim", rotation.head_dim},
            {"rotary_dim", rotation.rotary_dim},
            {"q_rotary_offset", rotation.q_rotary_offset},
            {"k_rotary_offset", rotation.k_rotary_offset},
            {"pairing", word_for(pairings, rotation.pairing)},
            {"rope_type", rotation.rope_type},
            {"rotates", rotation.rotates},
            {"attention_factor", rotation.attention_factor},
            {"softmax_scale", rotation.softmax_scale},
            {"sections", nullptr},
            {"inv_freq", rotation.inv_freq},
            {"warnings", rotation.warnings}};
}

std::string table_of(const Rotation& rotation) {
    std::string table = fmt::format(
        "rope type         {}\nhead_dim          {}\nrotary_dim        {}, from channel {} of Q and {} of K, {}\n"
        "attention factor  {:.17g}\nsoftmax scale     {:.17g}\n\n{:>5}  {:<24}  wavelength (positions)\n",
        rotation.rope_type, rotation.head_dim, rotation.rotary_dim, rotation.q_rotary_offset, rotation.k_rotary_offset,
        word_for(pairings, rotation.pairing), rotation.attention_factor, rotation.softmax_scale, "j", "inv_freq (radians)");
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        table += fmt::format("{:>5}  {:<24.17g}  {:.8g}\n", j, rotation.inv_freq[j], 2 * std::numbers::pi / rotation.inv_freq[j]);
    }
    return table;
}

ExitCode print_frequencies(const FrequenciesOptions& options) {
    const Rotation rotation = load_model(options.model).rotation;
    options.json ? write_json(json_of(rotation)) : write_output(table_of(rotation));
    return ExitCode::success;
}

}  // namespace

Command add_frequencies(CLI::App& vkrope) {
    CLI::App* command = vkrope.add_subcommand("frequencies", "Print the frequency of every channel pair of a model's RoPE.");
    const auto options = std::make_shared<FrequenciesOptions>();
    add_model_options(*command, options->model);
    add_integer(*command, "--layer", options->model.layer, std::uint32_t{0}, std::uint32_t{65535},
                "Which layer, where the model has layer types.")
        ->excludes("--layer-type");
    add_choice(*command, "--tower", options->tower, towers, "Which part of a model that has several.");
    command->add_flag("--json", options->json, "Write JSON.");
    return {.options = command, .run = [options] { return print_frequencies(*options); }};
}

}  // namespace vkrope::tools
