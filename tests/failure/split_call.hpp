// SPDX-License-Identifier: MIT
// A call, and where the contract of vkrope.h has its rows. A model of the shader is compared with
// it.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "support/fake_vulkan/kernel_host.hpp"

namespace vkrope::test::split {

inline constexpr std::uint32_t D = 128, row_bytes = D * 2;

enum class Which { q, k, v };

struct Row {
    Which which = Which::q;
    std::uint32_t batch = 0, token = 0, head = 0;
    auto operator<=>(const Row&) const = default;
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

std::uint64_t or_packed(std::int64_t given, std::uint64_t packed);

/// Where a row of a tensor is, unless a cache has it.
Byte place(const Tensor& tensor, std::uint32_t tokens, const Row& row);

const Tensor& input(const Call& call, Which which);
const Tensor& output(const Call& call, Which which);
const Finish& finish_of(const KernelInfo& info, Which which);
const VkDescriptorBufferInfo& factors(const Call& call, Which which);

/// The destination of every row, except for those of an in-place V without a finish, which stay
/// there; rows with slot -1 or a slot outside the cache have none.
std::map<Byte, Row> destinations(const Scenario& scenario, const KernelInfo& info);

}  // namespace vkrope::test::split
