// SPDX-License-Identifier: MIT
// Tier "runtime": by C, which calls C++; and by C++, out of which no exception comes either.
#include <array>
#include <numeric>

#include "scenarios.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

namespace {

/// A program's device, by C and by C++, and the rotation that it uses.
struct Program {
    OwnedDevice device;
    vkrope_rope_params rotation = eight_channels();
    std::optional<Device> in_cpp;
    RopeParams rotation_in_cpp{eight_channels()};
    std::int32_t positions[3] = {5, 6, 7};
    HostShape shape{.tokens = 3, .heads = {2, 1}, .positions = positions, .position_count = 3};
};

Program& program(void* prepared) {
    return *static_cast<Program*>(prepared);
}

vkrope_device_options device_options() {
    vkrope_device_options options = {};
    options.get_instance_proc_addr = fake_get_instance_proc_addr;
    options.validation = fake().config.validation;
    options.timeout_ns = 1'000'000;
    return options;
}

DeviceOptions device_options_in_cpp() {
    return {.get_instance_proc_addr = fake_get_instance_proc_addr, .timeout_ns = 1'000'000};
}

Status open(OwnedDevice& device) {
    const vkrope_device_options options = device_options();
    return make(device, vkrope_device_open, &options);
}

std::shared_ptr<void> prepare_program() {
    auto made = std::make_shared<Program>();
    REQUIRE(open(made->device));
    return made;
}

std::shared_ptr<void> prepare_program_in_cpp() {
    auto made = std::make_shared<Program>();
    made->in_cpp = std::move(Device::open(device_options_in_cpp()).value);
    return made;
}

Status list_devices(void*) {
    const vkrope_device_options options = device_options();
    OwnedList list;
    const Status status = make(list, vkrope_device_list_create, &options);
    std::uint32_t count = 0;
    vkrope_device_list_get(list.get(), &count);
    CHECK(count <= 1);
    return status;
}

Status open_and_close(void*) {
    OwnedDevice device;
    return open(device);
}

constexpr std::size_t buffer_bytes = 4096;

std::array<std::uint8_t, buffer_bytes> any_bytes() {
    std::array<std::uint8_t, buffer_bytes> bytes;
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{1});
    return bytes;
}

// Downloads what it uploaded.
Status use_buffer(void* prepared) {
    OwnedBuffer buffer;
    vkrope_device* const device = program(prepared).device.get();
    if (Status s = make(buffer, vkrope_buffer_create, device, buffer_bytes); !s) return s;
    const auto in = any_bytes();
    std::array<std::uint8_t, buffer_bytes> out;
    if (Status s = answer(vkrope_buffer_upload, buffer.get(), in.data(), buffer_bytes, 0); !s)
        return s;
    const Status status = answer(vkrope_buffer_download, buffer.get(), out.data(), buffer_bytes, 0);
    if (status) CHECK(in == out);
    return status;
}

Status use_buffer_in_cpp(void* prepared) {
    auto buffer = Buffer::make(*program(prepared).in_cpp, buffer_bytes);
    if (!buffer) return buffer.status;
    const auto in = any_bytes();
    if (Status s = buffer->upload(in.data(), in.size()); !s) return s;
    std::array<std::uint8_t, buffer_bytes> out;
    const Status status = buffer->download(out.data(), out.size());
    if (status) CHECK(in == out);
    return status;
}

template <vkrope_angle_source source>
Status make_table(void* prepared) {
    OwnedTable table;
    return make(table, vkrope_angle_table_create, program(prepared).device.get(),
                &program(prepared).rotation, source, 100);
}

Status make_table_in_cpp(void* prepared) {
    return AngleTable::make(*program(prepared).in_cpp, program(prepared).rotation_in_cpp,
                            VKROPE_ANGLES_DIRECT_TEXTURE, 100)
        .status;
}

Status submit_nothing(void* prepared) {
    double nanoseconds = 0;
    const auto nothing = [](void*, VkCommandBuffer, vkrope_error*) { return VKROPE_SUCCESS; };
    return answer(vkrope_device_submit, program(prepared).device.get(), nothing, nullptr,
                  &nanoseconds);
}

