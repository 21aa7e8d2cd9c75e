// SPDX-License-Identifier: MIT
// The options of the ops around a rotation.
#include <bit>
#include <cmath>
#include <limits>

#include "cli/ops_text.hpp"
#include "operation/ops.hpp"

namespace vkrope::tools {
namespace {

constexpr Choice<std::uint32_t> group_sizes[] = {{"32", 32}, {"64", 64}, {"128", 128}};
constexpr OfEachTensor<const char*> letters = {"q", "k", "v"};

bool is_float(double number) {
    return std::fabs(number) <= std::numeric_limits<float>::max();
}

// Calls set(value, target) for "VALUE", or for each part of "q=VALUE,k=VALUE,v=VALUE".
template <class T, class Set>
void parse_for_tensors(const std::string& text, ForTensors<T>& target, const Set& set) {
    if (text.find('=') == std::string::npos) {
        set(text, target.all);
        return;
    }
    for (std::size_t start = 0; start <= text.size();) {
        const std::size_t end = std::min(text.find(',', start), text.size());
        const std::string part = text.substr(start, end - start);
        bool known = false;
        for (const TensorIndex which : every_tensor) {
            if (part.starts_with(std::string(letters[which]) + "=") && !target.named[which]) {
                set(part.substr(2), target.named[which]);
                known = true;
            }
        }
        if (!known) {
            throw BadValue(fmt::format(
                "'{}' must be one value, or some of q=, k= and v= with a value each, once", text));
        }
        start = end + 1;
    }
}

// Returns the function that parses element types of a table.
template <std::size_t count>
auto types_parser(ForTensors<Element>& types, const Choice<Element> (&choices)[count]) {
    return [&types, &choices](const std::string& text) {
        parse_for_tensors(
            text, types,
            [&choices](const std::string& word, std::optional<Element>& target) {
                target = parse_choice(word, choices);
            });
    };
}

void add_types(CommandLine& command, OpsOptions& options) {
    command.add_value(
        "--store", words_of(stored_elements), types_parser(options.types, stored_elements),
        "Type of the outputs (default: the input type). One for each tensor: "
        "q=f16,k=q8_0,v=q4_0. Quantised ones are written as uint8, the bytes of a row "
        "on the last axis.");
}

void add_hadamard(CommandLine& command, const char* option, HadamardOption& given,
                  const char* help) {
    const auto parse = [&given](const std::string& text) {
        if (text == "llama.cpp") {
            given.of_llama_cpp = true;
            return;
        }
        parse_for_tensors(
            text, given.blocks,
            [](const std::string& number, std::optional<std::uint32_t>& target) {
                const auto block = parse_integer(number, std::uint32_t{2}, std::uint32_t{512});
                if (!std::has_single_bit(block))
                    throw BadValue(
                        fmt::format("'{}' must be a power of two from 2 to 512", number));
                target = block;
            });
    };
    command.add_value(option, "N", parse, help);
}

void add_scales(CommandLine& command, OpsOptions& options) {
    const auto parse = [&options](const std::string& text) {
        parse_for_tensors(
            text, options.scales, [](const std::string& value, std::optional<ScaleOption>& target) {
                if (value == "row" || value == "row_power_of_two") {
                    target = ScaleOption{.of_row = true, .power_of_two = value != "row"};
                    return;
                }
                if (value.ends_with(".npy") || value.find(".safetensors:") != value.npos) {
                    target = ScaleOption{.of_heads = value};
                    return;
                }
                const double factor = parse_number(
                    value,
                    [](double x) {
                        return float(std::min(std::fabs(x), 1e39)) != 0 &&
                               std::fabs(x) <= std::numeric_limits<float>::max();
                    },
                    "row, row_power_of_two, a file, or a number other than 0 that a float holds");
                target = ScaleOption{.factor = float(factor)};
            });
    };
    command.add_value(
        "--store-scale", "X", parse,
        "Factor of e4m3fn, e5m2, int8 and int4 before they are stored (none). FILE.npy, or "
        "FILE.safetensors:NAME: float32, one for each head. row: make a scale for "
        "each row, which divides. row_power_of_two: the next power of two (UE8M0). "
        "One for each tensor: k=X,v=X.");
    command.add_number(
        "--scale-floor", options.scale_floor,
        [](double x) { return x >= 0 && x <= std::numeric_limits<float>::max(); },
        "a number from 0 that a float holds", "Smallest scale that --store-scale row makes (0).");
    command.add_choice("--store-scale-group", options.scale_group, group_sizes,
                       "Channels of each scale (the row); files of scales then have one more axis, "
                       "the last.");
    command.add_choice("--scale-type", options.scale_type, scale_types,
                       "Type of the scales; ue8m0: exponents of powers of two, as uint8 (f32).");
    for (const TensorIndex which : every_tensor) {
        command.add_text(options.scale_options[which], "FILE", options.scale_files[which],
                         fmt::format(fmt::runtime(options.scale_help), tensor_names[which].name) +
                             ": float32, the shape of the tensor without the last axis.");
    }
}

ChannelRange parse_channels(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
        throw BadValue(fmt::format(
            "'{}' must be FIRST:COUNT, the first channel and the number of channels", text));
    }
    return {parse_integer(text.substr(0, colon), std::uint32_t{0}, std::uint32_t{65533}),
            parse_integer(text.substr(colon + 1), std::uint32_t{1}, std::uint32_t{65534})};
}

// Adds the options for files of weights and biases.
void add_parameters(CommandLine& command, OpsOptions& options) {
    constexpr OfEachParameter<const char*> help = {
        "Added to {} before everything else, shaped as a weight.",
        "Weight of {}'s norm, .npy or .safetensors: [head_dim], [heads, head_dim] or [heads * "
        "head_dim]; f32, f16 or bf16.",
        "Bias of {}'s layer norm, shaped as a weight."};
    for (const TensorIndex which : every_tensor) {
        for (const Parameter parameter : every_parameter) {
            if (const char* option = parameter_options[which][parameter]) {
                command.add_text(
                    option, "FILE", options.parameters[which][parameter],
                    fmt::format(fmt::runtime(help[parameter]), tensor_names[which].name));
            }
        }
    }
}

void add_norm(CommandLine& command, OpsOptions& options) {
    command.add_flag("--v-norm", options.v_norm, "Give V a norm without a weight.");
    for (const TensorIndex which : every_tensor) {
        command.add_value(
            norm_channel_options[which], "FIRST:COUNT",
            [&options, which](const std::string& text) {
                options.norm_channels[which] = parse_channels(text);
            },
            fmt::format("First channel and number of channels that the norm of {} takes; its "
                        "weight then has as many (the model's, or all).",
                        tensor_names[which].name));
    }
    command.add_choice("--norm-kind", options.norm_kind, norm_kinds,
                       "Kind of the norms (the model's, or rms).");
    command.add_choice("--norm-span", options.norm_span, norm_spans,
                       "What is one row: a head, or all heads of a token (the model's, or head).");
    command.add_choice("--norm-place", options.norm_place, norm_places,
                       "Before or after the rotation (the model's, or before).");
    command.add_number(
        "--norm-eps", options.norm_eps, [](double x) { return x >= 1e-20 && x <= 1; },
        "a number from 1e-20 to 1", "Added inside the root (the model's).");
    command.add_integer("--norm-offset", options.norm_offset, std::uint32_t{0}, std::uint32_t{1},
                        "Added to every weight: 1 for Gemma (the model's, or 0).");
}

}  // namespace

