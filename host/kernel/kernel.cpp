// SPDX-License-Identifier: MIT
// Implements create(): chooses the pipelines of a kernel and creates them.
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "base/defaults.hpp"
#include "base/parameter_layout.hpp"
#include "base/status.hpp"
#include "kernel/constants.hpp"
#include "kernel/geometry/ops.hpp"
#include "kernel/kernel_object.hpp"
#include "kernel/resolve/resolve.hpp"

namespace vkrope {

namespace {

const char* access_name(std::uint32_t access) {
    return access == shader::access_wide   ? "vkrope, 16-byte access"
           : access == shader::access_pair ? "vkrope, 8-byte access"
           : access == shader::access_word ? "vkrope, word access"
                                           : "vkrope, narrow access";
}

// Chooses the pipelines that record() may use for one set: one for each kind of access that the
// formats allow, and a second one for many tokens for each of the two widest. V alone and tensors
// in separate dispatches have only the load few_tokens, because they share no angles with another
// tensor, and max_pipelines is small. If tuned, all have one pipeline for any load.
void choose_geometries(Kernel& kernel, PipelineSet& set, bool processor) {
    set.first_pipeline = kernel.pipeline_count;
    const bool words_are_elements = unit_elements(set.info, shader::access_word) ==
                                    1;  // all f32: narrow access is the same as word access
    const bool tuned = is_tuned(set.info.tuning);
    std::uint32_t kept = 0;  // kinds of access
    const bool ops = has_ops(set.info),
               one_unit = processor || ops;  // all channels of a row have the same unit
    const DispatchLimits& limits = kernel.dispatch_limits;
    const std::uint32_t widest = processor ? shader::access_wide
                                 : ops     ? limits.ops_access
                                           : limits.access;
    for (const std::uint32_t access :
         {shader::access_wide, shader::access_pair, shader::access_word, shader::access_narrow}) {
        if (access < widest || (access == shader::access_narrow && words_are_elements) ||
            (access == shader::access_pair && processor) ||
            (one_unit && !formats_allow(set.info, access)))
            continue;
        const auto geometry = [&](Load load) {
            return geometry_for(set.info, access, load, limits);
        };
        const Geometry last = geometry(processor ? Load::processor
                                       : tuned   ? Load::many_tokens
                                                 : Load::few_tokens);
        if (last.widest_access() != access) continue;  // the formats allow less
        if (!processor && &set == &kernel.set[Q] && !kernel.separate_dispatches && kept++ < 2) {
            const Geometry many = geometry(Load::many_tokens);
            if (!(many == last)) kernel.pipelines[kernel.pipeline_count++] = {&set, many, true};
        }
        kernel.pipelines[kernel.pipeline_count++] = {&set, last};
    }
    set.pipeline_count = kernel.pipeline_count - set.first_pipeline;
}

// Returns whether V can have K's strides in a call.
bool v_may_join(const KernelInfo& info) {
    const bool heads_differ = info.tensor[K].heads != 0 && info.tensor[V].heads != 0 &&
                              info.tensor[K].heads != info.tensor[V].heads;
    return info.tensor[V].head_dim != 0 && info.tensor[V].head_dim == info.tensor[K].head_dim &&
           !heads_differ;
}

// Creates a set for one tensor that has its own dispatches.
//
// index    the tensor
// tensor   the tensor as its dispatches process it
// rotates  whether they rotate it
void make_set_of_one(Kernel& kernel, PipelineSet& set, TensorIndex index, TensorInfo tensor,
                     bool rotates, bool processor) {
    set = {kernel.info, {}};
    const TensorIndex seen = kernel.separate_dispatches ? Q : K;
    for (TensorInfo& of : set.info.tensor) of = {};
    set.info.tensor[seen] = tensor;
    set.parameters.tensor[seen] = kernel.set[Q].parameters.tensor[index];
    if (!rotates) {
        set.info.rotary_dim = 0;
        for (Window& window : set.info.windows) window = {};
    }
    choose_geometries(kernel, set, processor);
}

// Creates the set for the second destination of a tensor, as a rotation of its own.
void make_second_set(Kernel& kernel, TensorIndex index, bool processor) {
    TensorInfo tensor = kernel.info.tensor[index];
    const bool of_result = tensor.second_of == VKROPE_SECOND_RESULT;
    tensor.out = tensor.second;
    tensor.second = {};
    tensor.second_of = {};
    tensor.ops.store_scale = {};
    tensor.ops.scale_floor = 0;
    tensor.ops.scale_layout = {};
    if (!of_result) {
        tensor.ops = {};
        tensor.rotary_offset = 0;
    }
    PipelineSet& set = kernel.second_set[index];
    const bool rotates = of_result && index != V;
    make_set_of_one(kernel, set, index, tensor, rotates, processor);
    set.info.scatter_kv = false;
}

// Puts Q, K and V in one set, or each in its own set. K uses Q's if formats and heads are equal.
void make_parts(Kernel& kernel, bool processor) {
    const TensorInfo(&tensor)[tensor_count] = kernel.info.tensor;
    PipelineSet &q = kernel.set[Q], &k = kernel.set[K];
    kernel.pipeline_count = 0;
    for (PipelineSet& set : kernel.set) set = {kernel.info, {}};
    lay_out_parameters(kernel.info, q.parameters);
    if (!kernel.v_joins) q.info.tensor[V] = k.info.tensor[V] = {};
    for (const TensorIndex t : {K, V}) {
        if (!has_second(tensor[t]) || kernel.seconds_join) continue;
        make_second_set(kernel, t, processor);
        for (PipelineSet& set : kernel.set) {
            set.info.tensor[t].second = {};
            set.info.tensor[t].second_of = {};
        }
    }
    if (tensor[V].head_dim != 0)
        make_set_of_one(kernel, kernel.set[V], V, kernel.set[V].info.tensor[V], false, processor);
    if (!kernel.separate_dispatches) return choose_geometries(kernel, q, processor);
    const TensorInfo k_info = k.info.tensor[K];
    q.info.tensor[K] = k.info.tensor[K] = {};
    k.info.tensor[Q] = k_info;
    k.parameters.tensor[Q] = q.parameters.tensor[K];
    if (tensor[Q].head_dim != 0) choose_geometries(kernel, q, processor);
    if (tensor[K].head_dim == 0) return;
    if (tensor[Q].head_dim != 0 && same_format(tensor[Q], tensor[K]) &&
        tensor[Q].heads == tensor[K].heads && !kernel.needs.any)
        k = q;
    else
        choose_geometries(kernel, k, processor);
}

constexpr std::uint32_t max_attempts = 7;  // see build()

// The SPIR-V for some constants. The pipelines of a kernel with these constants share it.
struct ShaderWords {
    shader::Constants constants;
    Spirv spirv;
    BindingList binds;
};

// The words that create() made.
struct MadeWords {
    std::unique_ptr<ShaderWords> all[max_attempts * max_pipelines];
    std::uint32_t count = 0;
};

// Finds the words for some constants among those that were made, or makes them.
Result<const ShaderWords*> words_of(const Kernel& kernel, Specializer& module,
                                    const shader::Constants& constants, MadeWords& made) {
    for (std::uint32_t i = 0; i < made.count; ++i)
        if (std::memcmp(&made.all[i]->constants, &constants, sizeof constants) == 0)
            return {{}, made.all[i].get()};
    std::unique_ptr<ShaderWords>& words = made.all[made.count];
    words.reset(new (std::nothrow) ShaderWords);
    if (!words)
        return {error(VKROPE_ERROR_OUT_OF_HOST_MEMORY, "not enough memory for a pipeline"), {}};
    // The compiler of a software device takes a time that grows with the square of the code.
    const bool rolled = kernel.cpu_device && constants.ops != shader::ops_none;
    Result<Spirv> spirv = module.specialize(
        &constants.workgroup_size, shader::constant_count,
        kernel.conversion == shader::conversion_integer ? kernel.modes : kernel.float16_modes,
        rolled ? LoopControls::rolled : LoopControls::of_driver, words->binds);
    if (!spirv) return {spirv.status, {}};
    words->constants = constants;
    words->spirv = std::move(spirv.value);
    ++made.count;
    return {{}, words.get()};
}

// Creates the SPIR-V of every pipeline, and sets kernel.binds to its bindings. Stops as soon as
// there are more than `most_buffers` storage buffers.
Status make_words(Kernel& kernel, Specializer& module, bool counts, std::uint32_t most_buffers,
                  MadeWords& made, const Spirv** words) {
    kernel.binds = {};
    const bool can_count = kernel.info.rotary_dim != 0 || kernel.info.scatter_kv ||
                           kernel.info.gather_kv || kernel.info.token_count;
    for (std::uint32_t i = 0;
         i < kernel.pipeline_count && kernel.binds.storage_buffers() <= most_buffers; ++i) {
        const Pipeline& pipeline = kernel.pipelines[i];
        const Result<const ShaderWords*> found = words_of(
            kernel, module,
            constants_of(kernel, *pipeline.set, pipeline.geometry, counts && can_count), made);
        if (!found) return found.status;
        words[i] = &found.value->spirv;
        for (const Binding& binding : found.value->binds) kernel.binds.add(binding);
    }
    return {};
}

bool has_f16(const TensorInfo& format) {
    return format.head_dim != 0 &&
           (format.in == VKROPE_F16 || format.out == VKROPE_F16 || format.second == VKROPE_F16 ||
            format.ops.norm.weight_type == VKROPE_F16);
}

Status choose_conversion(Kernel& kernel) {
    const bool possible = kernel.float16_modes != 0;
    if (kernel.info.conversion == VKROPE_CONVERSION_NATIVE && !possible) {
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "conversion is VKROPE_CONVERSION_NATIVE: it needs "
                     "VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS and _SHADER_FLOAT16, and a device with "
                     "shaderRoundingModeRTEFloat16 and shaderSignedZeroInfNanPreserveFloat16");
    }
    const bool by_itself = kernel.info.conversion == VKROPE_CONVERSION_AUTOMATIC && possible &&
                           !kernel.cpu_device;
    if ((kernel.info.conversion != VKROPE_CONVERSION_NATIVE && !by_itself) ||
        !any_tensor(kernel.info, has_f16))
        return {};
    kernel.conversion = kernel.float16_modes & denorm_preserve_16 ? shader::conversion_native
                                                                  : shader::conversion_normals;
    return {};
}

Status check_limits(const Kernel& kernel) {
    const std::uint64_t turns = shader::turn_bytes(
        kernel.info.rotary_dim / 2, kernel.info.head_groups, summed_axes(kernel.info.sections),
        kernel.info.phase);
    if (kernel.info.angles == VKROPE_ANGLES_COMPUTED &&
        turns > kernel.storage_limits.uniform_range) {
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "angles is computed: rotary_dim %u needs a uniform buffer of %llu bytes, but "
                     "the device allows %llu (maxUniformBufferRange)",
                     kernel.info.rotary_dim, static_cast<unsigned long long>(turns),
                     static_cast<unsigned long long>(kernel.storage_limits.uniform_range));
    }
    return {};
}

