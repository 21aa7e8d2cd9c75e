// SPDX-License-Identifier: MIT
// Tests tensors of 1 TiB on a driver that accepts such buffers and computes nothing (the mock ICD
// of the Vulkan samples). The validation layer checks that Vulkan allows every binding, offset,
// push constant and barrier of thousands of dispatches.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "runtime/loader.hpp"
#include "vkrope/vkrope.hpp"

namespace vkrope::test {

namespace {

constexpr VkDeviceSize tebibyte = VkDeviceSize{1} << 40;
constexpr std::uint32_t D = 128;

std::size_t messages = 0;  // the number of unexpected messages of the layer

void on_message(void*, VkBool32, const char* id, const char* text) {
    // The layer warns of its own extensions, which only the tests enable.
    if (std::strstr(id, "specialuse-extension") ||
        std::strstr(id, "BestPractices-deprecated-extension"))
        return;
    if (++messages <= 5) std::fprintf(stderr, "validation: [%s] %s\n", id, text);
}

template <class T>
T must(Result<T> result) {
    INFO(result.status.what);
    REQUIRE(bool(result.status));
    return std::move(result.value);
}

// ---- Functions between library and loader, which enable sparse buffers: these need no memory ----

PFN_vkCreateDevice real_create_device = nullptr;
PFN_vkGetPhysicalDeviceFeatures real_get_features = nullptr;

VKAPI_ATTR VkResult VKAPI_CALL create_sparse_device(VkPhysicalDevice physical,
                                                    const VkDeviceCreateInfo* info,
                                                    const VkAllocationCallbacks* allocator,
                                                    VkDevice* device) {
    // The layer requires a query before features are enabled.
    VkPhysicalDeviceFeatures offered = {}, features = {};
    real_get_features(physical, &offered);
    if (!offered.sparseBinding || !offered.sparseResidencyBuffer)
        return VK_ERROR_FEATURE_NOT_PRESENT;
    if (info->pEnabledFeatures) features = *info->pEnabledFeatures;
    features.sparseBinding = features.sparseResidencyBuffer = VK_TRUE;
    VkDeviceCreateInfo with = *info;
    with.pEnabledFeatures = &features;
    return real_create_device(physical, &with, allocator, device);
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get(VkInstance instance, const char* name) {
    const PFN_vkVoidFunction found = find_vulkan_loader()(instance, name);
    if (std::strcmp(name, "vkCreateDevice") != 0) return found;
    real_get_features = reinterpret_cast<PFN_vkGetPhysicalDeviceFeatures>(
        find_vulkan_loader()(instance, "vkGetPhysicalDeviceFeatures"));
    real_create_device = reinterpret_cast<PFN_vkCreateDevice>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(create_sparse_device);
}

Device open() {
    // The mock offers push descriptors, but allows none per set.
    return must(Device::open({.select = "Mock",
                              .get_instance_proc_addr = get,
                              .validation = true,
                              .no_push_descriptors = true,
                              .on_message = on_message}));
}

// A buffer of 1 TiB.
class Tebibyte {
   public:
    explicit Tebibyte(Device& on) : on_(on) {
        VkBufferCreateInfo info = {};
        info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
        info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
        info.size = tebibyte;
        info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
        const auto create = reinterpret_cast<PFN_vkCreateBuffer>(
            get(on.ref().instance, "vkCreateBuffer"));
        REQUIRE(create(on.ref().device, &info, nullptr, &handle_) == VK_SUCCESS);
    }
    ~Tebibyte() {
        reinterpret_cast<PFN_vkDestroyBuffer>(get(on_.ref().instance, "vkDestroyBuffer"))(
            on_.ref().device, handle_, nullptr);
    }
    Tebibyte(const Tebibyte&) = delete;
    Tebibyte& operator=(const Tebibyte&) = delete;

    VkDescriptorBufferInfo whole() const { return {handle_, 0, tebibyte}; }

   private:
    Device& on_;
    VkBuffer handle_ = VK_NULL_HANDLE;
};

// Records one call, and returns its number of dispatches.
std::uint64_t dispatches_of(Device& on, const KernelInfo& info, Call call) {
    RopeParams rotation;
    rotation.pairing = VKROPE_HALF_SPLIT;
    rotation.head_dim = rotation.rotary_dim = D;
    rotation.inv_freq.assign(D / 2, 1.0);
    const AngleTable table = must(AngleTable::make(on, rotation, info.angles, 100));
    call.angles = table.angles();
    const Buffer counter = must(Buffer::make(on, 4));
    call.out_of_range = counter.whole();  // positions may be beyond the table
    DeviceRef ref = on.ref();
    ref.get_instance_proc_addr = get;
    const Owned<Kernel> kernel(must(create(ref, info)));
    const std::uint64_t announced = must(dispatches(kernel.get(), call));
    Owned<DescriptorArena> arena;
    if (!(ref.enabled & VKROPE_DEVICE_FEATURE_PUSH_DESCRIPTOR))
        arena.reset(must(create_arena(kernel.get(), std::uint32_t(announced))));
    must(on.submit([&](VkCommandBuffer commands) {
        return record(commands, kernel.get(), call, arena.get());
    }));
    return announced;
}

constexpr TensorInfo f16{VKROPE_F16, VKROPE_F16, D, 0}, f32{VKROPE_F32, VKROPE_F32, D, 0};

}  // namespace

TEST_CASE("1 TiB: a call takes as few dispatches as the limits allow, and breaks no Vulkan rule") {
    messages = 0;
    {
        Device on = open();
        REQUIRE(on.info().limits->maxStorageBufferRange == 1u << 27);
        REQUIRE(on.info().limits->minStorageBufferOffsetAlignment == 16);
        const Tebibyte a(on), b(on);
        {  // [1, 2^29, 8, 128] f16 in place: a box in the middle needs space for alignment, so that
           // 2^16 - 1 tokens fit into the range
            const Tensor q{.where = a.whole(), .heads = 8};
            const std::uint64_t count = dispatches_of(on,
                                                      {.pairing = VKROPE_HALF_SPLIT,
                                                       .rotary_dim = D,
                                                       .tensor = {f16},
                                                       .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                                                      {.tokens = 1u << 29, .in = {q}, .out = {q}});
            CHECK(count == ((1u << 29) + 65534) / 65535);
        }
        {  // [1, 8, 2^28, 128] f32, heads before tokens, out of place
            const std::int64_t S = 1 << 28;
            const Tensor q{.where = a.whole(),
                           .heads = 8,
                           .token_stride = D,
                           .head_stride = S * D,
                           .batch_stride = 8 * S * D};
            Tensor out = q;
            out.where = b.whole();
            const std::uint64_t count = dispatches_of(
                on,
                {.pairing = VKROPE_HALF_SPLIT,
                 .rotary_dim = D,
                 .tensor = {f32},
                 .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                {.tokens = 1u << 28, .in = {q}, .out = {out}});
            CHECK(count == 8 * (((1u << 28) + 65534) / 65535));  // a token takes one workgroup
        }
        {  // [1, 2^31, 1, 128] f16 in place: tokens of one head share a workgroup of 64 lanes, 8
           // steps each
            const Tensor q{.where = a.whole(), .heads = 1};
            const std::uint64_t count = dispatches_of(
                on,
                {.pairing = VKROPE_HALF_SPLIT,
                 .rotary_dim = D,
                 .tensor = {{VKROPE_F16, VKROPE_F16, D, 0, 1}},
                 .angles = VKROPE_ANGLES_FACTORED_TEXTURE},
                {.tokens = 1u << 31, .in = {q}, .out = {q}});
            CHECK(count == ((1ull << 31) + 65535 * 8 - 1) / (65535 * 8));
        }
        {  // [2^20, 2^8, 16, 128] f16 with 12 heads of Q and 2 of K: the ranges of Q and K overlap,
           // the rows do not
            const auto part = [&](std::uint32_t first, std::uint32_t heads) {
                return Tensor{.where = {a.whole().buffer, first * D * 2, tebibyte - first * D * 2},
                              .heads = heads,
                              .token_stride = 16 * D,
                              .batch_stride = 16 * D << 8};
            };
            const KernelInfo info{.pairing = VKROPE_HALF_SPLIT,
                                  .rotary_dim = D,
                                  .tensor = {f16, f16},
                                  .angles = VKROPE_ANGLES_DIRECT_BUFFER};
            const std::uint64_t count = dispatches_of(on, info,
                                                      {.batch = 1u << 20,
                                                       .tokens = 1u << 8,
                                                       .in = {part(0, 12), part(12, 2)},
                                                       .out = {part(0, 12), part(12, 2)},
                                                       .positions = {.batch_stride = broadcast}});
            CHECK(count ==
                  2 * 8192);  // 128 sequences in each; the V of the last token need not fit
        }
    }
    CHECK(messages == 0);
}

}  // namespace vkrope::test
