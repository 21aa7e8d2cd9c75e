// SPDX-License-Identifier: MIT
// Tests create() and arenas: which Vulkan objects they make, with which parameters, and that all of
// these objects are destroyed.
#include <map>
#include <set>

#include "kernel/kernel_object.hpp"
#include "support/fake_vulkan/kernel_host.hpp"
#include "support/spirv.hpp"

namespace vkrope::test {

namespace {

std::size_t specialisation_constants(const std::vector<std::uint32_t>& words) {
    std::size_t count = 0;
    each_instruction(words, [&](spv::Op op, Words) {
        count += op >= spv::OpSpecConstantTrue && op <= spv::OpSpecConstantOp;
    });
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
    "create: makes at most six pipelines, nine with V, with the caller's cache and allocator, from "
    "modules without "
    "specialisation constants") {
    for (const std::uint32_t storage_buffers : {4u, 5u, 6u, 8u, 16u}) {
        for (const auto type :
             {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, VK_PHYSICAL_DEVICE_TYPE_CPU}) {
            for (const AngleSource angles :
                 {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED,
                  VKROPE_ANGLES_DIRECT_TEXTURE, VKROPE_ANGLES_DIRECT_BUFFER}) {
                for (const auto& dims : {std::pair{0u, 0u},
                                         {128u, 0u},
                                         {130u, 0u},
                                         {128u, 128u},
                                         {130u, 65u},
                                         {0u, 128u}}) {
                    const std::uint32_t k_dim = dims.first, v_dim = dims.second;
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
                    // A dispatch binds a tensor, its table and its ids. If the device binds enough
                    // buffers, it also binds K, then the counter, and V if its head_dim is that of
                    // K. V alone binds as many buffers as K.
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
                    vkrope_kernel_destroy(kernel.value);
                    CHECK(fake().alive().size() == alive);
                    CHECK(host.allocator.allocated == host.allocator.freed);
                    check_no_faults();
                }
            }
        }
    }
}

TEST_CASE(
    "create: a lane takes one head of a tensor on Arm, Broadcom and Imagination, four on other "
    "GPUs, and all on a CPU") {
    constexpr std::uint32_t intel = 0x8086, arm = 0x13b5, broadcom = 0x14e4, imagination = 0x1010,
                            amd = 0x1002, nvidia = 0x10de, qualcomm = 0x5143, apple = 0x106b,
                            nobody = 0;
    const std::set<std::uint32_t> of_one = {arm, broadcom, imagination};
    std::map<std::uint32_t, std::set<std::vector<std::vector<std::uint32_t>>>>
        words_of;  // by the number of heads per lane; plus 100 without accesses of 16 bytes
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
                64;  // 8 of the heads are side by side in a workgroup
            const Owned<Kernel> kernel(create(host.ref, info).value);
            REQUIRE(kernel);
            const bool processor = type == VK_PHYSICAL_DEVICE_TYPE_CPU;
            const std::uint32_t heads = processor ? 0 : of_one.contains(vendor) ? 1 : 4;
            std::uint32_t many = 0;
            for (std::uint32_t i = 0; i < kernel->pipeline_count; ++i) {
                const Geometry& geometry = kernel->pipelines[i].geometry;
                CHECK(geometry.few_registers == (heads == 1));
                if (heads != 1 && geometry.q_batch == 1) continue;  // a pipeline for few tokens
                ++many;
                CHECK(geometry.q_batch == heads);
                CHECK(geometry.k_batch == heads);
            }
            // One pipeline for each access width; on a GPU, words and elements are for any load.
            CHECK(many == (processor ? 3 : heads != 1 ? 2 : vendor == broadcom ? 3 : 4));
            const bool pairs = vendor == broadcom && !processor;
            words_of[heads + (pairs ? 100 : 0)].insert(fake().shaders());
            check_no_faults();
        }
    }
    // The shaders depend on the vendor only through these two.
    CHECK(words_of.size() == 4);
    std::set<std::vector<std::vector<std::uint32_t>>> all;
    for (const auto& [of, words] : words_of) {
        const std::uint32_t heads = of;
        CAPTURE(heads);
        CHECK(words.size() == 1);
        all.insert(words.begin(), words.end());
    }
    CHECK(all.size() == 4);
}

