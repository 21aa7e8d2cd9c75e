// SPDX-License-Identifier: MIT
// The first step of vkrope finish: everything that can be checked without a device. What the
// options leave open comes from the model.
#include <fmt/format.h>

#include "files/array_file.hpp"
#include "files/element_type.hpp"
#include "finish/finish.hpp"
#include "shell/terminal.hpp"

namespace vkrope::tools {
namespace {

struct StepOptions {
    const char *bias, *weight, *norm_bias, *second_bias, *second_weight, *second_norm_bias;
};
constexpr OfEachTensor<StepOptions> step_options = {
    {{"--q-bias", "--q-norm", "--q-norm-bias", "--second-q-bias", "--second-q-norm",
      "--second-q-norm-bias"},
     {"--k-bias", "--k-norm", "--k-norm-bias", "--second-k-bias", "--second-k-norm",
      "--second-k-norm-bias"},
     {"--v-bias", "--v-norm", "", "--second-v-bias", "", ""}}};

ParameterFile read_parameter(const char* option, const std::string& path,
                             const TensorFile& tensor) {
    ParameterFile parameter = {.array = read_array(option, path)};
    const npy::Header& header = parameter.array.header;
    if (!element_of(header.type)) {
        fail(ExitCode::bad_file,
             "{}: '{}' has data of type {}; it must be <f4 (f32), <f2 (f16) or <u2 (bf16)", option,
             path, npy::name(header.type));
    }
    using Shape = std::vector<std::uint64_t>;
    const std::uint64_t heads = tensor.view.heads, head_dim = tensor.view.head_dim;
    if (header.shape == Shape{head_dim}) {
        parameter.shape = VKROPE_PARAMETER_CHANNEL;
    } else if (header.shape == Shape{heads, head_dim} || header.shape == Shape{heads * head_dim}) {
        parameter.shape = VKROPE_PARAMETER_HEAD_CHANNEL;
    } else {
        fail(ExitCode::bad_file, "{}: '{}' has shape {}; {} '{}' needs ({},), ({}, {}) or ({},)",
             option, path, npy::shape_text(header.shape), tensor.option, tensor.path, head_dim,
             heads, head_dim, heads * head_dim);
    }
    return parameter;
}

/// The norm of a tensor, without the shapes of its parameters; none if it has none.
std::optional<Norm> norm_of(const FinishOptions& options, const ModelFinish& all,
                            TensorIndex which) {
    const Finish& model = all.tensor[which];
    const bool asked_for = which == V ? options.v_norm : !options.norm_weights[which].empty();
    const bool of_model = model.norm.kind != VKROPE_NORM_NONE;
    if (!asked_for && !of_model) {
        return std::nullopt;
    }
    Norm norm = model.norm;
    norm.kind = options.norm_kind.value_or(of_model ? norm.kind : VKROPE_NORM_RMS);
    norm.span = options.norm_span.value_or(norm.span);
    norm.place = options.norm_place.value_or(norm.place);
    norm.weight_offset = options.norm_offset.value_or(norm.weight_offset);
    if (options.norm_eps) {
        norm.eps = static_cast<float>(*options.norm_eps);
    } else if (!of_model) {
        const char* name = tensor_names[which].name;
        fail(ExitCode::usage, "--norm-eps: missing; {}",
             all.norms_known ? fmt::format("the model has no norm of {} that says it", name)
                             : fmt::format("the model's norm of {} is not known", name));
    }
    return norm;
}

void read_norm(const FinishOptions& options, const ModelFinish& all, TensorIndex which,
               const TensorFile& tensor, TensorSteps& steps) {
    const StepOptions& names = step_options[which];
    const Finish& model = all.tensor[which];
    const std::optional<Norm> norm = norm_of(options, all, which);
    if (!norm) {
        if (which != V && !all.norms_known) {
            print_warning(fmt::format("{} gets no norm: whether the model has one is not known",
                                      tensor_names[which].name));
        }
        if (!options.norm_biases[which].empty()) {
            fail(ExitCode::usage, "{}: {} has no norm; {} gives it one", names.norm_bias,
                 tensor_names[which].name, names.weight);
        }
        return;
    }
    if (options.norm_weights[which].empty() && model.norm.weight != VKROPE_PARAMETER_NONE) {
        fail(ExitCode::usage, "{}: missing; the model's norm of {} has a weight", names.weight,
             tensor_names[which].name);
    }
    if (options.norm_biases[which].empty() && model.norm.bias != VKROPE_PARAMETER_NONE) {
        fail(ExitCode::usage, "{}: missing; the model's norm of {} has a bias", names.norm_bias,
             tensor_names[which].name);
    }
    if (!options.norm_biases[which].empty() && norm->kind != VKROPE_NORM_LAYER) {
        fail(ExitCode::usage, "{}: only a layer norm has a bias; --norm-kind is rms",
             names.norm_bias);
    }
    steps.finish.norm = *norm;
    if (!options.norm_weights[which].empty()) {
        steps.weight = read_parameter(names.weight, options.norm_weights[which], tensor);
    } else {
        steps.finish.norm.weight_offset = 0;
    }
    if (!options.norm_biases[which].empty()) {
        steps.norm_bias = read_parameter(names.norm_bias, options.norm_biases[which], tensor);
    }
    steps.finish.norm.weight = steps.weight.shape;
    steps.finish.norm.bias = steps.norm_bias.shape;
}

/// The parameter of the tokens of the second set: that of the file, shaped as the first, or the
/// first itself.
ParameterFile read_second(const char* option, const std::string& path, const char* first_option,
                          const ParameterFile& first, const TensorFile& tensor) {
    if (path.empty()) {
        return first;
    }
    if (first.shape == VKROPE_PARAMETER_NONE) {
        fail(ExitCode::usage, "{}: there is no first one; {} gives it", option, first_option);
    }
    ParameterFile second = read_parameter(option, path, tensor);
    if (second.shape != first.shape) {
        fail(ExitCode::bad_file, "{}: '{}' has shape {}; {} has {}", option, path,
             npy::shape_text(second.array.header.shape), first_option,
             npy::shape_text(first.array.header.shape));
    }
    return second;
}

bool has_second(const FinishOptions& options, TensorIndex which) {
    return !options.second_biases[which].empty() || !options.second_norm_weights[which].empty() ||
           !options.second_norm_biases[which].empty();
}

/// The second set of parameters, and the tokens that take the first.
void read_second_set(const FinishOptions& options, FinishInputs& inputs) {
    bool any = false;
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which];
        if (!tensor) {
            continue;
        }
        const StepOptions& names = step_options[which];
        TensorSteps& steps = inputs.steps[which];
        steps.second_bias = read_second(names.second_bias, options.second_biases[which], names.bias,
                                        steps.bias, *tensor);
        steps.second_weight = read_second(names.second_weight, options.second_norm_weights[which],
                                          names.weight, steps.weight, *tensor);
        steps.second_norm_bias = read_second(names.second_norm_bias,
                                             options.second_norm_biases[which], names.norm_bias,
                                             steps.norm_bias, *tensor);
        any = any || has_second(options, which);
    }
    if (any != options.first_set_tokens.has_value()) {
        fail(ExitCode::usage, "--first-set-tokens: {}",
             any ? "missing; there is a second set of weights or biases"
                 : "there is no second set; --second-q-norm and the like give one");
    }
    if (any && *options.first_set_tokens >= inputs.rotate.tokens) {
        fail(ExitCode::usage,
             "--first-set-tokens: {}; it must be below the {} tokens, so that each set has some",
             *options.first_set_tokens, inputs.rotate.tokens);
    }
    inputs.first_set_tokens = options.first_set_tokens.value_or(0);
}

