// SPDX-License-Identifier: MIT
// Unpacks and specialises the SPIR-V that goes to the driver.
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

// A binding of descriptor set 0.
struct Binding {
    std::uint32_t number;
    VkDescriptorType type;
};

// Bindings in ascending order of their numbers, each number once.
class BindingList {
   public:
    static constexpr std::uint32_t most = 26;

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

enum class LoopControls {
    as_written,
    of_driver,  // the driver decides which loops it unrolls
    rolled,     // a driver unrolls only the loops with [[unroll]] (VKROPE_UNROLL)
};

// The memory of a Specializer.
struct SpecializedModule {
    // What is known of an id. A comment names the kind of ids that have the field.
    struct Id {
        union {
            std::uint32_t value;    // a known value
            std::uint32_t binding;  // a bound variable
            std::uint32_t at;       // a function: the index of its first word
        };
        union {
            std::uint32_t end;          // a function: the index after its last word
            std::uint32_t only_target;  // a reached block: its successor if it is known, or 0
            std::uint32_t loop_header;  // another continue target: the header of its loop
        };
    };

    Spirv module;
    std::size_t functions_at = 0;              // index of the first function
    std::unique_ptr<Id[]> of_id;               // by id
    std::unique_ptr<std::uint8_t[]> facts;     // by id: see specialize.cpp
    std::unique_ptr<std::uint32_t[]> reached;  // functions, in the order of the calls
};

// Specialises a module any number of times.
class Specializer {
   public:
    // module  an error to return, or a valid SPIR-V module with logical addressing and one entry
    // point. Its constants have 32 bits or are Boolean, and a block comes after a block that
    // branches to it.
    static Result<Specializer> of(Result<Spirv> module) noexcept;

    // Returns the module with every specialisation constant replaced by values[SpecId], by its
    // default if value_count is not above its SpecId, or by the result of its operation on such
    // values. Operations other than integer or Boolean arithmetic on scalars are left to the
    // driver.
    //
    // Code that constant conditions make unreachable is removed: branches never taken, functions no
    // longer called, variables used only there, and their decorations. Loops keep their conditions.
    // If no 16-bit float is left, its capability is removed too. `modes`, which
    // SPV_KHR_float_controls defines, are added. The bindings that remain are added to `bindings`:
    // storage buffers, uniform buffers and sampled images.
    Result<Spirv> specialize(const std::uint32_t* values, std::uint32_t value_count,
                             std::uint32_t modes, LoopControls loops,
                             BindingList& bindings) noexcept;

   private:
    SpecializedModule of_;
};

}  // namespace vkrope
