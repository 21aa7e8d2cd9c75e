// SPDX-License-Identifier: MIT
// Tier "runtime" for C.
#include "vkrope/runtime.hpp"

#include "c/guard.hpp"
#include "status.hpp"

using namespace vkrope;
using namespace vkrope::c;

struct vkrope_device_list {
    std::vector<DeviceInfo> of;
};
struct vkrope_device {
    Device of;
};
struct vkrope_buffer {
    Buffer of;
};
struct vkrope_angle_table {
    AngleTable of;
};
struct vkrope_host_rotation {
    HostRotation of;
};

namespace {

Status read_options(const vkrope_device_options* from, DeviceOptions& options) {
    const vkrope_device_options c = from ? *from : vkrope_device_options{};
    if (c.select) options.select = c.select;
    options.get_instance_proc_addr = c.get_instance_proc_addr;
    options.validation = c.validation;
    options.push_descriptors = !c.no_push_descriptors;
    if (c.on_message) {
        options.on_message = [call = c.on_message,
                              user_data = c.user_data](const Message& message) {
            call(user_data, message.error, message.id, message.text);
        };
    }
    if (c.timeout_ns != 0) options.timeout_ns = c.timeout_ns;
    if (c.pipeline_cache_folder) options.pipeline_cache_folder = c.pipeline_cache_folder;
    if (c.pipeline_cache_bytes != 0) options.pipeline_cache_bytes = c.pipeline_cache_bytes;
    return {};
}

Status write_info(const DeviceInfo& device, vkrope_device_info* info) {
    vkrope_device_info c = {};
    c.name = device.name.c_str();
    c.driver = device.driver.c_str();
    c.uuid = device.uuid.c_str();
    c.reason = device.reason.c_str();
    c.type = device.type;
    c.api_version = device.api_version;
    c.suitable = device.suitable;
    c.memory_bytes = device.memory_bytes;
    c.limits = &device.limits;
    return hand_out(Result<vkrope_device_info>{{}, c}, info, "info");
}

Status read_shape(const vkrope_host_shape* from, HostShape& shape) {
    if (Status s = not_null(from, "shape"); !s) return s;
    const vkrope_host_shape& c = *from;
    if (Status s = not_null(c.positions, "shape.positions"); !s && c.position_count != 0) return s;
    if (c.positions && c.position_count == 0 && c.tokens != 0) {
        return error(VKROPE_ERROR_INVALID_ARGUMENT,
                     "shape.position_count is 0 although shape.positions is not null");
    }
    if (c.batch != 0) shape.batch = c.batch;
    shape.tokens = c.tokens;
    shape.q_heads = c.q_heads;
    shape.k_heads = c.k_heads;
    shape.v_heads = c.v_heads;
    shape.q_head_dim = c.q_head_dim;
    shape.k_head_dim = c.k_head_dim;
    shape.v_head_dim = c.v_head_dim;
    shape.element = c.element;
    shape.layout = c.layout;
    shape.positions.assign(c.positions, c.positions + c.position_count);
    shape.first_position = c.first_position;
    shape.angles = c.angles;
    shape.mapping = c.mapping;
    shape.conversion = c.conversion;
    shape.axes = c.axes;
    shape.in_place = c.in_place;
    return {};
}

/// A copy of the caller's rotation, made after its counts are known to be right. What it says about
/// the model is left out.
Result<RopeParams> owned(const vkrope_rope_params* from) {
    if (Status s = not_null(from, "rotation"); !s) return {s, {}};
    const AngleSource any = from->precision == VKROPE_ANGLE_PRECISION_EXACT
                                ? VKROPE_ANGLES_COMPUTED
                                : VKROPE_ANGLES_DIRECT_BUFFER;
    AngleTableLayout plan;
    if (Status s = status_of(vkrope_plan_angles, from, any, 1, 0, &plan); !s) return {s, {}};
    vkrope_rope_params numbers = *from;
    numbers.rope_type = nullptr;
    numbers.warnings = nullptr;
    return {{}, RopeParams(numbers)};
}

/// Creates a handle for the value, unless there was an error.
template <class Handle, class Value>
Status hand_over(Result<Value>&& made, Handle** handle) {
    if (!made) return made.status;
    *handle = new Handle{std::move(made.value)};
    return {};
}

Status spend(const Result<std::optional<double>>& spent, double* nanoseconds) {
    if (nanoseconds) *nanoseconds = spent.value.value_or(-1);
    return spent.status;
}

}  // namespace

