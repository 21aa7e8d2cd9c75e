// SPDX-License-Identifier: MIT
// Implements Vulkan 1.1 behind vkGetInstanceProcAddr without loader, driver or GPU. The fake
// computes nothing and records everything.
//
// The fake keeps what was bound, pushed and dispatched, counts calls, and fails the call that a
// test names. Of memory that is not coherent, the device sees only what was flushed and the host
// only what was invalidated. The fake checks every call for mistakes that a forgiving driver would
// hide: handles that are unknown, destroyed or still in use, children that outlive their parent,
// another allocator at destruction than at creation, descriptors that do not fit. Outputs of a
// failed call are filled with a wrong handle, since the specification leaves them undefined. There
// is one fake per process, for one thread at a time.
#pragma once

#include <vulkan/vulkan_core.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace vkrope::test {

// The properties of the only physical device.
struct FakeConfig {
    std::uint32_t storage_buffers = 16;  // maxPerStageDescriptorStorageBuffers
    VkDeviceSize offset_alignment = 16;  // minStorageBufferOffsetAlignment
    std::uint32_t storage_range = 1u << 27;
    VkDeviceSize uniform_alignment = 256;    // minUniformBufferOffsetAlignment
    std::uint32_t uniform_range = 1u << 14;  // maxUniformBufferRange
    std::uint32_t workgroup_count[3] = {65535, 65535, 65535};
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    std::uint32_t vendor = 0;          // vendorID
    std::uint32_t device_id = 0;       // deviceID
    std::uint32_t driver_version = 7;  // driverVersion
    // The first bytes of pipelineCacheUUID and driverUUID.
    std::uint8_t pipeline_cache_uuid = 0, driver_uuid = 0;
    std::uint32_t api_version = VK_API_VERSION_1_1;
    bool push_descriptors = true;  // offers VK_KHR_push_descriptor
    bool float16 = true;           // offers VK_KHR_shader_float16_int8 ...
    bool float16_feature = true;   // ... with shaderFloat16
    // The properties of VK_KHR_shader_float_controls; nullopt if the extension is not offered.
    std::optional<VkPhysicalDeviceFloatControlsProperties> float_controls = {};
    bool debug_utils = true;               // offers VK_EXT_debug_utils
    bool device_finds_debug_utils = true;  // vkGetDeviceProcAddr finds functions of debug_utils;
                                           // otherwise only vkGetInstanceProcAddr does
    bool validation = false;               // VK_LAYER_KHRONOS_validation is installed
    bool timestamps = true;                // the queue supports timestamps
    bool coherent = false;                 // host-visible memory needs neither flush nor invalidate
    bool never_finishes = false;           // every wait times out
    std::set<std::string> missing = {};    // missing entry points
};

// A call that returns a VkResult, and may therefore fail.
struct Point {
    const char* entry = "";
    bool fills_array = false;  // fills an array, so may return VK_INCOMPLETE
};

// The failure to inject in call `at`, counted from 1 over all calls with a VkResult; 0: none.
struct Failure {
    std::size_t at = 0;
    VkResult with = VK_SUCCESS;
    bool stays = false;  // every later call of the same entry point fails, too
};

struct Descriptor {
    std::uint32_t binding = 0;
    VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    VkDescriptorBufferInfo buffer = {};
    VkDescriptorImageInfo image = {};
};

// A recorded command. Its name determines which fields it has.
struct Command {
    std::string entry;
    VkPipeline pipeline = VK_NULL_HANDLE;
    VkPipelineLayout layout = VK_NULL_HANDLE;
    VkDescriptorSet set = VK_NULL_HANDLE;
    // The descriptors by binding, from a push or from the bound set.
    std::map<std::uint32_t, Descriptor> descriptors = {};
    std::vector<std::byte> pushed = {};
    std::uint32_t groups[3] = {0, 0, 0};
    VkPipelineStageFlags stages[2] = {0, 0};  // source and destination
    std::vector<VkMemoryBarrier> memory_barriers = {};
    std::vector<VkBufferMemoryBarrier> buffer_barriers = {};
    std::string label = {};
    std::function<void()> execute = {};
};

enum class CommandState { initial, recording, executable, pending };

struct Object {
    VkObjectType type = VK_OBJECT_TYPE_UNKNOWN;
    std::uint64_t parent = 0;  // a pool, whose destruction destroys this object, or a device
                               // or instance, which must be destroyed after this object
    const VkAllocationCallbacks* allocator = nullptr;
    void* allocation = nullptr;  // made with `allocator`
    bool pending = false;        // the queue may be using the object
    std::string name = {};       // set through VK_EXT_debug_utils

