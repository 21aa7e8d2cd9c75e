// SPDX-License-Identifier: MIT
// create() and arenas: which objects are made, with which parameters, and that all of them are
// destroyed.
#include <map>
#include <set>

#include "kernel/kernel_object.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test {

namespace {

// SPIR-V 1.3, section 3.32: OpSpecConstantTrue to OpSpecConstantOp.
std::size_t specialisation_constants(const std::vector<std::uint32_t>& words) {
    std::size_t count = 0;
    for (std::size_t at = 5; at < words.size() && words[at] >> 16 != 0; at += words[at] >> 16) {
        const std::uint32_t op = words[at] & 0xffff;
        count += op >= 48 && op <= 52;
    }
    return count;
}

std::size_t storage_buffers_of_layout() {
    const Object* layout = fake().find(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT,
                                       fake().only(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT), "test");
    std::size_t count = 0;
    for (const auto& binding : layout->bindings)
        count += binding.descriptorType == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    return count;
}

}  // namespace

TEST_CASE(
    "create: at most six pipelines, nine with V, from the caller's cache, with the caller's "
    "allocator, and modules without "
    "constants to set") {
    for (const std::uint32_t storage_buffers : {4u, 5u, 6u, 8u, 16u}) {
        for (const auto type :
             {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_CPU}) {
            for (const AngleSource angles :
                 {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                  VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER}) {
                for (const auto& [k_dim, v_dim] : {std::pair{0u, 0u},
                                                   {128u, 0u},
                                                   {130u, 0u},
                                                   {128u, 128u},
                                                   {130u, 65u},
                                                   {0u, 128u}}) {
                    CAPTURE(storage_buffers);
                    CAPTURE(k_dim);
                    CAPTURE(v_dim);
                    KernelHost host({.storage_buffers = storage_buffers, .type = type}, true);
                    KernelInfo info = kernel_info(angles);
                    info.tensor[K].head_dim = k_dim;
                    if (k_dim == 0) info.tensor[K] = {};
                    info.tensor[V].head_dim = v_dim;
                    info.positions = VKROPE_POSITIONS_IDS;
                    const std::size_t alive = fake().alive().size();
                    const auto kernel = create(host.ref, info);
                    INFO(kernel.status.what);
                    REQUIRE(kernel);
                    const std::size_t pipelines = fake().count("vkCreateComputePipelines");
                    CHECK(pipelines >= 1);
                    CHECK(pipelines <= (v_dim == 0 ? 6 : 9));
                    CHECK(fake().count("vkCreateShaderModule") ==
                          fake().count("vkDestroyShaderModule"));
                    CHECK(fake().alive().size() == alive + pipelines + 2);
                    CHECK(host.allocator.allocated == 2 * pipelines + 2);
                    CHECK(host.allocator.freed == pipelines);
                    const Object* pipeline = fake().find(
                        VK_OBJECT_TYPE_PIPELINE, fake().only(VK_OBJECT_TYPE_PIPELINE), "test");
                    CHECK(pipeline->cache == number_of(host.ref.pipeline_cache));
                    CHECK(pipeline->allocator == host.ref.allocator);
                    CHECK(pipeline->name.find("vkrope") == 0);
                    REQUIRE(fake().shaders().size() == pipelines);
                    for (const auto& words : fake().shaders()) {
                        CHECK(words[0] == 0x07230203);
                        CHECK(specialisation_constants(words) == 0);
                    }
                    // One tensor, its table and its ids; then K; then V if its heads are K's; then
                    // the counter. If these are too many, V leaves first, then K, then the counter.
                    // V by itself binds as many as K.
                    const std::size_t alone = angles == VKROPE_ANGLES_DIRECT_BUFFER ? 4 : 3;
                    const std::size_t together = alone + (k_dim == 0 && v_dim == 0 ? 1 : 3);
                    const std::size_t with_v = together + (v_dim != 0 && v_dim == k_dim ? 2 : 0);
                    std::size_t expected = alone;
                    for (const std::size_t fewer : {with_v, together, alone + 1}) {
                        if (storage_buffers >= fewer) {
                            expected = fewer;
                            break;
                        }
                    }
                    CHECK(storage_buffers_of_layout() == expected);
                    destroy(kernel.value);
                    CHECK(fake().alive().size() == alive);
                    CHECK(host.allocator.allocated == host.allocator.freed);
                    check_no_faults();
                }
            }
        }
    }
}

