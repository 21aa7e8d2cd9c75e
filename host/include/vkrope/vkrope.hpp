// SPDX-License-Identifier: MIT
// vkrope.h for C++17: short names, owners, values with a status, vectors. vkrope.h documents every
// type, field and function; each function here calls the one of the same name there. Nothing
// throws but the vectors, for lack of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "vkrope/vkrope.h"

/// True if both assign the same axis to every pair. Ignores fields that have no effect.
constexpr bool operator==(const vkrope_sections& a, const vkrope_sections& b) noexcept {
    if (a.axes != b.axes) return false;
    if (a.axes == 0) return true;
    for (std::uint32_t i = 0; i < VKROPE_MAX_AXES; ++i) {
        if (a.pairs[i] != b.pairs[i]) return false;
    }
    return a.order == b.order &&
           (a.order != VKROPE_SECTIONS_INTERLEAVED || a.leftover_axis == b.leftover_axis);
}
constexpr bool operator!=(const vkrope_sections& a, const vkrope_sections& b) noexcept {
    return !(a == b);
}

constexpr bool operator==(const vkrope_window& a, const vkrope_window& b) noexcept {
    return a.offset == b.offset && a.rotary_dim == b.rotary_dim;
}

namespace vkrope {

// ---- Short names ----

using AngleTableLayout = vkrope_angle_table_layout;
using AngleLines = vkrope_angle_lines;
using AnglePrecision = vkrope_angle_precision;
using Angles = vkrope_angles;
using AngleSource = vkrope_angle_source;
using AngleUpload = vkrope_angle_upload;
using Boundary = vkrope_boundary;
using Call = vkrope_call;
using Code = vkrope_result;
using Conversion = vkrope_conversion;
using DeepseekYarnScaling = vkrope_deepseek_yarn_scaling;
using DescriptorArena = vkrope_arena;
using DeviceFeature = vkrope_device_features;
using DeviceRef = vkrope_device_ref;
using Direction = vkrope_direction;
using DualChunk = vkrope_dual_chunk;
using DualChunkRole = vkrope_dual_chunk_role;
using DynamicNtkScaling = vkrope_dynamic_ntk_scaling;
using Element = vkrope_element;
using Ops = vkrope_ops;
using Gain = vkrope_gain;
using GgmlRope = vkrope_ggml_rope;
using GgmlScaling = vkrope_ggml_scaling;
using GridAxis = vkrope_grid_axis;
using HadamardBlocks = vkrope_hadamard_blocks;
using Kernel = vkrope_kernel;
using KernelInfo = vkrope_kernel_info;
using Llama3Scaling = vkrope_llama3_scaling;
using LongRopeScaling = vkrope_longrope_scaling;
using Mapping = vkrope_mapping;
using ModelOps = vkrope_model_ops;
using Norm = vkrope_norm;
using NormKind = vkrope_norm_kind;
using NormPlace = vkrope_norm_place;
using NormSpan = vkrope_norm_span;
using PagedCache = vkrope_paged_cache;
using Pairing = vkrope_pairing;
using ParameterItem = vkrope_parameter_item;
using ParameterLayout = vkrope_parameter_layout;
using ParameterShape = vkrope_parameter_shape;
using ParameterSource = vkrope_parameter_source;
using ParameterSources = vkrope_parameter_sources;
using PositionCall = vkrope_position_call;
using PositionKernel = vkrope_position_kernel;
using Positions = vkrope_positions;
using PositionSource = vkrope_position_source;
using ProportionalScaling = vkrope_proportional_scaling;
using QueryScale = vkrope_query_scale;
using QueryScaling = vkrope_query_scaling;
using Requirements = vkrope_requirements;
using ScaleLayout = vkrope_scale_layout;
using SectionOrder = vkrope_section_order;
using Sections = vkrope_sections;
using StoreScale = vkrope_store_scale;
using Tensor = vkrope_tensor;
using TensorIndex = vkrope_tensor_index;
using TensorInfo = vkrope_tensor_info;
using TensorParameters = vkrope_tensor_parameters;
using TensorParameterSources = vkrope_tensor_parameter_sources;
using Window = vkrope_window;
using XposScaling = vkrope_xpos_scaling;
using YarnScaling = vkrope_yarn_scaling;

inline constexpr TensorIndex Q = VKROPE_Q, K = VKROPE_K, V = VKROPE_V;
inline constexpr TensorIndex every_tensor[] = {Q, K, V};
inline constexpr std::uint32_t tensor_count = VKROPE_TENSORS;
inline constexpr std::uint32_t max_head_dim = VKROPE_MAX_HEAD_DIM;
inline constexpr std::uint32_t max_axes = VKROPE_MAX_AXES;
inline constexpr std::uint32_t max_windows = VKROPE_MAX_WINDOWS;
inline constexpr std::uint32_t max_calls = VKROPE_MAX_CALLS;
inline constexpr std::uint64_t max_positions = VKROPE_MAX_POSITIONS;
inline constexpr std::uint64_t max_factored_positions = VKROPE_MAX_FACTORED_POSITIONS;
inline constexpr std::int64_t broadcast = VKROPE_BROADCAST;

// ---- Status and result ----

/// The outcome of a call. Has a fixed size, so reporting an error allocates nothing.
struct [[nodiscard]] Status : vkrope_error {
    Status(Code of = VKROPE_SUCCESS) noexcept {
        code = of;
        what[0] = 0;
    }
    /// Of an error that may be the caller's: `what` is cut where it does not end.
    Status(const vkrope_error& error) noexcept : vkrope_error(error) { what[sizeof what - 1] = 0; }
    Status(const Status& other) noexcept { copy(other); }
    Status& operator=(const Status& other) noexcept {
        if (this != &other) copy(other);
        return *this;
    }
    explicit operator bool() const noexcept { return code == VKROPE_SUCCESS; }