    VkDeviceSize bytes = 0;  // buffers, images, memory
    VkFlags usage = 0;
    std::uint64_t memory = 0;  // bound to the buffer or image; of an image view, to its image
    VkDeviceSize memory_offset = 0;
    std::vector<std::byte> content = {};       // memory, as the device sees it
    std::vector<std::byte> host_content = {};  // memory that is mapped but not coherent
    bool mapped = false;                       // memory
    std::vector<VkDescriptorSetLayoutBinding> bindings = {};  // set layouts
    bool push_layout = false;                                 // set layouts
    std::vector<VkDescriptorPoolSize> pool_sizes = {};        // descriptor pools
    std::uint32_t sets_left = 0;                              // descriptor pools
    std::uint64_t layout = 0;      // sets, pipeline layouts, pipelines: the layout they use
    std::uint32_t push_bytes = 0;  // pipeline layouts
    std::map<std::uint32_t, Descriptor> descriptors = {};  // sets
    std::vector<std::uint32_t> words = {};                 // shader modules
    std::set<std::uint32_t> reads = {};  // shader modules, pipelines: bindings that the code names
    std::vector<std::string> extensions = {};    // instances, devices
    bool float16 = false;                        // devices: the feature shaderFloat16
    std::uint64_t cache = 0;                     // pipelines
    std::set<std::uint32_t> compiled = {};       // pipeline caches: a number for each module
    bool signaled = false;                       // fences
    CommandState state = CommandState::initial;  // command buffers
    std::vector<Command> commands = {};          // command buffers
    std::set<std::uint64_t> uses = {};           // command buffers
};

template <class Handle>
std::uint64_t number_of(Handle handle) {
    return std::uint64_t(reinterpret_cast<std::uintptr_t>(handle));
}

class Fake {
   public:
    FakeConfig config;
    Failure failure;
    std::uint64_t timeout_ns = 0;  // of the last wait for fences

    // Resets the fake to a state in which nothing was created or called.
    void restart(FakeConfig with = {});

    // Returns every call since the beginning, or since forget_calls(), in order.
    const std::vector<std::string>& calls() const { return calls_; }
    std::size_t count(const std::string& entry) const;
    void forget_calls();

    // Returns every call since the beginning that could fail, in order.
    const std::vector<Point>& points() const { return points_; }

    // Returns the broken rules, one sentence each.
    const std::vector<std::string>& faults() const { return faults_; }
    void fault(const std::string& sentence);

    // Returns "VkBuffer 0x…" for each living object.
    std::vector<std::string> alive() const;

    // Returns null if no such object lives, which is a fault unless `quiet`.
    Object* find(VkObjectType type, std::uint64_t handle, const char* entry, bool quiet = false);
    template <class Handle>
    Object* find(VkObjectType type, Handle handle, const char* entry, bool quiet = false) {
        return find(type, number_of(handle), entry, quiet);
    }

    // Returns what the device sees of a buffer, an image or an image view, from its first byte on;
    // null without memory.
    std::byte* content_of(const Object& object);

    // Returns the commands of a command buffer.
    const std::vector<Command>& commands(VkCommandBuffer buffer);

    // Every content that vkGetPipelineCacheData returned. The initial data of a pipeline cache
    // must be one of these.
    std::set<std::vector<std::byte>> cache_data;

    // The initial data of each created pipeline cache, in order; empty for a cache without any.
    std::vector<std::vector<std::byte>> initial_cache_data;

    // Returns the words of every shader module that was created.
    const std::vector<std::vector<std::uint32_t>>& shaders() const { return shaders_; }

    // ---- For the entry points ----

    void enter(const char* entry);
    // Returns the result that the call must return: VK_SUCCESS unless the call must fail.
    VkResult enter_fallible(const char* entry, bool fills_array = false);
    // Returns 0 if the allocator has no memory.
    std::uint64_t create(VkObjectType type, std::uint64_t parent,
                         const VkAllocationCallbacks* allocator, Object object = {});
    void destroy(VkObjectType type, std::uint64_t handle, const VkAllocationCallbacks* allocator,
                 const char* entry);
    void record(VkCommandBuffer buffer, Command command, std::set<std::uint64_t> uses = {});
    void submit(VkCommandBuffer buffer, std::uint64_t fence);
    void finish();  // makes the queue idle, so that nothing is pending
    void keep_shader(const std::vector<std::uint32_t>& words) { shaders_.push_back(words); }
    bool enabled(const char* extension) const;    // by any living instance or device
    bool float16_enabled() const;                 // by any living device
    std::uint64_t only(VkObjectType type) const;  // the only object of that type, else 0

   private:
    std::map<std::uint64_t, Object> objects_;
    std::uint64_t next_ = 0x1000;
    std::vector<std::string> calls_, faults_;
    std::vector<Point> points_;
    std::vector<std::vector<std::uint32_t>> shaders_;
    std::set<std::uint64_t> submitted_;
};

Fake& fake();

// Returns a handle that no object has.
template <class Handle>
Handle wrong_handle() {
    return reinterpret_cast<Handle>(std::uintptr_t{0xdead0});
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL fake_get_instance_proc_addr(VkInstance instance,
                                                                     const char* name);

// Looks up an entry point and casts it to its type.
#define VKROPE_FAKE(name, instance) \
    reinterpret_cast<PFN_##name>(vkrope::test::fake_get_instance_proc_addr(instance, #name))

}  // namespace vkrope::test
