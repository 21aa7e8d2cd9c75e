// SPDX-License-Identifier: MIT
// Tier "kernel" for C. Handles are the C++ objects themselves; recording does not allocate here
// either.
#include "vkrope/kernel.hpp"

#include <algorithm>
#include <iterator>

#include "c/convert.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

namespace {

static_assert(VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR == int(push_descriptor) &&
              VKROPE_DEVICE_FEATURE_DEBUG_UTILS == int(debug_utils));
static_assert(VKROPE_ELEMENT_F16 == int(Element::f16) && VKROPE_ELEMENT_BF16 == int(Element::bf16));
static_assert(VKROPE_ELEMENT_E4M3FN == int(Element::e4m3fn) &&
              VKROPE_ELEMENT_Q5_1 == int(Element::q5_1));
static_assert(VKROPE_POSITIONS_IDS == int(PositionSource::ids) &&
              VKROPE_POSITIONS_AXIS_IDS == int(PositionSource::axis_ids));
static_assert(VKROPE_ANGLES_COS_SIN_CACHE == int(AngleSource::cos_sin_cache));
static_assert(VKROPE_SECTIONS_INTERLEAVED == int(SectionOrder::interleaved));
static_assert(VKROPE_DIRECTION_INVERSE == int(Direction::inverse));
static_assert(VKROPE_GAIN_OMIT == int(Gain::omit) &&
              VKROPE_GAIN_DIVIDE_OUT == int(Gain::divide_out));
static_assert(VKROPE_MAPPING_GPU == int(Mapping::gpu) && VKROPE_MAPPING_CPU == int(Mapping::cpu));
static_assert(VKROPE_CONVERSION_INTEGER == int(Conversion::integer));
static_assert(VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS == int(float_controls) &&
              VKROPE_DEVICE_FEATURE_SHADER_FLOAT16 == int(shader_float16));
static_assert(VKROPE_BROADCAST == broadcast);

const Kernel* unwrap(const vkrope_kernel* kernel) {
    return reinterpret_cast<const Kernel*>(kernel);
}

Status read_width(const vkrope_head_format* from, const char* name, TensorInfo& width) {
    vkrope_head_format c;
    if (Status s = read_optional(from, name, c); !s) return s;
    width = {enum_from<Element>(c.in), enum_from<Element>(c.out), c.head_dim, c.rotary_offset};
    return {};
}

// Writes the channels of a tensor; the caller sets its element types. Null: absent.
Status write_channels(const TensorInfo& width, const char* name, vkrope_head_format* to) {
    if (!to) return {};
    vkrope_head_format c;
    if (Status s = read(to, name, c); !s) return s;
    c.head_dim = width.head_dim;
    c.rotary_offset = width.rotary_offset;
    return write(c, name, to);
}

Status read_tensor(const vkrope_tensor* from, const char* name, Tensor& tensor) {
    vkrope_tensor c;
    if (Status s = read_optional(from, name, c); !s) return s;
    tensor.where = c.where;
    tensor.heads = c.heads;
    tensor.heads_per_group = c.heads_per_group;
    tensor.token_stride = c.token_stride;
    tensor.head_stride = c.head_stride;
    tensor.batch_stride = c.batch_stride;
    tensor.group_stride = c.group_stride;
    tensor.buffer_size = c.buffer_size;
    return {};
}

Status read_positions(const vkrope_positions* from, Positions& positions) {
    vkrope_positions c;
    if (Status s = read_optional(from, "call.positions", c); !s) return s;
    positions.first = c.first;
    positions.ids = c.ids;
    positions.batch_stride = c.batch_stride;
    positions.int64 = c.int64;
    positions.axis_stride = c.axis_stride;
    if (c.token_stride != 0) positions.token_stride = c.token_stride;
    return {};
}

Status read_rows(const vkrope_paged_cache* from, PagedCache& rows) {
    vkrope_paged_cache c;
    if (Status s = read_optional(from, "call.paged_cache", c); !s) return s;
    rows.slot_mapping = c.slot_mapping;
    if (c.page_size != 0) rows.page_size = c.page_size;
    rows.page_stride = c.page_stride;
    rows.row_stride = c.row_stride;
    rows.int64 = c.int64;
    rows.batch_stride = c.batch_stride;
    return {};
}

Status read_angles(const vkrope_angles* from, AnglePlan& plan, Angles& angles) {
    vkrope_angles c;
    if (Status s = read_optional(from, "call.angles", c); !s) return s;
    angles.view = c.view;
    angles.buffer = c.buffer;
    angles.sin = c.sin;
    if (!c.plan) return {};  // the kernel tier reports the error
    angles.plan = &plan;
    return read_plan(c.plan, "call.angles.plan", plan);
}

/// call.angles points to `plan`.
Status read_call(const vkrope_call* from, AnglePlan& plan, Call& call) {
    vkrope_call c;
    if (Status s = read(from, "call", c); !s) return s;
    if (c.batch != 0) call.batch = c.batch;
    call.tokens = c.tokens;
    if (Status s = read_tensor(c.q_in, "call.q_in", call.in[Q]); !s) return s;
    if (Status s = read_tensor(c.q_out, "call.q_out", call.out[Q]); !s) return s;
    if (Status s = read_tensor(c.k_in, "call.k_in", call.in[K]); !s) return s;
    if (Status s = read_tensor(c.k_out, "call.k_out", call.out[K]); !s) return s;
    if (Status s = read_tensor(c.v_in, "call.v_in", call.in[V]); !s) return s;
    if (Status s = read_tensor(c.v_out, "call.v_out", call.out[V]); !s) return s;
    if (Status s = read_positions(c.positions, call.positions); !s) return s;
    if (Status s = read_angles(c.angles, plan, call.angles); !s) return s;
    if (Status s = read_rows(c.paged_cache, call.paged_cache); !s) return s;
    call.direction = enum_from<Direction>(c.direction);
    call.gain = enum_from<Gain>(c.gain);
    call.out_of_range = c.out_of_range;
    call.parameters = c.parameters;
    call.scale_tokens[Q] = c.q_scale_tokens;
    call.scale_tokens[K] = c.k_scale_tokens;
    call.scale_tokens[V] = c.v_scale_tokens;
    call.scales_out[Q] = c.q_scales_out;
    call.scales_out[K] = c.k_scales_out;
    call.scales_out[V] = c.v_scales_out;
    if (c.q_scale != 0) call.q_scale = c.q_scale;
    call.first_set_tokens = c.first_set_tokens;
    return {};
}

}  // namespace

