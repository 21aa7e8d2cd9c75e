// SPDX-License-Identifier: MIT
// Programs as engines want to write them, against the public headers alone, on a device of the
// engine's own. Each is a list of steps, every one of which must succeed.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace walk {

/// Tensors and indices; which of them a program uses is its own matter.
struct Buffers {
    VkDescriptorBufferInfo q = {}, k = {}, cache = {};
    VkDescriptorBufferInfo ids = {}, ids64 = {},
                           slot_mapping = {};  ///< 0, 1, 2, ... as int32, int64, int32
};

/// What the engine around each program has anyway.
struct Gpu {
    vkrope::DeviceRef ref;
    Buffers buffers;
    std::function<VkImageView(const vkrope::AngleTableLayout&,
                              const std::vector<std::byte>& texels)>
        upload_texture;
    std::function<VkDescriptorBufferInfo(VkBufferUsageFlags, const std::vector<std::byte>&)>
        upload_buffer;
    /// What a buffer holds, once the commands that write it have completed and made it visible to
    /// the host.
    std::function<std::vector<std::byte>(const VkDescriptorBufferInfo&)> download;
    /// Begins a command buffer, lets the program record into it, and, if that succeeded, submits it
    /// and waits.
    std::function<vkrope::Status(const std::function<vkrope::Status(VkCommandBuffer)>&)> run;
};

/// A kernel and the descriptors of a few calls, destroyed together.
class Made {
   public:
    Made(const vkrope::DeviceRef& device, const vkrope::KernelInfo& info);
    ~Made();
    Made(const Made&) = delete;
    Made& operator=(const Made&) = delete;

    vkrope::Status status;
    vkrope::Kernel* kernel = nullptr;
    vkrope::DescriptorArena* arena = nullptr;  ///< null with push descriptors
};

/// A model's table on the device: a texture, or a buffer.
struct Table {
    vkrope::AngleTableLayout plan;
    VkImageView view = VK_NULL_HANDLE;
    VkDescriptorBufferInfo buffer = {};

    vkrope::Angles angles() const { return {&plan, view, buffer}; }
};
vkrope::Result<Table> make_table(const Gpu& gpu, const vkrope::RopeParams& rope,
                                 vkrope::AngleSource source, std::uint64_t max_position);

/// A step that was taken.
struct Step {
    const char* name;
    vkrope::Status status;
};

/// A model and its table, which are the first steps of most programs.
struct Loaded {
    vkrope::RopeParams rope;
    Table table;
};
/// max_position  0: the model's own
Loaded load_model(const Gpu& gpu, std::string_view config_json, vkrope::AngleSource source,
                  std::uint64_t max_position, std::vector<Step>& taken);

namespace paged_decode {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
}
namespace qwen25vl {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
}
namespace mla {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
}
namespace training {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
}
namespace layer_types {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
}
namespace qwen3_layer {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
std::vector<Step> quantised_steps(const Gpu& gpu, std::string_view config_json);
}  // namespace qwen3_layer
namespace packed_qkv {
std::vector<Step> steps(const Gpu& gpu, std::string_view config_json);
}

}  // namespace walk
