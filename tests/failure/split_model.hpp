// SPDX-License-Identifier: MIT
// A call, and where the contract of vkrope.h has its rows. A model of the shader is compared with
// it: it reads bindings and push constants, and says which row each dispatch reads, writes and
// counts.
#pragma once

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "kernel/kernel_object.hpp"
#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test::split {

inline constexpr std::uint32_t D = 128, row_bytes = D * 2;

struct Row {
    TensorIndex tensor = Q;
    std::uint32_t batch = 0, token = 0, head = 0;
};

using Byte = std::pair<VkBuffer, VkDeviceSize>;

/// A call, and the content of the buffers that it reads.
struct Scenario {
    Call call;
    std::vector<std::int64_t> slot_mapping = {};  ///< [batch, tokens]
    std::vector<bool> outside_table = {};  ///< [batch, tokens]: whether the position is outside
    std::uint32_t pages = 0;               ///< number of pages of the cache
    std::size_t at(const Row& row) const {
        return std::size_t{row.batch} * call.tokens + row.token;
    }
};

/// The dispatches of one call: interface.h, Push.
class Model {
   public:
    Model(const Scenario& scenario, const Kernel& kernel);

    void run(const Command& dispatch, VkPipeline pipeline);

    /// All rows were written, and all tokens counted that are to be.
    void check_all() const;

   private:
    std::uint32_t offset(std::uint32_t which) const { return offset_of(push_, which); }

    static std::uint32_t at(std::uint32_t start, const shader::RowLayout& side, std::uint32_t z,
                            std::uint32_t token, std::uint32_t head) {
        return start + z * side.z + token * side.token +
               head * side.head;  // in 32 bits, like the shader
    }

    const VkDescriptorBufferInfo& bound(std::uint32_t binding) const {
        return dispatch_->descriptors.at(binding).buffer;
    }

    // The address of a word or row of a binding, which must contain all of it.
    Byte byte(std::uint32_t binding, std::uint64_t offset, std::uint64_t bytes) const;

    void check_shape(VkPipeline pipeline) const;

    Row token_of_slot(std::uint32_t z, std::uint32_t index) const;

    // One row: it must come from its place in the call, with its token's position, and must not
    // have been written before.
    void visit(std::uint32_t in, std::uint64_t from, std::uint32_t out, std::uint64_t to,
               std::uint32_t z, std::uint32_t index, Row& token, bool& known);

    // A row with a norm, parameters of its head or a factor: ops.glsl, absolute_head and
    // token_factor.
    void check_ops(std::uint64_t to, std::uint32_t out, std::uint32_t scales,
                   std::uint32_t scales_offset, std::uint32_t z, std::uint32_t index,
                   std::uint32_t head, std::uint32_t heads) const;

    void count(const Row& token, std::uint32_t z, bool slot_outside);

    const Scenario& scenario_;
    const Kernel& kernel_;
    std::map<Byte, Row> rows_;
    std::set<Byte> visited_;
    std::vector<std::uint32_t> counts_;
    shader::Push push_ = {};
    const Command* dispatch_ = nullptr;
};

}  // namespace vkrope::test::split
