// SPDX-License-Identifier: MIT
// The first step of vkrope rotate: everything that can be checked without a device.
#include <algorithm>

#include "failure.hpp"
#include "rotate.hpp"
#include "terminal.hpp"

namespace vkrope::tools {
namespace {

Rotation rotation_of(const RotateOptions& options, Rotation rotation) {
    rotation.pairing = options.pairing.value_or(rotation.pairing);
    if (options.float32_angles) {
        if (options.angles == AngleSource::factored_texture || options.angles == AngleSource::computed) {
            fail(ExitCode::usage, "--float32-angles: --angles is {}; it must be direct_texture or direct_buffer",
                 word_for(angle_sources, options.angles));
        }
        rotation.product = AngleProduct::float32;
    }
    if (!rotation.rotates) {
        fail(ExitCode::usage, "--model: '{}': this layer has no rotary position embedding", options.model.path);
    }
    // The table is made for this run alone: with the factor that is wanted, the result is as exact as any.
    switch (options.gain) {
        case Gain::apply: break;
        case Gain::omit: rotation.attention_factor = 1; break;
        case Gain::divide_out: rotation.attention_factor = 1 / rotation.attention_factor; break;
    }
    return rotation;
}

/// Rows that a tensor may have, and where their window begins.
struct RowForm {
    std::uint32_t head_dim = 0, rotary_offset = 0;
    const char* what = "";
    bool shared = false;  // by all heads: there is one
};

/// Of most models one form. Latent attention has several: its head_dim counts only the channels that turn, which are a tensor of
/// their own or stand behind others; K's as in the cache, or as in Q where the heads have been put together.
std::vector<RowForm> forms_of(const RotateOptions& options, const Rotation& rotation, bool key) {
    const std::uint32_t q = rotation.q_rotary_offset, k = rotation.k_rotary_offset, width = rotation.rotary_dim;
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
    for (RowForm& form : forms) {
        form.rotary_offset = options.rotary_offset.value_or(form.rotary_offset);
    }
    return forms;
}

/// The forms whose window lies inside the row; there must be one.
std::vector<RowForm> fitting_forms(const RotateOptions& options, const Rotation& rotation, bool key) {
    std::vector<RowForm> forms = forms_of(options, rotation, key);
    const RowForm widest = forms.front();
    std::erase_if(forms, [&rotation](const RowForm& form) {
        return std::uint64_t{form.rotary_offset} + rotation.rotary_dim > form.head_dim;
    });
    if (forms.empty()) {
        const bool asked_for = options.rotary_offset || options.head_dim;
        fail(asked_for ? ExitCode::usage : ExitCode::bad_file,
             "{}: {}: rotary_dim {} of the model from channel {} ends past head_dim {}", asked_for ? "--rotary-offset" : "--model",
             key ? "K" : "Q", rotation.rotary_dim, widest.rotary_offset, widest.head_dim);
    }
    return forms;
}

/// What the last dimension of the file says.
RowForm form_of(const TensorFile& tensor, const std::vector<RowForm>& forms, const RotateOptions& options) {
    std::string known;
    for (const RowForm& form : forms) {
        if (form.head_dim == tensor.view.head_dim) {
            return form;
        }
        known += forms.size() == 1 ? fmt::format("{}", form.head_dim)
                                   : fmt::format("{}{} ({})", known.empty() ? "" : " or ", form.head_dim, form.what);
    }
    fail(ExitCode::bad_file, "{}: '{}' has shape {}, head_dim {}; the model's head_dim is {}{}", tensor.option, tensor.path,
         npy::shape_text(tensor.array.header.shape), tensor.view.head_dim, known,
         options.head_dim ? " by --head-dim" : "; --head-dim overrides it");
}

/// Reads Q or K, and takes the offset of the rows that it has.
TensorFile read_rows(const RotateOptions& options, const Rotation& rotation, bool key, std::optional<std::uint64_t> heads,
                     std::uint32_t& rotary_offset) {
    const std::vector<RowForm> forms = fitting_forms(options, rotation, key);
    TensorFile tensor = read_tensor(key ? "--k" : "--q", key ? options.k : options.q, options.layout, options.dtype);
    const RowForm form = form_of(tensor, forms, options);
    rotary_offset = form.rotary_offset;
    heads = form.shared ? 1 : heads;
    if (heads && *heads != tensor.view.heads) {
        print_note(fmt::format("{}: '{}' has {} heads; the model has {}", tensor.option, tensor.path, tensor.view.heads, *heads));
    }
    return tensor;
}

/// Q and K share positions, and the kernel that rotates them.
void check_alike(const TensorFile& q, const TensorFile& k) {
    if (q.element != k.element) {
        fail(ExitCode::bad_file, "--k: '{}' has type {}, --q '{}' has {}; they must be the same", k.path,
             word_for(elements, k.element), q.path, word_for(elements, q.element));
    }
    if (q.view.batch != k.view.batch || q.view.tokens != k.view.tokens) {
        fail(ExitCode::bad_file, "--k: '{}' has batch {} and {} tokens, --q '{}' has batch {} and {} tokens; they must be the same",
             k.path, k.view.batch, k.view.tokens, q.path, q.view.batch, q.view.tokens);
    }
}

}  // namespace

void check_tensors(const TensorPaths& q, const TensorPaths& k) {
    if (q.input.empty() && k.input.empty()) {
        fail(ExitCode::usage, "--q: missing, and --k too; there must be one of them at least");
    }
    for (const TensorPaths& paths : {q, k}) {
        if (paths.input.empty() != paths.output.empty()) {
            const bool no_input = paths.input.empty();
            fail(ExitCode::usage, "{}: missing; {} needs it", no_input ? paths.input_option : paths.output_option,
                 no_input ? paths.output_option : paths.input_option);
        }
    }
}

RotateInputs read_inputs(const RotateOptions& options) {
    Model model = load_model(options.model);
    RotateInputs inputs;
    const Rotation rotation = rotation_of(options, model.rotation);
    inputs.rotation = rotation;
    inputs.rotation.head_dim = options.head_dim.value_or(rotation.head_dim);
    if (!options.q.empty()) {
        inputs.q = read_rows(options, rotation, false, model.heads.q, inputs.rotation.q_rotary_offset);
    }
    if (!options.k.empty()) {
        inputs.k = read_rows(options, rotation, true, model.heads.k, inputs.rotation.k_rotary_offset);
    }
    if (inputs.q && inputs.k) {
        check_alike(*inputs.q, *inputs.k);
    }
    inputs.model = std::move(model.file);
    const TensorFile& tensor = inputs.q ? *inputs.q : *inputs.k;
    inputs.element = tensor.element;
    inputs.batch = static_cast<std::uint32_t>(tensor.view.batch);
    inputs.tokens = static_cast<std::uint32_t>(tensor.view.tokens);
    inputs.positions = options.positions.empty()
                           ? consecutive_positions(options.first_position.value_or(0), inputs.tokens)
                           : read_positions(options.positions, inputs.batch, inputs.tokens, inputs.rotation.sections.axes);
    const std::uint64_t longest = inputs.rotation.longest_seq_len;
    if (longest != 0 && largest_distance(inputs.positions) >= longest) {
        print_note(fmt::format("--seq-len: these frequencies serve sequences of up to {}; the largest position is {}", longest,
                               largest_distance(inputs.positions)));
    }
    return inputs;
}

}  // namespace vkrope::tools