   private:
    // Copies no more than there is: a call, and not 248 bytes, at each of many places.
    void copy(const Status& from) noexcept {
        code = from.code;
        vk_result = from.vk_result;
        std::strcpy(what, from.what);
    }
};

/// A value, or the status that says why there is none (`value` is then value-initialised).
template <class T>
struct [[nodiscard]] Result {
    Status status;
    T value{};

    explicit operator bool() const noexcept { return bool(status); }
    T* operator->() noexcept { return &value; }
    const T* operator->() const noexcept { return &value; }
};

/// Calls a function of vkrope.h that takes a vkrope_error last.
template <class Function, class... Arguments>
Status status_of(Function* function, Arguments... arguments) noexcept {
    Status status;
    static_cast<void>(function(arguments..., &status));
    return status;
}

/// As above, for a function that also writes a T before it.
template <class T, class Function, class... Arguments>
Result<T> result_of(Function* function, Arguments... arguments) noexcept {
    Result<T> result;
    static_cast<void>(function(arguments..., &result.value, &result.status));
    return result;
}

// ---- What a type or a field means ----

/// vkrope_is_quantised.
constexpr bool is_quantised(Element element) noexcept {
    return element > VKROPE_BF16;
}
/// vkrope_block_channels.
constexpr std::uint32_t block_channels(Element element) noexcept {
    return element >= VKROPE_Q8_0 && element <= VKROPE_Q5_1 ? 32 : 1;
}
/// vkrope_element_bytes.
constexpr std::uint32_t element_bytes(Element element) noexcept {
    constexpr std::uint32_t bytes[] = {4, 2, 2, 1, 1, 1, 34, 18, 20, 22, 24};
    return element <= VKROPE_Q5_1 ? bytes[std::uint32_t(element)] : 2;
}
/// vkrope_summed_axes.
constexpr std::uint32_t summed_axes(const Sections& sections) noexcept {
    return sections.order == VKROPE_SECTIONS_SUM ? sections.axes : 1;
}
/// vkrope_axis_of.
constexpr std::uint32_t axis_of(const Sections& sections, std::uint32_t pair) noexcept {
    std::uint32_t sum = 0;
    for (const std::uint32_t pairs : sections.pairs) sum += pairs;
    if (sum == 0) return 0;
    const std::uint32_t m = pair % sum;
    if (sections.order == VKROPE_SECTIONS_INTERLEAVED)
        return m < 3 * sections.pairs[m % 3] ? m % 3 : sections.leftover_axis;
    std::uint32_t axis = 0;
    for (std::uint32_t end = sections.pairs[0]; m >= end; end += sections.pairs[axis]) ++axis;
    return axis;
}
/// vkrope_default_angles.
constexpr AngleSource default_angles(AnglePrecision precision,
                                     std::uint64_t max_position) noexcept {
    if (precision == VKROPE_ANGLE_PRECISION_FLOAT32) return VKROPE_ANGLES_DIRECT_TEXTURE;
    return max_position > max_factored_positions ? VKROPE_ANGLES_COMPUTED
                                                 : VKROPE_ANGLES_FACTORED_TEXTURE;
}
/// vkrope_error_bound.
constexpr double error_bound(AngleSource source, double attention_factor) noexcept {
    return source == VKROPE_ANGLES_FACTORED_TEXTURE ? 6
           : source == VKROPE_ANGLES_COMPUTED       ? 4.5
           : attention_factor == 1                  ? 2.5
                                                    : 3;
}
/// vkrope_get_angle_lines.
inline AngleLines angle_lines(const AngleTableLayout& layout) noexcept {
    if (layout.source == VKROPE_ANGLES_COMPUTED) return {1, layout.bytes};
    if (layout.source == VKROPE_ANGLES_DIRECT_BUFFER)
        return {
            layout.phase ? 2 * layout.rows - 1 : layout.rows,  // with phases, -rows + 1 to rows - 1
            std::size_t{layout.pairs} * 8};                    // cos and sin, a float each
    return {layout.extent.height, std::size_t{layout.extent.width} * 16};  // texels of four floats
}
/// Factor of vkrope_ops::scale.
constexpr float scale_of(const Ops& ops) noexcept {
    return ops.scale == 0 ? 1 : ops.scale;
}
/// Groups of heads with frequencies of their own.
constexpr std::uint32_t head_groups_of(const KernelInfo& info) noexcept {
    return info.head_groups == 0 ? 1 : info.head_groups;
}
/// Pairing of the output of a kernel.
constexpr Pairing output_pairing(const KernelInfo& info) noexcept {
    return info.pairing_out == VKROPE_PAIRING_NONE ? info.pairing : info.pairing_out;
}
/// Whether two tensors have the same types and channels.
constexpr bool same_format(const TensorInfo& a, const TensorInfo& b) noexcept {
    return a.in == b.in && a.out == b.out && a.head_dim == b.head_dim &&
           a.rotary_offset == b.rotary_offset;
}
/// Whether a scale is made for each row.
constexpr bool is_made(StoreScale scale) noexcept {
    return scale >= VKROPE_STORE_SCALE_MADE;
}

// ---- Frequencies ----

/// vkrope_rope_params that owns its arrays: the vectors and strings here stand in for the pointers
/// of the same name. Fields that are 0 by default have the number that 0 stands for.
struct RopeParams : vkrope_rope_params {
    std::vector<double> inv_freq, phase;
    std::string rope_type = "default";
    std::vector<std::string> warnings;