// All steps of a program without its own kernels.
template <vkrope_angle_source angles>
Status rotate_once(void* prepared) {
    static constexpr std::int32_t positions[] = {5, 6, 7};
    vkrope_host_shape shape = {};
    shape.tokens = 3;
    shape.heads[Q] = 2;
    shape.heads[K] = 1;
    shape.heads[V] = 2;
    shape.head_dim[V] = 4;
    shape.positions = positions;
    shape.position_count = 3;
    shape.angles = angles;
    OwnedHostRotation work;
    if (Status s = make(work, vkrope_host_rotation_create, program(prepared).device.get(),
                        &program(prepared).rotation, &shape);
        !s)
        return s;
    std::array<std::byte, 3 * 2 * 8 * 4> q = {};
    std::array<std::byte, 3 * 8 * 4> k = {};
    std::array<std::byte, 3 * 2 * 4 * 4> v = {};
    CHECK(vkrope_host_rotation_bytes(work.get(), Q) == q.size());
    CHECK(vkrope_host_rotation_bytes(work.get(), K) == k.size());
    CHECK(vkrope_host_rotation_bytes(work.get(), V) == v.size());
    double nanoseconds = 0;
    if (Status s = answer(vkrope_host_rotation_upload, work.get(), q.data(), k.data(), v.data());
        !s)
        return s;
    if (Status s = answer(vkrope_host_rotation_run, work.get(), nullptr, &nanoseconds); !s)
        return s;
    // The fake's time; -1 if timestamps are missing or fail.
    CHECK((nanoseconds == 2000 || nanoseconds == -1));
    return answer(vkrope_host_rotation_download, work.get(), q.data(), k.data(), v.data());
}

Status rotate_once_in_cpp(void* prepared) {
    Program& of = program(prepared);
    auto made = HostRotation::make(*of.in_cpp, of.rotation_in_cpp, of.shape);
    if (!made) return made.status;
    std::array<std::byte, 3 * 2 * 8 * 4> q = {};
    std::array<std::byte, 3 * 8 * 4> k = {};
    if (Status s = made->upload(q.data(), k.data()); !s) return s;
    const auto ran = made->run();
    if (!ran) return ran.status;
    CHECK(ran->value_or(2000) == 2000);
    return made->download(q.data(), k.data());
}

}  // namespace

std::vector<Scenario> runtime_scenarios() {
    const FakeConfig controls{.float_controls = all_float_controls()},
        no_push{.push_descriptors = false, .timestamps = false}, validation{.validation = true};
    std::vector<Scenario> all;
    // std::stable_sort requests a buffer, and can do without it.
    const auto without_device = [&](const char* name, const FakeConfig& config, auto act) {
        all.push_back({.name = name, .config = config, .act = act, .harmless_allocations = 1});
    };
    without_device("devices", {}, list_devices);
    without_device("devices, in C++", {},
                   [](void*) { return DeviceList::make(device_options_in_cpp()).status; });
    without_device("open a device", {}, open_and_close);
    without_device("open a device, in C++", {},
                   [](void*) { return Device::open(device_options_in_cpp()).status; });
    without_device("open a device, float controls", controls, open_and_close);
    without_device("open a device, validation", validation, open_and_close);
    const auto with_device = [&](const char* name, const FakeConfig& config, auto act,
                                 auto prepare) {
        all.push_back({.name = name,
                       .config = config,
                       .prepare = prepare,
                       .act = act,
                       .keeps_nothing = false});
    };
    const auto by_c = [&](const char* name, const FakeConfig& config, auto act) {
        with_device(name, config, act, prepare_program);
    };
    by_c("buffer", {}, use_buffer);
    by_c("angle texture", {}, make_table<VKROPE_ANGLES_DIRECT_TEXTURE>);
    by_c("angle buffer", {}, make_table<VKROPE_ANGLES_DIRECT_BUFFER>);
    by_c("angle texture, factored", {}, make_table<VKROPE_ANGLES_FACTORED_TEXTURE>);
    by_c("numbers of computed angles", {}, make_table<VKROPE_ANGLES_COMPUTED>);
    by_c("submit", {}, submit_nothing);
    all.back().allocations = 0;
    by_c("rotation", {}, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    by_c("rotation, computed angles", {}, rotate_once<VKROPE_ANGLES_COMPUTED>);
    by_c("rotation, float controls", controls, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    by_c("rotation, validation", validation, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    by_c("rotation, arena, no timestamps", no_push, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    for (Scenario& one : all)
        one.slow = one.name == "rotation, computed angles" ||
                   one.name == "rotation, float controls";
    with_device("buffer, in C++", {}, use_buffer_in_cpp, prepare_program_in_cpp);
    with_device("angle texture, in C++", {}, make_table_in_cpp, prepare_program_in_cpp);
    with_device("rotation, in C++", {}, rotate_once_in_cpp, prepare_program_in_cpp);
    return all;
}

}  // namespace vkrope::test
