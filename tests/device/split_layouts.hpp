// SPDX-License-Identifier: MIT
// Calls over many layouts, of sizes that a device with small limits cannot bind or dispatch at
// once.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "support/recording.hpp"

namespace vkrope::test {

/// Buffers with their initial content, and a call on them.
struct Scenario {
    std::string name = {};
    std::uint64_t dispatches = 1;  ///< of the unsplit call
    KernelInfo info{.pairing = VKROPE_HALF_SPLIT, .angles = VKROPE_ANGLES_FACTORED_TEXTURE};
    Call call = {};
    AngleTable table = {};
    std::vector<std::pair<Buffer, Bytes>> buffers = {};

    VkDescriptorBufferInfo hold(Device& on, Bytes bytes) {
        Buffer buffer = must(Buffer::make(on, bytes.size()));
        const VkDescriptorBufferInfo whole = buffer.whole();
        buffers.emplace_back(std::move(buffer), std::move(bytes));
        return whole;
    }
    VkDescriptorBufferInfo hold(Device& on, const std::vector<std::int32_t>& words) {
        Bytes bytes(words.size() * 4);
        std::memcpy(bytes.data(), words.data(), bytes.size());
        return hold(on, bytes);
    }
    VkDescriptorBufferInfo elements(Device& on, Element element, std::size_t count) {
        return hold(
            on, random_elements(element, (count + 1) / 2 * 2, std::uint32_t(81 + buffers.size())));
    }
};

std::vector<Scenario> scenarios(Device& on);

}  // namespace vkrope::test
