// SPDX-License-Identifier: MIT
#include "kernel/spirv/spirv.hpp"

namespace vkrope {

bool BindingList::add(const Binding& binding) noexcept {
    if (has(binding.number)) return true;
    if (count_ == most) return false;
    std::uint32_t at = count_++;
    for (; at > 0 && of_[at - 1].number > binding.number; --at) of_[at] = of_[at - 1];
    of_[at] = binding;
    return true;
}

bool BindingList::has(std::uint32_t number) const noexcept {
    for (const Binding& binding : *this)
        if (binding.number == number) return true;
    return false;
}

std::uint32_t BindingList::storage_buffers() const noexcept {
    std::uint32_t count = 0;
    for (const Binding& binding : *this) count += binding.type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    return count;
}

bool operator==(const BindingList& a, const BindingList& b) noexcept {
    if (a.count_ != b.count_) return false;
    for (std::uint32_t i = 0; i < a.count_; ++i)
        if (a.of_[i].number != b.of_[i].number || a.of_[i].type != b.of_[i].type) return false;
    return true;
}

}  // namespace vkrope
