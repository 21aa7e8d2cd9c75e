// SPDX-License-Identifier: MIT
// Reads the ops around a rotation and makes the checks that need no device. Values that the options
// do not give come from the model.
#include <fmt/format.h>

#include "base/meaning.hpp"
#include "cli/ops_text.hpp"
#include "cli/terminal.hpp"
#include "io/array_file.hpp"
#include "io/element_type.hpp"
#include "operation/operation.hpp"
#include "verify/oracle/rows.hpp"

namespace vkrope::tools {
namespace {

// channels  number of channels of a head that have a parameter
ParameterFile read_parameter(const char* option, const std::string& path, const TensorFile& tensor,
                             std::uint64_t channels) {
    ParameterFile parameter = {.array = read_array(option, path)};
    const npy::Header& header = parameter.array.header;
    if (!element_of(header.type)) {
        fail(ExitCode::bad_file,
             "{}: '{}' has data of type {}; it must be <f4 (f32), <f2 (f16) or <u2 (bf16)", option,
             path, npy::name(header.type));
    }
    const std::uint64_t heads = tensor.view.heads;
    if (header.shape == ArrayShape{channels}) {
        parameter.shape = VKROPE_PARAMETER_CHANNEL;
    } else if (header.shape == ArrayShape{heads, channels} ||
               header.shape == ArrayShape{heads * channels}) {
        parameter.shape = VKROPE_PARAMETER_HEAD_CHANNEL;
    } else {
        fail(ExitCode::bad_file, "{}: '{}' has shape {}; {} '{}' needs ({},), ({}, {}) or ({},)",
             option, path, npy::shape_text(header.shape), tensor.option, tensor.path, channels,
             heads, channels, heads * channels);
    }
    return parameter;
}

// Returns the norm of a tensor without the shapes of its parameters; none if it has no norm.
std::optional<Norm> norm_of(const OpsOptions& options, const ModelOps& all, TensorIndex which) {
    const Ops& model = all.tensor[which];
    const bool asked_for = which == V ? options.v_norm
                                      : !options.parameters[which][parameter_weight].empty();
    const bool of_model = model.norm.kind != VKROPE_NORM_NONE;
    if (!asked_for && !of_model) return std::nullopt;
    Norm norm = model.norm;
    norm.kind = options.norm_kind.value_or(of_model ? norm.kind : VKROPE_NORM_RMS);
    norm.span = options.norm_span.value_or(norm.span);
    norm.place = options.norm_place.value_or(norm.place);
    norm.weight_offset = options.norm_offset.value_or(norm.weight_offset);
    if (const std::optional<ChannelRange>& part = options.norm_channels[which]) {
        norm.first_channel = part->first;
        norm.channels = part->count;
    }
    if (options.norm_eps) {
        norm.eps = float(*options.norm_eps);
    } else if (!of_model) {
        const char* name = tensor_names[which].name;
        fail(ExitCode::usage, "--norm-eps: missing; {}",
             all.norms_known ? fmt::format("the model has no norm of {} that says it", name)
                             : fmt::format("the model's norm of {} is not known", name));
    }
    return norm;
}

// Checks that the norm has the parameters of the model's norm, and only those that its kind
// allows.
void check_parameters(const OpsOptions& options, const Norm& model, TensorIndex which,
                      NormKind kind) {
    const auto check_one = [&](Parameter parameter, ParameterShape of_model, const char* what) {
        if (options.parameters[which][parameter].empty() && of_model != VKROPE_PARAMETER_NONE)
            fail(ExitCode::usage, "{}: missing; the model's norm of {} has a {}",
                 parameter_options[which][parameter], tensor_names[which].name, what);
    };
    check_one(parameter_weight, model.weight, "weight");
    check_one(parameter_norm_bias, model.bias, "bias");
    if (!options.parameters[which][parameter_norm_bias].empty() && kind != VKROPE_NORM_LAYER) {
        fail(ExitCode::usage, "{}: only a layer norm has a bias; --norm-kind is rms",
             parameter_options[which][parameter_norm_bias]);
    }
}

// Checks that the channels of a norm lie in the tensor's rows.
void check_channels(const Norm& norm, TensorIndex which, const TensorFile& tensor) {
    const std::uint64_t head_dim = tensor.view.head_dim;
    if (std::uint64_t{norm.first_channel} + norm.channels > head_dim) {
        fail(ExitCode::usage, "{}: {}:{} ends past head_dim {} of {} '{}'",
             norm_channel_options[which], norm.first_channel, norm.channels, head_dim,
             tensor.option, tensor.path);
    }
}

// Sets the norm of a tensor, without the shapes of its parameters.
void set_norm(const OpsOptions& options, const ModelOps& all, TensorIndex which,
              const TensorFile& tensor, Ops& ops) {
    const std::optional<Norm> norm = norm_of(options, all, which);
    if (norm) {
        check_parameters(options, all.tensor[which].norm, which, norm->kind);
        check_channels(*norm, which, tensor);
        ops.norm = *norm;
        if (options.parameters[which][parameter_weight].empty()) ops.norm.weight_offset = 0;
        return;
    }
    if (which != V && !all.norms_known) {
        print_warning(fmt::format("{} gets no norm: whether the model has one is not known",
                                  tensor_names[which].name));
    }
    if (!options.parameters[which][parameter_norm_bias].empty()) {
        fail(ExitCode::usage, "{}: {} has no norm; {} gives it one",
             parameter_options[which][parameter_norm_bias], tensor_names[which].name,
             parameter_options[which][parameter_weight]);
    }
    if (options.norm_channels[which]) {
        fail(ExitCode::usage, "{}: {} has no norm; {} gives it one", norm_channel_options[which],
             tensor_names[which].name,
             which == V ? "--v-norm" : parameter_options[which][parameter_weight]);
    }
}

// Reads the parameters of a tensor after its norm has been set.
void read_parameters(const OpsOptions& options, TensorIndex which, const TensorFile& tensor,
                     TensorOps& ops) {
    const std::uint64_t head_dim = tensor.view.head_dim,
                        normed = ops.norm.channels == 0 ? head_dim : ops.norm.channels;
    for (const Parameter parameter : every_parameter) {
        const std::string& path = options.parameters[which][parameter];
        if (!path.empty()) {
            ops.parameters[parameter] = read_parameter(
                parameter_options[which][parameter], path, tensor,
                parameter == parameter_bias ? head_dim : normed);
        }
    }
    ops.bias = ops.parameters[parameter_bias].shape;
    ops.norm.weight = ops.parameters[parameter_weight].shape;
    ops.norm.bias = ops.parameters[parameter_norm_bias].shape;
}

// Rejects the options of a tensor that is not given.
void check_absent(const OpsOptions& options, TensorIndex which) {
    const char* given = which == V && options.v_norm                    ? "--v-norm"
                        : options.types.named[which]                    ? "--store"
                        : options.hadamard.blocks.named[which]          ? "--hadamard"
                        : options.hadamard_of_input.blocks.named[which] ? "--hadamard-of-input"
                        : !options.input_scale_files[which].empty()     ? input_scale_options[which]
                        : options.scales.named[which]                   ? "--store-scale"
                        : !options.scale_files[which].empty()  ? options.scale_options[which]
                        : options.norm_channels[which]         ? norm_channel_options[which]
                        : options.second.named[which]          ? "--second"
                        : options.second_of.named[which]       ? "--second-of"
                        : !options.second_files[which].empty() ? second_options[which]
                                                               : nullptr;
    for (const Parameter parameter : every_parameter)
        if (given == nullptr && !options.parameters[which][parameter].empty())
            given = parameter_options[which][parameter];
    if (given == nullptr && which == Q) {
        given = options.q_scale != 1              ? "--q-scale"
                : !options.q_scale_tokens.empty() ? "--q-scale-tokens"
                                                  : nullptr;
    }
    if (given != nullptr)
        fail(ExitCode::usage, "{}: {} is missing", given, tensor_names[which].input_option);
}

// Rejects options of norms if no tensor has a norm.
void check_norm_options(const OpsOptions& options, const OfEachTensor<TensorOps>& ops) {
    for (const TensorIndex which : every_tensor)
        if (ops[which].norm.kind != VKROPE_NORM_NONE) return;
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

// Returns a factor for each token. The factors of one sequence apply to all sequences.
std::vector<float> read_scales(const std::string& path, const OperationInputs& inputs) {
    const TensorFile& q = *inputs.tensors[Q];
    std::vector<float> scales = read_floats("--q-scale-tokens", path,
                                            {{inputs.tokens}, {inputs.batch, inputs.tokens}},
                                            fmt::format("{} '{}'", q.option, q.path), "token");
    scales.reserve(std::size_t{inputs.batch} * inputs.tokens);
    while (scales.size() < std::size_t{inputs.batch} * inputs.tokens)
        scales.push_back(scales[scales.size() - inputs.tokens]);
    return scales;
}

// Returns the factors by position for a model that has a formula for them.
std::vector<float> scales_by_position(const OperationInputs& inputs) {
    const std::vector<std::int64_t> positions = expanded(inputs.positions, inputs.batch,
                                                         inputs.tokens);
    const std::vector<std::int32_t> narrow(positions.begin(), positions.end());
    std::vector<float> scales(narrow.size());
    check(status_of(vkrope_query_scales, &inputs.rotation.ops.query_scale, narrow.data(),
                    narrow.size(), scales.data()),
          Subject::model_file, "--q-scale-tokens: ");
    return scales;
}

// Returns the model's ops if any op was requested. Otherwise returns no ops and prints a note that
// lists the model's ops.
ModelOps model_ops(const OperationOptions& options, const OperationInputs& inputs) {
    ModelOps model = inputs.rotation.ops;
    model.tensor[K] = ops_of_row(model.tensor[K], inputs.rotation.k_rotary_offset);
    ModelOps none;
    none.norms_known = true;
    const bool moves = moves_keys(options, inputs);  // the keys have the model's ops already
    if (moves ? options.ops.of_model : asks_for_ops(options.ops)) return model;
    if (moves) return none;
    bool any = inputs.tensors[Q] && model.query_scale.kind != VKROPE_QUERY_SCALING_NONE;
    for (const TensorIndex which : every_tensor) {
        const Ops& ops = model.tensor[which];
        any = any ||
              (inputs.tensors[which] && (ops.norm.kind != VKROPE_NORM_NONE || ops.clip != 0));
    }
    if (any) {
        print_note(
            fmt::format("--model: '{}' has more ops than the rotation ({}); --model-ops "
                        "takes them",
                        options.model.path, model_ops_text(inputs.rotation)));
    }
    return none;
}

}  // namespace

std::vector<float> ParameterFile::values() const {
    std::vector<float> values;
    if (shape == VKROPE_PARAMETER_NONE) return values;
    const oracle::Type type = verify::type_of(*element_of(array.header.type));
    for (std::size_t i = 0; i < array.data.size() / oracle::bytes_of(type); ++i) {
        values.push_back(
            oracle::widen(type, oracle::load(array.data.data(), oracle::bytes_of(type), i)));
    }
    return values;
}

bool TensorOps::any() const noexcept {
    return bias != VKROPE_PARAMETER_NONE || norm.kind != VKROPE_NORM_NONE || clip != 0 ||
           scale_call || scale_tokens || hadamard != 0 || hadamard_of_input != 0;
}

void read_ops(const OperationOptions& options, OperationInputs& inputs) {
    const OpsOptions& given = options.ops;
    const ModelOps model = model_ops(options, inputs);
    for (const TensorIndex which : every_tensor) {
        TensorOps& ops = inputs.ops[which];
        if (!inputs.tensors[which]) {
            check_absent(given, which);
            continue;
        }
        ops.clip = float(given.clip.value_or(model.tensor[which].clip));
        set_norm(given, model, which, *inputs.tensors[which], ops);
        read_parameters(given, which, *inputs.tensors[which], ops);
    }
    check_norm_options(given, inputs.ops);
    if (inputs.tensors[Q]) {
        inputs.q_scale = float(given.q_scale);
        inputs.ops[Q].scale_call = inputs.q_scale != 1;
        if (!given.q_scale_tokens.empty())
            inputs.q_scale_tokens = read_scales(given.q_scale_tokens, inputs);
        else if (model.query_scale.kind != VKROPE_QUERY_SCALING_NONE)
            inputs.q_scale_tokens = scales_by_position(inputs);
        inputs.ops[Q].scale_tokens = !inputs.q_scale_tokens.empty();
    }
    read_stores(given, inputs);
}

}  // namespace vkrope::tools
