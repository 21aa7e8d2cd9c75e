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
    return is_quantised(type) && block_channels(type) == 1;
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
    if (ops.hadamard != 0 && head_dim % ops.hadamard != 0) {
        fail(ExitCode::usage,
             "--hadamard: blocks have {} channels; {} '{}' has head_dim {}, which must be a "
             "multiple",
             ops.hadamard, tensor.option, tensor.path, head_dim);
    }
}

void choose_hadamard(const OpsOptions& options, OperationInputs& inputs) {
    OfEachTensor<TensorOps>& ops = inputs.ops;
    if (!options.hadamard_of_llama_cpp) {
        for (const TensorIndex which : every_tensor)
            ops[which].hadamard = options.hadamard.of(which).value_or(0);
        return;
    }
    if (!inputs.tensors[K]) {
        fail(ExitCode::usage,
             "--hadamard: llama.cpp transforms Q as the type of K demands, and --k is missing");
    }
    const auto head_dim = [&inputs](TensorIndex which) {
        return inputs.tensors[which] ? std::uint32_t(inputs.tensors[which]->view.head_dim) : 0;
    };
    const auto in_blocks = [&ops](TensorIndex which) {
        return block_channels(ops[which].stored) != 1;
    };
    const HadamardBlocks blocks = vkrope_hadamard_of_llama_cpp(head_dim(K), in_blocks(K),
                                                               head_dim(V), in_blocks(V));
    ops[Q].hadamard = ops[K].hadamard = blocks.q_and_k;
    ops[V].hadamard = blocks.v;
    if (blocks.q_and_k == 0 && blocks.v == 0) {
        print_note(
            "--hadamard: llama.cpp transforms nothing here; it does so for a K or V of q8_0 and "
            "the like whose head_dim is a multiple of 64");
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
             "--store-scale: {} is stored as {}; only e4m3fn, e5m2 and int8 take a scale", name,
             word_for(stored_elements, ops.stored));
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
             "e4m3fn, e5m2 and int8",
             options.scale_options[which], name);
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

std::uint64_t row_in_file(const oracle::Tensor& view, std::uint64_t row) noexcept {
    const std::uint64_t token = row / view.heads;
    const std::uint64_t channel = token / view.tokens * view.batch_stride +
                                  token % view.tokens * view.token_stride +
                                  row % view.heads * view.head_stride;
    return channel / view.head_dim;
}

void read_stores(const OpsOptions& options, OperationInputs& inputs) {
    for (const TensorIndex which : every_tensor)
        inputs.ops[which].stored = options.types.of(which).value_or(inputs.element);
    choose_hadamard(options, inputs);
    check_second_options(options, inputs);
    bool any_scale = false, any_made = false;
    for (const TensorIndex which : every_tensor) {
        if (inputs.tensors[which]) {
            TensorOps& ops = inputs.ops[which];
            check_head_dim(*inputs.tensors[which], ops);
            choose_scale(options, which, *inputs.tensors[which], ops);
            choose_second(options, which, ops);
            any_scale = any_scale || ops.store_scale != VKROPE_STORE_SCALE_NONE;
            any_made = any_made || is_made(ops.store_scale);
        }
    }
    if (options.scales.all && !any_scale) {
        fail(ExitCode::usage,
             "--store-scale: only e4m3fn, e5m2 and int8 take a scale; --store gives no tensor "
             "one of them");
    }
    if (options.scale_floor && !any_made)
        fail(ExitCode::usage, "--scale-floor: no scales are made; --store-scale row makes them");
}

}  // namespace vkrope::tools