Status vkrope::c::read_device(const vkrope_device_ref* from, DeviceRef& device) {
    vkrope_device_ref c;
    if (Status s = read(from, "device", c); !s) return s;
    device.instance = c.instance;
    device.physical = c.physical;
    device.device = c.device;
    device.get_instance_proc_addr = c.get_instance_proc_addr;
    device.enabled = c.enabled;
    device.pipeline_cache = c.pipeline_cache;
    device.allocator = c.allocator;
    return {};
}

Status vkrope::c::read_info(const vkrope_kernel_info* from, KernelInfo& info) {
    vkrope_kernel_info c;
    if (Status s = read(from, "info", c); !s) return s;
    if (Status s = read_width(c.q, "info.q", info.tensor[Q]); !s) return s;
    if (Status s = read_width(c.k, "info.k", info.tensor[K]); !s) return s;
    if (Status s = read_width(c.v, "info.v", info.tensor[V]); !s) return s;
    if (Status s = read_sections(c.sections, "info.sections", info.sections); !s) return s;
    info.pairing = enum_from<Pairing>(c.pairing);
    info.rotary_dim = c.rotary_dim;
    info.angles = enum_from<AngleSource>(c.angles);
    info.conversion = enum_from<Conversion>(c.conversion);
    info.tensor[Q].heads = c.q_heads;
    info.tensor[K].heads = c.k_heads;
    info.tensor[V].heads = c.v_heads;
    info.positions = enum_from<PositionSource>(c.positions);
    info.mapping = enum_from<Mapping>(c.mapping);
    if (c.pairing_out) info.pairing_out = enum_from<Pairing>(*c.pairing_out);
    info.scatter_k = c.scatter_k;
    info.table = enum_from<Element>(c.table);
    info.phase = c.phase;
    if (c.head_groups != 0) info.head_groups = c.head_groups;
    info.channel_angles = c.channel_angles;
    info.two_parameter_sets = c.two_parameter_sets;
    static_assert(VKROPE_MAX_WINDOWS == max_windows);
    for (std::uint32_t i = 0; i < max_windows; ++i) info.windows[i] = window_of(c.windows[i]);
    if (Status s = read_finish(c.q_finish, "info.q_finish", info.tensor[Q].ops); !s) return s;
    if (Status s = read_finish(c.k_finish, "info.k_finish", info.tensor[K].ops); !s) return s;
    return read_finish(c.v_finish, "info.v_finish", info.tensor[V].ops);
}

