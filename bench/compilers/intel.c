// SPDX-License-Identifier: MIT
// Stands for the driver i915 of the kernel, as far as Mesa's Vulkan driver for Intel asks before it
// compiles. Files below /sys name the GPU. Its node opens as a path only, which needs no driver;
// calls on it end here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <drm/drm.h>
#include <drm/i915_drm.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static int is_gpu(int fd) {
    struct stat of;
    return fd >= 0 && fstat(fd, &of) == 0 && S_ISCHR(of.st_mode) && major(of.st_rdev) == 226;
}

int open64(const char* path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    int (*next)(const char*, int, ...) = dlsym(RTLD_NEXT, "open64");
    const int fd = next(path, strncmp(path, "/dev/dri/", 9) == 0 ? O_PATH | O_CLOEXEC : flags,
                        va_arg(rest, int));
    va_end(rest);
    return fd;
}
int open(const char* path, int flags, ...) __attribute__((alias("open64")));

void* mmap64(void* address, size_t bytes, int protection, int flags, int fd, off64_t offset) {
    void* (*next)(void*, size_t, int, int, int, off64_t) = dlsym(RTLD_NEXT, "mmap64");
    if (!is_gpu(fd)) return next(address, bytes, protection, flags, fd, offset);
    return next(address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | (flags & MAP_FIXED), -1,
                0);
}
void* mmap(void*, size_t, int, int, int, off_t) __attribute__((alias("mmap64")));

// Answers with one slice of four subslices of eight units; returns the bytes of the answer.
static int topology(struct drm_i915_query_topology_info* of) {
    enum { subslices = 4, bytes = sizeof *of + 2 + subslices };
    if (!of) return bytes;
    memset(of, 0, bytes);
    of->max_slices = 1;
    of->max_subslices = subslices;
    of->max_eus_per_subslice = 8;
    of->subslice_offset = of->subslice_stride = of->eu_stride = 1;
    of->eu_offset = 2;
    memcpy(of->data, "\1\17\377\377\377\377", 2 + subslices);
    return bytes;
}

// Answers with one region of 16 GiB of system memory; returns the bytes of the answer.
static int memory(struct drm_i915_query_memory_regions* of) {
    enum { bytes = sizeof *of + sizeof of->regions[0] };
    if (!of) return bytes;
    memset(of, 0, bytes);
    of->num_regions = 1;
    of->regions[0].probed_size = of->regions[0].unallocated_size = 1ull << 34;
    return bytes;
}

int ioctl(int fd, unsigned long request, ...) {
    va_list rest;
    va_start(rest, request);
    void* argument = va_arg(rest, void*);
    va_end(rest);
    int (*next)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
    if (!is_gpu(fd)) return next(fd, request, argument);
    static unsigned handle;
    if (request == DRM_IOCTL_VERSION) {
        struct drm_version* of = argument;
        of->version_major = 1;
        if (of->name) memcpy(of->name, "i915", of->name_len);
        of->name_len = 4;
        of->date_len = of->desc_len = 0;
    } else if (request == DRM_IOCTL_I915_GETPARAM) {
        const struct drm_i915_getparam* of = argument;
        *of->value = of->param == I915_PARAM_MMAP_GTT_VERSION ? 4 : 1;
    } else if (request == DRM_IOCTL_I915_GEM_CREATE) {
        ((struct drm_i915_gem_create*)argument)->handle = ++handle;
    } else if (request == DRM_IOCTL_I915_GEM_CREATE_EXT) {
        ((struct drm_i915_gem_create_ext*)argument)->handle = ++handle;
    } else if (request == DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM) {
        struct drm_i915_gem_context_param* of = argument;
        of->value = of->param == I915_CONTEXT_PARAM_GTT_SIZE ? 1ull << 48 : 0;
    } else if (request == DRM_IOCTL_I915_QUERY) {
        const struct drm_i915_query* of = argument;
        struct drm_i915_query_item* item = (void*)(uintptr_t)of->items_ptr;
        for (unsigned i = 0; i < of->num_items; ++i, ++item) {
            // The caller asks with length 0 how long the answer is.
            void* answer = item->length ? (void*)(uintptr_t)item->data_ptr : 0;
            item->length = -EINVAL;
            if (item->query_id == DRM_I915_QUERY_MEMORY_REGIONS) item->length = memory(answer);
            if (item->query_id == DRM_I915_QUERY_TOPOLOGY_INFO ||
                item->query_id == DRM_I915_QUERY_GEOMETRY_SUBSLICES)
                item->length = topology(answer);
        }
    }
    return 0;
}