void add_ops(CommandLine& command, OpsOptions& options) {
    command.add_flag("--model-ops", options.of_model,
                     "Take the model's norms, clip and factors of Q as well. With any option of a "
                     "norm, bias, clip, scale, Hadamard transform or store they are taken, too.");
    add_parameters(command, options);
    add_norm(command, options);
    command.add_number(
        "--clip", options.clip, [](double x) { return x > 0 && is_float(x); },
        "a number above 0 that a float holds",
        "Clamp to -X to X, after a norm before the rotation (the model's).");
    command.add_number(
        "--q-scale", options.q_scale, [](double x) { return x != 0 && is_float(x); },
        "a number other than 0 that a float holds", "Factor of Q, after rotation and norms (1).");
    command.add_text("--q-scale-tokens", "FILE", options.q_scale_tokens,
                     "A factor for each token of Q, .npy: float32 [tokens] or [batch, tokens] (by "
                     "position, where the model has a formula).");
    add_types(command, options);
    add_hadamard(command, "--hadamard", options.hadamard,
                 "Multiply blocks of N channels by a Hadamard matrix before the store. One for "
                 "each tensor: q=N,k=N,v=N. llama.cpp: as llama.cpp does before it stores q8_0 "
                 "and the like.");
    add_scales(command, options);
}

