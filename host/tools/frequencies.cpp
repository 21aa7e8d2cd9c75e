// SPDX-License-Identifier: MIT
// vkrope frequencies: what a model's RoPE is, as numbers.
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

#include "commands.hpp"
#include "model_file.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace vkrope::tools {
namespace {

enum class Tower { text, vision };
constexpr Choice<Tower> towers[] = {{"text", Tower::text}, {"vision", Tower::vision}};

struct FrequenciesOptions {
    ModelOptions model;
    Tower tower = Tower::text;
    bool json = false;
};

/// null where a token has one position.
nlohmann::ordered_json json_of(const Sections& sections) {
    if (sections.axes == 0) {
        return nullptr;
    }
    const bool interleaved = sections.order == SectionOrder::interleaved;
    nlohmann::ordered_json json = {{"mode", interleaved ? "interleaved" : "sequential"},
                                   {"sizes", std::vector(sections.pairs, sections.pairs + sections.axes)}};
    if (interleaved) {
        json["leftover_axis"] = sections.leftover_axis;
    }
    return json;
}

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
            {"sections", json_of(rotation.sections)},
            {"inv_freq", rotation.inv_freq},
            {"warnings", rotation.warnings}};
}

std::string text_of(const Sections& sections) {
    if (sections.axes == 0) {
        return "one position a token";
    }
    return fmt::format("{} axes, {} sections of {} pairs", sections.axes,
                       sections.order == SectionOrder::interleaved ? "interleaved" : "sequential",
                       fmt::join(sections.pairs, sections.pairs + sections.axes, ", "));
}

std::string table_of(const Rotation& rotation) {
    if (!rotation.rotates) {
        return fmt::format("head_dim          {}\nThis layer has no RoPE.\n", rotation.head_dim);
    }
    std::string table = fmt::format(
        "rope type         {}\nhead_dim          {}\nrotary_dim        {}, from channel {} of Q and {} of K, {}\n"
        "positions         {}\nattention factor  {:.17g}\nsoftmax scale     {:.17g}\n\n{:>5}  {:<24}  wavelength (positions)\n",
        rotation.rope_type, rotation.head_dim, rotation.rotary_dim, rotation.q_rotary_offset, rotation.k_rotary_offset,
        word_for(pairings, rotation.pairing), text_of(rotation.sections), rotation.attention_factor, rotation.softmax_scale, "j",
        "inv_freq (radians)");
    for (std::size_t j = 0; j < rotation.inv_freq.size(); ++j) {
        table += fmt::format("{:>5}  {:<24.17g}  {:.8g}\n", j, rotation.inv_freq[j], 2 * std::numbers::pi / rotation.inv_freq[j]);
    }
    return table;
}

ExitCode print_frequencies(const FrequenciesOptions& options) {
    ModelOptions model = options.model;
    model.tower = word_for(towers, options.tower);
    const Rotation rotation = load_model(model).rotation;
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