TEST_CASE(
    "create: a lane has one head of a tensor on Arm, Broadcom and Imagination, four on other GPUs, "
    "and all on a processor") {
    constexpr std::uint32_t intel = 0x8086, arm = 0x13b5, broadcom = 0x14e4, imagination = 0x1010,
                            amd = 0x1002, nvidia = 0x10de, qualcomm = 0x5143, apple = 0x106b,
                            nobody = 0;
    const std::set<std::uint32_t> of_one = {arm, broadcom, imagination};
    std::map<std::uint32_t, std::set<std::vector<std::vector<std::uint32_t>>>>
        words_of;  // by heads per lane
    for (const std::uint32_t vendor :
         {intel, arm, broadcom, imagination, amd, nvidia, qualcomm, apple, nobody}) {
        for (const auto type :
             {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
              VK_PHYSICAL_DEVICE_TYPE_CPU}) {
            CAPTURE(vendor);
            CAPTURE(int(type));
            const KernelHost host({.type = type, .vendor = vendor});
            KernelInfo info = kernel_info();
            info.tensor[Q].heads = info.tensor[K].heads =
                64;  // 8 of them side by side in a workgroup
            const Owned<Kernel> kernel(create(host.ref, info).value);
            REQUIRE(kernel);
            const bool processor = type == VK_PHYSICAL_DEVICE_TYPE_CPU;
            const std::uint32_t heads = processor ? 0 : of_one.contains(vendor) ? 1 : 4;
            std::uint32_t many = 0;
            for (std::uint32_t i = 0; i < kernel->pipeline_count; ++i) {
                const Geometry& geometry = kernel->pipelines[i].geometry;
                CHECK(geometry.k_after_q == (heads == 1));
                if (heads != 1 && geometry.q_batch == 1) continue;  // for calls with few tokens
                ++many;
                CHECK(geometry.q_batch == heads);
                CHECK(geometry.k_batch == heads);
            }
            CHECK(many == 3);  // one per access width
            words_of[heads].insert(fake().shaders());
            check_no_faults();
        }
    }
    // The code depends on nothing else of the vendor.
    CHECK(words_of.size() == 3);
    std::set<std::vector<std::vector<std::uint32_t>>> all;
    for (const auto& [heads, words] : words_of) {
        CAPTURE(heads);
        CHECK(words.size() == 1);
        all.insert(words.begin(), words.end());
    }
    CHECK(all.size() == 3);
}

TEST_CASE(
    "create: names are given where debug utils are enabled, and nothing of them is called "
    "elsewhere") {
    KernelHost host({.debug_utils = false});
    const auto kernel = create(host.ref, kernel_info());
    REQUIRE(kernel);
    CHECK(fake().count("vkSetDebugUtilsObjectNameEXT") == 0);
    destroy(kernel.value);
    check_no_faults();
}

TEST_CASE("create: functions of debug utils may be known to the instance alone") {
    KernelHost host({.device_finds_debug_utils = false});
    const auto kernel = create(host.ref, kernel_info());
    INFO(kernel.status.what);
    REQUIRE(kernel);
    CHECK(fake()
              .find(VK_OBJECT_TYPE_PIPELINE, fake().only(VK_OBJECT_TYPE_PIPELINE), "test")
              ->name.find("vkrope") == 0);
    REQUIRE(record(host.commands, kernel.value, kernel_call(host)));
    CHECK(recorded(host).front() == "vkCmdBeginDebugUtilsLabelEXT");
    CHECK(recorded(host).back() == "vkCmdEndDebugUtilsLabelEXT");
    destroy(kernel.value);
    check_no_faults();
}

