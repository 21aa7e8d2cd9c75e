// SPDX-License-Identifier: MIT
// Implements objects, calls and faults; the entry points are in the other files of this folder.
#include "fake_vulkan.hpp"

#include <algorithm>
#include <cstdio>

#include "host_memory.hpp"

namespace vkrope::test {

namespace {

const char* type_name(VkObjectType type) {
    switch (type) {
        case VK_OBJECT_TYPE_INSTANCE: return "VkInstance";
        case VK_OBJECT_TYPE_DEVICE: return "VkDevice";
        case VK_OBJECT_TYPE_COMMAND_POOL: return "VkCommandPool";
        case VK_OBJECT_TYPE_COMMAND_BUFFER: return "VkCommandBuffer";
        case VK_OBJECT_TYPE_FENCE: return "VkFence";
        case VK_OBJECT_TYPE_QUERY_POOL: return "VkQueryPool";
        case VK_OBJECT_TYPE_DEVICE_MEMORY: return "VkDeviceMemory";
        case VK_OBJECT_TYPE_BUFFER: return "VkBuffer";
        case VK_OBJECT_TYPE_IMAGE: return "VkImage";
        case VK_OBJECT_TYPE_IMAGE_VIEW: return "VkImageView";
        case VK_OBJECT_TYPE_SHADER_MODULE: return "VkShaderModule";
        case VK_OBJECT_TYPE_PIPELINE: return "VkPipeline";
        case VK_OBJECT_TYPE_PIPELINE_CACHE: return "VkPipelineCache";
        case VK_OBJECT_TYPE_PIPELINE_LAYOUT: return "VkPipelineLayout";
        case VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT: return "VkDescriptorSetLayout";
        case VK_OBJECT_TYPE_DESCRIPTOR_POOL: return "VkDescriptorPool";
        case VK_OBJECT_TYPE_DESCRIPTOR_SET: return "VkDescriptorSet";
        case VK_OBJECT_TYPE_DEBUG_UTILS_MESSENGER_EXT: return "VkDebugUtilsMessengerEXT";
        default: return "object";
    }
}

std::string words_for(VkObjectType type, std::uint64_t handle) {
    char text[64];
    std::snprintf(text, sizeof text, "%s 0x%llx", type_name(type),
                  static_cast<unsigned long long>(handle));
    return text;
}

}  // namespace

Fake& fake() {
    static Fake the_fake;
    return the_fake;
}

void Fake::restart(FakeConfig with) {
    const Unobserved unobserved;
    const std::uint64_t next = next_;  // handles are never reused: a stale one stays wrong
    *this = Fake{};
    next_ = next;
    config = std::move(with);
}

std::size_t Fake::count(const std::string& entry) const {
    return std::size_t(std::count(calls_.begin(), calls_.end(), entry));
}

void Fake::forget_calls() {
    calls_.clear();
}

void Fake::fault(const std::string& sentence) {
    const Unobserved unobserved;
    faults_.push_back(sentence);
}

std::vector<std::string> Fake::alive() const {
    std::vector<std::string> all;
    for (const auto& [handle, object] : objects_) all.push_back(words_for(object.type, handle));
    return all;
}

Object* Fake::find(VkObjectType type, std::uint64_t handle, const char* entry, bool quiet) {
    const auto found = objects_.find(handle);
    if (found != objects_.end() && found->second.type == type) return &found->second;
    if (!quiet)
        fault(std::string(entry) + ": " + words_for(type, handle) + " is unknown or destroyed");
    return nullptr;
}

std::byte* Fake::content_of(const Object& object) {
    const auto memory = objects_.find(object.memory);
    return memory == objects_.end() ? nullptr
                                    : memory->second.content.data() + object.memory_offset;
}

const std::vector<Command>& Fake::commands(VkCommandBuffer buffer) {
    static const std::vector<Command> none;
    const Object* object = find(VK_OBJECT_TYPE_COMMAND_BUFFER, buffer, "commands");
    return object ? object->commands : none;
}

void Fake::enter(const char* entry) {
    calls_.emplace_back(entry);
}

VkResult Fake::enter_fallible(const char* entry, bool fills_array) {
    enter(entry);
    points_.push_back({entry, fills_array});
    if (failure.at == 0 || points_.size() < failure.at) return VK_SUCCESS;
    const bool fails = points_.size() == failure.at ||
                       (failure.stays && std::string(points_[failure.at - 1].entry) == entry);
    return fails ? failure.with : VK_SUCCESS;
}

std::uint64_t Fake::create(VkObjectType type, std::uint64_t parent,
                           const VkAllocationCallbacks* allocator, Object object) {
    object.type = type;
    object.parent = parent;
    object.allocator = allocator;
    if (allocator) {
        object.allocation = allocator->pfnAllocation(allocator->pUserData, 64, 8,
                                                     VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
        if (!object.allocation) return 0;
    }
    next_ += 0x10;
    objects_.emplace(next_, std::move(object));
    return next_;
}

void Fake::destroy(VkObjectType type, std::uint64_t handle, const VkAllocationCallbacks* allocator,
                   const char* entry) {
    if (handle == 0) return;
    Object* object = find(type, handle, entry);
    if (!object) return;
    const std::string what = std::string(entry) + ": " + words_for(type, handle);
    if (object->pending) fault(what + " is in use by the queue");
    if (object->allocator != allocator) fault(what + " was created with another allocator");
    if (object->allocation)
        object->allocator->pfnFree(object->allocator->pUserData, object->allocation);
    objects_.erase(handle);
    const bool is_pool = type == VK_OBJECT_TYPE_COMMAND_POOL ||
                         type == VK_OBJECT_TYPE_DESCRIPTOR_POOL;
    for (auto child = objects_.begin(); child != objects_.end();) {
        if (child->second.parent != handle) {
            ++child;
        } else if (is_pool) {
            if (child->second.pending)
                fault(what + ": " + words_for(child->second.type, child->first) +
                      " of it is in use by the queue");
            child = objects_.erase(child);
        } else {
            fault(what + ": " + words_for(child->second.type, child->first) + " of it is alive");
            ++child;
        }
    }
}

void Fake::record(VkCommandBuffer buffer, Command command, std::set<std::uint64_t> uses) {
    Object* object = find(VK_OBJECT_TYPE_COMMAND_BUFFER, buffer, command.entry.c_str());
    if (!object) return;
    if (object->state != CommandState::recording)
        fault(command.entry + ": the command buffer is not recording");
    object->commands.push_back(std::move(command));
    object->uses.merge(uses);
}

void Fake::submit(VkCommandBuffer buffer, std::uint64_t fence) {
    Object* object = find(VK_OBJECT_TYPE_COMMAND_BUFFER, buffer, "vkQueueSubmit");
    if (!object) return;
    if (object->state != CommandState::executable)
        fault("vkQueueSubmit: the command buffer is not executable");
    object->state = CommandState::pending;
    submitted_.insert({number_of(buffer), fence});
    submitted_.insert(object->uses.begin(), object->uses.end());
    for (const std::uint64_t handle : submitted_) {
        const auto used = objects_.find(handle);
        if (used == objects_.end()) {
            fault("vkQueueSubmit: a command refers to " +
                  words_for(VK_OBJECT_TYPE_UNKNOWN, handle) + ", which is destroyed");
            continue;
        }
        used->second.pending = true;
        if (const auto memory = objects_.find(used->second.memory); memory != objects_.end())
            memory->second.pending = true;
    }
    for (const Command& command : object->commands)
        if (command.execute) command.execute();
}

void Fake::finish() {
    for (auto& [handle, object] : objects_) {
        if (object.type == VK_OBJECT_TYPE_FENCE && object.pending) object.signaled = true;
        if (object.type == VK_OBJECT_TYPE_COMMAND_BUFFER && object.pending)
            object.state = CommandState::executable;
        object.pending = false;
    }
    submitted_.clear();
}

std::uint64_t Fake::only(VkObjectType type) const {
    for (const auto& [handle, object] : objects_)
        if (object.type == type) return handle;
    return 0;
}

bool Fake::enabled(const char* extension) const {
    return std::any_of(
        objects_.begin(), objects_.end(),
        [&](const auto& entry) {
            const auto& names = entry.second.extensions;
            return std::find(names.begin(), names.end(), extension) != names.end();
        });
}

bool Fake::float16_enabled() const {
    return std::any_of(
        objects_.begin(), objects_.end(), [](const auto& entry) { return entry.second.float16; });
}

}  // namespace vkrope::test