// Checks that the rows that the lanes of a workgroup store together fit in its shared memory.
Status check_shared_memory(const Kernel& kernel) {
    for (std::uint32_t i = 0; i < kernel.pipeline_count; ++i) {
        const Pipeline& pipeline = kernel.pipelines[i];
        if (pipeline.geometry.ops != shader::ops_shared) continue;
        const std::uint64_t bytes = shared_bytes(pipeline.set->info, pipeline.geometry);
        if (bytes <= max_shared_bytes) continue;
        return error(VKROPE_ERROR_NOT_SUPPORTED,
                     "head_dim is too large for these norms, Hadamard transforms and quantised "
                     "outputs together: a row then takes %llu bytes of shared memory, at most %llu",
                     static_cast<unsigned long long>(bytes),
                     static_cast<unsigned long long>(max_shared_bytes));
    }
    return {};
}

// Checks that the device has what a tuning asks for.
Status check_tuning(const Kernel& kernel, bool processor) {
    const Tuning& tuning = kernel.info.tuning;
    const std::uint32_t most = kernel.dispatch_limits.workgroup_invocations;
    if (is_tuned(tuning) && processor)
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "tuning is set, and the device is a CPU: mapping must be VKROPE_MAPPING_GPU");
    if (tuning.group_lanes > most)
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "tuning.group_lanes is %u: the device allows %u (the smaller one of "
                     "maxComputeWorkGroupInvocations and maxComputeWorkGroupSize[0])",
                     tuning.group_lanes, most);
    return {};
}

