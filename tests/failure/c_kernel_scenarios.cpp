// SPDX-License-Identifier: MIT
#include "c_kernel.hpp"
#include "c_scenarios.hpp"

namespace vkrope::test {

namespace {

Status ask_requirements(void* prepared) {
    const vkrope_device_ref& ref = static_cast<PreparedInC*>(prepared)->ref;
    vkrope_requirements needs = {};
    return answer([&](auto* error) {
        return vkrope_get_requirements(ref.instance, ref.physical, ref.get_instance_proc_addr,
                                       &needs, error);
    });
}

Status create_kernel(void* prepared) {
    OwnedKernel kernel;
    return make_kernel(*static_cast<PreparedInC*>(prepared), kernel);
}

Status create_arena(void* prepared) {
    OwnedArena arena;
    return make_arena(*static_cast<PreparedInC*>(prepared), arena);
}

Status record_one(void* prepared) {
    return record_call(*static_cast<PreparedInC*>(prepared));
}

}  // namespace

std::vector<Scenario> kernel_scenarios_in_c() {
    const auto prepare = [] { return std::make_shared<PreparedInC>(FakeConfig{}); };
    const FakeConfig no_push{.push_descriptors = false};
    const FakeConfig apart{.storage_buffers = 4, .push_descriptors = false, .debug_utils = false};
    return {
        {.name = "requirements, from C", .prepare = prepare, .act = ask_requirements},
        {.name = "create and destroy a kernel, push descriptors, from C",
         .prepare = prepare,
         .act = create_kernel},
        {.name = "create and destroy a kernel, apart, no labels, from C",
         .config = apart,
         .prepare = [apart] { return std::make_shared<PreparedInC>(apart); },
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
         .prepare =
             [] { return std::make_shared<PreparedInC>(FakeConfig{}, VKROPE_ANGLES_COMPUTED); },
         .act = create_kernel},
        {.name = "create and destroy a kernel with norms of tokens and V, apart, from C",
         .config = apart,
         .prepare =
             [apart] {
                 return std::make_shared<PreparedInC>(apart, VKROPE_ANGLES_FACTORED_TEXTURE,
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

}  // namespace vkrope::test