/// The options of a tensor that is not given have no meaning.
void check_absent(const FinishOptions& options, TensorIndex which) {
    const StepOptions& names = step_options[which];
    const bool of_v = which == V && options.v_norm;
    const char* given = !options.biases[which].empty()                ? names.bias
                        : !options.norm_weights[which].empty()        ? names.weight
                        : !options.norm_biases[which].empty()         ? names.norm_bias
                        : of_v                                        ? names.weight
                        : !options.second_biases[which].empty()       ? names.second_bias
                        : !options.second_norm_weights[which].empty() ? names.second_weight
                        : !options.second_norm_biases[which].empty()  ? names.second_norm_bias
                                                                      : nullptr;
    if (given != nullptr) {
        fail(ExitCode::usage, "{}: {} is missing", given, tensor_names[which].input_option);
    }
}

/// Options of norms have no meaning if no tensor has one.
void check_norm_options(const FinishOptions& options, const OfEachTensor<TensorSteps>& steps) {
    for (const TensorIndex which : every_tensor) {
        if (steps[which].finish.norm.kind != VKROPE_NORM_NONE) {
            return;
        }
    }
    const char* given = options.norm_kind     ? "--norm-kind"
                        : options.norm_span   ? "--norm-span"
                        : options.norm_place  ? "--norm-place"
                        : options.norm_eps    ? "--norm-eps"
                        : options.norm_offset ? "--norm-offset"
                                              : nullptr;
    if (given != nullptr) {
        fail(ExitCode::usage, "{}: no tensor has a norm; --q-norm, --k-norm or --v-norm gives one",
             given);
    }
}

