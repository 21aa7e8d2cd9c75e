// SPDX-License-Identifier: MIT
#include <memory>
#include <new>

#include "base/status.hpp"
#include "kernel/spirv/instruction.hpp"
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

Status add_bindings(const Spirv& module, BindingList& list) noexcept {
    const std::uint32_t* words = module.words.get();
    const std::unique_ptr<std::uint32_t[]> binding_of(
        new (std::nothrow) std::uint32_t[words[3]]());  // binding + 1; 0: none
    if (!binding_of)
        return error(VKROPE_ERROR_OUT_OF_HOST_MEMORY,
                     "not enough memory for the ids of a SPIR-V module of %zu words", module.count);
    for (std::size_t at = header_words; at < module.count; at += length_of(words + at)) {
        const std::uint32_t* i = words + at;
        if (op_of(i) == spv::OpFunction) break;  // bindings are declared before functions
        if (op_of(i) == spv::OpDecorate && spv::Decoration(i[2]) == spv::DecorationBinding)
            binding_of[i[1]] = i[3] + 1;
        if (op_of(i) != spv::OpVariable || binding_of[i[2]] == 0) continue;
        const auto storage = spv::StorageClass(i[3]);
        VkDescriptorType type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
        if (storage == spv::StorageClassUniform) type = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
        if (storage == spv::StorageClassUniformConstant) type = VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
        if (!list.add({binding_of[i[2]] - 1, type}))
            return error(VKROPE_ERROR_LIMIT_EXCEEDED,
                         "a SPIR-V module binds more than %u descriptors", BindingList::most);
    }
    return {};
}

}  // namespace vkrope