TEST_CASE("create: an allocator without memory is out_of_host_memory, and nothing is left") {
    std::size_t allocations = 0;
    for (std::size_t fail_at = 0; fail_at <= allocations; ++fail_at) {
        {
            KernelHost host({}, true);
            host.allocator.fail_at = fail_at;
            const auto kernel = create(host.ref, kernel_info());
            if (fail_at == 0) allocations = host.allocator.allocated;
            CHECK(kernel.status.code ==
                  (fail_at == 0 ? VKROPE_SUCCESS : VKROPE_ERROR_OUT_OF_HOST_MEMORY));
            destroy(kernel.value);
            CHECK(host.allocator.allocated == host.allocator.freed);
        }
        check_clean();
    }
    CHECK(allocations >= 10);
}

TEST_CASE("an arena: one pool, all sets at once, with the caller's allocator") {
    KernelHost host({.push_descriptors = false}, true);
    const auto kernel = create(host.ref, kernel_info());
    REQUIRE(kernel);
    fake().forget_calls();
    const auto arena = create_arena(kernel.value, 5);
    REQUIRE(arena);
    CHECK(fake().calls() == std::vector<std::string>{"vkCreateDescriptorSetLayout",
                                                     "vkCreateDescriptorPool",
                                                     "vkAllocateDescriptorSets"});
    fake().forget_calls();
    reset(arena.value);
    CHECK(fake().calls().empty());
    destroy(kernel.value);  // the arena outlives it
    fake().forget_calls();
    destroy(arena.value);
    CHECK(fake().calls() ==
          std::vector<std::string>{"vkDestroyDescriptorPool", "vkDestroyDescriptorSetLayout"});
    CHECK(host.allocator.allocated == host.allocator.freed);
    CHECK(fake().only(VK_OBJECT_TYPE_DESCRIPTOR_SET) == 0);
    check_no_faults();
}