TEST_CASE("create: finds functions of debug utils that only the instance knows") {
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
    vkrope_kernel_destroy(kernel.value);
    check_no_faults();
}

TEST_CASE("an arena makes one pool and all sets at once, with the caller's allocator") {
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
    vkrope_arena_reset(arena.value);
    CHECK(fake().calls().empty());
    vkrope_kernel_destroy(kernel.value);  // the arena outlives the kernel
    fake().forget_calls();
    vkrope_arena_destroy(arena.value);
    CHECK(fake().calls() ==
          std::vector<std::string>{"vkDestroyDescriptorPool", "vkDestroyDescriptorSetLayout"});
    CHECK(host.allocator.allocated == host.allocator.freed);
    CHECK(fake().only(VK_OBJECT_TYPE_DESCRIPTOR_SET) == 0);
    check_no_faults();
}

namespace {

// Makes a kernel of this info and records a call that it accepts.
Status record_with(const KernelHost& host, const KernelInfo& info, DescriptorArena* arena) {
    const Owned<Kernel> kernel(create(host.ref, info).value);
    REQUIRE(kernel);
    Call call = kernel_call(host, 7, info.angles);
    const AngleTableLayout cache = plan_cos_sin_cache(64, 512, 64, VKROPE_F32).value;
    if (info.angles == VKROPE_ANGLES_COS_SIN_CACHE) {
        call.angles.layout = &cache;
        call.angles.buffer = call.angles.sin = {host.words, 4096, cache.bytes};
    }
    if (info.positions == VKROPE_POSITIONS_IDS) call.positions.ids = {host.words, 0, 28};
    if (info.tensor[K].head_dim == 0) call.in[K] = call.out[K] = {};
    if (info.tensor[V].head_dim != 0) call = with_v(host, call);
    if (info.tensor[K].ops.store_scale == VKROPE_STORE_SCALE_MADE)
        call.scales_out[K] = {host.words, 0xf0000, 7 * 2 * 4};
    if (info.tensor[K].second_of != VKROPE_SECOND_NONE)
        call.second[K] = {host.words, 0xe0000, 7 * 2 * 128 * 4};
    for (const TensorIndex t : {Q, K})
        if (info.tensor[t].ops.norm.weight_bound)
            call.norm_weight[t] = {host.words, 0xd8000, 128 * 2};
    return record(host.commands, kernel.get(), with_ops(host, info, call), arena);
}

// Makes an arena for a kernel of this info and destroys the kernel, which the arena does not need.
Owned<DescriptorArena> arena_of(const KernelHost& host, const KernelInfo& info) {
    const Owned<Kernel> kernel(create(host.ref, info).value);
    REQUIRE(kernel);
    Owned<DescriptorArena> arena(create_arena(kernel.get(), 16).value);
    REQUIRE(arena);
    return arena;
}

}  // namespace

TEST_CASE(
    "an arena serves every kernel of its device; with few storage buffers, only kernels that bind "
    "no "
    "weights, store no scales, have no ops, or share its angle source") {
    const KernelInfo factored = kernel_info(VKROPE_ANGLES_FACTORED_TEXTURE),
                     computed = kernel_info(VKROPE_ANGLES_COMPUTED),
                     finished = with_ops(factored, full_ops(VKROPE_NORM_RMS, VKROPE_NORM_SPAN_HEAD,
                                                            VKROPE_NORM_PLACE_BEFORE));
    KernelInfo alone = factored, scaled = factored, twice = factored, bound = factored;
    for (const TensorIndex t : {Q, K})
        bound.tensor[t].ops.norm = {.kind = VKROPE_NORM_RMS,
                                    .eps = 1e-6f,
                                    .weight = VKROPE_PARAMETER_CHANNEL,
                                    .weight_bound = true,
                                    .weight_type = VKROPE_F16};
    twice.tensor[K].heads = 2;
    twice.tensor[K].second_of = VKROPE_SECOND_INPUT;
    alone.positions = VKROPE_POSITIONS_IDS;
    alone.tensor[K] = {};
    scaled.tensor[K].out = VKROPE_INT8;  // with a scale for each row of K
    scaled.tensor[K].heads = 2;
    scaled.tensor[K].ops.store_scale = VKROPE_STORE_SCALE_MADE;
    for (const std::uint32_t storage_buffers :
         {4u, 8u, 9u, 10u, 11u, 12u, 15u, 16u, 18u, 19u, 20u, 21u, 23u, 24u}) {
        CAPTURE(storage_buffers);
        const KernelHost host({.storage_buffers = storage_buffers, .push_descriptors = false});
        const auto served = [&](bool in_it) {
            return in_it ? VKROPE_SUCCESS : VKROPE_ERROR_INVALID_ARGUMENT;
        };
        const auto arena = arena_of(host, factored), of_finished = arena_of(host, finished);
        CHECK(record_with(host, factored, arena.get()));
        CHECK(record_with(host, kernel_info(VKROPE_ANGLES_DIRECT_TEXTURE), arena.get()));
        CHECK(record_with(host, alone, arena.get()));
        if (storage_buffers >= 9) CHECK(record_with(host, with_v(factored), arena.get()));
        const Status other = record_with(host, computed, arena.get());
        CHECK(other.code == served(storage_buffers >= 12));
        if (!other) check_names(other.what, "24 " + std::to_string(storage_buffers));
        const Owned<PositionKernel> positions(create_positions(host.ref).value);
        REQUIRE(positions);
        PositionCall call{.tokens = 4};
        call.out = {host.words, 0, 16};
        CHECK(record_positions(host.commands, positions.get(), call, arena.get()).code ==
              served(storage_buffers >= 12));
        // Norms with parameters, and scales of tokens: each kernel with the other's arena.
        CHECK(record_with(host, finished, of_finished.get()));
        CHECK(record_with(host, finished, arena.get()).code == served(storage_buffers >= 16));
        CHECK(record_with(host, computed, of_finished.get()).code == served(storage_buffers >= 16));
        CHECK(record_with(host, scaled, arena_of(host, scaled).get()));
        CHECK(record_with(host, scaled, arena.get()).code == served(storage_buffers >= 19));
        CHECK(record_with(host, twice, arena_of(host, twice).get()));
        // With 4 buffers the second destination has dispatches of its own, and no more bindings.
        CHECK(record_with(host, twice, arena.get()).code ==
              served(storage_buffers >= 21 || storage_buffers == 4));
        const auto of_bound = arena_of(host, bound);
        CHECK(record_with(host, bound, of_bound.get()));
        CHECK(record_with(host, factored, of_bound.get()).code == served(storage_buffers >= 24));
        CHECK(record_with(host, bound, arena.get()).code == served(storage_buffers >= 24));
        check_no_faults();
    }
}

