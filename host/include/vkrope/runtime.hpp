// SPDX-License-Identifier: MIT
// Tier "runtime": vkrope's own device, with buffers, angle tables, submissions and bounded waits;
// for tools, tests and applications that have no Vulkan device.
//
// Nothing throws, prints or reads the environment. A Device and the objects made with it belong to
// one thread at a time; the Device must outlive those objects.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkrope/vkrope.hpp"

namespace vkrope {

/// Properties of a physical device.
struct DeviceInfo {
    std::string name;    ///< name reported by the driver
    std::string driver;  ///< name and version of the driver
    std::string uuid;    ///< 32 hex digits
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    std::uint32_t api_version = 0;
    std::uint64_t memory_bytes = 0;  ///< largest device-local heap
    VkPhysicalDeviceLimits limits = {};
    bool suitable = false;  ///< false: `reason` says what the device lacks
    std::string reason;
};

/// A message from the loader, a layer or a driver, or of this library about its pipeline cache.
struct Message {
    bool error = false;  ///< false: a warning
    const char* id = "";
    const char* text = "";
};

/// Which device to open, and how.
struct DeviceOptions {
    /// The best device if empty; digits: an index into the list of devices; 32 hex digits: a UUID;
    /// else part of a name, in any case.
    std::string select = {};
    /// Null: the system's Vulkan loader, found at run time.
    PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
    /// Enables VK_LAYER_KHRONOS_validation with synchronisation validation and best practices.
    /// Returns not_supported if the layer is not installed.
    bool validation = false;
    /// Called during calls of this library, the destructor of Device among them, on the calling
    /// thread.
    std::function<void(const Message&)> on_message = {};
    bool push_descriptors =
        true;  ///< false: use descriptor sets even if push descriptors are available
    std::uint64_t timeout_ns = 30'000'000'000;  ///< longest wait for one submission
    /// Folder, in UTF-8, that keeps compiled pipelines between processes, in one file for each
    /// device and driver; empty: nothing is kept. It must exist, and only users whom you trust may
    /// write to it: a checksum finds damage, not malice. If a file is damaged, or cannot be read or
    /// written, pipelines are compiled as without it, and `on_message` gets a warning with the id
    /// "vkrope-pipeline-cache".
    std::string pipeline_cache_folder = {};
    /// Largest size of all these files together, in bytes. Writing one removes the oldest ones; a
    /// file that is larger alone is neither written nor read.
    std::uint64_t pipeline_cache_bytes = std::uint64_t{64} << 20;
};

/// Lists every Vulkan device, best first: discrete, integrated, virtual, other, and software
/// devices last.
Result<std::vector<DeviceInfo>> devices(const DeviceOptions& options = {});

/// Index of the one device of `found` that matches `select` (see DeviceOptions). No match:
/// no_device. Several matches, or an index past the end: invalid_argument. Either way the message
/// lists the devices to choose from.
Result<std::size_t> select_device(const std::vector<DeviceInfo>& found, const std::string& select);

/// A device with one compute queue. Move-only; an empty Device may only be destroyed or assigned
/// to.
class Device {
   public:
    Device() noexcept;
    ~Device();
    Device(Device&&) noexcept;
    Device& operator=(Device&&) noexcept;

    /// Opens the device that `options.select` matches; errors as select_device().
    static Result<Device> open(const DeviceOptions& options = {});

    /// Properties of the device.
    const DeviceInfo& info() const noexcept;

    /// For create() and record() of the kernel tier.
    const DeviceRef& ref() const noexcept;

    /// The queue, for the application's own submissions; not while this Device submits.
    VkQueue queue() const noexcept;
    /// The family of queue().
    std::uint32_t queue_family() const noexcept;

