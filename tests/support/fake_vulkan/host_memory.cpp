// SPDX-License-Identifier: MIT
#include "host_memory.hpp"

#include <cstdlib>
#include <new>

namespace vkrope::test {

namespace {

// Constant-initialised, because operator new is called before main().
bool observing = false;
std::size_t paused = 0, count = 0, failing = 0;

void* allocate(std::size_t bytes) noexcept {
    if (observing && paused == 0 && ++count == failing) return nullptr;
    return std::malloc(bytes != 0 ? bytes : 1);
}

void* allocate_or_throw(std::size_t bytes) {
    void* memory = allocate(bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}

}  // namespace

Unobserved::Unobserved() noexcept {
    ++paused;
}
Unobserved::~Unobserved() {
    --paused;
}

void observe_host_memory(std::size_t fail_at) noexcept {
    observing = true;
    count = 0;
    failing = fail_at;
}

std::size_t observed_allocations() noexcept {
    observing = false;
    return count;
}

}  // namespace vkrope::test

void* operator new(std::size_t bytes) {
    return vkrope::test::allocate_or_throw(bytes);
}
void* operator new[](std::size_t bytes) {
    return vkrope::test::allocate_or_throw(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return vkrope::test::allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
    return vkrope::test::allocate(bytes);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