vkrope_result vkrope_get_requirements(VkInstance instance, VkPhysicalDevice physical,
                                      PFN_vkGetInstanceProcAddr get_instance_proc_addr,
                                      vkrope_requirements* requirements, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        const Result<Requirements> asked = vkrope::requirements(instance, physical,
                                                                get_instance_proc_addr);
        if (!asked) return asked.status;
        vkrope_requirements c = {};
        static_assert(std::size(c.optional_extensions) ==
                      std::size(Requirements{}.optional_extensions));
        c.api_version = asked->api_version;
        c.enabled = asked->enabled;
        c.offers_shader_float16 = asked->offers_shader_float16;
        c.enabled_in_core = asked->enabled_in_core;
        c.optional_extension_count = asked->optional_extension_count;
        std::copy(std::begin(asked->optional_extensions), std::end(asked->optional_extensions),
                  c.optional_extensions);
        return write(c, "requirements", requirements);
    });
}

vkrope_result vkrope_rotation_get_kernel_info(const vkrope_rotation* rotation,
                                              const vkrope_angle_plan* plan, vkrope_head_format* q,
                                              vkrope_head_format* k, vkrope_head_format* v,
                                              vkrope_kernel_info* info, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(rotation, "rotation"); !s) return s;
        AnglePlan of;
        if (Status s = read_plan(plan, "plan", of); !s) return s;
        TensorInfo q_width, k_width, v_width;
        if (Status s = read_width(q, "q", q_width); !s) return s;
        if (Status s = read_width(k, "k", k_width); !s) return s;
        if (Status s = read_width(v, "v", v_width); !s) return s;
        const auto stored = [](bool present, const TensorInfo& width) {
            return present ? std::optional(width.in) : std::nullopt;
        };
        const Result<KernelInfo> made = kernel_info(rotation->of, of, stored(q, q_width),
                                                    stored(k, k_width), stored(v, v_width));
        if (!made) return made.status;
        if (Status s = write_channels(made->tensor[Q], "q", q); !s) return s;
        if (Status s = write_channels(made->tensor[K], "k", k); !s) return s;
        if (Status s = write_channels(made->tensor[V], "v", v); !s) return s;
        vkrope_kernel_info c = {};
        c.pairing = vkrope_pairing(made->pairing);
        c.rotary_dim = made->rotary_dim;
        c.angles = vkrope_angle_source(made->angles);
        c.positions = vkrope_position_source(made->positions);
        c.q = q;
        c.k = k;
        c.v = v;
        c.q_heads = made->tensor[Q].heads;
        c.k_heads = made->tensor[K].heads;
        c.v_heads = made->tensor[V].heads;
        if (q) c.q_finish = &rotation->q_finish.finish;
        if (k) c.k_finish = &rotation->k_finish.finish;
        if (v) c.v_finish = &rotation->v_finish.finish;
        if (made->sections.axes != 0) c.sections = &rotation->sections;
        c.table = vkrope_element(made->table);
        c.phase = made->phase;
        c.head_groups = made->head_groups;
        c.channel_angles = made->channel_angles;
        for (std::uint32_t i = 0; i < max_windows; ++i) c.windows[i] = window_of(made->windows[i]);
        return write(c, "info", info);
    });
}