TEST_CASE(
    "an arena serves every kernel of its device; with few storage buffers, those that store no "
    "scales, those without a finish, or of one angle source") {
    for (const std::uint32_t storage_buffers : {4u, 8u, 9u, 10u, 11u, 14u, 15u, 17u, 18u, 19u}) {
        KernelHost host({.storage_buffers = storage_buffers, .push_descriptors = false});
        const Owned<Kernel> factored(
            create(host.ref, kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE)).value);
        const Owned<Kernel> direct(
            create(host.ref, kernel_info(VKROPE_ANGLES_DIRECT_TEXTURE)).value);
        const Owned<Kernel> computed(create(host.ref, kernel_info(VKROPE_ANGLES_COMPUTED)).value);
        const Owned<PositionKernel> positions(create_positions(host.ref).value);
        REQUIRE((factored && direct && computed && positions));
        Owned<Kernel> first(create(host.ref, kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE)).value);
        const Owned<DescriptorArena> arena(create_arena(first.get(), 16).value);
        first.reset();  // the arena does not need it any more
        REQUIRE(arena);
        const bool all = storage_buffers >= 11;
        CAPTURE(storage_buffers);
        const auto rotate = [&](const Owned<Kernel>& kernel, AngleSource source) {
            return record(host.commands, kernel.get(), kernel_call(host, 7, source), arena.get());
        };
        CHECK(rotate(factored, VKROPE_ANGLES_FACTORED_TEXTURE));
        CHECK(rotate(direct, VKROPE_ANGLES_DIRECT_TEXTURE));
        // The same source, with ids and without K.
        KernelInfo alone = kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE);
        alone.positions = VKROPE_POSITIONS_IDS;
        alone.tensor[K] = {};
        const Owned<Kernel> with_ids(create(host.ref, alone).value);
        Call by_ids = kernel_call(host, 7, VKROPE_ANGLES_FACTORED_TEXTURE);
        by_ids.in[K] = by_ids.out[K] = {};
        by_ids.positions.ids = {host.words, 0, 28};
        CHECK(record(host.commands, with_ids.get(), by_ids, arena.get()));
        if (storage_buffers >= 9) {  // and with V
            const Owned<Kernel> values(
                create(host.ref, with_v(kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE))).value);
            const Call call = with_v(host, kernel_call(host, 7, VKROPE_ANGLES_FACTORED_TEXTURE));
            CHECK(record(host.commands, values.get(), call, arena.get()));
        }
        const Status other = rotate(computed, VKROPE_ANGLES_COMPUTED);
        CHECK(other.code == (all ? VKROPE_SUCCESS : VKROPE_ERROR_INVALID_ARGUMENT));
        if (!all) check_names(other.what, "18 " + std::to_string(storage_buffers));
        PositionCall call{.tokens = 4};
        call.out = {host.words, 0, 16};
        CHECK(record_positions(host.commands, positions.get(), call, arena.get()).code ==
              (all ? VKROPE_SUCCESS : VKROPE_ERROR_INVALID_ARGUMENT));
        // Norms with parameters and factors of tokens: from one to the other, and back.
        const KernelInfo info = with_finish(
            kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE),
            full_finish(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_HEAD, VKROPE_NORM_PLACE_BEFORE));
        const Owned<Kernel> finished(create(host.ref, info).value);
        const Owned<DescriptorArena> of_finished(create_arena(finished.get(), 16).value);
        REQUIRE(of_finished);
        const Call steps = with_finish(host, info,
                                       kernel_call(host, 7, VKROPE_ANGLES_FACTORED_TEXTURE));
        const Code expected = storage_buffers >= 15 ? VKROPE_SUCCESS
                                                    : VKROPE_ERROR_INVALID_ARGUMENT;
        CHECK(record(host.commands, finished.get(), steps, of_finished.get()));
        CHECK(record(host.commands, finished.get(), steps, arena.get()).code == expected);
        CHECK(record(host.commands, computed.get(), kernel_call(host, 7, VKROPE_ANGLES_COMPUTED),
                     of_finished.get())
                  .code == expected);
        // A scale for each row of K.
        KernelInfo scaled = kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE);
        scaled.tensor[K].out = VKROPE_INT8;
        scaled.tensor[K].heads = 2;
        scaled.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_MADE;
        const Owned<Kernel> of_scales(create(host.ref, scaled).value);
        const Owned<DescriptorArena> own_arena(create_arena(of_scales.get(), 16).value);
        REQUIRE(own_arena);
        Call with_scales = kernel_call(host, 7, VKROPE_ANGLES_FACTORED_TEXTURE);
        with_scales.out[K].where.buffer = host.k_out;
        with_scales.scales_out[K] = {host.words, 0xf0000, 7 * 2 * 4};
        CHECK(record(host.commands, of_scales.get(), with_scales, own_arena.get()));
        CHECK(record(host.commands, of_scales.get(), with_scales, arena.get()).code ==
              (storage_buffers >= 18 ? VKROPE_SUCCESS : VKROPE_ERROR_INVALID_ARGUMENT));
        check_no_faults();
    }
}

