// SPDX-License-Identifier: MIT
// Tier "runtime": a device of vkrope's own, its buffers, angle tables, submissions and bounded
// waits; for tools, tests and applications that have no Vulkan device yet.
//
// Nothing throws, prints or reads the environment. A Device and what was made with it belong to one
// thread at a time; the Device must outlive what was made with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "vkrope/frequencies.hpp"
#include "vkrope/kernel.hpp"

namespace vkrope {

/// What a physical device says of itself.
struct DeviceInfo {
    std::string name;    ///< as the driver gives it
    std::string driver;  ///< name and version of the driver
    std::string uuid;    ///< 32 hex digits
    VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
    std::uint32_t api_version = 0;
    std::uint64_t memory_bytes = 0;  ///< largest device-local heap
    VkPhysicalDeviceLimits limits = {};
    bool suitable = false;  ///< false: `reason` says what it lacks
    std::string reason;
};

/// A message of the loader, a layer or a driver.
struct Message {
    bool error = false;  ///< otherwise a warning
    const char* id = "";
    const char* text = "";
};

/// Which device, and how to open it.
struct DeviceOptions {
    /// Which device: empty for the best; digits for an index into devices(); 32 hex digits for a
    /// UUID; else part of a name, any case.
    std::string select = {};
    /// Null: the system's Vulkan loader, found at run time.
    PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
    /// Turns on VK_LAYER_KHRONOS_validation with synchronisation validation and best practices;
    /// without the layer: not_supported.
    bool validation = false;
    /// Called during calls of this library, on the calling thread.
    std::function<void(const Message&)> on_message = {};
    bool push_descriptors =
        true;  ///< false: descriptor sets even where push descriptors are offered
    std::uint64_t timeout_ns = 30'000'000'000;  ///< longest wait for one submission
};

/// Every Vulkan device, best first: discrete, integrated, virtual, other, and software devices
/// last.
Result<std::vector<DeviceInfo>> devices(const DeviceOptions& options = {});

/// The one device of `found` that `select` (see DeviceOptions) names. None: no_device. Several, or
/// an index past the end: invalid_argument. Either way the sentence lists what there was to choose
/// from.
Result<std::size_t> select_device(const std::vector<DeviceInfo>& found, const std::string& select);

/// A device with one compute queue. Move-only; an empty Device may only be destroyed or assigned
/// to.
class Device {
   public:
    Device() noexcept;
    ~Device();
    Device(Device&&) noexcept;
    Device& operator=(Device&&) noexcept;

    /// Opens the one device that `options.select` names; see select_device() for what several, or
    /// none, give.
    static Result<Device> open(const DeviceOptions& options = {});

    /// What the device says of itself.
    const DeviceInfo& info() const noexcept;

    /// For create() and record() of the kernel tier.
    const DeviceRef& ref() const noexcept;

    /// The one queue, for submissions of your own; not while this Device submits.
    VkQueue queue() const noexcept;
    /// The family of queue().
    std::uint32_t queue_family() const noexcept;

    /// Records one command buffer with `record_commands`, submits it and waits for it. The callback
    /// records, no more: whatever submits on this Device (submit, uploads and downloads, tables, a
    /// HostRotation) is invalid_argument during it.
    ///
    /// Returns the nanoseconds that the device spent between the first and the last recorded
    /// command, or nothing where it has no timestamps or they cannot be read. The memory effects of
    /// earlier submissions are visible to the commands.
    Result<std::optional<double>> submit(
        const std::function<Status(VkCommandBuffer)>& record_commands);

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

    /// Copies `bytes` bytes from host memory, through staging memory, and waits for it.
    Status upload(const void* source, std::size_t bytes, VkDeviceSize offset = 0);
    /// Copies `bytes` bytes to host memory likewise, after all that was submitted before.
    Status download(void* target, std::size_t bytes, VkDeviceSize offset = 0);

    /// All of it, for Tensor::where and the like.
    VkDescriptorBufferInfo whole() const noexcept { return {handle_, 0, bytes_}; }
    /// Stays the Buffer's.
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
    static Result<AngleTable> make(Device& device, const Rotation& rotation, AngleSource source,
                                   std::uint64_t max_position);

    /// Makes the table anew where it does not reach so far, for at least twice as many positions
    /// where the source allows, so that growing step by step costs little; the angles that it has
    /// keep their bits. Command buffers that use the old one must have completed. On error the old
    /// one is left.
    Status reach(Device& device, const Rotation& rotation, std::uint64_t max_position);

    /// What plan_angles made of the arguments.
    const AnglePlan& plan() const noexcept { return plan_; }

