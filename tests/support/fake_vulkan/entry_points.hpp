// SPDX-License-Identifier: MIT
// Provides helpers for the entry points of the fake, and the tables in which vkGetInstanceProcAddr
// looks them up.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "fake_vulkan.hpp"
#include "host_memory.hpp"

namespace vkrope::test {

using EntryPoints = std::map<std::string, PFN_vkVoidFunction>;

EntryPoints global_entry_points();    // fake_instance.cpp
EntryPoints instance_entry_points();  // fake_instance.cpp
EntryPoints pipeline_entry_points();  // fake_pipelines.cpp
EntryPoints memory_entry_points();    // fake_memory.cpp
EntryPoints command_entry_points();   // fake_commands.cpp
EntryPoints queue_entry_points();     // fake_queue.cpp

template <class Function>
PFN_vkVoidFunction entry_point(Function function) {
    return reinterpret_cast<PFN_vkVoidFunction>(function);
}

// Returns the descriptor of a write, without its set.
Descriptor descriptor_of(const VkWriteDescriptorSet& write);  // fake_pipelines.cpp

inline const VkPhysicalDevice the_physical_device = reinterpret_cast<VkPhysicalDevice>(
    std::uintptr_t{0xfa0});
inline const VkQueue the_queue = reinterpret_cast<VkQueue>(std::uintptr_t{0xfb0});

// Enters a call that returns nothing.
class Entered {
   public:
    explicit Entered(const char* entry) { fake().enter(entry); }

   private:
    Unobserved unobserved_;  // must come first: enter() allocates
};

inline void check_device(VkDevice device, const char* entry) {
    fake().find(VK_OBJECT_TYPE_DEVICE, device, entry);
}

// The name of an entry point, as an argument of a template.
template <std::size_t length>
struct Name {
    consteval Name(const char (&of)[length]) { std::copy_n(of, length, text); }
    char text[length] = {};
};

// Creates and destroys children of a device, by the type of the function that creates them.
template <class Create>
struct Child;

template <class Info, class Handle>
struct Child<VkResult(VKAPI_PTR*)(VkDevice, const Info*, const VkAllocationCallbacks*, Handle*)> {
    // Describes an object of which only the existence matters.
    static Object plain(const Info&) { return {}; }

    template <Name entry, VkObjectType type, Object (*describe)(const Info&)>
    static VKAPI_ATTR VkResult VKAPI_CALL create(VkDevice device, const Info* info,
                                                 const VkAllocationCallbacks* allocator,
                                                 Handle* out) {
        const Unobserved unobserved;
        const VkResult result = fake().enter_fallible(entry.text);
        *out = wrong_handle<Handle>();
        if (result != VK_SUCCESS) return result;
        check_device(device, entry.text);
        const std::uint64_t handle = fake().create(type, number_of(device), allocator,
                                                   describe(*info));
        if (handle == 0) return VK_ERROR_OUT_OF_HOST_MEMORY;
        *out = reinterpret_cast<Handle>(std::uintptr_t(handle));
        return VK_SUCCESS;
    }

    template <Name entry, VkObjectType type>
    static VKAPI_ATTR void VKAPI_CALL destroy(VkDevice device, Handle handle,
                                              const VkAllocationCallbacks* allocator) {
        const Entered entered(entry.text);
        check_device(device, entry.text);
        fake().destroy(type, number_of(handle), allocator, entry.text);
    }
};

// Two entry points, where `describe` makes the object from a create info.
#define VKROPE_CHILD(creates, destroys, type, describe)                                           \
    {#creates,                                                                                    \
     entry_point(Child<PFN_##creates>::create<#creates, VK_OBJECT_TYPE_##type, describe>)},       \
    {                                                                                             \
#destroys, entry_point(Child <PFN_##creates>::destroy <#destroys, VK_OBJECT_TYPE_##type>) \
    }
// Two entry points for objects of which only the existence matters.
#define VKROPE_PLAIN_CHILD(creates, destroys, type) \
    VKROPE_CHILD(creates, destroys, type, Child<PFN_##creates>::plain)

// Answers the two calls of an enumeration. `result` is the injected result.
template <class Item>
VkResult enumerate(VkResult result, const std::vector<Item>& all, std::uint32_t* count,
                   Item* items) {
    if (result < 0) return result;
    const auto wanted = std::uint32_t(all.size());
    if (!items) {
        *count = wanted;
        return VK_SUCCESS;
    }
    std::uint32_t room = *count < wanted ? *count : wanted;
    if (result == VK_INCOMPLETE && room > 0) --room;
    for (std::uint32_t i = 0; i < room; ++i) items[i] = all[i];
    *count = room;
    return room < wanted ? VK_INCOMPLETE : result;
}

}  // namespace vkrope::test