std::vector<float> read_scales(const std::string& path, const RotateInputs& inputs) {
    const npy::Array array = read_array("--q-scale-tokens", path);
    using Shape = std::vector<std::uint64_t>;
    const bool shared = array.header.shape == Shape{inputs.tokens};
    if (array.header.type != npy::Type::f4 ||
        (!shared && array.header.shape != Shape{inputs.batch, inputs.tokens})) {
        fail(ExitCode::bad_file,
             "--q-scale-tokens: '{}' has shape {} of {}; the tensors need ({},) or ({}, {}) of <f4",
             path, npy::shape_text(array.header.shape), npy::name(array.header.type), inputs.tokens,
             inputs.batch, inputs.tokens);
    }
    std::vector<float> scales(std::size_t{inputs.batch} * inputs.tokens);
    for (std::size_t i = 0; i < scales.size(); ++i) {
        const std::size_t at = shared ? i % inputs.tokens : i;
        std::memcpy(&scales[i], array.data.data() + at * sizeof(float), sizeof(float));
    }
    return scales;
}

/// The factors by position of a model that has a formula for them.
std::vector<float> scales_by_position(const RotateInputs& inputs) {
    const std::vector<std::int64_t> positions = expanded(inputs.positions, inputs.batch,
                                                         inputs.tokens);
    const std::vector<std::int32_t> narrow(positions.begin(), positions.end());
    std::vector<float> scales(narrow.size());
    check(query_scales(inputs.rotation.finish.query_scale, narrow.data(), narrow.size(),
                       scales.data()),
          Subject::model_file, "--q-scale-tokens: ");
    return scales;
}

}  // namespace

ParameterSource ParameterFile::source() const noexcept {
    if (shape == VKROPE_PARAMETER_NONE) {
        return {};
    }
    const Element element = *element_of(array.header.type);
    return {array.data.data(), element, array.data.size() / element_bytes(element)};
}

std::vector<double> ParameterFile::values() const {
    const ParameterSource from = source();
    std::vector<double> values;
    for (std::size_t i = 0; i < from.count; ++i) {
        std::uint32_t bits = 0;
        const std::uint32_t bytes = element_bytes(from.element);
        std::memcpy(&bits, static_cast<const std::byte*>(from.data) + i * bytes, bytes);
        values.push_back(reference::widen(reference_type(from.element), bits));
    }
    return values;
}

bool asks_for_steps(const FinishOptions& options) {
    for (const TensorIndex which : every_tensor) {
        if (!options.biases[which].empty() || !options.norm_weights[which].empty() ||
            !options.norm_biases[which].empty() || has_second(options, which)) {
            return true;
        }
    }
    return options.v_norm || options.first_set_tokens || !options.q_scale_tokens.empty() ||
           options.q_scale != 1 || options.norm_kind || options.norm_span || options.norm_place ||
           options.norm_eps || options.norm_offset || options.clip || asks_for_store(options.store);
}

FinishInputs read_inputs(const FinishOptions& options) {
    FinishInputs inputs;
    inputs.rotate = read_inputs(options.given);
    const ModelFinish& model = inputs.rotate.rotation.finish;
    for (const TensorIndex which : every_tensor) {
        const std::optional<TensorFile>& tensor = inputs.rotate.tensors[which];
        if (!tensor) {
            check_absent(options, which);
            continue;
        }
        TensorSteps& steps = inputs.steps[which];
        if (!options.biases[which].empty()) {
            steps.bias = read_parameter(step_options[which].bias, options.biases[which], *tensor);
        }
        steps.finish.bias = steps.bias.shape;
        steps.finish.clip = static_cast<float>(options.clip.value_or(model.tensor[which].clip));
        read_norm(options, model, which, *tensor, steps);
    }
    check_norm_options(options, inputs.steps);
    read_second_set(options, inputs);
    if (inputs.rotate.tensors[Q]) {
        inputs.q_scale = static_cast<float>(options.q_scale);
        inputs.steps[Q].finish.scale_call = inputs.q_scale != 1;
        if (!options.q_scale_tokens.empty()) {
            inputs.q_scale_tokens = read_scales(options.q_scale_tokens, inputs.rotate);
        } else if (model.query_scale.kind != VKROPE_QUERY_SCALING_NONE) {
            inputs.q_scale_tokens = scales_by_position(inputs.rotate);
        }
        inputs.steps[Q].finish.scale_tokens = !inputs.q_scale_tokens.empty();
    } else if (options.q_scale != 1 || !options.q_scale_tokens.empty()) {
        fail(ExitCode::usage, "{}: --q is missing",
             options.q_scale != 1 ? "--q-scale" : "--q-scale-tokens");
    }
    const OfEachTensor<StoreSteps> stores = store_steps(options.store, inputs.rotate);
    for (const TensorIndex which : every_tensor) {
        TensorSteps& steps = inputs.steps[which];
        steps.store = stores[which];
        steps.finish.hadamard = steps.store.hadamard;
        steps.finish.store_scale = steps.store.scale;
        steps.finish.scale_floor = steps.store.scale_floor;
    }
    return inputs;
}

}  // namespace vkrope::tools