    RopeParams() noexcept {
        pairing = VKROPE_HALF_SPLIT;
        attention_factor = softmax_scale = 1;
        head_groups = 1;
    }
    /// Copies the arrays and strings.
    explicit RopeParams(const vkrope_rope_params& from) : vkrope_rope_params(from) {
        if (from.inv_freq) inv_freq.assign(from.inv_freq, from.inv_freq + from.inv_freq_count);
        if (from.phase) phase.assign(from.phase, from.phase + from.phase_count);
        if (from.rope_type) rope_type = from.rope_type;
        if (from.warnings) warnings.assign(from.warnings, from.warnings + from.warning_count);
        if (attention_factor == 0) attention_factor = 1;
        if (softmax_scale == 0) softmax_scale = 1;
        if (head_groups == 0) head_groups = 1;
        // The base has no arrays: view() has them.
        vkrope_rope_params& bare = *this;
        bare.inv_freq = bare.phase = nullptr;
        bare.rope_type = nullptr;
        bare.warnings = nullptr;
        inv_freq_count = phase_count = warning_count = 0;
    }

    /// The same without the warnings, valid until this changes.
    vkrope_rope_params view() const noexcept {
        vkrope_rope_params of = *this;
        of.inv_freq = inv_freq.empty() ? nullptr : inv_freq.data();
        of.inv_freq_count = inv_freq.size();
        of.phase = phase.empty() ? nullptr : phase.data();
        of.phase_count = phase.size();
        of.rope_type = rope_type.c_str();
        of.warnings = nullptr;
        of.warning_count = 0;
        return of;
    }
};

inline Status default_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq) noexcept {
    return status_of(vkrope_default_inv_freq, base, rotary_dim, inv_freq);
}
inline Status inclusive_inv_freq(double base, std::uint32_t rotary_dim, double* inv_freq) noexcept {
    return status_of(vkrope_inclusive_inv_freq, base, rotary_dim, inv_freq);
}
inline Status proportional_inv_freq(double base, std::uint32_t head_dim,
                                    const ProportionalScaling& scaling, double* inv_freq) noexcept {
    return status_of(vkrope_proportional_inv_freq, base, head_dim, &scaling, inv_freq);
}
inline Status scale_linear(std::vector<double>& inv_freq, double factor) noexcept {
    return status_of(vkrope_scale_linear, inv_freq.data(), inv_freq.size(), factor);
}
inline Status scale_positions(std::vector<double>& inv_freq, double seq_scale) noexcept {
    return status_of(vkrope_scale_positions, inv_freq.data(), inv_freq.size(), seq_scale);
}
inline Status scale_divisors(std::vector<double>& inv_freq, const double* divisors,
                             std::size_t count) noexcept {
    return status_of(vkrope_scale_divisors, inv_freq.data(), inv_freq.size(), divisors, count);
}
inline Status scale_ntk(std::vector<double>& inv_freq, double alpha) noexcept {
    return status_of(vkrope_scale_ntk, inv_freq.data(), inv_freq.size(), alpha);
}
inline Status stop_slow_pairs(std::vector<double>& inv_freq, double length) noexcept {
    return status_of(vkrope_stop_slow_pairs, inv_freq.data(), inv_freq.size(), length);
}
inline Status scale_dynamic_ntk(std::vector<double>& inv_freq, const DynamicNtkScaling& scaling,
                                std::uint64_t seq_len) noexcept {
    return status_of(vkrope_scale_dynamic_ntk, inv_freq.data(), inv_freq.size(), &scaling, seq_len);
}
inline Status scale_yarn(std::vector<double>& inv_freq, double base, const YarnScaling& scaling,
                         double& attention_factor) noexcept {
    return status_of(vkrope_scale_yarn, inv_freq.data(), inv_freq.size(), base, &scaling,
                     &attention_factor);
}
inline Status scale_deepseek_yarn(std::vector<double>& inv_freq, double base,
                                  const DeepseekYarnScaling& scaling, double& attention_factor,
                                  double& softmax_scale) noexcept {
    return status_of(vkrope_scale_deepseek_yarn, inv_freq.data(), inv_freq.size(), base, &scaling,
                     &attention_factor, &softmax_scale);
}
inline Status scale_longrope(std::vector<double>& inv_freq, const LongRopeScaling& scaling,
                             std::uint64_t seq_len, double& attention_factor) noexcept {
    return status_of(vkrope_scale_longrope, inv_freq.data(), inv_freq.size(), &scaling, seq_len,
                     &attention_factor);
}
inline Status scale_llama3(std::vector<double>& inv_freq, const Llama3Scaling& scaling) noexcept {
    return status_of(vkrope_scale_llama3, inv_freq.data(), inv_freq.size(), &scaling);
}
inline Status scale_ggml(std::vector<double>& inv_freq, double base, const GgmlScaling& scaling,
                         double& attention_factor) noexcept {
    return status_of(vkrope_scale_ggml, inv_freq.data(), inv_freq.size(), base, &scaling,
                     &attention_factor);
}
inline Status query_scales(const QueryScale& scale, const std::int32_t* positions,
                           std::size_t count, float* scales) noexcept {
    return status_of(vkrope_query_scales, &scale, positions, count, scales);
}
inline std::uint64_t turn_fraction(double inv_freq) noexcept {
    return vkrope_turn_fraction(inv_freq);
}