void add_dtype(CommandLine& command, ForTensors<Element>& types, bool quantised) {
    if (!quantised) {
        command.add_value("--dtype", words_of(elements), types_parser(types, elements),
                          "Element type that all tensors must have (as in their files; <u2 is "
                          "bf16).");
        return;
    }
    command.add_value(
        "--dtype", words_of(stored_elements), types_parser(types, stored_elements),
        "Element type of the inputs (as in their files; <u2 is bf16). Quantised ones, "
        "of keys that move, are uint8, the bytes of a row on the last axis. One for "
        "each tensor: k=q8_0,v=q4_0.");
}

void add_cache(CommandLine& command, OpsOptions& options) {
    add_hadamard(command, "--hadamard-of-input", options.hadamard_of_input,
                 "Undo a Hadamard transform that the inputs K and V have, in blocks of N channels: "
                 "k=N,v=N. llama.cpp: as llama.cpp has q8_0 and the like in its cache.");
    for (const TensorIndex which : {K, V}) {
        command.add_text(input_scale_options[which], "FILE", options.input_scale_files[which],
                         fmt::format("Scales of the rows of an e4m3fn, e5m2, int8 or int4 {}, .npy "
                                     "or .safetensors, shaped as {}.",
                                     tensor_names[which].name, options.scale_options[which]));
    }
}

void add_second(CommandLine& command, OpsOptions& options) {
    command.add_value("--second", words_of(elements), types_parser(options.second, elements),
                      "Store the rows of K and V a second time, in this type. One for each tensor: "
                      "k=f16,v=f16.");
    const auto parse_of = [&options](const std::string& text) {
        parse_for_tensors(text, options.second_of,
                          [](const std::string& word, std::optional<SecondOf>& target) {
                              target = parse_choice(word, seconds);
                          });
    };
    command.add_value("--second-of", words_of(seconds), parse_of,
                      "What is stored a second time: the rows after all ops, before they are "
                      "rounded or quantised for the first time, or the input (result). One for "
                      "each tensor: k=input,v=result.");
    for (const TensorIndex which : {K, V}) {
        command.add_text(second_options[which], "FILE", options.second_files[which],
                         fmt::format("File for the rows that --second makes of {}, .npy.",
                                     tensor_names[which].name));
    }
}

bool asks_for_ops(const OpsOptions& options) {
    bool any = options.of_model || options.v_norm || !options.q_scale_tokens.empty() ||
               options.q_scale != 1 || options.norm_kind || options.norm_span ||
               options.norm_place || options.norm_eps || options.norm_offset || options.clip ||
               options.types.given() || options.hadamard.given() || options.scales.given() ||
               options.scale_floor || options.second.given() || options.second_of.given() ||
               options.hadamard_of_input.given() || options.scale_group || options.scale_type;
    for (const TensorIndex which : every_tensor) {
        any = any || !options.scale_files[which].empty() ||
              !options.input_scale_files[which].empty() || options.norm_channels[which] ||
              !options.second_files[which].empty();
        for (const Parameter parameter : every_parameter)
            any = any || !options.parameters[which][parameter].empty();
    }
    return any;
}

}  // namespace vkrope::tools
