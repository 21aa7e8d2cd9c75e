// SPDX-License-Identifier: MIT
// Wraps vkrope.h for C++17 with short names, owners, results and vectors. vkrope.h documents every
// type, field and function. Each function here calls the function of the same name there. Only the
// vectors throw, if memory runs out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "vkrope/vkrope.h"

namespace vkrope {

// ---- Short names ----

using AngleLines = vkrope_angle_lines;
using AngleSource = vkrope_angle_source;
using AngleTableLayout = vkrope_angle_table_layout;
using AngleUpload = vkrope_angle_upload;
using Angles = vkrope_angles;
using Boundary = vkrope_boundary;
using Call = vkrope_call;
using Conversion = vkrope_conversion;
using DeepseekYarnScaling = vkrope_deepseek_yarn_scaling;
using DescriptorArena = vkrope_arena;
using DeviceInfo = vkrope_device_info;
using DeviceOptions = vkrope_device_options;
using DeviceRef = vkrope_device_ref;
using Direction = vkrope_direction;
using DualChunk = vkrope_dual_chunk;
using DualChunkRole = vkrope_dual_chunk_role;
using DynamicNtkScaling = vkrope_dynamic_ntk_scaling;
using Element = vkrope_element;
using ErrorCode = vkrope_result;
using Gain = vkrope_gain;
using GgmlRope = vkrope_ggml_rope;
using GgmlScaling = vkrope_ggml_scaling;
using GridAxis = vkrope_grid_axis;
using HadamardBlocks = vkrope_hadamard_blocks;
using HostRun = vkrope_host_run;
using HostShape = vkrope_host_shape;
using Kernel = vkrope_kernel;
using KernelInfo = vkrope_kernel_info;
using Layout = vkrope_layout;
using Llama3Scaling = vkrope_llama3_scaling;
using LongRopeScaling = vkrope_longrope_scaling;
using Mapping = vkrope_mapping;
using Tuning = vkrope_tuning;
using ModelOps = vkrope_model_ops;
using ModelQuery = vkrope_model_query;
using Norm = vkrope_norm;
using NormKind = vkrope_norm_kind;
using NormPlace = vkrope_norm_place;
using NormSpan = vkrope_norm_span;
using Ops = vkrope_ops;
using PagedCache = vkrope_paged_cache;
using Pairing = vkrope_pairing;
using ParameterItem = vkrope_parameter_item;
using ParameterLayout = vkrope_parameter_layout;
using ParameterShape = vkrope_parameter_shape;
using ParameterSource = vkrope_parameter_source;
using ParameterSources = vkrope_parameter_sources;
using PositionCall = vkrope_position_call;
using PositionKernel = vkrope_position_kernel;
using PositionSource = vkrope_position_source;
using Positions = vkrope_positions;
using ProportionalScaling = vkrope_proportional_scaling;
using QueryScale = vkrope_query_scale;
using QueryScaleLayout = vkrope_query_scale_layout;
using QueryScaling = vkrope_query_scaling;
using Requirements = vkrope_requirements;
using SectionOrder = vkrope_section_order;
using ScaleType = vkrope_scale_type;
using SecondOf = vkrope_second_of;
using Sections = vkrope_sections;
using StoreScale = vkrope_store_scale;
using Tensor = vkrope_tensor;
using TensorIndex = vkrope_tensor_index;
using TensorInfo = vkrope_tensor_info;
using TensorParameterSources = vkrope_tensor_parameter_sources;
using TensorParameters = vkrope_tensor_parameters;
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

/// Status of a call. It has a fixed size, so that reporting an error allocates nothing.
struct [[nodiscard]] Status : vkrope_error {
    Status(ErrorCode of = VKROPE_SUCCESS) noexcept {
        code = of;
        what[0] = 0;
    }
    /// Copies an error that the caller may have filled, and therefore terminates `what`.
    Status(const vkrope_error& error) noexcept : vkrope_error(error) { what[sizeof what - 1] = 0; }
    // NOLINTNEXTLINE(bugprone-copy-constructor-init): copy() copies the base
    Status(const Status& other) noexcept { copy(other); }
    Status& operator=(const Status& other) noexcept {
        if (this != &other) copy(other);
        return *this;
    }
    explicit operator bool() const noexcept { return code == VKROPE_SUCCESS; }