inline Result<RopeParams> rope_params_from_ggml(const GgmlRope& rope) {
    std::vector<double> inv_freq(rope.head_dim <= VKROPE_MAX_HEAD_DIM ? rope.head_dim / 2 : 0);
    vkrope_rope_params made;
    const Status status = status_of(vkrope_rope_params_from_ggml, &rope, inv_freq.data(),
                                    inv_freq.size(), &made);
    return {status, status ? RopeParams(made) : RopeParams()};
}

inline Result<GridAxis> frame_axis(std::uint32_t frames, double base_fps, double fps) noexcept {
    return result_of<GridAxis>(vkrope_frame_axis, frames, base_fps, fps);
}
inline Result<GridAxis> resized_axis(std::uint32_t patches, std::int64_t first,
                                     double reference) noexcept {
    return result_of<GridAxis>(vkrope_resized_axis, patches, first, reference);
}
inline Result<GridAxis> interval_axis(std::uint32_t patches, double low, double high) noexcept {
    return result_of<GridAxis>(vkrope_interval_axis, patches, low, high);
}
/// Unchanged on error.
inline Status fold_grid(const GridAxis* axes, std::uint32_t count, RopeParams& rotation) {
    std::vector<double> inv_freq(rotation.inv_freq.size());
    std::vector<double> phase(std::size_t{rotation.head_groups == 0 ? 1 : rotation.head_groups} *
                              (rotation.rotary_dim / 2));
    vkrope_rope_params folded = rotation.view();
    const Status status = status_of(vkrope_fold_grid, axes, count, inv_freq.data(), phase.data(),
                                    &folded);
    if (!status) return status;
    rotation.base = folded.base;
    rotation.inv_freq = std::move(inv_freq);
    if (folded.phase) rotation.phase = std::move(phase);
    return status;
}
inline std::uint64_t grid_tokens(const GridAxis* axes, std::uint32_t count) noexcept {
    return vkrope_grid_tokens(axes, count);
}
inline Status grid_ids(const GridAxis* axes, std::uint32_t count, std::int32_t* ids,
                       std::size_t tokens) noexcept {
    return status_of(vkrope_grid_ids, axes, count, ids, tokens);
}
inline Status timed_ids(float seconds, float ids_per_second, std::int32_t* ids,
                        std::size_t count) noexcept {
    return status_of(vkrope_timed_ids, seconds, ids_per_second, ids, count);
}
inline Status ragged_ids(const std::int64_t* cu_seqlens, std::size_t sequences,
                         const std::int64_t* offsets, std::int32_t* ids,
                         std::size_t tokens) noexcept {
    return status_of(vkrope_ragged_ids, cu_seqlens, sequences, offsets, ids, tokens);
}
inline Status dual_chunk_ids(const DualChunk& chunk, DualChunkRole role,
                             const std::int32_t* positions, std::int32_t* ids,
                             std::size_t count) noexcept {
    return status_of(vkrope_dual_chunk_ids, &chunk, role, positions, ids, count);
}
inline Status xpos_cos_sin(const RopeParams& rotation, const XposScaling& scaling, bool keys,
                           std::int64_t first, std::size_t rows, float* cos, float* sin) noexcept {
    const vkrope_rope_params params = rotation.view();
    return status_of(vkrope_xpos_cos_sin, &params, &scaling, VkBool32(keys), first, rows, cos, sin);
}