vkrope_result vkrope_device_list_create(const vkrope_device_options* options,
                                        vkrope_device_list** list, vkrope_error* error) {
    return making(list, "list", error, [&]() -> Status {
        DeviceOptions asked;
        if (Status s = read_options(options, asked); !s) return s;
        return hand_over(devices(asked), list);
    });
}

uint32_t vkrope_device_list_count(const vkrope_device_list* list) {
    return list ? uint32_t(list->of.size()) : 0;
}

vkrope_result vkrope_device_list_get(const vkrope_device_list* list, uint32_t index,
                                     vkrope_device_info* info, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(list, "list"); !s) return s;
        const uint32_t count = vkrope_device_list_count(list);
        if (index >= count)
            return vkrope::error(VKROPE_ERROR_INVALID_ARGUMENT,
                                 "index is %u: the list has %u devices", index, count);
        return write_info(list->of[index], info);
    });
}

void vkrope_device_list_destroy(vkrope_device_list* list) {
    delete list;
}

vkrope_result vkrope_device_open(const vkrope_device_options* options, vkrope_device** device,
                                 vkrope_error* error) {
    return making(device, "device", error, [&]() -> Status {
        DeviceOptions asked;
        if (Status s = read_options(options, asked); !s) return s;
        return hand_over(Device::open(asked), device);
    });
}

vkrope_result vkrope_device_get_info(const vkrope_device* device, vkrope_device_info* info,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        return write_info(device->of.info(), info);
    });
}

vkrope_result vkrope_device_get_ref(const vkrope_device* device, vkrope_device_ref* ref,
                                    vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        return hand_out(Result<DeviceRef>{{}, device->of.ref()}, ref, "ref");
    });
}

vkrope_result vkrope_device_get_queue(const vkrope_device* device, uint32_t* family, VkQueue* queue,
                                      vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        if (family) *family = device->of.queue_family();
        if (queue) *queue = device->of.queue();
        return {};
    });
}

vkrope_result vkrope_device_submit(vkrope_device* device, vkrope_record_callback record,
                                   void* user_data, double* nanoseconds, vkrope_error* error) {
    vkrope_error refused = {};  // error of the callback; its code may have no Status equivalent
    const vkrope_result result = guarded(error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        if (!record) return vkrope::error(VKROPE_ERROR_INVALID_ARGUMENT, "record is null");
        const auto submitted = device->of.submit([&](VkCommandBuffer commands) -> Status {
            refused.code = record(user_data, commands, &refused);
            return refused.code == VKROPE_SUCCESS
                       ? Status{}
                       : vkrope::error(VKROPE_ERROR_INVALID_ARGUMENT, "record failed");
        });
        return spend(submitted, nanoseconds);
    });
    if (refused.code == VKROPE_SUCCESS) return result;
    if (error) *error = refused;
    return refused.code;
}

vkrope_result vkrope_device_save_pipeline_cache(vkrope_device* device, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        return device->of.save_pipeline_cache();
    });
}

void vkrope_device_destroy(vkrope_device* device) {
    delete device;
}

vkrope_result vkrope_buffer_create(vkrope_device* device, uint64_t bytes, vkrope_buffer** buffer,
                                   vkrope_error* error) {
    return making(buffer, "buffer", error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        return hand_over(Buffer::make(device->of, bytes), buffer);
    });
}

VkDescriptorBufferInfo vkrope_buffer_whole(const vkrope_buffer* buffer) {
    return buffer ? buffer->of.whole() : VkDescriptorBufferInfo{};
}

vkrope_result vkrope_buffer_upload(vkrope_buffer* buffer, const void* source, size_t bytes,
                                   uint64_t offset, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(buffer, "buffer"); !s) return s;
        if (Status s = not_null(source, "source"); !s && bytes != 0) return s;
        return buffer->of.upload(source, bytes, offset);
    });
}

vkrope_result vkrope_buffer_download(vkrope_buffer* buffer, void* target, size_t bytes,
                                     uint64_t offset, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(buffer, "buffer"); !s) return s;
        if (Status s = not_null(target, "target"); !s && bytes != 0) return s;
        return buffer->of.download(target, bytes, offset);
    });
}

