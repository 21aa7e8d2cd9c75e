// SPDX-License-Identifier: MIT
// The store of the outputs of an operation: reads the options and checks them against the tensors.
#include <cmath>

#include "base/meaning.hpp"
#include "cli/terminal.hpp"
#include "io/array_file.hpp"
#include "io/element_type.hpp"
#include "operation/operation.hpp"

namespace vkrope::tools {
namespace {

bool takes_scale(Element type) {
    return is_quantised(type) && !has_blocks(type);
}

void check_head_dim(const TensorFile& tensor, const TensorOps& ops) {
    const std::uint64_t head_dim = tensor.view.head_dim;
    if (head_dim % block_channels(ops.stored) != 0) {
        fail(ExitCode::usage,
             "--store: blocks of {} have {} channels; {} '{}' has head_dim {}, which must be a "
             "multiple",
             word_for(stored_elements, ops.stored), block_channels(ops.stored), tensor.option,
             tensor.path, head_dim);
    }
    const auto check_multiple = [&](const char* option, std::uint32_t channels) {
        if (channels == 0 || head_dim % channels == 0) return;
        fail(ExitCode::usage,
             "{}: blocks have {} channels; {} '{}' has head_dim {}, which must be a multiple",
             option, channels, tensor.option, tensor.path, head_dim);
    };
    check_multiple("--hadamard", ops.hadamard);
    check_multiple("--hadamard-of-input", ops.hadamard_of_input);
    if (ops.has_scales()) check_multiple("--store-scale-group", ops.store_scale_group);
}

// Sets the field `transform` of each tensor.
//
// type_of  returns the type that has the transform
template <class TypeOf>
void choose_hadamard(const char* option, const HadamardOption& given, OperationInputs& inputs,
                     std::uint32_t Ops::*transform, const TypeOf& type_of) {
    OfEachTensor<TensorOps>& ops = inputs.ops;
    if (!given.of_llama_cpp) {
        for (const TensorIndex which : every_tensor)
            ops[which].*transform = given.blocks.of(which).value_or(0);
        return;
    }
    if (!inputs.tensors[K]) {
        fail(ExitCode::usage,
             "{}: llama.cpp transforms Q as the type of K demands, and --k is missing", option);
    }
    const auto head_dim = [&inputs](TensorIndex which) {
        return inputs.tensors[which] ? std::uint32_t(inputs.tensors[which]->view.head_dim) : 0;
    };
    const auto in_blocks = [&](TensorIndex which) { return has_blocks(type_of(which)); };
    const HadamardBlocks blocks = vkrope_hadamard_of_llama_cpp(head_dim(K), in_blocks(K),
                                                               head_dim(V), in_blocks(V));
    ops[Q].*transform = ops[K].*transform = blocks.q_and_k;
    ops[V].*transform = blocks.v;
    if (blocks.q_and_k == 0 && blocks.v == 0) {
        print_note(fmt::format(
            "{}: llama.cpp transforms nothing here; it does so for a K or V of q8_0 and "
            "the like whose head_dim is a multiple of 64, but not for MLA's rows",
            option));
    }
}

// Reads a factor for each head of the tensor.
std::vector<float> read_head_scales(const std::string& path, const TensorFile& tensor) {
    std::vector<float> scales = read_floats("--store-scale", path, {{tensor.view.heads}},
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

void choose_scale(const OpsOptions& options, TensorIndex which, const TensorFile& tensor,
                  TensorOps& ops) {
    const char* name = tensor_names[which].name;
    const std::optional<ScaleOption> scale = options.scales.of(which);
    if (options.scales.named[which] && !takes_scale(ops.stored)) {
        fail(ExitCode::usage,
             "--store-scale: {} is stored as {}; only e4m3fn, e5m2, int8 and int4 take a "
             "scale",
             name, word_for(stored_elements, ops.stored));
    }
    if (scale && takes_scale(ops.stored)) {
        if (!scale->of_heads.empty()) {
            ops.store_scale = VKROPE_STORE_SCALE_GIVEN_HEAD;
            ops.given_scales = read_head_scales(scale->of_heads, tensor);
        } else if (scale->of_row) {
            ops.store_scale = scale->power_of_two ? VKROPE_STORE_SCALE_MADE_POWER_OF_TWO
                                                  : VKROPE_STORE_SCALE_MADE;
            ops.scale_floor = float(options.scale_floor.value_or(0));
            if (scale->power_of_two && ops.scale_floor > 0x1p127f) {
                fail(ExitCode::usage,
                     "--scale-floor: {} is above 2^127, the largest power of two that a float "
                     "holds",
                     ops.scale_floor);
            }
        } else {
            ops.store_scale = VKROPE_STORE_SCALE_GIVEN;
            ops.given_scales = {scale->factor};
        }
    }
    const bool made = is_made(ops.store_scale);
    if (made == options.scale_files[which].empty()) {
        if (made) {
            fail(ExitCode::usage, "{}: missing; --store-scale row makes scales of {}",
                 options.scale_options[which], name);
        }
        fail(ExitCode::usage,
             "{}: no scales are made of {}; --store-scale row makes them of "
             "e4m3fn, e5m2, int8 and int4",
             options.scale_options[which], name);
    }
}

// Returns the option that says what scales are made or read; null if none is given.
const char* kind_option(const OpsOptions& options) {
    return options.scale_group  ? "--store-scale-group"
           : options.scale_type ? "--scale-type"
                                : nullptr;
}

// Sets how many scales a row has, and their type.
void choose_kind_of_scales(const OpsOptions& options, TensorIndex which, TensorOps& ops) {
    if (!ops.has_scales()) return;
    ops.store_scale_group = options.scale_group.value_or(0);
    ops.scale_type = options.scale_type.value_or(VKROPE_SCALE_TYPE_F32);
    if (ops.scale_type == VKROPE_SCALE_TYPE_UE8M0 && ops.store_scale == VKROPE_STORE_SCALE_MADE) {
        fail(ExitCode::usage,
             "--scale-type: ue8m0 has powers of two only; --store-scale row_power_of_two makes "
             "them of {}",
             tensor_names[which].name);
    }
}

// Sets the scales of the rows of an input.
void set_input_scales(const OpsOptions& options, TensorIndex which, OperationInputs& inputs) {
    const char* option = input_scale_options[which];
    const TensorFile& tensor = *inputs.tensors[which];
    TensorOps& ops = inputs.ops[which];
    if (!takes_scale(tensor.element)) {
        fail(ExitCode::usage,
             "{}: {} is read as {}; only rows of e4m3fn, e5m2, int8 and int4 have scales", option,
             tensor_names[which].name, word_for(stored_elements, tensor.element));
    }
    ops.input_scales = read_scales(option, options.input_scale_files[which], tensor, ops);
}

// Rejects a transform that cannot be undone before the norm.
void check_transform(TensorIndex which, const TensorOps& ops) {
    if (ops.hadamard_of_input == 0) return;
    if (ops.norm.kind != VKROPE_NORM_NONE && ops.norm.span == VKROPE_NORM_SPAN_TOKEN) {
        fail(ExitCode::usage,
             "--hadamard-of-input: the norm of {} takes all heads of a token; it must take a head",
             tensor_names[which].name);
    }
}

// Sets the second destination of a tensor that is given.
void choose_second(const OpsOptions& options, TensorIndex which, TensorOps& ops) {
    if (which == Q) return;
    const char* name = tensor_names[which].name;
    const std::optional<Element> type = options.second.of(which);
    if (type) {
        ops.second = *type;
        ops.second_of = options.second_of.of(which).value_or(VKROPE_SECOND_RESULT);
    } else if (options.second_of.named[which]) {
        fail(ExitCode::usage, "--second-of: {} is stored once; --second stores it again", name);
    }
    if (ops.has_second() == options.second_files[which].empty()) {
        if (ops.has_second())
            fail(ExitCode::usage, "{}: missing; --second stores {} again", second_options[which],
                 name);
        fail(ExitCode::usage, "{}: {} is stored once; --second stores it again",
             second_options[which], name);
    }
}

// Rejects options of a second destination that no tensor has.
void check_second_options(const OpsOptions& options, const OperationInputs& inputs) {
    if (options.second.named[Q] || options.second_of.named[Q]) {
        fail(ExitCode::usage, "{}: Q is stored once; only K and V have a second destination",
             options.second.named[Q] ? "--second" : "--second-of");
    }
    if (options.second.all && !inputs.tensors[K] && !inputs.tensors[V])
        fail(ExitCode::usage, "--second: --k and --v are missing; only they are stored again");
    if (options.second_of.all && !options.second.given())
        fail(ExitCode::usage, "--second-of: K and V are stored once; --second stores them again");
}

}  // namespace

std::vector<std::uint64_t> TensorOps::shape_of_scales(const TensorFile& tensor) const {
    std::vector<std::uint64_t> shape = tensor.array.header.shape;
    shape.pop_back();
    if (store_scale_group != 0) shape.push_back(tensor.view.head_dim / store_scale_group);
    return shape;
}

std::vector<std::byte> read_scales(const char* option, const std::string& path,
                                   const TensorFile& tensor, const TensorOps& ops) {
    const npy::Array array = read_array(option, path);
    const npy::Type type = npy_type(ops.scale_type);
    const ArrayShape shape = ops.shape_of_scales(tensor);
    if (array.header.type != type || array.header.shape != shape) {
        fail(ExitCode::bad_file, "{}: '{}' has shape {} of {}; {} '{}' needs {} of {}", option,
             path, npy::shape_text(array.header.shape), npy::name(array.header.type), tensor.option,
             tensor.path, npy::shape_text(shape), npy::name(type));
    }
    return rows_of_file(tensor.view, array.data);
}

std::uint64_t row_in_file(const oracle::Tensor& view, std::uint64_t row) noexcept {
    const std::uint64_t token = row / view.heads;
    const std::uint64_t channel = token / view.tokens * view.batch_stride +
                                  token % view.tokens * view.token_stride +
                                  row % view.heads * view.head_stride;
    return channel / view.head_dim;
}

void read_stores(const OpsOptions& options, OperationInputs& inputs) {
    const auto type_of = [&inputs](TensorIndex which) {
        return inputs.tensors[which] ? inputs.tensors[which]->element : VKROPE_F32;
    };
    const auto stored = [&inputs](TensorIndex which) { return inputs.ops[which].stored; };
    for (const TensorIndex which : every_tensor)
        inputs.ops[which].stored = options.types.of(which).value_or(type_of(which));
    choose_hadamard("--hadamard", options.hadamard, inputs, &Ops::hadamard, stored);
    choose_hadamard("--hadamard-of-input", options.hadamard_of_input, inputs,
                    &Ops::hadamard_of_input, type_of);
    check_second_options(options, inputs);
    bool any_scale = false, any_made = false, any_kind = false;
    for (const TensorIndex which : every_tensor) {
        if (inputs.tensors[which]) {
            TensorOps& ops = inputs.ops[which];
            choose_scale(options, which, *inputs.tensors[which], ops);
            ops.scales_in = !options.input_scale_files[which].empty();
            choose_kind_of_scales(options, which, ops);
            check_head_dim(*inputs.tensors[which], ops);
            check_transform(which, ops);
            if (ops.scales_in != 0) set_input_scales(options, which, inputs);
            choose_second(options, which, ops);
            any_scale = any_scale || ops.store_scale != VKROPE_STORE_SCALE_NONE;
            any_made = any_made || is_made(ops.store_scale);
            any_kind = any_kind || ops.has_scales();
        }
    }
    if (const char* given = kind_option(options); given != nullptr && !any_kind) {
        fail(ExitCode::usage,
             "{}: no scales are made or read; --store-scale row makes them, --k-scales and "
             "--v-scales read them",
             given);
    }
    if (options.scales.all && !any_scale) {
        fail(ExitCode::usage,
             "--store-scale: only e4m3fn, e5m2, int8 and int4 take a scale; --store gives no "
             "tensor one of them");
    }
    if (options.scale_floor && !any_made)
        fail(ExitCode::usage, "--scale-floor: no scales are made; --store-scale row makes them");
}

}  // namespace vkrope::tools