// ---- Plans and tables ----

inline Result<AngleTableLayout> plan_angles(const RopeParams& rotation, AngleSource source,
                                            std::uint64_t max_position,
                                            std::uint32_t max_image_side) noexcept {
    const vkrope_rope_params params = rotation.view();
    return result_of<AngleTableLayout>(vkrope_plan_angles, &params, source, max_position,
                                       max_image_side);
}
inline Result<AngleTableLayout> plan_cos_sin_cache(std::uint32_t pairs, std::uint32_t rows,
                                                   std::uint32_t row_stride, Element element,
                                                   bool channel_angles = false) noexcept {
    return result_of<AngleTableLayout>(vkrope_plan_cos_sin_cache, pairs, rows, row_stride, element,
                                       VkBool32(channel_angles));
}
inline std::uint32_t row_channels(const RopeParams& rotation,
                                  std::uint32_t rotary_offset) noexcept {
    return vkrope_row_channels(&rotation, rotary_offset);
}
inline Result<KernelInfo> kernel_info(const RopeParams& rotation, const AngleTableLayout& layout,
                                      std::optional<Element> q, std::optional<Element> k,
                                      std::optional<Element> v = std::nullopt) noexcept {
    const vkrope_rope_params params = rotation.view();
    const auto given = [](const std::optional<Element>& type) { return type ? &*type : nullptr; };
    return result_of<KernelInfo>(vkrope_get_kernel_info, &params, &layout, given(q), given(k),
                                 given(v));
}
inline Status fill_angles(const RopeParams& rotation, const AngleTableLayout& layout, void* memory,
                          std::size_t bytes) noexcept {
    const vkrope_rope_params params = rotation.view();
    return status_of(vkrope_fill_angles, &params, &layout, memory, bytes);
}
inline Status fill_angles(const RopeParams& rotation, const AngleTableLayout& layout,
                          std::uint32_t first_line, std::uint32_t lines, void* memory,
                          std::size_t bytes) noexcept {
    const vkrope_rope_params params = rotation.view();
    return status_of(vkrope_fill_angle_lines, &params, &layout, first_line, lines, memory, bytes);
}
inline Result<ParameterLayout> plan_parameters(const KernelInfo& info) noexcept {
    return result_of<ParameterLayout>(vkrope_plan_parameters, &info);
}
inline Status fill_parameters(const ParameterLayout& layout, const ParameterSources& sources,
                              void* memory, std::size_t bytes) noexcept {
    return status_of(vkrope_fill_parameters, &layout, &sources, memory, bytes);
}
inline HadamardBlocks hadamard_of_llama_cpp(std::uint32_t k_head_dim, bool k_quantised,
                                            std::uint32_t v_head_dim, bool v_quantised) noexcept {
    return vkrope_hadamard_of_llama_cpp(k_head_dim, k_quantised, v_head_dim, v_quantised);
}

