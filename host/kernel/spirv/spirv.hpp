// SPDX-License-Identifier: MIT
// Unpacks, specialises and prunes the SPIR-V that goes to the driver.
//
// The library specialises modules because a driver may optimise a module before it applies
// specialisation constants: SwiftShader does so, takes 16 times as long to compile, and runs every
// branch. The result is an ordinary module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "vkrope/vkrope.hpp"

namespace vkrope {

struct Spirv {
    std::unique_ptr<std::uint32_t[]> words;
    std::size_t count = 0;
};

// Returns the words that shaders/embed.cmake packed into `size` bytes.
Result<Spirv> unpack(const std::uint8_t* bytes, std::size_t size) noexcept;

// Returns `words` with every specialisation constant replaced by values[SpecId], or by the result
// of its operation on such values. Operations other than integer or Boolean arithmetic on scalars
// are left to the driver.
//
// words   a valid SPIR-V module of `count` words, whose SpecIds are below `value_count` and whose
// constants have 32 bits or are Boolean
Result<Spirv> specialize(const std::uint32_t* words, std::size_t count, const std::uint32_t* values,
                         std::uint32_t value_count) noexcept;

// Removes code that constant conditions make unreachable: branches never taken, functions no
// longer called, variables used only there, and their decorations. Loops keep their conditions. If
// no 16-bit float is left, its capability is removed too.
//
// module  valid SPIR-V with logical addressing, whose blocks are in an order in which values are
// computed before their uses
Result<Spirv> prune(const Spirv& module) noexcept;

// Sets the control of every loop. With `rolled`, a driver unrolls only the loops with [[unroll]]
// (VKROPE_UNROLL); otherwise the driver decides, for these loops too.
void set_loop_controls(Spirv& module, bool rolled) noexcept;

// A binding of descriptor set 0.
struct Binding {
    std::uint32_t number;
    VkDescriptorType type;
};

// Bindings in ascending order of their numbers, each number once.
class BindingList {
   public:
    static constexpr std::uint32_t most = 25;

    // Returns false if the list is full.
    bool add(const Binding& binding) noexcept;
    bool has(std::uint32_t number) const noexcept;
    std::uint32_t count() const noexcept { return count_; }
    std::uint32_t storage_buffers() const noexcept;
    const Binding* begin() const noexcept { return of_; }
    const Binding* end() const noexcept { return of_ + count_; }

    friend bool operator==(const BindingList& a, const BindingList& b) noexcept;

   private:
    Binding of_[most] = {};
    std::uint32_t count_ = 0;
};

// Adds the bindings that a module declares: storage buffers, uniform buffers and sampled images.
//
// module  valid SPIR-V, 1.3 or newer; after prune() it declares only the bindings that it uses
Status add_bindings(const Spirv& module, BindingList& list) noexcept;

// Float execution modes of 16- and 32-bit floats. The library adds them to modules itself, because
// glslang keeps only one mode of each kind.
enum FloatMode : std::uint32_t {
    round_to_even_16 = 1,
    round_to_even_32 = 2,
    denorm_preserve_16 = 4,
    denorm_preserve_32 = 8,
    keep_zero_inf_nan_16 = 16,
    keep_zero_inf_nan_32 = 32,
};

// Adds these modes, which SPV_KHR_float_controls defines, to a module.
//
// module  valid SPIR-V with one entry point
Result<Spirv> with_modes(const Spirv& module, std::uint32_t modes) noexcept;

}  // namespace vkrope