    /// Records one command buffer with `record_commands`, submits it and waits for it. The callback
    /// may only record: anything that submits on this Device (submit, uploads and downloads,
    /// tables, a HostRotation) returns invalid_argument during it.
    ///
    /// Returns the device time between the first and the last recorded command in nanoseconds, or
    /// nothing if the device has no timestamps, they cannot be read, or they run backwards. Memory
    /// effects of earlier submissions are visible to the commands.
    Result<std::optional<double>> submit(
        const std::function<Status(VkCommandBuffer)>& record_commands);

    /// Writes the pipelines compiled so far to DeviceOptions::pipeline_cache_folder; the destructor
    /// does it too. No effect without a folder, if nothing was compiled since, or if the driver
    /// keeps nothing. The file is replaced as a whole, so that any number of processes may write
    /// it; the last one wins.
    ///
    /// invalid_argument: the file could not be written; limit_exceeded: it would be larger than
    /// pipeline_cache_bytes. Either way the device works on, and the old file stays.
    Status save_pipeline_cache();

    struct Impl;
    /// For the library itself.
    Impl& impl() noexcept { return *impl_; }

   private:
    std::unique_ptr<Impl> impl_;
};

/// Device memory for a tensor, ids or a table: a storage and uniform buffer that can be copied from
/// and to. Move-only.
class Buffer {
   public:
    Buffer() noexcept = default;
    ~Buffer();
    Buffer(Buffer&&) noexcept;
    Buffer& operator=(Buffer&&) noexcept;

    /// bytes  above 0; rounded up to a multiple of 4
    static Result<Buffer> make(Device& device, VkDeviceSize bytes);

    /// Copies `bytes` bytes from host memory through staging memory, and waits.
    Status upload(const void* source, std::size_t bytes, VkDeviceSize offset = 0);
    /// Copies `bytes` bytes to host memory through staging memory after all earlier submissions,
    /// and waits.
    Status download(void* target, std::size_t bytes, VkDeviceSize offset = 0);

    /// The whole buffer, for Tensor::where and similar fields.
    VkDescriptorBufferInfo whole() const noexcept { return {handle_, 0, bytes_}; }
    /// Owned by this Buffer.
    VkBuffer handle() const noexcept { return handle_; }

   private:
    friend class AngleTable;
    static Result<Buffer> make(Device::Impl& device, VkDeviceSize bytes);

    Device::Impl* device_ = nullptr;
    VkBuffer handle_ = VK_NULL_HANDLE;
    void* allocation_ = nullptr;
    VkDeviceSize bytes_ = 0;
};

/// An angle table on the device, planned, filled and uploaded. Move-only.
class AngleTable {
   public:
    AngleTable() noexcept = default;
    ~AngleTable();
    AngleTable(AngleTable&&) noexcept;
    AngleTable& operator=(AngleTable&&) noexcept;

    /// Arguments as plan_angles.
    static Result<AngleTable> make(Device& device, const RopeParams& rotation, AngleSource source,
                                   std::uint64_t max_position);

    /// Grows the table to `max_position`, at least doubling it if possible, so that growing step by
    /// step is cheap; no effect if the table is large enough. Existing angles keep their bits.
    /// Command buffers that use the old table must have completed. Unchanged on error.
    Status reach(Device& device, const RopeParams& rotation, std::uint64_t max_position);

    /// The plan that plan_angles made.
    const AngleTableLayout& layout() const noexcept { return plan_; }

    /// For Call::angles; refers to this table, which must not move until record() has returned.
    Angles angles() const noexcept {
        return {&plan_, view_, buffer_.handle() ? buffer_.whole() : VkDescriptorBufferInfo{}};
    }

   private:
    friend class HostRotation;
    static Result<AngleTable> make(Device::Impl& device, const RopeParams& rotation,
                                   AngleSource source, std::uint64_t max_position);
    Status reach(Device::Impl& device, const RopeParams& rotation, std::uint64_t max_position);