// ---- Kernel ----

inline Result<Requirements> requirements(
    VkInstance instance, VkPhysicalDevice physical,
    PFN_vkGetInstanceProcAddr get_instance_proc_addr) noexcept {
    return result_of<Requirements>(vkrope_get_requirements, instance, physical,
                                   get_instance_proc_addr);
}

inline void destroy(Kernel* kernel) noexcept {
    vkrope_kernel_destroy(kernel);
}
inline void destroy(DescriptorArena* arena) noexcept {
    vkrope_arena_destroy(arena);
}
inline void destroy(PositionKernel* kernel) noexcept {
    vkrope_position_kernel_destroy(kernel);
}

/// Deleter for the objects of create(), create_positions() and create_arena().
struct Destroyer {
    template <class Object>
    void operator()(Object* object) const noexcept {
        destroy(object);
    }
};
/// Move-only owner of a Kernel, a DescriptorArena or a PositionKernel.
template <class Object>
using Owned = std::unique_ptr<Object, Destroyer>;

/// Passes a created object to an owner: `auto kernel = own(create(device, info));` is a
/// Result<Owned<Kernel>>.
template <class Object>
Result<Owned<Object>> own(Result<Object*>&& made) noexcept {
    return {made.status, Owned<Object>(made.value)};
}

inline Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info) noexcept {
    return result_of<Kernel*>(vkrope_kernel_create, &device, &info);
}
inline Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls) noexcept {
    return result_of<DescriptorArena*>(vkrope_arena_create, kernel, calls);
}
inline void reset(DescriptorArena* arena) noexcept {
    vkrope_arena_reset(arena);
}
inline Result<std::uint64_t> dispatches(const Kernel* kernel, const Call& call) noexcept {
    return result_of<std::uint64_t>(vkrope_get_dispatches, kernel, &call);
}
inline Boundary boundary() noexcept {
    return result_of<Boundary>(vkrope_get_boundary).value;
}
inline Status record(VkCommandBuffer commands, const Kernel* kernel, const Call& call,
                     DescriptorArena* arena = nullptr) noexcept {
    return status_of(vkrope_record, commands, kernel, &call, arena);
}

inline VkImageCreateInfo angle_image_info(const AngleTableLayout& layout) noexcept {
    return result_of<VkImageCreateInfo>(vkrope_get_angle_image_info, &layout).value;
}
inline VkImageViewCreateInfo angle_view_info(const AngleTableLayout& layout,
                                             VkImage image) noexcept {
    return result_of<VkImageViewCreateInfo>(vkrope_get_angle_view_info, &layout, image).value;
}
inline Status record_angle_upload(VkCommandBuffer commands, const DeviceRef& device,
                                  const AngleTableLayout& layout,
                                  const AngleUpload& upload) noexcept {
    return status_of(vkrope_record_angle_upload, commands, &device, &layout, &upload);
}

inline Result<PositionKernel*> create_positions(const DeviceRef& device) noexcept {
    return result_of<PositionKernel*>(vkrope_position_kernel_create, &device);
}
inline Result<DescriptorArena*> create_arena(const PositionKernel* kernel,
                                             std::uint32_t calls) noexcept {
    return result_of<DescriptorArena*>(vkrope_position_arena_create, kernel, calls);
}
inline Status record_positions(VkCommandBuffer commands, const PositionKernel* kernel,
                               const PositionCall& call,
                               DescriptorArena* arena = nullptr) noexcept {
    return status_of(vkrope_record_positions, commands, kernel, &call, arena);
}

}  // namespace vkrope