void vkrope_buffer_destroy(vkrope_buffer* buffer) {
    delete buffer;
}

vkrope_result vkrope_angle_table_create(vkrope_device* device, const vkrope_rope_params* rotation,
                                        vkrope_angle_source source, uint64_t max_position,
                                        vkrope_angle_table** table, vkrope_error* error) {
    return making(table, "table", error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        const Result<RopeParams> of = owned(rotation);
        if (!of) return of.status;
        Result<AngleTable> made = AngleTable::make(device->of, of.value, source, max_position);
        if (!made) return made.status;
        *table = new vkrope_angle_table{std::move(made.value)};
        return {};
    });
}

vkrope_result vkrope_angle_table_get(const vkrope_angle_table* table, vkrope_angles* angles,
                                     vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(table, "table"); !s) return s;
        return hand_out(Result<Angles>{{}, table->of.angles()}, angles, "angles");
    });
}

vkrope_result vkrope_angle_table_reach(vkrope_angle_table* table, vkrope_device* device,
                                       const vkrope_rope_params* rotation, uint64_t max_position,
                                       vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(table, "table"); !s) return s;
        if (Status s = not_null(device, "device"); !s) return s;
        const Result<RopeParams> of = owned(rotation);
        if (!of) return of.status;
        return table->of.reach(device->of, of.value, max_position);
    });
}

void vkrope_angle_table_destroy(vkrope_angle_table* table) {
    delete table;
}

vkrope_result vkrope_host_rotation_create(vkrope_device* device, const vkrope_rope_params* rotation,
                                          const vkrope_host_shape* shape,
                                          vkrope_host_rotation** host_rotation,
                                          vkrope_error* error) {
    return making(host_rotation, "host_rotation", error, [&]() -> Status {
        if (Status s = not_null(device, "device"); !s) return s;
        const Result<RopeParams> rotates = owned(rotation);
        if (!rotates) return rotates.status;
        HostShape of;
        if (Status s = read_shape(shape, of); !s) return s;
        return hand_over(HostRotation::make(device->of, rotates.value, of), host_rotation);
    });
}

size_t vkrope_host_rotation_q_bytes(const vkrope_host_rotation* host_rotation) {
    return host_rotation ? host_rotation->of.q_bytes() : 0;
}

size_t vkrope_host_rotation_k_bytes(const vkrope_host_rotation* host_rotation) {
    return host_rotation ? host_rotation->of.k_bytes() : 0;
}

size_t vkrope_host_rotation_v_bytes(const vkrope_host_rotation* host_rotation) {
    return host_rotation ? host_rotation->of.v_bytes() : 0;
}

vkrope_result vkrope_host_rotation_upload(vkrope_host_rotation* host_rotation, const void* q,
                                          const void* k, const void* v, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
        return host_rotation->of.upload(q, k, v);
    });
}

vkrope_result vkrope_host_rotation_run(vkrope_host_rotation* host_rotation,
                                       vkrope_direction direction, double* nanoseconds,
                                       vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
        return spend(host_rotation->of.run(direction), nanoseconds);
    });
}

vkrope_result vkrope_host_rotation_run_at(vkrope_host_rotation* host_rotation,
                                          const vkrope_host_run* run, double* nanoseconds,
                                          vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
        if (Status s = not_null(run, "run"); !s) return s;
        const vkrope_host_run& c = *run;
        if (Status s = not_null(c.positions, "run.positions"); !s && c.position_count != 0)
            return s;
        if (!c.moves && c.first_position != 0) {
            return vkrope::error(VKROPE_ERROR_INVALID_ARGUMENT,
                                 "run.first_position is %d: without run.moves it must be 0",
                                 c.first_position);
        }
        HostRun of{.direction = c.direction};
        if (c.moves) of.first_position = c.first_position;
        of.positions.assign(c.positions, c.positions + c.position_count);
        return spend(host_rotation->of.run(of), nanoseconds);
    });
}

vkrope_result vkrope_host_rotation_download(vkrope_host_rotation* host_rotation, void* q, void* k,
                                            void* v, vkrope_error* error) {
    return guarded(error, [&]() -> Status {
        if (Status s = not_null(host_rotation, "host_rotation"); !s) return s;
        return host_rotation->of.download(q, k, v);
    });
}

void vkrope_host_rotation_destroy(vkrope_host_rotation* host_rotation) {
    delete host_rotation;
}