    /// For Call::angles; refers to this table, which must not move until record() has returned.
    Angles angles() const noexcept {
        return {&plan_, view_, buffer_.handle() ? buffer_.whole() : VkDescriptorBufferInfo{}};
    }

   private:
    friend class HostRotation;
    static Result<AngleTable> make(Device::Impl& device, const Rotation& rotation,
                                   AngleSource source, std::uint64_t max_position);
    Status reach(Device::Impl& device, const Rotation& rotation, std::uint64_t max_position);

    Device::Impl* device_ = nullptr;
    AnglePlan plan_;
    VkImage image_ = VK_NULL_HANDLE;
    void* allocation_ = nullptr;
    VkImageView view_ = VK_NULL_HANDLE;
    Buffer buffer_;
};

/// The order of a tensor's axes in memory, slowest first: batch, sequence, heads, head_dim; thd is
/// packed tokens, heads, head_dim.
enum class Layout : std::uint32_t { bshd, bhsd, sbhd, thd };

/// What a HostRotation works on. Q or K may be absent (0 heads), and V, which goes along with them.
struct HostShape {
    std::uint32_t batch = 1, tokens = 0;  ///< thd: batch is 1
    std::uint32_t q_heads = 0, k_heads = 0, v_heads = 0;
    std::uint32_t q_head_dim = 0,
                  k_head_dim = 0;    ///< 0: as the rotation has it, see row_channels()
    std::uint32_t v_head_dim = 0;    ///< 0: as K's
    Element element = Element::f32;  ///< of all tensors, in and out
    Layout layout = Layout::bshd;
    /// [tokens] for all sequences, or [batch, tokens]; empty: implicit.
    std::vector<std::int32_t> positions = {};
    /// Positions are [axes, batch, tokens], for the rotation's sections. 0: one position a token,
    /// which all axes share.
    std::uint32_t axes = 0;
    std::int32_t first_position = 0;  ///< implicit: position of token 0 of every sequence
    AngleSource angles =
        AngleSource::by_default;  ///< HostRotation::angle_plan() says what became of by_default
    Mapping mapping = Mapping::by_device;
    Conversion conversion = Conversion::by_device;
    bool in_place =
        false;  ///< false: the device keeps input and output apart, so that run() can be repeated
};

/// What may change from one run() of a HostRotation to the next. What is given here stays for the
/// runs after it.
struct HostRun {
    Direction direction = Direction::forward;
    /// Implicit positions: that of token 0 of every sequence.
    std::optional<std::int32_t> first_position = {};
    /// As many as HostShape::positions, and in their order; empty: no change.
    std::vector<std::int32_t> positions = {};
};

/// Rotates tensors that live in host memory: table and buffers for one rotation and one shape. The
/// pipelines are the device's: they are compiled when a device first meets a kind of rotation.
/// Move-only.
class HostRotation {
   public:
    HostRotation() noexcept;
    ~HostRotation();
    HostRotation(HostRotation&&) noexcept;
    HostRotation& operator=(HostRotation&&) noexcept;

    /// Fills the table, makes the buffers, and compiles what the device has not met yet.
    static Result<HostRotation> make(Device& device, const Rotation& rotation,
                                     const HostShape& shape);

    /// Bytes of Q in host memory; 0 where it is absent.
    std::size_t q_bytes() const noexcept;
    /// Bytes of K likewise.
    std::size_t k_bytes() const noexcept;
    /// Bytes of V likewise.
    std::size_t v_bytes() const noexcept;

    /// Copies Q, K and V to the device.
    ///
    /// q, k, v  q_bytes(), k_bytes() and v_bytes() bytes; null where the tensor is absent
    Status upload(const void* q, const void* k, const void* v = nullptr);

    /// Rotates the Q and K that were uploaded, and V goes along; in place, rotates what the last
    /// run left. Returns device nanoseconds, where the device has timestamps.
    Result<std::optional<double>> run(Direction direction = Direction::forward);

    /// The same with positions of this run, as a decoder has them from step to step. The table
    /// grows as far as they reach, see AngleTable::reach(); the angle source stays, so that bits
    /// do, and beyond its reach limit_exceeded says so.
    Result<std::optional<double>> run(const HostRun& run);

    /// Copies what run() left from the device; arguments as upload().
    Status download(void* q, void* k, void* v = nullptr);

    /// The same bytes as one run() reads, and writes: for measuring against a plain copy.
    struct Buffers {
        /// Null for an absent tensor.
        VkDescriptorBufferInfo q_in = {}, q_out = {}, k_in = {}, k_out = {}, v_in = {}, v_out = {};
    };
    /// Those of this rotation.
    Buffers buffers() const noexcept;

    /// Of the table that run() reads.
    const AnglePlan& angle_plan() const noexcept;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace vkrope
