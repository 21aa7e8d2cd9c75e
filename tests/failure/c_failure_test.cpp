// SPDX-License-Identifier: MIT
// The C interface, with every call and every allocation failing in turn. Linked with the shared
// library. Without the model tier; plan_failure_test.cpp gives the reason.
#include <array>
#include <cstring>
#include <numeric>

#include "support/fake_vulkan/host_memory.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "support/in_c.hpp"
#include "tolerances.hpp"
#include "vkrope/vkrope.h"

namespace vkrope::test {

namespace {

template <auto destroy>
struct Destroy {
    template <class Handle>
    void operator()(Handle* handle) const {
        destroy(handle);
    }
};
using OwnedKernel = std::unique_ptr<vkrope_kernel, Destroy<vkrope_kernel_destroy>>;
using OwnedArena = std::unique_ptr<vkrope_arena, Destroy<vkrope_arena_destroy>>;
using OwnedRotation = std::unique_ptr<vkrope_rotation, Destroy<vkrope_rotation_destroy>>;
using OwnedList = std::unique_ptr<vkrope_device_list, Destroy<vkrope_device_list_destroy>>;
using OwnedDevice = std::unique_ptr<vkrope_device, Destroy<vkrope_device_destroy>>;
using OwnedBuffer = std::unique_ptr<vkrope_buffer, Destroy<vkrope_buffer_destroy>>;
using OwnedTable = std::unique_ptr<vkrope_angle_table, Destroy<vkrope_angle_table_destroy>>;
using OwnedHostRotation =
    std::unique_ptr<vkrope_host_rotation, Destroy<vkrope_host_rotation_destroy>>;

// The result of `call` and its vkrope_error as a Status, as in the C++ scenarios.
template <class Function>
Status answer(const Function& call) {
    vkrope_error error;
    std::memset(&error, 0x5a, sizeof error);
    const vkrope_result result = call(&error);
    CHECK(error.code == result);
    Status status;
    status.code = Code(-int(result));  // the negated C++ codes; other numbers have no meaning
    status.vk_result = error.vk_result;
    std::memcpy(status.what, error.what, sizeof status.what);
    return status;
}

// Like answer(), for a function that makes an object: on failure its handle is null.
template <class Handle, class Deleter, class Function>
Status make(std::unique_ptr<Handle, Deleter>& owned, const Function& call) {
    Handle* handle = wrong_handle<Handle*>();
    const Status status = answer([&](vkrope_error* error) { return call(&handle, error); });
    CHECK((handle != nullptr) == bool(status));
    owned.reset(handle);
    return status;
}

// ---- frequencies ----

const std::array<double, 4> frequencies = {1.0, 0.1, 0.01, 0.001};

Status make_rotation(OwnedRotation& rotation) {
    const char* const warnings[] = {"a warning that is too long to be kept without memory",
                                    "another one, which is just as long"};
    auto info = sized<vkrope_rotation_info>();
    info.head_dim = info.rotary_dim = 8;
    info.inv_freq = frequencies.data();
    info.inv_freq_count = frequencies.size();
    info.rope_type = "a name that is too long to be kept without memory";
    info.warnings = warnings;
    info.warning_count = 2;
    return make(rotation, [&](auto** made, auto* error) {
        return vkrope_rotation_create(&info, made, error);
    });
}

Status scale(void*) {
    std::array<double, 4> scaled = {};
    if (Status s = answer(
            [&](auto* error) { return vkrope_default_inv_freq(10000.0, 8, scaled.data(), error); });
        !s)
        return s;
    auto llama3 = sized<vkrope_llama3_scaling>();
    llama3.factor = 8;
    llama3.low_freq_factor = 1;
    llama3.high_freq_factor = 4;
    llama3.original_max_position_embeddings = 8192;
    const std::array<double, 4> before = scaled;
    const Status status = answer(
        [&](auto* error) { return vkrope_scale_llama3(scaled.data(), 4, &llama3, error); });
    if (!status) CHECK(scaled == before);
    if (!status) return status;
    return answer([&](auto* error) { return vkrope_scale_linear(scaled.data(), 4, 2, error); });
}

Status create_rotation(void*) {
    OwnedRotation rotation;
    return make_rotation(rotation);
}

struct Planned {
    OwnedRotation rotation;
    std::array<float, 17 * 8> memory = {};
};

std::shared_ptr<void> prepare_plan() {
    auto planned = std::make_shared<Planned>();
    REQUIRE(make_rotation(planned->rotation));
    return planned;
}

template <vkrope_angle_source source>
Status plan_and_fill(void* prepared) {
    auto& planned = *static_cast<Planned*>(prepared);
    const vkrope_rotation* rotation = planned.rotation.get();
    auto plan = sized<vkrope_angle_plan>();
    if (Status s = answer([&](auto* error) {
            return vkrope_plan_angles(rotation, source, 16, 4096, &plan, error);
        });
        !s)
        return s;
    return answer([&](auto* error) {
        return vkrope_fill_angles(rotation, &plan, planned.memory.data(), sizeof planned.memory,
                                  error);
    });
}

// ---- kernel ----

struct Prepared {
    explicit Prepared(const FakeConfig& config,
                      vkrope_angle_source source = VKROPE_ANGLES_FACTORED_TEXTURE,
                      const Finish* with = nullptr)
        : host(config, true), angles(source), finish(with), ref(in_c(host.ref)) {}
    KernelHost host;
    vkrope_angle_source angles;
    const Finish* finish;  // of Q, K and V; null: none, and no V
    vkrope_device_ref ref;
    OwnedKernel kernel;  // before its arena: destroyed after it
    OwnedArena arena;
};

// Of Q, K and V, each with everything.
const Finish& norm_of_token() {
    static const Finish the_finish = full_finish(NormKind::layer, NormSpan::token,
                                                 NormPlace::after);
    return the_finish;
}

// The same kernel in C++.
KernelInfo info_of(const Prepared& prepared) {
    const KernelInfo info = kernel_info(AngleSource(prepared.angles));
    return prepared.finish ? with_finish(with_v(info), *prepared.finish) : info;
}

// As info_of().
Status make_kernel(const Prepared& prepared, OwnedKernel& kernel,
                   vkrope_conversion conversion = VKROPE_CONVERSION_BY_DEVICE) {
    KernelInfoInC in_c(info_of(prepared));
    in_c.info.conversion = conversion;
    return make(kernel, [&](auto** made, auto* error) {
        return vkrope_kernel_create(&prepared.ref, &in_c.info, made, error);
    });
}

Status make_arena(const Prepared& prepared, OwnedArena& arena) {
    return make(arena, [&](auto** made, auto* error) {
        return vkrope_arena_create(prepared.kernel.get(), 3, made, error);
    });
}

// The same call in C++.
Call call_of(const Prepared& prepared) {
    const Call call = kernel_call(prepared.host, 7, AngleSource(prepared.angles));
    return prepared.finish
               ? with_finish(prepared.host, info_of(prepared), with_v(prepared.host, call))
               : call;
}

// As call_of().
Status record_call(Prepared& prepared) {
    const CallInC in_c(call_of(prepared));
    vkrope_arena_reset(prepared.arena.get());
    return answer([&](auto* error) {
        return vkrope_record(prepared.host.commands, prepared.kernel.get(), &in_c.call,
                             prepared.arena.get(), error);
    });
}

std::shared_ptr<Prepared> prepare_record(
    const FakeConfig& config, vkrope_angle_source angles = VKROPE_ANGLES_FACTORED_TEXTURE,
    const Finish* finish = nullptr) {
    auto made = std::make_shared<Prepared>(config, angles, finish);
    REQUIRE(make_kernel(*made, made->kernel));
    if (!config.push_descriptors) REQUIRE(make_arena(*made, made->arena));
    return made;
}

Status ask_requirements(void* prepared) {
    const vkrope_device_ref& ref = static_cast<Prepared*>(prepared)->ref;
    auto needs = sized<vkrope_requirements>();
    return answer([&](auto* error) {
        return vkrope_get_requirements(ref.instance, ref.physical, ref.get_instance_proc_addr,
                                       &needs, error);
    });
}

Status create_kernel(void* prepared) {
    OwnedKernel kernel;
    return make_kernel(*static_cast<Prepared*>(prepared), kernel);
}

Status create_arena(void* prepared) {
    OwnedArena arena;
    return make_arena(*static_cast<Prepared*>(prepared), arena);
}

Status record_one(void* prepared) {
    return record_call(*static_cast<Prepared*>(prepared));
}

// ---- runtime ----

const vkrope_device_options& options() {
    static const vkrope_device_options the_options = [] {
        auto o = sized<vkrope_device_options>();
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
    auto shape = sized<vkrope_host_shape>();
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
        return vkrope_host_rotation_run(work.get(), VKROPE_DIRECTION_FORWARD, &nanoseconds, error);
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

// ---- what fails ----

// Names begin like those of the same C++ scenarios, whose tolerances also apply here.
std::vector<Scenario> kernel_scenarios() {
    const auto prepare = [] { return std::make_shared<Prepared>(FakeConfig{}); };
    const FakeConfig no_push{.push_descriptors = false};
    const FakeConfig apart{.storage_buffers = 4, .push_descriptors = false, .debug_utils = false};
    return {
        {.name = "requirements, from C", .prepare = prepare, .act = ask_requirements},
        {.name = "create and destroy a kernel, push descriptors, from C",
         .prepare = prepare,
         .act = create_kernel},
        {.name = "create and destroy a kernel, apart, no labels, from C",
         .config = apart,
         .prepare = [apart] { return std::make_shared<Prepared>(apart); },
         .act = create_kernel},
        {.name = "create and destroy an arena, from C",
         .config = no_push,
         .prepare = [no_push] { return prepare_record(no_push); },
         .act = create_arena},
        {.name = "record, push descriptors, labels, from C",
         .prepare = [] { return prepare_record({}); },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
        {.name = "record, arena, apart, no labels, from C",
         .config = apart,
         .prepare = [apart] { return prepare_record(apart); },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
        {.name = "create and destroy a kernel, computed angles, from C",
         .prepare = [] { return std::make_shared<Prepared>(FakeConfig{}, VKROPE_ANGLES_COMPUTED); },
         .act = create_kernel},
        {.name = "create and destroy a kernel with norms of tokens and V, apart, from C",
         .config = apart,
         .prepare =
             [apart] {
                 return std::make_shared<Prepared>(apart, VKROPE_ANGLES_FACTORED_TEXTURE,
                                                   &norm_of_token());
             },
         .act = create_kernel},
        {.name = "record with norms of tokens and V, from C",
         .prepare =
             [] { return prepare_record({}, VKROPE_ANGLES_FACTORED_TEXTURE, &norm_of_token()); },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
        {.name = "record with norms of tokens and V, arena, apart, no labels, from C",
         .config = apart,
         .prepare =
             [apart] {
                 return prepare_record(apart, VKROPE_ANGLES_FACTORED_TEXTURE, &norm_of_token());
             },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
        {.name = "record, push descriptors, computed angles, from C",
         .prepare = [] { return prepare_record({}, VKROPE_ANGLES_COMPUTED); },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
        {.name = "record, push descriptors, direct angles, from C",
         .prepare = [] { return prepare_record({}, VKROPE_ANGLES_DIRECT_TEXTURE); },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
        {.name = "record, arena, apart, computed angles, from C",
         .config = apart,
         .prepare = [apart] { return prepare_record(apart, VKROPE_ANGLES_COMPUTED); },
         .act = record_one,
         .calls = 0,
         .allocations = 0},
    };
}

std::vector<Scenario> plan_scenarios() {
    return {
        {.name = "scale frequencies, from C", .act = scale, .calls = 0},
        {.name = "create and destroy a rotation, from C", .act = create_rotation, .calls = 0},
        {.name = "plan and fill a texture, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_DIRECT_TEXTURE>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill a buffer, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_DIRECT_BUFFER>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill a factored texture, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_FACTORED_TEXTURE>,
         .calls = 0,
         .allocations = 0},
        {.name = "plan and fill the numbers of computed angles, from C",
         .prepare = prepare_plan,
         .act = plan_and_fill<VKROPE_ANGLES_COMPUTED>,
         .calls = 0,
         .allocations = 0},
    };
}

std::vector<Scenario> runtime_scenarios() {
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

}  // namespace

TEST_CASE("C: every call fails with every result that it may have") {
    fail_every_call(plan_scenarios());
    fail_every_call(kernel_scenarios(), kernel_tolerances());
    fail_every_call(runtime_scenarios(), runtime_tolerances());
}

TEST_CASE("C: every host allocation fails") {
    fail_every_allocation(plan_scenarios());
    fail_every_allocation(kernel_scenarios());
    fail_every_allocation(runtime_scenarios());
}

TEST_CASE("C: requirements and conversion are those of C++") {
    for (const bool feature : {true, false}) {
        const auto prepared = std::make_shared<Prepared>(
            FakeConfig{.float16_feature = feature, .float_controls = all_float_controls()});
        const vkrope_device_ref& ref = prepared->ref;
        auto needs = sized<vkrope_requirements>();
        REQUIRE(vkrope_get_requirements(ref.instance, ref.physical, ref.get_instance_proc_addr,
                                        &needs, nullptr) == VKROPE_SUCCESS);
        const auto same = requirements(ref.instance, ref.physical, ref.get_instance_proc_addr);
        CHECK(needs.optional_extension_count == 3);
        CHECK(needs.optional_extension_count == same->optional_extension_count);
        CHECK(needs.enabled == same->enabled);
        CHECK((needs.enabled & VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS) != 0);
        CHECK(needs.offers_shader_float16 == VkBool32(feature));
        OwnedKernel kernel;
        const Status native = make_kernel(*prepared, kernel, VKROPE_CONVERSION_NATIVE);
        CHECK(native.code == (feature ? Code::ok : Code::not_supported));
        CHECK(make_kernel(*prepared, kernel, VKROPE_CONVERSION_INTEGER));
        const Status none = make_kernel(*prepared, kernel, vkrope_conversion(3));
        CHECK(none.code == Code::invalid_argument);
        CHECK(std::string(none.what).find("conversion is 3") != std::string::npos);
        check_no_faults();
    }
}

TEST_CASE("C: norms, parameters and factors come to the shader as they do from C++") {
    const FakeConfig joined, apart{.storage_buffers = 4, .push_descriptors = false};
    for (const FakeConfig& config : {joined, apart}) {
        fake().restart(config);
        {
            const auto prepared = prepare_record(config, VKROPE_ANGLES_FACTORED_TEXTURE,
                                                 &norm_of_token());
            const std::size_t shaders = fake().shaders().size();
            CHECK(record_call(*prepared));
            const Owned<Kernel> kernel(create(prepared->host.ref, info_of(*prepared)).value);
            REQUIRE(kernel);
            const Owned<DescriptorArena> arena(
                config.push_descriptors ? nullptr : create_arena(kernel.get(), 3).value);
            CHECK(record(prepared->host.commands, kernel.get(), call_of(*prepared), arena.get()));
            const auto& words = fake().shaders();  // the constants are in the code
            REQUIRE(words.size() == 2 * shaders);
            for (std::size_t i = 0; i < shaders; ++i) CHECK(words[i] == words[shaders + i]);
            const std::vector<Command> all = dispatches(prepared->host);
            const std::size_t count = config.push_descriptors ? 1 : 3;
            REQUIRE(all.size() == 2 * count);
            for (std::size_t i = 0; i < count; ++i) {
                const Command &in_c = all[i], &in_cpp = all[count + i];
                CHECK(in_c.pushed == in_cpp.pushed);
                REQUIRE(in_c.descriptors.size() == in_cpp.descriptors.size());
                for (const auto& [binding, descriptor] : in_c.descriptors) {
                    CAPTURE(binding);
                    const VkDescriptorBufferInfo &a = descriptor.buffer,
                                                 &b = in_cpp.descriptors.at(binding).buffer;
                    CHECK(a.buffer == b.buffer);
                    CHECK(a.offset == b.offset);
                    CHECK(a.range == b.range);
                }
            }
        }
        check_clean();
    }
}

TEST_CASE("C: a record makes the calls that it makes from C++, and allocates nothing") {
    for (const bool push_descriptors : {true, false}) {
        const FakeConfig config{.push_descriptors = push_descriptors};
        fake().restart(config);
        {
            const auto prepared = prepare_record(config);
            const std::size_t asked = prepared->host.allocator.allocated;
            fake().forget_calls();
            observe_host_memory();
            const Status status = record_call(*prepared);
            CHECK(observed_allocations() == 0);
            CHECK(prepared->host.allocator.allocated == asked);
            INFO(status.what);
            CHECK(status);
            using Names = std::vector<std::string>;
            const Names pushes = {"vkCmdBeginDebugUtilsLabelEXT",
                                  "vkCmdPushDescriptorSetKHR",
                                  "vkCmdBindPipeline",
                                  "vkCmdPushConstants",
                                  "vkCmdDispatch",
                                  "vkCmdEndDebugUtilsLabelEXT"};
            const Names sets = {"vkCmdBeginDebugUtilsLabelEXT", "vkUpdateDescriptorSets",
                                "vkCmdBindDescriptorSets",      "vkCmdBindPipeline",
                                "vkCmdPushConstants",           "vkCmdDispatch",
                                "vkCmdEndDebugUtilsLabelEXT"};
            CHECK(fake().calls() == (push_descriptors ? pushes : sets));
        }
        check_clean();
    }
}

}  // namespace vkrope::test
