// SPDX-License-Identifier: MIT
// The last step of vkrope permute: says which tensors change, and which only look as if they would.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "files/npy.hpp"
#include "permute/permute.hpp"
#include "shell/terminal.hpp"
#include "shell/words.hpp"

namespace vkrope::tools {
namespace {

nlohmann::ordered_json json_of(const PermuteOptions& options, const safetensors::File& file,
                               const PermutePlan& plan) {
    nlohmann::ordered_json permuted = nlohmann::ordered_json::array(), left = permuted;
    for (const PermutedTensor& each : plan.permuted) {
        permuted.push_back({{"name", each.tensor->name},
                            {"tensor", each.key ? "k" : "q"},
                            {"dtype", each.tensor->dtype},
                            {"shape", each.tensor->shape},
                            {"heads", each.heads},
                            {"channels", each.channels},
                            {"rotary_offset", each.rotary_offset},
                            {"rotary_dim", each.rotary_dim}});
    }
    for (const LeftTensor& each : plan.left) {
        left.push_back({{"name", each.tensor->name}, {"reason", each.reason}});
    }
    return {{"in", options.in},
            {"out", options.dry_run ? nlohmann::ordered_json(nullptr)
                                    : nlohmann::ordered_json(options.out)},
            {"tensors", file.header().tensors.size()},
            {"bytes", file.bytes()},
            {"pairing",
             {{"from", plan.from ? nlohmann::ordered_json(word_for(pairings, *plan.from))
                                 : nlohmann::ordered_json(nullptr)},
              {"to", word_for(pairings, options.to)}}},
            {"permuted", std::move(permuted)},
            {"left", std::move(left)}};
}

std::string text_of(const PermuteOptions& options, const safetensors::File& file,
                    const PermutePlan& plan) {
    const auto keys = std::count_if(plan.permuted.begin(), plan.permuted.end(),
                                    [](const PermutedTensor& each) { return each.key; });
    std::string text = fmt::format(
        "in          {}: {} tensors, {}\n"
        "pairing     {}to {}\n"
        "permuted    {} tensors of Q, {} of K\n",
        printable(options.in), file.header().tensors.size(), bytes_text(file.bytes()),
        plan.from ? fmt::format("{} ", word_for(pairings, *plan.from)) : "",
        word_for(pairings, options.to), plan.permuted.size() - static_cast<std::size_t>(keys),
        keys);
    for (const PermutedTensor& each : plan.permuted) {
        if (!options.dry_run) {
            break;  // a file has hundreds
        }
        text += fmt::format("    {}: {} {}, {} x {} rows, channels {} to {} of each head\n",
                            printable(each.tensor->name), each.tensor->dtype,
                            npy::shape_text(each.tensor->shape), each.heads, each.channels,
                            each.rotary_offset, each.rotary_offset + each.rotary_dim - 1);
    }
    text += fmt::format("left        {} tensors that look like Q or K\n", plan.left.size());
    for (const LeftTensor& each : plan.left) {
        text += fmt::format("    {}: {}\n", printable(each.tensor->name), printable(each.reason));
    }
    return text + (options.dry_run ? std::string("out         nothing was written: --dry-run\n")
                                   : fmt::format("out         {}\n", printable(options.out)));
}

}  // namespace

void report(const PermuteOptions& options, const safetensors::File& file, const PermutePlan& plan) {
    if (options.json) {
        write_json(json_of(options, file, plan));
    } else {
        write_output(text_of(options, file, plan));
    }
}

}  // namespace vkrope::tools
