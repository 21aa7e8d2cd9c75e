// SPDX-License-Identifier: MIT
// Programs that use the library as engines do, with only its public headers, on the engine's own
// device. Each program is a list of steps, which must all succeed.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace walk {

/// Tensors and indices. A program may use only some of them.
struct Buffers {
    VkDescriptorBufferInfo q = {}, k = {}, cache = {};
    VkDescriptorBufferInfo ids = {}, ids64 = {},
                           slot_mapping = {};  ///< 0, 1, 2, ... as int32, int64, int32
};

/// A kernel and an arena for a few calls, which are destroyed together.
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

/// The parts of an engine that the programs need.
struct Gpu {
    vkrope::DeviceRef ref;
    Buffers buffers;
    std::function<VkImageView(const vkrope::AngleTableLayout&,
                              const std::vector<std::byte>& texels)>
        upload_texture;
    std::function<VkDescriptorBufferInfo(VkBufferUsageFlags, const std::vector<std::byte>&)>
        upload_buffer;
    /// Returns the content of a buffer; the commands that write it must have completed and made it
    /// visible to the host.
    std::function<std::vector<std::byte>(const VkDescriptorBufferInfo&)> download;
    /// Submits what a function records, makes its outputs visible to the host, and waits.
    std::function<vkrope::Status(const std::function<vkrope::Status(VkCommandBuffer)>&)> submit;
    /// Submits one call.
    std::function<vkrope::Status(const Made&, const vkrope::Call&)> rotate;
};

/// A model's angle table on the device, in a texture or in a buffer.
struct Table {
    vkrope::AngleTableLayout plan;
    VkImageView view = VK_NULL_HANDLE;
    VkDescriptorBufferInfo buffer = {};

    vkrope::Angles angles() const { return {&plan, view, buffer}; }
};
vkrope::Result<Table> make_table(const Gpu& gpu, const vkrope::RopeParams& rope,
                                 vkrope::AngleSource source, std::uint64_t max_position);

/// A step that the program has taken, and its result.
struct Step {
    const char* name;
    vkrope::Status status;
};

/// A model and its table, the results of the first steps of most programs.
struct Loaded {
    vkrope::RopeParams rope;
    Table table;
};
/// max_position  if 0, the maximum position of the model
Loaded load_model(const Gpu& gpu, std::string_view config_json, vkrope::AngleSource source,
                  std::uint64_t max_position, std::vector<Step>& taken);

std::vector<Step> qwen25vl(const Gpu& gpu, std::string_view config_json);
std::vector<Step> mla(const Gpu& gpu, std::string_view config_json);
std::vector<Step> training(const Gpu& gpu, std::string_view config_json);
std::vector<Step> packed_qkv(const Gpu& gpu, std::string_view config_json);
std::vector<Step> qwen3_layer(const Gpu& gpu, std::string_view config_json);
std::vector<Step> qwen3_layer_q8_0(const Gpu& gpu, std::string_view config_json);
std::vector<Step> gemma3(const Gpu& gpu, std::string_view config_json);

}  // namespace walk
