// SPDX-License-Identifier: MIT
// Scenarios of the runtime tier through the C interface. The wrappers in vkrope.hpp call that
// interface and allocate nothing themselves.
#include <array>
#include <numeric>

#include "scenarios.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

namespace {

// A program's device, and the parameters of its rotation.
struct Program {
    OwnedDevice device;
    vkrope_rope_params rotation = eight_channels();
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

Status open(OwnedDevice& device) {
    const vkrope_device_options options = device_options();
    return make(device, vkrope_device_open, &options);
}

std::shared_ptr<void> prepare_program() {
    auto made = std::make_shared<Program>();
    REQUIRE(open(made->device));
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

// Uploads bytes to a buffer and downloads them.
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

template <vkrope_angle_source source>
Status make_table(void* prepared) {
    OwnedTable table;
    return make(table, vkrope_angle_table_create, program(prepared).device.get(),
                &program(prepared).rotation, source, 100);
}

Status submit_nothing(void* prepared) {
    double nanoseconds = 0;
    const auto nothing = [](void*, VkCommandBuffer, vkrope_error*) { return VKROPE_SUCCESS; };
    return answer(vkrope_device_submit, program(prepared).device.get(), nothing, nullptr,
                  &nanoseconds);
}

// Runs all steps of a program that makes no kernels.
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
    // 2000 ns is the time on the fake; -1 means that timestamps are missing or failed.
    CHECK((nanoseconds == 2000 || nanoseconds == -1));
    return answer(vkrope_host_rotation_download, work.get(), q.data(), k.data(), v.data());
}

}  // namespace

std::vector<Scenario> runtime_scenarios() {
    const FakeConfig controls{.float_controls = all_float_controls()},
        no_push{.push_descriptors = false, .timestamps = false}, validation{.validation = true};
    std::vector<Scenario> all;
    // std::stable_sort allocates a buffer, but also works without it.
    const auto without_device = [&](const char* name, const FakeConfig& config, auto act) {
        all.push_back({.name = name, .config = config, .act = act, .harmless_allocations = 1});
    };
    without_device("devices", {}, list_devices);
    without_device("open a device", {}, open_and_close);
    without_device("open a device, float controls", controls, open_and_close);
    without_device("open a device, validation", validation, open_and_close);
    const auto with_device = [&](const char* name, const FakeConfig& config, auto act) {
        all.push_back({.name = name,
                       .config = config,
                       .prepare = prepare_program,
                       .act = act,
                       .keeps_nothing = false});
    };
    with_device("buffer", {}, use_buffer);
    with_device("angle texture", {}, make_table<VKROPE_ANGLES_DIRECT_TEXTURE>);
    with_device("angle buffer", {}, make_table<VKROPE_ANGLES_DIRECT_BUFFER>);
    with_device("angle texture, factored", {}, make_table<VKROPE_ANGLES_FACTORED_TEXTURE>);
    with_device("numbers of computed angles", {}, make_table<VKROPE_ANGLES_COMPUTED>);
    with_device("submit", {}, submit_nothing);
    all.back().allocations = 0;
    with_device("rotation", {}, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    with_device("rotation, computed angles", {}, rotate_once<VKROPE_ANGLES_COMPUTED>);
    with_device("rotation, float controls", controls, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    with_device("rotation, validation", validation, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    with_device("rotation, arena, no timestamps", no_push, rotate_once<VKROPE_ANGLES_AUTOMATIC>);
    for (Scenario& one : all)
        one.slow = one.name == "rotation, computed angles" ||
                   one.name == "rotation, float controls";
    return all;
}

}  // namespace vkrope::test
