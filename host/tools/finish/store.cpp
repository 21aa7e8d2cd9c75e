// SPDX-License-Identifier: MIT
// The options that say how vkrope finish stores its outputs, checked against the tensors.
#include "finish/store.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "files/array_file.hpp"
#include "shell/command_line.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

constexpr OfEachTensor<const char*> letters = {"q", "k", "v"};

/// Calls set(value, target) for "VALUE", or for each part of "q=VALUE,k=VALUE,v=VALUE".
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

void add_types(CommandLine& command, StoreOptions& options) {
    std::string words;
    for (const Choice<Element>& choice : stored_elements) {
        words += (words.empty() ? "" : "|") + std::string(choice.word);
    }
    const auto parse = [&options, words](const std::string& text) {
        parse_for_tensors(text, options.types,
                          [&words](const std::string& word, std::optional<Element>& target) {
                              for (const Choice<Element>& choice : stored_elements) {
                                  if (word == choice.word) {
                                      target = choice.value;
                                      return;
                                  }
                              }
                              refuse_choice(word, words);
                          });
    };
    command.add_value(
        "--store", words, parse,
        "Type of the outputs (default: the input type). One for each tensor: "
        "q=f16,k=q8_0,v=q4_0. Quantised ones are written as uint8, the bytes of a row "
        "on the last axis.");
}

void add_hadamard(CommandLine& command, StoreOptions& options) {
    const auto parse = [&options](const std::string& text) {
        if (text == "llama.cpp") {
            options.hadamard_of_llama_cpp = true;
            return;
        }
        parse_for_tensors(
            text, options.hadamard,
            [](const std::string& number, std::optional<std::uint32_t>& target) {
                const auto block = parse_integer(number, std::uint32_t{2}, std::uint32_t{512});
                if (!std::has_single_bit(block)) {
                    throw BadValue(
                        fmt::format("'{}' must be a power of two from 2 to 512", number));
                }
                target = block;
            });
    };
    command.add_value(
        "--hadamard", "N", parse,
        "Multiply blocks of N channels by a Hadamard matrix before the store. One for "
        "each tensor: q=N,k=N,v=N. llama.cpp: as llama.cpp does before it stores q8_0 "
        "and the like.");
}

void add_scales(CommandLine& command, StoreOptions& options) {
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
                        return static_cast<float>(std::min(std::fabs(x), 1e39)) != 0 &&
                               std::fabs(x) <= std::numeric_limits<float>::max();
                    },
                    "row, row_power_of_two, a file, or a number other than 0 that a float holds");
                target = ScaleOption{.factor = static_cast<float>(factor)};
            });
    };
    command.add_value("--store-scale", "X", parse,
                      "Factor of e4m3fn, e5m2 and int8 before they are stored (none). FILE.npy, or "
                      "FILE.safetensors:NAME: float32, one for each head. row: make a scale for "
                      "each row, which divides. row_power_of_two: the next power of two (UE8M0). "
                      "One for each tensor: k=X,v=X.");
    command.add_number(
        "--scale-floor", options.scale_floor,
        [](double x) { return x >= 0 && x <= std::numeric_limits<float>::max(); },
        "a number from 0 that a float holds", "Smallest scale that --store-scale row makes (0).");
    for (const TensorIndex which : every_tensor) {
        command.add_text(
            options.scale_options.names[which], "FILE", options.scale_files[which],
            fmt::format(fmt::runtime(options.scale_options.help), tensor_names[which].name) +
                ": float32, the shape of the tensor without the last axis.");
    }
}

/// Options that name a tensor have no meaning if it is not given.
void check_absent(const StoreOptions& options, TensorIndex which) {
    const char* given = options.types.named[which]            ? "--store"
                        : options.hadamard.named[which]       ? "--hadamard"
                        : options.scales.named[which]         ? "--store-scale"
                        : !options.scale_files[which].empty() ? options.scale_options.names[which]
                                                              : nullptr;
    if (given != nullptr) {
        fail(ExitCode::usage, "{}: {} is missing", given, tensor_names[which].input_option);
    }
}

bool takes_scale(Element type) {
    return is_quantised(type) && block_channels(type) == 1;
}

void check_head_dim(const TensorFile& tensor, const StoreSteps& steps) {
    const std::uint64_t head_dim = tensor.view.head_dim;
    if (head_dim % block_channels(steps.type) != 0) {
        fail(ExitCode::usage,
             "--store: blocks of {} have {} channels; {} '{}' has head_dim {}, which must be a "
             "multiple",
             word_for(stored_elements, steps.type), block_channels(steps.type), tensor.option,
             tensor.path, head_dim);
    }
    if (steps.hadamard != 0 && head_dim % steps.hadamard != 0) {
        fail(ExitCode::usage,
             "--hadamard: blocks have {} channels; {} '{}' has head_dim {}, which must be a "
             "multiple",
             steps.hadamard, tensor.option, tensor.path, head_dim);
    }
}

