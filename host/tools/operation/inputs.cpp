// SPDX-License-Identifier: MIT
// The first step of vkrope rotate: reads and checks everything that needs no device.
#include <algorithm>

#include "base/meaning.hpp"
#include "cli/failure.hpp"
#include "cli/terminal.hpp"
#include "operation/operation.hpp"

namespace vkrope::tools {
namespace {

// Rejects the options of a rotation for a layer without RoPE.
void refuse_rotation(const OperationOptions& options) {
    const char* given = options.inverse                             ? "--inverse"
                        : options.gain != VKROPE_GAIN_APPLY         ? "--gain"
                        : options.angles != VKROPE_ANGLES_AUTOMATIC ? "--angles"
                        : options.float32_angles                    ? "--float32-angles"
                        : options.rotary_offset                     ? "--rotary-offset"
                                                                    : nullptr;
    if (given != nullptr) {
        fail(ExitCode::usage,
             "{}: --model '{}': this layer has no rotary position embedding: nothing is rotated",
             given, options.model.path);
    }
}

RopeParams rotation_of(const OperationOptions& options, RopeParams rotation) {
    if (options.float32_angles) {
        if (options.angles == VKROPE_ANGLES_FACTORED_TEXTURE ||
            options.angles == VKROPE_ANGLES_COMPUTED) {
            fail(ExitCode::usage,
                 "--float32-angles: --angles is {}; it must be direct_texture or direct_buffer",
                 word_for(angle_sources, options.angles));
        }
        rotation.precision = VKROPE_ANGLE_PRECISION_FLOAT32;
    }
    if (rotation.no_rope) {
        refuse_rotation(options);
        print_note(
            fmt::format("--model: '{}': this layer has no rotary position embedding: "
                        "nothing is rotated",
                        options.model.path));
    }
    // The table is made for this run only and with the requested factor, so the result loses no
    // accuracy.
    switch (options.gain) {
        case VKROPE_GAIN_APPLY: break;
        case VKROPE_GAIN_OMIT: rotation.attention_factor = 1; break;
        case VKROPE_GAIN_DIVIDE_OUT:
            rotation.attention_factor = 1 / rotation.attention_factor;
            break;
    }
    return rotation;
}

// A row format that a tensor may have, and the first channel of its window.
struct RowForm {
    std::uint32_t head_dim = 0, rotary_offset = 0;
    const char* what = "";
    bool shared = false;  // one row shared by all heads
};

// Returns the row formats of a tensor. Most models have one. Latent attention has several, because
// its head_dim counts only the rotated channels, which are a separate tensor or follow other
// channels. K is as in the cache, or as in Q if the heads have been assembled.
std::vector<RowForm> forms_of(const OperationOptions& options, const RopeParams& rotation,
                              TensorIndex which) {
    const bool key = which == K;
    const std::uint32_t q = rotation.q_rotary_offset, k = rotation.k_rotary_offset;
    // Without RoPE nothing says which channels of a whole head would turn, but in latent attention
    // they are head_dim channels.
    const bool latent = std::max(q, k) >= rotation.head_dim;
    const std::uint32_t width = !rotation.no_rope || !latent ? rotation.rotary_dim
                                                             : rotation.head_dim;
    std::vector<RowForm> forms;
    if (std::max(q, k) + width <= rotation.head_dim || options.head_dim) {
        forms = {{options.head_dim.value_or(rotation.head_dim), key ? k : q}};
    } else if (key) {
        forms = {{k + width, k, "a row of the latent cache", true},
                 {q + width, q, "a whole head"},
                 {width, 0, "the rotary part alone", true}};
    } else {
        forms = {{q + width, q, "a whole head"}, {width, 0, "the rotary part alone"}};
    }
    for (RowForm& form : forms)
        form.rotary_offset = options.rotary_offset.value_or(form.rotary_offset);
    return forms;
}

// Returns the forms whose window is inside the row. Fails if there is none.
std::vector<RowForm> fitting_forms(const OperationOptions& options, const RopeParams& rotation,
                                   TensorIndex which) {
    std::vector<RowForm> forms = forms_of(options, rotation, which);
    const RowForm widest = forms.front();
    std::erase_if(forms, [&rotation](const RowForm& form) {
        return std::uint64_t{form.rotary_offset} + rotation.rotary_dim > form.head_dim;
    });
    if (forms.empty()) {
        const bool asked_for = options.rotary_offset || options.head_dim;
        fail(asked_for ? ExitCode::usage : ExitCode::bad_file,
             "{}: {}: rotary_dim {} of the model from channel {} ends past head_dim {}",
             asked_for ? "--rotary-offset" : "--model", tensor_names[which].name,
             rotation.rotary_dim, widest.rotary_offset, widest.head_dim);
    }
    return forms;
}

// Returns the form that matches the last dimension of the file.
//
// least  lower limit of --head-dim in channels
RowForm form_of(const TensorFile& tensor, const std::vector<RowForm>& forms,
                const OperationOptions& options, std::uint64_t least) {
    std::string known;
    for (const RowForm& form : forms) {
        if (form.head_dim == tensor.view.head_dim) return form;
        known += forms.size() == 1 ? fmt::format("{}", form.head_dim)
                                   : fmt::format("{}{} ({})", known.empty() ? "" : " or ",
                                                 form.head_dim, form.what);
    }
    fail(ExitCode::bad_file, "{}: '{}' has shape {}, head_dim {}; the model's head_dim is {}{}",
         tensor.option, tensor.path, npy::shape_text(tensor.array.header.shape),
         tensor.view.head_dim, known,
         options.head_dim                ? " by --head-dim"
         : tensor.view.head_dim >= least ? "; --head-dim overrides it"
                                         : "");
}

TensorFile read_file(const OperationOptions& options, TensorIndex which) {
    return read_tensor(tensor_names[which].input_option, options.inputs[which], options.layout,
                       options.dtype.of(which));
}

// Reads Q or K and sets the rotary offset of its row form.
TensorFile read_rotated(const OperationOptions& options, const RopeParams& rotation,
                        TensorIndex which, std::optional<std::uint64_t> heads,
                        std::uint32_t& rotary_offset) {
    const std::vector<RowForm> forms = fitting_forms(options, rotation, which);
    TensorFile tensor = read_file(options, which);
    const std::uint64_t offset = options.rotary_offset.value_or(
        which == K ? rotation.k_rotary_offset : rotation.q_rotary_offset);
    const RowForm form = form_of(tensor, forms, options, offset + rotation.rotary_dim);
    rotary_offset = form.rotary_offset;
    heads = form.shared ? 1 : heads;
    if (heads && *heads != tensor.view.heads) {
        print_note(fmt::format("{}: '{}' has {} heads; the model has {}", tensor.option,
                               tensor.path, tensor.view.heads, *heads));
    }
    return tensor;
}

// Reads V. The model does not define its rows, so any row that the kernel supports is accepted.
TensorFile read_value(const OperationOptions& options) {
    TensorFile tensor = read_file(options, V);
    if (tensor.view.head_dim < 2 || tensor.view.head_dim > 65534) {
        fail(ExitCode::bad_file, "{}: '{}' has shape {}, head_dim {}; it must be 2 to 65534",
             tensor.option, tensor.path, npy::shape_text(tensor.array.header.shape),
             tensor.view.head_dim);
    }
    return tensor;
}

// Checks that two tensors have the same tokens and fit in one kernel.
void check_alike(const TensorFile& first, const TensorFile& other) {
    if (first.element != other.element && !is_quantised(first.element) &&
        !is_quantised(other.element)) {
        fail(ExitCode::bad_file, "{}: '{}' has type {}, {} '{}' has {}; they must be the same",
             other.option, other.path, word_for(elements, other.element), first.option, first.path,
             word_for(elements, first.element));
    }
    if (first.view.batch != other.view.batch || first.view.tokens != other.view.tokens) {
        fail(ExitCode::bad_file,
             "{}: '{}' has batch {} and {} tokens, {} '{}' has batch {} and {} tokens; they must "
             "be the same",
             other.option, other.path, other.view.batch, other.view.tokens, first.option,
             first.path, first.view.batch, first.view.tokens);
    }
}

bool has_rows(const std::optional<TensorFile>& tensor) {
    return tensor && !tensor->array.data.empty();
}

// Rejects what a call that moves keys does not have.
void check_moves(const OperationOptions& options, const OperationInputs& inputs) {
    if (!moves_keys(options, inputs)) return;
    const char* option = options.ops.hadamard_of_input.given() ? "--hadamard-of-input" : "--dtype";
    if (inputs.tensors[Q])
        fail(ExitCode::usage, "{}: only K and V are read from a cache, and without --q", option);
    if (options.ops.second.given())
        fail(ExitCode::usage, "{}: keys that move are stored once, without --second", option);
}

// Checks that Q or K has rows, because a kernel moves V with Q or K, but never V alone.
void check_something_rotates(const OfEachTensor<std::optional<TensorFile>>& tensors) {
    if (has_rows(tensors[V]) && !has_rows(tensors[Q]) && !has_rows(tensors[K])) {
        fail(ExitCode::bad_file,
             "{}: '{}' has {} heads, but there is no Q or K; V is copied along with heads that are "
             "rotated",
             tensors[V]->option, tensors[V]->path, tensors[V]->view.heads);
    }
}

// Checks that Q or K is given, and that each given tensor has both files.
void check_tensors(const OperationOptions& options) {
    if (options.inputs[Q].empty() && options.inputs[K].empty())
        fail(ExitCode::usage, "--q and --k are missing; give at least one of them");
    for (const TensorIndex which : every_tensor) {
        const bool no_input = options.inputs[which].empty();
        if (no_input && options.dtype.named[which])
            fail(ExitCode::usage, "--dtype: {} is missing", tensor_names[which].input_option);
        if (no_input != options.outputs[which].empty()) {
            const char* input = tensor_names[which].input_option;
            const char* output = options.output_options[which];
            fail(ExitCode::usage, "{} is missing; {} needs it", no_input ? input : output,
                 no_input ? output : input);
        }
    }
}

}  // namespace

bool moves_keys(const OperationOptions& options, const OperationInputs& inputs) {
    bool any = options.ops.hadamard_of_input.given();
    for (const TensorIndex which : every_tensor)
        any = any || (inputs.tensors[which] && is_quantised(inputs.tensors[which]->element));
    return any;
}

OperationInputs read_inputs(const OperationOptions& options) {
    check_tensors(options);
    Model model = load_model(options.model);
    OperationInputs inputs;
    const RopeParams rotation = rotation_of(options, model.rotation);
    inputs.rotation = rotation;
    inputs.rotation.head_dim = options.head_dim.value_or(rotation.head_dim);
    auto& tensors = inputs.tensors;
    if (!options.inputs[Q].empty()) {
        tensors[Q] = read_rotated(options, rotation, Q, model.heads.q,
                                  inputs.rotation.q_rotary_offset);
    }
    if (!options.inputs[K].empty()) {
        tensors[K] = read_rotated(options, rotation, K, model.heads.k,
                                  inputs.rotation.k_rotary_offset);
    }
    if (!options.inputs[V].empty()) tensors[V] = read_value(options);
    const TensorFile& tensor = tensors[Q] ? *tensors[Q] : *tensors[K];
    for (const TensorIndex which : every_tensor)
        if (tensors[which]) check_alike(tensor, *tensors[which]);
    check_moves(options, inputs);
    check_something_rotates(tensors);
    inputs.model = std::move(model.file);
    inputs.batch = std::uint32_t(tensor.view.batch);
    inputs.tokens = std::uint32_t(tensor.view.tokens);
    inputs.positions = options.positions.empty()
                           ? consecutive_positions(options.first_position.value_or(0),
                                                   inputs.tokens)
                           : read_positions(options.positions, inputs.batch, inputs.tokens,
                                            inputs.rotation.sections.axes);
    const Sections& sections = inputs.rotation.sections;
    if (sections.order == VKROPE_SECTIONS_SUM && inputs.positions.axes == 0)
        give_each_axis(inputs.positions, inputs.batch, inputs.tokens, sections.axes);
    const std::uint64_t longest = inputs.rotation.longest_seq_len;
    if (longest != 0 && largest_distance(inputs.positions) >= longest) {
        print_note(
            fmt::format("--seq-len: these frequencies are valid for sequences of up to {} tokens, "
                        "but the largest position is {}",
                        longest, largest_distance(inputs.positions)));
    }
    read_ops(options, inputs);
    return inputs;
}

}  // namespace vkrope::tools