Status build(Kernel& kernel) {
    if (Status s = choose_conversion(kernel); !s) return s;
    if (Status s = check_limits(kernel); !s) return s;
    const bool processor = kernel.info.mapping == VKROPE_MAPPING_CPU ||
                           (kernel.info.mapping == VKROPE_MAPPING_AUTOMATIC && kernel.cpu_device);
    if (Status s = check_tuning(kernel, processor); !s) return s;
    Result<Specializer> module = Specializer::of(unpack(rope_module.bytes, rope_module.size));
    if (!module) return module.status;
    const bool has_seconds = any_tensor(
        kernel.info, [](const TensorInfo& tensor) { return has_second(tensor); });
    // If the device binds too few storage buffers, V gets its own dispatch, then second
    // destinations do, then Q and K do too, and finally counting is left out.
    struct Attempt {
        bool seconds_join, v_joins, separate_dispatches, counts;
    };
    Attempt attempts[max_attempts];
    std::uint32_t attempt_count = 0;
    for (const Attempt& attempt : {Attempt{true, true, false, true},
                                   {true, false, false, true},
                                   {false, true, false, true},
                                   {false, false, false, true},
                                   {false, false, true, true},
                                   {false, false, true, false},
                                   {false, false, false, false}}) {
        const bool by_slot = kernel.info.scatter_kv || kernel.needs.moves_keys;
        // only for kernels that move keys
        const bool last = !attempt.separate_dispatches && !attempt.counts;
        if ((attempt.separate_dispatches && by_slot) || (last && !kernel.needs.moves_keys) ||
            (attempt.seconds_join && !has_seconds) || (attempt.v_joins && !v_may_join(kernel.info)))
            continue;
        attempts[attempt_count++] = attempt;
    }
    MadeWords made;
    const Spirv* words[max_pipelines] = {};
    for (std::uint32_t i = 0; i < attempt_count; ++i) {
        const Attempt& attempt = attempts[i];
        kernel.seconds_join = attempt.seconds_join;
        kernel.v_joins = attempt.v_joins;
        kernel.separate_dispatches = attempt.separate_dispatches;
        make_parts(kernel, processor);
        if (Status s = check_shared_memory(kernel); !s) return s;
        // An error names the number of buffers that the last attempt with counting needs, or the
        // last attempt of all.
        const bool is_last = i + 1 == attempt_count || attempts[i + 1].counts != attempt.counts;
        if (Status s = make_words(kernel, module.value, attempt.counts,
                                  is_last ? ~0u : kernel.max_storage_buffers, made, words);
            !s)
            return s;
        if (attempt.counts) kernel.storage_buffers_to_count = kernel.binds.storage_buffers();
        if (kernel.binds.storage_buffers() <= kernel.max_storage_buffers) break;
    }
    if (kernel.binds.storage_buffers() > kernel.max_storage_buffers) {
        std::uint32_t weights = 0;
        const char* of_weight = nullptr;  // the first tensor with a bound weight
        for (const TensorIndex t : every_tensor) {
            if (!kernel.info.tensor[t].ops.norm.weight_bound) continue;
            if (weights++ == 0) of_weight = names_of[t].name;
        }
        if (kernel.binds.storage_buffers() > kernel.max_storage_buffers + weights)
            of_weight = nullptr;  // they alone are not too many
        const bool of_count = kernel.info.token_count &&
                              kernel.binds.storage_buffers() == kernel.max_storage_buffers + 1;
        return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                     "%s%s: the kernel then binds %u storage buffers, but the device allows %u "
                     "(maxPerStageDescriptorStorageBuffers)",
                     of_weight                ? of_weight
                     : of_count               ? "token_count"
                     : kernel.info.gather_kv  ? "gather_kv"
                     : kernel.info.scatter_kv ? "scatter_kv"
                     : kernel.needs.moves_keys
                         ? names_of[kernel.info.tensor[K].head_dim != 0 ? K : V].name
                         : "angles",
                     of_weight ? ".ops.norm.weight_bound" : "", kernel.binds.storage_buffers(),
                     kernel.max_storage_buffers);
    }
    if (Status s = create_layouts(kernel, sizeof(shader::Push)); !s) return s;
    for (std::uint32_t i = 0; i < kernel.pipeline_count; ++i) {
        Pipeline& pipeline = kernel.pipelines[i];
        if (Status s = create_pipeline(
                kernel, *words[i], access_name(pipeline.geometry.widest_access()), pipeline.handle);
            !s)
            return s;
    }
    return {};
}

}  // namespace

}  // namespace vkrope