TEST_CASE(
    "an arena of one source of angles serves every kernel without V, and with V where the device "
    "binds V's two buffers besides") {
    // Q and K with ids, slots and the counter bind 7 storage buffers, to which a source adds none,
    // its table, or the caller's two.
    const struct {
        AngleSource angles;
        std::uint32_t without_v;
    } sources[] = {{VKROPE_ANGLES_FACTORED_TEXTURE, 7},
                   {VKROPE_ANGLES_DIRECT_TEXTURE, 7},
                   {VKROPE_ANGLES_COMPUTED, 7},
                   {VKROPE_ANGLES_DIRECT_BUFFER, 8},
                   {VKROPE_ANGLES_COS_SIN_CACHE, 9}};
    for (const auto& [angles, without_v] : sources) {
        for (std::uint32_t storage_buffers = without_v - 1; storage_buffers <= 12;
             ++storage_buffers) {
            CAPTURE(int(angles));
            CAPTURE(storage_buffers);
            const KernelHost host({.storage_buffers = storage_buffers, .push_descriptors = false});
            const KernelInfo q_and_k = kernel_info(angles);
            KernelInfo by_ids = q_and_k, alone = q_and_k;
            by_ids.positions = VKROPE_POSITIONS_IDS;
            alone.tensor[K] = {};
            AnglePlan plan = angle_plan(angles);
            if (angles == VKROPE_ANGLES_COS_SIN_CACHE)
                plan = {.source = angles,
                        .bytes = 512 * 64 * 4,
                        .pairs = 64,
                        .rows = 512,
                        .row_stride = 64};
            const auto call_of = [&](const KernelInfo& info) {
                Call call = kernel_call(host, 7, angles);
                call.angles.plan = &plan;
                if (angles == VKROPE_ANGLES_COS_SIN_CACHE)
                    call.angles.buffer = call.angles.sin = {host.words, 4096, plan.bytes};
                if (info.positions == VKROPE_POSITIONS_IDS)
                    call.positions.ids = {host.words, 0, 28};
                if (info.tensor[K].head_dim == 0) call.in[K] = call.out[K] = {};
                return info.tensor[V].head_dim != 0 ? with_v(host, call) : call;
            };
            const auto serves = [&](const KernelInfo& made_for, const KernelInfo& info) {
                const Owned<Kernel> owner(create(host.ref, made_for).value),
                    kernel(create(host.ref, info).value);
                REQUIRE((owner && kernel));
                const Owned<DescriptorArena> arena(create_arena(owner.get(), 4).value);
                const Status status = record(host.commands, kernel.get(), call_of(info),
                                             arena.get());
                if (!status) check_error(status, VKROPE_ERROR_INVALID_ARGUMENT, "arena");
                return bool(status);
            };
            CHECK(serves(q_and_k, by_ids));
            CHECK(serves(q_and_k, alone) == (storage_buffers >= without_v));
            CHECK(serves(by_ids, alone) == (storage_buffers >= without_v));
            if (storage_buffers >= without_v) {  // with fewer, V has its own dispatch, as a K, and
                                                 // these kernels bind no more than without V
                CHECK(serves(q_and_k, with_v(q_and_k)) == (storage_buffers >= without_v + 2));
                CHECK(serves(with_v(by_ids), with_v(q_and_k)) ==
                      (storage_buffers >= without_v + 1));
                CHECK(serves(with_v(q_and_k), alone) == (storage_buffers >= without_v + 2));
            }
            check_no_faults();
        }
    }
}

TEST_CASE("an entry point that is missing is named, and nothing is created") {
    for (const char* missing : {"vkGetPhysicalDeviceProperties", "vkGetPhysicalDeviceProperties2",
                                "vkGetPhysicalDeviceFeatures2", "vkGetDeviceProcAddr",
                                "vkEnumerateDeviceExtensionProperties", "vkCreateShaderModule",
                                "vkCmdDispatch", "vkDestroyPipeline", "vkCmdPushDescriptorSetKHR",
                                "vkCmdBeginDebugUtilsLabelEXT", "vkSetDebugUtilsObjectNameEXT"}) {
        KernelHost host;
        fake().config.missing = {missing};
        const std::size_t alive = fake().alive().size();
        const auto kernel = create(host.ref, kernel_info());
        check_error(kernel.status, VKROPE_ERROR_INVALID_ARGUMENT, missing);
        CHECK(kernel.value == nullptr);
        CHECK(fake().alive().size() == alive);
        check_no_faults();
    }
}

TEST_CASE("destroying null is nothing") {
    fake().restart();
    destroy(static_cast<Kernel*>(nullptr));
    destroy(static_cast<DescriptorArena*>(nullptr));
    reset(nullptr);
    CHECK(fake().calls().empty());
}

}  // namespace vkrope::test