   private:
    // Copies only the used text, with a call, because inline copies of 248 bytes are larger.
    void copy(const Status& from) noexcept {
        code = from.code;
        vk_result = from.vk_result;
        std::strcpy(what, from.what);
    }
};

/// Value of a call, or its status if it failed; `value` is then value-initialised.
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

/// Calls a function of vkrope.h that writes a T and takes a vkrope_error last.
template <class T, class Function, class... Arguments>
Result<T> result_of(Function* function, Arguments... arguments) noexcept {
    Result<T> result;
    static_cast<void>(function(arguments..., &result.value, &result.status));
    return result;
}

/// Reference to a callable, for the `void* user_data` of a callback.
template <class Callable>
struct Reference {
    std::remove_reference_t<Callable>* to;

    static auto& of(void* user_data) noexcept { return *static_cast<Reference*>(user_data)->to; }
};

// ---- Infos as keys ----

/// Hash and equality for std::unordered_map<KernelInfo, Owned<Kernel>, InfoHash, InfoEqual>, so
/// that layers whose infos are equal share a kernel.
struct InfoHash {
    std::size_t operator()(const KernelInfo& info) const noexcept {
        return static_cast<std::size_t>(vkrope_kernel_info_hash(&info));
    }
};
struct InfoEqual {
    bool operator()(const KernelInfo& a, const KernelInfo& b) const noexcept {
        return vkrope_kernel_info_equal(&a, &b) != VK_FALSE;
    }
};

// ---- Owners ----

/// Deleter for the objects that functions of vkrope.h create.
struct Destroyer {
    void operator()(vkrope_angle_table* table) const noexcept { vkrope_angle_table_destroy(table); }
    void operator()(vkrope_arena* arena) const noexcept { vkrope_arena_destroy(arena); }
    void operator()(vkrope_buffer* buffer) const noexcept { vkrope_buffer_destroy(buffer); }
    void operator()(vkrope_device* device) const noexcept { vkrope_device_destroy(device); }
    void operator()(vkrope_device_list* list) const noexcept { vkrope_device_list_destroy(list); }
    void operator()(vkrope_host_rotation* of) const noexcept { vkrope_host_rotation_destroy(of); }
    void operator()(vkrope_kernel* kernel) const noexcept { vkrope_kernel_destroy(kernel); }
    void operator()(vkrope_model* model) const noexcept { vkrope_model_destroy(model); }
    void operator()(vkrope_position_kernel* of) const noexcept {
        vkrope_position_kernel_destroy(of);
    }
};
/// Move-only owner of an object.
template <class Object>
using Owned = std::unique_ptr<Object, Destroyer>;

/// Passes a created object to an owner: `auto kernel = own(create(device, info));` is a
/// Result<Owned<Kernel>>.
template <class Object>
Result<Owned<Object>> own(Result<Object*>&& made) noexcept {
    return {made.status, Owned<Object>(made.value)};
}

/// Base of the classes below, which own an object of the runtime. An empty owner has no object.
template <class Object>
class Owner {
   public:
    Owner() noexcept = default;
    explicit Owner(Object* object) noexcept : object_(object) {}
    Object* get() const noexcept { return object_.get(); }

   protected:
    /// `make` is a function of vkrope.h that makes an Object.
    template <class Class, class Function, class... Arguments>
    static Result<Class> made(Function* make, Arguments... arguments) noexcept {
        const Result<Object*> result = result_of<Object*>(make, arguments...);
        return {result.status, Class(result.value)};
    }