    Device::Impl* device_ = nullptr;
    AngleTableLayout plan_;
    VkImage image_ = VK_NULL_HANDLE;
    void* allocation_ = nullptr;
    VkImageView view_ = VK_NULL_HANDLE;
    Buffer buffer_;
};

using Layout = vkrope_layout;

/// Tensors of a HostRotation. Q or K may be absent (0 heads); V is optional.
struct HostShape {
    std::uint32_t batch = 1;   ///< sequences
    std::uint32_t tokens = 0;  ///< tokens per sequence
    std::uint32_t q_heads = 0, k_heads = 0, v_heads = 0;
    std::uint32_t q_head_dim = 0,
                  k_head_dim = 0;  ///< 0: from the rotation, see row_channels()
    std::uint32_t v_head_dim = 0;  ///< 0: same as K
    Element element = VKROPE_F32;  ///< all tensors, input and output
    Layout layout = VKROPE_LAYOUT_BSHD;
    /// [tokens] for all sequences, or [batch, tokens]; empty: implicit.
    std::vector<std::int32_t> positions = {};
    /// Positions are [axes, batch, tokens], for the rotation's sections. 0: one position per token,
    /// used on all axes.
    std::uint32_t axes = 0;
    std::int32_t first_position = 0;  ///< implicit: position of token 0 of every sequence
    AngleSource angles = VKROPE_ANGLES_AUTOMATIC;  ///< kind of table
    Mapping mapping = VKROPE_MAPPING_AUTOMATIC;
    Conversion conversion = VKROPE_CONVERSION_AUTOMATIC;
    bool in_place =
        false;  ///< false: separate input and output on the device, so that a run can be repeated
};

/// What may change from one run() of a HostRotation to the next. Values stay in effect for later
/// runs.
struct HostRun {
    Direction direction = VKROPE_FORWARD;
    /// Implicit positions: position of token 0 of every sequence.
    std::optional<std::int32_t> first_position = {};
    /// Same count and order as HostShape::positions; empty: no change.
    std::vector<std::int32_t> positions = {};
};

/// Rotates tensors in host memory; owns the table and buffers for one rotation and one shape. The
/// pipelines belong to the device and are compiled when it first needs them. Move-only.
class HostRotation {
   public:
    HostRotation() noexcept;
    ~HostRotation();
    HostRotation(HostRotation&&) noexcept;
    HostRotation& operator=(HostRotation&&) noexcept;

    /// Fills the table, makes the buffers, and compiles pipelines that the device does not have
    /// yet.
    static Result<HostRotation> make(Device& device, const RopeParams& rotation,
                                     const HostShape& shape);

    /// Bytes of Q in host memory; 0 if absent.
    std::size_t q_bytes() const noexcept;
    /// Bytes of K in host memory; 0 if absent.
    std::size_t k_bytes() const noexcept;
    /// Bytes of V in host memory; 0 if absent.
    std::size_t v_bytes() const noexcept;

    /// Copies Q, K and V to the device.
    ///
    /// q, k, v  q_bytes(), k_bytes() and v_bytes() bytes; null if the tensor is absent
    Status upload(const void* q, const void* k, const void* v = nullptr);

    /// Rotates the uploaded Q and K, and copies V; in place, rotates the result of the last run.
    /// Returns nanoseconds of device time, if the device has timestamps.
    Result<std::optional<double>> run(Direction direction = VKROPE_FORWARD);

    /// As above, with positions for this run, as in decoding. The table grows to cover them, see
    /// AngleTable::reach(). The angle source, and therefore the result bits, do not change; a
    /// position that the source cannot cover returns limit_exceeded.
    Result<std::optional<double>> run(const HostRun& run);

    /// Copies the result of run() from the device; arguments as upload().
    Status download(void* q, void* k, void* v = nullptr);

    /// The buffers that run() reads and writes, for comparing its time with a plain copy.
    struct Buffers {
        /// Null for an absent tensor.
        VkDescriptorBufferInfo q_in = {}, q_out = {}, k_in = {}, k_out = {}, v_in = {}, v_out = {};
    };
    /// The buffers of this rotation.
    Buffers buffers() const noexcept;

    /// Plan of the table that run() reads.
    const AngleTableLayout& angle_layout() const noexcept;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope
