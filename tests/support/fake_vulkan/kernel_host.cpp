// SPDX-License-Identifier: MIT
#include "kernel_host.hpp"

#include <cstdlib>
#include <cstring>
#include <map>

#include "host_memory.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

namespace {

void* VKAPI_PTR allocate(void* user, std::size_t bytes, std::size_t, VkSystemAllocationScope) {
    ++static_cast<CountedAllocator*>(user)->allocated;
    return std::malloc(bytes);
}

void* VKAPI_PTR reallocate(void*, void* memory, std::size_t bytes, std::size_t,
                           VkSystemAllocationScope) {
    return std::realloc(memory, bytes);
}

void VKAPI_PTR release(void* user, void* memory) {
    if (memory) ++static_cast<CountedAllocator*>(user)->freed;
    std::free(memory);
}

}  // namespace

CountedAllocator::CountedAllocator() {
    callbacks = {this, allocate, reallocate, release, nullptr, nullptr};
}

// Adds an object of the fake, whose parameters do not matter here.
template <class Handle>
void KernelHost::add(Handle handle, VkObjectType type) {
    made_.emplace_back(type, number_of(handle));
}

KernelHost::KernelHost(const FakeConfig& config, bool with_allocator) {
    fake().restart(config);
    const char* const debug_utils_name = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
    VkInstanceCreateInfo instance_info = {};
    instance_info.enabledExtensionCount = config.debug_utils;
    instance_info.ppEnabledExtensionNames = &debug_utils_name;
    VKROPE_FAKE(vkCreateInstance, VK_NULL_HANDLE)(&instance_info, nullptr, &ref.instance);
    std::uint32_t one = 1;
    VKROPE_FAKE(vkEnumeratePhysicalDevices, ref.instance)(ref.instance, &one, &ref.physical);
    std::vector<const char*> extensions = {"VK_KHR_portability_subset"};
    if (config.push_descriptors) extensions.push_back(VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME);
    if (config.float_controls) extensions.push_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
    if (config.float16) extensions.push_back(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
    VkPhysicalDeviceShaderFloat16Int8Features half = {};
    half.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES;
    half.shaderFloat16 = config.float16 && config.float16_feature;
    VkDeviceCreateInfo device_info = {};
    device_info.pNext = &half;
    device_info.enabledExtensionCount = std::uint32_t(extensions.size());
    device_info.ppEnabledExtensionNames = extensions.data();
    VKROPE_FAKE(vkCreateDevice, ref.instance)(ref.physical, &device_info, nullptr, &ref.device);
    add(ref.instance, VK_OBJECT_TYPE_INSTANCE);
    add(ref.device, VK_OBJECT_TYPE_DEVICE);

    VkCommandPool pool = VK_NULL_HANDLE;
    const VkCommandPoolCreateInfo pool_info = {};
    VKROPE_FAKE(vkCreateCommandPool, ref.instance)(ref.device, &pool_info, nullptr, &pool);
    add(pool, VK_OBJECT_TYPE_COMMAND_POOL);
    VkCommandBufferAllocateInfo commands_info = {};
    commands_info.commandPool = pool;
    commands_info.commandBufferCount = 1;
    VKROPE_FAKE(vkAllocateCommandBuffers, ref.instance)(ref.device, &commands_info, &commands);
    const VkCommandBufferBeginInfo begin_info = {};
    VKROPE_FAKE(vkBeginCommandBuffer, ref.instance)(commands, &begin_info);

    VkBufferCreateInfo buffer_info = {};
    buffer_info.size = buffer_bytes;
    buffer_info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
    for (VkBuffer* buffer : {&q, &k, &v, &q_out, &k_out, &v_out, &words}) {
        VKROPE_FAKE(vkCreateBuffer, ref.instance)(ref.device, &buffer_info, nullptr, buffer);
        add(*buffer, VK_OBJECT_TYPE_BUFFER);
    }
    Object image_view;
    view = reinterpret_cast<VkImageView>(std::uintptr_t(
        fake().create(VK_OBJECT_TYPE_IMAGE_VIEW, number_of(ref.device), nullptr, image_view)));
    add(view, VK_OBJECT_TYPE_IMAGE_VIEW);
    const VkPipelineCacheCreateInfo cache_info = {};
    VKROPE_FAKE(vkCreatePipelineCache, ref.instance)
    (ref.device, &cache_info, nullptr, &ref.pipeline_cache);
    add(ref.pipeline_cache, VK_OBJECT_TYPE_PIPELINE_CACHE);

    ref.get_instance_proc_addr = fake_get_instance_proc_addr;
    ref.enabled =
        (config.push_descriptors ? std::uint32_t{VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR} : 0) |
        (config.debug_utils ? std::uint32_t{VKROPE_DEVICE_FEATURE_DEBUG_UTILS} : 0) |
        (config.float_controls ? std::uint32_t{VKROPE_DEVICE_FEATURE_FLOAT_CONTROLS} : 0) |
        (half.shaderFloat16 ? std::uint32_t{VKROPE_DEVICE_FEATURE_SHADER_FLOAT16} : 0);
    if (with_allocator) ref.allocator = &allocator.callbacks;
    fake().forget_calls();
}

KernelHost::~KernelHost() {
    for (auto made = made_.rbegin(); made != made_.rend(); ++made)
        fake().destroy(made->first, made->second, nullptr, "~KernelHost");
}

VkPhysicalDeviceFloatControlsProperties all_float_controls() {
    VkPhysicalDeviceFloatControlsProperties all = {};
    all.denormBehaviorIndependence = all.roundingModeIndependence =
        VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
    for (VkBool32* mode :
         {&all.shaderRoundingModeRTEFloat16, &all.shaderRoundingModeRTEFloat32,
          &all.shaderDenormPreserveFloat16, &all.shaderDenormPreserveFloat32,
          &all.shaderSignedZeroInfNanPreserveFloat16, &all.shaderSignedZeroInfNanPreserveFloat32})
        *mode = VK_TRUE;
    return all;
}

KernelInfo kernel_info(AngleSource angles) {
    const TensorInfo width{VKROPE_F16, VKROPE_F16, 128, 0};
    return {.pairing = VKROPE_HALF_SPLIT,
            .rotary_dim = 128,
            .tensor = {width, width},
            .angles = angles};
}

const AngleTableLayout& angle_plan(AngleSource angles) {
    static const auto plans = [] {
        const Unobserved unobserved;
        RopeParams rotation;
        rotation.pairing = VKROPE_HALF_SPLIT;
        rotation.head_dim = rotation.rotary_dim = 128;
        rotation.inv_freq.assign(64, 1.0);
        std::map<AngleSource, AngleTableLayout> all;
        for (const AngleSource source :
             {VKROPE_ANGLES_FACTORED_TEXTURE, VKROPE_ANGLES_COMPUTED, VKROPE_ANGLES_DIRECT_TEXTURE})
            all[source] = plan_angles(rotation, source, 4096, 4096).value;
        all[VKROPE_ANGLES_DIRECT_BUFFER] =
            plan_angles(rotation, VKROPE_ANGLES_DIRECT_BUFFER, 512, 4096).value;
        return all;
    }();
    const auto found = plans.find(angles);
    return found == plans.end() ? plans.at(VKROPE_ANGLES_DIRECT_BUFFER) : found->second;
}

Call kernel_call(const KernelHost& host, std::uint32_t tokens, AngleSource angles) {
    const auto tensor = [&](VkBuffer buffer, std::uint32_t heads) {
        return Tensor{.where = {buffer, 0, VkDeviceSize{tokens} * heads * 128 * 2}, .heads = heads};
    };
    Call call{.tokens = tokens};
    call.in[Q] = tensor(host.q, 8);
    call.out[Q] = tensor(host.q_out, 8);
    call.in[K] = tensor(host.k, 2);
    call.out[K] = tensor(host.k_out, 2);
    call.angles.layout = &angle_plan(angles);
    if (angles == VKROPE_ANGLES_DIRECT_TEXTURE || angles == VKROPE_ANGLES_FACTORED_TEXTURE)
        call.angles.view = host.view;
    else
        call.angles.buffer = {host.words, 4096, angle_plan(angles).bytes};
    return call;
}

KernelInfo with_v(KernelInfo info) {
    info.tensor[V] = info.tensor[K];
    return info;
}

Call with_v(const KernelHost& host, Call call) {
    call.in[V] = call.in[K];
    call.out[V] = call.out[K];
    call.in[V].where.buffer = host.v;
    call.out[V].where.buffer = host.v_out;
    return call;
}

KernelInfo with_ops(KernelInfo info, Ops ops, std::uint32_t q_heads, std::uint32_t k_heads,
                    std::uint32_t v_heads) {
    if (info.tensor[Q].head_dim != 0) info.tensor[Q].ops = ops, info.tensor[Q].heads = q_heads;
    ops.scale_call = false;
    if (info.tensor[K].head_dim != 0) info.tensor[K].ops = ops, info.tensor[K].heads = k_heads;
    if (info.tensor[V].head_dim != 0) info.tensor[V].ops = ops, info.tensor[V].heads = v_heads;
    return info;
}

Call with_ops(const KernelHost& host, const KernelInfo& info, Call call) {
    const VkDeviceSize bytes = VkDeviceSize{std::max(call.batch, 1u)} * call.tokens * 4;
    const auto factors = [&](const Ops& ops, const Tensor& tensor, VkDeviceSize at) {
        return ops.scale_tokens && tensor.heads != 0 ? VkDescriptorBufferInfo{host.words, at, bytes}
                                                     : VkDescriptorBufferInfo{};
    };
    // No offset is a multiple of the alignment that a device requires.
    call.scale_tokens[Q] = factors(info.tensor[Q].ops, call.in[Q], 0xc0000 + 4);
    call.scale_tokens[K] = factors(info.tensor[K].ops, call.in[K], 0xd0000 + 12);
    call.scale_tokens[V] = factors(info.tensor[V].ops, call.in[V], 0xe0000 + 8);
    if (info.tensor[Q].ops.scale_call) call.q_scale = 0.5f;
    const std::size_t parameter_bytes = plan_parameters(info)->bytes;
    if (parameter_bytes != 0) call.parameters = {host.words, 0xf0000 + 16, parameter_bytes};
    return call;
}

Ops full_ops(NormKind kind, NormSpan span, NormPlace place) {
    const bool layer = kind == VKROPE_NORM_LAYER;
    return {.bias = VKROPE_PARAMETER_CHANNEL,
            .norm = {.kind = kind,
                     .span = span,
                     .place = place,
                     .eps = 1e-6f,
                     .weight = VKROPE_PARAMETER_HEAD_CHANNEL,
                     .bias = layer ? VKROPE_PARAMETER_HEAD_CHANNEL : VKROPE_PARAMETER_NONE},
            .clip = 2,
            .scale = 0.5f,
            .scale_call = true,
            .scale_tokens = true};
}

std::vector<std::string> recorded(const KernelHost& host) {
    std::vector<std::string> names;
    for (const Command& command : fake().commands(host.commands)) names.push_back(command.entry);
    return names;
}

std::vector<Command> dispatches(const KernelHost& host) {
    std::vector<Command> all = fake().commands(host.commands);
    std::erase_if(all, [](const Command& command) { return command.entry != "vkCmdDispatch"; });
    return all;
}

shader::Push pushed(const Command& dispatch) {
    shader::Push push = {};
    REQUIRE(dispatch.pushed.size() == sizeof push);
    std::memcpy(&push, dispatch.pushed.data(), sizeof push);
    return push;
}

std::uint32_t offset_of(const shader::Push& push, std::uint32_t which) {
    return push.offsets[which / 4] >> (8 * (which % 4)) & 0xff;
}

void check_no_faults() {
    for (const std::string& fault : fake().faults()) FAIL_CHECK(fault);
}

void check_clean() {
    check_no_faults();
    for (const std::string& object : fake().alive()) FAIL_CHECK(object << " was never destroyed");
}

}  // namespace vkrope::test
