// SPDX-License-Identifier: MIT
#include <array>
#include <numeric>

#include "c_scenarios.hpp"

namespace vkrope::test {

namespace {

const vkrope_device_options& options() {
    static const vkrope_device_options the_options = [] {
        vkrope_device_options o = {};
        o.get_instance_proc_addr = fake_get_instance_proc_addr;
        o.timeout_ns = 1'000'000;
        return o;
    }();
    return the_options;
}

Status open(OwnedDevice& device) {
    vkrope_device_options with = options();
    with.validation = fake().config.validation;
    return make(device,
                [&](auto** made, auto* error) { return vkrope_device_open(&with, made, error); });
}

struct Opened {
    OwnedDevice device;
    OwnedRotation rotation;
};

std::shared_ptr<void> prepare_device() {
    auto opened = std::make_shared<Opened>();
    REQUIRE(open(opened->device));
    REQUIRE(make_rotation(opened->rotation));
    return opened;
}

Status list_devices(void*) {
    OwnedList list;
    if (Status s = make(list,
                        [](auto** made, auto* error) {
                            return vkrope_device_list_create(&options(), made, error);
                        });
        !s) {
        return s;
    }
    CHECK(vkrope_device_list_count(list.get()) <= 1);
    return {};
}

Status open_and_close(void*) {
    OwnedDevice device;
    return open(device);
}

// Downloads what it uploaded.
Status use_buffer(void* prepared) {
    vkrope_device* device = static_cast<Opened*>(prepared)->device.get();
    OwnedBuffer buffer;
    if (Status s = make(buffer,
                        [&](auto** made, auto* error) {
                            return vkrope_buffer_create(device, 4096, made, error);
                        });
        !s) {
        return s;
    }
    std::array<std::uint8_t, 4096> in, out;
    std::iota(in.begin(), in.end(), std::uint8_t{1});
    if (Status s = answer([&](auto* error) {
            return vkrope_buffer_upload(buffer.get(), in.data(), 4096, 0, error);
        });
        !s)
        return s;
    if (Status s = answer([&](auto* error) {
            return vkrope_buffer_download(buffer.get(), out.data(), 4096, 0, error);
        });
        !s) {
        return s;
    }
    CHECK(in == out);
    return {};
}

template <vkrope_angle_source source>
Status make_table(void* prepared) {
    const auto& opened = *static_cast<Opened*>(prepared);
    OwnedTable table;
    return make(table, [&](auto** made, auto* error) {
        return vkrope_angle_table_create(opened.device.get(), opened.rotation.get(), source, 100,
                                         made, error);
    });
}

Status submit_nothing(void* prepared) {
    vkrope_device* device = static_cast<Opened*>(prepared)->device.get();
    double nanoseconds = 0;
    return answer([&](auto* error) {
        return vkrope_device_submit(
            device, [](void*, VkCommandBuffer, vkrope_error*) { return VKROPE_SUCCESS; }, nullptr,
            &nanoseconds, error);
    });
}

Status rotate(void* prepared) {
    static constexpr std::int32_t positions[] = {5, 6, 7};
    const auto& opened = *static_cast<Opened*>(prepared);
    vkrope_host_shape shape = {};
    shape.tokens = 3;
    shape.q_heads = 2;
    shape.k_heads = 1;
    shape.v_heads = 2;
    shape.v_head_dim = 4;
    shape.positions = positions;
    shape.position_count = 3;
    OwnedHostRotation work;
    const auto create = [&](auto** made, auto* error) {
        return vkrope_host_rotation_create(opened.device.get(), opened.rotation.get(), &shape, made,
                                           error);
    };
    if (Status s = make(work, create); !s) return s;
    std::array<std::byte, 3 * 2 * 8 * 4> q = {};
    std::array<std::byte, 3 * 8 * 4> k = {};
    std::array<std::byte, 3 * 2 * 4 * 4> v = {};
    CHECK(vkrope_host_rotation_q_bytes(work.get()) == q.size());
    CHECK(vkrope_host_rotation_k_bytes(work.get()) == k.size());
    CHECK(vkrope_host_rotation_v_bytes(work.get()) == v.size());
    double nanoseconds = 0;
    const auto upload = [&](auto* error) {
        return vkrope_host_rotation_upload(work.get(), q.data(), k.data(), v.data(), error);
    };
    const auto run = [&](auto* error) {
        return vkrope_host_rotation_run(work.get(), VKROPE_FORWARD, &nanoseconds, error);
    };
    const auto download = [&](auto* error) {
        return vkrope_host_rotation_download(work.get(), q.data(), k.data(), v.data(), error);
    };
    if (Status s = answer(upload); !s) return s;
    if (Status s = answer(run); !s) return s;
    CHECK((nanoseconds == 2000 ||
           nanoseconds == -1));  // the fake's time; -1 if timestamps are missing or fail
    return answer(download);
}

}  // namespace

std::vector<Scenario> runtime_scenarios_in_c() {
    const FakeConfig validation{.validation = true},
        no_push{.push_descriptors = false, .timestamps = false};
    return {
        // std::stable_sort requests a buffer, and can do without it.
        {.name = "devices, from C", .act = list_devices, .harmless_allocations = 1},
        {.name = "open a device, from C", .act = open_and_close, .harmless_allocations = 1},
        {.name = "open a device, validation, from C",
         .config = validation,
         .act = open_and_close,
         .harmless_allocations = 1},
        {.name = "buffer, from C",
         .prepare = prepare_device,
         .act = use_buffer,
         .keeps_nothing = false},
        {.name = "angle texture, from C",
         .prepare = prepare_device,
         .act = make_table<VKROPE_ANGLES_DIRECT_TEXTURE>,
         .keeps_nothing = false},
        {.name = "angle buffer, from C",
         .prepare = prepare_device,
         .act = make_table<VKROPE_ANGLES_DIRECT_BUFFER>,
         .keeps_nothing = false},
        {.name = "angle texture, factored, from C",
         .prepare = prepare_device,
         .act = make_table<VKROPE_ANGLES_FACTORED_TEXTURE>,
         .keeps_nothing = false},
        {.name = "numbers of computed angles, from C",
         .prepare = prepare_device,
         .act = make_table<VKROPE_ANGLES_COMPUTED>,
         .keeps_nothing = false},
        {.name = "submit, from C",
         .prepare = prepare_device,
         .act = submit_nothing,
         .keeps_nothing = false},
        {.name = "rotation, from C",
         .prepare = prepare_device,
         .act = rotate,
         .keeps_nothing = false},
        {.name = "rotation, arena, no timestamps, from C",
         .config = no_push,
         .prepare = prepare_device,
         .act = rotate,
         .keeps_nothing = false},
    };
}

}  // namespace vkrope::test