   private:
    Owned<Object> object_;
};

// ---- Kernel and call ----

inline Result<Requirements> requirements(
    VkInstance instance, VkPhysicalDevice physical,
    PFN_vkGetInstanceProcAddr get_instance_proc_addr) noexcept {
    return result_of<Requirements>(vkrope_get_requirements, instance, physical,
                                   get_instance_proc_addr);
}

inline Result<Kernel*> create(const DeviceRef& device, const KernelInfo& info) noexcept {
    return result_of<Kernel*>(vkrope_kernel_create, &device, &info);
}
inline Result<DescriptorArena*> create_arena(const Kernel* kernel, std::uint32_t calls) noexcept {
    return result_of<DescriptorArena*>(vkrope_arena_create, kernel, calls);
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

// ---- Rotation and its angle table ----

/// vkrope_rope_params that owns its arrays: its vectors and strings replace the pointers of the
/// same name. A field where 0 stands for a default has that default; a pairing has none.
struct RopeParams : vkrope_rope_params {
    std::vector<double> inv_freq, phase;
    std::string rope_type = "default";
    std::vector<std::string> warnings;

    RopeParams() noexcept {
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
        // The pointers of the base stay null; view() sets them in a copy.
        vkrope_rope_params& bare = *this;
        bare.inv_freq = bare.phase = nullptr;
        bare.rope_type = nullptr;
        bare.warnings = nullptr;
        inv_freq_count = phase_count = warning_count = 0;
    }

    /// Returns a view without the warnings, valid until this object changes.
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
/// As the next two, with a null layout for a layer without RoPE.
inline Result<KernelInfo> kernel_info(const RopeParams& rotation, const AngleTableLayout* layout,
                                      std::optional<Element> q, std::optional<Element> k,
                                      std::optional<Element> v) noexcept {
    const vkrope_rope_params params = rotation.view();
    const auto given = [](const std::optional<Element>& type) { return type ? &*type : nullptr; };
    return result_of<KernelInfo>(vkrope_get_kernel_info, &params, layout, given(q), given(k),
                                 given(v));
}
inline Result<KernelInfo> kernel_info(const RopeParams& rotation, const AngleTableLayout& layout,
                                      std::optional<Element> q, std::optional<Element> k,
                                      std::optional<Element> v = std::nullopt) noexcept {
    return kernel_info(rotation, &layout, q, k, v);
}
/// Returns the kernel of a layer without RoPE, which has no angles. An absent Q is std::nullopt.
inline Result<KernelInfo> kernel_info(const RopeParams& rotation, std::optional<Element> q,
                                      std::optional<Element> k,
                                      std::optional<Element> v = std::nullopt) noexcept {
    return kernel_info(rotation, nullptr, q, k, v);
}
inline Status fill_angles(const RopeParams& rotation, const AngleTableLayout& layout, void* memory,
                          std::size_t bytes) noexcept {
    const vkrope_rope_params params = rotation.view();
    return status_of(vkrope_fill_angles, &params, &layout, memory, bytes);
}

inline Result<VkImageCreateInfo> angle_image_info(const AngleTableLayout& layout) noexcept {
    return result_of<VkImageCreateInfo>(vkrope_get_angle_image_info, &layout);
}
inline Result<VkImageViewCreateInfo> angle_view_info(const AngleTableLayout& layout,
                                                     VkImage image) noexcept {
    return result_of<VkImageViewCreateInfo>(vkrope_get_angle_view_info, &layout, image);
}
inline Status record_angle_upload(VkCommandBuffer commands, const DeviceRef& device,
                                  const AngleTableLayout& layout,
                                  const AngleUpload& upload) noexcept {
    return status_of(vkrope_record_angle_upload, commands, &device, &layout, &upload);
}

// ---- Ops ----

inline Result<ParameterLayout> plan_parameters(const KernelInfo& info) noexcept {
    return result_of<ParameterLayout>(vkrope_plan_parameters, &info);
}
inline Status fill_parameters(const ParameterLayout& layout, const ParameterSources& sources,
                              void* memory, std::size_t bytes) noexcept {
    return status_of(vkrope_fill_parameters, &layout, &sources, memory, bytes);
}

inline Result<QueryScaleLayout> plan_query_scales(const QueryScale& scale,
                                                  std::uint64_t max_position) noexcept {
    return result_of<QueryScaleLayout>(vkrope_plan_query_scales, &scale, max_position);
}
inline Status fill_query_scales(const QueryScaleLayout& layout, void* memory,
                                std::size_t bytes) noexcept {
    return status_of(vkrope_fill_query_scales, &layout, memory, bytes);
}

// ---- Step ----

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

// ---- Model ----

/// Copies the parameters and destroys the model.
inline Result<RopeParams> params_of(Result<vkrope_model*>&& read) {
    const Owned<vkrope_model> model(read.value);
    return {read.status, model ? RopeParams(*vkrope_model_get_params(model.get())) : RopeParams()};
}
inline Result<RopeParams> from_hf_config(std::string_view json, const ModelQuery& query = {}) {
    return params_of(result_of<vkrope_model*>(vkrope_model_from_hf_config,
                                              json.data() ? json.data() : "", json.size(), &query));
}
/// Calls `read` with the arguments of vkrope_read_at except `user`.
template <class Read>
Result<RopeParams> from_gguf(std::uint64_t file_bytes, Read&& read, const ModelQuery& query = {}) {
    const vkrope_read_at call = [](void* user, std::uint64_t offset, void* to, std::size_t bytes) {
        return std::size_t(Reference<Read>::of(user)(offset, to, bytes));
    };
    Reference<Read> user{std::addressof(read)};
    return params_of(result_of<vkrope_model*>(vkrope_model_from_gguf, file_bytes, call,
                                              static_cast<void*>(&user), &query));
}
/// Reads a file in memory. The beginning of the file is enough if it contains the metadata, the
/// tensor infos and the tensor data that the library uses.
inline Result<RopeParams> from_gguf(const void* data, std::size_t bytes,
                                    const ModelQuery& query = {}) {
    const vkrope_read_at read = [](void* from, std::uint64_t offset, void* to, std::size_t count) {
        std::memcpy(to, static_cast<const char*>(from) + offset, count);
        return count;
    };
    if (!data) {
        Result<RopeParams> none;
        none.status.code = VKROPE_ERROR_INVALID_ARGUMENT;
        std::strcpy(none.status.what, "data is null");
        return none;
    }
    return params_of(result_of<vkrope_model*>(vkrope_model_from_gguf, bytes, read,
                                              const_cast<void*>(data), &query));
}
inline Result<RopeParams> from_gguf_file(const std::string& path, const ModelQuery& query = {}) {
    return params_of(result_of<vkrope_model*>(vkrope_model_from_gguf_file, path.c_str(), &query));
}

// ---- Runtime ----

/// The devices of the machine, best first.
class DeviceList : public Owner<vkrope_device_list> {
   public:
    using Owner::Owner;
    static Result<DeviceList> make(const DeviceOptions& options = {}) noexcept {
        return made<DeviceList>(vkrope_device_list_create, &options);
    }
    const DeviceInfo* begin() const noexcept { return vkrope_device_list_get(get(), nullptr); }
    const DeviceInfo* end() const noexcept { return begin() + size(); }
    std::size_t size() const noexcept {
        std::uint32_t count = 0;
        vkrope_device_list_get(get(), &count);
        return count;
    }
};

/// Device time in nanoseconds, if known.
using Elapsed = Result<std::optional<double>>;

template <class Function, class... Arguments>
Elapsed elapsed_of(Function* function, Arguments... arguments) noexcept {
    double nanoseconds = -1;
    const Status status = status_of(function, arguments..., &nanoseconds);
    return {status, nanoseconds < 0 ? std::nullopt : std::optional<double>(nanoseconds)};
}

/// Owner of a vkrope_device. Do not call info() or ref() of an empty owner.
class Device : public Owner<vkrope_device> {
   public:
    using Owner::Owner;
    static Result<Device> open(const DeviceOptions& options = {}) noexcept {
        return made<Device>(vkrope_device_open, &options);
    }
    const DeviceInfo& info() const noexcept { return *vkrope_device_get_info(get()); }
    const DeviceRef& ref() const noexcept { return *vkrope_device_get_ref(get()); }
    VkQueue queue() const noexcept { return vkrope_device_get_queue(get(), nullptr); }
    std::uint32_t queue_family() const noexcept {
        std::uint32_t family = 0;
        vkrope_device_get_queue(get(), &family);
        return family;
    }
    /// Calls `record`, which returns a Status, with the command buffer.
    template <class Record>
    Elapsed submit(Record&& record) noexcept {
        const vkrope_record_callback call = [](void* user, VkCommandBuffer commands,
                                               vkrope_error* error) {
            const Status status = Reference<Record>::of(user)(commands);
            *error = status;
            return status.code;
        };
        Reference<Record> user{std::addressof(record)};
        return elapsed_of(vkrope_device_submit, get(), call, static_cast<void*>(&user));
    }
    Status save_pipeline_cache() noexcept {
        return status_of(vkrope_device_save_pipeline_cache, get());
    }
};

/// Owner of a vkrope_buffer.
class Buffer : public Owner<vkrope_buffer> {
   public:
    using Owner::Owner;
    static Result<Buffer> make(Device& device, VkDeviceSize bytes) noexcept {
        return made<Buffer>(vkrope_buffer_create, device.get(), bytes);
    }
    Status upload(const void* source, std::size_t bytes, VkDeviceSize offset = 0) noexcept {
        return status_of(vkrope_buffer_upload, get(), source, bytes, offset);
    }
    Status download(void* target, std::size_t bytes, VkDeviceSize offset = 0) noexcept {
        return status_of(vkrope_buffer_download, get(), target, bytes, offset);
    }
    VkDescriptorBufferInfo whole() const noexcept { return vkrope_buffer_whole(get()); }
    VkBuffer handle() const noexcept { return whole().buffer; }
};

/// Owner of a vkrope_angle_table.
class AngleTable : public Owner<vkrope_angle_table> {
   public:
    using Owner::Owner;
    static Result<AngleTable> make(Device& device, const RopeParams& rotation, AngleSource source,
                                   std::uint64_t max_position) noexcept {
        const vkrope_rope_params params = rotation.view();
        return made<AngleTable>(vkrope_angle_table_create, device.get(), &params, source,
                                max_position);
    }
    Status reach(const RopeParams& rotation, std::uint64_t max_position) noexcept {
        const vkrope_rope_params params = rotation.view();
        return status_of(vkrope_angle_table_reach, get(), &params, max_position);
    }
    /// Returns zeros if there is no table, as layout() does.
    Angles angles() const noexcept {
        const Angles* of = vkrope_angle_table_get(get());
        return of ? *of : Angles{};
    }
    AngleTableLayout layout() const noexcept {
        const Angles of = angles();
        return of.layout ? *of.layout : AngleTableLayout{};
    }
};

/// Owner of a vkrope_host_rotation.
class HostRotation : public Owner<vkrope_host_rotation> {
   public:
    using Owner::Owner;
    static Result<HostRotation> make(Device& device, const RopeParams& rotation,
                                     const HostShape& shape) noexcept {
        const vkrope_rope_params params = rotation.view();
        return made<HostRotation>(vkrope_host_rotation_create, device.get(), &params, &shape);
    }
    std::size_t bytes(TensorIndex tensor) const noexcept {
        return vkrope_host_rotation_bytes(get(), tensor);
    }
    Status upload(const void* q, const void* k, const void* v = nullptr) noexcept {
        return status_of(vkrope_host_rotation_upload, get(), q, k, v);
    }
    Elapsed run(const HostRun& run = {}) noexcept {
        return elapsed_of(vkrope_host_rotation_run, get(), &run);
    }
    Status download(void* q, void* k, void* v = nullptr) noexcept {
        return status_of(vkrope_host_rotation_download, get(), q, k, v);
    }
};

// ---- Scalings and grids ----

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

inline Status proportional_inv_freq(double base, std::uint32_t head_dim,
                                    const ProportionalScaling& scaling, double* inv_freq) noexcept {
    return status_of(vkrope_proportional_inv_freq, base, head_dim, &scaling, inv_freq);
}
inline Result<RopeParams> rope_params_from_ggml(const GgmlRope& rope) {
    std::vector<double> inv_freq(rope.head_dim <= VKROPE_MAX_HEAD_DIM ? rope.head_dim / 2 : 0);
    vkrope_rope_params made;
    const Status status = status_of(vkrope_rope_params_from_ggml, &rope, inv_freq.data(),
                                    inv_freq.size(), &made);
    return {status, status ? RopeParams(made) : RopeParams()};
}
inline Result<RopeParams> rope_params_from_ggml_op(const std::int32_t (&op_params)[16],
                                                   std::uint32_t head_dim,
                                                   const float* freq_factors = nullptr,
                                                   std::size_t freq_factor_count = 0) {
    std::vector<double> inv_freq(head_dim <= VKROPE_MAX_HEAD_DIM ? head_dim / 2 : 0);
    vkrope_rope_params made;
    const Status status = status_of(vkrope_rope_params_from_ggml_op, op_params, head_dim,
                                    freq_factors, freq_factor_count, inv_freq.data(),
                                    inv_freq.size(), &made);
    return {status, status ? RopeParams(made) : RopeParams()};
}

/// Leaves `rotation` unchanged on error.
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

}  // namespace vkrope
