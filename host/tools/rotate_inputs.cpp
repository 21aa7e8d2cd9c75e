// SPDX-License-Identifier: MIT
// The first step of vkrope rotate: everything that can be checked without a device.
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
    rotation.head_dim = options.head_dim.value_or(rotation.head_dim);
    rotation.q_rotary_offset = options.rotary_offset.value_or(rotation.q_rotary_offset);
    rotation.k_rotary_offset = options.rotary_offset.value_or(rotation.k_rotary_offset);
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

void check_window(const RotateOptions& options, const Rotation& rotation, const char* name, std::uint32_t offset) {
    if (std::uint64_t{offset} + rotation.rotary_dim > rotation.head_dim) {
        const bool asked_for = options.rotary_offset || options.head_dim;
        fail(asked_for ? ExitCode::usage : ExitCode::bad_file,
             "{}: {}: rotary_dim {} of the model from channel {} ends past head_dim {}", asked_for ? "--rotary-offset" : "--model",
             name, rotation.rotary_dim, offset, rotation.head_dim);
    }
}

void check_against_model(const TensorFile& tensor, const Model& model, const RotateInputs& inputs,
                         std::optional<std::uint64_t> heads) {
    if (tensor.view.head_dim != inputs.rotation.head_dim) {
        fail(ExitCode::bad_file, "{}: '{}' has shape {}, head_dim {}; the model's head_dim is {}{}", tensor.option, tensor.path,
             npy::shape_text(tensor.array.header.shape), tensor.view.head_dim, inputs.rotation.head_dim,
             inputs.rotation.head_dim == model.rotation.head_dim ? " (--head-dim overrides it)" : " by --head-dim");
    }
    if (heads && *heads != tensor.view.heads) {
        print_note(fmt::format("{}: '{}' has {} heads; the model has {}", tensor.option, tensor.path, tensor.view.heads, *heads));
    }
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

RotateInputs read_inputs(const RotateOptions& options) {
    const Model model = load_model(options.model);
    RotateInputs inputs;
    inputs.rotation = rotation_of(options, model.rotation);
    if (!options.q.empty()) {
        check_window(options, inputs.rotation, "Q", inputs.rotation.q_rotary_offset);
        inputs.q = read_tensor("--q", options.q, options.layout, options.dtype);
        check_against_model(*inputs.q, model, inputs, model.heads.q);
    }
    if (!options.k.empty()) {
        check_window(options, inputs.rotation, "K", inputs.rotation.k_rotary_offset);
        inputs.k = read_tensor("--k", options.k, options.layout, options.dtype);
        check_against_model(*inputs.k, model, inputs, model.heads.k);
    }
    if (inputs.q && inputs.k) {
        check_alike(*inputs.q, *inputs.k);
    }
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