void choose_hadamard(const StoreOptions& options, const RotateInputs& inputs,
                     OfEachTensor<StoreSteps>& steps) {
    if (!options.hadamard_of_llama_cpp) {
        for (const TensorIndex which : every_tensor) {
            steps[which].hadamard = options.hadamard.of(which).value_or(0);
        }
        return;
    }
    if (!inputs.tensors[K]) {
        fail(ExitCode::usage,
             "--hadamard: llama.cpp transforms Q as the type of K demands, and --k is missing");
    }
    const auto head_dim = [&inputs](TensorIndex which) {
        return inputs.tensors[which]
                   ? static_cast<std::uint32_t>(inputs.tensors[which]->view.head_dim)
                   : 0;
    };
    const auto in_blocks = [&steps](TensorIndex which) {
        return block_channels(steps[which].type) != 1;
    };
    const HadamardBlocks blocks = hadamard_of_llama_cpp(head_dim(K), in_blocks(K), head_dim(V),
                                                        in_blocks(V));
    steps[Q].hadamard = steps[K].hadamard = blocks.q_and_k;
    steps[V].hadamard = blocks.v;
    if (blocks.q_and_k == 0 && blocks.v == 0) {
        print_note(
            "--hadamard: llama.cpp transforms nothing here; it does so for a K or V of q8_0 and "
            "the like whose head_dim is a multiple of 64");
    }
}

/// A factor for each head of the tensor.
std::vector<float> read_head_scales(const std::string& path, const TensorFile& tensor) {
    std::vector<float> scales = read_floats("--store-scale", path, {tensor.view.heads},
                                            fmt::format("{} '{}'", tensor.option, tensor.path),
                                            "head");
    for (std::size_t head = 0; head < scales.size(); ++head) {
        if (!std::isfinite(scales[head]) || scales[head] == 0) {
            fail(ExitCode::bad_file,
                 "--store-scale: '{}' has {} for head {}; it must be finite "
                 "and not 0",
                 path, scales[head], head);
        }
    }
    return scales;
}

void choose_scale(const StoreOptions& options, TensorIndex which, const TensorFile& tensor,
                  StoreSteps& steps) {
    const char* name = tensor_names[which].name;
    const std::optional<ScaleOption> scale = options.scales.of(which);
    if (options.scales.named[which] && !takes_scale(steps.type)) {
        fail(ExitCode::usage,
             "--store-scale: {} is stored as {}; only e4m3fn, e5m2 and int8 take a scale", name,
             word_for(stored_elements, steps.type));
    }
    if (scale && takes_scale(steps.type)) {
        if (!scale->of_heads.empty()) {
            steps.scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
            steps.given_scales = read_head_scales(scale->of_heads, tensor);
        } else if (scale->of_row) {
            steps.scale = scale->power_of_two ? VKROPE_STORE_SCALE_MADE_POWER_OF_TWO
                                              : VKROPE_STORE_SCALE_MADE;
            steps.scale_floor = static_cast<float>(options.scale_floor.value_or(0));
            if (scale->power_of_two && steps.scale_floor > 0x1p127f) {
                fail(ExitCode::usage,
                     "--scale-floor: {} is above 2^127, the largest power of two that a float "
                     "holds",
                     steps.scale_floor);
            }
        } else {
            steps.scale = VKROPE_STORE_SCALE_GIVEN;
            steps.given_scales = {scale->factor};
        }
    }
    const bool made = is_made(steps.scale);
    if (made == options.scale_files[which].empty()) {
        if (made) {
            fail(ExitCode::usage, "{}: missing; --store-scale row makes scales of {}",
                 options.scale_options.names[which], name);
        }
        fail(ExitCode::usage,
             "{}: no scales are made of {}; --store-scale row makes them of "
             "e4m3fn, e5m2 and int8",
             options.scale_options.names[which], name);
    }
}

}  // namespace

std::uint64_t scale_in_file(const reference::Tensor& view, std::uint64_t row) noexcept {
    const std::uint64_t token = row / view.heads;
    const std::uint64_t channel = token / view.tokens * view.batch_stride +
                                  token % view.tokens * view.token_stride +
                                  row % view.heads * view.head_stride;
    return channel / view.head_dim;
}

void add_store(CommandLine& command, StoreOptions& options) {
    add_types(command, options);
    add_hadamard(command, options);
    add_scales(command, options);
}

bool asks_for_store(const StoreOptions& options) {
    bool any = options.types.all || options.hadamard.all || options.hadamard_of_llama_cpp ||
               options.scales.all || options.scale_floor;
    for (const TensorIndex which : every_tensor) {
        any = any || options.types.named[which] || options.hadamard.named[which] ||
              options.scales.named[which] || !options.scale_files[which].empty();
    }
    return any;
}

OfEachTensor<StoreSteps> store_steps(const StoreOptions& options, const RotateInputs& inputs) {
    OfEachTensor<StoreSteps> steps;
    for (const TensorIndex which : every_tensor) {
        steps[which].type = options.types.of(which).value_or(inputs.element);
        if (!inputs.tensors[which]) {
            check_absent(options, which);
        }
    }
    choose_hadamard(options, inputs, steps);
    bool any_scale = false, any_made = false;
    for (const TensorIndex which : every_tensor) {
        if (inputs.tensors[which]) {
            check_head_dim(*inputs.tensors[which], steps[which]);
            choose_scale(options, which, *inputs.tensors[which], steps[which]);
            any_scale = any_scale || steps[which].scale != VKROPE_STORE_SCALE_NONE;
            any_made = any_made || is_made(steps[which].scale);
        }
    }
    if (options.scales.all && !any_scale) {
        fail(ExitCode::usage,
             "--store-scale: only e4m3fn, e5m2 and int8 take a scale; --store gives no tensor "
             "one of them");
    }
    if (options.scale_floor && !any_made) {
        fail(ExitCode::usage, "--scale-floor: no scales are made; --store-scale row makes them");
    }
    return steps;
}

}  // namespace vkrope::tools
