// SPDX-License-Identifier: MIT
// Opens the Vulkan loader; no other file opens a shared library. The loader is never closed,
// because threads and thread-local data of drivers may still need its code.
#include "runtime/loader.hpp"

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace vkrope {

PFN_vkGetInstanceProcAddr find_vulkan_loader() noexcept {
#if defined(_WIN32)
    const HMODULE library = LoadLibraryA("vulkan-1.dll");
    return library ? reinterpret_cast<PFN_vkGetInstanceProcAddr>(
                         reinterpret_cast<void*>(GetProcAddress(library, "vkGetInstanceProcAddr")))
                   : nullptr;
#else
#if defined(__APPLE__)
    const char* const names[] = {"libvulkan.1.dylib", "libvulkan.dylib", "libMoltenVK.dylib"};
#else
    const char* const names[] = {"libvulkan.so.1", "libvulkan.so"};
#endif
    for (const char* name : names) {
        if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
            return reinterpret_cast<PFN_vkGetInstanceProcAddr>(
                dlsym(library, "vkGetInstanceProcAddr"));
        }
    }
    return nullptr;
#endif
}

}  // namespace vkrope
