// SPDX-License-Identifier: MIT
#include "check/others.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "check/mistakes.hpp"

namespace vkrope::tools {
namespace {

constexpr std::size_t most_others = 24;  // each is also tried with every other mistake
constexpr int most_layers = 512;         // for a file that does not state the number of layers

bool same(const RopeParams& a, const RopeParams& b) {
    return !a.no_rope == !b.no_rope && a.rotary_dim == b.rotary_dim &&
           a.attention_factor == b.attention_factor && !differ(a.inv_freq, b.inv_freq);
}

// The other RoPEs of a file, each once.
class Others {
   public:
    Others(const ModelFile& file, const RopeParams& right) : file_(file), right_(right) {}

    // Returns false if the model does not have what the query asks for. Other errors return true,
    // because a RoPE that cannot be read is left out.
    bool add(const char* mistake, const std::string& detail, const ModelQuery& query) {
        const Result<RopeParams> other = file_.read(query);
        if (!other) return other.status.code != VKROPE_ERROR_INVALID_ARGUMENT;
        keep(mistake, detail, other.value);
        if (right_.no_rope) {
            keep_bases(mistake, detail, other.value);
        } else if (other.value.head_dim != right_.head_dim) {  // keeps the part that fits
            RopeParams narrower = right_;
            narrower.inv_freq = powers(other.value.base, right_.rotary_dim);
            narrower.attention_factor = 1;
            const std::string base = fmt::format("{}: their base {:g} alone", detail,
                                                 other.value.base);
            keep(mistake, base, narrower);
            for (std::size_t j = 0; j < narrower.inv_freq.size(); ++j)
                narrower.inv_freq[j] *= right_.inv_freq[j] == 0 ? 0 : 1;  // pairs that never turn
            keep(mistake, base, narrower);
        }
        return true;
    }

    std::vector<OtherRotation> found;

   private:
    // A layer without RoPE may have been rotated without the scaling, or with the usual base.
    void keep_bases(const char* mistake, const std::string& detail, RopeParams rotation) {
        rotation.attention_factor = 1;
        for (const double base : {rotation.base, 10000.0}) {
            std::vector<double> inv_freq = powers(base, rotation.rotary_dim);
            if (inv_freq.size() == rotation.inv_freq.size()) {
                rotation.inv_freq = std::move(inv_freq);
                keep(mistake, fmt::format("{}, with base {:g} alone", detail, base), rotation);
            }
        }
    }

    void keep(const char* mistake, std::string detail, const RopeParams& rotation) {
        const bool known = std::any_of(found.begin(), found.end(), [&](const OtherRotation& other) {
            return same(other.rotation, rotation);
        });
        if (!rotation.no_rope && !rotation.inv_freq.empty() && !known && !same(right_, rotation) &&
            found.size() < most_others)
            found.push_back({mistake, std::move(detail), rotation});
    }

    const ModelFile& file_;
    const RopeParams& right_;
};

}  // namespace

Rows rotation_mistakes() {
    const auto row = [](const char* name, const char* meaning, const char* example) {
        return Row{name, Part::frequencies, meaning, {}, example};
    };
    return {
        row("other_layer_type", "gave a layer the RoPE of other layers",
            "the RoPE of the model's full_attention layers"),
        row("rotated_without_rope", "rotated a layer that has no RoPE",
            "the RoPE of the model's other layers"),
        row("short_sequence", "took the frequencies of a shorter sequence", ""),
        row("long_sequence", "took the frequencies of a longer sequence",
            "the RoPE of a sequence of 131072 tokens"),
    };
}

std::vector<OtherRotation> other_rotations(const ModelFile& file, const ModelOptions& model,
                                           const RopeParams& rotation) {
    Others others(file, rotation);
    std::vector<const char*> ignored;
    const ModelQuery asked = query_of(model, ignored);
    ModelQuery other = asked;
    other.by_layer = false;
    other.layer = 0;
    for (const std::string& type : file.layer_types()) {
        other.layer_type = type.c_str();
        others.add("other_layer_type", fmt::format("the RoPE of the model's {} layers", type),
                   other);
    }
    other.layer_type = nullptr;
    if (rotation.no_rope)
        others.add("other_layer_type", "the RoPE of the model's other layers", other);
    other.by_layer = true;
    for (int layer = 0; layer < most_layers; ++layer) {
        other.layer = std::uint32_t(layer);
        if (!others.add("other_layer_type", fmt::format("the RoPE of the model's layer {}", layer),
                        other))
            break;
    }
    ModelQuery query = asked;
    query.seq_len = 1;
    others.add("short_sequence", "the RoPE of a sequence no longer than trained", query);
    query.seq_len = std::min(rotation.max_position, max_positions);
    others.add("long_sequence", fmt::format("the RoPE of a sequence of {} tokens", query.seq_len),
               query);
    return std::move(others.found);
}

std::vector<OtherRotation> variations_of(const ModelFile& file, const ModelOptions& model,
                                         const RopeParams& rotation) {
    std::vector<OtherRotation> variations;
    std::vector<const char*> ignored;
    const ModelQuery query = query_of(model, ignored);
    for (const ModelNumber& number : file.numbers()) {
        // A number that the rotation does not depend on changes nothing when it is doubled.
        const auto read = [&](double value) { return file.with(number, value).read(query); };
        const Result<RopeParams> doubled = number.value > 0 ? read(2 * number.value)
                                                            : Result<RopeParams>();
        // A number is not varied either if it changes which channels turn.
        if (!doubled || same(doubled.value, rotation) ||
            doubled.value.inv_freq.size() != rotation.inv_freq.size())
            continue;
        const bool is_base = number.name.find("theta") != std::string::npos ||
                             number.name.find("base") != std::string::npos;
        const double least = is_base ? least_base : number.value / 100,
                     most = is_base ? most_base : number.value * 100;
        each_round_number(least, most, [&](double value) {
            const Result<RopeParams> other = read(value);
            if (other && !same(other.value, rotation)) {
                variations.push_back(
                    {is_base ? "another_base" : "another_scaling",
                     fmt::format("{}{:.10g}, not {:.10g}", is_base ? "" : number.name + " is ",
                                 value, number.value),
                     other.value});
            }
        });
    }
    return variations;
}

std::vector<YarnScaling> yarn_scalings(const ModelFile& file, const RopeParams& rotation) {
    std::vector<YarnScaling> scalings = file.yarn_scalings();
    const std::vector<double> unscaled = powers(rotation.base, rotation.rotary_dim);
    if (!unscaled.empty() && unscaled.size() == rotation.inv_freq.size()) {
        const double factor = unscaled.back() / rotation.inv_freq.back();
        for (const double length :
             {double(rotation.max_position) / factor, double(rotation.max_position)})
            scalings.push_back({.factor = factor, .original_max_position_embeddings = length});
    }
    return scalings;
}

}  // namespace vkrope::tools