vkrope_result vkrope_kernel_create(const vkrope_device_ref* device, const vkrope_kernel_info* info,
                                   vkrope_kernel** kernel, vkrope_error* error) {
    return making(kernel, "kernel", error, [&]() -> Status {
        DeviceRef ref;
        if (Status s = read_device(device, ref); !s) return s;
        KernelInfo made_for;
        if (Status s = read_info(info, made_for); !s) return s;
        const Result<Kernel*> made = create(ref, made_for);
        *kernel = reinterpret_cast<vkrope_kernel*>(made.value);
        return made.status;
    });
}

void vkrope_kernel_destroy(vkrope_kernel* kernel) {
    destroy(reinterpret_cast<Kernel*>(kernel));
}

vkrope_result vkrope_arena_create(const vkrope_kernel* kernel, uint32_t calls, vkrope_arena** arena,
                                  vkrope_error* error) {
    return making(arena, "arena", error, [&]() -> Status {
        if (Status s = not_null(kernel, "kernel"); !s) return s;
        const Result<DescriptorArena*> made = create_arena(unwrap(kernel), calls);
        *arena = reinterpret_cast<vkrope_arena*>(made.value);
        return made.status;
    });
}

void vkrope_arena_reset(vkrope_arena* arena) {
    if (arena) reset(unwrap(arena));
}

void vkrope_arena_destroy(vkrope_arena* arena) {
    destroy(unwrap(arena));
}

vkrope_result vkrope_get_dispatches(const vkrope_kernel* kernel, const vkrope_call* call,
                                    uint64_t* dispatches, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(dispatches, "dispatches"); !s) return s;
        AnglePlan plan;
        Call converted;
        if (Status s = read_call(call, plan, converted); !s) return s;
        const Result<std::uint64_t> counted = vkrope::dispatches(unwrap(kernel), converted);
        *dispatches = counted.value;
        return counted.status;
    });
}

vkrope_result vkrope_get_boundary(vkrope_boundary* boundary, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        const Boundary at = vkrope::boundary();
        vkrope_boundary c = {};
        c.stage = at.stage;
        c.input_access = at.input_access;
        c.output_access = at.output_access;
        c.in_place_access = at.in_place_access;
        c.texture_access = at.texture_access;
        return write(c, "boundary", boundary);
    });
}

vkrope_result vkrope_record(VkCommandBuffer commands, const vkrope_kernel* kernel,
                            const vkrope_call* call, vkrope_arena* arena, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        AnglePlan plan;
        Call converted;
        if (Status s = read_call(call, plan, converted); !s) return s;
        return record(commands, unwrap(kernel), converted, unwrap(arena));
    });
}

vkrope_result vkrope_get_angle_image_info(const vkrope_angle_plan* plan, VkImageCreateInfo* info,
                                          vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(info, "info"); !s) return s;
        AnglePlan of;
        if (Status s = read_plan(plan, "plan", of); !s) return s;
        *info = angle_image_info(of);
        return {};
    });
}

vkrope_result vkrope_get_angle_view_info(const vkrope_angle_plan* plan, VkImage image,
                                         VkImageViewCreateInfo* info, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(info, "info"); !s) return s;
        AnglePlan of;
        if (Status s = read_plan(plan, "plan", of); !s) return s;
        *info = angle_view_info(of, image);
        return {};
    });
}

vkrope_result vkrope_record_angle_upload(VkCommandBuffer commands, const vkrope_device_ref* device,
                                         const vkrope_angle_plan* plan,
                                         const vkrope_angle_upload* upload, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        DeviceRef ref;
        if (Status s = read_device(device, ref); !s) return s;
        AnglePlan of;
        if (Status s = read_plan(plan, "plan", of); !s) return s;
        vkrope_angle_upload c;
        if (Status s = read(upload, "upload", c); !s) return s;
        AngleUpload way;
        way.staging = c.staging;
        way.staging_offset = c.staging_offset;
        way.image = c.image;
        way.buffer = c.buffer;
        way.buffer_offset = c.buffer_offset;
        way.first_line = c.first_line;
        way.lines = c.lines;
        return record_angle_upload(commands, ref, of, way);
    });
}