TEST_CASE(
    "an arena of one angle source serves every kernel without V, and kernels with V where the "
    "device can bind V's two buffers, too") {
    // Q and K with ids, slots and the counter bind 7 storage buffers. The angle source adds none,
    // one for its table, or two for the caller's cos and sin.
    const std::pair<AngleSource, std::uint32_t> sources[] = {{VKROPE_ANGLES_FACTORED_TEXTURE, 7},
                                                             {VKROPE_ANGLES_DIRECT_TEXTURE, 7},
                                                             {VKROPE_ANGLES_COMPUTED, 7},
                                                             {VKROPE_ANGLES_DIRECT_BUFFER, 8},
                                                             {VKROPE_ANGLES_COS_SIN_CACHE, 9}};
    for (const auto& [source, without_v] : sources) {
        const AngleSource angles = source;
        for (std::uint32_t storage_buffers = without_v - 1; storage_buffers <= 12;
             ++storage_buffers) {
            CAPTURE(int(angles));
            CAPTURE(storage_buffers);
            const KernelHost host({.storage_buffers = storage_buffers, .push_descriptors = false});
            const KernelInfo q_and_k = kernel_info(angles);
            KernelInfo by_ids = q_and_k, alone = q_and_k;
            by_ids.positions = VKROPE_POSITIONS_IDS;
            alone.tensor[K] = {};
            const auto serves = [&](const KernelInfo& made_for, const KernelInfo& info) {
                const Status status = record_with(host, info, arena_of(host, made_for).get());
                if (!status) check_error(status, VKROPE_ERROR_INVALID_ARGUMENT, "arena");
                return bool(status);
            };
            CHECK(serves(q_and_k, by_ids));
            CHECK(serves(q_and_k, alone) == (storage_buffers >= without_v));
            CHECK(serves(by_ids, alone) == (storage_buffers >= without_v));
            // With fewer buffers, V has a separate dispatch and is bound like K, so that these
            // kernels bind no more than without V.
            if (storage_buffers >= without_v) {
                CHECK(serves(q_and_k, with_v(q_and_k)) == (storage_buffers >= without_v + 2));
                CHECK(serves(with_v(by_ids), with_v(q_and_k)) ==
                      (storage_buffers >= without_v + 1));
                CHECK(serves(with_v(q_and_k), alone) == (storage_buffers >= without_v + 2));
            }
            check_no_faults();
        }
    }
}

TEST_CASE("create: token_count is named where its buffer is one too many") {
    const KernelHost host({.storage_buffers = 5});
    KernelInfo info = kernel_info();
    info.tensor[Q] = {};
    info.positions = VKROPE_POSITIONS_IDS;
    info.scatter_kv = VK_TRUE;
    CHECK(own(create(host.ref, info)));
    info.token_count = VK_TRUE;
    check_error(create(host.ref, info).status, VKROPE_ERROR_LIMIT_EXCEEDED, "token_count 6 5");
    check_no_faults();
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

TEST_CASE("create: a tuning needs the mapping for GPUs, and lanes that the device has") {
    KernelInfo info = {.pairing = VKROPE_HALF_SPLIT,
                       .rotary_dim = 64,
                       .tensor = {{VKROPE_F16, VKROPE_F16, 64}},
                       .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                       .tuning = {.lane_heads = 2}};
    {
        const KernelHost processor({.type = VK_PHYSICAL_DEVICE_TYPE_CPU});
        check_error(create(processor.ref, info).status, VKROPE_ERROR_INVALID_ARGUMENT,
                    "tuning mapping VKROPE_MAPPING_GPU");
        info.mapping = VKROPE_MAPPING_GPU;
        CHECK(own(create(processor.ref, info)));
    }
    info.mapping = VKROPE_MAPPING_AUTOMATIC;
    const KernelHost gpu;
    CHECK(own(create(gpu.ref, info)));
    info.tuning.group_lanes = 1024;
    check_error(create(gpu.ref, info).status, VKROPE_ERROR_LIMIT_EXCEEDED,
                "tuning.group_lanes 1024 128 maxComputeWorkGroupInvocations");
    check_no_faults();
}

TEST_CASE("create: rows that do not fit in shared memory are not supported") {
    const KernelHost host;
    const auto made = create(host.ref, {.pairing = VKROPE_HALF_SPLIT,
                                        .rotary_dim = 64,
                                        .tensor = {{VKROPE_F32, VKROPE_Q8_0, 8192}},
                                        .angles = VKROPE_ANGLES_FACTORED_TEXTURE,
                                        .mapping = VKROPE_MAPPING_GPU});
    check_error(made.status, VKROPE_ERROR_NOT_SUPPORTED, "head_dim 32768 16384");
    CHECK(made.value == nullptr);
    check_no_faults();
}

}  // namespace vkrope::test
