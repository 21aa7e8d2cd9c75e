// SPDX-License-Identifier: MIT
// Programs as engines want to write them, against the public headers alone. They compile today; what this version does not support says
// so when it is asked for (Code::not_supported), which main.cpp checks.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "vkrope/kernel.hpp"
#include "vkrope/model.hpp"

namespace walk {

/// Tensors and indices; which of them a program uses is its own matter.
struct Buffers {
    VkDescriptorBufferInfo q = {}, k = {}, cache = {}, ids = {}, slots = {};
};

/// What the engine around each program has anyway.
struct Gpu {
    vkrope::DeviceRef ref;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    Buffers buffers;
    std::function<VkImageView(VkFormat, VkExtent2D, VkFlags, const std::vector<std::byte>&)> upload_texture;
};

// How far each program comes with this version: the code of the first step that fails, or ok.
namespace paged_decode {
vkrope::Code today(const Gpu& gpu, std::string_view config_json);
}
namespace qwen25vl {
vkrope::Code today(const Gpu& gpu, std::string_view config_json);
}
namespace mla {
vkrope::Code today(const Gpu& gpu, std::string_view config_json);
}
namespace training {
vkrope::Code today(const Gpu& gpu, std::string_view config_json);
}
namespace layer_types {
vkrope::Code today(const Gpu& gpu, std::string_view config_json);
}

}  // namespace walk