using namespace vkrope;

vkrope_result vkrope_kernel_create(const vkrope_device_ref* device, const vkrope_kernel_info* given,
                                   vkrope_kernel** made, vkrope_error* failure) {
    return make(
        made, "kernel", failure,
        [&]() -> Status {
            if (Status s = not_null(device, "device"); !s) return s;
            if (Status s = not_null(given, "info"); !s) return s;
            const KernelInfo info = completed(*given);
            if (Status s = check(*device, info); !s) return s;
            auto* kernel = new (std::nothrow) Kernel;
            if (!kernel)
                return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                             "not enough memory for a vkrope_kernel");
            if (Status s = borrow(*kernel, *device); !s) {
                delete kernel;  // nothing was created, and the functions to destroy it may be
                                // missing
                return s;
            }
            kernel->info = info;
            kernel->needs = ops_needs(info);
            if (Status s = build(*kernel); !s) {
                vkrope_kernel_destroy(kernel);
                return s;
            }
            *made = kernel;
            return {};
        });
}

void vkrope_kernel_destroy(vkrope_kernel* kernel) {
    if (!kernel) return;
    for (const Pipeline& pipeline : kernel->pipelines)
        kernel->vk.vkDestroyPipeline(kernel->device.device, pipeline.handle,
                                     kernel->device.allocator);
    destroy_layouts(*kernel);
    delete kernel;
}
